// Loops of scalar code as machine code: what the interpreter knows of it.
//
// Every loop of flat code begins with the instruction LOOP, which counts rounds in a register of the frame. When a loop has gone round
// often enough, the largest loop around it that consists of instructions with a translation becomes one function, which can be entered at
// each loop inside it. The function keeps scalar registers in those of the machine, and gives back the number of the instruction where the
// interpreter goes on: behind the loop, or at an instruction that fails or that has no translation, which the interpreter then executes
// (again) with everything where it expects it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include <cresset/ir/interpreter.h>

namespace cresset::jit {

class Frame;
union Slot;

namespace native {

/// `entry`: the number of the loop whose LOOP is to be executed next. Gives the instruction after.
using Function = uint64_t (*)(Slot* s, IValue* r, Frame* frame, uint64_t entry);

/// Was the library built with a translation for this processor?
bool available();

/// Pages of one function: written, then made executable.
class MachineCode {
 public:
  MachineCode() = default;
  explicit MachineCode(std::size_t bytes);
  MachineCode(MachineCode&& o) noexcept : memory_(std::exchange(o.memory_, nullptr)), bytes_(o.bytes_) {}
  ~MachineCode();
  void* memory() const { return memory_; }
  /// Gives up the right to write; false when the system does not allow execution.
  bool make_executable();

 private:
  void* memory_ = nullptr;
  std::size_t bytes_ = 0;
};

struct Loop {
  uint32_t begin = 0, end = 0;  // instructions: its LOOP, and the one behind the jump back
  std::atomic<Function> function{nullptr};
  std::atomic<uint64_t> rounds{0};  // that were interpreted; kNever: it has no translation
  static constexpr uint64_t kNever = UINT64_MAX;
};

/// The loops of one Code. Any number of threads may enter them; one of them translates.
class Loops {
 public:
  uint32_t open(uint32_t begin);
  void close(uint32_t loop, uint32_t end) { loops_[loop]->end = end; }
  std::size_t size() const { return loops_.size(); }
  const Loop& operator[](std::size_t i) const { return *loops_[i]; }

  /// What to run instead of the next rounds. Null: interpret them; `rounds` becomes the number of rounds before it is worth asking again.
  Function enter(const Code::Impl& code, uint32_t loop, int64_t& rounds);

 private:
  Function translate(const Code::Impl& code, uint32_t loop);
  std::vector<std::unique_ptr<Loop>> loops_;
  std::mutex mutex_;
  std::vector<MachineCode> functions_;
};

}  // namespace native
}  // namespace cresset::jit
