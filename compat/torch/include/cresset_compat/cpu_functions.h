// at::cpu, apart from native.h: sources have namespaces of that name themselves.
#pragma once

#include <cresset_compat/native.h>

namespace at::cpu {
#define CRESSET_COMPAT_ON_CPU_(name)                       \
  template <class... A>                                    \
  decltype(auto) name(A&&... arguments) {                  \
    const at::detail::OnCpu guard;                         \
    return ::cresset::name(std::forward<A>(arguments)...); \
  }
inline Tensor as_strided_symint(const Tensor& self, c10::SymIntArrayRef size, c10::SymIntArrayRef stride,
                                std::optional<c10::SymInt> offset = std::nullopt) {
  return cresset::detail::alias_with_sizes_and_strides(self, C10_AS_INTARRAYREF_SLOW(size), C10_AS_INTARRAYREF_SLOW(stride),
                                                       offset ? offset->expect_int() : self.storage_offset());
}
using at::native::set_;
template <class... A>
Tensor empty(A&&... arguments) {
  const at::detail::OnCpu guard;
  return ::cresset::empty(std::forward<A>(arguments)...);
}
}  // namespace at::cpu
