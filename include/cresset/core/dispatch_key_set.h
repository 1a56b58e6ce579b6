// DispatchKey and DispatchKeySet: which layers and which backend a call goes through.
//
// A key is a functionality (Dense, ADInplaceOrView, Autograd…), for three of them joined with a backend (CPU, Meta,
// PrivateUse1…). A set stores backends in the low 20 bits and functionalities above; the runtime keys of a set are the
// product for the per-backend functionalities. Higher functionality bits are called first.
#pragma once

#include <bit>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include <cresset/core/device.h>

namespace cresset {

// clang-format off
/// Backends in ascending priority, in the order of DeviceType.
#define CRESSET_FORALL_BACKENDS(_)                                                                               \
  _(CPU) _(CUDA) _(XLA) _(Meta) _(PrivateUse1) _(PrivateUse2) _(PrivateUse3) _(PrivateUse4) _(PrivateUse5)      \
  _(PrivateUse6) _(PrivateUse7) _(PrivateUse8) _(PrivateUse9) _(PrivateUse10) _(PrivateUse11) _(PrivateUse12)   \
  _(PrivateUse13) _(PrivateUse14) _(PrivateUse15) _(PrivateUse16)

/// Functionalities in ascending priority. Dense, AutogradFunctionality and AutocastFunctionality exist per backend.
#define CRESSET_FORALL_FUNCTIONALITIES(_)                                                                        \
  _(Dense) _(FPGA) _(Vulkan) _(Metal) _(CustomRNGKeyId) _(CustomLayout1) _(CustomLayout2) _(BackendSelect) _(Python) _(Fake)      \
  _(FuncTorchDynamicLayerBackMode) _(Functionalize) _(Named) _(Conjugate) _(Negative) _(ZeroTensor)             \
  _(ADInplaceOrView) _(AutogradOther) _(AutogradFunctionality) _(AutogradNestedTensor) _(Tracer)                \
  _(AutocastFunctionality) _(FuncTorchBatched) _(FuncTorchVmapMode) _(Batched) _(VmapMode)                      \
  _(FuncTorchGradWrapper) _(PythonTLSSnapshot) _(FuncTorchDynamicLayerFrontMode) _(PreDispatch)                 \
  _(PythonDispatcher) _(TESTING_ONLY_GenericWrapper) _(TESTING_ONLY_GenericMode)

enum class DispatchKey : uint16_t {
  Undefined = 0,
  CatchAll = Undefined,
#define CRESSET_KEY(Name) Name,
  CRESSET_FORALL_FUNCTIONALITIES(CRESSET_KEY)
#undef CRESSET_KEY
#define CRESSET_KEY(Name) Name,
  CRESSET_FORALL_BACKENDS(CRESSET_KEY)
#undef CRESSET_KEY
#define CRESSET_KEY(Name) Autograd##Name,
  CRESSET_FORALL_BACKENDS(CRESSET_KEY)
#undef CRESSET_KEY
#define CRESSET_KEY(Name) Autocast##Name,
  CRESSET_FORALL_BACKENDS(CRESSET_KEY)
#undef CRESSET_KEY
  Autograd,                                 // alias: every autograd key
  CompositeImplicitAutograd,                // alias: backends and autograd keys; differentiable through its parts
  FuncTorchBatchedDecomposition,            // alias
  CompositeExplicitAutograd,                // alias: every backend
  CompositeExplicitAutogradNonFunctional,   // alias: every dense backend, for defaults that rely on another form
  NumKeys,
  EndOfRuntimeKeys = Autograd,
  Math = CompositeImplicitAutograd,         // older spellings
  DefaultBackend = CompositeExplicitAutograd,
  Autocast = AutocastCPU,
  MAIA = PrivateUse16,                      // DeviceType::MAIA
  AutogradMAIA = AutogradPrivateUse16,
  AutocastMAIA = AutocastPrivateUse16,
  // Names of devices and layouts that cannot exist here. Kernels for them may be registered and are never called.
  FirstForeign = NumKeys + 1,
  HIP = FirstForeign, XPU, MPS, HPU, MTIA, Lazy, IPU, VE,
  AutogradHIP, AutogradXPU, AutogradMPS, AutogradHPU, AutogradMTIA, AutogradLazy, AutogradIPU, AutogradVE,
  AutocastHIP, AutocastXPU, AutocastMPS, AutocastHPU, AutocastMTIA, AutocastLazy, AutocastIPU, AutocastVE,
  Quantized, QuantizedCPU, QuantizedCUDA, QuantizedMeta, QuantizedXPU, QuantizedPrivateUse1,
  Sparse, SparseCPU, SparseCUDA, SparseMeta, SparseXPU, SparsePrivateUse1,
  SparseCsr, SparseCsrCPU, SparseCsrCUDA, SparseCsrMeta, SparseCsrXPU, SparseCsrPrivateUse1,
  MkldnnCPU, NestedTensor, NestedTensorCPU, NestedTensorCUDA, NestedTensorPrivateUse1,
};
// clang-format on

constexpr bool isForeignDispatchKey(DispatchKey k) { return k >= DispatchKey::FirstForeign; }
inline constexpr int kBackendCount = kDeviceTypeCount;
inline constexpr int kFunctionalityCount = static_cast<int>(DispatchKey::CPU) - 1;
inline constexpr int kRuntimeKeyCount = static_cast<int>(DispatchKey::EndOfRuntimeKeys);
static_assert(kBackendCount + kFunctionalityCount <= 64);

namespace detail {
constexpr int key_index(DispatchKey k) { return static_cast<int>(k); }
inline constexpr int kFirstDense = key_index(DispatchKey::CPU), kFirstAutograd = key_index(DispatchKey::AutogradCPU),
                     kFirstAutocast = key_index(DispatchKey::AutocastCPU);
constexpr bool is_per_backend(DispatchKey functionality) {
  return functionality == DispatchKey::Dense || functionality == DispatchKey::AutogradFunctionality ||
         functionality == DispatchKey::AutocastFunctionality;
}
/// First runtime index of a functionality.
constexpr int runtime_offset(DispatchKey functionality) {
  return functionality == DispatchKey::Dense                   ? kFirstDense
         : functionality == DispatchKey::AutogradFunctionality ? kFirstAutograd
         : functionality == DispatchKey::AutocastFunctionality ? kFirstAutocast
                                                               : key_index(functionality);
}
}  // namespace detail

constexpr bool isAliasDispatchKey(DispatchKey k) { return k >= DispatchKey::Autograd && k < DispatchKey::NumKeys; }
/// The functionality of a runtime key: Dense for CPU, AutogradFunctionality for AutogradCPU, itself for single keys.
constexpr DispatchKey toFunctionalityKey(DispatchKey k) {
  if (isForeignDispatchKey(k)) return DispatchKey::Undefined;
  const int i = static_cast<int>(k);
  if (i >= detail::kFirstAutocast && i < kRuntimeKeyCount) return DispatchKey::AutocastFunctionality;
  if (i >= detail::kFirstAutograd && i < detail::kFirstAutocast) return DispatchKey::AutogradFunctionality;
  if (i >= detail::kFirstDense && i < detail::kFirstAutograd) return DispatchKey::Dense;
  return k;
}
/// 0-based backend of a per-backend runtime key, -1 otherwise.
constexpr int toBackendIndex(DispatchKey k) {
  const int i = static_cast<int>(k);
  return i >= detail::kFirstDense && i < kRuntimeKeyCount ? (i - detail::kFirstDense) % kBackendCount : -1;
}
namespace detail {
/// The key of a device kind in a group of keys in the order of DeviceType; `foreign` is the group of the kinds without slot.
constexpr DispatchKey key_of_device(int first, DispatchKey foreign, DeviceType t) {
  if (t < DeviceType::HIP) return static_cast<DispatchKey>(first + static_cast<int>(t));
  if (t > DeviceType::VE) return DispatchKey::Undefined;
  return static_cast<DispatchKey>(static_cast<int>(foreign) + static_cast<int>(t) - static_cast<int>(DeviceType::HIP));
}
}  // namespace detail
constexpr DispatchKey backendKey(DeviceType t) { return detail::key_of_device(detail::kFirstDense, DispatchKey::HIP, t); }
constexpr DispatchKey autogradKey(DeviceType t) { return detail::key_of_device(detail::kFirstAutograd, DispatchKey::AutogradHIP, t); }
constexpr DispatchKey autocastKey(DeviceType t) { return detail::key_of_device(detail::kFirstAutocast, DispatchKey::AutocastHIP, t); }

CRESSET_API const char* toString(DispatchKey k);
inline std::string to_string(DispatchKey k) { return toString(k); }
/// Inverse of toString, older spellings and registered device names included; raises `could not parse dispatch key`.
CRESSET_API DispatchKey parseDispatchKey(std::string_view name);

/// A set of dispatch keys, 64 bits.
class DispatchKeySet {
 public:
  enum Full { FULL };
  enum FullAfter { FULL_AFTER };
  enum Raw { RAW };

  constexpr DispatchKeySet() = default;
  constexpr DispatchKeySet(Full) : bits_(kAllBits) {}
  /// Every functionality of lower priority than k's, and every backend.
  constexpr DispatchKeySet(FullAfter, DispatchKey k) : bits_(functionality_bit(toFunctionalityKey(k)) - 1) {}
  constexpr DispatchKeySet(Raw, uint64_t bits) : bits_(bits) {}
  constexpr explicit DispatchKeySet(DispatchKey k) : bits_(bits_of(k)) {}
  constexpr DispatchKeySet(std::initializer_list<DispatchKey> keys) {
    for (DispatchKey k : keys) bits_ |= bits_of(k);
  }

  /// Is k in the set (for per-backend keys: its functionality and its backend)?
  constexpr bool has(DispatchKey k) const {
    return (bits_ & bits_of(k)) == bits_of(k) && k != DispatchKey::Undefined && !isForeignDispatchKey(k);
  }
  constexpr bool has_all(DispatchKeySet s) const { return (bits_ & s.bits_) == s.bits_; }
  constexpr bool has_any(DispatchKeySet s) const { return (bits_ & s.bits_) != 0; }
  constexpr bool isSupersetOf(DispatchKeySet s) const { return has_all(s); }
  constexpr bool empty() const { return bits_ == 0; }
  constexpr DispatchKeySet add(DispatchKey k) const { return {RAW, bits_ | bits_of(k)}; }
  /// Removes k's functionality; backends stay.
  constexpr DispatchKeySet remove(DispatchKey k) const { return {RAW, bits_ & ~functionality_bit(toFunctionalityKey(k))}; }
  constexpr DispatchKeySet remove_backend(DeviceType t) const { return {RAW, bits_ & ~(uint64_t{1} << static_cast<int>(t))}; }
  constexpr uint64_t raw_repr() const { return bits_; }
  static constexpr DispatchKeySet from_raw_repr(uint64_t bits) { return {RAW, bits}; }

  friend constexpr DispatchKeySet operator|(DispatchKeySet a, DispatchKeySet b) { return {RAW, a.bits_ | b.bits_}; }
  friend constexpr DispatchKeySet operator&(DispatchKeySet a, DispatchKeySet b) { return {RAW, a.bits_ & b.bits_}; }
  /// Removes functionalities of b; backends of a stay.
  friend constexpr DispatchKeySet operator-(DispatchKeySet a, DispatchKeySet b) { return {RAW, a.bits_ & ~(b.bits_ & ~kBackendMask)}; }
  friend constexpr DispatchKeySet operator^(DispatchKeySet a, DispatchKeySet b) { return {RAW, a.bits_ ^ b.bits_}; }
  DispatchKeySet& operator|=(DispatchKeySet o) {
    bits_ |= o.bits_;
    return *this;
  }
  friend constexpr bool operator==(DispatchKeySet a, DispatchKeySet b) { return a.bits_ == b.bits_; }

  /// Highest functionality, Undefined when there is none.
  constexpr DispatchKey highestFunctionalityKey() const {
    const int bit = 63 - std::countl_zero(bits_);
    return bits_ == 0 || bit < kBackendCount ? DispatchKey::Undefined : static_cast<DispatchKey>(bit - kBackendCount + 1);
  }
  /// Index of the highest backend, 0 when there is none.
  constexpr int highestBackendIndex() const {
    const uint64_t b = bits_ & kBackendMask;
    return b ? 63 - std::countl_zero(b) : 0;
  }
  constexpr bool has_backend() const { return (bits_ & kBackendMask) != 0; }
  /// The runtime key that is called first.
  constexpr DispatchKey highestPriorityTypeId() const { return static_cast<DispatchKey>(runtime_index()); }
  constexpr DispatchKey highestPriorityBackendTypeId() const {
    return has_backend() ? static_cast<DispatchKey>(detail::kFirstDense + highestBackendIndex()) : DispatchKey::Undefined;
  }
  /// Position of highestPriorityTypeId() in an operator's table.
  constexpr int runtime_index() const {
    const DispatchKey f = highestFunctionalityKey();
    const int offset = detail::runtime_offset(f);
    return detail::is_per_backend(f) ? offset + highestBackendIndex() : offset;
  }

  static constexpr uint64_t kBackendMask = (uint64_t{1} << kBackendCount) - 1;

 private:
  static constexpr uint64_t kAllBits = (uint64_t{1} << (kBackendCount + kFunctionalityCount)) - 1;
  static constexpr uint64_t functionality_bit(DispatchKey f) {
    return f == DispatchKey::Undefined ? 0 : uint64_t{1} << (kBackendCount + static_cast<int>(f) - 1);
  }
  static constexpr uint64_t bits_of(DispatchKey k) {
    if (isAliasDispatchKey(k) || isForeignDispatchKey(k)) return 0;
    const int backend = toBackendIndex(k);
    return functionality_bit(toFunctionalityKey(k)) | (backend >= 0 ? uint64_t{1} << backend : 0);
  }
  uint64_t bits_ = 0;
};

/// "DispatchKeySet(CPU, ADInplaceOrView, AutogradCPU)", lowest priority first.
CRESSET_API std::string toString(DispatchKeySet ks);
inline std::string to_string(DispatchKeySet ks) { return toString(ks); }

/// All keys below Autograd: what an autograd kernel redispatches with.
inline constexpr DispatchKeySet after_autograd_keyset{DispatchKeySet::FULL_AFTER, DispatchKey::AutogradOther};
/// All keys below ADInplaceOrView.
inline constexpr DispatchKeySet after_ADInplaceOrView_keyset{DispatchKeySet::FULL_AFTER, DispatchKey::ADInplaceOrView};
inline constexpr DispatchKeySet autograd_dispatch_keyset{DispatchKey::AutogradOther, DispatchKey::AutogradFunctionality,
                                                         DispatchKey::AutogradNestedTensor};
inline constexpr DispatchKeySet autograd_dispatch_keyset_with_ADInplaceOrView = autograd_dispatch_keyset.add(DispatchKey::ADInplaceOrView);
inline constexpr DispatchKeySet autocast_dispatch_keyset{DispatchKeySet::RAW,
                                                         DispatchKeySet(DispatchKey::AutocastFunctionality).raw_repr()};

/// The keys a dense tensor on a device carries: backend, ADInplaceOrView, Autograd, Autocast.
constexpr DispatchKeySet key_set_for_device(DeviceType t) {
  return DispatchKeySet{backendKey(t), DispatchKey::ADInplaceOrView, autogradKey(t), autocastKey(t)};
}

/// The set that a dense tensor with this backend key carries; any other key stands for itself.
constexpr DispatchKeySet key_set_of_backend(DispatchKey k) {
  return toFunctionalityKey(k) == DispatchKey::Dense ? key_set_for_device(static_cast<DeviceType>(toBackendIndex(k))) : DispatchKeySet(k);
}

/// Thread-local keys added to and removed from every call. BackendSelect is always included (it is a fallthrough for all
/// but factory functions), and ADInplaceOrView outside of inference mode, so that writes to inference tensors, which do not
/// carry it, are refused there; Autocast is excluded until someone asks for it.
struct LocalDispatchKeySet {
  DispatchKeySet included;
  DispatchKeySet excluded;
};

namespace detail {
struct LocalDispatchKeyState {
  uint64_t included = DispatchKeySet{DispatchKey::BackendSelect, DispatchKey::ADInplaceOrView}.raw_repr();
  uint64_t excluded = autocast_dispatch_keyset.raw_repr();
};
#if defined(__GNUC__)
extern CRESSET_API thread_local constinit LocalDispatchKeyState local_keys __attribute__((tls_model("initial-exec")));
#endif
}  // namespace detail

namespace impl {
inline LocalDispatchKeySet tls_local_dispatch_key_set() {
  return {DispatchKeySet::from_raw_repr(detail::local_keys.included), DispatchKeySet::from_raw_repr(detail::local_keys.excluded)};
}
inline bool tls_is_dispatch_key_included(DispatchKey k) { return tls_local_dispatch_key_set().included.has(k); }
inline bool tls_is_dispatch_key_excluded(DispatchKey k) { return tls_local_dispatch_key_set().excluded.has(k); }
CRESSET_API void tls_set_dispatch_key_included(DispatchKey k, bool on);
CRESSET_API void tls_set_dispatch_key_excluded(DispatchKey k, bool on);

/// Adds keys to the thread's excluded set for a scope.
class ExcludeDispatchKeyGuard {
 public:
  explicit ExcludeDispatchKeyGuard(DispatchKeySet ks) : saved_(detail::local_keys.excluded) {
    detail::local_keys.excluded |= ks.raw_repr() & ~DispatchKeySet::kBackendMask;
  }
  explicit ExcludeDispatchKeyGuard(DispatchKey k) : ExcludeDispatchKeyGuard(DispatchKeySet(k)) {}
  ~ExcludeDispatchKeyGuard() { detail::local_keys.excluded = saved_; }
  ExcludeDispatchKeyGuard(const ExcludeDispatchKeyGuard&) = delete;

 private:
  uint64_t saved_;
};
/// Adds keys to the thread's included set for a scope.
class IncludeDispatchKeyGuard {
 public:
  explicit IncludeDispatchKeyGuard(DispatchKeySet ks) : saved_(detail::local_keys.included) {
    detail::local_keys.included |= ks.raw_repr();
  }
  explicit IncludeDispatchKeyGuard(DispatchKey k) : IncludeDispatchKeyGuard(DispatchKeySet(k)) {}
  ~IncludeDispatchKeyGuard() { detail::local_keys.included = saved_; }
  IncludeDispatchKeyGuard(const IncludeDispatchKeyGuard&) = delete;

 private:
  uint64_t saved_;
};
/// Replaces both sets for a scope.
class ForceDispatchKeyGuard {
 public:
  ForceDispatchKeyGuard(DispatchKeySet included, DispatchKeySet excluded) : saved_(detail::local_keys) {
    detail::local_keys = {included.raw_repr(), excluded.raw_repr()};
  }
  explicit ForceDispatchKeyGuard(LocalDispatchKeySet s) : ForceDispatchKeyGuard(s.included, s.excluded) {}
  ~ForceDispatchKeyGuard() { detail::local_keys = saved_; }
  ForceDispatchKeyGuard(const ForceDispatchKeyGuard&) = delete;

 private:
  detail::LocalDispatchKeyState saved_;
};
}  // namespace impl

/// Below autograd for a scope: nothing is recorded, but views and versions are still tracked.
struct AutoDispatchBelowAutograd {
  impl::ExcludeDispatchKeyGuard guard{autograd_dispatch_keyset};
};
/// Below autograd and ADInplaceOrView for a scope: kernels run bare. AutoNonVariableTypeMode is the older name; it warns once.
struct AutoDispatchBelowADInplaceOrView {
  impl::ExcludeDispatchKeyGuard guard{autograd_dispatch_keyset_with_ADInplaceOrView};
};
struct AutoNonVariableTypeMode : AutoDispatchBelowADInplaceOrView {
  CRESSET_API explicit AutoNonVariableTypeMode(bool enabled = true);
};

}  // namespace cresset
