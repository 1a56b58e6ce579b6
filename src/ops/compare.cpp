// Selections and comparisons made of other operators.
#include <limits>

#include <cresset/ops/functions_arith.h>
#include <cresset/ops/functions_compare.h>
#include <cresset/ops/functions_creation.h>
#include <cresset/ops/functions_index.h>
#include <cresset/ops/functions_math.h>
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

// ---- for devices that have the parts only

Tensor isfinite_by_parts(const Tensor& self) {
  if (self.is_complex()) return cresset::isfinite(cresset::real(self)).logical_and(cresset::isfinite(cresset::imag(self)));
  if (!self.is_floating_point()) return cresset::ones_like(self, TensorOptions(kBool));
  return cresset::eq(self, self).logical_and(cresset::ne(self.abs(), Scalar(std::numeric_limits<double>::infinity())));
}

Tensor isinf_by_parts(const Tensor& self) {
  if (self.is_complex()) return cresset::isinf(cresset::real(self)).logical_or(cresset::isinf(cresset::imag(self)));
  if (!self.is_floating_point()) return cresset::zeros_like(self, TensorOptions(kBool));
  return cresset::eq(self.abs(), Scalar(std::numeric_limits<double>::infinity()));
}

Tensor masked_fill_by_parts(const Tensor& mask, const Tensor& value, const Tensor& self) {
  return cresset::where(mask, value.to(TensorOptions(self.scalar_type()).device(self.device())), self);
}

Tensor isreal_by_parts(const Tensor& self) {
  return self.is_complex() ? cresset::eq(cresset::imag(self), Scalar(0)) : cresset::ones_like(self, TensorOptions(kBool));
}

Tensor isclose_by_parts(const Tensor& self, const Tensor& other, double rtol, double atol, bool equal_nan) {
  CRESSET_CHECK(self.scalar_type() == other.scalar_type(), self.scalar_type(), " did not match ", other.scalar_type());
  const auto as_float = [](const Tensor& t) { return isIntegralType(t.scalar_type(), true) ? t.to(get_default_dtype()) : t; };
  const Tensor a = as_float(self), b = as_float(other), error = (a - b).abs();
  const Tensor close = cresset::isfinite(error).logical_and(cresset::le(error, (b * Scalar(rtol)).abs() + Scalar(atol)));
  const Tensor found = cresset::eq(self, other).logical_or(close);
  return equal_nan ? found.logical_or(cresset::ne(a, a).logical_and(cresset::ne(b, b))) : found;
}

// A number promotes as it does beside a tensor, and is a tensor of the result's type for the kernel.
Tensor where_number_or(const Tensor& condition, const Scalar& self, const Tensor& other) {
  const ScalarType type = result_type_scalar_tensor(self, other);
  const TensorOptions options = TensorOptions(type).device(other.device());
  return cresset::where(condition, cresset::scalar_tensor(self, options), other.to(type));
}

Tensor where_or_number(const Tensor& condition, const Tensor& self, const Scalar& other) {
  const ScalarType type = result_type_tensor_scalar(self, other);
  const TensorOptions options = TensorOptions(type).device(self.device());
  return cresset::where(condition, self.to(type), cresset::scalar_tensor(other, options));
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

namespace {

Tensor filled_where(const Tensor& mask, const Tensor& value, const Tensor& self) {
  // (The kernel by elements does not know complex halves; where() copies bytes.)
  const bool copies = self.scalar_type() == kComplexHalf;
  return (copies ? cresset::where(mask, value, self) : cresset::masked_fill_elements(mask, value, self)).contiguous();
}

}  // namespace

Tensor masked_fill_tensor(const Tensor& self, const Tensor& mask, const Tensor& value) {
  check_mask(mask);
  CRESSET_CHECK(value.dim() == 0, "masked_fill_ only supports a 0-dimensional value tensor, but got tensor with ", value.dim(),
                " dimension(s).");
  const ScalarType type = self.scalar_type();
  if (value.scalar_type() != type && type != kBool && value.is_cpu() && value.has_storage()) check_number(value.item(), type);
  if (value.is_complex() && !self.is_complex() && type != kBool)  // a number that is real may be
    return masked_fill_tensor(self, mask, cresset::real(value));
  return filled_where(mask, value.to(type), self);
}

Tensor masked_fill_scalar(const Tensor& self, const Tensor& mask, const Scalar& value) {
  check_mask(mask);
  check_number(value, self.scalar_type());
  const Tensor number = cresset::scalar_tensor(value, TensorOptions(self.scalar_type()));
  return filled_where(mask, number, self);
}

}  // namespace cresset::ops
