// Following attribute reads on the objects of a module.
#include "ir/rewrite/module_reads.h"

#include <cresset/ir/pass.h>

#include "ir/rewrite/pass_tools.h"

namespace cresset::jit {

IValue AttributeSlot::value() const { return Object(object).attr(name); }
TypePtr AttributeSlot::type() const { return Object(object).type()->findAttribute(name); }

std::vector<std::shared_ptr<Graph>> with_subgraphs(const std::shared_ptr<Graph>& graph) {
  std::vector<std::shared_ptr<Graph>> all{graph};
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::shared_ptr<Graph> g = all[i];
    g->block()->visit([&](Node* n) {
      if (const auto body = subgraph_of(n)) all.push_back(body);
    });
  }
  return all;
}

void ModuleReads::bind_subgraphs(const Graph& graph) {
  graph.block()->visit([&](Node* n) {
    const auto body = subgraph_of(n);
    if (!body) return;
    for (std::size_t i = 0; i < std::min(n->inputs().size(), body->inputs().size()); ++i) bound_[body->inputs()[i]] = n->input(i);
    bind_subgraphs(*body);
  });
}

const Value* ModuleReads::outer(const Value* v) const {
  for (auto found = bound_.find(v); found != bound_.end(); found = bound_.find(v)) v = found->second;
  return v;
}

ObjectPtr ModuleReads::object(const Value* v) const {
  std::vector<std::string> names;
  for (v = outer(v); v->node()->kind() == prim::GetAttr; v = outer(v->node()->input(0))) names.push_back(v->node()->s(attr::name));
  if (v->node()->kind() != prim::Param || v->offset() != 0 || v->node()->owningBlock()->owningNode() || v->type()->kind != TypeKind::Object)
    return {};
  ObjectPtr at = root_;
  for (auto name = names.rbegin(); name != names.rend(); ++name) {
    const Object here(at);
    if (!here.hasattr(*name)) return {};
    const IValue value = here.attr(*name);
    if (!value.isScriptObject()) return {};
    at = value.toObject();
  }
  return at;
}

std::string ModuleReads::path(const Value* v) const {
  std::string path;
  for (v = outer(v); v->node()->kind() == prim::GetAttr; v = outer(v->node()->input(0)))
    path = v->node()->s(attr::name) + (path.empty() ? "" : "." + path);
  return path;
}

std::optional<AttributeSlot> ModuleReads::slot(const Node* n) const {
  ObjectPtr owner = object(n->input(0));
  if (!owner) return std::nullopt;
  return AttributeSlot{std::move(owner), n->s(attr::name)};
}

bool ModuleReads::refine_interfaces(const Graph& graph) {
  bool changed = false;
  graph.block()->visit([&](Node* n) {
    if (n->kind() != prim::GetAttr || n->output()->type()->kind != TypeKind::Interface) return;
    if (const ObjectPtr o = object(n->output())) {
      n->output()->setType(o->type);
      changed = true;
    }
  });
  return changed;
}

void ModuleReads::inline_into(const std::shared_ptr<Graph>& graph) {
  for (bool again = true; again;) {
    again = inline_calls(graph);
    bound_.clear();
    bind_subgraphs(*graph);
    for (const auto& g : with_subgraphs(graph)) again = refine_interfaces(*g) || again;
  }
  for (const auto& g : with_subgraphs(graph))
    g->block()->visit([&](const Node* n) {
      CRESSET_CHECK(n->kind() != prim::CallMethod, "the method '", n->s(attr::name), "' of '", n->input(0)->type()->str(),
                    "' is not known.\nin ", n->str(), "\n", n->sourceRange().highlight());
      CRESSET_CHECK(n->kind() != prim::ModuleContainerIndex, "Freezing modules containing prim::ModuleContainerIndex is not supported\nin ",
                    n->str(), "\n", n->sourceRange().highlight());
    });
}

}  // namespace cresset::jit
