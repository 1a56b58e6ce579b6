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

std::string types(const Tensor& x, const Tensor& out, ScalarType y, const Shape& s, bool logarithm) {
  return std::string("-DX=") + type_letter(x.scalar_type()) + " -DR=" + type_letter(out.scalar_type()) + " -DY=" + type_letter(y) +
         " -DLAST=" + (s.inner == 1 ? "1" : "0") + " -DLOGARITHM=" + (logarithm ? "1" : "0");
}

Rows rows_of(const Shape& s) { return {s.rows, s.n, s.inner == 1 ? s.n : 1, s.inner}; }

template <bool Logarithm>
bool softmax(Call& c) {
  const Tensor x = dense(c.tensor(0));
  const Shape s = shape_of(x, c.integer(1));
  if (x.numel() == 0) return true;
  RowLaunch row(x, "softmax", "softmax", types(x, c.result(), cresset::kFloat, s, Logarithm), compute_of(x.scalar_type()), rows_of(s));
  row.arguments().tensor(x).tensor(c.result()).value<cl_ulong>(s.rows).value<cl_ulong>(s.n).value<cl_ulong>(s.inner);
  row.run();
  return true;
}

template <bool Logarithm>
bool softmax_backward(Call& c) {
  const Tensor grad = dense(c.tensor(0)), y = dense(c.tensor(1));
  const Shape s = shape_of(y, c.integer(2));
  if (y.numel() == 0) return true;
  RowLaunch row(y, "softmax", "softmax_backward", types(grad, c.result(), y.scalar_type(), s, Logarithm), compute_of(y.scalar_type()),
                rows_of(s));
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
