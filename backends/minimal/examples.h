// What a device may have beyond memory and kernels, each part switched on in CMakeLists.txt. Keep what you need, delete the rest.
#pragma once

#include <cresset/autograd/function.h>
#include <cresset/core/accelerator_hooks.h>
#include <cresset/core/device_generator.h>
#include <cresset/cresset.h>
#include <cresset/kernel.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <mutex>

// The base of the device's class: methods and constants of the table (cresset/core/backend_table.h).
struct MinimalExamples {
#ifdef EXAMPLE_STREAMS  // a driver's queues; here all work is done when a call returns
  cresset_stream stream_create(int /*device*/, int /*priority*/) { return ++streams_; }
  bool stream_query(int /*device*/, cresset_stream) { return true; }
  void stream_synchronize(int /*device*/, cresset_stream) {}
  void synchronize(int /*device*/) {}
  cresset_stream streams_ = 0;
#endif
#ifdef EXAMPLE_EVENTS  // marks in queues; elapsed times in milliseconds. All work is done when a call returns, so a mark is a time
  using Clock = std::chrono::steady_clock;
  void* event_create(int /*device*/, int /*flags*/) { return new Clock::time_point(); }
  void event_destroy(int /*device*/, void* event) { delete static_cast<Clock::time_point*>(event); }
  void event_record(int /*device*/, void* event, cresset_stream) { *static_cast<Clock::time_point*>(event) = Clock::now(); }
  void event_wait(int /*device*/, void* /*event*/, cresset_stream) {}
  bool event_query(void* /*event*/) { return true; }
  void event_synchronize(void* /*event*/) {}
  double event_elapsed(void* begin, void* end) {
    return std::chrono::duration<double, std::milli>(*static_cast<Clock::time_point*>(end) - *static_cast<Clock::time_point*>(begin))
        .count();
  }
#endif
#ifdef EXAMPLE_MEMORY  // memory of the host from which copies need not wait, and fills without the host
  void* pinned_allocate(std::size_t nbytes) { return std::malloc(nbytes); }  // null: out of memory
  void pinned_deallocate(void* data, std::size_t /*nbytes*/) { std::free(data); }
  void fill(int /*device*/, void* data, std::size_t nbytes, uint8_t value, cresset_stream) { std::memset(data, value, nbytes); }
  void fill_pattern(int /*device*/, void* data, std::size_t offset, std::size_t count, const void* pattern, std::size_t size,
                    cresset_stream) {
    for (std::size_t i = 0; i < count; ++i) std::memcpy(static_cast<char*>(data) + offset + i * size, pattern, size);
  }
#endif
#ifdef EXAMPLE_AUTOCAST  // which operators compute in the lower precision under autocast("minimal"), and which do not
  static constexpr int32_t kTypes[] = {CRESSET_BFLOAT16, CRESSET_FLOAT16};
  static constexpr const char* kLower[] = {"aten::mm", "aten::addmm", "aten::linear", nullptr};
  static constexpr cresset_autocast kAutocast{sizeof(cresset_autocast), CRESSET_BFLOAT16, kTypes, 2, kLower, nullptr, nullptr};
#endif
};

namespace minimal_examples {
using cresset::Tensor;

#ifdef EXAMPLE_RNG  // uniform_(self, from, to, generator): positions of the device's stream, or of the generator that is passed
inline bool uniform(cresset::KernelCall& call) {
  const Tensor& out = call.result();
  if (out.scalar_type() != cresset::kFloat) return false;
  const cresset::Generator g = call.none(3) ? cresset::default_generator_of(out.device()) : call.generator(3);
  auto* own = g.get<cresset::DeviceGeneratorImpl>();
  std::lock_guard lock(g.mutex());
  const uint64_t first = own->take(static_cast<uint64_t>(out.numel())), seed = own->current_seed();
  float* to = out.mutable_data_ptr<float>();
  for (int64_t i = 0; i < out.numel(); ++i) {
    uint64_t x = (first + static_cast<uint64_t>(i)) * 0x9E3779B97F4A7C15u + seed * 0xD1B54A32D192ED03u;  // splitmix64
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    to[i] = static_cast<float>(call.real(1) + (call.real(2) - call.real(1)) * (static_cast<double>((x ^ (x >> 31)) >> 40) * 0x1p-24));
  }
  return true;
}
#endif

#ifdef EXAMPLE_OPERATOR  // cresset.ops.minimal.scale(x, by)
inline Tensor scale(const Tensor& x, double by) { return x * by; }
#endif

#ifdef EXAMPLE_AUTOGRAD  // another gradient than the library's: abs has the gradient 1 at 0
struct Abs : cresset::autograd::Function<Abs> {
  static Tensor forward(cresset::autograd::AutogradContext* context, const Tensor& x) {
    context->save_for_backward({x});
    const cresset::AutoDispatchBelowADInplaceOrView below;
    return x.abs();
  }
  static cresset::autograd::variable_list backward(cresset::autograd::AutogradContext* context, cresset::autograd::variable_list grads) {
    const Tensor x = context->get_saved_variables()[0];
    return {grads[0] * (x.ge(0).to(x.scalar_type()) * 2 - 1)};
  }
};
inline Tensor abs(const Tensor& x) { return Abs::apply(x); }
#endif
}  // namespace minimal_examples

// Blocks of kernels, for the end of minimal.cpp.
#ifdef EXAMPLE_RNG
#define MINIMAL_RNG_BLOCK \
  CRESSET_BACKEND_IMPL(Minimal, aten, m) { cresset::register_in_place_kernel(m, "uniform_", &minimal_examples::uniform); }
#else
#define MINIMAL_RNG_BLOCK
#endif
#ifdef EXAMPLE_OPERATOR
#define MINIMAL_OPERATOR_BLOCK                                                  \
  CRESSET_LIBRARY(minimal, m) { m.def("scale(Tensor x, float by) -> Tensor"); } \
  CRESSET_BACKEND_IMPL(Minimal, minimal, m) { m.impl("scale", &minimal_examples::scale); }
#else
#define MINIMAL_OPERATOR_BLOCK
#endif
#ifdef EXAMPLE_AUTOGRAD
#define MINIMAL_AUTOGRAD_BLOCK \
  CRESSET_BACKEND_AUTOGRAD_IMPL(Minimal, aten, m) { m.impl("abs", &minimal_examples::abs); }
#else
#define MINIMAL_AUTOGRAD_BLOCK
#endif
#define MINIMAL_EXAMPLE_BLOCKS MINIMAL_RNG_BLOCK MINIMAL_OPERATOR_BLOCK MINIMAL_AUTOGRAD_BLOCK
