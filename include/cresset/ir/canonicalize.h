// A normal form of graphs for golden tests, and equality independent of names.
#pragma once

#include <cresset/ir/ir.h>

namespace cresset::jit {

/// A copy with values numbered in the order of the program, without source ranges; outputs of If and Loop nodes in the order of their first
/// use. Names go unless they are asked for.
CRESSET_API std::shared_ptr<Graph> canonicalize(const std::shared_ptr<Graph>& g, bool keep_names = false);

/// Same kinds, attributes (floats by their bits, tensors by content), types, operands and nesting; names and places do not count. `why`
/// receives the first difference in the order of the program.
CRESSET_API bool graph_equal(const Graph& a, const Graph& b, std::string* why = nullptr);

}  // namespace cresset::jit
