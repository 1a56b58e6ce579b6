// Which attribute of which object a node of a method's graph reads or writes: chains of GetAttr from self are followed on the actual
// objects.
#pragma once

#include <map>
#include <optional>
#include <unordered_map>

#include <cresset/ir/module.h>

namespace cresset::jit {

using ObjectPtr = intrusive_ptr<ivalue::Object>;

/// One attribute of one object.
struct AttributeSlot {
  ObjectPtr object;
  std::string name;
  IValue value() const;
  TypePtr type() const;
  friend bool operator<(const AttributeSlot& a, const AttributeSlot& b) {
    return std::pair(a.object.get(), a.name) < std::pair(b.object.get(), b.name);
  }
  friend bool operator==(const AttributeSlot& a, const AttributeSlot& b) { return a.object.get() == b.object.get() && a.name == b.name; }
};

class ModuleReads {
 public:
  explicit ModuleReads(const Module& root) : root_(root._ivalue()) {}

  /// Inlines all calls, giving values of interface types the class of their object first. Raises for calls that cannot be inlined.
  void inline_into(const std::shared_ptr<Graph>& graph);
  /// The object behind a value of a class: self, or what a chain of attributes gives; null when it is not known.
  ObjectPtr object(const Value* v) const;
  /// "layer1.0" for an object's value; empty for self.
  std::string path(const Value* v) const;
  /// Of a GetAttr or SetAttr; nothing when its object is not known.
  std::optional<AttributeSlot> slot(const Node* n) const;
  /// Inputs of subgraphs of forks stand for the fork's operands.
  void bind_subgraphs(const Graph& graph);

 private:
  bool refine_interfaces(const Graph& graph);
  const Value* outer(const Value* v) const;
  ObjectPtr root_;
  std::unordered_map<const Value*, const Value*> bound_;
};

/// A graph and the graphs of its forks and regions, outermost first.
std::vector<std::shared_ptr<Graph>> with_subgraphs(const std::shared_ptr<Graph>& graph);

}  // namespace cresset::jit
