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

namespace detail {
/// Defines these operators; Python's bindings set it. Null without Python.
CRESSET_API extern void (*define_python_operators)();
}  // namespace detail

}  // namespace cresset
