// An If that computes one linear layer in two ways becomes one computation without If:
//
//   addmm(bias, x, w, beta, alpha)         in one arm
//   add(matmul(x, w), bias, alpha2)        in the other (or add_; or the bias first)
//
// The arms must say the same: the same bias, x and w; with the bias last, alpha 1 and beta equal to alpha2; with the bias first, beta 1 and
// alpha equal to alpha2. A bias with factor 0 stays, because addmm ignores it, NaN included, and add does not.
//
// The result is the addmm when x is known to be a matrix, otherwise matmul and add, which fit x of any rank; unpack-addmm makes the same of
// the first. The option documented_forms gives the addmm whatever x is. The condition is left to dead code elimination.
#include "ir/passes/rewrite.h"

namespace cresset::jit {
namespace {

const Symbol kAddmm = Symbol::fromQualString("aten::addmm"), kMatmul = Symbol::fromQualString("aten::matmul");
const Symbol kAdd = Symbol::fromQualString("aten::add"), kAddInPlace = Symbol::fromQualString("aten::add_");

// The nodes of an arm besides constants.
std::vector<Node*> work_of(const Block* arm) {
  std::vector<Node*> out;
  for (Node* n : arm->nodes())
    if (n->kind() != prim::Constant) out.push_back(n);
  return out;
}

struct Arms {
  Node *addmm = nullptr, *matmul = nullptr, *add = nullptr;
};

bool returns(const Block* arm, const Node* n) { return arm->outputs().size() == 1 && arm->outputs()[0]->node() == n; }

std::optional<Arms> arms_of(const Node* branch) {
  if (branch->kind() != prim::If || branch->outputs().size() != 1) return std::nullopt;
  Arms out;
  for (const Block* arm : branch->blocks()) {
    const std::vector<Node*> work = work_of(arm);
    if (work.empty() || !returns(arm, work.back())) return std::nullopt;
    for (const Node* n : work)
      if (is_marked(n)) return std::nullopt;
    if (work.size() == 1 && rewrite::calls(work[0], "aten::addmm")) {
      out.addmm = work[0];
    } else if (work.size() == 2 && work[0]->kind() == kMatmul &&
               (rewrite::calls(work[1], "aten::add.Tensor") || rewrite::calls(work[1], "aten::add_.Tensor"))) {
      out.matmul = work[0];
      out.add = work[1];
    }
  }
  return out.addmm && out.matmul ? std::optional(out) : std::nullopt;
}

// Do both arms compute the same?
bool agree(const Arms& arms) {
  const auto& a = arms.addmm->inputs();
  Value *bias = a[0], *x = a[1], *w = a[2], *beta = a[3], *alpha = a[4];
  if (arms.matmul->input(0) != x || arms.matmul->input(1) != w) return false;
  const Value *product = arms.matmul->output(), *first = arms.add->input(0), *second = arms.add->input(1), *factor = arms.add->input(2);
  if (product->use_count() != 1 || rewrite::is_number(beta, 0)) return false;
  if (first == product && second == bias) return rewrite::is_number(alpha, 1) && rewrite::same_number(beta, factor);
  // The bias must not be written.
  if (first == bias && second == product && arms.add->kind() == kAdd)
    return rewrite::is_number(beta, 1) && rewrite::same_number(alpha, factor);
  return false;
}

bool fuse(Node* branch, const LoweringOptions& options) {
  const auto arms = arms_of(branch);
  if (!arms || !agree(*arms)) return false;
  const bool matrix = rewrite::rank_of(arms->addmm->input(1), options) == std::size_t{2} || options.documented_forms;
  Node* result = matrix ? arms->addmm : arms->add;
  // Constants of the arm go along.
  Block* arm = result->owningBlock();
  while (arm->nodes().begin() != arm->nodes().end()) (*arm->nodes().begin())->moveBefore(branch);
  for (Node* n : {result, arms->matmul})
    if (n == result || !matrix) n->setSourceRange(branch->sourceRange().known() ? branch->sourceRange() : n->sourceRange());
  result->output()->setType(branch->output()->type());
  if (branch->output()->hasDebugName()) {
    const std::string name = branch->output()->debugName();
    branch->output()->setDebugName("");
    result->output()->setDebugName(name);
  }
  branch->output()->replaceAllUsesWith(result->output());
  branch->destroy();
  return true;
}

bool fuse_addmm_branches(PassContext& context) {
  bool changed = false;
  for (Node* n : rewrite::nodes_of(*context.graph, {"prim::If"})) changed = fuse(n, context.options) || changed;
  return changed;
}

const RegisterPass fuse_addmm_branches_pass({
    .name = "fuse_addmm_branches",
    .phase = "fuse",
    .summary = "two forms of one linear layer to one",
    .needs = {},
    .keeps = {"marks", "names"},
    .run_in = fuse_addmm_branches,
});

}  // namespace
}  // namespace cresset::jit
