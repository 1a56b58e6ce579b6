// cpu_fallback: runs any operator on the CPU for a backend that has no kernel of its own for it.
//
// Backends with a table (cresset/backend.h) have it from the start. Others ask for it:
//   CRESSET_LIBRARY_IMPL(_, PrivateUse1, m) { m.fallback(CppFunction::makeFromBoxedFunction<&cresset::cpu_fallback>()); }
#pragma once

#include <tuple>
#include <utility>

#include <cresset/dispatch/dispatcher.h>

namespace cresset {

/// Takes the operator's arguments from the stack, runs it on CPU copies and leaves the results on the arguments' device.
/// Tensors inside lists and optionals move as well, undefined tensors stay undefined, mutated and out arguments are
/// written back, and a result that is a mutated argument is that very tensor. Generators of the device become their CPU
/// streams. The backend must be able to copy from and to the CPU (`_copy_from`) and to allocate (`empty.memory_format`,
/// `empty_strided`).
CRESSET_API void cpu_fallback(const OperatorHandle& op, Stack* stack);

namespace detail {
template <class R>
struct Results {
  static R of(Stack& stack) { return impl::Ret<R>::pop_from(stack.back()); }
};
template <>
struct Results<void> {
  static void of(Stack&) {}
};
template <class... R>
struct Results<std::tuple<R...>> {
  static std::tuple<R...> of(Stack& stack) { return of(stack, std::index_sequence_for<R...>()); }
  template <std::size_t... I>
  static std::tuple<R...> of(Stack& stack, std::index_sequence<I...>) {
    const std::size_t first = stack.size() - sizeof...(R);
    return {impl::Ret<R>::pop_from(stack[first + I])...};
  }
};
template <class R>
R results_of(Stack& stack) {
  return Results<R>::of(stack);
}
}  // namespace detail

/// Runs one operator on the CPU from inside a kernel of the device, for the cases that the kernel leaves out:
/// `return call_cpu_fallback<Tensor>("aten::neg", self);`, or `std::tuple<Tensor, Tensor>` for an operator with several results, or `void`.
/// The arguments are all those of the schema, in its order.
template <class R, class... A>
R call_cpu_fallback(const char* name, const A&... arguments) {
  const OperatorName op = parse_operator_name(name);
  Stack stack;
  (stack.emplace_back(arguments), ...);
  cpu_fallback(Dispatcher::singleton().findSchemaOrThrow(op.name.c_str(), op.overload_name.c_str()), &stack);
  return detail::results_of<R>(stack);
}

/// What a call without a kernel of the device does.
enum class CpuFallbackMode : uint8_t {
  Allow,
  WarnOnce,  // allowed, with one warning an operator
  Forbid,    // raises NotImplementedError that names the operator and the device
  Budget,    // allowed until so many calls or bytes have been spent, then raises
};
struct CpuFallbackBudget {
  int64_t calls = -1;  // -1: any number
  int64_t bytes = -1;
};
/// For all threads. The environment variable CRESSET_CPU_FALLBACK (allow, warn, forbid, budget:CALLS) sets the mode at start.
/// Setting a budget starts it anew.
CRESSET_API void set_cpu_fallback_mode(CpuFallbackMode mode, CpuFallbackBudget budget = {});
CRESSET_API CpuFallbackMode cpu_fallback_mode();
CRESSET_API CpuFallbackBudget cpu_fallback_budget();

/// Something else than an operator's fallback went through the CPU: a copy or a fill inside of a device that its backend cannot do there.
/// To be called before it happens, with the operator it is counted under. Raises where the fallback is forbidden or its budget spent.
CRESSET_API void count_round_trip(const OperatorHandle& op, Device device, int64_t bytes);

/// How often the fallback ran since the last reset, for each operator, the bytes it moved and the time it took.
struct CpuFallbackCount {
  std::string op;
  int64_t calls;
  int64_t bytes;
  int64_t nanoseconds;
};
/// Sorted by time, most first.
CRESSET_API std::vector<CpuFallbackCount> cpu_fallback_counts();
CRESSET_API void reset_cpu_fallback_counts();
/// The costliest operators as a table: a line each with calls, bytes and time.
CRESSET_API std::string cpu_fallback_report(std::size_t lines = 10);

}  // namespace cresset
