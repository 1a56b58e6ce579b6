// Functions that gradient formulas of the operator table may call. The general ones are below (formulas.cpp); those of
// one family are declared in formulas_<family>.h and defined in formulas_<family>.cpp, namespace cresset::autograd::formulas.
#pragma once

#include <array>
#include <optional>
#include <tuple>
#include <vector>

#include <cresset/core/tensor.h>

#if __has_include("autograd/formulas_activation.h")
#include "autograd/formulas_activation.h"
#endif
#if __has_include("autograd/formulas_arith.h")
#include "autograd/formulas_arith.h"
#endif
#if __has_include("autograd/formulas_compare.h")
#include "autograd/formulas_compare.h"
#endif
#if __has_include("autograd/formulas_concat.h")
#include "autograd/formulas_concat.h"
#endif
#if __has_include("autograd/formulas_conv.h")
#include "autograd/formulas_conv.h"
#endif
#if __has_include("autograd/formulas_copy.h")
#include "autograd/formulas_copy.h"
#endif
#if __has_include("autograd/formulas_creation.h")
#include "autograd/formulas_creation.h"
#endif
#if __has_include("autograd/formulas_embedding.h")
#include "autograd/formulas_embedding.h"
#endif
#if __has_include("autograd/formulas_index.h")
#include "autograd/formulas_index.h"
#endif
#if __has_include("autograd/formulas_linalg.h")
#include "autograd/formulas_linalg.h"
#endif
#if __has_include("autograd/formulas_loss.h")
#include "autograd/formulas_loss.h"
#endif
#if __has_include("autograd/formulas_math.h")
#include "autograd/formulas_math.h"
#endif
#if __has_include("autograd/formulas_matmul.h")
#include "autograd/formulas_matmul.h"
#endif
#if __has_include("autograd/formulas_norm.h")
#include "autograd/formulas_norm.h"
#endif
#if __has_include("autograd/formulas_pointwise.h")
#include "autograd/formulas_pointwise.h"
#endif
#if __has_include("autograd/formulas_pool.h")
#include "autograd/formulas_pool.h"
#endif
#if __has_include("autograd/formulas_random.h")
#include "autograd/formulas_random.h"
#endif
#if __has_include("autograd/formulas_reduce.h")
#include "autograd/formulas_reduce.h"
#endif
#if __has_include("autograd/formulas_scan.h")
#include "autograd/formulas_scan.h"
#endif
#if __has_include("autograd/formulas_softmax.h")
#include "autograd/formulas_softmax.h"
#endif
#if __has_include("autograd/formulas_sort.h")
#include "autograd/formulas_sort.h"
#endif
#if __has_include("autograd/formulas_view.h")
#include "autograd/formulas_view.h"
#endif

namespace cresset::autograd::formulas {

/// Gradient of a sum over dimensions (all of them when dims is unset or empty): grad spread over sizes.
Tensor sum_backward(const Tensor& grad, IntArrayRef sizes, OptionalIntArrayRef dims, bool keepdim);
/// grad with size-1 dimensions where a reduction without keepdim removed them; `sizes` are the reduced tensor's.
Tensor restore_reduced_dims(const Tensor& grad, IntArrayRef sizes, OptionalIntArrayRef dims, bool keepdim);

}  // namespace cresset::autograd::formulas
