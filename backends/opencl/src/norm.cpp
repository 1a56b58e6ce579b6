// Batch and layer normalisation.
#include "backend.h"
#include "call.h"
#include "rows.h"

namespace cresset_opencl {
namespace {

// Optional tensors of a call share an element type each: weights one, statistics one.
std::optional<ScalarType> common_type(std::initializer_list<const Tensor*> tensors) {
  std::optional<ScalarType> type;
  for (const Tensor* t : tensors) {
    if (!t->defined()) continue;
    if (type && *type != t->scalar_type()) return std::nullopt;
    type = t->scalar_type();
  }
  return type ? type : cresset::kFloat;
}

Tensor optional_dense(const Call& c, int i) { return c.has(i) ? dense(c.tensor(i)) : Tensor(); }

std::string types(ScalarType x, ScalarType weight, ScalarType statistics, ScalarType saved, bool batch) {
  return std::string("-DX=") + type_letter(x) + " -DW=" + type_letter(weight) + " -DS=" + type_letter(statistics) +
         " -DM=" + type_letter(saved) + " -DBATCH=" + (batch ? "1" : "0");
}

// A row of a batch norm is a channel, of a layer norm one of its rows.
void add_shape(RowLaunch& row, int64_t rows, int64_t n, int64_t inner) {
  for (int64_t v : {rows, n, inner}) row.arguments().value<cl_ulong>(static_cast<cl_ulong>(v));
}

struct Channels {
  int64_t batch, channels, inner;
};
Channels channels_of(const Tensor& x) { return {x.size(0), x.size(1), product(x.sizes(), 2, x.dim())}; }

// native_batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps)
bool batch_norm(Call& c) {
  const Tensor x = dense(c.tensor(0)), weight = optional_dense(c, 1), bias = optional_dense(c, 2);
  const Tensor running_mean = c.has(3) ? c.tensor(3) : Tensor(), running_var = c.has(4) ? c.tensor(4) : Tensor();
  const auto w = common_type({&weight, &bias}), s = common_type({&running_mean, &running_var});
  const bool training = c.flag(5);
  if (!w || !s || x.numel() == 0 || (running_mean.defined() && (!running_mean.is_contiguous() || !running_var.is_contiguous())))
    return false;
  const Channels shape = channels_of(x);
  const Compute compute = compute_of(x.scalar_type());
  const int64_t n = shape.batch * shape.inner;
  const ScalarType saved = c.result(1).scalar_type();
  RowLaunch row(x, "norm", "norm", types(x.scalar_type(), *w, *s, saved, true) + (training ? "" : " -DGIVEN=1"), compute,
                {shape.channels, n, shape.inner});
  row.arguments()
      .tensor(x)
      .tensor(weight)
      .tensor(bias)
      .tensor(running_mean)
      .tensor(running_var)
      .tensor(c.result(0))
      .tensor(c.result(1))
      .tensor(c.result(2));
  add_shape(row, shape.channels, n, shape.inner);
  row.arguments()
      .value<cl_int>(weight.defined())
      .value<cl_int>(bias.defined())
      .value<cl_int>(training && running_mean.defined())
      .number(compute, c.real(6))
      .number(compute, c.real(7));
  row.run();
  return true;
}

// native_batch_norm_backward(grad_out, input, weight, running_mean, running_var, save_mean, save_invstd, train, eps, output_mask)
bool batch_norm_backward(Call& c) {
  const Tensor grad = dense(c.tensor(0)), x = dense(c.tensor(1)), weight = optional_dense(c, 2);
  const bool train = c.flag(7);
  const Tensor mean = optional_dense(c, train ? 5 : 3), rstd = optional_dense(c, 6), running_var = optional_dense(c, 4);
  if (!mean.defined() || (train ? !rstd.defined() : !running_var.defined()) || x.numel() == 0 || grad.scalar_type() != x.scalar_type())
    return false;
  const auto statistics = train ? cresset::kFloat : common_type({&mean, &running_var}).value_or(cresset::kFloat);
  const auto saved = train ? common_type({&mean, &rstd}) : std::optional<ScalarType>(cresset::kFloat);
  const ScalarType w = weight.defined() ? weight.scalar_type() : c.result(1).defined() ? c.result(1).scalar_type() : x.scalar_type();
  if (!saved) return false;
  const Channels shape = channels_of(x);
  const Compute compute = compute_of(x.scalar_type());
  const int64_t n = shape.batch * shape.inner;
  RowLaunch row(x, "norm", "norm_backward", types(x.scalar_type(), w, statistics, *saved, true), compute, {shape.channels, n, shape.inner});
  row.arguments()
      .tensor(grad)
      .tensor(x)
      .tensor(weight)
      .tensor(mean)
      .tensor(rstd)
      .tensor(running_var)
      .tensor(c.result(0))
      .tensor(c.result(1))
      .tensor(c.result(2));
  add_shape(row, shape.channels, n, shape.inner);
  row.arguments()
      .value<cl_int>(weight.defined())
      .value<cl_int>(train)
      .value<cl_int>(c.result(0).defined())
      .value<cl_int>(c.result(1).defined())
      .value<cl_int>(c.result(2).defined())
      .number(compute, c.real(8));
  row.run();
  return true;
}

// native_layer_norm(input, normalized_shape, weight, bias, eps)
bool layer_norm(Call& c) {
  const Tensor x = dense(c.tensor(0)), weight = optional_dense(c, 2), bias = optional_dense(c, 3);
  const auto w = common_type({&weight, &bias});
  const std::vector<int64_t> shape = c.ints(1);
  const int64_t n = product(shape, 0, static_cast<int64_t>(shape.size()));
  if (!w || x.numel() == 0) return false;
  const int64_t rows = x.numel() / n;
  const Compute compute = compute_of(x.scalar_type());
  RowLaunch row(x, "norm", "norm", types(x.scalar_type(), *w, cresset::kFloat, c.result(1).scalar_type(), false), compute, {rows, n, n});
  row.arguments().tensor(x).tensor(weight).tensor(bias).tensor(Tensor()).tensor(Tensor());
  row.arguments().tensor(c.result(0)).tensor(c.result(1)).tensor(c.result(2));
  add_shape(row, rows, n, n);
  row.arguments().value<cl_int>(weight.defined()).value<cl_int>(bias.defined()).value<cl_int>(0);
  row.arguments().number(compute, 0).number(compute, c.real(4));
  row.run();
  return true;
}

// native_layer_norm_backward(grad_out, input, normalized_shape, mean, rstd, weight, bias, output_mask)
bool layer_norm_backward(Call& c) {
  const Tensor grad = dense(c.tensor(0)), x = dense(c.tensor(1)), mean = dense(c.tensor(3)), rstd = dense(c.tensor(4));
  const Tensor weight = optional_dense(c, 5);
  const std::vector<int64_t> shape = c.ints(2);
  const int64_t n = product(shape, 0, static_cast<int64_t>(shape.size()));
  if (x.numel() == 0 || grad.scalar_type() != x.scalar_type() || mean.scalar_type() != rstd.scalar_type()) return false;
  const int64_t rows = x.numel() / n;
  const Compute compute = compute_of(x.scalar_type());
  const ScalarType w = weight.defined() ? weight.scalar_type() : x.scalar_type();
  const std::string letters = types(x.scalar_type(), w, cresset::kFloat, mean.scalar_type(), false);
  if (c.result(0).defined()) {
    RowLaunch row(x, "norm", "norm_backward", letters, compute, {rows, n, n});
    row.arguments().tensor(grad).tensor(x).tensor(weight).tensor(mean).tensor(rstd).tensor(Tensor());
    row.arguments().tensor(c.result(0)).tensor(Tensor()).tensor(Tensor());
    add_shape(row, rows, n, n);
    row.arguments().value<cl_int>(weight.defined()).value<cl_int>(1).value<cl_int>(1).value<cl_int>(0).value<cl_int>(0);
    row.arguments().number(compute, 0);
    row.run();
  }
  if (c.result(1).defined() || c.result(2).defined()) {
    const bool vectors = device_of(x).facts().is_cpu && n >= 16;
    Launch launch(x, "norm", "layer_norm_columns", letters + " -DA=" + compute_name(compute) + (vectors ? " -DVECTORS=1" : ""));
    launch.tensor(grad).tensor(x).tensor(mean).tensor(rstd).tensor(c.result(1)).tensor(c.result(2));
    launch.value<cl_ulong>(rows).value<cl_ulong>(n).value<cl_int>(c.result(1).defined()).value<cl_int>(c.result(2).defined());
    if (vectors)
      launch.run_apart(static_cast<std::size_t>((n + 15) / 16));
    else
      launch.run(static_cast<std::size_t>(n));
  }
  return true;
}

}  // namespace
}  // namespace cresset_opencl

CRESSET_BACKEND_IMPL(cresset_opencl::OpenCl, aten, m) {
  using namespace cresset_opencl;
  give(m, "native_batch_norm", nullptr, &batch_norm);
  give(m, "native_batch_norm_backward", nullptr, &batch_norm_backward);
  give(m, "native_layer_norm", nullptr, &layer_norm);
  give(m, "native_layer_norm_backward", nullptr, &layer_norm_backward);
}
