// A running function: its registers, and its place among those that are running on the thread.
#pragma once

#include <cstring>
#include <exception>

#include <cresset/base/interrupt.h>

#include "ir/operators/builtin_call.h"
#include "ir/run/code.h"

namespace cresset::jit {

/// Memory of a thread's frames, one behind the other in chunks; a frame is given back before the one below it.
class Arena {
 public:
  /// Of this thread. On the heap: the library's thread-local memory is small.
  static Arena& get();
  void* allocate(std::size_t bytes) {
    if (used_ + bytes > capacity_) grow(bytes);
    void* p = chunks_.back().get() + used_;
    used_ += bytes;
    return p;
  }
  struct Mark {
    std::size_t chunks, used, capacity;
  };
  /// One more call of this thread: every so many of them see whether someone wants it to stop.
  void count_call() {
    if (CRESSET_UNLIKELY(--calls_left_ == 0)) {
      calls_left_ = kCalls;
      check_signals();
    }
  }
  Mark mark() const { return {chunks_.size(), used_, capacity_}; }
  void release(const Mark& m) {
    if (chunks_.size() != m.chunks) drop_chunks(m.chunks);
    used_ = m.used;
    capacity_ = m.capacity;
  }

 private:
  void grow(std::size_t bytes);
  void drop_chunks(std::size_t kept);
  std::vector<std::unique_ptr<std::byte[]>> chunks_;
  std::unique_ptr<std::byte[]> spare_;
  std::size_t used_ = 0, capacity_ = 0, spare_size_ = 0;
  static constexpr uint32_t kCalls = 64;
  uint32_t calls_left_ = kCalls;
};

/// The element of a list; negative places count from its end.
CRESSET_ALWAYS_INLINE IValue& element(IValue& list, int64_t at) {
  auto& elements = list.toListImpl().elements;
  if (CRESSET_UNLIKELY(static_cast<std::size_t>(at) >= elements.size())) at = builtin::normal_index(at, elements.size());
  return elements[static_cast<std::size_t>(at)];
}

struct Active;

class Frame {
 public:
  explicit Frame(const Code::Impl& code) : code_(code), arena_(Arena::get()), mark_(arena_.mark()) {
    static_assert(alignof(IValue) <= 16 && sizeof(Slot) == 8);
    const std::size_t scalar_bytes = (code.scalars * sizeof(Slot) + 15) & ~std::size_t{15};
    auto* memory = static_cast<std::byte*>(arena_.allocate(scalar_bytes + code.boxed * sizeof(IValue)));
    s = reinterpret_cast<Slot*>(memory);
    std::memcpy(s, code.initial.data(), code.initial.size() * sizeof(Slot));
    std::memset(s + code.initial.size(), 0, (code.scalars - code.initial.size()) * sizeof(Slot));
    r = reinterpret_cast<IValue*>(memory + scalar_bytes);
    start = code.instructions.data();
    for (uint32_t i = 0; i < code.boxed; ++i) new (r + i) IValue();
  }
  ~Frame() {
    for (uint32_t i = 0; i < code_.boxed; ++i) r[i].~IValue();
    arena_.release(mark_);
  }
  Frame(const Frame&) = delete;

  void count_call() { arena_.count_call(); }
  void push(Stack& stack, const Operand& o) {
    switch (o.kind) {
      case Operand::Kind::Int: stack.emplace_back(s[o.index].i); return;
      case Operand::Kind::Float: stack.emplace_back(s[o.index].d); return;
      case Operand::Kind::Bool: stack.emplace_back(s[o.index].i != 0); return;
      case Operand::Kind::Copy: stack.push_back(r[o.index]); return;
      case Operand::Kind::Take: stack.push_back(std::move(r[o.index])); return;
      case Operand::Kind::Constant: stack.push_back(code_.constants[o.index]); return;
      default: stack.emplace_back(); return;
    }
  }
  void store(IValue&& v, const Operand& o) {
    switch (o.kind) {
      case Operand::Kind::Int: s[o.index].i = v.toInt(); return;
      case Operand::Kind::Float: s[o.index].d = v.toDouble(); return;
      case Operand::Kind::Bool: s[o.index].i = v.toBool(); return;
      case Operand::Kind::Discard: return;
      default: r[o.index] = std::move(v); return;
    }
  }
  void push_inputs(Stack& stack, const Call& c) {
    for (uint32_t i = 0; i < c.in_count; ++i) push(stack, code_.operands[c.in_begin + i]);
  }
  /// Results are the last values of the stack.
  void pop_outputs(Stack& stack, const Call& c) {
    IValue* first = stack.data() + stack.size() - c.out_count;
    for (uint32_t i = 0; i < c.out_count; ++i) store(std::move(first[i]), code_.operands[c.out_begin + i]);
    stack.resize(stack.size() - c.out_count);
  }

  /// A built-in function that reads its arguments where they lie: in registers, among the constants, numbers in boxes on the stack of C++.
  CRESSET_ALWAYS_INLINE void call_in_place(const Call& c) {
    const IValue* arguments[kMostInPlace];
    alignas(IValue) std::byte boxes[kMostInPlace * sizeof(IValue)];  // of numbers, which own nothing: no destructor has to run
    const Operand* operands = code_.operands.data();
    for (uint32_t i = 0; i < c.in_count; ++i) arguments[i] = in_place(operands[c.in_begin + i], boxes + i * sizeof(IValue));
    IValue result;
    count_call();
    c.in_place(arguments, result);
    if (c.out_count) store(std::move(result), operands[c.out_begin]);
  }
  static constexpr uint32_t kMostInPlace = 8;
  /// The second operand put behind the first, which is taken: without a copy when nobody else holds that string.
  void append_text(const Call& c);

  Slot* s;
  IValue* r;
  /// Where jumps count from. Here, so that the interpreter's few machine registers are left for what every instruction needs.
  const Instruction* start;
  /// For native code: executes an instruction that moves boxed values, calls or makes something.
  void step(const Instruction& i);
  Stack* stack = nullptr;  // for step(), as `active`
  struct Open {
    IValue object;
    std::vector<int64_t> autocast;  // of a block of autocast: what was before
  };
  std::vector<Open> open;  // objects of with-statements that were entered, innermost last
  Active* active = nullptr;
  /// What one of them has thrown, for the interpreter to throw again.
  std::exception_ptr error;

 private:
  CRESSET_ALWAYS_INLINE const IValue* in_place(const Operand& o, std::byte* box) const {
    switch (o.kind) {
      case Operand::Kind::Int: return new (box) IValue(s[o.index].i);
      case Operand::Kind::Float: return new (box) IValue(s[o.index].d);
      case Operand::Kind::Bool: return new (box) IValue(s[o.index].i != 0);
      case Operand::Kind::Copy: return r + o.index;
      case Operand::Kind::Constant: return code_.constants.data() + o.index;
      default: return new (box) IValue();
    }
  }

  const Code::Impl& code_;
  Arena& arena_;
  Arena::Mark mark_;
};

/// The functions that are running on this thread, for stack traces.
struct Active {
  const Code::Impl* code;
  const Instruction* at;
  Active* below;
};

class Activation {
 public:
  /// Raises when the calls of this thread are too deep.
  explicit Activation(const Code::Impl& code);
  ~Activation();
  /// Adds the script's stack to an exception that leaves the innermost function; those above leave it as it is.
  static void annotate(Error& e);
  /// Is one function running on this thread, which none other called?
  static bool is_outermost();
  Active active;
};

/// The instructions that are calls, kept out of the loop over the fast ones.
void execute_call(const Code::Impl& code, Frame& f, const Instruction& i, Stack& stack);
/// Leaves the with-statements that are open when an error ends the frame, innermost first. What raises then is dropped for that error.
void leave_open(Frame& f) noexcept;

}  // namespace cresset::jit
