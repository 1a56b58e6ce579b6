// The checks of normalisations over batches and groups, shared by shape rules and kernels.
#pragma once

#include <optional>

#include <cresset/core/tensor.h>

namespace cresset::ops {

/// Raises for parameters that do not fit; the type of mean and 1/deviation.
CRESSET_API ScalarType check_batch_norm(const Tensor& input, const std::optional<Tensor>& weight, const std::optional<Tensor>& bias,
                                        const std::optional<Tensor>& running_mean, const std::optional<Tensor>& running_var, bool training);

/// Raises for a gradient or statistics that do not fit the input.
CRESSET_API void check_batch_norm_backward(const Tensor& grad_out, const Tensor& input, const std::optional<Tensor>& weight,
                                           const std::optional<Tensor>& running_mean, const std::optional<Tensor>& running_var,
                                           const std::optional<Tensor>& save_mean, const std::optional<Tensor>& save_invstd, bool train);

/// Raises for parameters that do not fit; the type of mean and 1/deviation of the groups.
CRESSET_API ScalarType check_group_norm(const Tensor& input, const std::optional<Tensor>& weight, const std::optional<Tensor>& bias,
                                        int64_t n, int64_t c, int64_t hxw, int64_t group);

/// Raises for a gradient or statistics that do not fit the input.
CRESSET_API void check_group_norm_backward(const Tensor& grad_out, const Tensor& input, const Tensor& mean, const Tensor& rstd,
                                           const std::optional<Tensor>& weight, int64_t n, int64_t c, int64_t hxw, int64_t group);

}  // namespace cresset::ops
