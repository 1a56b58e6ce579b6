// Special kernels: fallthrough, missing, ambiguous, and the adapter for older schemas.
#include <cresset/dispatch/dispatcher.h>

#include <cxxabi.h>

#include <cstdlib>

#include "dispatch/missing.h"

namespace cresset {

std::string CppSignature::name() const {
  int status = 0;
  char* text = abi::__cxa_demangle(index_.name(), nullptr, nullptr, &status);
  std::string out = status == 0 && text ? text : index_.name();
  std::free(text);
  return out;
}

void impl::check_results(const Stack& stack, std::size_t expected) {
  CRESSET_CHECK(stack.size() == expected, "a boxed kernel must leave ",
                expected == 1 ? "one result" : std::to_string(expected) + " results", " on the stack; it left ", stack.size(), ".");
}

impl::StackCall::StackCall(const KernelFunction& kernel, const OperatorHandle& op, DispatchKeySet ks, const PushArgument* push,
                           const void* const* values, std::size_t count) {
  stack.reserve(count + 1);
  for (std::size_t i = 0; i < count; ++i) push[i](stack, values[i]);
  kernel.callBoxed(op, ks, &stack);
}
impl::StackCall::~StackCall() = default;

KernelFunction KernelFunction::makeFallthrough() {
  return KernelFunction(
      [](OperatorKernel*, const OperatorHandle& op, DispatchKeySet ks, Stack* stack, void*) {
        // Reached only by a call that read the mask just before another thread made this key fall through. The mask is
        // changed before the entry, so looking again skips the key.
        const KernelFunction& next = op.entry()->lookup(ks);
        CRESSET_INTERNAL_ASSERT(!next.isFallthrough(), op.operator_name(), ": the key of a fallthrough kernel is not skipped.");
        next.callBoxed(op, ks, stack);
      },
      nullptr, nullptr, Kind::Fallthrough);
}

KernelFunction KernelFunction::makeAmbiguousAutogradOther() {
  return KernelFunction(
      [](OperatorKernel*, const OperatorHandle& op, DispatchKeySet, Stack*, void*) {
        CRESSET_THROW(
            Error, op.operator_name(),
            " has kernels registered to both CompositeImplicitAutograd and a backend mapped to AutogradOther. "
            "This makes the backend kernel unreachable; the dispatcher will always prefer the CompositeImplicitAutograd lowering. "
            "Register an autograd kernel for the backend or drop the composite one.");
      },
      nullptr, nullptr, Kind::AmbiguousAutogradOther);
}

KernelFunction KernelFunction::makeMissing() {
  return KernelFunction(
      [](OperatorKernel*, const OperatorHandle& op, DispatchKeySet ks, Stack*, void*) { impl::raise_missing_kernel(op, ks); }, nullptr,
      nullptr, Kind::Missing);
}

namespace {
/// Calls a kernel made for the first `arity` arguments of a schema that has grown since.
struct OlderSchemaAdapter final : OperatorKernel {
  OlderSchemaAdapter(KernelFunction k, std::size_t n) : kernel(std::move(k)), arity(n) {}
  KernelFunction kernel;
  std::size_t arity;

  void operator()(const OperatorHandle& op, DispatchKeySet ks, Stack* stack) {
    const std::vector<Argument>& arguments = op.schema().arguments();
    const std::size_t extra = arguments.size() - arity;
    for (std::size_t i = arity; i < arguments.size(); ++i)
      CRESSET_CHECK(peek(*stack, i, arguments.size()) == *arguments[i].default_value, op.operator_name(),
                    ": the kernel was registered against an older schema and knows nothing of '", arguments[i].name, "'; only its default ",
                    *arguments[i].default_value, " is accepted. Register a kernel for ", op.schema(), ".");
    cresset::drop(*stack, extra);
    kernel.callBoxed(op, ks, stack);
  }
};
}  // namespace

KernelFunction KernelFunction::adapt_to_longer_schema(std::size_t own_arity) const {
  return makeFromBoxedFunctor(make_intrusive<OlderSchemaAdapter>(*this, own_arity));
}

}  // namespace cresset
