// What machine code needs of the rest: functions to call, and where the parts of values lie.
#pragma once

#include "ir/run/frame.h"

namespace cresset::jit::native {

/// Executes one instruction; false when it threw, and the frame has the exception.
bool step(Frame* f, const Instruction* i) noexcept;

/// Memory for more elements of a list to which each of `rounds` further rounds of a loop may append; false when there is none.
bool grow(IValue* list, int64_t rounds) noexcept;

/// Offsets in values and lists, found out from one of each; nothing is known when they are not as expected.
struct Layout {
  bool known = false;
  int32_t elements = 0;  // of a list: pointers to its first element, behind the last one, and behind the memory
  static constexpr int32_t kTag = 8, kEnd = 8, kMemoryEnd = 16, kElement = 16;
  static const Layout& get();

 private:
  Layout();
};

}  // namespace cresset::jit::native
