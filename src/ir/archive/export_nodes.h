// Nodes of exported programs as nodes of the IR.
#pragma once

#include <unordered_map>

#include <cresset/ir/ir.h>

#include "ir/archive/export_json.h"

namespace cresset::jit::exported {

/// The values of one graph of a program, by name.
class NodeReader {
 public:
  explicit NodeReader(std::shared_ptr<Graph> graph) : graph_(std::move(graph)) {}

  void define(const std::string& name, Value* v, const Field& where);
  Value* find(const Field& name) const;
  /// All nodes of a graph, in front of the insertion point.
  void read(const Field& graph);
  /// The value of an argument ({"as_tensor": …}); `type` is what is expected, if that is known.
  Value* argument(const Field& argument, const TypePtr& type = nullptr);
  /// The type of a tensor, from the graph's table.
  TypePtr tensor_type(const Field& graph, const std::string& name) const;

 private:
  void read_node(const Field& graph, const Field& node);
  void read_operator(const Field& graph, const Field& node, const std::string& target);
  void read_function(const Field& graph, const Field& node, Symbol kind);
  void read_number(const Field& node);
  void read_check(const Field& node);
  void read_cond(const Field& graph, const Field& node);
  void read_while_loop(const Field& graph, const Field& node);
  std::vector<Value*> read_body(const Field& graph, const std::vector<Value*>& operands);
  std::vector<Value*> operands(const Field& input);
  Value* condition(Value* v);
  void define_outputs(const Field& graph, const Field& node, const std::vector<Value*>& results);
  void place(Node* n, const Field& node) const;
  Value* list(TypePtr element, const std::vector<Value*>& members);

  std::shared_ptr<Graph> graph_;
  std::unordered_map<std::string, Value*> values_;
  int depth_ = 0;
};

}  // namespace cresset::jit::exported
