// Functions of complex numbers and replacements of special values.
#include <cresset/ops/functions_copy.h>
#include <cresset/ops/functions_creation.h>
#include <cresset/ops/functions_math.h>
#include <cresset/ops/functions_reduce.h>
#include <cresset/ops/functions_view.h>

#include <limits>
#include <vector>

#include "ops/ops_decl_math.h"

namespace cresset::ops {

// For devices that have the parts only.
Tensor deg2rad_by_parts(const Tensor& self) { return self * Scalar(0.017453292519943295); }
Tensor rad2deg_by_parts(const Tensor& self) { return self * Scalar(57.29577951308232); }
namespace {

// The largest number of a floating type (of the parts of a complex one).
double largest(ScalarType type) {
  switch (toRealValueType(type)) {
    case kHalf: return static_cast<double>(std::numeric_limits<Half>::max());
    case kBFloat16: return static_cast<double>(std::numeric_limits<BFloat16>::max());
    case kFloat: return static_cast<double>(std::numeric_limits<float>::max());
    default: return std::numeric_limits<double>::max();
  }
}

}  // namespace

Tensor nan_to_num_impl(const Tensor& self, std::optional<double> nan, std::optional<double> posinf, std::optional<double> neginf) {
  const double limit = largest(self.scalar_type());
  return cresset::nan_to_num_values(self, nan.value_or(0), posinf.value_or(limit), neginf.value_or(-limit));
}

Tensor angle_impl(const Tensor& self) { return self.is_complex() ? cresset::angle_complex(self).contiguous() : cresset::angle_real(self); }

Tensor conj_impl(const Tensor& self) { return self.is_complex() ? cresset::conj_physical(self) : self; }

Tensor complex_impl(const Tensor& real, const Tensor& imag) {
  const auto fits = [](const Tensor& t) {
    return t.is_floating_point() && t.scalar_type() != kBFloat16 && !is_stored_type(t.scalar_type());
  };
  CRESSET_CHECK(fits(real) && fits(imag), "Expected both inputs to be Half, Float or Double tensors but got ", real.scalar_type(), " and ",
                imag.scalar_type());
  CRESSET_CHECK(real.scalar_type() == imag.scalar_type(), "Expected object of scalar type ", real.scalar_type(), " but got scalar type ",
                imag.scalar_type(), " for second argument");
  const ScalarType type = toComplexType(real.scalar_type());
  const std::vector<Tensor> parts = cresset::broadcast_tensors({real, imag});
  const IntArrayRef sizes = parts[0].sizes();
  const Tensor* const inputs[] = {&real, &imag};
  const std::optional<DimVector> strides = pointwise_strides({.inputs = inputs, .num_inputs = 2}, sizes);
  const TensorOptions options = real.options().dtype(type);
  const Tensor result = strides ? cresset::empty_strided(sizes, *strides, options) : cresset::empty(sizes, options);
  cresset::real(result).copy_(parts[0]);
  cresset::imag(result).copy_(parts[1]);
  return result;
}

}  // namespace cresset::ops
