#include "ir/native/loops.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include <cresset/ir/native_code.h>

#include "ir/native/emitter.h"
#include "ir/native/region.h"

namespace cresset::jit {
namespace native {
namespace {

bool enabled_at_start() {
  const char* text = std::getenv("CRESSET_NATIVE");
  return !text || std::strcmp(text, "0") != 0;
}
std::atomic<bool> enabled{enabled_at_start()};
std::atomic<uint64_t> rounds_before{5000};
std::atomic<uint64_t> made{0};

}  // namespace
}  // namespace native

const char* native_code_target() { return native::available() ? "x86-64" : "none"; }
bool native_code_enabled() { return native::available() && native::enabled.load(std::memory_order_relaxed); }
void set_native_code(bool on) { native::enabled.store(on, std::memory_order_relaxed); }
uint64_t set_native_code_rounds(uint64_t rounds) { return native::rounds_before.exchange(rounds, std::memory_order_relaxed); }
uint64_t native_code_functions() { return native::made.load(std::memory_order_relaxed); }

namespace native {

MachineCode::MachineCode(std::size_t bytes) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  bytes_ = (bytes + page - 1) / page * page;
  // Private, so that a forked process and this one cannot write into each other's code.
  void* p = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  memory_ = p == MAP_FAILED ? nullptr : p;
}
MachineCode::~MachineCode() {
  if (memory_) munmap(memory_, bytes_);
}
bool MachineCode::make_executable() { return memory_ && mprotect(memory_, bytes_, PROT_READ | PROT_EXEC) == 0; }

uint32_t Loops::open(uint32_t begin) {
  loops_.push_back(std::make_unique<Loop>());
  loops_.back()->begin = begin;
  return static_cast<uint32_t>(loops_.size() - 1);
}

Function Loops::enter(const Code::Impl& code, uint32_t loop, int64_t& rounds) {
  constexpr int64_t kSome = 16, kMany = 4096;
  Loop& l = *loops_[loop];
  const Function f = l.function.load(std::memory_order_acquire);
  const bool on = enabled.load(std::memory_order_relaxed);
  rounds = 0;
  if (CRESSET_LIKELY(f && on)) return f;
  rounds = kMany;
  const uint64_t n = l.rounds.load(std::memory_order_relaxed);
  if (!on || n == Loop::kNever) return nullptr;
  // The rounds that take about as long as the translation, which takes the longer for each instruction the more there are.
  const uint64_t before = rounds_before.load(std::memory_order_relaxed) * (1 + (l.end - l.begin) / 256);
  if (n < before) {
    rounds = std::min<int64_t>(kSome, static_cast<int64_t>(before - n));
    l.rounds.store(n + static_cast<uint64_t>(rounds), std::memory_order_relaxed);
    return nullptr;
  }
  return translate(code, loop);
}

Function Loops::translate(const Code::Impl& code, uint32_t loop) {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock) return nullptr;  // another thread is at it
  Loop& l = *loops_[loop];
  if (const Function f = l.function.load(std::memory_order_acquire)) return f;
  if (const auto region = find_region(code, loop)) {
    MachineCode machine_code = emit(*region);
    if (machine_code.make_executable()) {
      const auto f = reinterpret_cast<Function>(machine_code.memory());
      functions_.push_back(std::move(machine_code));
      for (const uint32_t inside : region->loops) loops_[inside]->function.store(f, std::memory_order_release);
      made.fetch_add(1, std::memory_order_relaxed);
      return f;
    }
  }
  l.rounds.store(Loop::kNever, std::memory_order_relaxed);
  return nullptr;
}

}  // namespace native
}  // namespace cresset::jit
