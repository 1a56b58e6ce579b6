// Gradients of tables that only some rows have a part in.
#pragma once

#include <cresset/core/tensor.h>

namespace cresset::ops {

/// A sparse tensor with `rows` rows: those at `indices` (any sizes) are the terms (the same sizes, and one dimension more), without the row
/// padding_idx. NotImplementedError in programs without the Python package, which sparse tensors belong to; scaling is not supported.
Tensor sparse_rows(const Tensor& terms, const Tensor& indices, int64_t rows, int64_t padding_idx, bool scale_by_frequency);

}  // namespace cresset::ops
