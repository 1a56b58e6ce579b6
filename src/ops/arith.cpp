// Arithmetic made of other operators: rounding division, limits given as tensors, powers in double.
#include <algorithm>

#include <cresset/ops/functions_arith.h>

#include "ops/ops_decl_arith.h"
#include "ops/shared/number_range.h"
#include "ops/shared/promotion.h"

namespace cresset::ops {
namespace {

void check_rounding_mode(std::string_view mode) {
  CRESSET_CHECK(mode == "trunc" || mode == "floor", "div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '", mode,
                "'");
}

}  // namespace

// For devices that have the parts only.
Tensor rsub_by_parts(const Tensor& self, const Tensor& other, const Scalar& alpha) { return cresset::sub(other, self, alpha); }

Tensor div_mode(const Tensor& self, const Tensor& other, std::optional<std::string_view> rounding_mode) {
  if (!rounding_mode) return cresset::div(self, other);
  check_rounding_mode(*rounding_mode);
  return *rounding_mode == "floor" ? cresset::floor_divide(self, other) : cresset::trunc_divide(self, other);
}

Tensor div_mode_scalar(const Tensor& self, const Scalar& other, std::optional<std::string_view> rounding_mode) {
  return div_mode(self, wrapped_scalar_tensor(other), rounding_mode);
}

namespace {
ScalarType power_type(ScalarType a, ScalarType b) { return isComplexType(a) || isComplexType(b) ? kComplexDouble : kDouble; }
}  // namespace

Tensor float_power_impl(const Tensor& self, const Tensor& exponent) {
  const ScalarType type = power_type(self.scalar_type(), exponent.scalar_type());
  return cresset::pow(self.to(type), exponent.to(type));
}

Tensor float_power_scalar(const Tensor& self, const Scalar& exponent) {
  const ScalarType type = power_type(self.scalar_type(), exponent.type());
  return type == kDouble ? cresset::pow(self.to(type), Scalar(exponent.toDouble())) : cresset::pow(self.to(type), exponent);
}

Tensor float_power_of_number(const Scalar& self, const Tensor& exponent) {
  const ScalarType type = power_type(self.type(), exponent.scalar_type());
  return cresset::pow(type == kDouble ? Scalar(self.toDouble()) : self, exponent.to(type));
}

namespace {
void check_power_base(const Tensor& self, ScalarType type) {
  CRESSET_CHECK(self.scalar_type() == type, "the base given to float_power_ has dtype ", self.scalar_type(),
                " but the operation's result requires dtype ", type);
}
}  // namespace

Tensor& float_power_inplace(Tensor& self, const Tensor& exponent) {
  const ScalarType type = power_type(self.scalar_type(), exponent.scalar_type());
  check_power_base(self, type);
  return self.pow_(exponent.to(type));
}

Tensor& float_power_scalar_inplace(Tensor& self, const Scalar& exponent) {
  check_power_base(self, power_type(self.scalar_type(), exponent.type()));
  return self.pow_(exponent);
}

Tensor positive_impl(const Tensor& self) {
  CRESSET_CHECK(self.scalar_type() != kBool, "The `+` operator, on a bool tensor is not supported.");
  return self;
}

Tensor clamp_tensor(const Tensor& self, const std::optional<Tensor>& min, const std::optional<Tensor>& max) {
  CRESSET_CHECK(min || max, "torch.clamp: At least one of 'min' or 'max' must not be None");
  if (!min || !max) return min ? cresset::clamp_min(self, *min) : cresset::clamp_max(self, *max);
  // One type of all three: two steps would let the first limit decide how the second counts.
  ResultType type;
  for (const Tensor* t : {&self, &*min, &*max}) type.add(*t);
  return cresset::clamp_max(cresset::clamp_min(self.to(type.get()), min->to(type.get())), max->to(type.get()));
}

void check_clamp(const PointwiseOp& op, const PointwiseCall& call, ScalarType common) {
  CRESSET_CHECK(std::any_of(call.scalars, call.scalars + call.num_scalars, [](const Scalar* limit) { return limit; }), "torch.", op.name,
                ": At least one of 'min' or 'max' must not be None");
  for (int i = 0; i < call.num_scalars; ++i)
    if (call.scalars[i]) check_number(*call.scalars[i], common);
}

void check_integers_fit(const PointwiseOp& op, const PointwiseCall& call, ScalarType common) {
  if (isIntegralType(common)) check_numbers_fit(op, call, common);
}

void check_pow(const PointwiseOp& op, const PointwiseCall& call, ScalarType common) {
  const bool integral = isIntegralType(common) && call.scalars[0]->isIntegral(false);
  CRESSET_CHECK(!integral || call.scalars[0]->toLong() >= 0, "Integers to negative integer powers are not allowed.");
  check_numbers_fit(op, call, common);
}

// Two integral factors are refused although self, and so the result, is floating: the words are those for integral results.
void check_addcdiv(const PointwiseOp& op, const PointwiseCall& call, ScalarType) {
  const auto integral = [&](int i) { return isIntegralType(call.inputs[i]->scalar_type(), true); };
  CRESSET_CHECK(!integral(1) || !integral(2), op.facts->refusals[0].text);
}

void check_lerp(const PointwiseOp&, const PointwiseCall& call, ScalarType) {
  const ScalarType self = call.inputs[0]->scalar_type();
  const auto check = [&](const char* name, const Tensor& t) {
    CRESSET_CHECK(t.scalar_type() == self, "expected dtype ", cpp_type_name(self), " for `", name, "` but got dtype ",
                  cpp_type_name(t.scalar_type()));
  };
  if (call.num_inputs == 3 && call.inputs[2]->dim() > 0) check("weight", *call.inputs[2]);
  check("end", *call.inputs[1]);
}

}  // namespace cresset::ops
