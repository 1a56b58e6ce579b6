// What happens at the Autograd keys to an operator that has a device kernel but no autograd kernel.
#pragma once

#include <cresset/dispatch/dispatcher.h>

namespace cresset::autograd {

enum class AutogradFallbackMode {
  Nothing,  // as if the key were not there: results are not connected to the graph
  Warn,     // results require grad; backward warns and passes no gradient on
  Error,    // results require grad; backward raises, naming the operator
};

/// For all threads; Warn unless set.
CRESSET_API void set_autograd_fallback_mode(AutogradFallbackMode mode);
CRESSET_API AutogradFallbackMode get_autograd_fallback_mode();

/// A boxed kernel for Autograd keys: the operator runs, and backward through it raises in every mode.
CRESSET_API void autograd_not_implemented(const OperatorHandle& op, DispatchKeySet ks, Stack* stack);
/// A boxed kernel for ADInplaceOrView, of operators that write inputs or give views of the first one, as their schema says: the operator
/// runs, versions of written tensors go up, and a result (or the tensors of a list) becomes a view of the first input. Raises for schemas
/// with several results that are views, and for views of other inputs.
CRESSET_API void autograd_not_implemented_inplace_or_view(const OperatorHandle& op, DispatchKeySet ks, Stack* stack);

}  // namespace cresset::autograd
