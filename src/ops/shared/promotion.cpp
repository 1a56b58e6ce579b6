// Type promotion over operands.
#include "ops/shared/promotion.h"

#include <cmath>

#include <cresset/core/dispatch_types.h>

#include "ops/shared/number_range.h"

namespace cresset::ops {

void ResultType::add_number(ScalarType type) {
  if (isFloatingType(type)) type = get_default_dtype();
  if (isComplexType(type)) type = get_default_complex_dtype();
  merge(number_, type);
}

ScalarType ResultType::combine(ScalarType higher, ScalarType lower) {
  if (higher == ScalarType::Undefined) return lower;
  if (lower == ScalarType::Undefined || isComplexType(higher)) return higher;
  if (isFloatingType(higher) && !isComplexType(lower)) return higher;
  if (isFloatingType(higher)) {
    CRESSET_CHECK(!isFloat8Type(higher), "Unknown Complex ScalarType for ", higher);
    return toComplexType(higher);
  }
  if (isBarebonesUnsignedType(higher) && isComplexType(lower)) return lower;
  if (higher == kBool || isDifferentiableType(lower)) return promote_types(higher, lower);
  return higher;
}

ScalarType result_type_tensors(const Tensor& tensor, const Tensor& other) {
  ResultType type;
  type.add(tensor);
  type.add(other);
  return type.get();
}

ScalarType result_type_tensor_scalar(const Tensor& tensor, const Scalar& other) {
  ResultType type;
  type.add(tensor);
  type.add(other);
  return type.get();
}

ScalarType result_type_scalar_tensor(const Scalar& scalar, const Tensor& tensor) { return result_type_tensor_scalar(tensor, scalar); }

ScalarType result_type_scalars(const Scalar& scalar1, const Scalar& scalar2) {
  ResultType type;
  type.add(scalar1);
  type.add(scalar2);
  return type.get();
}

ScalarType result_type_of(TensorList tensors) {
  ResultType type;
  for (const Tensor& tensor : tensors) type.add(tensor);
  CRESSET_CHECK(type.get() != ScalarType::Undefined, "result_type: at least one tensor was required; none was given.");
  return type.get();
}

namespace {
template <class T>
void write(const Tensor& tensor, const Scalar& value) {
  *static_cast<T*>(tensor.mutable_data_ptr()) = value.to<T>();
}
}  // namespace

#define CRESSET_EIGHT_BIT_TYPES(...) CRESSET_FLOAT8_TYPES(CRESSET_TYPE_CASE, __VA_ARGS__)
void check_number(const Scalar& number, ScalarType type) {
  if (isFloat8Type(type)) {
    const double v = number.toDouble();
    const bool fits = CRESSET_DISPATCH(type, "check_number", CRESSET_EIGHT_BIT_TYPES, [v] {
      using Limits = std::numeric_limits<scalar_t>;
      return std::isinf(v) ? Limits::has_infinity : !(std::abs(v) > static_cast<double>(Limits::max()));
    });
    if (!fits) cresset::detail::raise_scalar_overflow(type);
    return;
  }
  if (type == kComplexFloat) {
    const std::complex<double> v = number.toComplexDouble();
    if (!cresset::detail::fits<float>(v.real()) || !cresset::detail::fits<float>(v.imag())) cresset::detail::raise_scalar_overflow(type);
  } else if (type != kBool) {
    CRESSET_DISPATCH(type, "check_number", CRESSET_STORED_AND_ALL_TYPES, [&] { static_cast<void>(number.to<scalar_t>()); });
  }
}

Tensor wrapped_scalar_tensor(const Scalar& value) {
  const Tensor tensor = detail::empty_cpu({}, value.type());
  switch (value.type()) {
    case kBool: write<bool>(tensor, value); break;
    case kLong: write<int64_t>(tensor, value); break;
    case kUInt64: write<uint64_t>(tensor, value); break;
    case kDouble: write<double>(tensor, value); break;
    default: write<std::complex<double>>(tensor, value); break;
  }
  tensor.impl()->set_wrapped_number(true);
  return tensor;
}

}  // namespace cresset::ops
