// Selections and comparisons made of other operators.
#include <cresset/ops/functions_compare.h>
#include <cresset/ops/functions_creation.h>
#include <cresset/ops/functions_index.h>
#include <cresset/ops/functions_view.h>

#include "ops/ops_decl_compare.h"
#include "ops/shared/number_range.h"
#include "ops/shared/pointwise.h"
#include "ops/shared/promotion.h"

namespace cresset::ops {
namespace {

void check_mask(const Tensor& mask) {
  CRESSET_CHECK(mask.scalar_type() == kBool, "masked_fill_ only supports boolean masks, but got mask with dtype ",
                cpp_type_name(mask.scalar_type()));
}

}  // namespace

Tensor isclose_impl(const Tensor& self, const Tensor& other, double rtol, double atol, bool equal_nan) {
  CRESSET_CHECK(rtol >= 0, "rtol must be greater than or equal to zero, but got ", rtol);
  CRESSET_CHECK(atol >= 0, "atol must be greater than or equal to zero, but got ", atol);
  if (rtol == 0 && atol == 0 && self.scalar_type() == other.scalar_type()) {  // nothing is computed, so nothing is rounded
    const Tensor same = cresset::eq(self, other);
    return equal_nan ? same.logical_or(cresset::ne(self, self).logical_and(cresset::ne(other, other))) : same;
  }
  if (self.scalar_type() == kComplexFloat && other.scalar_type() == kComplexFloat) {  // rounded as these tensors are
    const Tensor same = cresset::eq(self, other), error = (self - other).abs();
    const Tensor close = cresset::isfinite(error).logical_and(cresset::le(error, (other * Scalar(rtol)).abs() + Scalar(atol)));
    const Tensor found = same.logical_or(close);
    return equal_nan ? found.logical_or(cresset::ne(self, self).logical_and(cresset::ne(other, other))) : found;
  }
  if (self.scalar_type() == kUInt64 && other.scalar_type() == kUInt64)  // loops see their bits as int64
    return cresset::isclose_values(self.to(kDouble), other.to(kDouble), rtol, atol, equal_nan);
  return cresset::isclose_values(self, other, rtol, atol, equal_nan);
}

bool allclose_impl(const Tensor& self, const Tensor& other, double rtol, double atol, bool equal_nan) {
  return cresset::isclose(self, other, rtol, atol, equal_nan).all().item().to<bool>();
}

void check_where(const PointwiseOp&, const PointwiseCall& call, ScalarType common) {
  if (isReducedFloatingType(common) || isFloat8Type(common)) return;  // there one number becomes infinite
  for (int i = 0; i < call.num_scalars; ++i) check_number(*call.scalars[i], common);
}

Tensor where_scalars(const Tensor& condition, const Scalar& self, const Scalar& other) {
  const ScalarType type = result_type_scalars(self, other);
  const Tensor a = cresset::scalar_tensor(self, TensorOptions(type).device(condition.device()));
  return cresset::where(condition, a, other);
}

std::vector<Tensor> where_positions(const Tensor& condition) { return cresset::nonzero_numpy(condition); }

Tensor masked_fill_tensor(const Tensor& self, const Tensor& mask, const Tensor& value) {
  check_mask(mask);
  CRESSET_CHECK(value.dim() == 0, "masked_fill_ only supports a 0-dimensional value tensor, but got tensor with ", value.dim(),
                " dimension(s).");
  if (value.is_complex() && !self.is_complex() && self.scalar_type() != kBool) {  // a number that is real may be
    if (!value.is_meta()) check_number(value.item(), self.scalar_type());
    return masked_fill_tensor(self, mask, cresset::real(value));
  }
  return cresset::masked_fill_elements(mask, value.to(self.scalar_type()), self).contiguous();
}

Tensor masked_fill_scalar(const Tensor& self, const Tensor& mask, const Scalar& value) {
  check_mask(mask);
  check_number(value, self.scalar_type());
  const Tensor number = cresset::scalar_tensor(value, TensorOptions(self.scalar_type()));
  return cresset::masked_fill_elements(mask, number, self).contiguous();
}

}  // namespace cresset::ops
