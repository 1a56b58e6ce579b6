// Whether first gradients of leaves must be laid out as the leaves are (torch.autograd.enforce_grad_layout_policy).
#pragma once

#include <cresset/base/macros.h>

namespace cresset::autograd {

/// For this thread: on unless it was switched off.
CRESSET_API bool is_gradient_layout_enforced();
CRESSET_API void set_gradient_layout_enforced(bool on);

}  // namespace cresset::autograd
