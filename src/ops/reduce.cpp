// Reductions and running totals: shape rules, checks and compositions.
#include <algorithm>
#include <cmath>
#include <string_view>

#include <cresset/ops/functions_arith.h>
#include <cresset/ops/functions_compare.h>
#include <cresset/ops/functions_concat.h>
#include <cresset/ops/functions_creation.h>
#include <cresset/ops/functions_index.h>
#include <cresset/ops/functions_math.h>
#include <cresset/ops/functions_reduce.h>
#include <cresset/ops/functions_view.h>

#include "ops/ops_decl_reduce.h"
#include "ops/shared/shape_util.h"

namespace cresset::ops {

namespace {

using Two = std::array<TensorSpec, 2>;

TensorSpec reduced(const Tensor& self, uint64_t mask, bool keepdim, ScalarType dtype) {
  return spec_like(self, reduced_sizes(self.sizes(), mask, keepdim), dtype);
}
uint64_t one_dim(const Tensor& self, int64_t dim) {
  const int64_t d = maybe_wrap_dim(dim, self.dim());
  return self.dim() == 0 ? 0 : uint64_t{1} << d;
}
uint64_t all_dims(const Tensor& self) { return reduce_mask(std::nullopt, self.dim()); }

// Integers and bool add up in int64.
ScalarType sum_type(const Tensor& self, std::optional<ScalarType> dtype) {
  return dtype.value_or(isIntegralType(self.scalar_type(), true) ? kLong : self.scalar_type());
}

// Extremes have no value for an empty dimension.
void check_nonempty_dims(const char* op, const Tensor& self, uint64_t mask, bool all) {
  if (self.numel() > 0) return;
  CRESSET_CHECK(!all, op,
                "(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with the 'dim' argument.");
  for (int64_t d = 0; d < self.dim(); ++d)
    CRESSET_CHECK_INDEX(!(mask >> d & 1) || self.size(d) > 0, op, "(): Expected reduction dim ", d, " to have non-zero size.");
}
void check_ordered(const char* op, const Tensor& self) {
  CRESSET_CHECK_NOT_IMPLEMENTED(!self.is_complex(), "\"", op, "\" not implemented for '", self.scalar_type(), "'");
}

}  // namespace

// ---- sums ----------------------------------------------------------------------------------------------------------

TensorSpec sum_shape(const Tensor& self, OptionalIntArrayRef dim, bool keepdim, std::optional<ScalarType> dtype) {
  return reduced(self, reduce_mask(dim, self.dim()), keepdim, sum_type(self, dtype));
}
Tensor sum_all(const Tensor& self, std::optional<ScalarType> dtype) { return cresset::sum(self, OptionalIntArrayRef(), false, dtype); }

TensorSpec mean_shape(const Tensor& self, OptionalIntArrayRef dim, bool keepdim, std::optional<ScalarType> dtype) {
  const ScalarType type = dtype.value_or(self.scalar_type());
  CRESSET_CHECK(isDifferentiableType(type), "mean(): could not infer output dtype. ", dtype ? "Optional dtype" : "Input dtype",
                " must be either a floating point or complex dtype. Got: ", type);
  return reduced(self, reduce_mask(dim, self.dim()), keepdim, type);
}
Tensor mean_all(const Tensor& self, std::optional<ScalarType> dtype) { return cresset::mean(self, OptionalIntArrayRef(), false, dtype); }

TensorSpec nansum_shape(const Tensor& self, OptionalIntArrayRef dim, bool keepdim, std::optional<ScalarType> dtype) {
  CRESSET_CHECK(!self.is_complex(), "nansum on CPU does not support complex inputs");
  return sum_shape(self, dim, keepdim, dtype);
}
Tensor nanmean_impl(const Tensor& self, OptionalIntArrayRef dim, bool keepdim, std::optional<ScalarType> dtype) {
  CRESSET_CHECK(isDifferentiableType(self.scalar_type()), "nanmean(): expected input to have floating point or complex dtype but got ",
                self.scalar_type());
  CRESSET_CHECK(!dtype || isDifferentiableType(*dtype),
                "nanmean(): could not infer output dtype. Optional dtype must be either a floating point or complex dtype. Got: ", *dtype);
  const Tensor counts = cresset::sum(cresset::logical_not(cresset::isnan(self)), dim, keepdim);
  return cresset::div(cresset::nansum(self, dim, keepdim, dtype), counts);
}

TensorSpec prod_all_shape(const Tensor& self, std::optional<ScalarType> dtype) {
  return reduced(self, all_dims(self), false, sum_type(self, dtype));
}
TensorSpec prod_shape(const Tensor& self, int64_t dim, bool keepdim, std::optional<ScalarType> dtype) {
  return reduced(self, one_dim(self, dim), keepdim, sum_type(self, dtype));
}

// ---- extremes ------------------------------------------------------------------------------------------------------

namespace {
TensorSpec extreme_shape(const char* op, const char* kernel, const Tensor& self, IntArrayRef dim, bool keepdim) {
  const uint64_t mask = reduce_mask(dim, self.dim());
  check_nonempty_dims(op, self, mask, dim.empty());
  check_ordered(kernel, self);
  return reduced(self, mask, keepdim, self.scalar_type());
}
Two extreme_dim_shape(const char* op, const Tensor& self, int64_t dim, bool keepdim) {
  const uint64_t mask = one_dim(self, dim);
  check_nonempty_dims(op, self, mask, false);
  CRESSET_CHECK(!self.is_complex(), op, "(): does not support complex input");
  return {reduced(self, mask, keepdim, self.scalar_type()), reduced(self, mask, keepdim, kLong)};
}
TensorSpec arg_shape(const char* op, const Tensor& self, std::optional<int64_t> dim, bool keepdim) {
  CRESSET_CHECK(!self.is_complex(), op, "(): does not support complex input");
  CRESSET_CHECK(self.scalar_type() != kBool, op, "(): does not support bool input");
  CRESSET_CHECK_INDEX(dim || self.numel() > 0, op, "(): Expected reduction dim to be specified for input.numel() == 0.");
  const uint64_t mask = dim ? one_dim(self, *dim) : all_dims(self);
  if (dim) check_nonempty_dims(op, self, mask, false);
  return reduced(self, mask, keepdim, kLong);
}
}  // namespace

TensorSpec amax_shape(const Tensor& self, IntArrayRef dim, bool keepdim) {
  return extreme_shape("amax", "max_values_cpu", self, dim, keepdim);
}
TensorSpec amin_shape(const Tensor& self, IntArrayRef dim, bool keepdim) {
  return extreme_shape("amin", "min_values_cpu", self, dim, keepdim);
}
TensorSpec max_all_shape(const Tensor& self) { return extreme_shape("max", "max_all", self, {}, false); }
TensorSpec min_all_shape(const Tensor& self) { return extreme_shape("min", "min_all", self, {}, false); }
Two max_dim_shape(const Tensor& self, int64_t dim, bool keepdim) { return extreme_dim_shape("max", self, dim, keepdim); }
Two min_dim_shape(const Tensor& self, int64_t dim, bool keepdim) { return extreme_dim_shape("min", self, dim, keepdim); }
TensorSpec argmax_shape(const Tensor& self, std::optional<int64_t> dim, bool keepdim) { return arg_shape("argmax", self, dim, keepdim); }
TensorSpec argmin_shape(const Tensor& self, std::optional<int64_t> dim, bool keepdim) { return arg_shape("argmin", self, dim, keepdim); }

Two aminmax_shape(const Tensor& self, std::optional<int64_t> dim, bool keepdim) {
  check_ordered("aminmax", self);
  const uint64_t mask = dim ? one_dim(self, *dim) : all_dims(self);
  CRESSET_CHECK(dim || self.numel() > 0, "aminmax(): cannot compute aminmax over an empty dimension as the operation has no identity.");
  check_nonempty_dims("aminmax", self, mask, false);
  const TensorSpec spec = reduced(self, mask, keepdim, self.scalar_type());
  return {spec, spec};
}

// ---- logic ---------------------------------------------------------------------------------------------------------

namespace {
TensorSpec logic_shape(const Tensor& self, uint64_t mask, bool keepdim) {
  return reduced(self, mask, keepdim, self.scalar_type() == kByte ? kByte : kBool);
}
// Unlike sum, an empty list of dimensions reduces nothing.
uint64_t logic_dims(const Tensor& self, OptionalIntArrayRef dim) { return dim ? dim_mask(*dim, self.dim()) : all_dims(self); }
}  // namespace

TensorSpec any_all_shape(const Tensor& self) { return logic_shape(self, all_dims(self), false); }
TensorSpec any_dim_shape(const Tensor& self, int64_t dim, bool keepdim) { return logic_shape(self, one_dim(self, dim), keepdim); }
TensorSpec any_dims_shape(const Tensor& self, OptionalIntArrayRef dim, bool keepdim) {
  return logic_shape(self, logic_dims(self, dim), keepdim);
}
TensorSpec all_all_shape(const Tensor& self) { return any_all_shape(self); }
TensorSpec all_dim_shape(const Tensor& self, int64_t dim, bool keepdim) { return any_dim_shape(self, dim, keepdim); }
TensorSpec all_dims_shape(const Tensor& self, OptionalIntArrayRef dim, bool keepdim) { return any_dims_shape(self, dim, keepdim); }

TensorSpec count_nonzero_dims_shape(const Tensor& self, IntArrayRef dim) {
  return reduced(self, reduce_mask(dim, self.dim()), false, kLong);
}
TensorSpec count_nonzero_shape(const Tensor& self, std::optional<int64_t> dim) {
  return reduced(self, dim ? one_dim(self, *dim) : all_dims(self), false, kLong);
}

// For devices that have the parts only.
Tensor count_nonzero_dims_by_parts(const Tensor& self, IntArrayRef dim) { return cresset::sum(cresset::ne(self, Scalar(0)), dim); }
Tensor count_nonzero_by_parts(const Tensor& self, std::optional<int64_t> dim) {
  const Tensor nonzero = cresset::ne(self, Scalar(0));
  return dim ? cresset::sum(nonzero, IntArrayRef(*dim)) : cresset::sum(nonzero);
}

// ---- moments and norms -----------------------------------------------------------------------------------------------

namespace {
TensorSpec moment_shape(const char* what, const Tensor& self, OptionalIntArrayRef dim, bool keepdim) {
  CRESSET_CHECK(isDifferentiableType(self.scalar_type()), what, " only support floating point and complex dtypes");
  return reduced(self, reduce_mask(dim, self.dim()), keepdim, toRealValueType(self.scalar_type()));
}
Two moment_mean_shape(const char* what, const Tensor& self, OptionalIntArrayRef dim, bool keepdim) {
  TensorSpec first = moment_shape(what, self, dim, keepdim), second = first;
  second.dtype = self.scalar_type();
  return {first, second};
}
}  // namespace

TensorSpec var_shape(const Tensor& self, OptionalIntArrayRef dim, const std::optional<Scalar>&, bool keepdim) {
  return moment_shape("std and var", self, dim, keepdim);
}
TensorSpec std_shape(const Tensor& self, OptionalIntArrayRef dim, const std::optional<Scalar>&, bool keepdim) {
  return moment_shape("std and var", self, dim, keepdim);
}
Two var_mean_shape(const Tensor& self, OptionalIntArrayRef dim, const std::optional<Scalar>&, bool keepdim) {
  return moment_mean_shape("var_mean", self, dim, keepdim);
}
Two std_mean_shape(const Tensor& self, OptionalIntArrayRef dim, const std::optional<Scalar>&, bool keepdim) {
  return moment_mean_shape("std_mean", self, dim, keepdim);
}

TensorSpec vector_norm_shape(const Tensor& self, const Scalar& ord, OptionalIntArrayRef dim, bool keepdim,
                             std::optional<ScalarType> dtype) {
  CRESSET_CHECK(isDifferentiableType(self.scalar_type()), "linalg.vector_norm: Expected a floating point or complex tensor as input. Got ",
                self.scalar_type());
  CRESSET_CHECK(!ord.isComplex(), "linalg.vector_norm: Expected a non-complex scalar as the order of norm.");
  if (dtype) {
    CRESSET_CHECK(isDifferentiableType(*dtype), "linalg.vector_norm: dtype should be floating point or complex, but got ", *dtype);
    CRESSET_CHECK(isComplexType(*dtype) == self.is_complex(), "linalg.vector_norm: dtype should be ",
                  self.is_complex() ? "complex" : "real", " for ", self.is_complex() ? "complex" : "real", " inputs, but got ", *dtype);
    CRESSET_CHECK(promote_types(self.scalar_type(), *dtype) == *dtype, "linalg.vector_norm: the dtype of the input (", self.scalar_type(),
                  ") should be convertible without narrowing to the specified dtype (", *dtype, ")");
  }
  const uint64_t mask = reduce_mask(dim, self.dim());
  const double p = ord.toDouble();
  if (self.numel() == 0 && (p < 0 || std::isinf(p))) {
    bool no_identity = !dim || dim->empty();
    for (int64_t d = 0; d < self.dim(); ++d) no_identity |= (mask >> d & 1) && self.size(d) == 0;
    CRESSET_CHECK(!no_identity, "linalg.vector_norm cannot compute the ",
                  std::isinf(p) ? (p > 0 ? std::string("inf") : std::string("-inf")) : to_string(ord),
                  " norm on an empty tensor because the operation does not have an identity");
  }
  return reduced(self, mask, keepdim, toRealValueType(dtype.value_or(self.scalar_type())));
}
Tensor renorm_impl(const Tensor& self, const Scalar& p, int64_t dim, const Scalar& maxnorm) {
  CRESSET_CHECK(!p.isComplex() && p.toDouble() > 0, "renorm: non-positive-norm not supported");
  CRESSET_CHECK(!maxnorm.isComplex() && maxnorm.toDouble() >= 0, "renorm: expected maxnorm to be >= 0 but got ", maxnorm);
  CRESSET_CHECK(self.dim() > 1, "renorm: input needs at least 2 dimensions, got ", self.dim(), " dimensions");
  const int64_t d = maybe_wrap_dim(dim, self.dim());
  DimVector others;
  for (int64_t i = 0; i < self.dim(); ++i)
    if (i != d) others.push_back(i);
  const Tensor norms = cresset::linalg_vector_norm(self, p, IntArrayRef(others), true);
  const Tensor scale = cresset::mul(cresset::reciprocal(cresset::add(norms, 1e-7)), maxnorm);
  return cresset::mul(self, cresset::where(cresset::gt(norms, maxnorm), scale, cresset::ones_like(norms))).contiguous();
}
Tensor norm_dim(const Tensor& self, const std::optional<Scalar>& p, IntArrayRef dim, bool keepdim) {
  return cresset::linalg_vector_norm(self, p.value_or(2), dim, keepdim);
}
Tensor frobenius_norm_impl(const Tensor& self, IntArrayRef dim, bool keepdim) {
  CRESSET_CHECK(dim.size() <= 2, "Expected at most 2 dimensions, but got ", dim.size(), " dimensions instead.");
  return cresset::linalg_vector_norm(self, 2, dim, keepdim);
}
Tensor norm_all(const Tensor& self, const Scalar& p) { return cresset::linalg_vector_norm(self, p, std::nullopt, false); }
Tensor norm_dim_dtype(const Tensor& self, const std::optional<Scalar>& p, IntArrayRef dim, bool keepdim, ScalarType dtype) {
  return cresset::linalg_vector_norm(self, p.value_or(2), dim, keepdim, dtype);
}
Tensor norm_all_dtype(const Tensor& self, const std::optional<Scalar>& p, ScalarType dtype) {
  return cresset::linalg_vector_norm(self, p.value_or(2), std::nullopt, false, dtype);
}

TensorSpec logsumexp_shape(const Tensor& self, IntArrayRef dim, bool keepdim) {
  const ScalarType type = isIntegralType(self.scalar_type(), true) ? get_default_dtype() : self.scalar_type();
  CRESSET_CHECK_NOT_IMPLEMENTED(isDifferentiableType(type), "\"logsumexp_cpu\" not implemented for '", type, "'");
  return reduced(self, reduce_mask(dim, self.dim()), keepdim, type);
}

// For devices that have the parts only. Infinite largest values are left alone: nothing is to be subtracted from them.
Tensor logsumexp_by_parts(const Tensor& self, IntArrayRef dim, bool keepdim) {
  const TensorSpec spec = logsumexp_shape(self, dim, keepdim);
  const Tensor x = self.to(spec.dtype);
  if (x.numel() == 0) return cresset::log(cresset::sum(cresset::exp(x), dim, keepdim));
  Tensor largest = cresset::amax(x.is_complex() ? cresset::real(x) : x, dim, true);
  largest = cresset::where(cresset::isinf(largest), Scalar(0), largest);
  const Tensor total = cresset::log(cresset::sum(cresset::exp(x - largest), dim, true)) + largest;
  return keepdim ? total : total.reshape(spec.sizes);
}

// ---- running totals --------------------------------------------------------------------------------------------------

TensorSpec cumsum_shape(const Tensor& self, int64_t dim, std::optional<ScalarType> dtype) {
  maybe_wrap_dim(dim, self.dim());
  return spec_like(self, self.sizes(), sum_type(self, dtype));
}
TensorSpec cumprod_shape(const Tensor& self, int64_t dim, std::optional<ScalarType> dtype) { return cumsum_shape(self, dim, dtype); }
TensorSpec logcumsumexp_shape(const Tensor& self, int64_t dim) {
  maybe_wrap_dim(dim, self.dim());
  CRESSET_CHECK_NOT_IMPLEMENTED(self.is_floating_point() || self.is_complex(), "\"logcumsumexp_out_cpu\" not implemented for '",
                                self.scalar_type(), "'");
  return spec_like(self, self.sizes());
}
Two cummax_shape(const Tensor& self, int64_t dim) {
  maybe_wrap_dim(dim, self.dim());
  check_ordered("cummax_cpu", self);
  return {spec_like(self, self.sizes()), spec_like(self, self.sizes(), kLong)};
}

// ---- order statistics ------------------------------------------------------------------------------------------------

namespace {
Two order_shape(const char* op, const Tensor& self, int64_t dim, bool keepdim) {
  const uint64_t mask = one_dim(self, dim);
  check_nonempty_dims(op, self, mask, false);
  CRESSET_CHECK_NOT_IMPLEMENTED(!self.is_complex() && (self.scalar_type() != kBool || std::string_view(op) == "mode"), "\"", op,
                                "_cpu\" not implemented for '", self.scalar_type(), "'");
  return {reduced(self, mask, keepdim, self.scalar_type()), reduced(self, mask, keepdim, kLong)};
}
}  // namespace

TensorSpec median_all_shape(const Tensor& self) {
  CRESSET_CHECK_NOT_IMPLEMENTED(!self.is_complex() && self.scalar_type() != kBool, "\"median_cpu\" not implemented for '",
                                self.scalar_type(), "'");
  CRESSET_CHECK(self.numel() > 0 || self.is_floating_point(), "median(): an element was required; got an empty tensor of ",
                self.scalar_type(), ".");
  return reduced(self, all_dims(self), false, self.scalar_type());
}
Two median_dim_shape(const Tensor& self, int64_t dim, bool keepdim) { return order_shape("median", self, dim, keepdim); }
Two nanmedian_dim_shape(const Tensor& self, int64_t dim, bool keepdim) { return order_shape("nanmedian", self, dim, keepdim); }
Two mode_shape(const Tensor& self, int64_t dim, bool keepdim) { return order_shape("mode", self, dim, keepdim); }

// ---- compositions ----------------------------------------------------------------------------------------------------

Tensor sum_to_size_impl(const Tensor& self, IntArrayRef size) {
  if (size.empty()) return cresset::sum(self);
  if (self.sizes() == size) return self;
  const int64_t n = self.dim(), extra = n - static_cast<int64_t>(size.size());
  bool fits = extra >= 0;
  for (int64_t d = std::max<int64_t>(extra, 0); fits && d < n; ++d) fits = size[d - extra] == self.size(d) || size[d - extra] == 1;
  CRESSET_CHECK(fits, "size {", size, "} is not expandable to size {", self.sizes(), "}.");
  DimVector dims;
  for (int64_t d = 0; d < n; ++d)
    if (d < extra || (size[d - extra] == 1 && self.size(d) != 1)) dims.push_back(d);
  const Tensor out = cresset::sum(self, IntArrayRef(dims), /*keepdim=*/true);
  return extra > 0 ? out.view(size) : out;
}

Tensor diff_impl(const Tensor& self, int64_t n, int64_t dim, const std::optional<Tensor>& prepend, const std::optional<Tensor>& append) {
  CRESSET_CHECK(self.dim() >= 1, "diff expects input to be at least one-dimensional");
  CRESSET_CHECK(n >= 0, "order must be non-negative but got ", n);
  dim = maybe_wrap_dim(dim, self.dim());
  if (n == 0) return self.clone();  // without prepend and append, as in PyTorch
  for (const auto& part : {prepend, append}) {
    if (!part || !part->defined()) continue;
    CRESSET_CHECK(part->dim() == self.dim(), "diff expects prepend or append to be the same dimension as input");
    for (int64_t d = 0; d < self.dim(); ++d)
      CRESSET_CHECK(d == dim || part->size(d) == self.size(d),
                    "diff expects the shape of tensor to prepend or append to match that of input except along the differencing dimension; "
                    "input.size(",
                    d, ") = ", self.size(d), ", but got tensor.size(", d, ") = ", part->size(d));
  }
  std::vector<Tensor> parts;
  for (const auto& more : {prepend, append})
    CRESSET_CHECK(!more || !more->defined() || more->dim() == self.dim(),
                  "diff expects prepend or append to be the same dimension as input");
  if (prepend && prepend->defined()) parts.push_back(*prepend);
  parts.push_back(self);
  if (append && append->defined()) parts.push_back(*append);
  Tensor out = parts.size() == 1 ? self : cresset::cat(parts, dim);
  n = std::min(n, std::max<int64_t>(out.size(dim), 1));  // afterwards nothing is left
  for (; n > 0; --n) {
    const int64_t size = out.size(dim);
    const Tensor after = cresset::slice(out, dim, std::min<int64_t>(1, size), size, 1),
                 before = cresset::slice(out, dim, 0, std::max<int64_t>(size - 1, 0), 1);
    out = out.scalar_type() == kBool ? cresset::logical_xor(after, before) : cresset::sub(after, before);
  }
  return out;
}

Tensor value_selecting_reduction_backward_impl(const Tensor& grad, int64_t dim, const Tensor& indices, IntArrayRef sizes, bool keepdim) {
  const bool kept = keepdim || sizes.empty();
  const Tensor zeros = cresset::new_zeros(grad, sizes);
  return cresset::scatter(zeros, dim, kept ? indices : indices.unsqueeze(dim), kept ? grad : grad.unsqueeze(dim));
}
Tensor cummaxmin_backward_impl(const Tensor& grad, const Tensor& input, const Tensor& indices, int64_t dim) {
  if (input.numel() == 0) return input;
  return cresset::scatter_add(cresset::new_zeros(grad, input.sizes()), dim, indices, grad);
}

}  // namespace cresset::ops
