// The precedence rules of the dispatch table.
#include "dispatch/computed_table.h"

namespace cresset::impl {
namespace {

const AnnotatedKernel* registered(const OperatorEntry& op, DispatchKey k) {
  const auto it = op.kernels.find(k);
  return it == op.kernels.end() || it->second.empty() ? nullptr : &it->second.front();
}

// Backends without an autograd key of their own share AutogradOther.
constexpr DispatchKey kAutogradOtherBackends[] = {DispatchKey::FPGA, DispatchKey::Vulkan, DispatchKey::Metal, DispatchKey::CustomLayout1,
                                                  DispatchKey::CustomLayout2};

bool shares_autograd_other(DispatchKey k) {
  for (DispatchKey b : kAutogradOtherBackends)
    if (b == k) return true;
  return false;
}

bool backend_has_kernel(const OperatorEntry& op, DispatchKey autograd_key) {
  if (autograd_key == DispatchKey::AutogradOther) {
    for (DispatchKey b : kAutogradOtherBackends)
      if (registered(op, b)) return true;
    return false;
  }
  const int backend = toBackendIndex(autograd_key);
  return backend >= 0 && registered(op, backendKey(static_cast<DeviceType>(backend)));
}

}  // namespace

bool is_runtime_key(DispatchKey k) { return static_cast<int>(k) < kRuntimeKeyCount && !detail::is_per_backend(k); }
bool is_backend_key(DispatchKey k) {
  return (toFunctionalityKey(k) == DispatchKey::Dense && k != DispatchKey::Dense) || shares_autograd_other(k);
}
bool is_autograd_key(DispatchKey k) {
  return (toFunctionalityKey(k) == DispatchKey::AutogradFunctionality && k != DispatchKey::AutogradFunctionality) ||
         k == DispatchKey::AutogradOther || k == DispatchKey::AutogradNestedTensor;
}

std::vector<DispatchKey> runtime_keys_of(DispatchKey k) {
  if (!isAliasDispatchKey(k)) return {k};
  std::vector<DispatchKey> out;
  for (int i = 0; i < kRuntimeKeyCount; ++i) {
    const auto r = static_cast<DispatchKey>(i);
    if (!is_runtime_key(r)) continue;
    const bool backend = is_backend_key(r) || r == DispatchKey::Undefined;
    const bool covered = k == DispatchKey::Autograd                        ? is_autograd_key(r)
                         : k == DispatchKey::CompositeImplicitAutograd     ? backend || is_autograd_key(r)
                         : k == DispatchKey::FuncTorchBatchedDecomposition ? r == DispatchKey::FuncTorchBatched
                                                                           : backend;
    if (covered) out.push_back(r);
  }
  return out;
}

ComputedEntry compute_entry(const OperatorEntry& op, DispatchKey key, const Fallbacks& fallbacks) {
  if (const auto* k = registered(op, key)) return {k, "kernel"};
  const bool backend = is_backend_key(key) || key == DispatchKey::Undefined, autograd = is_autograd_key(key);
  if (backend) {
    if (toFunctionalityKey(key) == DispatchKey::Dense)
      if (const auto* k = registered(op, DispatchKey::CompositeExplicitAutogradNonFunctional)) return {k, "default backend kernel"};
    if (const auto* k = registered(op, DispatchKey::CompositeExplicitAutograd)) return {k, "default backend kernel"};
  }
  if (backend || autograd)
    if (const auto* k = registered(op, DispatchKey::CompositeImplicitAutograd)) {
      if (key == DispatchKey::AutogradOther && backend_has_kernel(op, key)) return {nullptr, "ambiguous autogradother"};
      const bool own_path = autograd && (backend_has_kernel(op, key) || registered(op, DispatchKey::CompositeExplicitAutograd));
      if (!own_path) return {k, "math kernel"};
    }
  if (autograd)
    if (const auto* k = registered(op, DispatchKey::Autograd)) return {k, "autograd kernel"};
  if (key == DispatchKey::FuncTorchBatched)
    if (const auto* k = registered(op, DispatchKey::FuncTorchBatchedDecomposition)) return {k, "batched decomposition"};
  if (const auto& f = fallbacks[static_cast<std::size_t>(key)]) return {&*f, "backend fallback"};
  return {nullptr, "missing"};
}

}  // namespace cresset::impl
