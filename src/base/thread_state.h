// Thread-local state that travels to worker threads. Higher layers register words they want carried along
// (dispatch key sets, grad mode), so that base needs no knowledge of them.
#pragma once

#include <array>
#include <cstdint>

#include <cresset/base/macros.h>

namespace cresset {

/// A snapshot of every registered thread-local word.
struct CRESSET_API ThreadState {
  static constexpr int kMaxSlots = 12;
  std::array<uint64_t, kMaxSlots> words{};
  static ThreadState capture();
  void install() const;
};

/// Installs a snapshot for a scope and puts the old state back.
class ThreadStateGuard {
 public:
  explicit ThreadStateGuard(const ThreadState& s) : saved_(ThreadState::capture()) { s.install(); }
  ~ThreadStateGuard() { saved_.install(); }
  ThreadStateGuard(const ThreadStateGuard&) = delete;

 private:
  ThreadState saved_;
};

/// Adds one thread-local word to the snapshot; call during static initialisation.
CRESSET_API void register_thread_state(uint64_t (*get)(), void (*set)(uint64_t));

}  // namespace cresset
