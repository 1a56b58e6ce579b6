// Registry of thread-local words carried to worker threads.
#include "base/thread_state.h"

#include <cresset/base/error.h>

namespace cresset {
namespace {
struct Slot {
  uint64_t (*get)();
  void (*set)(uint64_t);
};
struct Slots {
  std::array<Slot, ThreadState::kMaxSlots> items{};
  int count = 0;
};
Slots& slots() {
  static Slots s;
  return s;
}
}  // namespace

void register_thread_state(uint64_t (*get)(), void (*set)(uint64_t)) {
  Slots& s = slots();
  CRESSET_INTERNAL_ASSERT(s.count < ThreadState::kMaxSlots);
  s.items[s.count++] = {get, set};
}

ThreadState ThreadState::capture() {
  ThreadState state;
  const Slots& s = slots();
  for (int i = 0; i < s.count; ++i) state.words[i] = s.items[i].get();
  return state;
}

void ThreadState::install() const {
  const Slots& s = slots();
  for (int i = 0; i < s.count; ++i) s.items[i].set(words[i]);
}

}  // namespace cresset
