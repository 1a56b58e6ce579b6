// Passes of programs over every graph that is about to run.
#pragma once

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include <cresset/ir/ir.h>

namespace cresset::jit {

using GraphPass = std::function<void(std::shared_ptr<Graph>&)>;
using GraphPassNameType = unsigned;
/// Runs on each graph before, or behind, what is done to it before it is compiled; functions that ran before are compiled again at their
/// next call. Gives a name for clearing.
CRESSET_API GraphPassNameType registerPrePass(GraphPass pass);
CRESSET_API GraphPassNameType registerPostPass(GraphPass pass);
CRESSET_API void clearPrePass(GraphPassNameType name);
CRESSET_API void clearPostPass(GraphPassNameType name);
CRESSET_API void clearAllPrePasses();
CRESSET_API void clearAllPostPasses();
CRESSET_API std::vector<std::pair<GraphPass, GraphPassNameType>> getCustomPrePasses();
CRESSET_API std::vector<std::pair<GraphPass, GraphPassNameType>> getCustomPostPasses();
/// PyTorch's RegisterPass: a post pass while the program starts.
struct RegisterGraphPass {
  explicit RegisterGraphPass(GraphPass pass) { registerPostPass(std::move(pass)); }
};

}  // namespace cresset::jit
