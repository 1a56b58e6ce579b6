// Gradient helpers of the reduce family. `dims` unset or empty means all dimensions.
#pragma once

#include <cresset/core/tensor.h>

#include <vector>

namespace cresset::autograd::formulas {

/// Number of elements each result of a reduction is made of.
int64_t reduced_count(IntArrayRef sizes, OptionalIntArrayRef dims);
Tensor mean_backward(const Tensor& grad, IntArrayRef sizes, OptionalIntArrayRef dims, bool keepdim);
/// Products of all other elements, also where some are zero.
Tensor prod_backward(const Tensor& grad, const Tensor& self);
Tensor prod_dim_backward(const Tensor& grad, const Tensor& self, int64_t dim, bool keepdim);
/// The gradient of amax, amin, max() and median(): equal elements share it.
Tensor extreme_backward(const Tensor& grad, const Tensor& self, const Tensor& result, IntArrayRef dims, bool keepdim);
Tensor extreme_jvp(const Tensor& self_t, const Tensor& self, const Tensor& result, IntArrayRef dims, bool keepdim);
Tensor aminmax_backward(const std::vector<Tensor>& grads, const Tensor& self, std::optional<int64_t> dim, bool keepdim, const Tensor& min,
                        const Tensor& max);
Tensor aminmax_jvp(const Tensor& self_t, const Tensor& self, const Tensor& result, std::optional<int64_t> dim, bool keepdim);
/// grad at the chosen index of a dimension, zero elsewhere (max, min, median, mode, kthvalue).
Tensor select_index_backward(const Tensor& grad, int64_t dim, const Tensor& indices, IntArrayRef sizes, bool keepdim);
/// Elements at the chosen index of a dimension.
Tensor gather_index(const Tensor& self, int64_t dim, const Tensor& indices, bool keepdim);
Tensor var_backward(const Tensor& grad, const Tensor& self, OptionalIntArrayRef dims, const std::optional<Scalar>& correction,
                    bool keepdim);
Tensor std_backward(const Tensor& result, const Tensor& grad, const Tensor& self, OptionalIntArrayRef dims,
                    const std::optional<Scalar>& correction, bool keepdim);
Tensor var_mean_backward(const std::vector<Tensor>& grads, const Tensor& self, OptionalIntArrayRef dims,
                         const std::optional<Scalar>& correction, bool keepdim);
Tensor std_mean_backward(const std::vector<Tensor>& grads, const Tensor& result, const Tensor& self, OptionalIntArrayRef dims,
                         const std::optional<Scalar>& correction, bool keepdim);
Tensor var_jvp(const Tensor& self_t, const Tensor& self, OptionalIntArrayRef dims, const std::optional<Scalar>& correction, bool keepdim);
Tensor std_jvp(const Tensor& result, const Tensor& self_t, const Tensor& self, OptionalIntArrayRef dims,
               const std::optional<Scalar>& correction, bool keepdim);
/// Zero where the norm is zero.
Tensor norm_backward(const Tensor& grad, const Tensor& self, const Scalar& p, const Tensor& norm, OptionalIntArrayRef dims, bool keepdim);
Tensor norm_jvp(const Tensor& self_t, const Tensor& self, const Scalar& p, const Tensor& norm, OptionalIntArrayRef dims, bool keepdim);
Tensor logsumexp_backward(const Tensor& grad, const Tensor& self, const Tensor& result, IntArrayRef dims, bool keepdim);
Tensor logsumexp_jvp(const Tensor& self_t, const Tensor& self, IntArrayRef dims, bool keepdim);
Tensor cumsum_backward(const Tensor& grad, int64_t dim);
Tensor cumprod_backward(const Tensor& grad, const Tensor& self, int64_t dim, const Tensor& result);
Tensor cumprod_jvp(const Tensor& self_t, const Tensor& self, const Tensor& result, int64_t dim);
Tensor logcumsumexp_jvp(const Tensor& self_t, const Tensor& self, int64_t dim);
Tensor logcumsumexp_backward(const Tensor& grad, const Tensor& self, int64_t dim);
Tensor cummaxmin_backward(const Tensor& grad, IntArrayRef sizes, const Tensor& indices, int64_t dim);

}  // namespace cresset::autograd::formulas
