// Passes under PyTorch's names.
#include <cresset/ir/pass_functions.h>

#include <cresset/ir/lowering.h>
#include <cresset/ir/operator.h>
#include <cresset/ops/functions_creation.h>

#include "ir/frontend/emitter.h"
#include "ir/rewrite/pass_tools.h"

namespace cresset::jit {
namespace {

bool run(const char* pass, const std::shared_ptr<Graph>& graph) { return find_pass(pass)->run(graph); }
std::shared_ptr<Graph> graph_of(const Block* block) { return block->owningGraph()->shared_from_this(); }

}  // namespace

bool EliminateCommonSubexpression(const std::shared_ptr<Graph>& graph) { return eliminate_common_subexpressions(graph); }

void EliminateDeadCode(const std::shared_ptr<Graph>& graph, DCESideEffectPolicy policy) {
  eliminate_dead_code(graph, {.delete_effects = policy == DCESideEffectPolicy::ALLOW_DELETING_NODES_WITH_SIDE_EFFECTS});
}
void EliminateDeadCode(Block* block, bool, DCESideEffectPolicy policy) { EliminateDeadCode(graph_of(block), policy); }
void EliminateDeadCode(Block* block, std::function<void(const std::unordered_set<const Value*>&)> live, DCESideEffectPolicy policy) {
  eliminate_dead_code(graph_of(block), {.delete_effects = policy == DCESideEffectPolicy::ALLOW_DELETING_NODES_WITH_SIDE_EFFECTS,
                                        .live_values = std::move(live)});
}

bool ConstantPropagation(std::shared_ptr<Graph>& graph, bool) { return propagate_constants(graph); }

std::optional<Stack> runNodeIfInputsAreConstant(const Node* n, bool, AliasDb* aliases) {
  if (!n->blocks().empty() || n->hasSideEffects() || n->isNondeterministic() || !n->maybeOperator()) return std::nullopt;
  if (aliases ? aliases->isMutable(n) || aliases->hasWriters(n) : n->schema().is_mutable()) return std::nullopt;
  Stack stack;
  for (const Value* v : n->inputs()) {
    const auto constant = toIValue(v);
    if (!constant) return std::nullopt;
    stack.push_back(*constant);
  }
  try {
    const NoGradGuard no_grad;
    n->getOperator().call(stack);
  } catch (const std::exception&) {
    return std::nullopt;  // it raises when its turn comes
  }
  return stack;
}

bool ConstantPropagationImmutableTypes(std::shared_ptr<Graph>& graph) {
  const auto plain = [](const Value* v) { return !AliasDb::isMutableType(v); };
  bool changed = false;
  for (Node* n : nodes_where(*graph, [](const Node* m) { return m->kind() != prim::Constant && !m->outputs().empty(); })) {
    if (!std::all_of(n->inputs().begin(), n->inputs().end(), plain) || !std::all_of(n->outputs().begin(), n->outputs().end(), plain))
      continue;
    const auto results = runNodeIfInputsAreConstant(n);
    if (!results || results->size() != n->outputs().size()) continue;
    const WithInsertPoint guard(n);
    for (std::size_t i = 0; i < results->size(); ++i) {
      const auto constant = tryInsertConstant(*graph, (*results)[i], n->output(i)->type());
      if (!constant) continue;
      hand_on(n->output(i), *constant);
      changed = true;
    }
  }
  if (changed) eliminate_dead_code(graph);
  return changed;
}

bool PeepholeOptimize(const std::shared_ptr<Graph>& graph, bool disable_shape_peepholes) {
  LoweringOptions options;
  options.trust_types = !disable_shape_peepholes;
  return peephole(graph, options);
}
bool PeepholeOptimize(Block* block, bool disable_shape_peepholes) { return PeepholeOptimize(graph_of(block), disable_shape_peepholes); }
bool FuseAddMM(const std::shared_ptr<Graph>& graph) {
  LoweringOptions options;
  options.fuse_addmm = true;
  return peephole(graph, options);
}
void FuseLinear(std::shared_ptr<Graph>& graph) { run("fuse_linear", graph); }

void EliminateRedundantGuards(std::shared_ptr<Graph> graph) { run("eliminate_redundant_guards", graph); }
void EliminateExceptions(std::shared_ptr<Graph>& graph) { run("eliminate_exceptions_safe", graph); }

bool RemoveListMutation(const std::shared_ptr<Graph>& graph) { return remove_list_mutation(graph); }
bool RemoveTensorMutation(const std::shared_ptr<Graph>& graph, const std::function<bool(Node*)>& filter) {
  return remove_tensor_mutation(graph, filter);
}

void runCleanupPasses(const std::shared_ptr<Graph>& graph) { tidy(graph); }

void Inline(Graph& graph) { inline_calls(graph.shared_from_this()); }
void LowerSimpleTuples(const std::shared_ptr<Graph>& graph) { lower_simple_tuples(graph); }
void LowerAllTuples(const std::shared_ptr<Graph>& graph) { run("lower_all_tuples", graph); }
bool UnrollLoops(std::shared_ptr<Graph>& graph) { return unroll_loops(graph); }
bool UnrollConstantLoops(std::shared_ptr<Graph>& graph) { return unroll_constant_loops(graph); }
void RefineTupleTypes(std::shared_ptr<Graph>& graph) {
  graph->block()->visit([](Node* n) {
    if (n->kind() != prim::TupleConstruct) return;
    std::vector<TypePtr> members;
    for (const Value* v : n->inputs()) members.push_back(v->type());
    n->output()->setType(n->output()->type()->createWithContained(std::move(members)));
  });
}
void EraseShapeInformation(const std::shared_ptr<Graph>& graph) { run("erase_types", graph); }
void PropagateInputShapes(const std::shared_ptr<Graph>& graph) { run("infer_types", graph); }
std::shared_ptr<Graph> Canonicalize(const std::shared_ptr<Graph>& graph, bool keep_unique_names) {
  return canonicalize(graph, keep_unique_names);
}
void removeDropout(std::shared_ptr<Graph>& graph) { run("remove_dropout", graph); }
void removeDropout(Module& module) {
  CRESSET_CHECK(!module.is_training(), "removeDropout: a module in evaluation mode was required. Call eval() first.");
  for (const Module& m : module.modules())
    for (Function* f : m.type()->methods())
      if (auto* method = tryToGraphFunction(*f); method && run("remove_dropout", method->graph())) method->invalidate();
}

Module freeze_module(const Module& module, std::vector<std::string> preserved, bool, bool preserve_parameters) {
  if (preserve_parameters)
    for (const auto& [name, parameter] : module.named_parameters()) preserved.push_back(name);
  return freeze_module(module, preserved, AfterInlining(), LoweringOptions());
}
void freeze_module_inplace(Module* module, std::vector<std::string> preserved, bool freeze_interfaces, bool preserve_parameters) {
  *module = freeze_module(*module, std::move(preserved), freeze_interfaces, preserve_parameters);
}
std::pair<std::shared_ptr<Graph>, std::vector<IValue>> LowerGraph(Graph& graph, const ModulePtr& self) {
  return lower_graph(Module(self), graph);
}

// ---- numbers as tensors

namespace {
bool is_number(const Value* v) { return v->type()->is_subtype_of(*basic_type(TypeKind::Number)); }
bool converts_number(Symbol kind) {
  switch (kind) {
    case prim::NumToTensor:
    case aten::Bool:
    case aten::Int:
    case aten::Float:
    case aten::IntImplicit:
    case aten::FloatImplicit:
    case aten::ScalarImplicit: return true;
    default: return false;
  }
}
}  // namespace

void EraseNumberTypesOnBlock(Block* block) {
  std::vector<Node*> nodes;
  block->visit([&](Node* n) { nodes.push_back(n); });
  for (Value* v : block->inputs())
    if (is_number(v)) v->setType(TensorType::get());
  for (Node* n : nodes) {
    for (const Block* b : n->blocks())
      for (Value* v : b->inputs())
        if (is_number(v)) v->setType(TensorType::get());
    if (n->kind() == prim::Constant && is_number(n->output())) {
      const IValue number = *toIValue(n->output());
      const WithInsertPoint guard(n);
      hand_on(n->output(), n->owningGraph()->insertConstant(scalar_tensor(number.toScalar())));
      n->destroy();
    } else if (converts_number(n->kind())) {
      hand_on(n->output(), n->input(0));
      n->destroy();
    } else {
      for (Value* v : n->outputs())
        if (is_number(v)) v->setType(TensorType::get());
    }
  }
}
void EraseNumberTypes(const std::shared_ptr<Graph>& graph) { EraseNumberTypesOnBlock(graph->block()); }

std::shared_ptr<Graph> GraphFunction::optimized_graph() const {
  std::shared_ptr<Graph> copy = graph()->copy();
  inline_calls(copy);
  eliminate_dead_code(copy);
  return copy;
}

}  // namespace cresset::jit
