// The CPU generator: MT19937 blocks, PyTorch's 5056-byte state layout, seeds.
#include <cresset/core/generator.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <string>
#include <type_traits>

#include <cresset/base/fork.h>
#include <cresset/base/parallel.h>
#include <cresset/core/tensor.h>

namespace cresset {

namespace {
std::span<const uint8_t> bytes_of(const TensorImpl& state) {
  CRESSET_CHECK_TYPE(state.dtype() == kByte && state.device() == Device(kCPU) && state.is_contiguous(),
                     "generator state: a contiguous uint8 tensor on the CPU was required.");
  return {static_cast<const uint8_t*>(state.data()), static_cast<std::size_t>(state.numel())};
}
Tensor tensor_of(std::span<const uint8_t> bytes) {
  Tensor t = detail::empty_cpu({static_cast<int64_t>(bytes.size())}, kByte);
  std::memcpy(t.data_ptr(), bytes.data(), bytes.size());
  return t;
}
}  // namespace

std::vector<uint8_t> GeneratorImpl::state_bytes() const {
  const intrusive_ptr<TensorImpl> state = get_state();
  const auto bytes = bytes_of(*state);
  return {bytes.begin(), bytes.end()};
}
void GeneratorImpl::set_state_bytes(std::span<const uint8_t> state) { set_state(*tensor_of(state).unsafeGetTensorImpl()); }
intrusive_ptr<TensorImpl> GeneratorImpl::get_state() const {
  CRESSET_THROW(NotImplementedError, "get_state: the generator of ", device_, " does not show its state.");
}
void GeneratorImpl::set_state(const TensorImpl&) {
  CRESSET_THROW(NotImplementedError, "set_state: the generator of ", device_, " does not take a state.");
}
intrusive_ptr<TensorImpl> CPUGeneratorImpl::get_state() const { return tensor_of(state_bytes()).getIntrusivePtr(); }
void CPUGeneratorImpl::set_state(const TensorImpl& state) { set_state_bytes(bytes_of(state)); }
Tensor Generator::get_state() const { return tensor_of(impl_->state_bytes()); }
void Generator::set_state(const Tensor& state) const {
  CRESSET_CHECK(state.defined(), "Undefined tensor is not allowed");
  impl_->set_state_bytes(bytes_of(*state.unsafeGetTensorImpl()));
}
GeneratorImpl* GeneratorImpl::clone_impl() const {
  CRESSET_THROW(NotImplementedError, "clone: the generator of ", device_, " cannot be copied.");
}
void GeneratorImpl::set_offset(uint64_t) {
  CRESSET_THROW(Error, "set_offset: a counter-based generator was required; the generator of ", device_, " has no offset. Use set_state.");
}
uint64_t GeneratorImpl::get_offset() const {
  CRESSET_THROW(Error, "get_offset: a counter-based generator was required; the generator of ", device_, " has no offset. Use get_state.");
}

namespace detail {
void raise_generator_device(const Generator& given, DeviceType expected) {
  CRESSET_THROW(Error, "Expected a '", DeviceTypeName(expected), "' device type for generator but found '",
                DeviceTypeName(given.device().type()), "'");
}
}  // namespace detail

namespace {

// Four words at a time, in every compiler's baseline instruction set.
using Words4 = uint32_t __attribute__((vector_size(16)));

Words4 load4(const uint32_t* p) {
  Words4 v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
void store4(uint32_t* p, Words4 v) { std::memcpy(p, &v, sizeof v); }

constexpr int kShift = 397;  // the recurrence joins word i with words i + 1 and i + 397

template <class W>
inline W twist(W current, W next, W far) {
  const W mixed = (current & 0x80000000u) | (next & 0x7FFFFFFFu);
  return far ^ (mixed >> 1) ^ ((W{} - (next & 1u)) & 0x9908B0DFu);
}
template <class W>
inline W temper_words(W y) {
  y ^= y >> 11;
  y ^= (y << 7) & 0x9D2C5680u;
  y ^= (y << 15) & 0xEFC60000u;
  return y ^ (y >> 18);
}
inline void temper_block(const uint32_t* from, uint32_t* to) {
  for (int i = 0; i < Mt19937::kWords; i += 4) store4(to + i, temper_words(load4(from + i)));
}

// The next block of the recurrence.
void advance(uint32_t* w) {
  constexpr int n = Mt19937::kWords, head = n - kShift;  // 227 words use old far words, the rest new ones
  int i = 0;
  for (; i + 4 <= head; i += 4) store4(w + i, twist(load4(w + i), load4(w + i + 1), load4(w + i + kShift)));
  for (; i < head; ++i) w[i] = twist(w[i], w[i + 1], w[i + kShift]);
  for (; i + 4 < n; i += 4) store4(w + i, twist(load4(w + i), load4(w + i + 1), load4(w + i - head)));
  for (; i < n - 1; ++i) w[i] = twist(w[i], w[i + 1], w[i - head]);
  w[n - 1] = twist(w[n - 1], w[0], w[kShift - 1]);
}

constexpr int64_t kThreadBlocks = 16;  // blocks whose tempering is worth waking a thread for

}  // namespace

void Mt19937::reseed(uint32_t seed) {
  words_[0] = seed;
  for (uint32_t i = 1; i < kWords; ++i) words_[i] = 1812433253u * (words_[i - 1] ^ (words_[i - 1] >> 30)) + i;
  used_ = kWords;
  fresh_ = true;
}

void Mt19937::next_block() {
  advance(words_.data());
  temper();
  used_ = 0;
  fresh_ = false;
}

void Mt19937::temper() { temper_block(words_.data(), tempered_.data()); }

void Mt19937::fill(uint32_t* out, int64_t n) {
  while (n > 0) {
    if (used_ == kWords && n >= 2 * kThreadBlocks * kWords) {
      // The recurrence goes one block after the other; what is made of its words does not.
      const int64_t blocks = n / kWords;
      for (int64_t i = 0; i < blocks; ++i) {
        advance(words_.data());
        std::copy(words_.begin(), words_.end(), out + i * kWords);
      }
      fresh_ = false;
      parallel_for(0, blocks, kThreadBlocks, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) temper_block(out + i * kWords, out + i * kWords);
      });
      out += blocks * kWords;
      n -= blocks * kWords;
      continue;
    }
    if (used_ == kWords) next_block();
    const int64_t count = std::min<int64_t>(n, kWords - used_);
    std::memcpy(out, tempered_.data() + used_, static_cast<std::size_t>(count) * sizeof(uint32_t));
    used_ += static_cast<int>(count);
    out += count;
    n -= count;
  }
}

void Mt19937::restore(std::span<const uint32_t, kWords> words, int used) {
  std::copy(words.begin(), words.end(), words_.begin());
  fresh_ = used == 0;
  used_ = fresh_ ? kWords : used;
  temper();
}

namespace {

// The bytes that PyTorch's torch.get_rng_state() returns on 64-bit little-endian machines.
struct LegacyState {
  uint64_t seed;
  int32_t left;  // words left before the next block, plus one
  int32_t seeded;
  uint64_t next;  // index of the next word
  uint64_t words[Mt19937::kWords];
  double normal_x;    // unused
  double normal_y;    // the kept second normal
  double normal_rho;  // unused
  int32_t normal_is_valid;
  int32_t padding;
  float next_float_normal;
  uint8_t next_float_normal_is_valid;
  uint8_t tail[3];
};
static_assert(sizeof(LegacyState) == CPUGeneratorImpl::kStateSize && std::is_trivially_copyable_v<LegacyState>);

}  // namespace

CPUGeneratorImpl::CPUGeneratorImpl(uint64_t seed)
    : GeneratorImpl(Device(DeviceType::CPU), DispatchKeySet(DispatchKey::CPU)), seed_(seed), engine_(static_cast<uint32_t>(seed)) {}

void CPUGeneratorImpl::set_current_seed(uint64_t seed) {
  seed_ = seed;
  engine_.reseed(static_cast<uint32_t>(seed));
  next_float_normal_.reset();
  next_double_normal_.reset();
}

uint64_t CPUGeneratorImpl::seed() {
  const uint64_t value = nondeterministic_seed();
  set_current_seed(value);
  return value;
}

std::vector<uint8_t> CPUGeneratorImpl::state_bytes() const {
  LegacyState s;
  std::memset(&s, 0, sizeof s);
  s.seed = seed_;
  s.seeded = 1;
  s.next = static_cast<uint64_t>(engine_.used());
  s.left = engine_.used() == 0 ? 1 : Mt19937::kWords + 1 - engine_.used();
  std::copy(engine_.words().begin(), engine_.words().end(), s.words);
  s.normal_is_valid = next_double_normal_.has_value();
  s.normal_y = next_double_normal_.value_or(0.0);
  s.next_float_normal_is_valid = next_float_normal_.has_value();
  s.next_float_normal = next_float_normal_.value_or(0.0f);
  std::vector<uint8_t> bytes(sizeof s);
  std::memcpy(bytes.data(), &s, sizeof s);
  return bytes;
}

void CPUGeneratorImpl::set_state_bytes(std::span<const uint8_t> state) {
  CRESSET_CHECK(state.size() == kStateSize, "set_state: a CPU generator state of ", kStateSize, " bytes was required; ", state.size(),
                " bytes were given. Pass what get_state returned.");
  LegacyState s;
  std::memcpy(&s, state.data(), sizeof s);
  const bool fresh = s.next == 0 && s.left == 1;
  const bool running = s.next >= 1 && s.next <= Mt19937::kWords && s.left == Mt19937::kWords + 1 - static_cast<int32_t>(s.next);
  CRESSET_CHECK(s.seeded == 1 && (fresh || running), "set_state: an MT19937 state was required; seeded=", s.seeded, ", left=", s.left,
                ", next=", s.next, " were given. Pass what get_state returned.");
  std::array<uint32_t, Mt19937::kWords> words;
  std::transform(std::begin(s.words), std::end(s.words), words.begin(), [](uint64_t w) { return static_cast<uint32_t>(w); });
  seed_ = s.seed;
  engine_.restore(words, static_cast<int>(s.next));
  next_double_normal_ = s.normal_is_valid ? std::optional(s.normal_y) : std::nullopt;
  next_float_normal_ = s.next_float_normal_is_valid ? std::optional(s.next_float_normal) : std::nullopt;
}

intrusive_ptr<GeneratorImpl> CPUGeneratorImpl::clone() const {
  auto copy = make_intrusive<CPUGeneratorImpl>(seed_);
  copy->engine_ = engine_;
  copy->next_float_normal_ = next_float_normal_;
  copy->next_double_normal_ = next_double_normal_;
  return copy;
}

const Generator& default_cpu_generator() {
  static const Generator& generator = *[] {
    auto* g = new Generator(make_cpu_generator());  // never destroyed
    keep_across_fork(g->mutex());
    return g;
  }();
  return generator;
}

Generator make_cpu_generator(uint64_t seed) { return make_generator<CPUGeneratorImpl>(seed); }

uint64_t nondeterministic_seed() {
  std::random_device entropy;
  const uint64_t high = entropy();
  return high << 32 | entropy();
}

}  // namespace cresset
