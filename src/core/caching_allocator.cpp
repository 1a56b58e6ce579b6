// The caching allocator that backends may share.
#include <cresset/base/fork.h>
#include <cresset/core/caching_allocator.h>

#include <algorithm>
#include <limits>
#include <map>
#include <mutex>
#include <unordered_map>

#include <cresset/base/error.h>

namespace cresset {
namespace {

constexpr std::size_t kSmall = std::size_t{1} << 20;

/// The largest block that may serve a request: little is lost to large ones, and small ones fit sizes that vary.
std::size_t acceptable(std::size_t block) { return block <= kSmall ? 2 * block : block + block / 4; }

}  // namespace

struct CachingAllocator::State {
  explicit State(BlockSource& s) : source(s) {}

  struct Waiting {
    void* data;
    std::size_t nbytes;
    std::vector<void*> marks;
  };

  void* reuse(std::size_t nbytes) {
    const auto at = free.lower_bound(nbytes);
    if (at == free.end() || at->first > acceptable(nbytes)) return nullptr;
    void* data = at->second;
    used.emplace(data, at->first);
    free.erase(at);
    return data;
  }
  void collect(bool wait) {
    std::erase_if(waiting, [&](Waiting& w) {
      std::erase_if(w.marks, [&](void* mark) {
        if (!source.passed(mark, wait)) return false;
        source.drop(mark);
        return true;
      });
      if (!w.marks.empty()) return false;
      free.emplace(w.nbytes, w.data);
      return true;
    });
  }
  void give_free_blocks() {
    for (const auto& [nbytes, data] : free) {
      source.give(data, nbytes);
      stats.reserved_bytes -= static_cast<int64_t>(nbytes);
    }
    free.clear();
  }
  void* take(std::size_t nbytes) {
    void* data = source.take(nbytes);
    if (!data) {
      ++stats.retries;
      collect(true);
      give_free_blocks();
      data = source.take(nbytes);
    }
    if (!data) return nullptr;
    used.emplace(data, nbytes);
    stats.reserved_bytes += static_cast<int64_t>(nbytes);
    stats.peak_reserved_bytes = std::max(stats.peak_reserved_bytes, stats.reserved_bytes);
    return data;
  }

  BlockSource& source;
  mutable ForkSafe<std::mutex> mutex;
  std::unordered_map<void*, std::size_t> used;
  std::multimap<std::size_t, void*> free;
  std::vector<Waiting> waiting;
  CachingAllocatorStats stats;
};

CachingAllocator::CachingAllocator(BlockSource& source) : state_(std::make_unique<State>(source)) {}
CachingAllocator::~CachingAllocator() = default;

std::size_t CachingAllocator::block_size(std::size_t nbytes) {
  const std::size_t step = nbytes <= kSmall ? 512 : std::size_t{128} << 10;
  CRESSET_CHECK_AS(OutOfMemoryError, nbytes <= std::numeric_limits<std::size_t>::max() - step, "you tried to allocate ", nbytes, " bytes");
  return (nbytes + step - 1) / step * step;
}

void* CachingAllocator::allocate(std::size_t nbytes) {
  const std::size_t size = block_size(nbytes);
  State& s = *state_;
  const std::lock_guard lock(s.mutex);
  s.collect(false);
  void* data = s.reuse(size);
  const bool reused = data != nullptr;
  if (!reused) data = s.take(size);
  if (!data) return nullptr;
  ++s.stats.allocations;
  s.stats.reused += reused;
  s.stats.allocated_bytes += static_cast<int64_t>(s.used.at(data));
  s.stats.peak_allocated_bytes = std::max(s.stats.peak_allocated_bytes, s.stats.allocated_bytes);
  return data;
}

void CachingAllocator::deallocate(void* data) {
  State& s = *state_;
  const std::lock_guard lock(s.mutex);
  const auto at = s.used.find(data);
  CRESSET_CHECK(at != s.used.end(), "CachingAllocator: the address is not a block in use.");
  const std::size_t nbytes = at->second;
  s.used.erase(at);
  s.stats.allocated_bytes -= static_cast<int64_t>(nbytes);
  if (std::vector<void*> marks = s.source.marks(); !marks.empty())
    s.waiting.push_back({data, nbytes, std::move(marks)});
  else
    s.free.emplace(nbytes, data);
}

void CachingAllocator::empty_cache() {
  const std::lock_guard lock(state_->mutex);
  state_->collect(true);
  state_->give_free_blocks();
}

CachingAllocatorStats CachingAllocator::stats() const {
  const std::lock_guard lock(state_->mutex);
  return state_->stats;
}

void CachingAllocator::reset_peaks() {
  const std::lock_guard lock(state_->mutex);
  state_->stats.peak_allocated_bytes = state_->stats.allocated_bytes;
  state_->stats.peak_reserved_bytes = state_->stats.reserved_bytes;
}

}  // namespace cresset
