#include "core/memory_plan.h"

#include <algorithm>
#include <exception>
#include <numeric>
#include <utility>

#include <cresset/base/fork.h>
#include <cresset/core/allocator.h>

namespace cresset::detail {

constinit std::atomic<int> num_arenas{0};

// The memory of one run. Tensors may outlive it; the last one frees it then.
struct Arena {
  struct Span {
    std::size_t from, to;
  };
  char* base;
  std::size_t bytes;
  std::vector<Span> live;  // with room for all that can be
  bool run_is_over = false;
};

namespace {

constexpr std::size_t kAlignment = 64, kMostBlocks = 20'000;
constexpr int kMostFailures = 3;

struct Arenas {
  ForkSafe<std::mutex> mutex;  // of all arenas, too
  std::vector<Arena*> all;
};
Arenas& arenas() {
  static auto* a = new Arenas;  // never destroyed: tensors may outlive static destruction
  return *a;
}

// Null when there is not enough memory.
Arena* made_arena(std::size_t bytes, std::size_t blocks) noexcept {
  void* base = nullptr;
  try {
    auto arena = std::make_unique<Arena>();
    arena->live.reserve(blocks);
    base = alloc_cpu(bytes);
    arena->base = static_cast<char*>(base);
    arena->bytes = bytes;
    Arenas& a = arenas();
    const std::lock_guard lock(a.mutex);
    a.all.push_back(arena.get());
    num_arenas.fetch_add(1, std::memory_order_relaxed);
    return arena.release();
  } catch (const std::exception&) {
    if (base) free_cpu_sized(base, bytes);
    return nullptr;
  }
}
// With the mutex held; the caller frees what comes back.
std::unique_ptr<Arena> taken_out(Arenas& a, Arena* arena) noexcept {
  std::erase(a.all, arena);
  num_arenas.fetch_sub(1, std::memory_order_relaxed);
  return std::unique_ptr<Arena>(arena);
}
void free_memory(const std::unique_ptr<Arena>& arena) noexcept {
  if (arena) free_cpu_sized(arena->base, arena->bytes);
}

}  // namespace

bool give_to_arena(void* p) noexcept {
  std::unique_ptr<Arena> over;
  {
    Arenas& a = arenas();
    const std::lock_guard lock(a.mutex);
    const auto holds = [p](const Arena* arena) {
      const auto at = reinterpret_cast<uintptr_t>(p), base = reinterpret_cast<uintptr_t>(arena->base);
      return at >= base && at < base + arena->bytes;
    };
    const auto found = std::find_if(a.all.begin(), a.all.end(), holds);
    if (found == a.all.end()) return false;
    Arena* arena = *found;
    const auto from = static_cast<std::size_t>(static_cast<char*>(p) - arena->base);
    std::erase_if(arena->live, [from](const Arena::Span& s) { return s.from == from; });
    if (arena->run_is_over && arena->live.empty()) over = taken_out(a, arena);
  }
  free_memory(over);
  return true;
}

int64_t MemoryPlan::arena_bytes() const {
  const std::lock_guard lock(mutex_);
  return layout_ ? static_cast<int64_t>(layout_->bytes) : 0;
}

int64_t MemoryPlan::block_bytes() const {
  const std::lock_guard lock(mutex_);
  int64_t sum = 0;
  if (layout_)
    for (std::size_t i = 0; i < layout_->sizes.size(); ++i)
      if (layout_->places[i] >= 0) sum += static_cast<int64_t>(layout_->sizes[i]);
  return sum;
}

// The largest block first, each into the smallest gap that it fits into among those of its time (Y. Pisarchyk, J. Lee (2020), "Efficient
// memory management for deep neural net inference", greedy by size).
std::shared_ptr<const MemoryPlan::Layout> MemoryPlan::laid_out(const std::vector<Block>& blocks) {
  auto out = std::make_shared<Layout>();
  out->places.assign(blocks.size(), -1);
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    out->sizes.push_back(blocks[i].size);
    if (blocks[i].to >= 0) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return blocks[a].size > blocks[b].size; });
  const auto room_of = [&](std::size_t i) {
    return static_cast<std::ptrdiff_t>((blocks[i].size + kAlignment - 1) / kAlignment * kAlignment);
  };
  std::vector<std::size_t> placed;  // by their places
  for (const std::size_t i : order) {
    std::ptrdiff_t end = 0, best = -1, best_gap = PTRDIFF_MAX;
    for (const std::size_t j : placed) {
      if (blocks[j].to < blocks[i].from || blocks[j].from > blocks[i].to) continue;
      const std::ptrdiff_t gap = out->places[j] - end;
      if (gap >= room_of(i) && gap < best_gap) std::tie(best, best_gap) = std::pair(end, gap);
      end = std::max(end, out->places[j] + room_of(j));
    }
    out->places[i] = best >= 0 ? best : end;
    out->bytes = std::max(out->bytes, static_cast<std::size_t>(out->places[i] + room_of(i)));
    const auto after = [&](std::size_t a, std::size_t b) { return out->places[a] < out->places[b]; };
    placed.insert(std::upper_bound(placed.begin(), placed.end(), i, after), i);
  }
  return out;
}

void MemoryPlan::recorded(const std::vector<Block>& blocks, bool whole) {
  std::shared_ptr<const Layout> layout;
  if (whole) layout = laid_out(blocks);
  const std::lock_guard lock(mutex_);
  state_ = !whole ? State::Seen : layout->bytes > 0 ? State::Ready : State::Off;
  layout_ = std::move(layout);
}

void MemoryPlan::failed() {
  const std::lock_guard lock(mutex_);
  if (state_ != State::Ready) return;
  state_ = ++failures_ < kMostFailures ? State::Seen : State::Off;
  layout_ = nullptr;
}

PlannedRun::PlannedRun(std::shared_ptr<MemoryPlan> plan) : exceptions_(std::uncaught_exceptions()) {
  if (!plan || planned_run() || !set_planned_run(this)) return;
  set_planned_run(nullptr);  // what is taken below is not of the run
  {
    const std::lock_guard lock(plan->mutex_);
    using State = MemoryPlan::State;
    if (plan->state_ == State::New) {
      plan->state_ = State::Seen;
    } else if (plan->state_ == State::Seen) {
      plan->state_ = State::Recording;
      does_ = Does::Record;
    } else if (plan->state_ == State::Ready) {
      layout_ = plan->layout_;
      does_ = Does::Place;
    }
  }
  if (does_ == Does::Place && !(arena_ = made_arena(layout_->bytes, layout_->sizes.size()))) does_ = Does::Nothing;
  if (does_ == Does::Nothing) return;
  plan_ = std::move(plan);
  set_planned_run(this);
}

PlannedRun::~PlannedRun() {
  if (!plan_) return;
  set_planned_run(nullptr);
  const bool ended = std::uncaught_exceptions() == exceptions_;
  if (does_ == Does::Record) {
    try {
      plan_->recorded(blocks_, whole_ && ended);
    } catch (const std::bad_alloc&) {
      plan_->recorded({}, false);
    }
    return;
  }
  if (ended && (!as_expected_ || next_ != layout_->sizes.size())) plan_->failed();
  std::unique_ptr<Arena> over;
  {
    Arenas& a = arenas();
    const std::lock_guard lock(a.mutex);
    arena_->run_is_over = true;
    if (arena_->live.empty()) over = taken_out(a, arena_);
  }
  free_memory(over);
}

void* PlannedRun::take(std::size_t n) noexcept {
  if (does_ != Does::Place || !as_expected_) return nullptr;
  const std::size_t i = next_++;
  as_expected_ = i < layout_->sizes.size() && layout_->sizes[i] == n;
  if (!as_expected_ || layout_->places[i] < 0) return nullptr;
  const auto from = static_cast<std::size_t>(layout_->places[i]);
  const std::lock_guard lock(arenas().mutex);
  for (const Arena::Span& s : arena_->live)
    if (s.from < from + n && from < s.to) return nullptr;
  arena_->live.push_back({from, from + n});
  return arena_->base + from;
}

void PlannedRun::took(void* p, std::size_t n) noexcept {
  if (does_ != Does::Record || !whole_) return;
  try {
    taken_.insert_or_assign(p, blocks_.size());
    blocks_.push_back({n, clock_++, -1});
    whole_ = blocks_.size() <= kMostBlocks;
  } catch (const std::bad_alloc&) {
    whole_ = false;
  }
}

void PlannedRun::gave(void* p) noexcept {
  if (does_ != Does::Record) return;
  const auto found = taken_.find(p);
  if (found == taken_.end()) return;
  blocks_[found->second].to = clock_++;
  taken_.erase(found);
}

}  // namespace cresset::detail
