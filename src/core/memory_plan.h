// Where the blocks of runs lie that allocate alike.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include <cresset/base/macros.h>

namespace cresset::detail {

class PlannedRun;

/// Memory of runs that ask for the same blocks in the same order, as a graph does for inputs of the same sizes. The first run is let go,
/// since it may make what is kept. The second is recorded: which blocks it takes, and which of those it gives back. From then on each run
/// has one arena with a place for every block that is given back, the same for blocks whose times do not meet: what was used just now is in
/// the caches. A block that is not the one expected, or whose place is taken, lies elsewhere; so plans decide about speed only.
class CRESSET_API MemoryPlan {
 public:
  /// Bytes of the arena, and of all the blocks that lie in it in turn; 0 as long as there is no plan.
  int64_t arena_bytes() const;
  int64_t block_bytes() const;

 private:
  friend class PlannedRun;
  enum class State : uint8_t { New, Seen, Recording, Ready, Off };
  struct Layout {
    std::vector<std::size_t> sizes;
    std::vector<std::ptrdiff_t> places;  // negative: not in the arena
    std::size_t bytes = 0;
  };
  struct Block {
    std::size_t size;
    int64_t from, to;  // in allocations and frees; `to` is negative while it is not given back
  };
  static std::shared_ptr<const Layout> laid_out(const std::vector<Block>& blocks);
  void recorded(const std::vector<Block>& blocks, bool whole);
  void failed();

  mutable std::mutex mutex_;
  State state_ = State::New;
  int failures_ = 0;
  std::shared_ptr<const Layout> layout_;
};

struct Arena;

/// While it lives, the blocks above 4 KiB that its thread takes are of a run of the plan. Inside another one it does nothing: its blocks
/// are the outer run's.
class CRESSET_API PlannedRun {
 public:
  explicit PlannedRun(std::shared_ptr<MemoryPlan> plan);
  ~PlannedRun();
  PlannedRun(const PlannedRun&) = delete;
  PlannedRun& operator=(const PlannedRun&) = delete;

  // The allocator's. Null: a block of the usual kind is to be taken, and took() tells which one it was.
  void* take(std::size_t n) noexcept;
  void took(void* p, std::size_t n) noexcept;
  void gave(void* p) noexcept;

 private:
  enum class Does : uint8_t { Nothing, Record, Place };

  std::shared_ptr<MemoryPlan> plan_;
  Does does_ = Does::Nothing;
  int exceptions_;
  // Recording.
  std::vector<MemoryPlan::Block> blocks_;
  std::unordered_map<void*, std::size_t> taken_;
  int64_t clock_ = 0;
  bool whole_ = true;
  // Placing.
  std::shared_ptr<const MemoryPlan::Layout> layout_;
  std::size_t next_ = 0;
  bool as_expected_ = true;
  Arena* arena_ = nullptr;
};

// The run of this thread, or null. It lies beside the allocator's lists (allocator.cpp): thread-local memory of libraries is scarce.
PlannedRun* planned_run() noexcept;
/// False in a thread that is ending.
bool set_planned_run(PlannedRun* run);
// How many arenas there are: without any, no block has to be looked for in them.
extern CRESSET_API constinit std::atomic<int> num_arenas;
/// Gives a block back to its arena. False when it lies in none.
bool give_to_arena(void* p) noexcept;

}  // namespace cresset::detail
