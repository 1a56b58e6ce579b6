// InputMetadata: what the engine knows about a value whose gradient a node receives.
#pragma once

#include <cresset/core/tensor_base.h>

namespace cresset::autograd {

/// Shape, dtype, device and layout of one forward output. Made from an undefined tensor it describes nothing.
class InputMetadata {
 public:
  InputMetadata() = default;
  explicit InputMetadata(const TensorBase& t) {
    if (!t.defined()) return;
    const TensorImpl* impl = t.unsafeGetTensorImpl();
    shape_ = impl->sizes();
    dtype_ = grad_dtype_ = impl->dtype();
    device_ = impl->device();
    layout_ = impl->layout();
    defined_ = true;
  }
  bool was_default_constructed() const { return !defined_; }
  IntArrayRef shape() const { return shape_; }
  ScalarType scalar_type() const { return dtype_; }
  /// The dtype that the gradient is converted to; Undefined: it keeps its own.
  ScalarType grad_dtype() const { return grad_dtype_; }
  void set_grad_dtype(ScalarType dtype) { grad_dtype_ = dtype; }
  Device device() const { return device_; }
  Layout layout() const { return layout_; }
  TensorOptions options() const { return TensorOptions(dtype_).device(device_).layout(layout_); }
  /// Zeros that fit.
  CRESSET_API Tensor zeros_like() const;

 private:
  DimVector shape_;
  ScalarType dtype_ = ScalarType::Undefined, grad_dtype_ = ScalarType::Undefined;
  Device device_{kCPU};
  Layout layout_ = kStrided;
  bool defined_ = false;
};

}  // namespace cresset::autograd
