// The named types that a graph mentions.
#include <cresset/ir/class_type.h>
#include <cresset/ir/ir_parser.h>

namespace cresset::jit {
namespace {

class Collector {
 public:
  std::unordered_map<std::string, TypePtr> found;

  void graph(const Graph& g) {
    block(*g.block());
    g.block()->visit([this](Node* n) {
      for (const Value* v : n->outputs()) type(v->type());
      for (const Block* b : n->blocks()) block(*b);
      for (const Attribute& a : n->attributes()) attribute(a.value);
    });
  }

 private:
  void block(const Block& b) {
    for (const Value* v : b.inputs()) type(v->type());
  }

  void attribute(const AttributeValue& v) {
    if (const auto* t = std::get_if<TypePtr>(&v)) {
      type(*t);
    } else if (const auto* types = std::get_if<std::vector<TypePtr>>(&v)) {
      for (const TypePtr& t : *types) type(t);
    } else if (const auto* value = std::get_if<IValue>(&v)) {
      type(value->type());
    } else if (const auto* g = std::get_if<std::shared_ptr<Graph>>(&v)) {
      if (*g) graph(**g);
    } else if (const auto* graphs = std::get_if<std::vector<std::shared_ptr<Graph>>>(&v)) {
      for (const auto& g : *graphs) graph(*g);
    }
  }

  void type(const TypePtr& t) {
    const bool has_name = !t->name.empty() && t->kind != TypeKind::Var && t->kind != TypeKind::Function;
    if (has_name && !found.emplace(t->name, t).second) return;  // a class may mention itself
    for (const TypePtr& inner : t->contained) type(inner);
    if (const auto* cls = dynamic_cast<const ClassType*>(t.get()))
      for (const ClassAttribute& a : cls->attributes()) type(a.type);
  }
};

}  // namespace

TypeResolver types_in(const Graph& g) {
  Collector collector;
  collector.graph(g);
  return [found = std::move(collector.found)](const std::string& name) -> TypePtr {
    const auto known = found.find(name);
    return known == found.end() ? nullptr : known->second;
  };
}

}  // namespace cresset::jit
