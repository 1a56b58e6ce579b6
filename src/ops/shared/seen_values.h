// Whether an operator may look at values to check them.
#pragma once

#include <cresset/core/tensor_base.h>

namespace cresset::ops {

/// No: meta tensors have no values, those under vmap belong to no single example, and a wrapper's class may have nothing but sizes.
inline bool has_seen_values(const TensorBase& t) {
  const DispatchKeySet keys = t.key_set();
  return !t.is_meta() && !keys.has(DispatchKey::FuncTorchBatched) && (t.has_storage() || !keys.has(DispatchKey::Python));
}

}  // namespace cresset::ops
