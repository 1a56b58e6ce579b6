// The tangent of one input in a forward formula (`self_t` of a row with several differentiable inputs): a tensor, or nothing where that
// input is a constant. Nothing adds nothing and stays nothing in products, so that the zero of a constant's tangent never meets an
// infinity, and no product with zeros is computed. A function that knows only tensors gets zeros.
#pragma once

#include <cresset/core/tensor.h>

namespace cresset::autograd {

class Tangent {
 public:
  Tangent() = default;
  Tangent(Tensor value) : value_(std::move(value)) {}
  /// The tangent of an input; nothing, of the input's sizes and type, when it has none.
  static Tangent of(const Tensor& primal);
  static Tangent nothing(IntArrayRef sizes, const TensorOptions& options);

  bool is_nothing() const { return nothing_; }
  IntArrayRef sizes() const { return nothing_ ? IntArrayRef(sizes_) : value_.sizes(); }
  TensorOptions options() const { return nothing_ ? options_ : value_.options(); }
  /// The tensor; zeros, made when first asked for, of nothing.
  operator const Tensor&() const;

  Tangent conj() const;
  Tangent expand_as(const Tensor& other) const;
  Tangent to(ScalarType type) const;
  Tensor masked_fill(const Tensor& mask, const Tensor& value) const;

 private:
  mutable Tensor value_;
  bool nothing_ = false;
  DimVector sizes_;
  TensorOptions options_;
};

Tangent operator-(const Tangent& a);
Tangent operator+(const Tangent& a, const Tangent& b);
Tangent operator+(const Tensor& a, const Tangent& b);
Tangent operator+(const Tangent& a, const Tensor& b);
Tangent operator-(const Tangent& a, const Tangent& b);
Tangent operator*(const Tangent& a, const Tensor& b);
Tangent operator*(const Tensor& a, const Tangent& b);
Tangent operator*(const Tangent& a, const Scalar& b);
Tangent operator*(const Scalar& a, const Tangent& b);
Tangent operator/(const Tangent& a, const Tensor& b);
Tangent operator/(const Tangent& a, const Scalar& b);

}  // namespace cresset::autograd
