// Hints to the memory for walks over graphs that are larger than the caches.
#pragma once

#include <cresset/ir/ir.h>

namespace cresset::jit {

/// Nodes made one after the other are neighbours in the graph's pool: while a walk looks at one, a later one is fetched. A wrong guess
/// costs nothing but the request.
inline void fetch_later_node(const Node* n) {
  constexpr std::size_t kLine = 64, kAhead = 12 * ((sizeof(Node) + kLine - 1) / kLine * kLine);
  const char* later = reinterpret_cast<const char*>(n) + kAhead;
  __builtin_prefetch(later);
  __builtin_prefetch(later + kLine);
  __builtin_prefetch(later + 2 * kLine);
}

}  // namespace cresset::jit
