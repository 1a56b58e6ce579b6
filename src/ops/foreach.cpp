// Operators on lists of tensors: checks, and the elements that are not plainly another operator.
#include "ops/foreach.h"

#include <algorithm>
#include <cmath>

#include <cresset/base/error.h>
#include <cresset/ops/functions_arith.h>
#include <cresset/ops/functions_copy.h>
#include <cresset/ops/functions_matmul.h>
#include <cresset/ops/functions_reduce.h>
#include <cresset/ops/functions_view.h>

#include "ops/ops_decl_foreach.h"
#include "ops/shared/shape_util.h"
#include "ops/shared/structured.h"

namespace cresset::ops {

void check_foreach_counts(std::size_t first, std::size_t other) {
  CRESSET_CHECK(first == other, "Tensor lists must have the same number of tensors, got ", first, " and ", other);
}

void check_foreach_scalars(std::size_t first, std::size_t scalars) {
  check_foreach_some(first);
  CRESSET_CHECK(first == scalars, "Tensor list must have same number of elements as scalar list.");
}

void check_foreach_some(std::size_t count) { CRESSET_CHECK(count > 0, "Tensor list must have at least one tensor."); }

void check_foreach_scalar(const Tensor& scalar) {
  CRESSET_CHECK(scalar.dim() == 0 && scalar.numel() == 1, "scalar tensor expected to be 0 dim but it has ", scalar.dim(),
                " dimensions and ", scalar.numel(), " elements.");
}

bool foreach_uniform(TensorList first) {
  const ScalarType type = first[0].scalar_type();
  return isFloatingType(type) && std::all_of(first.begin(), first.end(), [&](const Tensor& t) {
           return t.scalar_type() == type && t.is_cpu() && (t.is_contiguous() || t.is_non_overlapping_and_dense());
         });
}
bool foreach_fits(TensorList first, TensorList other) {
  for (std::size_t i = 0; i < first.size(); ++i)
    if (other[i].scalar_type() != first[i].scalar_type() || !other[i].is_cpu() || other[i].sizes() != first[i].sizes()) return false;
  return true;
}
bool foreach_fits(TensorList, ArrayRef<Scalar> scalars) {
  return std::none_of(scalars.begin(), scalars.end(), [](const Scalar& s) { return s.isComplex() || s.isBoolean(); });
}

void foreach_check(const char* op, TensorList results, TensorList self) {
  for (std::size_t i = 0; i < self.size(); ++i) {
    CRESSET_CHECK(!self[i].is_complex() || results[i].is_complex(), "In-place abs is not supported for complex tensors.");
    check_self(op, {DimVector(results[i].sizes()), results[i].scalar_type(), results[i].device(), std::nullopt}, self[i]);
  }
}

void check_foreach_copy(TensorList self, TensorList src) {
  for (std::size_t i = 0; i < self.size(); ++i) {
    CRESSET_CHECK_NOT_IMPLEMENTED(self[i].is_meta() || !src[i].is_meta(), "Cannot copy out of meta tensor; no data!");
    const DimVector sizes = infer_broadcast(self[i].sizes(), src[i].sizes());
    CRESSET_CHECK(self[i].sizes() == IntArrayRef(sizes), "output with shape ", self[i].sizes(), " doesn't match the broadcast shape ",
                  sizes);
  }
}

std::vector<Scalar> foreach_scalars(const Tensor& scalars, std::size_t count) {
  CRESSET_CHECK(scalars.device().is_cpu(), "Expected scalars to be on CPU, got ", scalars.device(), " instead.");
  CRESSET_CHECK(scalars.is_contiguous(), "Expected scalars to be contiguous.");
  CRESSET_CHECK(scalars.dim() == 1, "Expected packed scalar Tensor to be of dimension 1. Got ", scalars.dim(), " instead.");
  CRESSET_CHECK(scalars.size(0) == static_cast<int64_t>(count), "Expected length of scalars to match input of length ", count, " but got ",
                scalars.size(0), " instead.");
  std::vector<Scalar> out;
  out.reserve(count);
  for (int64_t i = 0; i < scalars.size(0); ++i) out.push_back(cresset::_local_scalar_dense(cresset::select(scalars, 0, i)));
  return out;
}

Tensor foreach_max(const Tensor& self) {
  CRESSET_CHECK(self.numel() > 0, "_foreach_max cannot compute the maximum of an empty tensor; max over zero elements is undefined.");
  return cresset::max(self);
}

Tensor foreach_norm(const Tensor& self, const Scalar& ord, std::optional<ScalarType> dtype) {
  CRESSET_CHECK(self.numel() > 0 || !std::isinf(ord.toDouble()),
                "_foreach_norm cannot compute the infinity norm on an empty tensor because the operation does not have an identity");
  return cresset::linalg_vector_norm(self, ord, std::nullopt, false, dtype);
}

Tensor foreach_powsum(const Tensor& self, const Scalar& ord, std::optional<ScalarType> dtype) {
  CRESSET_CHECK_NOT_IMPLEMENTED(isFloatingType(self.scalar_type()) || isComplexType(self.scalar_type()),
                                "\"powsum_cpu\" not implemented for '", toString(self.scalar_type()), "'");
  const Tensor base = dtype ? cresset::to(self, *dtype) : self;
  return cresset::sum(cresset::pow(cresset::abs(base), ord));
}

std::vector<Tensor> foreach_mm(TensorList self, TensorList mat2) {
  CRESSET_CHECK(!self.empty() || !mat2.empty(), "_foreach_mm requires non-empty tensor lists");
  CRESSET_CHECK(self.size() == mat2.size(), "_foreach_mm: self and mat2 must have the same number of tensors");
  std::vector<Tensor> result;
  result.reserve(self.size());
  for (std::size_t i = 0; i < self.size(); ++i) result.push_back(cresset::mm(self[i], mat2[i]));
  return result;
}

}  // namespace cresset::ops
