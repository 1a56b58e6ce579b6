// Removes guards (prim::Guard: a check that a tensor has a type, whose result has it) that cannot fail: repeated ones, and those on results
// of operators whose results' types follow from operands that are guarded themselves. The result takes the guarded type. Guards move up to
// what they guard first. A graph without guards stays as it is. Nothing need run before it.
#include <unordered_set>

#include <cresset/ir/alias_analysis.h>
#include <cresset/ir/operator.h>
#include <cresset/ir/pass.h>

#include "ir/rewrite/pass_tools.h"

namespace cresset::jit {
namespace {

constexpr int kRounds = 5;

// Operators whose result type depends on the types of their tensors alone; numbers among the operands do not count.
const std::unordered_set<std::string>& element_wise() {
  static const std::unordered_set<std::string> names{"aten::add",
                                                     "aten::sub",
                                                     "aten::mul",
                                                     "aten::div",
                                                     "aten::rsub",
                                                     "aten::pow",
                                                     "aten::remainder",
                                                     "aten::fmod",
                                                     "aten::max",
                                                     "aten::min",
                                                     "aten::maximum",
                                                     "aten::minimum",
                                                     "aten::atan2",
                                                     "aten::eq",
                                                     "aten::ne",
                                                     "aten::lt",
                                                     "aten::le",
                                                     "aten::gt",
                                                     "aten::ge",
                                                     "aten::__and__",
                                                     "aten::__or__",
                                                     "aten::__xor__",
                                                     "aten::where",
                                                     "aten::abs",
                                                     "aten::neg",
                                                     "aten::exp",
                                                     "aten::expm1",
                                                     "aten::log",
                                                     "aten::log1p",
                                                     "aten::log2",
                                                     "aten::log10",
                                                     "aten::sqrt",
                                                     "aten::rsqrt",
                                                     "aten::reciprocal",
                                                     "aten::sin",
                                                     "aten::cos",
                                                     "aten::tan",
                                                     "aten::asin",
                                                     "aten::acos",
                                                     "aten::atan",
                                                     "aten::sinh",
                                                     "aten::cosh",
                                                     "aten::tanh",
                                                     "aten::sigmoid",
                                                     "aten::relu",
                                                     "aten::relu6",
                                                     "aten::gelu",
                                                     "aten::silu",
                                                     "aten::elu",
                                                     "aten::selu",
                                                     "aten::celu",
                                                     "aten::leaky_relu",
                                                     "aten::hardtanh",
                                                     "aten::hardswish",
                                                     "aten::hardsigmoid",
                                                     "aten::softplus",
                                                     "aten::floor",
                                                     "aten::ceil",
                                                     "aten::round",
                                                     "aten::trunc",
                                                     "aten::frac",
                                                     "aten::erf",
                                                     "aten::erfc",
                                                     "aten::lerp",
                                                     "aten::clamp",
                                                     "aten::clamp_min",
                                                     "aten::clamp_max",
                                                     "aten::addcmul",
                                                     "aten::addcdiv",
                                                     "aten::type_as",
                                                     "aten::mm",
                                                     "aten::bmm",
                                                     "aten::matmul",
                                                     "aten::addmm",
                                                     "aten::linear",
                                                     "aten::t",
                                                     "aten::lgamma",
                                                     "aten::sign",
                                                     "aten::threshold",
                                                     "aten::dropout",
                                                     "aten::logical_not",
                                                     "aten::bitwise_not",
                                                     "aten::masked_fill",
                                                     "aten::expand_as",
                                                     "aten::view_as",
                                                     "aten::reshape_as",
                                                     "aten::sigmoid_backward",
                                                     "aten::tanh_backward",
                                                     "aten::rand_like",
                                                     "aten::zeros_like",
                                                     "aten::ones_like"};
  return names;
}
// The same when all other operands are constants.
const std::unordered_set<std::string>& with_constants() {
  static const std::unordered_set<std::string> names{"aten::transpose",
                                                     "aten::permute",
                                                     "aten::expand",
                                                     "aten::view",
                                                     "aten::reshape",
                                                     "aten::flatten",
                                                     "aten::squeeze",
                                                     "aten::unsqueeze",
                                                     "aten::slice",
                                                     "aten::select",
                                                     "aten::narrow",
                                                     "aten::chunk",
                                                     "aten::split",
                                                     "aten::sum",
                                                     "aten::mean",
                                                     "aten::amax",
                                                     "aten::amin",
                                                     "aten::prod",
                                                     "aten::var",
                                                     "aten::std",
                                                     "aten::softmax",
                                                     "aten::log_softmax",
                                                     "aten::cumsum",
                                                     "aten::conv1d",
                                                     "aten::conv2d",
                                                     "aten::conv3d",
                                                     "aten::_convolution",
                                                     "aten::max_pool1d",
                                                     "aten::max_pool2d",
                                                     "aten::max_pool3d",
                                                     "aten::avg_pool1d",
                                                     "aten::avg_pool2d",
                                                     "aten::avg_pool3d",
                                                     "aten::batch_norm",
                                                     "aten::layer_norm",
                                                     "aten::group_norm",
                                                     "aten::to",
                                                     "aten::pad",
                                                     "aten::constant_pad_nd",
                                                     "aten::argmax",
                                                     "aten::argmin",
                                                     "aten::embedding",
                                                     "aten::adaptive_avg_pool1d",
                                                     "aten::adaptive_avg_pool2d",
                                                     "aten::adaptive_avg_pool3d",
                                                     "aten::conv_transpose1d",
                                                     "aten::conv_transpose2d",
                                                     "aten::conv_transpose3d",
                                                     "aten::cat",
                                                     "aten::stack",
                                                     "aten::repeat",
                                                     "aten::tile",
                                                     "aten::roll",
                                                     "aten::flip",
                                                     "prim::ConstantChunk"};
  return names;
}

// A list of numbers that is put together from constants counts as one.
bool is_constant(const Value* v) {
  const Node* n = v->node();
  if (n->kind() == prim::Constant) return true;
  return n->kind() == prim::ListConstruct &&
         std::all_of(n->inputs().begin(), n->inputs().end(), [](const Value* e) { return e->node()->kind() == prim::Constant; });
}
// A number of known kind given as a Scalar: its value changes neither sizes nor dtype. Plain ints are dimensions and sizes.
bool is_scalar(const FunctionSchema* s, std::size_t i, const Value* v) {
  const TypeKind k = v->type()->kind;
  return s && i < s->arguments().size() && s->arguments()[i].type->kind != TypeKind::Int &&
         (k == TypeKind::Int || k == TypeKind::Float || k == TypeKind::Bool || k == TypeKind::Complex);
}

class Guards {
 public:
  explicit Guards(const std::shared_ptr<Graph>& graph) : graph_(graph), aliases_(graph) {}

  bool round() {
    bool changed = false;
    for (Node* g : guards()) changed = move_up(g) || changed;
    for (Node* g : guards()) changed = remove_repeated(g) || changed;
    std::vector<Node*> all = guards();
    for (auto g = all.rbegin(); g != all.rend(); ++g) changed = remove_determined(*g) || changed;
    return changed;
  }

 private:
  std::vector<Node*> guards() const {
    return nodes_where(*graph_, [](const Node* n) {
      if (n->kind() != prim::Guard || is_marked(n) || n->inputs().size() != 1) return false;
      // What goes back to the interpreter when it fails must know where.
      return std::none_of(n->output()->uses().begin(), n->output()->uses().end(),
                          [](const Use& u) { return u.user->kind() == prim::BailOut || u.user->kind() == prim::BailoutTemplate; });
    });
  }

  // Behind the operand's definition and the guards that stand there already, or to the front of its block.
  bool move_up(Node* g) {
    const Node* made = g->input()->node();
    Node* target = made->owningBlock() == g->owningBlock() ? const_cast<Node*>(made) : g->owningBlock()->param_node();
    while (target->next()->kind() == prim::Guard && target->next() != g) target = target->next();
    if (target->next() == g) return false;
    return aliases_.moveAfterTopologicallyValid(g, target);
  }

  void remove(Node* g, Value* instead) {
    hand_on(g->output(), instead);
    g->destroy();
  }

  bool remove_repeated(Node* g) {
    Value* v = g->input();
    if (v->node()->kind() == prim::Guard && *v->type() == *g->output()->type()) {
      remove(g, v);
      return true;
    }
    if (aliases_.hasWriters(v)) return false;
    for (const Use& u : v->uses()) {
      Node* earlier = u.user;
      if (earlier == g || earlier->kind() != prim::Guard || is_marked(earlier) || !(*earlier->output()->type() == *g->output()->type()))
        continue;
      const Node* here = in_block(g, earlier->owningBlock());
      if (!here || !earlier->isBefore(here)) continue;
      remove(g, earlier->output());
      return true;
    }
    return false;
  }

  bool is_guarded(const Value* v) const {
    return v->node()->kind() == prim::Guard || v->node()->kind() == prim::Constant || settled_.count(v);
  }

  bool remove_determined(Node* g) {
    Value* v = g->input();
    const Node* n = v->node();
    const std::string& kind = n->kind().toQualString();
    const bool numbers_vary = element_wise().count(kind) > 0;
    if (is_marked(n) || aliases_.hasWriters(v) || (!numbers_vary && !with_constants().count(kind))) return false;
    const FunctionSchema* s = n->maybeSchema();
    if ((s && s->is_mutable()) || n->inputs().empty()) return false;
    for (std::size_t i = 0; i < n->inputs().size(); ++i) {
      const Value* operand = n->input(i);
      if (operand->mustBeNone() || is_constant(operand)) continue;
      if (operand->type()->kind == TypeKind::Tensor ? is_guarded(operand) : numbers_vary && is_scalar(s, i, operand)) continue;
      const Node* list = operand->node();
      if (list->kind() == prim::ListConstruct && list->next() == n &&
          std::all_of(list->inputs().begin(), list->inputs().end(), [&](const Value* e) { return is_guarded(e); }))
        continue;
      return false;
    }
    v->setType(g->output()->type());
    settled_.insert(v);
    remove(g, v);
    return true;
  }

  std::shared_ptr<Graph> graph_;
  AliasDb aliases_;
  std::unordered_set<const Value*> settled_;  // their guards went because their operands are guarded
};

bool eliminate_redundant_guards(const std::shared_ptr<Graph>& graph) {
  bool any = false;
  graph->block()->visit([&](const Node* n) { any = any || n->kind() == prim::Guard; });
  bool changed = false;
  if (any) {
    Guards guards(graph);
    for (int i = 0; i < kRounds && guards.round(); ++i) changed = true;
  }
  return in_subgraphs(*graph, eliminate_redundant_guards) || changed;
}

const RegisterPass guard_elimination_pass({
    .name = "eliminate_redundant_guards",
    .phase = "checks",
    .summary = "removes type guards that cannot fail",
    .needs = {},
    .keeps = {"names", "marks", "aliasing"},
    .run = eliminate_redundant_guards,
});

}  // namespace
}  // namespace cresset::jit
