// What follows a layer whose weights are constants goes into them:
//
//   batch_norm(conv(x, w, b))         -> conv(x, w', b')       batch_norm(linear(x, w, b)) -> linear(x, w', b')
//   conv(x, w, b) + c, - c, * c, / c  -> conv(x, w', b')
//
// Needs to know: the weights and what they are combined with are constants that nobody writes, and nothing but questions of sizes looks at
// the layer's own result. c is a number or has one element for each channel, and does not promote. The batch norm does not train and has
// running statistics. A linear layer has its features behind, where batch norm has channels: the two are the same dimension in matrices;
// of other ranks, and where the rank is not known, the batch norm goes only when it does the same to all channels.
// A convolution whose input has no known rank has batches, unless the option assume_batched says otherwise.
#include <algorithm>
#include <array>

#include <cresset/core/grad_mode.h>

#include "ir/passes/rewrite.h"

namespace cresset::jit {
namespace {
using rewrite::Aliases, rewrite::Emitter;

// y * scale + shift, one number a channel or one for all.
struct Affine {
  Tensor scale, shift;
};

class Folding {
 public:
  explicit Folding(PassContext& context) : graph_(context.graph), options_(context.options), aliases_(context.graph) {}

  bool batch_norms(bool behind_convolutions) {
    return each({"aten::batch_norm"}, [&](Node* n) { return batch_norm(n, behind_convolutions); });
  }
  bool sums() {
    return each({"aten::add", "aten::sub"}, [&](Node* n) { return arithmetic(n); });
  }
  bool products() {
    return each({"aten::mul", "aten::div"}, [&](Node* n) { return arithmetic(n); });
  }

 private:
  bool each(const std::vector<std::string>& kinds, const std::function<bool(Node*)>& fold) {
    const NoGradGuard no_grad;
    bool changed = false;
    for (Node* n : rewrite::nodes_of(*graph_, kinds)) changed = fold(n) || changed;
    return changed;
  }

  // ---- layers

  static bool is_convolution(const Node* n) {
    constexpr std::array kKinds = {"aten::conv1d", "aten::conv2d", "aten::conv3d", "aten::convolution", "aten::_convolution"};
    const std::string& kind = n->kind().toQualString();
    if (std::find(kKinds.begin(), kKinds.end(), kind) == kKinds.end()) return false;
    constexpr std::size_t kTransposed = 6;
    return !kind.ends_with("convolution") || rewrite::flag_of(n->input(kTransposed)) == false;
  }
  static bool asks_for_sizes(const Node* n) {
    constexpr std::array kKinds = {"aten::size", "aten::dim", "aten::numel", "aten::len", "prim::device", "prim::dtype"};
    return std::find(kKinds.begin(), kKinds.end(), n->kind().toQualString()) != kKinds.end();
  }

  std::optional<Tensor> constant(const Value* v) {
    const auto t = constant_as<Tensor>(v);
    if (!t || !t->defined() || t->is_sparse() || aliases_->hasWriters(v)) return std::nullopt;
    return t->detach();
  }

  // The layer's weight, when `result` is the result of one that `user` alone computes with.
  std::optional<Tensor> weight_of(Value* result, const Node* user) {
    Node* layer = result->node();
    if (is_marked(layer) || (!is_convolution(layer) && !rewrite::calls(layer, "aten::linear"))) return std::nullopt;
    for (const Use& u : result->uses())
      if (u.user != user && !asks_for_sizes(u.user)) return std::nullopt;
    const auto weight = constant(layer->input(1));
    if (!weight || !isFloatingType(weight->scalar_type())) return std::nullopt;
    if (!layer->input(2)->mustBeNone()) {
      const auto bias = constant(layer->input(2));
      if (!bias || bias->scalar_type() != weight->scalar_type()) return std::nullopt;
    }
    if (weight->dim() < 2) return std::nullopt;
    const auto rank = rewrite::rank_of(layer->input(0), options_);
    if (is_convolution(layer) && (rank ? *rank != static_cast<std::size_t>(weight->dim()) : !options_.assume_batched)) return std::nullopt;
    return weight;
  }

  // The layer gives what `n` gave.
  bool fold(Node* n, Value* result, const Tensor& weight, const Affine& affine) {
    if (!affine.scale.isfinite().all().item().toBool()) return false;
    Node* layer = result->node();
    std::vector<int64_t> rows(static_cast<std::size_t>(weight.dim()), 1);
    rows[0] = -1;
    const Tensor scale = affine.scale.reshape({-1});
    const auto old_bias = constant(layer->input(2));
    Tensor bias = affine.shift.reshape({-1});
    if (old_bias) bias = bias.add(old_bias->mul(scale));
    const Emitter emit(layer);
    if (!scale.eq(1).all().item().toBool()) layer->replaceInput(1, emit.constant(weight.mul(scale.reshape(rows)).to(weight.scalar_type())));
    layer->replaceInput(2, emit.constant(bias.expand(std::vector<int64_t>{weight.size(0)}).to(weight.scalar_type()).contiguous()));
    rewrite::replace_value(n->output(), result, &aliases_);
    aliases_.bury(n);
    return true;
  }

  // ---- what follows them

  bool batch_norm(Node* n, bool behind_convolutions) {
    const auto& in = n->inputs();  // input, weight, bias, mean, var, training, momentum, eps, cudnn
    if (!rewrite::calls(n, "aten::batch_norm") || rewrite::flag_of(in[5]) != false) return false;
    const auto weight = weight_of(in[0], n);
    const auto eps = constant_as<double>(in[7]);
    if (!weight || !eps || is_convolution(in[0]->node()) != behind_convolutions) return false;
    std::array<Tensor, 4> parts;  // weight, bias, mean, var
    for (std::size_t i = 0; i < parts.size(); ++i) {
      if (i < 2 && in[i + 1]->mustBeNone()) continue;
      const auto part = constant(in[i + 1]);
      if (!part || !isFloatingType(part->scalar_type()) || part->dim() != 1 || part->size(0) != weight->size(0)) return false;
      parts[i] = part->to(promote_types(part->scalar_type(), kFloat));  // halves are too short for a product of factors
    }
    const auto& [gamma, beta, mean, var] = parts;
    Affine affine;
    affine.scale = var.add(*eps).rsqrt();
    if (gamma.defined()) affine.scale = affine.scale.mul(gamma);
    affine.shift = mean.mul(affine.scale).neg();
    if (beta.defined()) affine.shift = affine.shift.add(beta);
    if (!behind_convolutions && !same_channels(in[0]->node(), affine)) return false;
    return fold(n, in[0], *weight, affine);
  }
  bool same_channels(const Node* layer, const Affine& affine) const {
    const auto equal = [](const Tensor& t) { return t.eq(t.select(0, 0)).all().item().toBool(); };
    return rewrite::rank_of(layer->input(0), options_) == std::size_t{2} || (equal(affine.scale) && equal(affine.shift));
  }

  // What a layer's result is combined with, one element a channel or one for all; null when it is something else.
  std::optional<Tensor> operand(const Value* v, const Tensor& weight) {
    const auto number = toIValue(v);
    if (number && (number->isInt() || number->isDouble()))
      return cresset::detail::empty_cpu({1}, kDouble).fill_(number->toScalar()).to(weight.scalar_type());
    const auto t = constant(v);
    if (!t || t->dim() > weight.dim() || t->numel() == 0) return std::nullopt;
    const bool fits =
        t->dim() == 0 ? !isComplexType(t->scalar_type()) : promote_types(t->scalar_type(), weight.scalar_type()) == weight.scalar_type();
    if (!fits || t->device() != weight.device()) return std::nullopt;
    for (int64_t d = 0; d < t->dim(); ++d) {
      const bool channels = t->dim() - d == weight.dim() - 1;
      if (t->size(d) != 1 && !(channels && t->size(d) == weight.size(0))) return std::nullopt;
    }
    return t->reshape({-1}).to(weight.scalar_type());
  }

  bool arithmetic(Node* n) {
    const std::string& kind = n->kind().toQualString();
    const bool sum = kind == "aten::add" || kind == "aten::sub";
    if (!rewrite::calls(n, kind + ".Tensor") && !rewrite::calls(n, kind + ".Scalar")) return false;
    if (sum && !rewrite::is_number(n->input(2), 1)) return false;
    for (const std::size_t i : {0, 1}) {
      if (i == 1 && (kind == "aten::sub" || kind == "aten::div")) break;
      Value* result = n->input(i);
      const auto weight = rewrite::is_tensor(result) && is_convolution(result->node()) ? weight_of(result, n) : std::nullopt;
      const auto other = weight ? operand(n->input(1 - i), *weight) : std::nullopt;
      if (!other) continue;
      Affine affine{weight->new_ones({1}), weight->new_zeros({1})};
      if (sum)
        affine.shift = kind == "aten::add" ? *other : other->neg();
      else
        affine.scale = kind == "aten::mul" ? *other : other->reciprocal();
      return fold(n, result, *weight, affine);
    }
    return false;
  }

  std::shared_ptr<Graph> graph_;
  const LoweringOptions& options_;
  Aliases aliases_;
};

Pass folding(const char* name, const char* summary, bool (*run)(Folding&)) {
  return {.name = name, .phase = "frozen", .summary = summary, .needs = {}, .keeps = {"marks", "names"}, .run_in = [run](PassContext& c) {
            Folding folding(c);
            return run(folding);
          }};
}

const RegisterPass conv_bn(folding("fold_frozen_conv_bn", "batch norm into the constant weights of the convolution in front of it",
                                   [](Folding& f) { return f.batch_norms(true); }));
const RegisterPass linear_bn(folding("fold_frozen_linear_bn", "batch norm into the constant weights of the linear layer in front of it",
                                     [](Folding& f) { return f.batch_norms(false); }));
const RegisterPass conv_add(folding("fold_frozen_conv_add_or_sub", "constants that are added into the bias of a convolution",
                                    [](Folding& f) { return f.sums(); }));
const RegisterPass conv_mul(folding("fold_frozen_conv_mul_or_div", "constant factors into the constant weights of a convolution",
                                    [](Folding& f) { return f.products(); }));

}  // namespace
}  // namespace cresset::jit
