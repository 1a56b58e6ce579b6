// Softmax and its logarithm: shape rules and checks.
#include <limits>

#include <cresset/ops/functions_compare.h>
#include <cresset/ops/functions_reduce.h>
#include <cresset/ops/functions_softmax.h>

#include "ops/ops_decl_softmax.h"
#include "ops/shared/shape_util.h"

namespace cresset::ops {

namespace {
TensorSpec forward_shape(const char* kind, const Tensor& self, int64_t dim, bool half_to_float) {
  const bool last = maybe_wrap_dim(dim, self.dim()) >= self.dim() - 1;
  const char* kernel = last ? "_lastdim_kernel_impl" : "_kernel_impl";
  CRESSET_CHECK_NOT_IMPLEMENTED(self.is_floating_point(), "\"", kind, kernel, "\" not implemented for '", self.scalar_type(), "'");
  CRESSET_CHECK(!half_to_float || isReducedFloatingType(self.scalar_type()), kind, kernel, ": half_to_float needs a half type; got ",
                self.scalar_type(), ".");
  return spec_like(self, self.sizes(), half_to_float ? kFloat : self.scalar_type());
}
TensorSpec backward_shape(const char* name, const Tensor& grad_output, const Tensor& output, int64_t dim, ScalarType input_dtype) {
  maybe_wrap_dim(dim, output.dim());
  CRESSET_CHECK(grad_output.sizes() == output.sizes(), name, ": a gradient of the output's size ", output.sizes(), " was required; got ",
                grad_output.sizes(), ".");
  CRESSET_CHECK(grad_output.scalar_type() == output.scalar_type(),
                "expected input and grad types to match, or input to be at::Half and grad to be at::Float; got ", output.scalar_type(),
                " and ", grad_output.scalar_type(), ".");
  // Only the gradient of a softmax from half to single precision has another type than what it is made of.
  const bool narrower = input_dtype == kHalf && grad_output.scalar_type() == kFloat;
  return spec_like(grad_output, grad_output.sizes(), narrower ? input_dtype : grad_output.scalar_type());
}
Tensor as_type(const Tensor& self, std::optional<ScalarType> dtype) {
  return dtype && *dtype != self.scalar_type() ? self.to(*dtype) : self;
}
}  // namespace

Tensor softmax_int(const Tensor& self, int64_t dim, std::optional<ScalarType> dtype) {
  return cresset::_softmax(as_type(self, dtype), dim, false);
}
Tensor log_softmax_int(const Tensor& self, int64_t dim, std::optional<ScalarType> dtype) {
  return cresset::_log_softmax(as_type(self, dtype), dim, false);
}
Tensor safe_softmax(const Tensor& self, int64_t dim, std::optional<ScalarType> dtype) {
  const Tensor out = cresset::softmax(self, dim, dtype);
  if (!self.is_floating_point()) return out;
  const Tensor nothing = cresset::all(cresset::eq(self, -std::numeric_limits<double>::infinity()), dim, /*keepdim=*/true);
  return cresset::masked_fill(out, nothing, 0);
}
TensorSpec softmax_shape(const Tensor& self, int64_t dim, bool half_to_float) { return forward_shape("softmax", self, dim, half_to_float); }
TensorSpec log_softmax_shape(const Tensor& self, int64_t dim, bool half_to_float) {
  return forward_shape("log_softmax", self, dim, half_to_float);
}
TensorSpec softmax_backward_shape(const Tensor& grad_output, const Tensor& output, int64_t dim, ScalarType input_dtype) {
  return backward_shape("_softmax_backward_data", grad_output, output, dim, input_dtype);
}
TensorSpec log_softmax_backward_shape(const Tensor& grad_output, const Tensor& output, int64_t dim, ScalarType input_dtype) {
  return backward_shape("_log_softmax_backward_data", grad_output, output, dim, input_dtype);
}

}  // namespace cresset::ops
