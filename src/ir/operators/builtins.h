// The tables of built-in functions, one a family. A row is a schema and a function on the stack.
#pragma once

#include <cresset/ir/operator.h>

namespace cresset::jit {

using AddRows = std::function<void(const BuiltinRow*, std::size_t)>;

/// All tables below; the registry calls it once.
void register_all_builtins(const AddRows& add);
void register_number_builtins(const AddRows& add);
void register_string_builtins(const AddRows& add);
void register_list_builtins(const AddRows& add);
void register_dict_builtins(const AddRows& add);
void register_tensor_builtins(const AddRows& add);
void register_prim_builtins(const AddRows& add);
void register_counter_builtins(const AddRows& add);
/// Those that make what runs a node (builtins_node.cpp).
std::vector<Operator> node_operators();

}  // namespace cresset::jit
