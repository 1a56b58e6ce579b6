// Autocast: the state of each thread, the cache of cast parameters, and one boxed kernel for each policy.
#include <cresset/autograd/autocast.h>

#include <array>
#include <memory>
#include <unordered_map>

#include <cresset/core/grad_mode.h>
#include <cresset/core/tensor_impl.h>
#include <cresset/dispatch/library.h>
#include <cresset/ops/functions_copy.h>

#include "autograd/autocast_kernels.h"

namespace cresset::autocast {
namespace {

struct CachedCast {
  weak_intrusive_ptr<TensorImpl> source;  // keeps the address from being used again, so that it can be the key
  uint32_t version;                       // of the source; a parameter that was written to is cast again
  Tensor cast;
};

// Device types one after the other: those with slots, then names that no tensor can be on, for which programs may switch autocast all the
// same.
constexpr std::size_t kFirstName = static_cast<std::size_t>(DeviceType::HIP);
constexpr std::size_t kPlaces = kBackendCount + static_cast<std::size_t>(DeviceType::COMPILE_TIME_MAX_DEVICE_TYPES) - kFirstName;
static_assert(kPlaces <= 64);
bool has_slot(DeviceType device) { return device < DeviceType::HIP; }
std::size_t place_of(DeviceType device) {
  const auto i = static_cast<std::size_t>(device);
  const std::size_t place = has_slot(device) ? i : i - kFirstName + kBackendCount;
  const bool known = has_slot(device) || device == kXPU || device == kMPS || device == kHPU || device == kMTIA || device == kIPU;
  CRESSET_CHECK(known, "unknown device type for autocast in get_autocast_dispatch_key_from_device_type: ", DeviceTypeName(device));
  return place;
}

struct State {
  uint64_t enabled = 0;  // a bit for each place
  int nesting = 0;
  bool cache_enabled = true;
  std::array<std::optional<ScalarType>, kPlaces> dtypes;  // what was set
  std::unordered_map<const TensorImpl*, CachedCast> cache;
};

State& state() {
  thread_local const auto s = std::make_unique<State>();  // on the heap: the library's thread-local memory is small
  return *s;
}

uint64_t bit_of(DeviceType device) { return uint64_t{1} << place_of(device); }

/// Calls f(tensor) for every tensor of the stack's values, those in lists included; what it returns takes the tensor's place.
template <class F>
void replace_tensors(IValue& v, const F& f) {
  if (v.isTensor()) {
    const Tensor t = v.toTensor();
    if (Tensor r = f(t); !r.is_same(t)) v = IValue(std::move(r));
  } else if (v.isList()) {
    // Lists may be shared with the caller: one that changes is copied.
    const std::vector<IValue>& elements = v.toListRef();
    bool any = false;
    for (const IValue& e : elements) any |= e.isTensor();
    if (!any) return;
    std::vector<IValue> copy = elements;
    for (IValue& e : copy) replace_tensors(e, f);
    v = IValue(make_intrusive<ivalue::ListImpl>(std::move(copy), v.toListImpl().element_type));
  }
}

struct AutocastKernel final : OperatorKernel {
  AutocastKernel(Policy p, DeviceType d) : policy(p), device(d) {}

  void operator()(const OperatorHandle& op, DispatchKeySet, Stack* stack) const {
    const impl::ExcludeDispatchKeyGuard guard(autocast_dispatch_keyset);
    // The key is one for all devices: another one's autocast may have brought the call here.
    if (is_autocast_enabled(device)) cast(op, *stack);
    op.callBoxed(stack);
  }

 private:
  void cast(const OperatorHandle& op, Stack& stack) const {
    const std::size_t n = op.schema().arguments().size();
    IValue* first = stack.data() + (stack.size() - n);
    ScalarType to = policy == Policy::Float32 ? ScalarType::Float : get_autocast_dtype(device);
    if (policy == Policy::Promote) {
      for (std::size_t i = 0; i < n; ++i)
        replace_tensors(first[i], [&](const Tensor& t) {
          if (is_eligible(t, device)) to = promoteTypes(to, t.scalar_type());
          return t;
        });
    }
    for (std::size_t i = 0; i < n; ++i) replace_tensors(first[i], [&](const Tensor& t) { return cached_cast(to, t, device); });
  }

  Policy policy;
  DeviceType device;
};

}  // namespace

KernelFunction make_kernel(Policy policy, DeviceType device) {
  return KernelFunction::makeFromBoxedFunctor(make_intrusive<AutocastKernel>(policy, device));
}

bool is_autocast_enabled(DeviceType device) { return state().enabled & bit_of(device); }
bool is_any_autocast_enabled() { return state().enabled != 0; }

void set_autocast_enabled(DeviceType device, bool enabled) {
  if (enabled && device != kCPU && has_slot(device)) install_policies(device);
  uint64_t& bits = state().enabled;
  bits = enabled ? bits | bit_of(device) : bits & ~bit_of(device);
  cresset::impl::tls_set_dispatch_key_excluded(DispatchKey::AutocastFunctionality, bits == 0);
}

ScalarType get_autocast_dtype(DeviceType device) {
  if (const auto& set = state().dtypes[place_of(device)]) return *set;
  const bool brain = device == kCPU || device == kXLA || device == kHPU || device == kMAIA;
  return default_dtype_of_backend(device).value_or(brain ? ScalarType::BFloat16 : ScalarType::Half);
}
void set_autocast_dtype(DeviceType device, ScalarType dtype) { state().dtypes[place_of(device)] = dtype; }

bool is_autocast_cache_enabled() { return state().cache_enabled; }
void set_autocast_cache_enabled(bool enabled) { state().cache_enabled = enabled; }
void clear_cache() { state().cache.clear(); }
int increment_nesting() { return ++state().nesting; }
int decrement_nesting() { return --state().nesting; }

bool is_eligible(const Tensor& t, DeviceType device) {
  return t.defined() && t.device().type() == device && t.is_floating_point() && t.scalar_type() != ScalarType::Double;
}

Tensor cached_cast(ScalarType to, const Tensor& t, DeviceType device) {
  if (!is_eligible(t, device) || t.scalar_type() == to) return t;
  State& s = state();
  const bool parameter = s.cache_enabled && GradMode::is_enabled() && to == get_autocast_dtype(device) &&
                         t.scalar_type() == ScalarType::Float && t.requires_grad() && t.is_leaf() && !t.is_view();
  if (!parameter) return t.to(to);
  TensorImpl* impl = t.unsafeGetTensorImpl();
  const auto found = s.cache.find(impl);
  if (found != s.cache.end() && found->second.version == impl->version()) return found->second.cast;
  Tensor cast = t.to(to);
  s.cache.insert_or_assign(impl, CachedCast{weak_intrusive_ptr<TensorImpl>(t.getIntrusivePtr()), impl->version(), cast});
  return cast;
}

namespace {

// What scripts run in front of the block of `with autocast(...)`, and behind it with what was before.
std::vector<int64_t> enter(const std::string& device_type, int64_t dtype, bool enabled) {
  const DeviceType device = Device(device_type).type();
  const auto fast = static_cast<ScalarType>(dtype);
  const std::vector<int64_t> before = {is_autocast_enabled(device), static_cast<int64_t>(get_autocast_dtype(device))};
  if (enabled && device == kCUDA) {
    warn("CUDA is not available or torch_xla is imported. Disabling autocast.");
    enabled = false;
  } else if (enabled && device == kCPU && fast != ScalarType::BFloat16 && fast != ScalarType::Half) {
    warn("In CPU autocast, but the target dtype is not supported. Disabling autocast.");
    enabled = false;
  }
  set_autocast_enabled(device, enabled);
  set_autocast_dtype(device, fast);
  increment_nesting();
  return before;
}

void leave(const std::string& device_type, const std::vector<int64_t>& before) {
  CRESSET_CHECK(before.size() == 2, "autocast::leave: the two numbers that autocast::enter gave were required, but ", before.size(),
                " were given.");
  const DeviceType device = Device(device_type).type();
  if (decrement_nesting() == 0) clear_cache();
  set_autocast_enabled(device, before[0] != 0);
  set_autocast_dtype(device, static_cast<ScalarType>(before[1]));
}

int64_t dtype_of(const std::string& device_type) { return static_cast<int64_t>(get_autocast_dtype(Device(device_type).type())); }

CRESSET_LIBRARY_FRAGMENT(autocast, m) {
  m.def("enter(str device_type, int dtype, bool enabled) -> int[]", CRESSET_FN(enter));
  m.def("leave(str device_type, int[] before) -> ()", CRESSET_FN(leave));
  m.def("dtype(str device_type) -> int", CRESSET_FN(dtype_of));
}

}  // namespace
}  // namespace cresset::autocast
