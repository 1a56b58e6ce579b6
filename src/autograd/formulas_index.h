// Gradient helpers of the index and embedding families.
#pragma once

#include <cresset/core/tensor.h>

#include <string_view>
#include <tuple>

namespace cresset::autograd::formulas {

/// Zeros of the given sizes to which grad is added at the indexed positions.
Tensor index_backward(const Tensor& grad, IntArrayRef sizes, OptionalTensorList indices);
Tensor index_put_self_backward(const Tensor& grad, OptionalTensorList indices, bool accumulate);
Tensor index_put_values_backward(const Tensor& grad, OptionalTensorList indices, IntArrayRef sizes);
Tensor gather_backward(const Tensor& grad, IntArrayRef sizes, int64_t dim, const Tensor& index);
/// gather, with zeros where `sizes` (of scatter's source) go beyond the index.
Tensor gather_padded(const Tensor& grad, int64_t dim, const Tensor& index, IntArrayRef sizes);
Tensor index_add_source_backward(const Tensor& grad, int64_t dim, const Tensor& index, IntArrayRef sizes, const Scalar& alpha);
Tensor index_fill_value_backward(const Tensor& grad, int64_t dim, const Tensor& index);
std::tuple<Tensor, Tensor> scatter_reduce_backward(const Tensor& grad, const Tensor& self, int64_t dim, const Tensor& index,
                                                   const Tensor& src, std::string_view reduce, bool include_self, const Tensor& result);
std::tuple<Tensor, Tensor> index_reduce_backward(const Tensor& grad, const Tensor& self, int64_t dim, const Tensor& index,
                                                 const Tensor& source, std::string_view reduce, bool include_self, const Tensor& result);
Tensor scatter_reduce_jvp(const Tensor& self, const Tensor& self_t, int64_t dim, const Tensor& index, const Tensor& src,
                          const Tensor& src_t, std::string_view reduce, bool include_self, const Tensor& result);
Tensor index_reduce_jvp(const Tensor& self, const Tensor& self_t, int64_t dim, const Tensor& index, const Tensor& source,
                        const Tensor& source_t, std::string_view reduce, bool include_self, const Tensor& result);
Tensor take_backward(const Tensor& grad, IntArrayRef sizes, const Tensor& index);
Tensor put_self_backward(const Tensor& grad, const Tensor& index, bool accumulate);
Tensor masked_select_backward(const Tensor& grad, IntArrayRef sizes, const Tensor& mask);
Tensor masked_scatter_self_backward(const Tensor& grad, const Tensor& mask, IntArrayRef sizes);
Tensor embedding_backward(const Tensor& grad, const Tensor& indices, int64_t num_weights, int64_t padding_idx, bool scale_grad_by_freq,
                          bool sparse);
Tensor embedding_dense_double_backward(const Tensor& grad, const Tensor& indices, int64_t padding_idx, int64_t num_weights,
                                       bool scale_grad_by_freq);

}  // namespace cresset::autograd::formulas
