// The nested inputs and outputs of exported programs: their descriptions, and the nodes that take them apart and build them.
#pragma once

#include <cresset/ir/export.h>

#include "ir/archive/export_json.h"

namespace cresset::jit::exported {

/// A description as torch.export writes it. `named_tuples`: field names by the name of a class.
TreeSpec parse_tree(const std::string& text, const Field& named_tuples);
/// The type of a container whose leaves have these types, taken from `leaves` at `at`.
TypePtr type_of_tree(const TreeSpec& spec, const std::vector<TypePtr>& leaves, std::size_t& at);
/// Nodes that take a value apart: its leaves, in order.
void take_apart(Graph& g, const TreeSpec& spec, Value* value, const std::vector<TypePtr>& types, std::vector<Value*>& leaves);
/// Nodes that build a value from leaves.
Value* build(Graph& g, const TreeSpec& spec, const std::vector<Value*>& leaves, std::size_t& at);
/// The leaves of a value; raises when it is of another structure.
void flatten(const TreeSpec& spec, const IValue& value, const std::string& place, std::vector<IValue>& leaves);
/// Where the leaves are: "*args[0]['k']".
void places(const TreeSpec& spec, const std::string& place, std::vector<std::string>& out);

}  // namespace cresset::jit::exported
