// Idle blocks of host memory, kept for reuse.
#include "core/host_cache.h"

#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <iterator>
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

void HostCache::keep(char* p, std::size_t size, bool piece) {
  std::vector<Idle>& blocks = idle_[size];
  try {
    blocks.push_back({p, ++clock_, piece});
  } catch (const std::bad_alloc&) {
    if (blocks.empty()) idle_.erase(size);
    throw;
  }
  stats_.idle_bytes += static_cast<int64_t>(size);
}

void HostCache::forget(char* p, std::size_t size) noexcept {
  const auto at = idle_.find(size);
  const auto last =
      std::find_if(at->second.rbegin(), at->second.rend(), [&](const Idle& block) { return block.p == p; });  // reused ones lie there
  at->second.erase(std::next(last).base());
  if (at->second.empty()) idle_.erase(at);
  stats_.idle_bytes -= static_cast<int64_t>(size);
}

// The first `size` bytes of an idle block become a piece of their own, still idle; the rest is another one. False: no memory to note it.
bool HostCache::cut(const Idle& found, std::size_t whole, std::size_t size) noexcept {
  char* const rest = found.p + size;
  try {
    if (!found.piece) pieces_.emplace(found.p, Piece{whole, found.p, whole, true});
    Piece& first = pieces_.at(found.p);
    pieces_.emplace(rest, Piece{whole - size, first.block, first.block_size, true});
    keep(rest, whole - size, true);
    first.size = size;
    return true;
  } catch (const std::bad_alloc&) {
    pieces_.erase(rest);
    if (!found.piece) pieces_.erase(found.p);
    return false;
  }
}

// An idle block of this size, the one that was given last; or the front of the smallest larger one, whose rest stays idle. Null: none.
char* HostCache::reuse(std::size_t size) noexcept {
  constexpr std::size_t kMostPieces = 8;  // what stays for long should not keep much larger blocks from those that need them
  const auto at = idle_.lower_bound(size);
  if (at == idle_.end() || at->first / kMostPieces > size) return nullptr;
  const std::size_t whole = at->first;
  const Idle found = at->second.back();
  if (whole != size && !cut(found, whole, size)) return nullptr;
  forget(found.p, whole);
  if (const auto piece = pieces_.find(found.p); piece != pieces_.end()) piece->second.idle = false;
  return found.p;
}

// A piece becomes idle, with those beside it that are.
void HostCache::join(char* p, std::size_t size) noexcept {
  auto at = pieces_.find(p);
  at->second.size = size;
  const auto absorb = [&](auto first, auto second) {
    first->second.size += second->second.size;
    pieces_.erase(second);
    return first;
  };
  const auto is_idle = [&](auto other) { return other->second.idle && other->second.block == at->second.block; };
  if (const auto next = std::next(at); next != pieces_.end() && is_idle(next)) {
    forget(next->first, next->second.size);
    absorb(at, next);
  }
  if (at != pieces_.begin())
    if (const auto before = std::prev(at); is_idle(before)) {
      forget(before->first, before->second.size);
      before->second.idle = false;
      at = absorb(before, at);
    }
  const Piece whole = at->second;
  char* const start = at->first;
  if (whole.size == whole.block_size)
    pieces_.erase(at);
  else
    at->second.idle = true;
  try {
    keep(start, whole.size, whole.size != whole.block_size);
  } catch (const std::bad_alloc&) {  // a piece cannot be freed: it is lost
    if (whole.size == whole.block_size)
      std::free(start);
    else
      at->second.idle = false;
  }
}

// Of whole blocks. Is there one?
bool HostCache::free_oldest() noexcept {
  auto of_size = idle_.end();
  std::vector<Idle>::iterator oldest;
  for (auto at = idle_.begin(); at != idle_.end(); ++at) {
    const auto first = std::find_if(at->second.begin(), at->second.end(), [](const Idle& block) { return !block.piece; });
    if (first == at->second.end() || (of_size != idle_.end() && oldest->since < first->since)) continue;
    of_size = at;
    oldest = first;
  }
  if (of_size == idle_.end()) return false;
  std::free(oldest->p);
  forget(oldest->p, of_size->first);
  ++stats_.given_back;
  return true;
}

void* HostCache::take(std::size_t size) {
  const std::lock_guard lock(mutex_);
  char* const p = reuse(size);
  ++(p ? stats_.reused : stats_.taken);
  stats_.used_bytes += static_cast<int64_t>(size);
  stats_.peak_bytes = std::max(stats_.peak_bytes, stats_.used_bytes);
  // Blocks of different sizes cannot all stand in for each other: without some slack each step would give back what the next one needs.
  const int64_t most = stats_.peak_bytes + stats_.peak_bytes / 2 + kSlack;
  while (stats_.used_bytes + stats_.idle_bytes > most && free_oldest()) {
  }
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
  char* const block = static_cast<char*>(p);
  if (pieces_.contains(block)) {
    join(block, size);
  } else {
    try {
      if (static_cast<int64_t>(size) > stats_.limit) throw std::bad_alloc();
      keep(block, size, false);
    } catch (const std::bad_alloc&) {
      std::free(p);
      ++stats_.given_back;
      return;
    }
  }
  while (stats_.idle_bytes > stats_.limit && free_oldest()) {
  }
}

void HostCache::empty() noexcept {
  const std::lock_guard lock(mutex_);
  while (free_oldest()) {
  }
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
