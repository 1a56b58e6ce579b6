// Negative log likelihood.
#include "backend.h"
#include "call.h"
#include "rows.h"

namespace cresset_opencl {
namespace {

constexpr int64_t kNone = 0, kMean = 1;  // reductions, by number

struct Batch {
  int64_t n, classes, inner;
};
Batch batch_of(const Tensor& x) {
  if (x.dim() == 1) return {1, x.size(0), 1};
  const int64_t inner = product(x.sizes(), 2, x.dim());
  return {x.size(0) * inner, x.size(1), inner};
}

std::string types(const Tensor& x, const Tensor& target, const Tensor& weight) {
  return std::string("-DX=") + type_letter(x.scalar_type()) + " -DT=" + type_letter(target.scalar_type()) +
         " -DW=" + type_letter(weight.defined() ? weight.scalar_type() : x.scalar_type()) +
         " -DGROUPED=1 -DA=" + compute_name(compute_of(x.scalar_type()));
}

// nll_loss_forward(self, target, weight, reduction, ignore_index)
bool nll_loss(Call& c) {
  const Tensor x = dense(c.tensor(0)), target = dense(c.tensor(1)), weight = c.has(2) ? dense(c.tensor(2)) : Tensor();
  if (x.numel() == 0) return false;
  const Batch b = batch_of(x);
  const bool each = c.integer(3) == kNone && x.dim() > 1;
  const std::size_t items = group_size(device_of(x), 64);
  Launch launch(x, "loss", "nll_loss", types(x, target, weight));
  launch.tensor(x).tensor(target).tensor(weight).tensor(c.result(0)).tensor(c.result(1)).faults();
  launch.value<cl_ulong>(b.n)
      .value<cl_ulong>(b.classes)
      .value<cl_ulong>(b.inner)
      .value<cl_long>(c.integer(4))
      .value<cl_int>(weight.defined());
  launch.value<cl_int>(each).value<cl_int>(c.integer(3) == kMean).local(items * 8);
  launch.run_groups({1, 1, 1}, {items, 1, 1});
  return true;
}

// nll_loss_backward(grad_output, self, target, weight, reduction, ignore_index, total_weight)
bool nll_loss_backward(Call& c) {
  const Tensor grad = dense(c.tensor(0)), x = c.tensor(1), target = dense(c.tensor(2)), weight = c.has(3) ? dense(c.tensor(3)) : Tensor();
  const Tensor total = dense(c.tensor(6));
  if (x.numel() == 0 || grad.scalar_type() != x.scalar_type() || total.scalar_type() != x.scalar_type()) return false;
  const Batch b = batch_of(x);
  Launch launch(x, "loss", "nll_loss_backward", types(x, target, weight));
  launch.tensor(grad).tensor(target).tensor(weight).tensor(total).tensor(c.result());
  launch.value<cl_ulong>(b.n)
      .value<cl_ulong>(b.classes)
      .value<cl_ulong>(b.inner)
      .value<cl_long>(c.integer(5))
      .value<cl_int>(weight.defined());
  launch.value<cl_int>(c.integer(4) == kNone && x.dim() > 1).value<cl_int>(c.integer(4) == kMean);
  launch.run(static_cast<std::size_t>(b.n * b.classes));
  return true;
}

}  // namespace
}  // namespace cresset_opencl

CRESSET_BACKEND_IMPL(cresset_opencl::OpenCl, aten, m) {
  using namespace cresset_opencl;
  give(m, "nll_loss_forward", "nll_loss_forward.output", &nll_loss);
  give(m, "nll_loss_backward", "nll_loss_backward.grad_input", &nll_loss_backward);
}
