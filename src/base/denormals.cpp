// Flushing of denormal numbers: bits of the processor's control register, which belongs to a thread.
#include <cresset/base/denormals.h>

#include <cstdint>
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#include "base/thread_state.h"

namespace cresset {
namespace {

#if defined(__x86_64__)
constexpr uint32_t kFlush = 0x8040;  // of results (FTZ) and of operands (DAZ)
uint64_t control() { return _mm_getcsr(); }
void set_control(uint64_t bits) { _mm_setcsr(static_cast<uint32_t>(bits)); }
#elif defined(__aarch64__)
constexpr uint64_t kFlush = uint64_t{1} << 24;  // FZ of FPCR
uint64_t control() { return __builtin_aarch64_get_fpcr64(); }
void set_control(uint64_t bits) { __builtin_aarch64_set_fpcr64(bits); }
#else
constexpr uint64_t kFlush = 0;
uint64_t control() { return 0; }
void set_control(uint64_t) {}
#endif

uint64_t flushes() { return (control() & kFlush) != 0; }
void set_flushes(uint64_t on) {
  if (on != flushes()) set_control(on ? control() | kFlush : control() & ~uint64_t{kFlush});
}

const bool flushing_is_carried = [] {
  register_thread_state(flushes, set_flushes);
  return true;
}();

}  // namespace

bool set_flush_denormal(bool on) {
  set_flushes(on);
  return kFlush != 0;
}

}  // namespace cresset
