#include "autograd/tangent.h"

#include <cresset/ops/functions_arith.h>
#include <cresset/ops/functions_copy.h>
#include <cresset/ops/functions_creation.h>
#include <cresset/ops/functions_view.h>

#include "autograd/generated_support.h"

namespace cresset::autograd {
namespace {

ScalarType type_of(const Tangent& t) { return t.options().dtype_opt().value(); }

DimVector broadcast(IntArrayRef a, IntArrayRef b) {
  if (a.size() < b.size()) std::swap(a, b);
  DimVector sizes(a);
  for (std::size_t i = 0; i < b.size(); ++i)
    if (int64_t& size = sizes[a.size() - 1 - i]; size == 1) size = b[b.size() - 1 - i];
  return sizes;
}

/// The type of a sum or product of two tensors of these sizes and types.
ScalarType promoted(IntArrayRef a_sizes, ScalarType a, IntArrayRef b_sizes, ScalarType b) {
  const auto category = [](ScalarType t) { return isComplexType(t) ? 2 : isFloatingType(t) ? 1 : 0; };
  if (category(a) == category(b) && a_sizes.empty() != b_sizes.empty()) return a_sizes.empty() ? b : a;
  return promote_types(a, b);
}

/// Nothing, of the sizes and type of a product of `nothing` with b. Where b's history is recorded the result is in the graph, as a product
/// with zeros would be: its gradient for b is zeros.
Tangent nothing_times(const Tangent& nothing, const Tensor& b) {
  const ScalarType type = promoted(nothing.sizes(), type_of(nothing), b.sizes(), b.scalar_type());
  const DimVector sizes = broadcast(nothing.sizes(), b.sizes());
  if (compute_requires_grad(b)) {
    const Tensor zeros = b.masked_fill(cresset::ones({}, b.options().dtype(kBool).requires_grad(false)), Scalar(0));
    return Tangent(cresset::expand(zeros.to(type), sizes));
  }
  return Tangent::nothing(sizes, nothing.options().dtype(type));
}

/// `t` in the sizes and type of a sum with `nothing`.
Tensor plus_nothing(const Tensor& t, const Tangent& nothing) {
  const DimVector sizes = broadcast(nothing.sizes(), t.sizes());
  const ScalarType type = promoted(nothing.sizes(), type_of(nothing), t.sizes(), t.scalar_type());
  const Tensor cast = type == t.scalar_type() ? t : t.to(type);
  return IntArrayRef(sizes) == cast.sizes() ? cast : cresset::expand(cast, sizes);
}

}  // namespace

Tangent Tangent::of(const Tensor& primal) {
  if (Tensor tangent = fw_grad(primal); tangent.defined() || !primal.defined()) return Tangent(std::move(tangent));
  // Formulas subtract, which bools cannot.
  return nothing(primal.sizes(), primal.scalar_type() == kBool ? primal.options().dtype(kByte) : primal.options());
}

Tangent Tangent::nothing(IntArrayRef sizes, const TensorOptions& options) {
  Tangent t;
  t.nothing_ = true;
  t.sizes_ = DimVector(sizes);
  t.options_ = options.requires_grad(false);
  return t;
}

Tangent::operator const Tensor&() const {
  if (nothing_ && !value_.defined()) value_ = cresset::zeros(sizes_, options_);
  return value_;
}

Tangent Tangent::conj() const { return nothing_ ? *this : Tangent(value_.conj()); }
Tangent Tangent::expand_as(const Tensor& other) const {
  return nothing_ ? nothing(other.sizes(), options_) : Tangent(value_.expand_as(other));
}
Tangent Tangent::to(ScalarType type) const { return nothing_ ? nothing(sizes_, options_.dtype(type)) : Tangent(value_.to(type)); }
Tensor Tangent::masked_fill(const Tensor& mask, const Tensor& value) const {
  return static_cast<const Tensor&>(*this).masked_fill(mask, value);
}

Tangent operator-(const Tangent& a) { return a.is_nothing() ? a : Tangent(-static_cast<const Tensor&>(a)); }
Tangent operator+(const Tangent& a, const Tangent& b) {
  if (a.is_nothing() && b.is_nothing()) {
    const ScalarType type = promoted(a.sizes(), type_of(a), b.sizes(), type_of(b));
    return Tangent::nothing(broadcast(a.sizes(), b.sizes()), a.options().dtype(type));
  }
  if (a.is_nothing()) return plus_nothing(b, a);
  if (b.is_nothing()) return plus_nothing(a, b);
  return Tangent(cresset::add(a, b));
}
Tangent operator+(const Tensor& a, const Tangent& b) { return Tangent(a) + b; }
Tangent operator+(const Tangent& a, const Tensor& b) { return a + Tangent(b); }
Tangent operator-(const Tangent& a, const Tangent& b) { return a.is_nothing() || b.is_nothing() ? a + -b : Tangent(cresset::sub(a, b)); }
Tangent operator*(const Tangent& a, const Tensor& b) { return a.is_nothing() ? nothing_times(a, b) : Tangent(cresset::mul(a, b)); }
Tangent operator*(const Tensor& a, const Tangent& b) { return b.is_nothing() ? nothing_times(b, a) : Tangent(cresset::mul(a, b)); }
Tangent operator*(const Tangent& a, const Scalar& b) { return a.is_nothing() ? a : Tangent(cresset::mul(a, b)); }
Tangent operator*(const Scalar& a, const Tangent& b) { return b * a; }
Tangent operator/(const Tangent& a, const Tensor& b) { return a.is_nothing() ? nothing_times(a, b) : Tangent(cresset::div(a, b)); }
Tangent operator/(const Tangent& a, const Scalar& b) { return a.is_nothing() ? a : Tangent(cresset::div(a, b)); }

}  // namespace cresset::autograd
