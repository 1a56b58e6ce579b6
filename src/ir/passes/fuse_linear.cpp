// Finds linear layers in their parts:
//
//   addmm(bias, x, t(w), 1, 1)                           -> linear(x, w, bias)
//   add(matmul(x, t(w)), bias) or add_, or bias first    -> linear(x, w, bias)
//   matmul(x, t(w))                                      -> linear(x, w, None)
//   call of the scripted function torch.nn.functional.linear -> the operator
//
// Legality: w is a matrix (t of a vector is the vector, and the product another one); the bias is a vector that matches, of the same dtype,
// so that nothing is broadcast up or promoted; factors are 1; the product has no other user; nothing writes x or w in between. What the
// types do not say leaves the nodes alone, unless the option documented_forms takes the parts of a linear layer for one. A transpose that
// others use stays.
#include "ir/passes/rewrite.h"

namespace cresset::jit {
namespace {
using rewrite::Aliases, rewrite::Emitter;

// w of t(w), when w is known to be a matrix.
Value* matrix_below_transpose(const Value* v, const LoweringOptions& options) {
  const Node* n = v->node();
  if (!rewrite::calls(n, "aten::t") || is_marked(n)) return nullptr;
  const auto rank = rewrite::rank_of(n->input(), options);
  return rank == std::size_t{2} || (!rank && options.documented_forms) ? n->input() : nullptr;
}

class Fusion {
 public:
  explicit Fusion(PassContext& context) : graph_(context.graph), options_(context.options), aliases_(context.graph) {}

  bool run() {
    bool changed = false;
    for (Node* n : rewrite::nodes_of(*graph_, {"aten::addmm", "aten::add", "aten::add_", "prim::CallFunction"}))
      changed = (n->kind() == prim::CallFunction ? call(n) : n->inputs().size() == 5 ? addmm(n) : sum(n)) || changed;
    // What is left of the products has no bias that fits.
    for (Node* n : rewrite::nodes_of(*graph_, {"aten::matmul"})) changed = product(n) || changed;
    return changed;
  }

 private:
  // `product`: the node that multiplies, whose place in the program the layer has.
  void replace(Node* n, const Node* product, Value* x, Value* w, Value* bias) {
    const Emitter emit(n);
    Value* fresh = emit("aten::linear", {x, w, bias ? bias : emit.none()});
    fresh->node()->setSourceRange(product->sourceRange());
    rewrite::replace_value(n->output(), fresh, nullptr);
    rewrite::destroy_with_operands(n, aliases_);
  }

  // One number for each row of w, or one operand of rank 0.
  bool bias_fits(const Value* bias, const Value* w) const {
    const auto sizes = rewrite::sizes_of(bias, options_), rows = rewrite::sizes_of(w, options_);
    if (options_.documented_forms && !(sizes && rows)) return rewrite::rank_of(bias, options_).value_or(1) <= 1;
    return sizes && rows && sizes->size() == 1 && (*sizes)[0] == (*rows)[0];
  }

  bool addmm(Node* n) {
    if (!rewrite::calls(n, "aten::addmm")) return false;
    Value* w = matrix_below_transpose(n->input(2), options_);
    const auto rank = rewrite::rank_of(n->input(0), options_);
    if (!w || (!rank && !options_.documented_forms) || rank.value_or(1) > 1 || !rewrite::is_number(n->input(3), 1) ||
        !rewrite::is_number(n->input(4), 1))
      return false;
    replace(n, n, n->input(1), w, n->input(0));
    return true;
  }

  bool sum(Node* n) {
    const bool in_place = rewrite::calls(n, "aten::add_.Tensor");
    if ((!in_place && !rewrite::calls(n, "aten::add.Tensor")) || !rewrite::is_number(n->input(2), 1)) return false;
    for (const std::size_t i : {0, 1}) {
      if (i == 1 && in_place) break;
      Node* m = n->input(i)->node();
      Value* bias = n->input(1 - i);
      if (!rewrite::calls(m, "aten::matmul") || is_marked(m) || m->owningBlock() != n->owningBlock() || m->output()->use_count() != 1)
        continue;
      Value *x = m->input(0), *w = matrix_below_transpose(m->input(1), options_);
      const auto dtype = w ? rewrite::dtype_of(w, options_) : std::nullopt;
      const auto bias_dtype = rewrite::dtype_of(bias, options_);
      const bool same_dtype = dtype && bias_dtype ? dtype == bias_dtype : options_.documented_forms;
      if (!w || !bias_fits(bias, w) || !same_dtype) continue;
      if (rewrite::written_between(m, n, {x, w}, *aliases_)) continue;
      replace(n, m, x, w, bias);
      return true;
    }
    return false;
  }

  bool product(Node* n) {
    if (!rewrite::calls(n, "aten::matmul")) return false;
    Value* w = matrix_below_transpose(n->input(1), options_);
    if (!w) return false;
    replace(n, n, n->input(0), w, nullptr);
    return true;
  }

  bool call(Node* n) {
    if (n->inputs().size() != 4 || n->outputs().size() != 1) return false;
    const std::string& name = n->input(0)->type()->name;
    if (name != "__torch__.torch.nn.functional.linear" && name != "__torch__.cresset.nn.functional.linear") return false;
    replace(n, n, n->input(1), n->input(2), n->input(3)->mustBeNone() ? nullptr : n->input(3));
    return true;
  }

  std::shared_ptr<Graph> graph_;
  const LoweringOptions& options_;
  Aliases aliases_;
};

const RegisterPass fuse_linear_pass({
    .name = "fuse_linear",
    .phase = "fuse",
    .summary = "finds linear layers in their parts",
    .needs = {},
    .keeps = {"marks", "names"},
    .run_in = [](PassContext& c) { return Fusion(c).run(); },
});

}  // namespace
}  // namespace cresset::jit
