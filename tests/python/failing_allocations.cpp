// Preloaded: C++ allocations of which the one with a given number fails. Those that oneDNN makes itself do not: it writes to what it did
// not get.
#include <dlfcn.h>

#include <cstdlib>
#include <cstring>
#include <new>

namespace {
thread_local long left = -1;  // until the failure; below 0: none is to come
thread_local long seen = 0;
bool fails(const void* caller) {
  Dl_info of;
  if (dladdr(caller, &of) && of.dli_fname && std::strstr(of.dli_fname, "libdnnl")) return false;
  ++seen;
  return left > 0 && --left == 0;
}
void* allocate(std::size_t n, const void* caller) { return fails(caller) ? nullptr : std::malloc(n ? n : 1); }
void* allocate_or_throw(std::size_t n, const void* caller) {
  if (void* p = allocate(n, caller)) return p;
  throw std::bad_alloc();
}
}  // namespace

extern "C" {
void allocations_fail_at(long n) {
  left = n;
  seen = 0;
}
long allocations_seen() { return seen; }
int posix_memalign(void** p, std::size_t alignment, std::size_t n) noexcept {
  if (fails(__builtin_return_address(0))) return 12;
  *p = aligned_alloc(alignment, (n + alignment - 1) / alignment * alignment);
  return *p ? 0 : 12;
}
}

void* operator new(std::size_t n) { return allocate_or_throw(n, __builtin_return_address(0)); }
void* operator new[](std::size_t n) { return allocate_or_throw(n, __builtin_return_address(0)); }
void* operator new(std::size_t n, const std::nothrow_t&) noexcept { return allocate(n, __builtin_return_address(0)); }
void* operator new[](std::size_t n, const std::nothrow_t&) noexcept { return allocate(n, __builtin_return_address(0)); }
void operator delete(void* p) noexcept { std::free(p); }
void operator delete[](void* p) noexcept { std::free(p); }
void operator delete(void* p, std::size_t) noexcept { std::free(p); }
void operator delete[](void* p, std::size_t) noexcept { std::free(p); }
