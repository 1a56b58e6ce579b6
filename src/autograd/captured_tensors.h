// Function transforms of derivatives refuse in-place operations on tensors that their function captured: the change would be
// seen outside while its derivative is lost.
#pragma once

#include <vector>

#include <cresset/core/tensor.h>

namespace cresset::autograd::transforms {

/// The function of a transform begins to run in this thread. It may write the memory of its inputs, and what it makes itself.
CRESSET_API void enter_function(const std::vector<Tensor>& inputs);
/// It has ended. What it made belongs to the function around it.
CRESSET_API void leave_function();
/// Does this thread run the function of any transform, vmap included?
CRESSET_API bool inside_function();
/// What requires_grad_() says there.
[[noreturn]] CRESSET_API void refuse_requires_grad();
/// What retain_grad() says there.
[[noreturn]] CRESSET_API void refuse_retain_grad();

}  // namespace cresset::autograd::transforms
