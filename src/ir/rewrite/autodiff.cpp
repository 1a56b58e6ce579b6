// Gradients of graphs.
#include <cresset/ir/autodiff.h>

#include <cresset/ir/alias_analysis.h>

namespace cresset::jit {
namespace {

bool may_require_grad(const Value* v) { return v->type()->kind == TypeKind::Tensor && v->requires_grad(); }

std::vector<std::size_t> that_may_require_grad(ArrayRef<Value*> values) {
  std::vector<std::size_t> out;
  for (std::size_t i = 0; i < values.size(); ++i)
    if (may_require_grad(values[i])) out.push_back(i);
  return out;
}

void check_inputs_stay(const std::shared_ptr<Graph>& graph) {
  const AliasDb aliases(graph);
  for (const Value* input : graph->inputs())
    CRESSET_CHECK(!aliases.hasWriters(input), "differentiate: a graph that does not write its inputs was required; this one may write %",
                  input->debugName(), ".");
}

Value* list(Graph& g, const TypePtr& element, ArrayRef<Value*> members) { return g.insertNode(g.createList(element, members))->output(); }

std::shared_ptr<Graph> vector_jacobian_products(const Gradient& gradient) {
  const Graph& f = *gradient.f;
  auto df = std::make_shared<Graph>();
  std::vector<Value*> given, inputs, sources, results;
  for (const std::size_t i : gradient.df_input_vjps) {
    static_cast<void>(i);
    given.push_back(df->addInput());
  }
  for (const Value* input : f.inputs()) inputs.push_back(df->addInput()->setType(input->type()));
  for (const std::size_t i : gradient.df_output_vjps) {
    Value* detached = df->insert(aten::detach, std::vector<Value*>{inputs[i]});
    inputs[i] = df->insert(aten::requires_grad_, {detached, NamedValue(IValue(true))});
    sources.push_back(inputs[i]);
  }
  const std::vector<Value*> outputs = df->insertGraph(f, inputs);
  for (const std::size_t i : gradient.df_input_vjps) results.push_back(outputs[i]);
  const TypePtr tensor = TensorType::get(), optional = OptionalType::ofTensor();
  Value* gradients = df->insert(aten::grad, {list(*df, tensor, results), list(*df, tensor, sources), list(*df, optional, given),
                                             NamedValue(IValue()), NamedValue(IValue(false)), NamedValue(IValue(true))});
  Node* unpacked = df->insertNode(df->createListUnpack(gradients, sources.size()));
  std::vector<Value*> members;
  for (Value* v : unpacked->outputs()) {
    Value* nothing = df->insertNode(df->createAutogradZero())->output();
    Node* defined = df->insertNode(df->create(prim::AutogradAdd, {v, nothing}));
    members.push_back(defined->output()->setType(tensor));
  }
  df->registerOutput(df->insertNode(df->createTuple(members))->output());
  return df;
}

}  // namespace

Gradient differentiate(const std::shared_ptr<Graph>& graph) {
  check_inputs_stay(graph);
  Gradient gradient;
  gradient.f = graph->copy();
  gradient.f_real_outputs = graph->outputs().size();
  gradient.df_input_vjps = that_may_require_grad(graph->outputs());
  gradient.df_output_vjps = that_may_require_grad(graph->inputs());
  CRESSET_CHECK(!gradient.df_input_vjps.empty() && !gradient.df_output_vjps.empty(),
                "differentiate: a graph with an input and an output that may require a gradient was required.");
  for (std::size_t i = 0; i < graph->inputs().size(); ++i) gradient.df_input_captured_inputs.push_back(i);
  gradient.df = vector_jacobian_products(gradient);
  return gradient;
}

void LowerGradOf(Graph& graph) {
  std::vector<Node*> nodes;
  graph.block()->visit([&](Node* n) {
    if (n->kind() == prim::GradOf) nodes.push_back(n);
  });
  for (Node* n : nodes) {
    const WithInsertPoint guard(n);
    Node* any = graph.insertNode(graph.create(prim::AutogradAnyNonZero, n->inputs()));
    any->output()->setType(BoolType::get());
    Node* choice = graph.insertNode(graph.create(prim::If, {any->output()}, n->outputs().size()))->copyMetadata(n);
    choice->addBlock()->cloneFrom(n->blocks()[0], [](Value* v) { return v; });
    Block* nothing = choice->addBlock();
    for (std::size_t i = 0; i < n->outputs().size(); ++i) {
      nothing->registerOutput(nothing->appendNode(graph.createAutogradZero())->output());
      choice->output(i)->copyMetadata(n->output(i));
      n->output(i)->replaceAllUsesWith(choice->output(i));
    }
    n->destroy();
  }
}

}  // namespace cresset::jit
