// Functions of sparse and quantized tensors, whose kernels are Python's.
#pragma once

#include <cresset_compat/namespaces.h>

#include <cresset/ops/python_operators.h>

namespace at {
using cresset::_empty_affine_quantized;
using cresset::_empty_per_channel_affine_quantized;
using cresset::_fake_quantize_learnable_per_channel_affine;
using cresset::_fake_quantize_learnable_per_tensor_affine;
using cresset::_fake_quantize_per_tensor_affine_cachemask_tensor_qparams;
using cresset::_grouped_mm;
using cresset::_indices_copy;
using cresset::_make_per_channel_quantized_tensor;
using cresset::_make_per_tensor_quantized_tensor;
using cresset::_masked_softmax;
using cresset::_rowwise_prune;
using cresset::_saturate_weight_to_fp16;
using cresset::_sparse_log_softmax;
using cresset::_sparse_mm;
using cresset::_sparse_softmax;
using cresset::_sparse_sum;
using cresset::_transform_bias_rescale_qkv;
using cresset::_values_copy;
using cresset::ccol_indices_copy;
using cresset::col_indices_copy;
using cresset::crow_indices_copy;
using cresset::dequantize;
using cresset::empty_quantized;
using cresset::fake_quantize_per_channel_affine;
using cresset::fake_quantize_per_channel_affine_cachemask;
using cresset::fake_quantize_per_channel_affine_cachemask_backward;
using cresset::fake_quantize_per_tensor_affine;
using cresset::fake_quantize_per_tensor_affine_cachemask;
using cresset::fake_quantize_per_tensor_affine_cachemask_backward;
using cresset::fused_moving_avg_obs_fake_quant;
using cresset::hash_tensor;
using cresset::hspmm;
using cresset::indices_copy;
using cresset::int_repr;
using cresset::q_per_channel_axis;
using cresset::q_per_channel_scales;
using cresset::q_per_channel_zero_points;
using cresset::q_scale;
using cresset::q_zero_point;
using cresset::quantize_per_channel;
using cresset::quantize_per_tensor;
using cresset::quantize_per_tensor_dynamic;
using cresset::quantized_batch_norm;
using cresset::quantized_max_pool1d;
using cresset::quantized_max_pool2d;
using cresset::quantized_max_pool3d;
using cresset::row_indices_copy;
using cresset::smm;
using cresset::sparse_bsc_tensor;
using cresset::sparse_bsr_tensor;
using cresset::sparse_compressed_tensor;
using cresset::sparse_coo_tensor;
using cresset::sparse_csc_tensor;
using cresset::sparse_csr_tensor;
using cresset::sparse_sampled_addmm;
using cresset::sspaddmm;
using cresset::values_copy;
}  // namespace at
