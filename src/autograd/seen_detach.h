// What saved outputs and first gradients are taken off the graph by: modes that see operators see that, as in PyTorch.
#pragma once

#include <cresset/autograd/variable.h>
#include <cresset/core/dispatch_key_set.h>

namespace cresset::autograd {

/// Whether a mode of this thread sees operators on t. (A wrapper's class sees by itself that t is copied.)
inline bool is_seen_by_modes(const Tensor& t) {
  return CRESSET_UNLIKELY(cresset::impl::tls_is_dispatch_key_included(DispatchKey::Python)) && !t.key_set().has(DispatchKey::Python);
}

/// t without history, sharing memory and version; by aten::detach where a mode sees it.
Tensor detach_seen_by_modes(const Tensor& t);

}  // namespace cresset::autograd
