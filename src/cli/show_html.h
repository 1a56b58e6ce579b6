// The page of `cresset show --html`.
#pragma once

#include <string>

#include <cresset/ir/module.h>

namespace cresset::cli {

/// One file that needs nothing else: the module tree, the method's graph with the methods it calls and the blocks in it folded away, the
/// source texts, and a search. A node's place leads to its line of the source.
std::string html_page(const jit::Module& module, const jit::Method& method);

}  // namespace cresset::cli
