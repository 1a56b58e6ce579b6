// Everything of the namespace c10 that sources name.
#pragma once

// Sources count on the standard headers that PyTorch's bring along.
#include <algorithm>
#include <cassert>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <set>
#include <sstream>
#include <string>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <variant>
#include <vector>

#include <cresset_compat/names.h>

#include <cresset/ir/symbol.h>

#include <cresset_compat/device_allocator.h>
#include <cresset_compat/guards.h>
#include <cresset_compat/half.h>
#include <cresset_compat/metaprogramming.h>

namespace cresset {
/// Of what is not copied byte by byte: a std::vector.
template <class T, std::size_t N>
  requires(!std::is_trivially_copyable_v<T>)
class SmallVector<T, N> : public std::vector<T> {
 public:
  using std::vector<T>::vector;
  SmallVector() = default;
  explicit SmallVector(ArrayRef<T> values) : std::vector<T>(values.begin(), values.end()) {}
  template <class It>
  void append(It first, It last) {
    this->insert(this->end(), first, last);
  }
  T pop_back_val() {
    T last = std::move(this->back());
    this->pop_back();
    return last;
  }
};
}  // namespace cresset
namespace c10 {

using IntList [[deprecated("use IntArrayRef")]] = IntArrayRef;

// --- standard library under other names
using std::get_if;
using std::holds_alternative;
using std::in_place;
using std::in_place_t;
using std::make_optional;
using std::monostate;
using std::nullopt;
using std::nullopt_t;
using std::once_flag;
using std::optional;
using std::string;
using std::string_view;
using std::variant;
using std::visit;
template <class F, class... A>
void call_once(once_flag& flag, F&& f, A&&... a) {
  std::call_once(flag, std::forward<F>(f), std::forward<A>(a)...);
}
/// A list of tensors, however it is kept: here there is one way.
template <class T>
using IListRef = ArrayRef<T>;
template <class T>
using complex = std::complex<T>;
template <class T, unsigned N = 4>
using SmallVector = cresset::SmallVector<T, N>;
template <class T>
bool operator==(const std::vector<T>& a, ArrayRef<T> b) {
  return ArrayRef<T>(a) == b;
}
template <class T>
ArrayRef<T> makeArrayRef(const T& one) {
  return one;
}
template <class T>
ArrayRef<T> makeArrayRef(const std::vector<T>& v) {
  return v;
}
template <class T, std::size_t N>
ArrayRef<T> makeArrayRef(const std::array<T, N>& v) {
  return v;
}
template <class T>
ArrayRef<T> makeArrayRef(const T* p, std::size_t n) {
  return {p, n};
}

// --- ranges of integers
namespace detail {
template <class I>
struct integer_iterator {
  using iterator_category = std::input_iterator_tag;
  using value_type = I;
  using difference_type = std::ptrdiff_t;
  using pointer = const I*;
  using reference = I&;
  I operator*() const { return value; }
  const I* operator->() const { return &value; }
  integer_iterator& operator++() {
    ++value;
    return *this;
  }
  integer_iterator operator++(int) { return integer_iterator{value++}; }
  friend bool operator==(integer_iterator a, integer_iterator b) { return a.value == b.value; }
  I value;
};
}  // namespace detail
template <class I>
struct integer_range {
  integer_range(I begin, I end) : begin_{begin}, end_{end < begin ? begin : end} {}
  detail::integer_iterator<I> begin() const { return begin_; }
  detail::integer_iterator<I> end() const { return end_; }

 private:
  detail::integer_iterator<I> begin_, end_;
};
template <class I, std::enable_if_t<std::is_integral_v<I>, int> = 0>
integer_range<I> irange(I end) {
  return {I(), end};
}
template <class A, class B, std::enable_if_t<std::is_integral_v<A> && std::is_integral_v<B>, int> = 0>
integer_range<B> irange(A begin, B end) {
  return {static_cast<B>(begin), end};
}

// --- owned or borrowed
template <class T>
class MaybeOwned final {
 public:
  MaybeOwned() = default;
  static MaybeOwned borrowed(const T& v) { return MaybeOwned(&v); }
  static MaybeOwned owned(T&& v) { return MaybeOwned(std::optional<T>(std::move(v))); }
  template <class... A>
  static MaybeOwned owned(std::in_place_t, A&&... a) {
    return MaybeOwned(std::optional<T>(std::in_place, std::forward<A>(a)...));
  }
  const T& operator*() const& { return own_ ? *own_ : *borrowed_; }
  T operator*() && { return own_ ? std::move(*own_) : *borrowed_; }
  const T* operator->() const { return own_ ? &*own_ : borrowed_; }
  bool unsafeIsBorrowed() const { return !own_; }

 private:
  explicit MaybeOwned(const T* p) : borrowed_(p) {}
  explicit MaybeOwned(std::optional<T> v) : own_(std::move(v)) {}
  const T* borrowed_ = nullptr;
  std::optional<T> own_;
};
template <class T>
class ExclusivelyOwned {
 public:
  ExclusivelyOwned() = default;
  explicit ExclusivelyOwned(T&& v) : v_(std::move(v)) {}
  T take() && { return std::move(v_); }
  const T& operator*() const { return v_; }
  T& operator*() { return v_; }
  T* operator->() { return &v_; }

 private:
  T v_;
};
template <class T>
class Lazy {};

// --- host memory by pointer alone. Cresset's own alloc_cpu needs the size again when it is freed.
inline void* alloc_cpu(std::size_t n) {
  if (n == 0) return nullptr;
  void* p = std::aligned_alloc(64, (n + 63) / 64 * 64);
  CRESSET_CHECK_AS(OutOfMemoryError, p, "CPU allocator: not enough memory: you tried to allocate ", n, " bytes.");
  return p;
}
inline void free_cpu(void* p) { std::free(p); }

// --- types, devices
enum class Backend {
  CPU,
  CUDA,
  HIP,
  VE,
  FPGA,
  IPU,
  XPU,
  SparseCPU,
  SparseCUDA,
  SparseCsrCPU,
  SparseCsrCUDA,
  MAIA,
  XLA,
  Vulkan,
  Metal,
  Meta,
  QuantizedCPU,
  QuantizedCUDA,
  QuantizedXPU,
  Undefined,
  MkldnnCPU,
  MPS,
  HPU,
  Lazy,
  MTIA,
  PrivateUse1,
  NumOptions
};
inline DispatchKey backendToDispatchKey(Backend b) {
  switch (b) {
    case Backend::CPU: return DispatchKey::CPU;
    case Backend::CUDA: return DispatchKey::CUDA;
    case Backend::Meta: return DispatchKey::Meta;
    case Backend::MAIA: return DispatchKey::MAIA;
    case Backend::XLA: return DispatchKey::XLA;
    case Backend::PrivateUse1: return DispatchKey::PrivateUse1;
    default: return DispatchKey::Undefined;
  }
}
inline Backend dispatchKeyToBackend(DispatchKey k) {
  for (Backend b : {Backend::CPU, Backend::CUDA, Backend::Meta, Backend::MAIA, Backend::XLA, Backend::PrivateUse1})
    if (backendToDispatchKey(b) == k) return b;
  return Backend::Undefined;
}
enum BackendComponent : uint8_t {
  InvalidBit = 0,
  CPUBit = 1,
  CUDABit,
  XLABit,
  MetaBit,
  PrivateUse1Bit,
  PrivateUse2Bit,
  PrivateUse3Bit,
};
constexpr BackendComponent toBackendComponent(DispatchKey k) { return static_cast<BackendComponent>(toBackendIndex(k) + 1); }
constexpr BackendComponent toBackendComponent(DeviceType t) { return static_cast<BackendComponent>(static_cast<int>(t) + 1); }
inline DispatchKey dispatchKeyOf(const TensorOptions& o) { return o.computeDispatchKey(); }
inline DispatchKey computeDispatchKey(std::optional<ScalarType>, std::optional<Layout>, std::optional<Device> device) {
  return backendKey(device_or_default(device).type());
}
inline std::string get_privateuse1_backend(bool lower_case = true) { return cresset::DeviceTypeName(kPrivateUse1, lower_case); }
inline bool isQIntType(ScalarType t) { return cresset::isQuantizedType(t); }
// Names of types without elements, beside kQInt8 and its like.
inline constexpr ScalarType kQUInt4x2 = ScalarType::QUInt4x2, kQUInt2x4 = ScalarType::QUInt2x4, kBits1x8 = ScalarType::Bits1x8,
                            kBits2x4 = ScalarType::Bits2x4, kBits4x2 = ScalarType::Bits4x2, kBits8 = ScalarType::Bits8,
                            kBits16 = ScalarType::Bits16;
inline bool isFloat8Type(ScalarType t) { return t >= kFloat8_e5m2 && t <= kFloat8_e4m3fnuz; }
inline bool isBarebonesUnsignedType(ScalarType t) { return t == kUInt16 || t == kUInt32 || t == kUInt64; }
inline bool isUnderlying(ScalarType, ScalarType) { return false; }
enum QScheme : uint8_t {
  PER_TENSOR_AFFINE,
  PER_CHANNEL_AFFINE,
  PER_TENSOR_SYMMETRIC,
  PER_CHANNEL_SYMMETRIC,
  PER_CHANNEL_AFFINE_FLOAT_QPARAMS
};
inline constexpr QScheme kPerTensorAffine = PER_TENSOR_AFFINE, kPerChannelAffine = PER_CHANNEL_AFFINE,
                         kPerTensorSymmetric = PER_TENSOR_SYMMETRIC, kPerChannelSymmetric = PER_CHANNEL_SYMMETRIC;
inline void set_default_dtype(TypeMeta t) { cresset::set_default_dtype(t); }
inline ScalarType get_default_dtype_as_scalartype() { return cresset::get_default_dtype(); }

// --- symbolic numbers
using SymFloat = double;
using SymBool = bool;
struct SymNodeImpl : intrusive_ptr_target {};
using SymNode = intrusive_ptr<SymNodeImpl>;

using cresset::jit::Symbol;

// --- registries of factories by name
template <class Key, class Object, class... A>
class Registry {
 public:
  using Creator = std::function<Object(A...)>;
  void Register(const Key& key, Creator creator, const std::string& /*help*/ = {}) {
    const std::lock_guard lock(mutex_);
    creators_[key] = std::move(creator);
  }
  bool Has(const Key& key) const {
    const std::lock_guard lock(mutex_);
    return creators_.count(key) != 0;
  }
  Object Create(const Key& key, A... a) {
    Creator creator;
    {
      const std::lock_guard lock(mutex_);
      const auto it = creators_.find(key);
      if (it == creators_.end()) return nullptr;
      creator = it->second;
    }
    return creator(std::forward<A>(a)...);
  }
  std::vector<Key> Keys() const {
    const std::lock_guard lock(mutex_);
    std::vector<Key> keys;
    for (const auto& [key, creator] : creators_) keys.push_back(key);
    return keys;
  }

 private:
  mutable std::mutex mutex_;
  std::unordered_map<Key, Creator> creators_;
};
template <class Key, class Object, class... A>
struct Registerer {
  Registerer(const Key& key, Registry<Key, Object, A...>* registry, typename Registry<Key, Object, A...>::Creator creator) {
    registry->Register(key, std::move(creator));
  }
  template <class Derived>
  static Object DefaultCreator(A... a) {
    return Object(new Derived(a...));
  }
};

// --- errors and logging
inline std::string get_backtrace(std::size_t = 0, std::size_t = 64, bool = true) { return {}; }
namespace utils {
inline std::optional<std::string> get_env(const char* name) {
  const char* value = std::getenv(name);
  return value ? std::optional<std::string>(value) : std::nullopt;
}
inline bool has_env(const char* name) { return std::getenv(name) != nullptr; }
inline void set_env(const char* name, const char* value, bool overwrite = true) { setenv(name, value, overwrite); }
/// "1" is true and "0" is false.
inline std::optional<bool> check_env(const char* name) {
  const auto value = get_env(name);
  if (value == "1") return true;
  if (value == "0") return false;
  return std::nullopt;
}
}  // namespace utils

template <class To, class From>
To bit_cast(const From& v) {
  return std::bit_cast<To>(v);
}
template <class To, class From>
To checked_convert(From v, const char* name) {
  CRESSET_CHECK(cresset::detail::fits<To>(v), "value cannot be converted to type ", name, " without overflow");
  return static_cast<To>(v);
}
template <class T>
T value_or_else(const std::optional<T>& v, const std::function<T()>& f) {
  return v ? *v : f();
}
template <class T>
std::size_t hash(const T& v) {
  return std::hash<T>()(v);
}
inline std::size_t hash_combine(std::size_t seed, std::size_t value) { return seed ^ (value + 0x9e3779b9 + (seed << 6u) + (seed >> 2u)); }
struct overloaded_base {};
template <class... F>
struct Overloaded : F... {
  using F::operator()...;
};
template <class... F>
Overloaded(F...) -> Overloaded<F...>;
template <class... F>
auto overloaded(F&&... f) {
  return Overloaded{std::forward<F>(f)...};
}

/// Nanoseconds since an unknown moment, or since 1970.
inline int64_t getTime(bool allow_monotonic = false) {
  const auto since = [](auto time) { return std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count(); };
  return allow_monotonic ? since(std::chrono::steady_clock::now()) : since(std::chrono::system_clock::now());
}

namespace impl {
using cresset::impl::DeviceGuardImplInterface;
/// A device kind with one device and nothing to do.
template <DeviceType T>
struct NoOpDeviceGuardImpl : DeviceGuardImplInterface {
  DeviceType type() const override { return T; }
  Device exchangeDevice(Device) const override { return Device(T, -1); }
  Device getDevice() const override { return Device(T, -1); }
  void setDevice(Device) const override {}
  void uncheckedSetDevice(Device) const noexcept override {}
  Stream getStream(Device) const noexcept override { return Stream(Stream::DEFAULT, Device(T, -1)); }
  DeviceIndex deviceCount() const noexcept override { return 1; }
};
inline constexpr std::size_t kFakeGuardImplMaxDevices = 8;
/// Eight devices of which only the numbers exist: the current one and the current streams of a thread.
template <DeviceType T>
struct FakeGuardImpl final : DeviceGuardImplInterface {
  static constexpr DeviceType static_type = T;
  FakeGuardImpl() = default;
  explicit FakeGuardImpl(DeviceType t) { CRESSET_CHECK(t == T, "FakeGuardImpl: another kind of device was given: ", t); }
  DeviceType type() const override { return T; }
  Device exchangeDevice(Device d) const override {
    const Device before = getDevice();
    setDevice(d);
    return before;
  }
  Device getDevice() const override { return Device(T, state().device); }
  void setDevice(Device d) const override {
    CRESSET_CHECK(d.type() == T && d.index() >= 0 && d.index() < deviceCount(), "there is no device ", d);
    state().device = d.index();
  }
  void uncheckedSetDevice(Device d) const noexcept override { state().device = d.index(); }
  Stream getStream(Device d) const noexcept override { return Stream(Stream::UNSAFE, d, stream_of(d)); }
  Stream exchangeStream(Stream s) const noexcept override {
    return Stream(Stream::UNSAFE, s.device(), std::exchange(stream_of(s.device()), s.id()));
  }
  DeviceIndex deviceCount() const noexcept override { return kFakeGuardImplMaxDevices; }
  static DeviceIndex getDeviceIndex() { return state().device; }
  static void setDeviceIndex(DeviceIndex i) { state().device = i; }

 private:
  struct State {
    DeviceIndex device = 0;
    std::array<cresset::StreamId, kFakeGuardImplMaxDevices> streams{};
  };
  static State& state() {
    static thread_local State s;
    return s;
  }
  static cresset::StreamId& stream_of(Device d) {
    return state().streams.at(static_cast<std::size_t>(d.has_index() ? d.index() : state().device));
  }
};
// Lists and dictionaries with and without the types of what is in them: the same object.
template <class K, class V>
Dict<K, V> toTypedDict(GenericDict dict) {
  return Dict<K, V>(dict.impl());
}
template <class K, class V>
GenericDict toGenericDict(const Dict<K, V>& dict) {
  return GenericDict(dict.impl());
}
template <class T>
List<T> toTypedList(GenericList list) {
  return List<T>(list.impl());
}
template <class T>
GenericList toList(const List<T>& list) {
  return GenericList(list.impl());
}
inline bool tls_is_dispatch_keyset_included(DispatchKeySet keys) { return tls_local_dispatch_key_set().included.has_all(keys); }
inline bool tls_is_dispatch_keyset_excluded(DispatchKeySet keys) { return tls_local_dispatch_key_set().excluded.has_all(keys); }
}  // namespace impl

// Alignment of the CPU allocator's blocks.
inline constexpr std::size_t gAlignment = 64;
inline constexpr std::size_t gPagesize = 4096;
inline constexpr std::size_t gAlloc_threshold_thp = std::size_t{2} << 20;
// What two threads write lies so far apart, what one reads together so near.
inline constexpr std::size_t hardware_destructive_interference_size = 64;
inline constexpr std::size_t hardware_constructive_interference_size = 64;

namespace impl {
/// Who looks at what a device does with memory and streams: nobody does here, so get_trace() has none.
struct GPUTraceCallbacks {
  virtual ~GPUTraceCallbacks() = default;
  virtual void trace_gpu_event_creation(DeviceType device, std::uintptr_t event) const = 0;
  virtual void trace_gpu_event_deletion(DeviceType device, std::uintptr_t event) const = 0;
  virtual void trace_gpu_event_record(DeviceType device, std::uintptr_t event, std::uintptr_t stream) const = 0;
  virtual void trace_gpu_event_wait(DeviceType device, std::uintptr_t event, std::uintptr_t stream) const = 0;
  virtual void trace_gpu_memory_allocation(DeviceType device, std::uintptr_t pointer) const = 0;
  virtual void trace_gpu_memory_deallocation(DeviceType device, std::uintptr_t pointer) const = 0;
  virtual void trace_gpu_stream_creation(DeviceType device, std::uintptr_t stream) const = 0;
  virtual void trace_gpu_device_synchronization(DeviceType device) const = 0;
  virtual void trace_gpu_stream_synchronization(DeviceType device, std::uintptr_t stream) const = 0;
  virtual void trace_gpu_event_synchronization(DeviceType device, std::uintptr_t event) const = 0;
};
struct PyInterpreter {
  const GPUTraceCallbacks* callbacks = nullptr;
  const GPUTraceCallbacks& operator*() const { return *callbacks; }
  const GPUTraceCallbacks* operator->() const { return callbacks; }
};
struct GPUTrace {
  static const PyInterpreter* get_trace() { return nullptr; }
};
}  // namespace impl

}  // namespace c10

namespace ska {
template <class K, class V, class H = std::hash<K>, class E = std::equal_to<K>>
using flat_hash_map = std::unordered_map<K, V, H, E>;
template <class K, class H = std::hash<K>, class E = std::equal_to<K>>
using flat_hash_set = std::unordered_set<K, H, E>;
}  // namespace ska
namespace ska_ordered {
template <class K, class V, class H = std::hash<K>, class E = std::equal_to<K>>
using order_preserving_flat_hash_map = std::unordered_map<K, V, H, E>;
}

#define C10_REGISTER_GUARD_IMPL(DevType, GuardImpl) CRESSET_REGISTER_GUARD_IMPL(DevType, GuardImpl)
#define REGISTER_ALLOCATOR(t, f)                                           \
  namespace {                                                              \
  [[maybe_unused]] const bool CRESSET_UNIQUE(registered_allocator_) = [] { \
    ::cresset::SetAllocator(t, f);                                         \
    return true;                                                           \
  }();                                                                     \
  }

#define C10_DECLARE_TYPED_REGISTRY(Name, Key, Object, Pointer, ...) \
  ::c10::Registry<Key, Pointer<Object>, ##__VA_ARGS__>* Name();     \
  using Registerer##Name = ::c10::Registerer<Key, Pointer<Object>, ##__VA_ARGS__>
#define C10_DEFINE_TYPED_REGISTRY(Name, Key, Object, Pointer, ...)                      \
  ::c10::Registry<Key, Pointer<Object>, ##__VA_ARGS__>* Name() {                        \
    static auto* registry = new ::c10::Registry<Key, Pointer<Object>, ##__VA_ARGS__>(); \
    return registry;                                                                    \
  }
#define C10_DECLARE_REGISTRY(Name, Object, ...) C10_DECLARE_TYPED_REGISTRY(Name, std::string, Object, std::unique_ptr, ##__VA_ARGS__)
#define TORCH_DECLARE_REGISTRY(Name, Object, ...) C10_DECLARE_TYPED_REGISTRY(Name, std::string, Object, std::unique_ptr, ##__VA_ARGS__)
#define C10_DEFINE_REGISTRY(Name, Object, ...) C10_DEFINE_TYPED_REGISTRY(Name, std::string, Object, std::unique_ptr, ##__VA_ARGS__)
#define C10_DECLARE_SHARED_REGISTRY(Name, Object, ...) C10_DECLARE_TYPED_REGISTRY(Name, std::string, Object, std::shared_ptr, ##__VA_ARGS__)
#define C10_DEFINE_SHARED_REGISTRY(Name, Object, ...) C10_DEFINE_TYPED_REGISTRY(Name, std::string, Object, std::shared_ptr, ##__VA_ARGS__)
#define C10_REGISTER_TYPED_CREATOR(Name, key, ...) static Registerer##Name CRESSET_UNIQUE(g_##Name)(key, Name(), ##__VA_ARGS__);
#define C10_REGISTER_TYPED_CLASS(Name, key, ...) \
  static Registerer##Name CRESSET_UNIQUE(g_##Name)(key, Name(), Registerer##Name::DefaultCreator<__VA_ARGS__>);
#define C10_REGISTER_CREATOR(Name, key, ...) C10_REGISTER_TYPED_CREATOR(Name, #key, __VA_ARGS__)
#define C10_REGISTER_CLASS(Name, key, ...) C10_REGISTER_TYPED_CLASS(Name, #key, __VA_ARGS__)

#define C10_LOG_API_USAGE_ONCE(...) (void)0
#define C10_LOG_FIRST_N(severity, n) LOG(severity)
namespace c10::detail {
/// LOG(WARNING) << …: a warning, or text on stderr for INFO.
class LogLine {
 public:
  explicit LogLine(const char* severity, bool fatal = false) : severity_(severity), fatal_(fatal) {}
  ~LogLine() noexcept(false) {
    if (fatal_) throw cresset::Error(text_.str());
    if (severity_[0] != 'I') cresset::warn(text_.str());
  }
  template <class T>
  LogLine& operator<<(const T& v) {
    text_ << v;
    return *this;
  }

 private:
  std::ostringstream text_;
  const char* severity_;
  bool fatal_;
};
template <class T>
T&& checked_not_null(T&& pointer, const char* words) {
  if (pointer == nullptr) LogLine("FATAL", true) << words;
  return std::forward<T>(pointer);
}
}  // namespace c10::detail
#define TORCH_CHECK_NOTNULL(pointer) ::c10::detail::checked_not_null(pointer, "Check failed: '" #pointer "' must be non NULL.")
#define TORCH_CHECK_OP(a, b, op) \
  if (!((a)op(b))) ::c10::detail::LogLine("FATAL", true) << "Check failed: " #a " " #op " " #b " (" << (a) << " vs. " << (b) << ") "
#define TORCH_CHECK_EQ(a, b) TORCH_CHECK_OP(a, b, ==)
#define TORCH_CHECK_NE(a, b) TORCH_CHECK_OP(a, b, !=)
#define TORCH_CHECK_LT(a, b) TORCH_CHECK_OP(a, b, <)
#define TORCH_CHECK_LE(a, b) TORCH_CHECK_OP(a, b, <=)
#define TORCH_CHECK_GT(a, b) TORCH_CHECK_OP(a, b, >)
#define TORCH_CHECK_GE(a, b) TORCH_CHECK_OP(a, b, >=)
#ifndef LOG
#define CHECK_NOTNULL(pointer) TORCH_CHECK_NOTNULL(pointer)
#define LOG(severity) ::c10::detail::LogLine(#severity, #severity[0] == 'F')
#define VLOG(n) \
  while (false) ::c10::detail::LogLine("INFO")
#define LOG_IF(severity, condition) \
  if (condition) LOG(severity)
#define DLOG(severity) \
  while (false) LOG(severity)
#define CHECK(condition) \
  if (!(condition)) ::c10::detail::LogLine("FATAL", true) << "Check failed: " #condition " "
#define CHECK_EQ(a, b) TORCH_CHECK_EQ(a, b)
#define CHECK_NE(a, b) TORCH_CHECK_NE(a, b)
#define CHECK_LT(a, b) TORCH_CHECK_LT(a, b)
#define CHECK_LE(a, b) TORCH_CHECK_LE(a, b)
#define CHECK_GT(a, b) TORCH_CHECK_GT(a, b)
#define CHECK_GE(a, b) TORCH_CHECK_GE(a, b)
#endif
