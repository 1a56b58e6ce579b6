// Nodes and types as keys of tables: equal ones compute, or are, the same.
#pragma once

#include <cresset/ir/ir.h>

namespace cresset::jit {

struct HashNode {
  CRESSET_API std::size_t operator()(const Node* n) const;
};
/// Kind, operands, attributes and result types are equal. Graphs as attributes are never equal.
struct EqualNode {
  CRESSET_API bool operator()(const Node* a, const Node* b) const;
};
struct HashType {
  std::size_t operator()(const TypePtr& t) const { return std::hash<std::string>()(t->annotation_str()); }
};
struct EqualType {
  bool operator()(const TypePtr& a, const TypePtr& b) const { return a == b || (a && b && *a == *b); }
};

}  // namespace cresset::jit
