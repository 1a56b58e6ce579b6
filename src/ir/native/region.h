// The part of flat code that becomes one function, and what is known about its registers.
#pragma once

#include <functional>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "ir/native/math_functions.h"
#include "ir/run/code.h"

namespace cresset::jit::native {

/// What a scalar register holds: ints and bools, or floats.
enum class Kind : uint8_t { Any, Int, Float };

struct Region {
  const Code::Impl& code;
  uint32_t begin, end;               // instructions
  std::vector<uint32_t> loops = {};  // those inside, the outermost first
  /// Scalar registers that its instructions use, constants left out; the other members go by position in here.
  std::vector<uint32_t> slots = {};
  std::unordered_map<uint32_t, uint32_t> position = {};
  std::vector<Kind> kinds = {};
  std::vector<bool> written = {};

  /// Instructions that get a list out of a list for the next instruction, behind which it is dropped: no boxed register is needed.
  std::unordered_set<uint32_t> borrowed = {};

  /// Does the frame execute the instruction (Frame::step)?
  bool is_step(uint32_t instruction) const;
  /// Has the instruction a translation? Others end the function: the interpreter executes them.
  bool has_translation(uint32_t instruction) const;
  bool contains(uint32_t instruction) const { return instruction >= begin && instruction < end; }
  bool is_constant(uint32_t slot) const { return slot < code.initial.size(); }
  /// May the value that the register holds before the instruction be read by it or later?
  bool live(uint32_t instruction, uint32_t slot_position) const {
    return live_in[instruction * words + slot_position / 64] >> slot_position % 64 & 1;
  }
  std::size_t words = 0;
  std::vector<uint64_t> live_in = {};
};

/// The scalar registers that an instruction reads, then those it writes.
using Visitor = std::function<void(uint32_t slot, Kind kind, bool writes)>;
void visit_scalars(const Code::Impl& code, const Instruction& i, const Visitor& f);

/// The function of C that an instruction calls, if it is one.
const MathFunction* math_of(const Code::Impl& code, const Instruction& i);
/// Where an instruction jumps to, if it does.
std::optional<uint32_t> jump_target(const Instruction& i);

/// The largest loop around `loop` whose instructions have a translation, but for those on the way to a raise.
std::optional<Region> find_region(const Code::Impl& code, uint32_t loop);

}  // namespace cresset::jit::native
