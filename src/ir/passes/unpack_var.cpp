// var(x, dims, unbiased, keepdim) becomes elementary operations, std the square root of var.
//
// By default the mean of squared differences from the mean, as accurate as var; of complex numbers too. The option stable_numerics=0 takes
// the documented mean(x^2) - mean(x)^2, which cancels for large means and may become negative. Halves are computed in float, where the
// dtype is known. Numbers of elements are counted as integers. Other overloads (correction=, all elements) and dims only known at run time
// stay; dims of None and [] mean all.
#include "ir/passes/rewrite.h"

namespace cresset::jit {
namespace {
using rewrite::Emitter, rewrite::Site;

struct Operands {
  Value *x, *dims, *unbiased, *keepdim;
  std::vector<int64_t> reduced;  // empty: all
};

// The overload with dims, a bool and a bool.
std::optional<Operands> operands_of(const Site& site) {
  const Node* n = site.node;
  if (!rewrite::calls(n, "aten::var.dim") && !rewrite::calls(n, "aten::std.dim")) return std::nullopt;
  Operands out{n->input(0), n->input(1), n->input(2), n->input(3), {}};
  if (out.dims->mustBeNone()) return out;
  const auto dims = rewrite::integers_of(out.dims, site.aliases);
  if (!dims) return std::nullopt;
  out.reduced = *dims;
  return out;
}

// How many elements are taken together.
Value* count(const Emitter& emit, const Operands& o) {
  if (o.reduced.empty()) return emit("aten::numel", {o.x});
  Value* product = nullptr;
  for (const int64_t d : o.reduced) {
    Value* size = emit("aten::size", {o.x, emit.integer(d)});
    product = product ? emit("aten::mul", {product, size}) : size;
  }
  return product;
}

// A sum of squares divided by what var divides by. No elements, and one without bias, give NaN as var does: 0 / 0.
Value* divided(const Emitter& emit, const Operands& o, Value* sum) {
  Value* divisor = count(emit, o);
  if (const auto unbiased = rewrite::flag_of(o.unbiased); !unbiased || *unbiased) {
    Value* taken = unbiased ? emit.integer(1) : emit("aten::Int", {o.unbiased});
    divisor = emit("prim::max", {emit("aten::sub", {divisor, taken}), emit.integer(0)});
  }
  return emit("aten::div", {sum, divisor});
}

Value* stable_form(const Emitter& emit, const Operands& o, Value* x) {
  Value *keep = emit.flag(true), *none = emit.none();
  const auto centred = [&](Value* v) { return emit("aten::sub", {v, emit("aten::mean", {v, o.dims, keep, none})}); };
  // A mean far from zero is rounded; the mean of the differences is what it was off.
  Value* difference = emit("aten::abs", {centred(centred(x))});
  Value* sum = emit("aten::sum", {emit("aten::mul", {difference, difference}), o.dims, o.keepdim, none});
  return divided(emit, o, sum);
}

// mean(x^2) - mean(x)^2, times n / (n - 1) without bias.
Value* plain_form(const Emitter& emit, const Operands& o, Value* x) {
  Value* none = emit.none();
  Value* mean_of_squares = emit("aten::mean", {emit("aten::mul", {x, x}), o.dims, o.keepdim, none});
  Value* mean = emit("aten::mean", {x, o.dims, o.keepdim, none});
  Value* variance = emit("aten::sub", {mean_of_squares, emit("aten::mul", {mean, mean})});
  if (const auto unbiased = rewrite::flag_of(o.unbiased); unbiased && !*unbiased) return variance;
  return divided(emit, o, emit("aten::mul", {variance, count(emit, o)}));
}

Value* variance(const Emitter& emit, const Operands& o, const Site& site) {
  const auto dtype = rewrite::dtype_of(o.x, site.context.options);
  const bool half = dtype == ScalarType::Half || dtype == ScalarType::BFloat16;
  Value* x =
      half ? emit("aten::to", {o.x, emit.integer(static_cast<int64_t>(ScalarType::Float)), emit.flag(false), emit.flag(false), emit.none()})
           : o.x;
  if (site.context.options.stable_numerics) return stable_form(emit, o, x);
  site.context.note(NoteLevel::info, site.node, "var by mean(x^2) - mean(x)^2: it cancels for means far from zero");
  return plain_form(emit, o, x);
}

Value* rounded(const Emitter& emit, const Operands& o, const Site& site, Value* result) {
  const auto dtype = rewrite::dtype_of(o.x, site.context.options);
  if (dtype != ScalarType::Half && dtype != ScalarType::BFloat16) return result;
  return emit("aten::to", {result, emit.integer(static_cast<int64_t>(*dtype)), emit.flag(false), emit.flag(false), emit.none()});
}

Value* unpack_var(const Site& site) {
  const auto o = operands_of(site);
  if (!o) return nullptr;
  // The plain form squares complex numbers without their conjugates; sums of half floats need a cast, for which the dtype must be certain.
  const auto said = rewrite::rumoured_dtype(o->x);
  if (said && isComplexType(*said) && !site.context.options.stable_numerics) return nullptr;
  if ((said == ScalarType::Half || said == ScalarType::BFloat16) && said != rewrite::dtype_of(o->x, site.context.options)) return nullptr;
  const Emitter emit(site.node);
  return rounded(emit, *o, site, variance(emit, *o, site));
}

Value* unpack_std(const Site& site) {
  if (!operands_of(site)) return nullptr;
  const Emitter emit(site.node);
  const auto& in = site.node->inputs();
  return emit("aten::sqrt", {emit("aten::var", {in[0], in[1], in[2], in[3]})});
}

const RegisterPass unpack_var_var_pass({
    .name = "unpack_var",
    .phase = "lower",
    .summary = "var to mean and sum",
    .needs = {"unpack_std"},
    .keeps = {"marks", "names"},
    .run_in = [](PassContext& c) { return rewrite::rewrite_nodes(c, {"aten::var"}, unpack_var); },
});
const RegisterPass unpack_var_standard_deviation_pass({
    .name = "unpack_std",
    .phase = "lower",
    .summary = "std to the square root of var",
    .needs = {},
    .keeps = {"marks", "names"},
    .run_in = [](PassContext& c) { return rewrite::rewrite_nodes(c, {"aten::std"}, unpack_std); },
});

}  // namespace
}  // namespace cresset::jit
