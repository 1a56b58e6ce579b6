// Random number generators: the per-device interface, its handle, and the CPU generator, whose stream is the
// one PyTorch's CPU generator gives for the same seed. The distributions are in
// src/backends/cpu/random_stream.h.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <cresset/base/error.h>
#include <cresset/base/intrusive_ptr.h>
#include <cresset/base/macros.h>
#include <cresset/core/device.h>
#include <cresset/core/dispatch_key_set.h>

namespace cresset {

struct TensorImpl;
class Tensor;

/// Seed of a generator that was never seeded.
inline constexpr uint64_t kDefaultRandomSeed = 67280421310721ull;
/// PyTorch's name for it.
inline constexpr uint64_t default_rng_seed_val = kDefaultRandomSeed;

/// A generator of one device. Every call except device() and key_set() needs `mutex_` when threads share the
/// generator.
struct CRESSET_API GeneratorImpl : intrusive_ptr_target {
  GeneratorImpl(Device device, DispatchKeySet key_set) : device_(device), key_set_(key_set) {}
  GeneratorImpl(const GeneratorImpl&) = delete;
  GeneratorImpl& operator=(const GeneratorImpl&) = delete;

  /// Restarts the stream.
  virtual void set_current_seed(uint64_t seed) = 0;
  virtual uint64_t current_seed() const = 0;
  /// Restarts the stream from a non-deterministic seed and returns that seed.
  virtual uint64_t seed() = 0;
  /// The whole state as bytes; set_state_bytes of the same generator class takes them back.
  virtual std::vector<uint8_t> state_bytes() const;  // of get_state() when not overridden
  /// Raises, and leaves the state alone, when the bytes are not a state of this class.
  virtual void set_state_bytes(std::span<const uint8_t> state);
  /// A generator with the same state that continues on its own.
  virtual intrusive_ptr<GeneratorImpl> clone() const { return intrusive_ptr<GeneratorImpl>::unsafe_steal_from_new(clone_impl()); }
  /// Position of a counter-based stream; raises for a generator that has none.
  virtual void set_offset(uint64_t offset);
  virtual uint64_t get_offset() const;

  /// PyTorch's form of the state: a tensor of bytes. Generator classes override this pair or the one above.
  virtual intrusive_ptr<TensorImpl> get_state() const;
  virtual void set_state(const TensorImpl& state);

  Device device() const { return device_; }
  DispatchKeySet key_set() const { return key_set_; }
  /// Python object of this generator, managed by the Python layer.
  void* pyobj() const noexcept { return pyobj_; }
  void set_pyobj(void* p) noexcept { pyobj_ = p; }

  std::mutex mutex_;

 protected:
  /// The object behind clone(), uncounted; one of the two is to be overridden.
  virtual GeneratorImpl* clone_impl() const;
  void* pyobj_ = nullptr;
  Device device_;
  DispatchKeySet key_set_;
};

/// Shared handle of a generator; undefined when default constructed, and only defined() may then be called.
class Generator {
 public:
  Generator() = default;
  explicit Generator(intrusive_ptr<GeneratorImpl> impl) : impl_(std::move(impl)) {}

  bool defined() const { return impl_.defined(); }
  Device device() const { return impl_->device(); }
  DispatchKeySet key_set() const { return impl_->key_set(); }
  std::mutex& mutex() const { return impl_->mutex_; }
  void set_current_seed(uint64_t seed) const { impl_->set_current_seed(seed); }
  uint64_t current_seed() const { return impl_->current_seed(); }
  uint64_t seed() const { return impl_->seed(); }
  std::vector<uint8_t> state_bytes() const { return impl_->state_bytes(); }
  void set_state_bytes(std::span<const uint8_t> state) const { impl_->set_state_bytes(state); }
  /// The state as a tensor of bytes, and back; RuntimeError for an undefined tensor.
  CRESSET_API Tensor get_state() const;
  CRESSET_API void set_state(const Tensor& state) const;
  void set_offset(uint64_t offset) const { impl_->set_offset(offset); }
  uint64_t get_offset() const { return impl_->get_offset(); }
  Generator clone() const { return Generator(impl_->clone()); }

  GeneratorImpl* unsafeGetGeneratorImpl() const { return impl_.get(); }
  const intrusive_ptr<GeneratorImpl>& getIntrusivePtr() const { return impl_; }
  /// The implementation as T, unchecked; check_generator<T> checks the device.
  template <class T>
  T* get() const {
    return static_cast<T*>(impl_.get());
  }
  friend bool operator==(const Generator& a, const Generator& b) { return a.impl_ == b.impl_; }

 private:
  intrusive_ptr<GeneratorImpl> impl_;
};

template <class Impl, class... Args>
Generator make_generator(Args&&... args) {
  return Generator(make_intrusive<Impl>(std::forward<Args>(args)...));
}

/// The Mersenne Twister MT19937 (Matsumoto and Nishimura, 1998), producing whole blocks of 624 words.
class CRESSET_API Mt19937 {
 public:
  static constexpr int kWords = 624;

  explicit Mt19937(uint32_t seed = 5489) { reseed(seed); }
  void reseed(uint32_t seed);

  uint32_t operator()() {
    if (CRESSET_UNLIKELY(used_ == kWords)) next_block();
    return tempered_[used_++];
  }
  /// The next n words, as n calls would give them.
  void fill(uint32_t* out, int64_t n);

  /// Words of the recurrence and how many of the block are used; 0 means that the block was seeded but not
  /// yet advanced.
  const std::array<uint32_t, kWords>& words() const { return words_; }
  int used() const { return fresh_ ? 0 : used_; }
  /// Continues from words() and used() of another; used must be in [0, 624].
  void restore(std::span<const uint32_t, kWords> words, int used);

 private:
  void next_block();
  void temper();

  alignas(64) std::array<uint32_t, kWords> words_;
  alignas(64) std::array<uint32_t, kWords> tempered_;
  int used_ = kWords;
  bool fresh_ = true;
};

/// The CPU generator: MT19937 and the second normal of the last Box-Muller pair.
class CRESSET_API CPUGeneratorImpl : public GeneratorImpl {
 public:
  /// Bytes of a state, in PyTorch's layout, so that states can be exchanged.
  static constexpr std::size_t kStateSize = 5056;

  explicit CPUGeneratorImpl(uint64_t seed = kDefaultRandomSeed);

  void set_current_seed(uint64_t seed) override;
  uint64_t current_seed() const override { return seed_; }
  uint64_t seed() override;
  std::vector<uint8_t> state_bytes() const override;
  void set_state_bytes(std::span<const uint8_t> state) override;
  intrusive_ptr<TensorImpl> get_state() const override;
  void set_state(const TensorImpl& state) override;
  intrusive_ptr<GeneratorImpl> clone() const override;
  static DeviceType device_type() { return DeviceType::CPU; }

  /// The next word, 32 uniform bits.
  uint32_t random() { return engine_(); }
  /// The next two words, the first one in the upper half.
  uint64_t random64() {
    const uint64_t high = engine_();
    return high << 32 | engine_();
  }
  /// The next n words.
  void random_words(uint32_t* out, int64_t n) { engine_.fill(out, n); }

  std::optional<float> next_float_normal_sample() const { return next_float_normal_; }
  std::optional<double> next_double_normal_sample() const { return next_double_normal_; }
  void set_next_float_normal_sample(std::optional<float> value) { next_float_normal_ = value; }
  void set_next_double_normal_sample(std::optional<double> value) { next_double_normal_ = value; }
  const Mt19937& engine() const { return engine_; }
  void set_engine(const Mt19937& engine) { engine_ = engine; }

 private:
  uint64_t seed_;
  Mt19937 engine_;
  std::optional<float> next_float_normal_;
  std::optional<double> next_double_normal_;
};

/// The CPU generator that is used when none is given; one for the process.
CRESSET_API const Generator& default_cpu_generator();
CRESSET_API Generator make_cpu_generator(uint64_t seed = kDefaultRandomSeed);
/// A seed from the operating system's entropy.
CRESSET_API uint64_t nondeterministic_seed();

namespace detail {
[[noreturn]] CRESSET_API void raise_generator_device(const Generator& given, DeviceType expected);
}

/// The implementation of `generator` as T; raises when it is undefined or belongs to another kind of device.
template <class T>
T* check_generator(const std::optional<Generator>& generator) {
  CRESSET_CHECK(generator.has_value() && generator->defined(), "generator: a defined generator was required; none was given.");
  if (generator->device().type() != T::device_type()) detail::raise_generator_device(*generator, T::device_type());
  return generator->get<T>();
}
/// `generator` if it is given and defined, else `fallback`, as T; raises when the device is another one.
template <class T>
T* get_generator_or_default(const std::optional<Generator>& generator, const Generator& fallback) {
  return generator.has_value() && generator->defined() ? check_generator<T>(generator) : check_generator<T>(fallback);
}

}  // namespace cresset
