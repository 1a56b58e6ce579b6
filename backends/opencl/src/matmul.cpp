// Matrix products of tensors.
#include "backend.h"
#include "call.h"
#include "gemm.h"

namespace cresset_opencl {
namespace {

bool equal_types(std::initializer_list<const Tensor*> tensors) {
  const ScalarType type = (*tensors.begin())->scalar_type();
  for (const Tensor* t : tensors)
    if (t->scalar_type() != type) return false;
  return type != cresset::kBool;
}

Matrix result_matrix(const Tensor& out) {
  const int64_t d = out.dim();
  return {out, 0, d > 2 ? out.size(d - 2) * out.size(d - 1) : 0, out.size(d - 1), 1};
}

// c0 of addmm and baddbmm under the result's sizes.
Matrix addend(const Tensor& self, const Tensor& out) {
  const Tensor wide = self.expand(out.sizes());
  const int64_t d = wide.dim();
  return {wide, 0, d > 2 ? wide.stride(0) : 0, wide.stride(d - 2), wide.stride(d - 1)};
}

void product_of(const Tensor& a, const Tensor& b, const Tensor& out, const Tensor& self = Tensor(), double beta = 0, double alpha = 1) {
  const int64_t d = a.dim();
  const Matrix c0 = self.defined() && beta != 0 ? addend(self, out) : Matrix();
  gemm({d > 2 ? a.size(0) : 1, a.size(d - 2), b.size(d - 1), a.size(d - 1), matrix_of(a, true), matrix_of(b, false), c0, result_matrix(out),
        alpha, c0.tensor.defined() ? beta : 0});
}

bool mm(Call& c) {
  if (!equal_types({&c.tensor(0), &c.tensor(1)})) return false;
  product_of(c.tensor(0), c.tensor(1), c.result());
  return true;
}

bool mv(Call& c) {
  if (!equal_types({&c.tensor(0), &c.tensor(1)})) return false;
  product_of(c.tensor(0), c.tensor(1).unsqueeze(1), c.result().unsqueeze(1));
  return true;
}

bool dot(Call& c) {
  if (!equal_types({&c.tensor(0), &c.tensor(1)})) return false;
  product_of(c.tensor(0).unsqueeze(0), c.tensor(1).unsqueeze(1), c.result().view({1, 1}));
  return true;
}

// self, two matrices, beta, alpha
bool addmm(Call& c) {
  const Scalar beta = c.scalar(3), alpha = c.scalar(4);
  if (!equal_types({&c.tensor(0), &c.tensor(1), &c.tensor(2)}) || beta.isComplex() || alpha.isComplex()) return false;
  product_of(c.tensor(1), c.tensor(2), c.result(), c.tensor(0), beta.toDouble(), alpha.toDouble());
  return true;
}

bool addmv(Call& c) {
  const Scalar beta = c.scalar(3), alpha = c.scalar(4);
  if (!equal_types({&c.tensor(0), &c.tensor(1), &c.tensor(2)}) || beta.isComplex() || alpha.isComplex()) return false;
  product_of(c.tensor(1), c.tensor(2).unsqueeze(1), c.result().unsqueeze(1), c.tensor(0).expand(c.result().sizes()).unsqueeze(1),
             beta.toDouble(), alpha.toDouble());
  return true;
}

}  // namespace
}  // namespace cresset_opencl

CRESSET_BACKEND_IMPL(cresset_opencl::OpenCl, aten, m) {
  using namespace cresset_opencl;
  give(m, "mm", "mm.out", &mm);
  give(m, "bmm", "bmm.out", &mm);
  give(m, "mv", "mv.out", &mv);
  give(m, "dot", "dot.out", &dot);
  give(m, "addmm", "addmm.out", &addmm);
  give(m, "baddbmm", "baddbmm.out", &addmm);
  give(m, "addmv", "addmv.out", &addmv);
}
