// Which memory belongs to the function that a transform runs: what was allocated since it began, and its inputs.
#include "autograd/captured_tensors.h"

#include <mutex>
#include <new>
#include <unordered_set>

#include <cresset/base/fork.h>
#include <cresset/core/backend.h>
#include <cresset/dispatch/library.h>

#include "batching/batched_tensor.h"
#include "core/memory_watch.h"

namespace cresset::autograd::transforms {
namespace {

/// Blocks of one running function.
using Blocks = std::unordered_set<const void*>;
thread_local std::vector<Blocks> functions;

void note_memory(const void* data, int64_t bytes, Device) noexcept {
  if (functions.empty()) return;
  if (bytes > 0) {
    try {
      functions.back().insert(data);
    } catch (const std::bad_alloc&) {
      // Writes into a block that is not noted are refused, as if it had been there before.
    }
  } else {
    for (Blocks& blocks : functions) blocks.erase(data);
  }
}

// The watcher is there while any thread runs such a function.
ForkSafe<std::mutex> watching_mutex;
int watching = 0;
void watch(int change) {
  std::lock_guard lock(watching_mutex);
  watching += change;
  cresset::detail::transform_memory_watcher = watching > 0 ? &note_memory : nullptr;
}

/// The block of a tensor whose allocations are heard of, or null.
const void* block_of(const Tensor& given) {
  const Tensor t = batching::physical(given);
  if (!t.defined() || !t.has_storage() || !(t.is_cpu() || is_backend(t.device().type()))) return nullptr;
  return t.storage().data();
}

/// `foo_(Tensor(a!) self, …) -> Tensor(a!)`
bool is_in_place(const FunctionSchema& schema) {
  if (schema.arguments().empty() || schema.returns().size() != 1) return false;
  const auto &self = schema.arguments()[0].alias, &result = schema.returns()[0].alias;
  return self && result && self->is_write && !schema.arguments()[0].kwarg_only && *self == *result;
}

/// From now on the operator goes past this layer.
void skip_from_now_on(const OperatorHandle& op) {
  static ForkSafe<std::mutex> mutex;
  static auto& kept = *new std::vector<RegistrationHandleRAII>;  // for the life of the process
  std::lock_guard lock(mutex);
  if (op.isKernelFallthroughKernel(DispatchKey::FuncTorchDynamicLayerFrontMode)) return;
  kept.push_back(Dispatcher::singleton().registerImpl(op.operator_name(), DispatchKey::FuncTorchDynamicLayerFrontMode,
                                                      KernelFunction::makeFallthrough(), std::nullopt, nullptr,
                                                      str("registered at ", __FILE__, ":", __LINE__)));
}

/// At the key FuncTorchDynamicLayerFrontMode, which threads have while they run the function of a transform.
void refuse_captured(const OperatorHandle& op, DispatchKeySet ks, Stack* stack) {
  const FunctionSchema& schema = op.schema();
  if (is_in_place(schema)) {
    const IValue& self = (*stack)[stack->size() - schema.arguments().size()];
    const void* block = functions.empty() || !self.isTensor() ? nullptr : block_of(self.toTensor());
    CRESSET_CHECK(!block || functions.back().count(block),
                  "During a grad (vjp, jvp, grad, etc) transform, the function provided attempted to call in-place operation (",
                  op.operator_name(),
                  ") that would mutate a captured Tensor. This is not supported; please rewrite the function being transformed to "
                  "explicitly accept the mutated Tensor(s) as inputs.");
  } else if (op.operator_name().ns() == "aten") {
    skip_from_now_on(op);
  }
  op.redispatchBoxed(ks & DispatchKeySet(DispatchKeySet::FULL_AFTER, DispatchKey::FuncTorchDynamicLayerFrontMode), stack);
}

void refresh_key() { cresset::impl::tls_set_dispatch_key_included(DispatchKey::FuncTorchDynamicLayerFrontMode, !functions.empty()); }

}  // namespace

void enter_function(const std::vector<Tensor>& inputs) {
  Blocks blocks;
  for (const Tensor& t : inputs)
    if (const void* block = block_of(t)) blocks.insert(block);
  functions.push_back(std::move(blocks));
  watch(1);
  cresset::detail::watch_small_storages();
  refresh_key();
}

void leave_function() {
  CRESSET_CHECK(!functions.empty(), "no function of a transform is running.");
  Blocks made = std::move(functions.back());
  functions.pop_back();
  if (!functions.empty()) functions.back().merge(made);
  watch(-1);
  refresh_key();
}

bool inside_function() { return !functions.empty() || !batching::levels().empty(); }

namespace {
[[noreturn]] void refuse(std::string_view method, std::string_view by_whom) {
  CRESSET_THROW(
      Error, "You are attempting to call Tensor.", method, "()", by_whom,
      " inside of a function being transformed by a functorch transform. This is unsupported, please attempt to use the functorch "
      "transforms (e.g. grad, vjp, jacrev, jacfwd, hessian) or call ",
      method, "() outside of a function being transformed instead.");
}
}  // namespace

void refuse_requires_grad() { refuse("requires_grad_", " (or perhaps using torch.autograd.functional.* APIs)"); }
void refuse_retain_grad() { refuse("retain_grad", ""); }

CRESSET_LIBRARY_IMPL(_, FuncTorchDynamicLayerFrontMode, m) { m.fallback(CppFunction::makeFromBoxedFunction<&refuse_captured>()); }

}  // namespace cresset::autograd::transforms
