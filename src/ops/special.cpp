// Checks and compositions of special functions.
#include <cmath>
#include <numbers>
#include <vector>

#include <cresset/ops/functions_arith.h>
#include <cresset/ops/functions_creation.h>
#include <cresset/ops/functions_math.h>
#include <cresset/ops/functions_reduce.h>
#include <cresset/ops/functions_special.h>
#include <cresset/ops/functions_view.h>

#include "ops/ops_decl_special.h"
#include "ops/shared/pointwise.h"
#include "ops/shared/promotion.h"
#include "ops/shared/shape_util.h"

namespace cresset::ops {

// For devices that have the parts only.
Tensor ndtr_by_parts(const Tensor& self) {
  const Tensor x = isIntegralType(self.scalar_type(), true) ? self.to(get_default_dtype()) : self;
  return cresset::erfc(x * -std::numbers::sqrt2 / 2) * 0.5;
}

Tensor ldexp_by_parts(const Tensor& self, const Tensor& other) { return self * cresset::pow(Scalar(2.0), other); }

Tensor polygamma_impl(int64_t n, const Tensor& self) {
  CRESSET_CHECK(n >= 0, "polygamma(n, x) does not support negative n.");
  return cresset::polygamma_values(n, self);
}
Tensor& polygamma_inplace(Tensor& self, int64_t n) {
  // What is recorded must keep self as it was.
  const Tensor result = cresset::polygamma(n, GradMode::is_enabled() && self.requires_grad() ? self.clone() : self);
  CRESSET_CHECK(canCast(result.scalar_type(), self.scalar_type()), "result type ", result.scalar_type(),
                " can't be cast to the desired output type ", self.scalar_type());
  return self.copy_(result);
}

Tensor mvlgamma_impl(const Tensor& self, int64_t p) {
  CRESSET_CHECK(p >= 1, "p has to be greater than or equal to 1");
  const ScalarType type = isIntegralType(self.scalar_type(), true) ? get_default_dtype() : self.scalar_type();
  CRESSET_CHECK_NOT_IMPLEMENTED(isFloatingType(type), "\"mvlgamma\" not implemented for '", type, "'");
  CRESSET_CHECK(p <= 1 << 20, "mvlgamma: p is too large: ", p);  // one term for each
  const double dimension = static_cast<double>(p);
  const Tensor x = self.to(type).contiguous();
  Tensor sum = cresset::lgamma(x);
  for (int64_t i = 1; i < p; ++i) sum.add_(cresset::lgamma(x - static_cast<double>(i) / 2));
  return sum.add_(dimension * (dimension - 1) * std::log(std::numbers::pi) / 4);
}

// Floating types of 16 bits step through their representation, because they compute in float everywhere else.
Tensor nextafter_impl(const Tensor& self, const Tensor& other) {
  const ScalarType type = result_type_tensors(self, other);
  CRESSET_CHECK_NOT_IMPLEMENTED(isFloatingType(type) && !is_stored_type(type), "\"nextafter_cpu\" not implemented for '", type, "'");
  if (!isReducedFloatingType(type)) return cresset::nextafter_values(self, other);
  constexpr int64_t kHalfInfinity = 0x7C00, kBFloat16Infinity = 0x7F80;
  const auto bits = [&](const Tensor& t) { return t.to(type).view(kShort); };
  return cresset::nextafter_bits(bits(self), bits(other), type == kHalf ? kHalfInfinity : kBFloat16Infinity).view(type);
}

std::array<TensorSpec, 2> frexp_shape(const Tensor& self) {
  CRESSET_CHECK(self.is_floating_point(), "torch.frexp() only supports floating-point dtypes");
  const std::optional<DimVector> strides = preserved_strides(self);
  return {TensorSpec{DimVector(self.sizes()), self.scalar_type(), self.device(), strides},
          TensorSpec{DimVector(self.sizes()), kInt, self.device(), strides}};
}

Tensor polar_impl(const Tensor& abs, const Tensor& angle) {
  const auto fits = [](const Tensor& t) {
    return t.is_floating_point() && t.scalar_type() != kBFloat16 && !is_stored_type(t.scalar_type());
  };
  CRESSET_CHECK(fits(abs) && fits(angle), "Expected both inputs to be Half, Float or Double tensors but got ", abs.scalar_type(), " and ",
                angle.scalar_type());
  CRESSET_CHECK(abs.scalar_type() == angle.scalar_type(), "Expected object of scalar type ", abs.scalar_type(), " but got scalar type ",
                angle.scalar_type(), " for second argument");
  return cresset::complex(abs * cresset::cos(angle), abs * cresset::sin(angle));
}

}  // namespace cresset::ops
