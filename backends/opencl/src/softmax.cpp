// Softmax, its logarithm, and their gradients.
#include "backend.h"
#include "call.h"
#include "rows.h"

namespace cresset_opencl {
namespace {

struct Shape {
  int64_t rows, n, inner;
};
Shape shape_of(const Tensor& x, int64_t dim) {
  if (x.dim() == 0) return {1, 1, 1};
  const int64_t d = wrapped(dim, x.dim()), inner = product(x.sizes(), d + 1, x.dim());
  return {product(x.sizes(), 0, d) * inner, x.size(d), inner};
}

std::string types(const Tensor& x, const Tensor& out, const Shape& s) {
  return std::string(s.inner == 1 ? "-DLAST=1 " : "") + std::string("-DX=") + type_letter(x.scalar_type()) +
         " -DR=" + type_letter(out.scalar_type());
}

// Processors take sixteen elements at a time, of one row or of neighbouring rows.
bool takes_vectors(const Tensor& x, const Shape& s) { return device_of(x).facts().is_cpu && (s.inner == 1 ? s.n : s.inner) >= 16; }
std::size_t vector_items(const Shape& s) {
  return static_cast<std::size_t>(s.inner == 1 ? s.rows : s.rows / s.inner * ((s.inner + 15) / 16));
}
std::string vector_types(const Tensor& x, const Shape& s, const std::string& more) {
  return more + (s.inner > 1 ? " -DCOLUMNS=1" : "") + " -DA=" + compute_name(compute_of(x.scalar_type()));
}

template <bool Logarithm>
bool softmax(Call& c) {
  const Tensor x = dense(c.tensor(0));
  const Shape s = shape_of(x, c.integer(1));
  if (x.numel() == 0) return true;
  const std::string letters = types(x, c.result(), s) + " -DY=f32 -DLOGARITHM=" + (Logarithm ? "1" : "0");
  if (takes_vectors(x, s)) {
    Launch launch(x, "softmax_vectors", "softmax", vector_types(x, s, letters));
    launch.tensor(x).tensor(c.result()).value<cl_ulong>(s.n).value<cl_ulong>(s.inner).run_apart(vector_items(s));
    return true;
  }
  RowLaunch row(x, "softmax", "softmax", letters, compute_of(x.scalar_type()), s.rows, s.n);
  row.arguments().tensor(x).tensor(c.result()).value<cl_ulong>(s.rows).value<cl_ulong>(s.n).value<cl_ulong>(s.inner);
  row.run();
  return true;
}

template <bool Logarithm>
bool softmax_backward(Call& c) {
  const Tensor grad = dense(c.tensor(0)), y = dense(c.tensor(1));
  const Shape s = shape_of(y, c.integer(2));
  if (y.numel() == 0) return true;
  const std::string letters =
      types(grad, c.result(), s) + " -DY=" + type_letter(y.scalar_type()) + " -DLOGARITHM=" + (Logarithm ? "1" : "0");
  if (takes_vectors(y, s)) {
    Launch launch(y, "softmax_vectors", "softmax_backward", vector_types(y, s, letters));
    launch.tensor(grad).tensor(y).tensor(c.result()).value<cl_ulong>(s.n).value<cl_ulong>(s.inner).run_apart(vector_items(s));
    return true;
  }
  RowLaunch row(y, "softmax", "softmax_backward", letters, compute_of(y.scalar_type()), s.rows, s.n);
  row.arguments().tensor(grad).tensor(y).tensor(c.result()).value<cl_ulong>(s.rows).value<cl_ulong>(s.n).value<cl_ulong>(s.inner);
  row.run();
  return true;
}

}  // namespace
}  // namespace cresset_opencl

CRESSET_BACKEND_IMPL(cresset_opencl::OpenCl, aten, m) {
  using namespace cresset_opencl;
  give(m, "_softmax", "_softmax.out", &softmax<false>);
  give(m, "_log_softmax", "_log_softmax.out", &softmax<true>);
  give(m, "_softmax_backward_data", "_softmax_backward_data.out", &softmax_backward<false>);
  give(m, "_log_softmax_backward_data", "_log_softmax_backward_data.out", &softmax_backward<true>);
}
