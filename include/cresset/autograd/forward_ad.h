// Forward mode: tensors that carry a tangent ("dual tensors") while a level is open.
#pragma once

#include <utility>

#include <cresset/core/tensor.h>

namespace cresset::autograd::forward_ad {

/// Opens the level; gives its number, 0. Raises when one is open already.
CRESSET_API int64_t enter_dual_level();
/// Closes it: every tangent made since is dropped. Raises when `level` is not the open one.
CRESSET_API void exit_dual_level(int64_t level = -1);
/// -1 when no level is open.
CRESSET_API int64_t current_level();

/// A level for a scope, unless it is closed before.
class CRESSET_API DualLevel {
 public:
  DualLevel() : level_(enter_dual_level()) {}
  ~DualLevel();
  DualLevel(const DualLevel&) = delete;

 private:
  int64_t level_;
};

/// A differentiable view of primal that carries the tangent. Both floating or complex, of one size; primal must not have a tangent.
CRESSET_API Tensor make_dual(const Tensor& primal, const Tensor& tangent, int64_t level = -1);
/// The primal as a view without tangent, and the tangent (undefined when there is none).
CRESSET_API std::pair<Tensor, Tensor> unpack_dual(const Tensor& t, int64_t level = -1);
/// The tangent of a tensor, undefined when it has none.
CRESSET_API Tensor tangent(const Tensor& t);
/// Gives t this very tangent, where its layout allows, though others see it.
CRESSET_API void keep_tangent(const Tensor& t, const Tensor& tangent);
/// A differentiable (for backward) view of t without tangent.
CRESSET_API Tensor primal(const Tensor& t);

}  // namespace cresset::autograd::forward_ad
