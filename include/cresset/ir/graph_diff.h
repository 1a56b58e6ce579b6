// How two graphs differ, node by node.
#pragma once

#include <string>
#include <vector>

#include <cresset/ir/ir.h>

namespace cresset::jit {

/// One line of both texts. Values of the second graph have the names of those they match in the first.
struct DiffLine {
  enum class Kind : uint8_t { Same, Changed, Gone, New } kind;
  std::string before, after;  // the same text for Same; one is empty for Gone and New
};
struct CRESSET_API GraphDiff {
  std::vector<DiffLine> lines;
  std::size_t same = 0, changed = 0, gone = 0, fresh = 0;  // nodes
  bool equal() const { return changed + gone + fresh == 0 && signature_equal; }
  bool signature_equal = true;  // inputs and results
  /// A line each: "  text", "- text", "+ text".
  std::string str() const;
};
/// Matches nodes in the order of their blocks: first those that compute the same from the same, then, between these, those of one kind. The
/// names of values do not count; types, attributes, constants' values and marks do.
CRESSET_API GraphDiff diff_graphs(const Graph& before, const Graph& after);

}  // namespace cresset::jit
