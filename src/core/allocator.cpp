// The CPU allocator: thread-local free lists for small blocks, a shared cache for big ones.
#include <cresset/base/interrupt.h>
#include <cresset/base/parallel.h>
#include <cresset/core/allocator.h>
#include <cresset/core/device_allocator.h>

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>

#include "core/host_cache.h"
#include "core/memory_plan.h"
#include "core/memory_watch.h"

#ifndef CRESSET_CACHE_BLOCKS
#define CRESSET_CACHE_BLOCKS 1
#endif

namespace cresset {

constinit std::atomic<detail::MemoryWatcher> detail::profiler_memory_watcher{nullptr};
constinit std::atomic<detail::MemoryWatcher> detail::transform_memory_watcher{nullptr};

namespace {

constexpr std::size_t kAlignment = 64;
constexpr std::size_t kSmallLimit = 4096;  // blocks up to here live on thread-local lists, in steps of 64 bytes
constexpr std::size_t kSmallClasses = kSmallLimit / kAlignment;
constexpr uint32_t kSmallKept = 64;            // blocks kept per class and thread
constexpr std::size_t kBigStart = 128u << 10;  // blocks from here on are kept for reuse
constexpr std::size_t kHugeStart = 1u << 20;   // blocks from here on lie where huge pages may begin

std::atomic<int64_t> live_bytes{0}, peak_bytes{0};

void count(int64_t n) {
  const int64_t now = live_bytes.fetch_add(n, std::memory_order_relaxed) + n;
  int64_t peak = peak_bytes.load(std::memory_order_relaxed);
  while (now > peak && !peak_bytes.compare_exchange_weak(peak, now, std::memory_order_relaxed)) {
  }
}

[[noreturn]] void out_of_memory(std::size_t n) {
  CRESSET_THROW(OutOfMemoryError, "CPU allocator: not enough memory: you tried to allocate ", n,
                " bytes. Use smaller sizes or free tensors first.");
}

/// Null when there is not enough.
void* try_system_alloc(std::size_t n) {
  void* p = nullptr;
  if (n > (std::size_t{1} << 62) || posix_memalign(&p, n >= kHugeStart ? std::size_t{2} << 20 : kAlignment, n) != 0) return nullptr;
#if defined(MADV_HUGEPAGE)
  if (n >= (std::size_t{4} << 20)) madvise(p, n, MADV_HUGEPAGE);
#endif
  return p;
}

struct FreeBlock {
  FreeBlock* next;
};

struct SmallList {
  FreeBlock* head = nullptr;
  uint32_t kept = 0;
};
using SmallLists = std::array<SmallList, kSmallClasses + 1>;
// A pointer, because thread-local memory of a library that is loaded late is scarce. Null before first use and after
// the thread's end: blocks then come from and go back to the system.
thread_local constinit SmallLists* small_lists __attribute__((tls_model("initial-exec"))) = nullptr;
// The same for storages, but null in a thread whose memory is watched: its storages take the slow path, which tells the watcher.
thread_local constinit SmallLists* storage_lists __attribute__((tls_model("initial-exec"))) = nullptr;
thread_local constinit bool storages_watched = false;

// Makes the lists and empties them when the thread ends.
struct SmallListsOwner : SmallLists {
  detail::PlannedRun* run = nullptr;
  SmallListsOwner() : SmallLists{} { small_lists = this; }
  ~SmallListsOwner() {
    small_lists = storage_lists = nullptr;
    for (SmallList& list : *this)
      while (list.head) std::free(std::exchange(list.head, list.head->next));
  }
};
// Once for each thread; a thread that is ending does not get new lists.
CRESSET_NOINLINE void make_small_lists() {
  static thread_local const std::unique_ptr<SmallListsOwner> owner(new SmallListsOwner);
  (void)owner;
}

std::size_t class_of(std::size_t n) { return (n + kAlignment - 1) / kAlignment; }
// Big sizes are rounded so that near sizes share blocks: an eighth of the leading power of two.
std::size_t big_size(std::size_t n) {
  const std::size_t step = std::max<std::size_t>(std::bit_floor(n) / 8, 4096);
  return (n + step - 1) / step * step;
}

void* system_alloc(std::size_t n) {
  if (void* p = try_system_alloc(n)) return p;
  detail::host_cache().empty();
  if (void* p = try_system_alloc(n)) return p;
  out_of_memory(n);
}

CRESSET_NOINLINE void* small_slow(std::size_t c) {
  if (!small_lists) make_small_lists();
  return system_alloc(c * kAlignment);
}

// The slow paths are functions of their own so that the quick ones need no stack frame.
void* take_large(std::size_t n) {
  if (n < kBigStart) return system_alloc((n + kAlignment - 1) / kAlignment * kAlignment);
  check_memory_limit(static_cast<int64_t>(std::min<std::size_t>(n, INT64_MAX)));
  const std::size_t size = big_size(n);
  if (void* p = detail::host_cache().take(size)) return p;
  try {
    return system_alloc(size);
  } catch (...) {
    detail::host_cache().failed(size);
    throw;
  }
}
CRESSET_NOINLINE void* alloc_large(std::size_t n) {
  detail::PlannedRun* run = detail::planned_run();
  if (run && in_parallel_region()) run = nullptr;  // which thread takes which part, and its blocks, is another each time
  if (run)
    if (void* p = run->take(n)) return p;
  void* p = take_large(n);
  count(static_cast<int64_t>(n));  // only what was given
  if (run) run->took(p, n);
  return p;
}

CRESSET_NOINLINE void free_large(void* p, std::size_t n) noexcept {
  if (n > kSmallLimit) {
    if (detail::PlannedRun* run = detail::planned_run()) run->gave(p);
    if (detail::num_arenas.load(std::memory_order_relaxed) > 0 && detail::give_to_arena(p)) return;
    count(-static_cast<int64_t>(n));
  }
  if (n >= kBigStart) return detail::host_cache().give(p, big_size(n));
  std::free(p);
}

struct CPUAllocator final : Allocator {
  constexpr CPUAllocator() = default;
  DataPtr allocate(std::size_t n) override {
    if (n == 0) return DataPtr(nullptr, kCPU);
    // The size is stored in front of the block, one alignment step before the data.
    auto* base = static_cast<char*>(alloc_cpu(n + kAlignment));
    std::memcpy(base, &n, sizeof n);
    detail::memory_changed(base + kAlignment, static_cast<int64_t>(n), kCPU);
    return DataPtr(base + kAlignment, base, &release, kCPU);
  }
  static void release(void* base) {
    std::size_t n;
    std::memcpy(&n, base, sizeof n);
    detail::memory_changed(static_cast<char*>(base) + kAlignment, -static_cast<int64_t>(n), kCPU);
    free_cpu_sized(base, n + kAlignment);
  }
};
// Never destroyed: tensors may outlive static destruction.
union AllocatorSlot {
  CPUAllocator allocator;
  constexpr AllocatorSlot() : allocator() {}
  ~AllocatorSlot() {}
};
constinit AllocatorSlot cpu_allocator;

std::array<std::atomic<Allocator*>, kDeviceTypeCount>& allocators() {
  static std::array<std::atomic<Allocator*>, kDeviceTypeCount> a{};
  return a;
}

}  // namespace

detail::PlannedRun* detail::planned_run() noexcept { return small_lists ? static_cast<SmallListsOwner*>(small_lists)->run : nullptr; }
bool detail::set_planned_run(PlannedRun* run) {
  if (!small_lists) make_small_lists();
  if (!small_lists) return false;
  static_cast<SmallListsOwner*>(small_lists)->run = run;
  return true;
}

namespace {
/// A block of the class from these lists, or null.
CRESSET_ALWAYS_INLINE void* take_small([[maybe_unused]] SmallLists* lists, [[maybe_unused]] std::size_t c) {
#if CRESSET_CACHE_BLOCKS
  if (CRESSET_LIKELY(lists != nullptr)) {
    SmallList& list = (*lists)[c];
    if (FreeBlock* block = list.head; CRESSET_LIKELY(block != nullptr)) {
      list.head = block->next;
      --list.kept;
      return block;
    }
  }
#endif
  return nullptr;
}
/// Puts a block into these lists; false when it does not belong there or they are full.
CRESSET_ALWAYS_INLINE bool give_small([[maybe_unused]] SmallLists* lists, [[maybe_unused]] void* p,
                                      [[maybe_unused]] std::size_t n) noexcept {
#if CRESSET_CACHE_BLOCKS
  if (CRESSET_LIKELY(n <= kSmallLimit && n != 0 && lists != nullptr)) {
    SmallList& list = (*lists)[class_of(n)];
    if (CRESSET_LIKELY(list.kept < kSmallKept)) {
      auto* block = static_cast<FreeBlock*>(p);
      block->next = list.head;
      list.head = block;
      ++list.kept;
      return true;
    }
  }
#endif
  return false;
}

CRESSET_NOINLINE void* alloc_storage_slow(std::size_t n) {
  void* p = alloc_cpu(n);
  if (!detail::memory_is_watched()) storages_watched = false;
  if (!storages_watched) storage_lists = small_lists;
  detail::memory_changed(p, static_cast<int64_t>(n), kCPU);
  return p;
}
CRESSET_NOINLINE void free_storage_slow(void* p, std::size_t n) noexcept {
  detail::memory_changed(p, -static_cast<int64_t>(n), kCPU);
  free_cpu_sized(p, n);
}
}  // namespace

void* alloc_cpu(std::size_t n) {
  if (CRESSET_UNLIKELY(n > kSmallLimit)) return alloc_large(n);
  const std::size_t c = class_of(n);
  if (void* p = take_small(small_lists, c); CRESSET_LIKELY(p != nullptr)) return p;
  return small_slow(c ? c : 1);
}
void* detail::alloc_storage(std::size_t n) {
  if (CRESSET_LIKELY(n <= kSmallLimit))
    if (void* p = take_small(storage_lists, class_of(n)); CRESSET_LIKELY(p != nullptr)) return p;
  return alloc_storage_slow(n);
}

void free_cpu_sized(void* p, std::size_t n) noexcept {
  if (!p) return;
  if (CRESSET_LIKELY(give_small(small_lists, p, n))) return;
  free_large(p, n);
}
void detail::free_storage(void* p, std::size_t n) noexcept {
  if (!p) return;
  if (CRESSET_LIKELY(give_small(storage_lists, p, n))) return;
  free_storage_slow(p, n);
}

void detail::watch_small_storages() {
  storages_watched = true;
  storage_lists = nullptr;
}

MemoryStats cpu_memory_stats() { return {live_bytes.load(), peak_bytes.load()}; }
void reset_peak_cpu_memory_stats() { peak_bytes.store(live_bytes.load()); }

DataPtr Allocator::allocate(std::size_t) const {
  CRESSET_THROW(Error,
                "Allocator: an allocator that overrides allocate(size_t) const was required, which this one does not, or that is asked "
                "through a pointer that is not const.");
}

Allocator* GetCPUAllocator() { return &cpu_allocator.allocator; }

Allocator* GetAllocator(DeviceType t) {
  Allocator* a = t >= DeviceType::HIP ? nullptr : allocators().at(static_cast<std::size_t>(t)).load();
  if (!a && t == DeviceType::CPU) a = GetCPUAllocator();
  CRESSET_CHECK(a, "allocator: none is registered for device '", DeviceTypeName(t), "'. Call SetAllocator in the backend's set-up.");
  return a;
}

DeviceAllocator* find_device_allocator(DeviceType t) {
  return t >= DeviceType::HIP ? nullptr : dynamic_cast<DeviceAllocator*>(allocators().at(static_cast<std::size_t>(t)).load());
}

void SetAllocator(DeviceType t, Allocator* allocator) { allocators().at(static_cast<std::size_t>(t)).store(allocator); }

}  // namespace cresset
