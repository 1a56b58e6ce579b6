// Idle blocks of host memory, kept for reuse.
#include "core/host_cache.h"

#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <new>

#ifndef CRESSET_CACHE_BLOCKS
#define CRESSET_CACHE_BLOCKS 1
#endif

namespace cresset::detail {
namespace {

constexpr int64_t kSlack = int64_t{32} << 20;

int64_t default_limit() {
  if (!CRESSET_CACHE_BLOCKS) return 0;
  if (const char* text = std::getenv("CRESSET_HOST_CACHE"))
    if (const int64_t bytes = bytes_of(text); bytes >= 0) return bytes;
  const int64_t pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
  return pages > 0 && page > 0 ? pages * page / 2 : int64_t{1} << 30;
}

}  // namespace

int64_t bytes_of(const char* text) {
  char* end = nullptr;
  if (!std::isdigit(static_cast<unsigned char>(*text))) return -1;
  const double number = std::strtod(text, &end);
  int shift = 0;
  switch (std::toupper(static_cast<unsigned char>(*end))) {
    case 'G': shift += 10; [[fallthrough]];
    case 'M': shift += 10; [[fallthrough]];
    case 'K': shift += 10; ++end;
  }
  const double bytes = number * static_cast<double>(int64_t{1} << shift);
  return *end == 0 && bytes < 9e18 ? static_cast<int64_t>(bytes) : -1;
}

HostCache::HostCache() { stats_.limit = default_limit(); }

void* HostCache::pop(std::map<std::size_t, std::vector<Block>>::iterator at) {
  void* p = at->second.back().p;
  stats_.idle_bytes -= static_cast<int64_t>(at->first);
  at->second.pop_back();
  if (at->second.empty()) idle_.erase(at);
  return p;
}

void HostCache::free_oldest() noexcept {
  const auto oldest = std::min_element(idle_.begin(), idle_.end(),
                                       [](const auto& a, const auto& b) { return a.second.front().since < b.second.front().since; });
  std::free(oldest->second.front().p);
  stats_.idle_bytes -= static_cast<int64_t>(oldest->first);
  ++stats_.given_back;
  oldest->second.erase(oldest->second.begin());
  if (oldest->second.empty()) idle_.erase(oldest);
}

void* HostCache::take(std::size_t size) {
  const std::lock_guard lock(mutex_);
  const auto at = idle_.find(size);
  const bool found = at != idle_.end();
  void* p = found ? pop(at) : nullptr;
  ++(found ? stats_.reused : stats_.taken);
  stats_.used_bytes += static_cast<int64_t>(size);
  stats_.peak_bytes = std::max(stats_.peak_bytes, stats_.used_bytes);
  // Blocks of different sizes cannot all stand in for each other: without some slack each step would give back what the next one needs.
  const int64_t most = stats_.peak_bytes + stats_.peak_bytes / 2 + kSlack;
  while (!idle_.empty() && stats_.used_bytes + stats_.idle_bytes > most) free_oldest();
  return p;
}

void HostCache::failed(std::size_t size) noexcept {
  const std::lock_guard lock(mutex_);
  const bool made_peak = stats_.peak_bytes == stats_.used_bytes;
  stats_.used_bytes -= static_cast<int64_t>(size);
  if (made_peak) stats_.peak_bytes = stats_.used_bytes;  // else idle blocks would be kept for what never was
  --stats_.taken;
}

void HostCache::give(void* p, std::size_t size) noexcept {
  const std::lock_guard lock(mutex_);
  stats_.used_bytes -= static_cast<int64_t>(size);
  try {
    if (static_cast<int64_t>(size) > stats_.limit) throw std::bad_alloc();
    idle_[size].push_back({p, ++clock_});
  } catch (const std::bad_alloc&) {
    if (const auto at = idle_.find(size); at != idle_.end() && at->second.empty()) idle_.erase(at);
    std::free(p);
    ++stats_.given_back;
    return;
  }
  stats_.idle_bytes += static_cast<int64_t>(size);
  while (stats_.idle_bytes > stats_.limit) free_oldest();
}

void HostCache::empty() noexcept {
  const std::lock_guard lock(mutex_);
  while (!idle_.empty()) free_oldest();
}

HostCacheStats HostCache::stats() {
  const std::lock_guard lock(mutex_);
  return stats_;
}

HostCache& host_cache() {
  static auto* c = new HostCache;  // never destroyed: tensors may outlive static destruction
  return *c;
}

}  // namespace cresset::detail

namespace cresset {

HostCacheStats host_cache_stats() { return detail::host_cache().stats(); }
void empty_host_cache() { detail::host_cache().empty(); }

}  // namespace cresset
