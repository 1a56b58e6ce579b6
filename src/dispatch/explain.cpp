// explain: why a call goes where it goes, and the error of a call that goes nowhere.
#include "base/hint.h"
#include "dispatch/dispatcher_state.h"
#include "dispatch/missing.h"

namespace cresset {
namespace {

std::string keys_text(DispatchKeySet ks) {
  std::string s = toString(ks);
  return s.substr(sizeof("DispatchKeySet(") - 1, s.size() - sizeof("DispatchKeySet("));
}

// The backends that serve an operator, named or through a composite.
std::string backends_with_kernels(const OperatorHandle& op) {
  std::string out;
  for (int b = 0; b < kBackendCount; ++b) {
    const DispatchKey k = backendKey(static_cast<DeviceType>(b));
    if (op.hasComputedKernelForDispatchKey(k) && !op.isKernelFallthroughKernel(k))
      out += (out.empty() ? "" : ", ") + std::string(toString(k));
  }
  return out.empty() ? "none" : out;
}

// The last runtime key a call with these keys could have reached: the backend, which is what users know.
std::string backend_text(DispatchKeySet ks) {
  if (!ks.has_backend()) return toString(ks.highestPriorityTypeId());
  const auto t = static_cast<DeviceType>(ks.highestBackendIndex());
  const std::string key = toString(backendKey(t)), name = DeviceTypeName(t);
  const bool has_own_name = t >= kPrivateUse1 && name.rfind("privateuse", 0) != 0;
  return has_own_name ? name : key;
}

// The kernels of the CPU are a library of their own (docs/design/libraries.md), which a program may have been linked without.
std::string without_kernels(const OperatorHandle& op, DispatchKey backend) {
  if (backend != DispatchKey::CPU || op.operator_name().ns() != "aten") return "";
  const auto known = Dispatcher::singleton().findOp({"aten::fill_", "Scalar"});
  if (known && known->hasComputedKernelForDispatchKey(DispatchKey::CPU)) return "";
  return "\nNo kernels of the CPU are in this program: link libcresset_cpu as well (CMake: Cresset::cresset or Cresset::cpu; pkg-config: "
         "cresset; by hand: -Wl,--no-as-needed -lcresset_cpu).";
}

}  // namespace

namespace impl {
void raise_missing_kernel(const OperatorHandle& op, DispatchKeySet ks) {
  const std::string name = op.operator_name().str();
  CRESSET_CHECK_NOT_IMPLEMENTED(op.hasSchema(), "Could not run '", name,
                                "': the operator is not defined (any more). Define it with CRESSET_LIBRARY or load the library that does.");
  const DispatchKeySet usable =
      ks & DispatchKeySet::from_raw_repr(op.entry()->masks[static_cast<std::size_t>(ks.highestBackendIndex())].load());
  const DispatchKey wanted = usable.highestPriorityTypeId();
  CRESSET_CHECK_NOT_IMPLEMENTED(wanted != DispatchKey::Undefined || ks.has_backend(),
                                "There were no tensor arguments to this function (e.g., you passed an empty list of Tensors), but no "
                                "fallback function is registered for schema ",
                                name, ".\nKernels exist for: ", backends_with_kernels(op),
                                ".\nGive it a tensor argument, or register a BackendSelect or CompositeExplicitAutograd kernel.");
  const std::string& module = op.entry()->schema->python_module;
  const std::string from_module = module.empty() ? "" : ".\nMore are registered by the Python module " + module + ": import it first";
  if (wanted == DispatchKey::Undefined ? ks.highestPriorityBackendTypeId() == DispatchKey::Meta : wanted == DispatchKey::Meta)
    detail::raise_with_hint<NotImplementedError>(
        name +
            ": attempted to run this operator with Meta tensors, but there was no fake impl or Meta kernel registered. You may have run "
            "into this message while using an operator with PT2 compilation APIs (torch.compile/torch.export); in order to use this "
            "operator with those APIs you'll need to add a fake impl. Please see the following for next steps:  "
            "https://pytorch.org/tutorials/advanced/custom_ops_landing_page.html",
        str("Kernels exist for: ", backends_with_kernels(op), from_module, ".\nRegister one with CRESSET_LIBRARY_IMPL(",
            op.operator_name().ns(), ", Meta, m) or library.register_fake. `cresset explain ", name, "` shows the table."));
  const bool layer = wanted != DispatchKey::Undefined && toFunctionalityKey(wanted) != DispatchKey::Dense;
  CRESSET_THROW(NotImplementedError, "Could not run '", name, "' with arguments from the '",
                layer ? std::string(toString(wanted)) : backend_text(ks),
                "' backend: no kernel is registered for it.\nKernels exist for: ", backends_with_kernels(op), from_module,
                ".\nRegister one with CRESSET_LIBRARY_IMPL(", op.operator_name().ns(), ", ",
                layer ? toString(wanted) : toString(ks.highestPriorityBackendTypeId()),
                ", m), or move the tensors to a backend that has one. `cresset explain ", name, "` shows the table.",
                layer ? "" : without_kernels(op, ks.highestPriorityBackendTypeId()));
}
}  // namespace impl

std::string Dispatcher::explain(const OperatorHandle& op, const Stack& arguments) const {
  std::string out = "call of " + op.schema().str() + "\n";
  const auto& declared = op.schema().arguments();
  CRESSET_CHECK(arguments.size() == declared.size(), "explain: ", declared.size(), " arguments were required; ", arguments.size(),
                " were given.");
  // Which argument brings the backend that wins?
  DispatchKeySet from_arguments;
  const auto describe = [&](const std::string& name, const Tensor& t) {
    from_arguments |= t.key_set();
    out += "  argument '" + name + "' (" + to_string(t) + ") carries " + keys_text(t.key_set()) + "\n";
  };
  for (std::size_t i = 0; i < declared.size(); ++i) {
    if (arguments[i].isTensor() && arguments[i].toTensor().defined()) describe(declared[i].name, arguments[i].toTensor());
    if (arguments[i].isList()) {
      std::size_t k = 0;
      for (const IValue& e : arguments[i].toListRef()) {
        if (e.isTensor()) describe(declared[i].name + "[" + std::to_string(k) + "]", e.toTensor());
        ++k;
      }
    }
  }
  const LocalDispatchKeySet local = impl::tls_local_dispatch_key_set();
  if (const DispatchKeySet added = local.included.remove(DispatchKey::BackendSelect); !added.empty())
    out += "  this thread adds " + keys_text(added) + "\n";
  if (!(local.excluded - autocast_dispatch_keyset).empty())
    out += "  this thread leaves out " + keys_text(local.excluded - autocast_dispatch_keyset) + "\n";

  std::lock_guard lock(state_->mutex);
  DispatchKeySet ks = impl::with_local_keys(from_arguments);
  const uint64_t mask = op.entry()->masks[static_cast<std::size_t>(ks.highestBackendIndex())].load();
  ks = ks & DispatchKeySet::from_raw_repr(mask);
  // Layers from the outermost to the kernel that computes.
  for (;;) {
    const DispatchKey key = ks.highestPriorityTypeId();
    const impl::ComputedEntry e = impl::compute_entry(*op.entry(), key, state_->fallbacks);
    const bool last = key == DispatchKey::Undefined || impl::is_backend_key(key) || std::string_view(e.tag) == "math kernel" || !e.kernel;
    out += std::string(last ? "  runs   " : "  through ") + toString(key) + ": " + (e.kernel ? e.kernel->debug + " " : "") + "[" + e.tag +
           "]\n";
    if (last) break;
    ks = ks.remove(key);
  }
  return out;
}

}  // namespace cresset
