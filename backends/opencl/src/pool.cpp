// Pooling in two dimensions.
#include "backend.h"
#include "call.h"

namespace cresset_opencl {
namespace {

std::string types(const Tensor& x) {
  return std::string("-DT=") + type_letter(x.scalar_type()) + " -DA=" + compute_name(compute_of(x.scalar_type()));
}

struct Pair {
  int64_t h, w;
};
Pair pair_of(const std::vector<int64_t>& v, Pair absent) {
  if (v.empty()) return absent;
  return v.size() == 1 ? Pair{v[0], v[0]} : Pair{v[0], v[1]};
}

void add_planes(Launch& launch, const Tensor& in, const Tensor& out) {
  for (const Tensor* t : {&in, &out})
    launch.value<cl_ulong>(static_cast<cl_ulong>(t->size(t->dim() - 2))).value<cl_ulong>(static_cast<cl_ulong>(t->size(t->dim() - 1)));
}

// kernel_size, stride, padding are arguments `first` and the next two; dilation is one behind, or nowhere.
void add_windows(Launch& launch, const Call& c, int first, int dilation_at) {
  const Pair kernel = pair_of(c.ints(first), {1, 1}), stride = pair_of(c.ints(first + 1), kernel), pad = pair_of(c.ints(first + 2), {0, 0});
  const Pair dilation = dilation_at < 0 ? Pair{1, 1} : pair_of(c.ints(dilation_at), {1, 1});
  for (const Pair& p : {kernel, stride, pad, dilation}) launch.value<cl_long>(p.h).value<cl_long>(p.w);
}

// max_pool2d_with_indices(self, kernel_size, stride, padding, dilation, ceil_mode)
bool max_pool(Call& c) {
  const Tensor x = dense(c.tensor(0));
  if (c.result().numel() == 0) return true;
  Launch launch(x, "pool", "max_pool", types(x));
  launch.tensor(x).tensor(c.result(0)).tensor(c.result(1)).value<cl_ulong>(c.result().numel());
  add_planes(launch, x, c.result());
  add_windows(launch, c, 1, 4);
  launch.run(static_cast<std::size_t>(c.result().numel()));
  return true;
}

// max_pool2d_with_indices_backward(grad_output, self, kernel_size, stride, padding, dilation, ceil_mode, indices)
bool max_pool_backward(Call& c) {
  const Tensor grad = dense(c.tensor(0)), indices = dense(c.tensor(7));
  if (c.result().numel() == 0 || grad.numel() == 0 || grad.scalar_type() != c.result().scalar_type()) return false;
  Launch launch(grad, "pool", "max_pool_backward", types(grad));
  const int64_t d = grad.dim(), outputs = grad.size(d - 1) * grad.size(d - 2), planes = grad.numel() / outputs;
  launch.tensor(grad).tensor(indices).tensor(c.result()).value<cl_ulong>(planes);
  launch.value<cl_ulong>(c.result().numel() / planes).value<cl_ulong>(outputs);
  launch.run(static_cast<std::size_t>(planes));
  return true;
}

// avg_pool2d(self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)
bool avg_pool(Call& c) {
  const Tensor x = dense(c.tensor(0));
  if (compute_of(x.scalar_type()) == Compute::Long || c.result().numel() == 0) return false;
  Launch launch(x, "pool", "avg_pool", types(x));
  launch.tensor(x).tensor(c.result()).value<cl_ulong>(c.result().numel());
  add_planes(launch, x, c.result());
  add_windows(launch, c, 1, -1);
  launch.value<cl_int>(c.flag(5)).value<cl_long>(c.integer_or(6, 0));
  launch.run(static_cast<std::size_t>(c.result().numel()));
  return true;
}

// avg_pool2d_backward(grad_output, self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)
bool avg_pool_backward(Call& c) {
  const Tensor grad = dense(c.tensor(0));
  if (compute_of(grad.scalar_type()) == Compute::Long || grad.numel() == 0 || c.result().numel() == 0) return false;
  Launch launch(grad, "pool", "avg_pool_backward", types(grad));
  launch.tensor(grad).tensor(c.result()).value<cl_ulong>(c.result().numel());
  add_planes(launch, c.result(), grad);
  add_windows(launch, c, 2, -1);
  launch.value<cl_int>(c.flag(6)).value<cl_long>(c.integer_or(7, 0));
  launch.run(static_cast<std::size_t>(c.result().numel()));
  return true;
}

bool adaptive(const Tensor& in, const Tensor& larger, const Tensor& smaller, const Tensor& out, const char* name) {
  if (in.numel() == 0 || out.numel() == 0) return false;
  Launch launch(in, "pool", name, types(in));
  launch.tensor(in).tensor(out).value<cl_ulong>(out.numel());
  add_planes(launch, larger, smaller);
  launch.run(static_cast<std::size_t>(out.numel()));
  return true;
}
bool adaptive_avg_pool(Call& c) {
  const Tensor x = dense(c.tensor(0));
  return adaptive(x, x, c.result(), c.result(), "adaptive_avg_pool");
}
bool adaptive_avg_pool_backward(Call& c) {
  const Tensor grad = dense(c.tensor(0));
  return adaptive(grad, c.result(), grad, c.result(), "adaptive_avg_pool_backward");
}

}  // namespace
}  // namespace cresset_opencl

CRESSET_BACKEND_IMPL(cresset_opencl::OpenCl, aten, m) {
  using namespace cresset_opencl;
  give(m, "max_pool2d_with_indices", "max_pool2d_with_indices.out", &max_pool);
  give(m, "max_pool2d_with_indices_backward", "max_pool2d_with_indices_backward.grad_input", &max_pool_backward);
  give(m, "avg_pool2d", "avg_pool2d.out", &avg_pool);
  give(m, "avg_pool2d_backward", "avg_pool2d_backward.grad_input", &avg_pool_backward);
  give(m, "_adaptive_avg_pool2d", "_adaptive_avg_pool2d.out", &adaptive_avg_pool);
  give(m, "_adaptive_avg_pool2d_backward", "_adaptive_avg_pool2d_backward.out", &adaptive_avg_pool_backward);
}
