// Type promotion over the operands of one operator: tensors, zero-dimensional tensors and numbers rank differently.
#pragma once

#include <cresset/core/tensor.h>

namespace cresset::ops {

// Collects operands one by one. Tensors with dimensions decide first, then zero-dimensional tensors, then numbers; a lower
// rank changes the result only when it is of a higher category (bool < integral < floating < complex).
class ResultType {
 public:
  void add(const Tensor& tensor) {
    if (tensor.impl()->is_wrapped_number())
      add_number(tensor.scalar_type());
    else
      merge(tensor.dim() > 0 ? dimensioned_ : zero_dim_, tensor.scalar_type());
  }
  void add(const Scalar& number) { add_number(number.type()); }
  // The promoted type; Undefined when nothing was added.
  ScalarType get() const { return combine(dimensioned_, combine(zero_dim_, number_)); }

 private:
  static void merge(ScalarType& to, ScalarType type) { to = to == ScalarType::Undefined || to == type ? type : promote_types(to, type); }
  void add_number(ScalarType type);
  static ScalarType combine(ScalarType higher, ScalarType lower);

  ScalarType dimensioned_ = ScalarType::Undefined;
  ScalarType zero_dim_ = ScalarType::Undefined;
  ScalarType number_ = ScalarType::Undefined;
};

// torch.result_type for two operands; the table's rows of that name.
ScalarType result_type_tensors(const Tensor& tensor, const Tensor& other);
ScalarType result_type_tensor_scalar(const Tensor& tensor, const Scalar& other);
ScalarType result_type_scalar_tensor(const Scalar& scalar, const Tensor& tensor);
ScalarType result_type_scalars(const Scalar& scalar1, const Scalar& scalar2);
ScalarType result_type_of(TensorList tensors);

// A zero-dimensional tensor that takes part in promotion as a number: what an operator makes of a Python number.
CRESSET_API Tensor wrapped_scalar_tensor(const Scalar& value);

}  // namespace cresset::ops
