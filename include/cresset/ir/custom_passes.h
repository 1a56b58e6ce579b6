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

/// For a class with one pass, which it registers and clears: `struct Mine : PassManager<Mine>`. A class of its own may replace
/// registerPass and clearPass, for pre passes.
template <class Derived>
class PassManager {
 public:
  virtual ~PassManager() = default;
  /// As a post pass. Whether there was one already, which stays then.
  static bool registerPass(GraphPass pass) {
    if (isRegistered()) return true;
    passID(registerPostPass(std::move(pass)), true);
    isRegistered(true);
    return false;
  }
  static void clearPass() {
    if (!isRegistered()) return;
    clearPostPass(passID());
    isRegistered(true);
  }

 protected:
  /// Is the pass registered? With `turn` the answer is turned round from now on.
  static bool isRegistered(bool turn = false) {
    static bool registered = false;
    if (turn) registered = !registered;
    return registered;
  }
  /// The name of the registered pass; with `set` it is the given one from now on.
  static GraphPassNameType passID(GraphPassNameType name = 0, bool set = false) {
    static GraphPassNameType kept = 0;
    if (set) kept = name;
    return kept;
  }
};

}  // namespace cresset::jit
