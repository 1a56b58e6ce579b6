// Preloaded: C++ allocations of which the one with a given number fails.
#include <cstdlib>
#include <new>

namespace {
thread_local long left = -1;  // until the failure; below 0: none is to come
thread_local long seen = 0;
void* allocate(std::size_t n) {
  ++seen;
  if (left > 0 && --left == 0) return nullptr;
  return std::malloc(n ? n : 1);
}
}  // namespace

extern "C" {
void allocations_fail_at(long n) {
  left = n;
  seen = 0;
}
long allocations_seen() { return seen; }
int posix_memalign(void** p, std::size_t alignment, std::size_t n) noexcept {
  ++seen;
  if (left > 0 && --left == 0) return 12;
  *p = aligned_alloc(alignment, (n + alignment - 1) / alignment * alignment);
  return *p ? 0 : 12;
}
}

void* operator new(std::size_t n) {
  if (void* p = allocate(n)) return p;
  throw std::bad_alloc();
}
void* operator new[](std::size_t n) { return operator new(n); }
void* operator new(std::size_t n, const std::nothrow_t&) noexcept { return allocate(n); }
void* operator new[](std::size_t n, const std::nothrow_t&) noexcept { return allocate(n); }
void operator delete(void* p) noexcept { std::free(p); }
void operator delete[](void* p) noexcept { std::free(p); }
void operator delete(void* p, std::size_t) noexcept { std::free(p); }
void operator delete[](void* p, std::size_t) noexcept { std::free(p); }
