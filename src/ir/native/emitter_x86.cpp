// Machine code for x86-64, by asmjit: it gives machine registers to the virtual ones that stand for the frame's scalar registers.
//
// Results are those of the interpreter bit for bit: the same operations of SSE2 in the same order. Only what is special leaves the function
// (a division by zero, an index out of range), in front of the instruction, which the interpreter then executes.
#include <asmjit/x86.h>

#include <cmath>
#include <functional>
#include <limits>
#include <map>

#include "ir/native/emitter.h"
#include "ir/native/support.h"
#include "ir/operators/builtin_call.h"

namespace cresset::jit::native {
namespace {

using namespace asmjit;
using Condition = x86::CondCode;

// The order of the comparisons among the opcodes: < <= > >= == !=.
constexpr Condition kIntConditions[] = {Condition::kL, Condition::kLE, Condition::kG, Condition::kGE, Condition::kE, Condition::kNE};
constexpr int kEqual = 4, kNotEqual = 5;
constexpr Condition opposite(Condition c) { return x86::negateCond(c); }

struct FirstError : ErrorHandler {
  void handleError(asmjit::Error e, const char*, BaseEmitter*) override {
    if (!error) error = e;
  }
  asmjit::Error error = 0;
};

class Emitter {
 public:
  Emitter(const Region& r, CodeHolder& holder) : region_(r), code_(r.code), cc_(&holder) {
    for (uint32_t at = r.begin; at < r.end; ++at) {
      const Instruction& i = code_.instructions[at];
      lists_stay_ = lists_stay_ && !r.is_step(at);
      lengths_stay_ = lengths_stay_ && (i.op < Opcode::LIST_APPEND_INT || i.op > Opcode::LIST_APPEND_BOOL);
    }
    lengths_stay_ = lengths_stay_ && lists_stay_;
  }

  void run() {
    FuncNode* function = cc_.addFunc(FuncSignatureT<uint64_t, Slot*, IValue*, Frame*, uint64_t>());
    s_ = cc_.newUIntPtr();
    r_ = cc_.newUIntPtr();
    frame_ = cc_.newUIntPtr();
    const x86::Gp entry = cc_.newUInt64();
    function->setArg(0, s_);
    function->setArg(1, r_);
    function->setArg(2, frame_);
    function->setArg(3, entry);
    rounds_left_ = cc_.newUInt64();
    cc_.mov(rounds_left_, kRounds);
    if (lists_stay_)
      for (uint32_t at = region_.begin; at < region_.end; ++at)
        if (const Instruction& i = code_.instructions[at];
            region_.borrowed.count(at) || (is_list_operation(i) && !region_.borrowed.count(at - 1)))
          lists_.try_emplace(i.b, new_list());
    for (const Kind k : region_.kinds)
      registers_.push_back(k == Kind::Float ? cc_.newXmmSd().as<x86::Reg>() : cc_.newInt64().as<x86::Reg>());
    for (uint32_t at = region_.begin; at < region_.end; ++at)
      if (const auto to = jump_target(code_.instructions[at]); to && region_.contains(*to)) label(*to);
    entries(entry);
    for (at_ = region_.begin; at_ < region_.end; ++at_) {
      if (const auto l = labels_.find(at_); l != labels_.end()) cc_.bind(l->second);
      instruction(code_.instructions[at_]);
    }
    cc_.jmp(label(region_.end));
    for (const auto& rare : later_) rare();
    exits();
    cc_.endFunc();
    cc_.finalize();
  }

 private:
  // ---- places

  Label label(uint32_t instruction) {
    if (!region_.contains(instruction)) return exit(instruction);
    const auto found = labels_.find(instruction);
    return found != labels_.end() ? found->second : labels_.emplace(instruction, cc_.newLabel()).first->second;
  }
  // Where the interpreter executes the instruction that is being translated.
  Label interpret() { return exit(at_); }
  Label exit(uint32_t instruction) {
    const auto found = exits_.find(instruction);
    return found != exits_.end() ? found->second : exits_.emplace(instruction, cc_.newLabel()).first->second;
  }

  // At each loop inside: its registers come from the frame.
  void entries(const x86::Gp& entry) {
    for (std::size_t k = region_.loops.size(); k-- > 0;) {
      const uint32_t header = code_.loops[region_.loops[k]].begin;
      const Label other = cc_.newLabel();
      if (k > 0) {
        cc_.cmp(entry, region_.loops[k]);
        cc_.jne(other);
      }
      for (uint32_t p = 0; p < region_.slots.size(); ++p)
        if (region_.live(header, p)) load(p);
      for (const auto& [boxed, l] : lists_) {
        find(l, boxed, exit(header + 1));
        if (lengths_stay_) measure(l);
      }
      cc_.jmp(label(header));
      cc_.bind(other);
    }
  }
  void load(uint32_t p) {
    if (region_.kinds[p] == Kind::Float)
      cc_.movsd(registers_[p].as<x86::Xmm>(), memory(region_.slots[p]));
    else
      cc_.mov(registers_[p].as<x86::Gp>(), memory(region_.slots[p]));
  }
  void store(uint32_t p) {
    if (region_.kinds[p] == Kind::Float)
      cc_.movsd(memory(region_.slots[p]), registers_[p].as<x86::Xmm>());
    else
      cc_.mov(memory(region_.slots[p]), registers_[p].as<x86::Gp>());
  }
  void exits() {
    for (const auto& [instruction, l] : exits_) {
      cc_.bind(l);
      for (uint32_t p = 0; p < region_.slots.size(); ++p)
        if (region_.written[p] && region_.live(instruction, p)) store(p);
      const x86::Gp next = cc_.newUInt64();
      cc_.mov(next, instruction);
      cc_.ret(next);
    }
  }

  // ---- operands: constants are immediate or lie in the frame

  x86::Mem memory(uint32_t slot) const { return x86::qword_ptr(s_, static_cast<int32_t>(slot * sizeof(Slot))); }
  const x86::Reg& reg(uint32_t slot) const { return registers_[region_.position.at(slot)]; }
  const x86::Gp& gp(uint32_t slot) const { return reg(slot).as<x86::Gp>(); }
  const x86::Xmm& xmm(uint32_t slot) const { return reg(slot).as<x86::Xmm>(); }
  std::optional<int64_t> constant(uint32_t slot) const {
    if (!region_.is_constant(slot)) return std::nullopt;
    return code_.initial[slot].i;
  }
  Operand_ source(uint32_t slot) const { return operand(slot, false); }
  Operand_ operand(uint32_t slot, bool floats) const {
    const auto c = constant(slot);
    if (!c) return reg(slot);
    if (!floats && *c == static_cast<int32_t>(*c)) return Imm(*c);
    return memory(slot);
  }
  void move(const x86::Gp& to, const Operand_& from) { cc_.emit(x86::Inst::kIdMov, to, from); }
  void move(const x86::Xmm& to, const Operand_& from) { cc_.emit(from.isReg() ? x86::Inst::kIdMovapd : x86::Inst::kIdMovsd, to, from); }
  // A register with the operand that is only read.
  x86::Gp read(uint32_t slot) {
    if (!constant(slot)) return gp(slot);
    const x86::Gp t = cc_.newInt64();
    move(t, source(slot));
    return t;
  }
  x86::Xmm read_float(uint32_t slot) {
    if (!constant(slot)) return xmm(slot);
    const x86::Xmm t = cc_.newXmmSd();
    move(t, memory(slot));
    return t;
  }
  // A fresh register with the operand.
  x86::Gp copy(uint32_t slot) {
    const x86::Gp t = cc_.newInt64();
    move(t, source(slot));
    return t;
  }
  x86::Xmm copy_float(uint32_t slot) {
    const x86::Xmm t = cc_.newXmmSd();
    move(t, operand(slot, true));
    return t;
  }

  // ---- instructions

  void instruction(const Instruction& i) {
    const Opcode op = plain_form(i.op);
    if (!region_.has_translation(at_)) {
      cc_.jmp(interpret());
    } else if (region_.is_step(at_)) {
      step(i);
    } else if (region_.borrowed.count(at_)) {
      borrow(i);
    } else if (const MathFunction* f = math_of(code_, i)) {
      math(*f, code_.calls[i.a]);
    } else if (is_list_operation(i)) {
      list_operation(i);
    } else if (is_arithmetic(op)) {
      arithmetic(i);
    } else if (op >= Opcode::JUMP_UNLESS_LT_INT && op <= Opcode::JUMP_IF_NE_FLOAT) {
      compare_and_jump(i);
    } else {
      switch (op) {
        case Opcode::LOOP:
          // Now and then back to the interpreter, which sees whether someone wants it to stop.
          cc_.dec(rounds_left_);
          cc_.jz(interpret());
          return;
        case Opcode::JUMP: cc_.jmp(label(i.a)); return;
        case Opcode::JUMP_IF:
        case Opcode::JUMP_IF_NOT: {
          const x86::Gp c = read(i.a);
          cc_.test(c, c);
          cc_.j(op == Opcode::JUMP_IF ? Condition::kNE : Condition::kE, label(i.b));
          return;
        }
        case Opcode::LOOP_NEXT:
          cc_.inc(gp(i.a));
          cc_.emit(x86::Inst::kIdCmp, gp(i.a), source(i.b));
          cc_.jl(label(i.c));
          return;
        case Opcode::MOVE:
          if (region_.kinds[region_.position.at(i.a)] == Kind::Float)
            move(xmm(i.a), operand(i.b, true));
          else
            move(gp(i.a), source(i.b));
          return;
        default: return;
      }
    }
  }

  // The frame executes the instruction, on its own registers.
  void step(const Instruction& i) {
    const auto each = [&](bool written, auto&& f) {
      visit_scalars(code_, i, [&](uint32_t slot, Kind, bool writes) {
        if (writes == written && !region_.is_constant(slot)) f(region_.position.at(slot));
      });
    };
    each(false, [&](uint32_t p) { store(p); });
    InvokeNode* invoke = nullptr;
    const x86::Gp function = cc_.newUIntPtr(), what = cc_.newUIntPtr(), worked = cc_.newUInt8();
    cc_.mov(function, reinterpret_cast<uint64_t>(&native::step));
    cc_.mov(what, reinterpret_cast<uint64_t>(&i));
    cc_.invoke(&invoke, function, FuncSignatureT<bool, Frame*, const Instruction*>());
    if (!invoke) return;
    invoke->setArg(0, frame_);
    invoke->setArg(1, what);
    invoke->setRet(0, worked);
    cc_.test(worked, worked);
    cc_.jz(interpret());
    each(true, [&](uint32_t p) { load(p); });
  }

  void math(const MathFunction& f, const Call& c) {
    const auto argument = [&](uint32_t k) {
      const Operand& o = code_.operands[c.in_begin + k];
      return o.kind == Operand::Kind::Float ? read_float(o.index) : to_float(o.index);
    };
    const Operand& to = code_.operands[c.out_begin];
    const x86::Xmm result = f.of_one ? call(f.of_one, argument(0)) : call(f.of_two, argument(0), argument(1));
    if (to.kind == Operand::Kind::Float) move(xmm(to.index), result);
  }
  template <class... A>
  x86::Xmm call(double (*f)(A...), const std::conditional_t<true, x86::Xmm, A>&... arguments) {
    InvokeNode* invoke = nullptr;
    const x86::Gp function = cc_.newUIntPtr();
    const x86::Xmm result = cc_.newXmmSd();
    cc_.mov(function, reinterpret_cast<uint64_t>(f));
    cc_.invoke(&invoke, function, FuncSignatureT<double, A...>());
    if (!invoke) return result;
    uint32_t k = 0;
    (invoke->setArg(k++, arguments), ...);
    invoke->setRet(0, result);
    return result;
  }

  // ---- lists of numbers, in place. What needs more than that (memory, an error, an element of another kind) is interpreted.

  static bool is_list_operation(const Instruction& i) { return i.op >= Opcode::LIST_LEN && i.op <= Opcode::LIST_APPEND_BOOL; }

  // The list of a boxed register: where it is, its first element, the number of elements.
  struct List {
    x86::Gp pointer, begin, count;
  };
  List new_list() { return {cc_.newUIntPtr(), cc_.newUIntPtr(), cc_.newInt64()}; }
  x86::Mem boxed_at(uint32_t boxed, int32_t part, uint32_t bytes) const {
    return x86::Mem(r_, static_cast<int32_t>(boxed * sizeof(IValue)) + part, bytes);
  }
  void find(const List& l, uint32_t boxed, const Label& otherwise) {
    cc_.cmp(boxed_at(boxed, Layout::kTag, 4), static_cast<uint32_t>(IValue::Tag::List));
    cc_.jne(otherwise);
    cc_.mov(l.pointer, boxed_at(boxed, 0, 8));
  }
  void measure(const List& l) {
    cc_.mov(l.begin, part(l, 0));
    cc_.mov(l.count, part(l, Layout::kEnd));
    cc_.sub(l.count, l.begin);
    cc_.sar(l.count, 4);
  }
  // Found and measured by now, as far as that cannot change in the region.
  List list(uint32_t boxed, bool measured) {
    if (lengths_stay_) return lists_.at(boxed);
    List l = lists_stay_ ? lists_.at(boxed) : new_list();
    if (!lists_stay_) find(l, boxed, interpret());
    if (measured) {
      l.begin = cc_.newUIntPtr();
      l.count = cc_.newInt64();
      measure(l);
    }
    return l;
  }
  x86::Mem part(const List& l, int32_t offset) const { return x86::qword_ptr(l.pointer, layout_.elements + offset); }

  // The element, which must have the tag.
  x86::Mem element(const List& l, const Instruction& i, IValue::Tag tag) {
    const x86::Gp at = copy(i.c);
    const Label from_end = cc_.newLabel(), inside = cc_.newLabel(), outside = interpret();
    cc_.cmp(at, l.count);
    cc_.jae(from_end);
    cc_.bind(inside);
    cc_.add(at, at);
    cc_.cmp(x86::dword_ptr(l.begin, at, 3, Layout::kTag), static_cast<uint32_t>(tag));
    cc_.jne(outside);
    later_.push_back([=, this] {
      cc_.bind(from_end);
      cc_.add(at, l.count);
      cc_.cmp(at, l.count);
      cc_.jb(inside);
      cc_.jmp(outside);
    });
    return x86::qword_ptr(l.begin, at, 3);
  }

  // The rounds that the innermost loop around the instruction still has, if it counts them.
  x86::Gp rounds_left(uint32_t instruction) {
    const Loop* inner = nullptr;
    for (const uint32_t k : region_.loops)
      if (const Loop& l = code_.loops[k]; instruction >= l.begin && instruction < l.end) inner = &l;  // inner ones come later
    const Instruction& last = code_.instructions[inner->end - 1];
    const x86::Gp rounds = cc_.newInt64();
    if (last.op == Opcode::LOOP_NEXT) {
      cc_.emit(x86::Inst::kIdMov, rounds, source(last.b));
      cc_.sub(rounds, gp(last.a));
    } else {
      cc_.xor_(rounds, rounds);
    }
    return rounds;
  }
  void append(const Instruction& i, IValue::Tag tag) {
    const List l = list(i.b, false);
    const x86::Gp end = cc_.newUIntPtr();
    const Label full = cc_.newLabel(), again = cc_.newLabel(), outside = interpret();
    cc_.bind(again);
    cc_.mov(end, part(l, Layout::kEnd));
    cc_.cmp(end, part(l, Layout::kMemoryEnd));
    cc_.je(full);
    put(x86::qword_ptr(end), i.a, tag);
    cc_.mov(x86::dword_ptr(end, Layout::kTag), static_cast<uint32_t>(tag));
    cc_.add(end, Layout::kElement);
    cc_.mov(part(l, Layout::kEnd), end);
    later_.push_back([=, this, at = at_] {
      cc_.bind(full);
      const x86::Gp value = cc_.newUIntPtr(), function = cc_.newUIntPtr(), worked = cc_.newUInt8(), rounds = rounds_left(at);
      cc_.lea(value, boxed_at(i.b, 0, 8));
      cc_.mov(function, reinterpret_cast<uint64_t>(&grow));
      InvokeNode* invoke = nullptr;
      cc_.invoke(&invoke, function, FuncSignatureT<bool, IValue*, int64_t>());
      if (!invoke) return;
      invoke->setArg(0, value);
      invoke->setArg(1, rounds);
      invoke->setRet(0, worked);
      cc_.test(worked, worked);
      cc_.jnz(again);
      cc_.jmp(outside);
    });
  }

  // A list in a list, for the next instruction. Failing there too, the interpreter begins with this one.
  void borrow(const Instruction& i) {
    const x86::Mem e = element(list(i.b, true), i, IValue::Tag::List);
    const List inner = new_list();
    cc_.mov(inner.pointer, e);
    measure(inner);
    list_operation((&i)[1], &inner);
    at_ += 2;
  }

  void list_operation(const Instruction& i, const List* given = nullptr) {
    constexpr IValue::Tag kTags[] = {IValue::Tag::Int, IValue::Tag::Double, IValue::Tag::Bool};
    const auto number = [&](Opcode first) { return kTags[static_cast<int>(i.op) - static_cast<int>(first)]; };
    const auto measured = [&] { return given ? *given : list(i.b, true); };
    if (i.op == Opcode::LIST_LEN) {
      move(gp(i.a), measured().count);
    } else if (i.op <= Opcode::LIST_GET_BOOL) {
      const IValue::Tag tag = number(Opcode::LIST_GET_INT);
      const x86::Mem e = element(measured(), i, tag);
      if (tag == IValue::Tag::Double)
        cc_.movsd(xmm(i.a), e);
      else
        cc_.mov(gp(i.a), e);
    } else if (i.op <= Opcode::LIST_SET_BOOL) {
      const IValue::Tag tag = number(Opcode::LIST_SET_INT);
      put(element(measured(), i, tag), i.a, tag);
    } else {
      append(i, number(Opcode::LIST_APPEND_INT));
    }
  }
  void put(const x86::Mem& to, uint32_t slot, IValue::Tag tag) {
    if (tag == IValue::Tag::Double)
      cc_.movsd(to, read_float(slot));
    else
      cc_.mov(to, read(slot));
  }

  // One function for each row of the table of scalar instructions.
  template <Opcode op>
  struct Row {};
  void arithmetic(const Instruction& i) {
    switch (plain_form(i.op)) {
#define CRESSET_CASE(name, ...) \
  case Opcode::name: return emit(Row<Opcode::name>(), i);
      CRESSET_FORALL_SCALAR_INSTRUCTIONS(CRESSET_CASE, )
#undef CRESSET_CASE
      default: return;
    }
  }

  void emit(Row<Opcode::ADD_INT>, const Instruction& i) { binary(x86::Inst::kIdAdd, i.a, i.b, i.c, true); }
  void emit(Row<Opcode::SUB_INT>, const Instruction& i) { binary(x86::Inst::kIdSub, i.a, i.b, i.c, false); }
  void emit(Row<Opcode::MUL_INT>, const Instruction& i) { binary(x86::Inst::kIdImul, i.a, i.b, i.c, true); }
  void emit(Row<Opcode::AND_INT>, const Instruction& i) { binary(x86::Inst::kIdAnd, i.a, i.b, i.c, true); }
  void emit(Row<Opcode::OR_INT>, const Instruction& i) { binary(x86::Inst::kIdOr, i.a, i.b, i.c, true); }
  void emit(Row<Opcode::XOR_INT>, const Instruction& i) { binary(x86::Inst::kIdXor, i.a, i.b, i.c, true); }
  void emit(Row<Opcode::FLOORDIV_INT>, const Instruction& i) { divide(i, /*remainder=*/false); }
  void emit(Row<Opcode::MOD_INT>, const Instruction& i) { divide(i, /*remainder=*/true); }
  void emit(Row<Opcode::MIN_INT>, const Instruction& i) { choose(i, Condition::kG); }
  void emit(Row<Opcode::MAX_INT>, const Instruction& i) { choose(i, Condition::kL); }
  void emit(Row<Opcode::ADD_FLOAT>, const Instruction& i) { binary_float(x86::Inst::kIdAddsd, i.a, i.b, i.c); }
  void emit(Row<Opcode::SUB_FLOAT>, const Instruction& i) { binary_float(x86::Inst::kIdSubsd, i.a, i.b, i.c); }
  void emit(Row<Opcode::MUL_FLOAT>, const Instruction& i) { binary_float(x86::Inst::kIdMulsd, i.a, i.b, i.c); }
  void emit(Row<Opcode::DIV_FLOAT>, const Instruction& i) { binary_float(x86::Inst::kIdDivsd, i.a, i.b, i.c); }
  // These give their second operand when the operands do not differ or one is NaN.
  void emit(Row<Opcode::MIN_FLOAT>, const Instruction& i) { binary_float(x86::Inst::kIdMinsd, i.a, i.c, i.b); }
  void emit(Row<Opcode::MAX_FLOAT>, const Instruction& i) { binary_float(x86::Inst::kIdMaxsd, i.a, i.c, i.b); }
  void emit(Row<Opcode::SHL_INT>, const Instruction& i) { shift(i, /*left=*/true); }
  void emit(Row<Opcode::SHR_INT>, const Instruction& i) { shift(i, /*left=*/false); }
  void emit(Row<Opcode::FLOORDIV_FLOAT>, const Instruction& i) {
    move(xmm(i.a), call(&builtin::float_floor_div, read_float(i.b), read_float(i.c)));
  }
  void emit(Row<Opcode::MOD_FLOAT>, const Instruction& i) { move(xmm(i.a), call(&builtin::float_mod, read_float(i.b), read_float(i.c))); }
  void emit(Row<Opcode::FLOAT_TO_INT>, const Instruction& i) { to_int(gp(i.a), read_float(i.b)); }
  void emit(Row<Opcode::FLOOR_TO_INT>, const Instruction& i) {
    to_int(gp(i.a), call(static_cast<double (*)(double)>(&std::floor), read_float(i.b)));
  }
  void emit(Row<Opcode::CEIL_TO_INT>, const Instruction& i) {
    to_int(gp(i.a), call(static_cast<double (*)(double)>(&std::ceil), read_float(i.b)));
  }
  void emit(Row<Opcode::NEG_FLOAT>, const Instruction& i) { with_mask(x86::Inst::kIdXorpd, i, std::numeric_limits<int64_t>::min()); }
  void emit(Row<Opcode::ABS_FLOAT>, const Instruction& i) { with_mask(x86::Inst::kIdAndpd, i, std::numeric_limits<int64_t>::max()); }
  void emit(Row<Opcode::SQRT_FLOAT>, const Instruction& i) { move(xmm(i.a), square_root(i.b)); }
  void emit(Row<Opcode::INT_TO_FLOAT>, const Instruction& i) { move(xmm(i.a), to_float(i.b)); }
  void emit(Row<Opcode::DIV_INT>, const Instruction& i) {
    const x86::Xmm x = to_float(i.b);
    cc_.divsd(x, to_float(i.c));
    move(xmm(i.a), x);
  }
  void emit(Row<Opcode::INVERT_INT>, const Instruction& i) {
    const x86::Gp x = copy(i.b);
    cc_.not_(x);
    move(gp(i.a), x);
  }
  void emit(Row<Opcode::NEG_INT>, const Instruction& i) {
    const x86::Gp x = copy(i.b);
    cc_.neg(x);
    move(gp(i.a), x);
  }
  void emit(Row<Opcode::ABS_INT>, const Instruction& i) {
    const x86::Gp x = copy(i.b), negative = copy(i.b);
    cc_.neg(negative);
    cc_.cmovns(x, negative);  // -x when that is not negative: of the smallest int, which has no opposite, both are the same
    move(gp(i.a), x);
  }
  void emit(Row<Opcode::NOT>, const Instruction& i) { compare_with_zero(i, Condition::kE); }
  void emit(Row<Opcode::INT_TO_BOOL>, const Instruction& i) { compare_with_zero(i, Condition::kNE); }
  void compare_with_zero(const Instruction& i, Condition c) {
    const x86::Gp x = read(i.b);
    cc_.test(x, x);
    set_flag(gp(i.a), c);
  }
  void emit(Row<Opcode::FLOAT_TO_BOOL>, const Instruction& i) {
    const x86::Xmm zero = cc_.newXmmSd();
    cc_.xorpd(zero, zero);
    cc_.ucomisd(zero, read_float(i.b));
    set_equality(gp(i.a), /*equal=*/false);
  }
  template <Opcode op>
    requires(is_int_comparison(op))
  void emit(Row<op>, const Instruction& i) {
    compare_ints(i.b, i.c);
    set_flag(gp(i.a), kIntConditions[static_cast<int>(op) - static_cast<int>(Opcode::LT_INT)]);
  }
  template <Opcode op>
    requires(is_float_comparison(op))
  void emit(Row<op>, const Instruction& i) {
    constexpr int which = static_cast<int>(op) - static_cast<int>(Opcode::LT_FLOAT);
    const Condition c = compare_floats(which, i.b, i.c);
    which < kEqual ? set_flag(gp(i.a), c) : set_equality(gp(i.a), which == kEqual);
  }

  void binary(InstId op, uint32_t a, uint32_t b, uint32_t c, bool commutative) {
    if (a == c && a != b && commutative) std::swap(b, c);
    if (a == c && a != b) {
      const x86::Gp t = copy(b);
      cc_.emit(op, t, source(c));
      return move(gp(a), t);
    }
    if (a != b) move(gp(a), source(b));
    if (const Operand_ right = source(c); op == x86::Inst::kIdImul && right.isImm())
      cc_.emit(op, gp(a), gp(a), right);
    else
      cc_.emit(op, gp(a), right);
  }
  void binary_float(InstId op, uint32_t a, uint32_t b, uint32_t c) {
    if (a == c && a != b) {
      const x86::Xmm t = copy_float(b);
      cc_.emit(op, t, operand(c, true));
      return move(xmm(a), t);
    }
    if (a != b) move(xmm(a), operand(b, true));
    cc_.emit(op, xmm(a), operand(c, true));
  }
  // The first operand, or the second when the first compares so with it.
  void choose(const Instruction& i, Condition second) {
    const x86::Gp x = copy(i.b), y = read(i.c);
    cc_.cmp(x, y);
    cc_.emit(x86::Inst::cmovccFromCond(second), x, y);
    move(gp(i.a), x);
  }
  x86::Xmm to_float(uint32_t slot) {
    const x86::Xmm t = cc_.newXmmSd();
    cc_.xorpd(t, t);  // the conversion keeps the other half, and would wait for whatever was there
    cc_.cvtsi2sd(t, read(slot));
    return t;
  }
  // What has no int gives the smallest one; only that one itself is interpreted for nothing.
  void to_int(const x86::Gp& to, const x86::Xmm& from) {
    const x86::Gp x = cc_.newInt64(), none = cc_.newInt64();
    cc_.cvttsd2si(x, from);
    cc_.mov(none, std::numeric_limits<int64_t>::min());
    cc_.cmp(x, none);
    cc_.je(interpret());
    move(to, x);
  }
  void shift(const Instruction& i, bool left) {
    const x86::Gp x = copy(i.b), n = copy(i.c), most = cc_.newInt64();
    if (const auto c = constant(i.c); c && *c >= 0 && *c <= 63) {
      left ? cc_.shl(x, *c) : cc_.sar(x, *c);
      return move(gp(i.a), x);
    }
    cc_.test(n, n);
    cc_.js(interpret());
    cc_.mov(most, 63);
    if (left) {  // beyond 63 nothing is left
      const x86::Gp nothing = cc_.newInt64();
      cc_.xor_(nothing, nothing);
      cc_.cmp(n, most);
      cc_.cmovg(x, nothing);
      cc_.shl(x, n.r8());
    } else {
      cc_.cmp(n, most);
      cc_.cmovg(n, most);
      cc_.sar(x, n.r8());
    }
    move(gp(i.a), x);
  }
  x86::Xmm square_root(uint32_t slot) {
    const x86::Xmm t = cc_.newXmmSd();
    cc_.sqrtsd(t, read_float(slot));
    return t;
  }
  void with_mask(InstId op, const Instruction& i, int64_t mask) {
    const x86::Gp bits = cc_.newInt64();
    const x86::Xmm m = cc_.newXmmSd();
    cc_.mov(bits, mask);
    cc_.movq(m, bits);
    cc_.emit(op, m, read_float(i.b));
    move(xmm(i.a), m);
  }

  // ---- comparisons

  void compare_ints(uint32_t b, uint32_t c) { cc_.emit(x86::Inst::kIdCmp, read(b), source(c)); }
  // Compares; for an order the condition that it holds, never for NaN. Equality is two flags.
  Condition compare_floats(int which, uint32_t b, uint32_t c) {
    if (which < 2) std::swap(b, c);
    cc_.ucomisd(read_float(b), read_float(c));
    return which % 2 == 0 ? Condition::kA : Condition::kAE;
  }
  void set_flag(const x86::Gp& to, Condition c) {
    const x86::Gp flag = cc_.newUInt8();
    cc_.set(c, flag);
    cc_.movzx(to.r32(), flag);
  }
  // After ucomisd: equal when neither "not equal" nor "not ordered".
  void set_equality(const x86::Gp& to, bool equal) {
    const x86::Gp flag = cc_.newUInt8(), ordered = cc_.newUInt8();
    cc_.set(equal ? Condition::kE : Condition::kNE, flag);
    cc_.set(equal ? Condition::kNP : Condition::kP, ordered);
    if (equal)
      cc_.and_(flag, ordered);
    else
      cc_.or_(flag, ordered);
    cc_.movzx(to.r32(), flag);
  }
  void compare_and_jump(const Instruction& i) {
    const bool unless = i.op <= Opcode::JUMP_UNLESS_NE_FLOAT;
    const int place = static_cast<int>(i.op) - static_cast<int>(unless ? Opcode::JUMP_UNLESS_LT_INT : Opcode::JUMP_IF_LT_INT);
    const int which = place % 6;
    const Label to = label(i.c);
    if (place < 6) {
      compare_ints(i.a, i.b);
      cc_.j(unless ? opposite(kIntConditions[which]) : kIntConditions[which], to);
      return;
    }
    const Condition holds = compare_floats(which, i.a, i.b);
    if (which < kEqual) {
      cc_.j(unless ? opposite(holds) : holds, to);
    } else if ((which == kNotEqual) != unless) {  // jump when they differ
      cc_.jp(to);
      cc_.jne(to);
    } else {
      const Label differ = cc_.newLabel();
      cc_.jp(differ);
      cc_.je(to);
      cc_.bind(differ);
    }
  }

  // ---- division, as Python rounds it

  void divide(const Instruction& i, bool remainder) {
    if (const auto d = constant(i.c); d && *d > 0)
      divide_by_constant(i, *d, remainder);
    else
      divide_by_any(i, remainder);
  }

  void divide_by_constant(const Instruction& i, int64_t d, bool remainder) {
    if ((d & (d - 1)) == 0) {
      const x86::Gp x = copy(i.b);
      if (!remainder) {
        cc_.sar(x, __builtin_ctzll(static_cast<uint64_t>(d)));
      } else if (d - 1 == static_cast<int32_t>(d - 1)) {
        cc_.and_(x, d - 1);
      } else {
        const x86::Gp mask = cc_.newInt64();
        cc_.mov(mask, d - 1);
        cc_.and_(x, mask);
      }
      return move(gp(i.a), x);
    }
    if (d > std::numeric_limits<int32_t>::max()) return divide_by_any(i, remainder);
    // For dividends from 0 up and below 2^32 the quotient is the upper half of the product with 2^64 / d, rounded up.
    const x86::Gp x = copy(i.b), upper = cc_.newInt64(), result = cc_.newInt64(), factor = cc_.newInt64();
    const Label large = cc_.newLabel(), done = cc_.newLabel();
    cc_.mov(result, x);
    cc_.shr(result, 32);
    cc_.jnz(large);
    cc_.mov(result, x);
    cc_.mov(factor, ~uint64_t{0} / static_cast<uint64_t>(d) + 1);
    cc_.mul(upper, result, factor);
    if (remainder) {
      cc_.imul(upper, upper, d);
      cc_.mov(result, x);
      cc_.sub(result, upper);
    } else {
      cc_.mov(result, upper);
    }
    cc_.bind(done);
    move(gp(i.a), result);
    later_.push_back([=, this] {
      cc_.bind(large);
      const x86::Gp y = cc_.newInt64();
      cc_.mov(y, d);
      floor_division(x, y, result, remainder);
      cc_.jmp(done);
    });
  }

  void divide_by_any(const Instruction& i, bool remainder) {
    const x86::Gp x = copy(i.b), y = copy(i.c), result = cc_.newInt64();
    const Label large = cc_.newLabel(), done = cc_.newLabel();
    cc_.test(y, y);
    cc_.jz(interpret());
    cc_.mov(result, x);
    cc_.or_(result, y);
    cc_.shr(result, 32);
    cc_.jnz(large);
    const x86::Gp quotient = cc_.newInt64(), rest = cc_.newInt64();
    cc_.mov(quotient, x);
    cc_.xor_(rest, rest);
    cc_.div(rest.r32(), quotient.r32(), y.r32());
    cc_.mov(result, remainder ? rest : quotient);
    cc_.bind(done);
    move(gp(i.a), result);
    later_.push_back([=, this] {
      cc_.bind(large);
      floor_division(x, y, result, remainder);
      cc_.jmp(done);
    });
  }

  // Of any two numbers, the second not 0.
  void floor_division(const x86::Gp& x, const x86::Gp& y, const x86::Gp& result, bool remainder) {
    const Label minus_one = cc_.newLabel(), done = cc_.newLabel();
    const x86::Gp quotient = cc_.newInt64(), rest = cc_.newInt64(), signs = cc_.newInt64();
    cc_.cmp(y, -1);
    cc_.je(minus_one);
    cc_.mov(quotient, x);
    cc_.cqo(rest, quotient);
    cc_.idiv(rest, quotient, y);
    cc_.mov(result, remainder ? rest : quotient);
    cc_.test(rest, rest);
    cc_.jz(done);
    cc_.mov(signs, x);
    cc_.xor_(signs, y);
    cc_.jns(done);
    if (remainder)
      cc_.add(result, y);
    else
      cc_.dec(result);
    cc_.jmp(done);
    cc_.bind(minus_one);  // the processor traps when the smallest number is divided by it
    cc_.mov(result, 0);
    if (!remainder) cc_.sub(result, x);
    cc_.bind(done);
  }

  const Region& region_;
  const Code::Impl& code_;
  const Layout& layout_ = Layout::get();
  x86::Compiler cc_;
  x86::Gp s_, r_, frame_;  // the function's arguments
  x86::Gp rounds_left_;
  static constexpr uint32_t kRounds = 1 << 17;
  std::vector<x86::Reg> registers_;
  bool lists_stay_ = true, lengths_stay_ = true;  // is nothing in the region that changes boxed registers, and lengths of lists?
  std::map<uint32_t, List> lists_;                // by boxed register, when they stay
  std::map<uint32_t, Label> labels_, exits_;      // by instruction
  std::vector<std::function<void()>> later_;      // rare cases, behind everything else
  uint32_t at_ = 0;
};

}  // namespace

bool available() { return true; }

MachineCode emit(const Region& region) {
  if (!Layout::get().known) return {};
  FirstError first;
  CodeHolder holder;
  holder.init(Environment::host());
  holder.setErrorHandler(&first);
  Emitter(region, holder).run();
  holder.flatten();
  holder.resolveUnresolvedLinks();
  if (first.error) return {};
  MachineCode out(holder.codeSize());
  if (!out.memory()) return {};
  holder.relocateToBase(reinterpret_cast<uint64_t>(out.memory()));
  holder.copyFlattenedData(out.memory(), holder.codeSize());
  return first.error ? MachineCode{} : std::move(out);
}

}  // namespace cresset::jit::native
