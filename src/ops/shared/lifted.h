// Tensors that C++ makes of the program's own data, and the modes of Python that are to see them as tensors that exist.
#pragma once

#include <utility>

#include <cresset/core/dispatch_key_set.h>
#include <cresset/dispatch/dispatcher.h>

namespace cresset::ops {

/// Does a mode of Python see the operators of this thread now?
inline bool modes_look() {
  return impl::tls_is_dispatch_key_included(DispatchKey::Python) && !impl::tls_is_dispatch_key_excluded(DispatchKey::Python);
}

/// Hands a fresh tensor to the modes, by aten::lift_fresh; without modes it is given back.
inline Tensor lifted(Tensor t) {
  if (CRESSET_LIKELY(!modes_look())) return t;
  static const OperatorHandle lift = Dispatcher::singleton().findSchemaOrThrow("aten::lift_fresh", "");
  Stack stack{IValue(std::move(t))};
  lift.callBoxed(stack);
  return stack.back().toTensor();
}

}  // namespace cresset::ops
