// A method's graph with attributes as inputs instead of reads of self.
#include <cresset/ir/lowering.h>

#include "ir/rewrite/module_reads.h"
#include "ir/rewrite/pass_tools.h"

namespace cresset::jit {
namespace {

class Lowering {
 public:
  Lowering(const Module& module, const std::shared_ptr<Graph>& graph) : reads_(module), graph_(graph) {}

  std::vector<IValue> run(const AfterInlining& after_inlining) {
    reads_.inline_into(graph_);
    if (after_inlining) after_inlining(graph_);
    reads_.bind_subgraphs(*graph_);
    for (const auto& g : with_subgraphs(graph_)) lower_reads(*g);
    eliminate_dead_code(graph_);
    drop_self();
    return std::move(values_);
  }

 private:
  void lower_reads(Graph& g) {
    for (Node* n : nodes_where(g, [](const Node* m) { return m->kind() == prim::GetAttr || m->kind() == prim::SetAttr; })) {
      const auto slot = reads_.slot(n);
      CRESSET_CHECK(n->kind() != prim::SetAttr || !slot, "lower_graph: attribute '", attribute_path(n),
                    "' is written; a module may only be used ", "to read attributes. Freeze the module or keep its state outside.\nin ",
                    n->str(), "\n", n->sourceRange().highlight());
      if (!slot || n->output()->type()->kind == TypeKind::Object) continue;
      replace(g, n, *slot);
    }
  }
  std::string attribute_path(const Node* n) const {
    const std::string owner = reads_.path(n->input(0));
    return (owner.empty() ? "self." : "self." + owner + ".") + n->s(attr::name);
  }

  void replace(Graph& g, Node* n, const AttributeSlot& slot) {
    const IValue v = slot.value();
    if (v.isTensor() && v.toTensor().defined()) {
      n->output()->replaceAllUsesWith(in_graph(g, input_for(v, n->output()->type(), attribute_path(n))));
    } else if (const void* container = v.isList()          ? static_cast<const void*>(&v.toListImpl())
                                       : v.isGenericDict() ? &v.toDictImpl()
                                                           : nullptr) {
      // One value wherever it is read: the graph may write it.
      Value*& whole = containers_[container];
      if (!whole) {
        const WithInsertPoint guard(*graph_->nodes().begin());
        const auto constant = tryInsertConstant(*graph_, v, slot.type());
        whole = constant ? *constant : put_together(*graph_, v, n->output()->type(), attribute_path(n));
        CRESSET_CHECK(whole, "lower_graph: attribute '", attribute_path(n), "' cannot be an input or a constant.\nin ", n->str());
        whole->node()->setSourceRange(n->sourceRange());
      }
      n->output()->replaceAllUsesWith(in_graph(g, whole));
    } else {
      const WithInsertPoint guard(n);
      const auto constant = tryInsertConstant(g, v, v.isTensor() ? nullptr : slot.type());
      if (!constant && v.isCustomClass()) {
        // An object of a C++ class: an input too.
        n->output()->replaceAllUsesWith(in_graph(g, input_for(v, n->output()->type(), attribute_path(n))));
      } else if (Value* whole = constant ? nullptr : put_together(g, v, n->output()->type(), attribute_path(n))) {
        n->output()->replaceAllUsesWith(whole);
      } else {
        CRESSET_CHECK(constant, "lower_graph: attribute '", attribute_path(n), "' cannot be an input or a constant.\nin ", n->str());
        (*constant)->node()->setSourceRange(n->sourceRange());
        n->output()->replaceAllUsesWith(*constant);
      }
    }
    n->destroy();
  }

  // A list or tuple of what is no constant, put together from its members: tensors among them are inputs. Null where a member cannot be
  // one.
  Value* put_together(Graph& g, const IValue& v, const TypePtr& type, const std::string& name) {
    if (v.isTensor() && v.toTensor().defined()) return in_graph(g, input_for(v, type, name));
    if (const auto constant = tryInsertConstant(g, v, type)) return *constant;
    if (!v.isList() && !v.isTuple()) return nullptr;
    std::vector<Value*> members;
    for (std::size_t i = 0; i < v.toListRef().size(); ++i) {
      members.push_back(put_together(g, v.toListRef()[i], type->contained[v.isList() ? 0 : i], name + "." + std::to_string(i)));
      if (!members.back()) return nullptr;
    }
    return g.insertNode(v.isList() ? g.createList(type->contained[0], members) : g.createTuple(members, type))->output();
  }

  // One input for one value, however many names it has.
  Value* input_for(const IValue& v, const TypePtr& type, const std::string& name) {
    const void* key = v.isTensor() ? static_cast<const void*>(v.toTensor().unsafeGetTensorImpl()) : v.toCustomClassHolder().get();
    if (const auto found = inputs_.find(key); found != inputs_.end()) return found->second;
    Value* in = graph_->addInput(name);
    if (v.isTensor())
      in->inferTypeFrom(v.toTensor());
    else
      in->setType(type);
    values_.push_back(v);
    return inputs_[key] = in;
  }
  // The input as the value inside of a fork's graph: handed in as one more operand.
  Value* in_graph(Graph& g, Value* outermost) {
    if (&g == graph_.get()) return outermost;
    Node* fork = fork_of(g);
    Value* handed = in_graph(*fork->owningGraph(), outermost);
    for (std::size_t i = 0; i < fork->inputs().size(); ++i)
      if (fork->input(i) == handed) return g.inputs()[i];
    fork->addInput(handed);
    return g.addInput()->setType(handed->type());
  }
  Node* fork_of(const Graph& g) const {
    Node* found = nullptr;
    for (const auto& outer : with_subgraphs(graph_))
      outer->block()->visit([&](Node* n) {
        if (subgraph_of(n).get() == &g) found = n;
      });
    return found;
  }

  void drop_self() {
    Value* self = graph_->inputs()[0];
    for (const Use& u : self->uses())
      CRESSET_THROW(Error, "lower_graph: a module may only be used to read attributes; here it is ",
                    u.user->kind() == prim::Return ? "returned." : "an operand.\nin " + u.user->str(), "\n",
                    u.user->sourceRange().highlight());
    graph_->block()->visit([](const Node* n) {
      CRESSET_CHECK(n->kind() != prim::GetAttr || n->output()->type()->kind != TypeKind::Object,
                    "lower_graph: a module may only be used to read attributes.\nin ", n->str(), "\n", n->sourceRange().highlight());
    });
    graph_->eraseInput(0);
  }

  ModuleReads reads_;
  std::shared_ptr<Graph> graph_;
  std::unordered_map<const void*, Value*> inputs_, containers_;
  std::vector<IValue> values_;
};

}  // namespace

std::pair<std::shared_ptr<Graph>, std::vector<IValue>> lower_graph(const Module& module, const std::string& method,
                                                                   const AfterInlining& after_inlining) {
  const std::shared_ptr<Graph> original = module.get_method(method).graph();
  CRESSET_CHECK(original, "lower_graph: the method '", method, "' has no graph.");
  return lower_graph(module, *original, after_inlining);
}

std::pair<std::shared_ptr<Graph>, std::vector<IValue>> lower_graph(const Module& module, const Graph& original,
                                                                   const AfterInlining& after_inlining) {
  CRESSET_CHECK(!original.inputs().empty() && original.inputs()[0]->type()->kind == TypeKind::Object,
                "lower_graph: a graph whose first input is the module was required.");
  const std::shared_ptr<Graph> graph = original.copy();
  std::vector<IValue> values = Lowering(module, graph).run(after_inlining);
  return {graph, std::move(values)};
}

}  // namespace cresset::jit
