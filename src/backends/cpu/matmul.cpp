// Kernels of the matrix products: strides are settled here, the arithmetic is gemm's.
#include <algorithm>

#include <cresset/base/interrupt.h>
#include <cresset/base/parallel.h>
#include <cresset/core/dispatch_types.h>
#include <cresset/ops/functions_creation.h>
#include <cresset/ops/functions_matmul.h>

#include "backends/cpu/gemm.h"
#include "cpu/cpu_decl_matmul.h"

namespace cresset::cpu {
namespace {

// A matrix (the last two dimensions) that BLAS can read, copied when its strides do not allow that.
Tensor readable(const Tensor& t) {
  const int64_t d = t.dim();
  return blas_readable(t.size(d - 2), t.size(d - 1), t.stride(d - 2), t.stride(d - 1)) ? t : t.contiguous();
}
MatrixRef matrix(const Tensor& t, int64_t batch = 0) {
  const int64_t d = t.dim();
  const char* data = static_cast<const char*>(t.const_data_ptr());
  if (d == 3) data += batch * t.stride(0) * t.element_size();
  return {data, t.stride(d - 2), t.stride(d - 1)};
}

// out = self (broadcast), unless beta is 0 and self must not be read.
void start_from(const Tensor& self, const Scalar& beta, const Tensor& out) {
  if (!beta.equal(0)) Tensor(out).copy_(self.expand(out.sizes()));
}

// How many terms a product adds up: with alpha 0 none, not even those that are no number, as in BLAS.
int64_t terms(const Tensor& a, const Scalar& alpha) { return alpha.equal(0) ? 0 : a.size(1); }

void batched(const char* op, const Tensor& batch1, const Tensor& batch2, const Scalar& beta, const Scalar& alpha, const Tensor& out) {
  if (out.numel() == 0) return;
  const Tensor a = readable(batch1), b = readable(batch2);
  const int64_t m = a.size(1), k = a.size(2), n = b.size(2);
  const int64_t grain = std::max<int64_t>(1, 32768 / std::max<int64_t>(1, m * n * k));
  auto* data = static_cast<char*>(out.mutable_data_ptr());
  // Many small products share the threads; few big ones leave them to BLAS.
  const bool many = a.size(0) >= get_num_threads() && m * n * k < (int64_t{1} << 22);
  parallel_for(0, a.size(0), many ? grain : a.size(0), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      check_interrupt();
      gemm(op, out.scalar_type(), m, n, k, alpha, matrix(a, i), matrix(b, i), beta, data + i * out.stride(0) * out.element_size(), n);
    }
  });
}

}  // namespace

void mm(const Tensor& self, const Tensor& mat2, const Tensor& out) {
  const Tensor a = readable(self), b = readable(mat2);
  gemm("addmm_impl_cpu_", out.scalar_type(), a.size(0), b.size(1), a.size(1), 1, matrix(a), matrix(b), 0, out.mutable_data_ptr(),
       b.size(1));
}

void addmm(const Tensor& self, const Tensor& mat1, const Tensor& mat2, const Scalar& beta, const Scalar& alpha, const Tensor& out) {
  start_from(self, beta, out);
  const Tensor a = readable(mat1), b = readable(mat2);
  gemm("addmm_impl_cpu_", out.scalar_type(), a.size(0), b.size(1), terms(a, alpha), alpha, matrix(a), matrix(b), beta,
       out.mutable_data_ptr(), b.size(1));
}

void mv(const Tensor& self, const Tensor& vec, const Tensor& out) {
  const Tensor a = readable(self), column = readable(vec.unsqueeze(1));
  gemm("addmv_impl_cpu", out.scalar_type(), a.size(0), 1, a.size(1), 1, matrix(a), matrix(column), 0, out.mutable_data_ptr(), 1);
}

void addmv(const Tensor& self, const Tensor& mat, const Tensor& vec, const Scalar& beta, const Scalar& alpha, const Tensor& out) {
  start_from(self, beta, out);
  const Tensor a = readable(mat), column = readable(vec.unsqueeze(1));
  gemm("addmv_impl_cpu", out.scalar_type(), a.size(0), 1, terms(a, alpha), alpha, matrix(a), matrix(column), beta, out.mutable_data_ptr(),
       1);
}

// The products of many terms are summed in parts of one length, so that the result does not depend on the number of threads.
void dot(const Tensor& self, const Tensor& tensor, const Tensor& out) {
  constexpr int64_t kPart = 32768;
  const Tensor row = readable(self.unsqueeze(0)), column = readable(tensor.unsqueeze(1));
  const int64_t n = self.numel(), bytes = out.element_size();
  const MatrixRef a = matrix(row), b = matrix(column);
  const auto part = [&](int64_t begin, int64_t end, void* to) {
    const MatrixRef x{static_cast<const char*>(a.data) + begin * a.column * bytes, a.row, a.column};
    const MatrixRef y{static_cast<const char*>(b.data) + begin * b.row * bytes, b.row, b.column};
    gemm("dot", out.scalar_type(), 1, 1, end - begin, 1, x, y, 0, to, 1);
  };
  if (n < 2 * kPart || !isFloatingType(out.scalar_type()) || bytes < 4) return part(0, n, out.mutable_data_ptr());
  const Tensor sums = cresset::empty({n / kPart}, out.options());
  auto* to = static_cast<char*>(sums.mutable_data_ptr());
  parallel_for(0, sums.numel(), 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) part(i * kPart, i + 1 == sums.numel() ? n : (i + 1) * kPart, to + i * bytes);
  });
  Tensor(out).copy_(sums.sum());
}

void bmm(const Tensor& self, const Tensor& mat2, const Tensor& out) { batched("bmm", self, mat2, 0, 1, out); }

void baddbmm(const Tensor& self, const Tensor& batch1, const Tensor& batch2, const Scalar& beta, const Scalar& alpha, const Tensor& out) {
  start_from(self, beta, out);
  batched("baddbmm", batch1, batch2, beta, alpha, out);
}

}  // namespace cresset::cpu
