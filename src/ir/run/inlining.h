// Parts of inlining that other passes use.
#pragma once

#include <string>

#include <cresset/ir/function.h>

namespace cresset::jit {

/// "layer1.0" for the value of GetAttr[name="0"](GetAttr[name="layer1"](%self)); empty for self.
std::string module_path(const Value* module);
/// The function that a call node runs; null when it is not known or the node is no call.
Function* callee_of(const Node* n);
/// Replaces one call by the body of its function; nodes of the body remember the call.
void inline_call(Graph& graph, Node* call);

/// Replaces the calls in `caller`'s graph whose functions are so small that the call would take longer than the body. Were there any?
bool inline_small_calls(Graph& graph, const Function& caller);

}  // namespace cresset::jit
