// Checks and elements of the operators on lists of tensors. The loops are generated from the rows of foreach.toml.
#pragma once

#include <optional>
#include <vector>

#include <cresset/core/tensor.h>

namespace cresset::ops {

void check_foreach_counts(std::size_t first, std::size_t other);
void check_foreach_scalars(std::size_t first, std::size_t scalars);
void check_foreach_some(std::size_t count);

inline void check_foreach_list(TensorList first, TensorList other) { check_foreach_counts(first.size(), other.size()); }
inline void check_foreach_list(TensorList first, ArrayRef<Scalar> scalars) { check_foreach_scalars(first.size(), scalars.size()); }

/// All lists have as many elements as the first one, and at least one.
template <class... Lists>
void check_foreach(TensorList first, const Lists&... others) {
  (check_foreach_list(first, others), ...);
  check_foreach_some(first.size());
}

/// Does autograd record an operator on these? Then its out form cannot be used.
template <class... Tensors>
bool is_recorded(const Tensors&... tensors) {
  return GradMode::is_enabled() && (tensors.requires_grad() || ...);
}

/// A tensor that stands beside every element has no dimensions.
void check_foreach_scalar(const Tensor& scalar);

bool foreach_uniform(TensorList first);
bool foreach_fits(TensorList first, TensorList other);
bool foreach_fits(TensorList first, ArrayRef<Scalar> scalars);
/// Is the first member of these lists refused if any is? So it is for numbers of one type on the CPU, of equal sizes in all lists.
template <class... Lists>
bool foreach_alike(TensorList first, const Lists&... others) {
  return first.size() <= 1 || (foreach_uniform(first) && (foreach_fits(first, others) && ...));
}
/// Raises for a result that its member cannot take in place.
void foreach_check(const char* op, TensorList results, TensorList self);

/// Raises for a src that its member of self cannot take.
void check_foreach_copy(TensorList self, TensorList src);

/// The numbers of a vector, one for each of `count` tensors.
std::vector<Scalar> foreach_scalars(const Tensor& scalars, std::size_t count);

// One element of _foreach_max, _foreach_norm and _foreach_powsum.
Tensor foreach_max(const Tensor& self);
Tensor foreach_norm(const Tensor& self, const Scalar& ord, std::optional<ScalarType> dtype);
Tensor foreach_powsum(const Tensor& self, const Scalar& ord, std::optional<ScalarType> dtype);

}  // namespace cresset::ops
