// cpu_fallback: runs any operator on the CPU for a backend that has no kernel of its own for it.
//
//   CRESSET_LIBRARY_IMPL(_, PrivateUse1, m) { m.fallback(CppFunction::makeFromBoxedFunction<&cresset::cpu_fallback>()); }
#pragma once

#include <cresset/dispatch/dispatcher.h>

namespace cresset {

/// Takes the operator's arguments from the stack, runs it on CPU copies and leaves the results on the arguments' device.
/// Tensors inside lists and optionals move as well, undefined tensors stay undefined, mutated and out arguments are
/// written back, and a result that is a mutated argument is that very tensor. The backend must be able to copy from
/// and to the CPU (`_copy_from`) and to allocate (`empty.memory_format`, `empty_strided`).
CRESSET_API void cpu_fallback(const OperatorHandle& op, Stack* stack);

/// How often the fallback ran since the last reset, for each operator, and the bytes it moved.
struct CpuFallbackCount {
  std::string op;
  int64_t calls;
  int64_t bytes;
};
/// Sorted by bytes, most first.
CRESSET_API std::vector<CpuFallbackCount> cpu_fallback_counts();
CRESSET_API void reset_cpu_fallback_counts();

}  // namespace cresset
