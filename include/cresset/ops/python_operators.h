// Operators whose kernels are Python's: makers of sparse and quantized tensors, and products of sparse ones. What asks such tensors is a
// method (cresset/core/tensor.h). In a process without Python all of them raise NotImplementedError.
#pragma once

#include <cresset/core/tensor.h>
#include <cresset/core/tensor_options.h>

namespace cresset {

/// Sparse tensors in coordinates: `indices` (sparse dims, nnz) int64, `values` (nnz, ...). Without a size the smallest that holds them.
CRESSET_API Tensor sparse_coo_tensor(IntArrayRef size, const TensorOptions& options = {});
CRESSET_API Tensor sparse_coo_tensor(const Tensor& indices, const Tensor& values, const TensorOptions& options = {},
                                     std::optional<bool> is_coalesced = std::nullopt);
CRESSET_API Tensor sparse_coo_tensor(const Tensor& indices, const Tensor& values, IntArrayRef size, const TensorOptions& options = {},
                                     std::optional<bool> is_coalesced = std::nullopt);
/// Compressed rows (csr), columns (csc) and their blocked forms (bsr, bsc).
CRESSET_API Tensor sparse_csr_tensor(const Tensor& crow_indices, const Tensor& col_indices, const Tensor& values, IntArrayRef size,
                                     const TensorOptions& options = {});
CRESSET_API Tensor sparse_csr_tensor(const Tensor& crow_indices, const Tensor& col_indices, const Tensor& values,
                                     const TensorOptions& options = {});
CRESSET_API Tensor sparse_csc_tensor(const Tensor& ccol_indices, const Tensor& row_indices, const Tensor& values, IntArrayRef size,
                                     const TensorOptions& options = {});
CRESSET_API Tensor sparse_csc_tensor(const Tensor& ccol_indices, const Tensor& row_indices, const Tensor& values,
                                     const TensorOptions& options = {});
CRESSET_API Tensor sparse_bsr_tensor(const Tensor& crow_indices, const Tensor& col_indices, const Tensor& values, IntArrayRef size,
                                     const TensorOptions& options = {});
CRESSET_API Tensor sparse_bsr_tensor(const Tensor& crow_indices, const Tensor& col_indices, const Tensor& values,
                                     const TensorOptions& options = {});
CRESSET_API Tensor sparse_bsc_tensor(const Tensor& ccol_indices, const Tensor& row_indices, const Tensor& values, IntArrayRef size,
                                     const TensorOptions& options = {});
CRESSET_API Tensor sparse_bsc_tensor(const Tensor& ccol_indices, const Tensor& row_indices, const Tensor& values,
                                     const TensorOptions& options = {});
/// The layout is options'.
CRESSET_API Tensor sparse_compressed_tensor(const Tensor& compressed_indices, const Tensor& plain_indices, const Tensor& values,
                                            IntArrayRef size, const TensorOptions& options);
CRESSET_API Tensor sparse_compressed_tensor(const Tensor& compressed_indices, const Tensor& plain_indices, const Tensor& values,
                                            const TensorOptions& options);
CRESSET_API Tensor hspmm(const Tensor& mat1, const Tensor& mat2);
CRESSET_API Tensor _sparse_mm(const Tensor& sparse, const Tensor& dense);
CRESSET_API Tensor _sparse_mm(const Tensor& sparse, const Tensor& dense, std::string_view reduce);
CRESSET_API Tensor _sparse_sum(const Tensor& self);
CRESSET_API Tensor _sparse_sum(const Tensor& self, ScalarType dtype);
CRESSET_API Tensor _sparse_sum(const Tensor& self, IntArrayRef dim);
CRESSET_API Tensor _sparse_sum(const Tensor& self, IntArrayRef dim, ScalarType dtype);
CRESSET_API Tensor _sparse_softmax(const Tensor& self, int64_t dim, std::optional<ScalarType> dtype = std::nullopt);
CRESSET_API Tensor _sparse_log_softmax(const Tensor& self, int64_t dim, std::optional<ScalarType> dtype = std::nullopt);
CRESSET_API Tensor sparse_sampled_addmm(const Tensor& self, const Tensor& mat1, const Tensor& mat2, const Scalar& beta = 1,
                                        const Scalar& alpha = 1);
CRESSET_API Tensor smm(const Tensor& self, const Tensor& mat2);
CRESSET_API Tensor sspaddmm(const Tensor& self, const Tensor& mat1, const Tensor& mat2, const Scalar& beta = 1, const Scalar& alpha = 1);

/// Whole numbers of a quantized type that stand for (number - zero point) scale.
CRESSET_API Tensor quantize_per_tensor(const Tensor& self, double scale, int64_t zero_point, ScalarType dtype);
CRESSET_API Tensor quantize_per_channel(const Tensor& self, const Tensor& scales, const Tensor& zero_points, int64_t axis,
                                        ScalarType dtype);
CRESSET_API Tensor quantize_per_tensor_dynamic(const Tensor& self, ScalarType dtype, bool reduce_range);
CRESSET_API Tensor dequantize(const Tensor& self);
CRESSET_API Tensor fake_quantize_per_tensor_affine(const Tensor& self, double scale, int64_t zero_point, int64_t quant_min,
                                                   int64_t quant_max);
CRESSET_API Tensor fake_quantize_per_tensor_affine(const Tensor& self, const Tensor& scale, const Tensor& zero_point, int64_t quant_min,
                                                   int64_t quant_max);
CRESSET_API Tensor fake_quantize_per_channel_affine(const Tensor& self, const Tensor& scale, const Tensor& zero_point, int64_t axis,
                                                    int64_t quant_min, int64_t quant_max);

/// Several tensors at once, and parameters in tensors.
CRESSET_API std::vector<Tensor> dequantize(TensorList tensors);
CRESSET_API Tensor quantize_per_tensor(const Tensor& self, const Tensor& scale, const Tensor& zero_point, ScalarType dtype);
CRESSET_API std::vector<Tensor> quantize_per_tensor(TensorList tensors, const Tensor& scales, const Tensor& zero_points, ScalarType dtype);

/// Questions for quantized tensors, which are methods too.
CRESSET_API Tensor int_repr(const Tensor& self);
CRESSET_API double q_scale(const Tensor& self);
CRESSET_API int64_t q_zero_point(const Tensor& self);
CRESSET_API Tensor q_per_channel_scales(const Tensor& self);
CRESSET_API Tensor q_per_channel_zero_points(const Tensor& self);
CRESSET_API int64_t q_per_channel_axis(const Tensor& self);

/// Quantized tensors of whole numbers, and such whose numbers are anything; the type is options'.
CRESSET_API Tensor _make_per_tensor_quantized_tensor(const Tensor& self, double scale, int64_t zero_point);
CRESSET_API Tensor _make_per_channel_quantized_tensor(const Tensor& self, const Tensor& scale, const Tensor& zero_point, int64_t axis);
CRESSET_API Tensor _empty_affine_quantized(IntArrayRef size, const TensorOptions& options = {}, double scale = 1, int64_t zero_point = 0,
                                           std::optional<MemoryFormat> memory_format = MemoryFormat::Contiguous);
CRESSET_API Tensor _empty_per_channel_affine_quantized(IntArrayRef size, const Tensor& scales, const Tensor& zero_points, int64_t axis,
                                                       const TensorOptions& options = {},
                                                       std::optional<MemoryFormat> memory_format = MemoryFormat::Contiguous);
CRESSET_API Tensor empty_quantized(IntArrayRef size, const Tensor& qtensor, const TensorOptions& options = {},
                                   std::optional<MemoryFormat> memory_format = std::nullopt);

/// Of quantized tensors.
CRESSET_API Tensor quantized_batch_norm(const Tensor& input, const std::optional<Tensor>& weight, const std::optional<Tensor>& bias,
                                        const Tensor& mean, const Tensor& var, double eps, double output_scale, int64_t output_zero_point);
CRESSET_API Tensor quantized_max_pool1d(const Tensor& self, IntArrayRef kernel_size, IntArrayRef stride = {}, IntArrayRef padding = 0,
                                        IntArrayRef dilation = 1, bool ceil_mode = false);
CRESSET_API Tensor quantized_max_pool2d(const Tensor& self, IntArrayRef kernel_size, IntArrayRef stride = {}, IntArrayRef padding = 0,
                                        IntArrayRef dilation = 1, bool ceil_mode = false);
CRESSET_API Tensor quantized_max_pool3d(const Tensor& self, IntArrayRef kernel_size, IntArrayRef stride = {}, IntArrayRef padding = 0,
                                        IntArrayRef dilation = 1, bool ceil_mode = false);
CRESSET_API Tensor _saturate_weight_to_fp16(const Tensor& weight);

/// Rounding as if quantized, with where nothing was clamped, with gradients of scale and zero point, and with a range that is observed.
CRESSET_API std::tuple<Tensor, Tensor> fake_quantize_per_tensor_affine_cachemask(const Tensor& self, double scale, int64_t zero_point,
                                                                                 int64_t quant_min, int64_t quant_max);
CRESSET_API std::tuple<Tensor, Tensor> _fake_quantize_per_tensor_affine_cachemask_tensor_qparams(const Tensor& self, const Tensor& scale,
                                                                                                 const Tensor& zero_point,
                                                                                                 const Tensor& fake_quant_enabled,
                                                                                                 int64_t quant_min, int64_t quant_max);
CRESSET_API std::tuple<Tensor, Tensor> fake_quantize_per_channel_affine_cachemask(const Tensor& self, const Tensor& scale,
                                                                                  const Tensor& zero_point, int64_t axis, int64_t quant_min,
                                                                                  int64_t quant_max);
CRESSET_API Tensor fake_quantize_per_tensor_affine_cachemask_backward(const Tensor& grad, const Tensor& mask);
CRESSET_API Tensor fake_quantize_per_channel_affine_cachemask_backward(const Tensor& grad, const Tensor& mask);
CRESSET_API Tensor _fake_quantize_learnable_per_tensor_affine(const Tensor& self, const Tensor& scale, const Tensor& zero_point,
                                                              int64_t quant_min, int64_t quant_max, double grad_factor = 1);
CRESSET_API Tensor _fake_quantize_learnable_per_channel_affine(const Tensor& self, const Tensor& scale, const Tensor& zero_point,
                                                               int64_t axis, int64_t quant_min, int64_t quant_max, double grad_factor = 1);
CRESSET_API Tensor fused_moving_avg_obs_fake_quant(const Tensor& self, const Tensor& observer_on, const Tensor& fake_quant_on,
                                                   Tensor& running_min, Tensor& running_max, Tensor& scale, Tensor& zero_point,
                                                   double averaging_const, int64_t quant_min, int64_t quant_max, int64_t ch_axis,
                                                   bool per_row_fake_quant = false, bool symmetric_quant = false);

/// Copies of the parts of sparse tensors.
CRESSET_API Tensor _indices_copy(const Tensor& self);
CRESSET_API Tensor _values_copy(const Tensor& self);
CRESSET_API Tensor indices_copy(const Tensor& self);
CRESSET_API Tensor values_copy(const Tensor& self);
CRESSET_API Tensor crow_indices_copy(const Tensor& self);
CRESSET_API Tensor col_indices_copy(const Tensor& self);
CRESSET_API Tensor ccol_indices_copy(const Tensor& self);
CRESSET_API Tensor row_indices_copy(const Tensor& self);

/// Exclusive or of the elements' bits, as uint64.
CRESSET_API Tensor hash_tensor(const Tensor& self, IntArrayRef dim = {}, bool keepdim = false, int64_t mode = 0);

/// Parts of attention and of pruning.
CRESSET_API Tensor _masked_softmax(const Tensor& self, const Tensor& mask, std::optional<int64_t> dim = std::nullopt,
                                   std::optional<int64_t> mask_type = std::nullopt);
CRESSET_API std::tuple<Tensor, Tensor, Tensor> _transform_bias_rescale_qkv(const Tensor& qkv, const Tensor& qkv_bias, int64_t num_heads);
CRESSET_API std::tuple<Tensor, Tensor> _rowwise_prune(const Tensor& weight, const Tensor& mask, ScalarType compressed_indices_dtype);
CRESSET_API Tensor _grouped_mm(const Tensor& self, const Tensor& mat2, const std::optional<Tensor>& offs = std::nullopt,
                               const std::optional<Tensor>& bias = std::nullopt, std::optional<ScalarType> out_dtype = std::nullopt);

namespace detail {
/// Defines these operators; Python's bindings set it. Null without Python.
CRESSET_API extern void (*define_python_operators)();
}  // namespace detail

}  // namespace cresset
