// Names of dispatch keys and the thread-local key sets.
#include <cresset/core/dispatch_key_set.h>

#include <array>
#include <cctype>

#include <cresset/base/warn_always.h>

#include "base/hint.h"
#include "base/thread_state.h"

namespace cresset {
namespace detail {
thread_local constinit LocalDispatchKeyState local_keys{};

namespace {
const bool keys_carried = [] {
  register_thread_state([] { return local_keys.included; }, [](uint64_t w) { local_keys.included = w; });
  register_thread_state([] { return local_keys.excluded; }, [](uint64_t w) { local_keys.excluded = w; });
  return true;
}();
}  // namespace
}  // namespace detail

namespace {

constexpr const char* kNames[] = {
    "Undefined",
#define CRESSET_KEY(Name) #Name,
    CRESSET_FORALL_FUNCTIONALITIES(CRESSET_KEY) CRESSET_FORALL_BACKENDS(CRESSET_KEY)
#undef CRESSET_KEY
#define CRESSET_KEY(Name) "Autograd" #Name,
        CRESSET_FORALL_BACKENDS(CRESSET_KEY)
#undef CRESSET_KEY
#define CRESSET_KEY(Name) "Autocast" #Name,
            CRESSET_FORALL_BACKENDS(CRESSET_KEY)
#undef CRESSET_KEY
                "Autograd",
    "CompositeImplicitAutograd",
    "FuncTorchBatchedDecomposition",
    "CompositeExplicitAutograd",
    "CompositeExplicitAutogradNonFunctional",
};
static_assert(std::size(kNames) == static_cast<std::size_t>(DispatchKey::NumKeys));

// In the order of the keys from FirstForeign on.
constexpr const char* kForeignNames[] = {
    "HIP",
    "XPU",
    "MPS",
    "HPU",
    "MTIA",
    "Lazy",
    "IPU",
    "VE",
    "AutogradHIP",
    "AutogradXPU",
    "AutogradMPS",
    "AutogradHPU",
    "AutogradMTIA",
    "AutogradLazy",
    "AutogradIPU",
    "AutogradVE",
    "AutocastHIP",
    "AutocastXPU",
    "AutocastMPS",
    "AutocastHPU",
    "AutocastMTIA",
    "AutocastLazy",
    "AutocastIPU",
    "AutocastVE",
    "Quantized",
    "QuantizedCPU",
    "QuantizedCUDA",
    "QuantizedMeta",
    "QuantizedXPU",
    "QuantizedPrivateUse1",
    "Sparse",
    "SparseCPU",
    "SparseCUDA",
    "SparseMeta",
    "SparseXPU",
    "SparsePrivateUse1",
    "SparseCsr",
    "SparseCsrCPU",
    "SparseCsrCUDA",
    "SparseCsrMeta",
    "SparseCsrXPU",
    "SparseCsrPrivateUse1",
    "MkldnnCPU",
    "NestedTensor",
    "NestedTensorCPU",
    "NestedTensorCUDA",
    "NestedTensorPrivateUse1",
};
constexpr auto kFirstForeign = static_cast<std::size_t>(DispatchKey::FirstForeign);
static_assert(kFirstForeign + std::size(kForeignNames) - 1 == static_cast<std::size_t>(DispatchKey::NestedTensorPrivateUse1));

bool equal_ignoring_case(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i)
    if (std::tolower(static_cast<unsigned char>(a[i])) != std::tolower(static_cast<unsigned char>(b[i]))) return false;
  return true;
}

}  // namespace

const char* toString(DispatchKey k) {
  const auto i = static_cast<std::size_t>(k);
  if (i < std::size(kNames)) return kNames[i];
  return i >= kFirstForeign && i - kFirstForeign < std::size(kForeignNames) ? kForeignNames[i - kFirstForeign] : "UNKNOWN_TENSOR_TYPE_ID";
}

DispatchKey parseDispatchKey(std::string_view name) {
  for (std::size_t i = 0; i < std::size(kNames); ++i)
    if (name == kNames[i]) return static_cast<DispatchKey>(i);
  if (name == "Math") return DispatchKey::Math;
  if (name == "DefaultBackend") return DispatchKey::DefaultBackend;
  if (name == "CatchAll") return DispatchKey::CatchAll;
  if (name == "Autocast") return DispatchKey::Autocast;
  // A registered device name stands for its backend key, with Autograd or Autocast in front for those.
  for (const auto& [prefix, first] : {std::pair<std::string_view, int>{"Autograd", detail::kFirstAutograd},
                                      {"Autocast", detail::kFirstAutocast},
                                      {"", detail::kFirstDense}})
    if (name.size() > prefix.size() && name.substr(0, prefix.size()) == prefix)
      for (int t = static_cast<int>(DeviceType::PrivateUse1); t < kDeviceTypeCount; ++t)
        if (equal_ignoring_case(name.substr(prefix.size()), DeviceTypeName(static_cast<DeviceType>(t))))
          return static_cast<DispatchKey>(first + t);
  for (std::size_t i = 0; i < std::size(kForeignNames); ++i)
    if (name == kForeignNames[i]) return static_cast<DispatchKey>(kFirstForeign + i);
  detail::raise_with_hint(str("could not parse dispatch key: ", name),
                          "Keys are CPU, Meta, PrivateUse1, Autograd, CompositeImplicitAutograd, …");
}

std::string toString(DispatchKeySet ks) {
  std::string out;
  const auto put = [&](DispatchKey k) { out += (out.empty() ? "" : ", ") + std::string(toString(k)); };
  for (int f = 1; f <= kFunctionalityCount; ++f) {
    const auto functionality = static_cast<DispatchKey>(f);
    if (!ks.has(functionality)) continue;
    if (!detail::is_per_backend(functionality) || !ks.has_backend()) {
      put(functionality);
      continue;
    }
    for (int b = 0; b < kBackendCount; ++b)
      if (ks.raw_repr() >> b & 1) put(static_cast<DispatchKey>(detail::runtime_offset(functionality) + b));
  }
  return "DispatchKeySet(" + out + ")";
}

namespace impl {
namespace {
void set_bit(uint64_t& word, DispatchKey k, bool on, bool with_backend) {
  uint64_t bits = DispatchKeySet(k).raw_repr();
  if (!with_backend) bits &= ~DispatchKeySet::kBackendMask;
  word = on ? word | bits : word & ~bits;
}
}  // namespace
void tls_set_dispatch_key_included(DispatchKey k, bool on) { set_bit(detail::local_keys.included, k, on, true); }
void tls_set_dispatch_key_excluded(DispatchKey k, bool on) { set_bit(detail::local_keys.excluded, k, on, false); }
}  // namespace impl

AutoNonVariableTypeMode::AutoNonVariableTypeMode(bool) {
  CRESSET_WARN_FIRST(
      "AutoNonVariableTypeMode is deprecated. Kernels use AutoDispatchBelowADInplaceOrView, and programs that only run models "
      "InferenceMode.");
}
}  // namespace cresset
