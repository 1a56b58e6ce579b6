// When two nodes compute the same: kind, operands, attributes, result types. For merging.
#pragma once

#include <cresset/ir/ir.h>

namespace cresset::jit {

/// Equal nodes have equal hashes; tensors count by dtype, sizes and their first bytes.
std::size_t hash_node(const Node* n);
/// Graphs as attributes are never equal; floats are compared by their bits, tensors by contents.
bool equal_nodes(const Node* a, const Node* b);
/// The same for the values of two attributes.
bool equal_attributes(const AttributeValue& a, const AttributeValue& b);

}  // namespace cresset::jit
