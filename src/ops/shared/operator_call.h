// How the generated functions call their operators. An operator's function is a jump to the code of its signature: some 680
// signatures, not 4,650 functions, hold the code of a call. It is compiled once for each (ops/shared/signature_code.h).
#pragma once

#include "dispatch/operator_tables.h"

namespace cresset::ops {

/// The code of a call; the operator comes last, so that the arguments stay in their registers.
template <class Sig>
struct OperatorCall;
template <class R, class... A>
struct OperatorCall<R(A...)> {
  static R call(A... args, LazyOperator& op);
  static R redispatch(DispatchKeySet ks, A... args, LazyOperator& op);
};

/// The same for tables of schemas. Defined, with OperatorCall, in the generated signatures_*.cpp (ops/shared/signature_code.h).
template <class Sig>
struct SignatureCodeOf {
  static const tables::SignatureCode value;
};

/// What a function that makes a leaf does with options.requires_grad(), which kernels never see.
inline Tensor as_leaf(Tensor t, const TensorOptions& options) {
  if (options.requires_grad()) t.requires_grad_();
  return t;
}
/// Tensor.to(options) makes no leaf.
CRESSET_API void check_no_requires_grad(const TensorOptions& options);

}  // namespace cresset::ops
