// First and second derivatives of views, joins, indexing, reductions, softmax and sorting against finite differences, in
// both modes.
#include <cresset/autograd/autograd.h>
#include <cresset/autograd/forward_ad.h>

#include <functional>

#include "ops/naive.h"

using namespace cresset;
using namespace cresset::testing;

namespace {

using Inputs = std::vector<Tensor>;
using Function = std::function<Tensor(const Inputs&)>;

// Weights that make a scalar of any result, so that all of its elements count differently.
Tensor weighted(const Tensor& out) { return sum(out.reshape({-1}) * noise({out.numel()}, kDouble, 77)); }

// The tangent of a result against a step along the tangents of all inputs.
void check_forward(const std::string& name, const Function& f, const Inputs& inputs) {
  const auto moved = [&](double by) {
    Inputs at = inputs;
    for (std::size_t k = 0; k < at.size(); ++k)
      if (at[k].is_floating_point()) at[k] = at[k] + noise(at[k].sizes(), kDouble, 40 + k) * by;
    return values(f(at));
  };
  std::vector<double> want = moved(1e-6);
  const std::vector<double> back = moved(-1e-6);
  for (std::size_t i = 0; i < want.size(); ++i) want[i] = (want[i] - back[i]) / 2e-6;
  const autograd::forward_ad::DualLevel level;
  Inputs dual = inputs;
  for (std::size_t k = 0; k < dual.size(); ++k)
    if (dual[k].is_floating_point()) dual[k] = autograd::forward_ad::make_dual(dual[k], noise(dual[k].sizes(), kDouble, 40 + k));
  const Tensor out = f(dual), tangent = autograd::forward_ad::tangent(out);
  expect_close(values(tangent.defined() ? tangent : zeros_like(out)), want, 2e-5, name + ", forward");
}

void check_gradients(const std::string& name, const Function& f, const Inputs& inputs, bool second = true, bool forward = true) {
  SCOPED_TRACE(name);
  if (forward) check_forward(name, f, inputs);
  Inputs leaves;
  for (const Tensor& t : inputs) leaves.push_back(t.clone().requires_grad_(t.is_floating_point()));
  const auto wanted = [&] {
    std::vector<Tensor> w;
    for (const Tensor& t : leaves)
      if (t.requires_grad()) w.push_back(t);
    return w;
  }();
  const auto scalar = [&](const Inputs& at) { return weighted(f(at)); };
  const std::vector<Tensor> grads =
      autograd::grad({scalar(leaves)}, wanted, {}, /*retain_graph=*/std::nullopt, /*create_graph=*/second, /*allow_unused=*/true);
  std::size_t which = 0;
  for (std::size_t k = 0; k < leaves.size(); ++k) {
    if (!leaves[k].requires_grad()) continue;
    const Tensor g = grads[which].defined() ? grads[which].detach() : zeros_like(inputs[k]);
    ++which;
    const std::vector<double> got = values(g);
    std::vector<double> want(got.size());
    for (std::size_t i = 0; i < got.size(); ++i) {
      Inputs moved = inputs;
      const auto at = [&](double by) {
        moved[k] = inputs[k].clone(MemoryFormat::Contiguous);
        static_cast<double*>(moved[k].mutable_data_ptr())[i] += by;
        return scalar(moved).item<double>();
      };
      want[i] = (at(1e-6) - at(-1e-6)) / 2e-6;
    }
    expect_close(got, want, 2e-5, name + " input " + std::to_string(k));
  }
  if (!second) return;
  // The gradient as a function of the inputs, differentiated once more.
  const Function gradient = [&](const Inputs& at) {
    Inputs live;
    std::vector<Tensor> of;
    for (std::size_t k = 0; k < at.size(); ++k) {
      live.push_back(at[k].requires_grad() || !inputs[k].is_floating_point() ? at[k] : at[k].clone().requires_grad_());
      if (inputs[k].is_floating_point()) of.push_back(live.back());
    }
    const std::vector<Tensor> g = autograd::grad({scalar(live)}, of, {}, std::nullopt, /*create_graph=*/true, /*allow_unused=*/true);
    Tensor total = zeros({}, kDouble);
    for (const Tensor& part : g)
      if (part.defined()) total = total + weighted(part * part);
    return total;
  };
  const Tensor total = gradient(leaves);
  if (total.requires_grad()) check_gradients(name + ", second order", gradient, inputs, false, false);
}

Tensor t(IntArrayRef sizes, uint64_t seed = 1) { return noise(sizes, kDouble, seed); }
Tensor positive(IntArrayRef sizes, uint64_t seed = 1) { return abs(noise(sizes, kDouble, seed)) + 0.5; }
// Distinct values, far enough apart that a step of finite differences does not change their order.
Tensor distinct(IntArrayRef sizes, uint64_t seed = 1) {
  const Tensor x = noise(sizes, kDouble, seed);
  return x + arange(x.numel(), kDouble).view(sizes) * 1e-3;
}
Tensor longs(const std::vector<double>& v) { return cresset::testing::vector(v, kLong); }
std::optional<Tensor> some(const Tensor& x) { return x; }

TEST(GradientTest, Views) {
  const Inputs one = {t({2, 3, 4})};
  check_gradients("view", [](auto& x) { return x[0].view({6, 4}); }, one);
  check_gradients("reshape", [](auto& x) { return x[0].transpose(0, 1).reshape({6, 4}); }, one);
  check_gradients("expand", [](auto& x) { return x[0].unsqueeze(1).expand({2, 5, 3, 4}); }, one);
  check_gradients("permute", [](auto& x) { return x[0].permute({2, 0, -2}); }, one);
  check_gradients("transpose", [](auto& x) { return x[0].transpose(0, -1); }, one);
  check_gradients("t", [](auto& x) { return x[0].select(0, 1).t(); }, one);
  check_gradients("squeeze", [](auto& x) { return cresset::slice(x[0], 1, 1, 2).squeeze().unsqueeze(-1).squeeze(-1); }, one);
  check_gradients("select", [](auto& x) { return x[0].select(1, -1); }, one);
  check_gradients("slice", [](auto& x) { return cresset::slice(x[0], 2, 1, std::nullopt, 2); }, one);
  check_gradients("diagonal", [](auto& x) { return x[0].diagonal(1, 1, 2); }, one);
  check_gradients("diag_embed", [](auto& x) { return diag_embed(x[0], -1); }, one);
  check_gradients("as_strided", [](auto& x) { return x[0].as_strided({3, 4}, {2, 3}, 1); }, one);
  check_gradients("as_strided overlapping", [](auto& x) { return x[0].as_strided({5, 4}, {1, 2}, 2); }, one);
  check_gradients(
      "as_strided of expanded", [](auto& x) { return x[0].select(0, 0).select(0, 0).expand({2, 4}).as_strided({3}, {1}, 0); }, one, false);
  check_gradients("unfold", [](auto& x) { return x[0].unfold(2, 3, 1); }, one);
  check_gradients("split", [](auto& x) { return x[0].split(3, 2)[0]; }, one);
  check_gradients(
      "split_with_sizes",
      [](auto& x) {
        const auto p = x[0].split_with_sizes({1, 3}, 2);
        return p[0] * sum(p[1]);
      },
      one);
  check_gradients(
      "unbind",
      [](auto& x) {
        const auto p = x[0].unbind(1);
        return p[0] * p[2];
      },
      one);
  check_gradients("chunk", [](auto& x) { return x[0].chunk(2, 1)[1]; }, one);
  check_gradients("movedim", [](auto& x) { return x[0].movedim(0, 2); }, one);
  check_gradients("flatten", [](auto& x) { return x[0].flatten(1).unflatten(1, {3, 4}); }, one);
  check_gradients("select_scatter", [](auto& x) { return select_scatter(x[0], x[1], 1, 2); }, {t({2, 3, 4}), t({2, 4}, 2)});
  check_gradients("slice_scatter", [](auto& x) { return slice_scatter(x[0], x[1], 2, 0, 4, 2); }, {t({2, 3, 4}), t({2, 3, 2}, 2)});
  check_gradients("diagonal_scatter", [](auto& x) { return diagonal_scatter(x[0], x[1], 0, 1, 2); }, {t({2, 3, 4}), t({2, 3}, 2)});
  check_gradients("complex views", [](auto& x) { return view_as_real(view_as_complex(x[0]) * view_as_complex(x[0])); }, {t({3, 2})});
  check_gradients(
      "in place on views",
      [](auto& x) {
        Tensor y = x[0].clone();
        y.transpose_(0, 1);
        y.select(0, 1).mul_(y.select(0, 0).clone());
        return y * y;
      },
      one);
}

TEST(GradientTest, Joins) {
  const Inputs two = {t({2, 3}), t({2, 3}, 2)};
  check_gradients("cat", [](auto& x) { return cat({x[0], x[1], x[0]}, 1); }, two);
  check_gradients("stack", [](auto& x) { return stack({x[0], x[1]}, -1); }, two);
  check_gradients("repeat", [](auto& x) { return x[0].repeat({2, 1, 3}); }, two);
  check_gradients("repeat_interleave", [](auto& x) { return repeat_interleave(x[0], longs({2, 0, 1}), 1); }, two);
  check_gradients("roll", [](auto& x) { return roll(x[0], {1, -2}, {0, 1}); }, two);
  check_gradients("flip", [](auto& x) { return flip(x[0], {1}); }, two);
  check_gradients("rot90", [](auto& x) { return rot90(x[0], 3, {0, 1}); }, two);
  check_gradients("constant_pad_nd", [](auto& x) { return constant_pad_nd(x[0], {1, -1, 2, 0}, 3); }, two);
  check_gradients("reflect", [](auto& x) { return pad(x[0], {2, 1}, "reflect"); }, two);
  check_gradients("replicate", [](auto& x) { return pad(x[0].unsqueeze(0), {2, 1, 1, 0}, "replicate"); }, two);
  check_gradients(
      "reflect 3d",
      [](auto& x) { return pad(x[0].reshape({1, 2, 1, 3}).expand({1, 2, 2, 3}).unsqueeze(0), {1, 2, 1, 0, 1, 1}, "reflect"); }, two);
  check_gradients("replicate 3d", [](auto& x) { return pad(x[0].reshape({1, 1, 1, 2, 3}), {1, 2, 1, 0, 2, 1}, "replicate"); }, two);
  check_gradients("circular", [](auto& x) { return pad(x[0].unsqueeze(0), {2, 1}, "circular"); }, two);
}

TEST(GradientTest, Indexing) {
  const Tensor i = longs({3, 0, 3, -1}), at = tensor({0, 3, 1, 2, 2, 0}, {2, 3}, kLong), mask = gt(noise({4, 3}, kDouble, 5), 0);
  const Inputs one = {distinct({4, 3})}, two = {distinct({4, 3}), distinct({2, 3}, 2)};
  check_gradients("index", [&](auto& x) { return index(x[0], {some(i)}); }, one);
  check_gradients("index two", [&](auto& x) { return index(x[0], {some(i), some(longs({0, 2, 0, 1}))}); }, one);
  check_gradients("index_put", [&](auto& x) { return index_put(x[0], {some(longs({1, 3}))}, x[1]); }, two);
  check_gradients("index_put one value", [&](auto& x) { return index_put(x[0], {some(longs({1, 3}))}, x[1].select(0, 0)); }, two);
  check_gradients("index_put add", [&](auto& x) { return index_put(x[0], {some(longs({1, 1}))}, x[1], true); }, two);
  check_gradients(
      "index_put_",
      [&](auto& x) {
        Tensor y = x[0] * 2;
        index_put_(y, {some(longs({1, 3}))}, x[1]);
        return y * y;
      },
      two);
  check_gradients("index_select", [&](auto& x) { return index_select(x[0], 0, longs({3, 0, 3})); }, one);
  check_gradients("gather", [&](auto& x) { return gather(x[0], 0, at); }, one);
  check_gradients("scatter", [&](auto& x) { return scatter(x[0], 0, at, x[1]); }, two);
  check_gradients("scatter larger source", [&](auto& x) { return scatter(x[1].repeat({2, 1}), 0, at, x[0]); }, two);
  check_gradients("scatter value", [&](auto& x) { return scatter(x[0], 0, at, 2.0); }, one);
  check_gradients("scatter_add", [&](auto& x) { return scatter_add(x[0], 0, at, x[1]); }, two);
  for (const char* how : {"sum", "mean", "amax", "amin", "prod"})
    for (bool include : {true, false}) {
      const Tensor twice = tensor({0, 3, 1, 0, 2, 0}, {2, 3}, kLong);
      check_gradients(
          std::string("scatter_reduce ") + how, [&](auto& x) { return scatter_reduce(x[0], 0, twice, x[1], how, include); }, two, true,
          false);
      if (std::string(how) != "sum")
        check_gradients(
            std::string("index_reduce ") + how, [&](auto& x) { return index_reduce(x[0], 0, longs({2, 2}), x[1], how, include); }, two,
            true, false);
    }
  check_gradients("index_add", [&](auto& x) { return index_add(x[0], 0, longs({2, 2}), x[1], 3); }, two);
  check_gradients("index_copy", [&](auto& x) { return index_copy(x[0], 0, longs({2, 0}), x[1]); }, two);
  check_gradients("index_fill", [&](auto& x) { return index_fill(x[0], 0, longs({2, 2}), x[1].select(0, 0).select(0, 1)); }, two);
  check_gradients("take", [&](auto& x) { return take(x[0], longs({5, 5, -1})); }, one);
  check_gradients("put", [&](auto& x) { return put(x[0], longs({5, 0, 1, 2, 3, 4}), x[1].reshape({6})); }, two);
  check_gradients("put add", [&](auto& x) { return put(x[0], longs({5, 5, 1, 2, 3, 4}), x[1].reshape({6}), true); }, two);
  check_gradients("masked_select", [&](auto& x) { return masked_select(x[0], mask); }, one);
  check_gradients("masked_scatter", [&](auto& x) { return masked_scatter(x[0], mask, x[1].repeat({2, 1})); }, two);
  check_gradients("take_along_dim", [&](auto& x) { return take_along_dim(x[0], longs({3, 0}).view({2, 1}), 0); }, one);
  check_gradients("embedding", [&](auto& x) { return embedding(x[0], at); }, one);
}

TEST(GradientTest, Reductions) {
  const Inputs one = {distinct({3, 4})}, plus = {positive({3, 4})};
  const OptionalIntArrayRef all;
  const DimVector first = {0}, both = {0, 1};
  const IntArrayRef d0(first), d01(both);
  check_gradients("sum", [&](auto& x) { return sum(x[0], d0); }, one);
  check_gradients("sum all", [&](auto& x) { return sum(x[0]); }, one);
  check_gradients("mean", [&](auto& x) { return mean(x[0], d0, true); }, one);
  check_gradients("mean all", [&](auto& x) { return mean(x[0]); }, one);
  check_gradients("nansum", [&](auto& x) { return nansum(x[0], d0); }, one);
  check_gradients("prod", [&](auto& x) { return prod(x[0], 1); }, one);
  check_gradients("prod with zeros", [&](auto& x) { return prod(x[0] * gt(x[0], 0), 1, true); }, one);
  check_gradients("prod all", [&](auto& x) { return prod(x[0]); }, plus);
  check_gradients("amax", [&](auto& x) { return amax(x[0], d0); }, one);
  check_gradients("amin", [&](auto& x) { return amin(x[0], d01, true); }, one);
  check_gradients(
      "aminmax",
      [&](auto& x) {
        const auto [a, b] = aminmax(x[0], 1);
        return a * b;
      },
      one);
  check_gradients("max", [&](auto& x) { return max(x[0]); }, one);
  check_gradients("max dim", [&](auto& x) { return std::get<0>(max(x[0], 1, false)); }, one);
  check_gradients("min dim", [&](auto& x) { return std::get<0>(min(x[0], 0, true)); }, one);
  check_gradients("var", [&](auto& x) { return var(x[0], d0, Scalar(0), true); }, one);
  check_gradients("var all", [&](auto& x) { return var(x[0], true); }, one);
  check_gradients("std", [&](auto& x) { return cresset::std(x[0], d0, Scalar(1), false); }, one);
  check_gradients(
      "var_mean",
      [&](auto& x) {
        const auto [v, m] = var_mean(x[0], d0, Scalar(1), false);
        return v * m;
      },
      one);
  check_gradients(
      "std_mean",
      [&](auto& x) {
        const auto [s, m] = std_mean(x[0], d0, Scalar(1), false);
        return s * m;
      },
      one);
  for (double p : {0.0, 1.0, 1.5, 2.0, 3.5, double(INFINITY), -double(INFINITY), -1.5})
    check_gradients("norm " + std::to_string(p), [&](auto& x) { return linalg_vector_norm(x[0], p, d0); }, plus);
  check_gradients("norm all", [&](auto& x) { return norm(x[0], 3); }, one);
  check_gradients("logsumexp", [&](auto& x) { return logsumexp(x[0], d0); }, one);
  check_gradients("cumsum", [&](auto& x) { return cumsum(x[0], 1); }, one);
  check_gradients("cumprod", [&](auto& x) { return cumprod(x[0], 1); }, one);
  check_gradients("cumprod with zeros", [&](auto& x) { return cumprod(x[0] * gt(x[0], 0), 1); }, one);
  check_gradients("logcumsumexp", [&](auto& x) { return logcumsumexp(x[0], 1); }, one);
  check_gradients("cummax", [&](auto& x) { return std::get<0>(cummax(x[0], 1)); }, one);
  check_gradients("median", [&](auto& x) { return std::get<0>(median(x[0], 1, false)) * median(x[0]); }, one);
  check_gradients("softmax", [&](auto& x) { return softmax(x[0], 1); }, one);
  check_gradients("log_softmax", [&](auto& x) { return log_softmax(x[0], 0); }, one);
  check_gradients("sort", [&](auto& x) { return std::get<0>(sort(x[0], 1, true)); }, one);
  check_gradients("topk", [&](auto& x) { return std::get<0>(topk(x[0], 2, 1)); }, one);
  check_gradients("kthvalue", [&](auto& x) { return std::get<0>(kthvalue(x[0], 2, 0, true)); }, one);
  check_gradients("quantile", [&](auto& x) { return quantile(x[0], 0.3, 1); }, one);
}

}  // namespace
