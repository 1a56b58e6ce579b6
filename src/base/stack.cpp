#include <cresset/base/stack.h>

#include <pthread.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include <cresset/base/error.h>

namespace cresset {
namespace {

// Of big stacks so much is kept for what is called last; of small ones a part.
constexpr std::size_t kKept = 192 << 10, kPart = 4;

struct Bounds {
  uintptr_t lowest = 0, highest = 0;  // what may be used; nothing when that is not known
  std::size_t size = 0;
  Bounds() {
    pthread_attr_t attributes;
    if (pthread_getattr_np(pthread_self(), &attributes) != 0) return;
    void* address = nullptr;
    if (pthread_attr_getstack(&attributes, &address, &size) == 0) {
      highest = reinterpret_cast<uintptr_t>(address) + size;
      lowest = reinterpret_cast<uintptr_t>(address) + std::min(kKept, size / kPart);
    }
    pthread_attr_destroy(&attributes);
  }
};

// The bounds of this thread, behind a key: thread-local variables are scarce (src/base/interrupt.cpp).
const Bounds& bounds_here() {
  static const pthread_key_t key = [] {
    pthread_key_t made;
    CRESSET_CHECK(pthread_key_create(&made, [](void* p) { delete static_cast<Bounds*>(p); }) == 0, "no key for thread-local data is left.");
    return made;
  }();
  auto* bounds = static_cast<Bounds*>(pthread_getspecific(key));
  if (CRESSET_UNLIKELY(!bounds)) {
    bounds = new Bounds;
    pthread_setspecific(key, bounds);
  }
  return *bounds;
}

[[noreturn]] CRESSET_NOINLINE void too_deep(const char* what, std::size_t size) {
  CRESSET_THROW(Error, what, ": nested too deeply for the ", size >> 10, " KiB of this thread's stack.");
}

}  // namespace

void check_stack(const char* what) {
  const Bounds& bounds = bounds_here();
  const auto here = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
  // Above the highest place it is another stack, one of a coroutine.
  if (CRESSET_UNLIKELY(here < bounds.lowest) && here < bounds.highest && here + bounds.size > bounds.highest) too_deep(what, bounds.size);
}

}  // namespace cresset
