#include "ir/native/region.h"

#include <algorithm>

#include "ir/native/math_functions.h"

namespace cresset::jit::native {
namespace {

constexpr std::size_t kMostInstructions = 1000;  // a translation takes some milliseconds then; the time grows with the square

constexpr Kind kind_of(char letter) { return letter == 'd' ? Kind::Float : Kind::Int; }

constexpr bool between(Opcode op, Opcode first, Opcode last) { return op >= first && op <= last; }

// Does what begins with the instruction come to a raise whatever happens?
bool raises(const Code::Impl& code, uint32_t at, uint32_t end) {
  for (; at < end; ++at) {
    const Instruction& i = code.instructions[at];
    if (jump_target(i)) return false;
    if (i.op >= Opcode::CALL_OPERATOR && code.calls[i.a].node->kind() == prim::RaiseException) return true;
  }
  return false;
}

// Steps by the frame take longer from native code than in the interpreter: they should be few.
bool translatable(const Region& r) {
  uint32_t steps = 0;
  for (uint32_t at = r.begin; at < r.end; ++at) {
    const bool step = r.is_step(at);
    if (!step && r.has_translation(at)) continue;
    if (raises(r.code, at, r.end)) continue;
    if (!step) return false;
    ++steps;
  }
  return steps * 4 <= r.end - r.begin;
}

void find_borrowed(Region& r) {
  std::unordered_set<uint32_t> targets;
  for (uint32_t at = r.begin; at < r.end; ++at)
    if (const auto to = jump_target(r.code.instructions[at])) targets.insert(*to);
  for (uint32_t at = r.begin; at + 2 < r.end; ++at) {
    const Instruction &get = r.code.instructions[at], &use = (&get)[1], &drop = (&get)[2];
    const bool by_number =
        between(use.op, Opcode::LIST_LEN, Opcode::LIST_GET_BOOL) || between(use.op, Opcode::LIST_SET_INT, Opcode::LIST_SET_BOOL);
    if (get.op == Opcode::LIST_GET && by_number && use.b == get.a && drop.op == Opcode::DROP && drop.a == get.a && !targets.count(at + 1) &&
        !targets.count(at + 2))
      r.borrowed.insert(at);
  }
}

// The registers of the region and their kinds; false when one holds ints and floats.
bool find_kinds(Region& r) {
  const auto position_of = [&](uint32_t slot) {
    const auto [found, fresh] = r.position.emplace(slot, static_cast<uint32_t>(r.slots.size()));
    if (fresh) {
      r.slots.push_back(slot);
      r.kinds.push_back(Kind::Any);
      r.written.push_back(false);
    }
    return found->second;
  };
  bool fits = true;
  const auto set = [&](uint32_t p, Kind k) {
    if (k == Kind::Any) return;
    fits = fits && (r.kinds[p] == Kind::Any || r.kinds[p] == k);
    r.kinds[p] = k;
  };
  for (uint32_t at = r.begin; at < r.end; ++at)
    visit_scalars(r.code, r.code.instructions[at], [&](uint32_t slot, Kind k, bool writes) {
      if (r.is_constant(slot)) return;
      const uint32_t p = position_of(slot);
      set(p, k);
      if (writes) r.written[p] = true;
    });
  // Moves pass on what the other side is.
  for (bool changed = true; changed && fits;) {
    changed = false;
    for (uint32_t at = r.begin; at < r.end; ++at) {
      const Instruction& i = r.code.instructions[at];
      if (i.op != Opcode::MOVE || r.is_constant(i.b)) continue;
      const uint32_t to = r.position.at(i.a), from = r.position.at(i.b);
      if (r.kinds[to] == r.kinds[from]) continue;
      set(to, r.kinds[from]);
      set(from, r.kinds[to]);
      changed = true;
    }
  }
  return fits;
}

void find_live(Region& r) {
  const auto count = static_cast<uint32_t>(r.code.instructions.size());
  r.words = (r.slots.size() + 63) / 64;
  r.live_in.assign(count * r.words, 0);
  std::vector<uint64_t> now(r.words);
  for (bool changed = true; changed;) {
    changed = false;
    for (uint32_t at = count; at-- > 0;) {
      const Instruction& i = r.code.instructions[at];
      const auto target = jump_target(i);
      for (std::size_t w = 0; w < r.words; ++w) {
        now[w] = i.op == Opcode::JUMP || i.op == Opcode::RETURN ? 0 : r.live_in[(at + 1) * r.words + w];
        if (target) now[w] |= r.live_in[*target * r.words + w];
      }
      for (const bool writes : {true, false})
        visit_scalars(r.code, i, [&](uint32_t slot, Kind, bool w) {
          const auto found = w == writes ? r.position.find(slot) : r.position.end();
          if (found == r.position.end()) return;
          const uint64_t bit = uint64_t{1} << found->second % 64;
          if (writes)
            now[found->second / 64] &= ~bit;
          else
            now[found->second / 64] |= bit;
        });
      uint64_t* const before = r.live_in.data() + at * r.words;
      if (!std::equal(now.begin(), now.end(), before)) {
        std::copy(now.begin(), now.end(), before);
        changed = true;
      }
    }
  }
}

}  // namespace

void visit_scalars(const Code::Impl& code, const Instruction& i, const Visitor& f) {
  const auto read = [&](uint32_t slot, Kind k) { f(slot, k, false); };
  const auto write = [&](uint32_t slot, Kind k) { f(slot, k, true); };
  const auto operand = [&](const Operand& o, bool writes) {
    if (o.kind <= Operand::Kind::Bool) f(o.index, o.kind == Operand::Kind::Float ? Kind::Float : Kind::Int, writes);
  };
  const auto by_bank = [&](Opcode first) {  // of three: for ints, floats, bools
    return i.op == static_cast<Opcode>(static_cast<int>(first) + 1) ? Kind::Float : Kind::Int;
  };
  if (is_arithmetic(i.op)) {
    const ScalarInstruction& row = scalar_instruction(i.op);
    read(i.b, kind_of(row.operands));
    if (row.binary) read(i.c, kind_of(row.operands));
    write(i.a, kind_of(row.result));
  } else if (between(i.op, Opcode::JUMP_UNLESS_LT_INT, Opcode::JUMP_IF_NE_FLOAT)) {
    const bool ints = i.op <= Opcode::JUMP_UNLESS_NE_INT || between(i.op, Opcode::JUMP_IF_LT_INT, Opcode::JUMP_IF_NE_INT);
    read(i.a, ints ? Kind::Int : Kind::Float);
    read(i.b, ints ? Kind::Int : Kind::Float);
  } else if (i.op >= Opcode::CALL_OPERATOR) {
    const Call& c = code.calls[i.a];
    for (uint32_t k = 0; k < c.in_count; ++k) operand(code.operands[c.in_begin + k], false);
    for (uint32_t k = 0; k < c.out_count; ++k) operand(code.operands[c.out_begin + k], true);
  } else if (between(i.op, Opcode::BOX_INT, Opcode::BOX_BOOL)) {
    read(i.b, by_bank(Opcode::BOX_INT));
  } else if (between(i.op, Opcode::UNBOX_INT, Opcode::UNBOX_BOOL)) {
    write(i.a, by_bank(Opcode::UNBOX_INT));
  } else if (between(i.op, Opcode::LIST_GET_INT, Opcode::LIST_GET)) {
    read(i.c, Kind::Int);
    if (i.op != Opcode::LIST_GET) write(i.a, by_bank(Opcode::LIST_GET_INT));
  } else if (between(i.op, Opcode::LIST_SET_INT, Opcode::LIST_SET)) {
    if (i.op != Opcode::LIST_SET) read(i.a, by_bank(Opcode::LIST_SET_INT));
    read(i.c, Kind::Int);
  } else if (between(i.op, Opcode::LIST_APPEND_INT, Opcode::LIST_APPEND_BOOL)) {
    read(i.a, by_bank(Opcode::LIST_APPEND_INT));
  } else {
    switch (i.op) {
      case Opcode::RETURN:
        for (const Operand& o : code.outputs) operand(o, false);
        break;
      case Opcode::JUMP_IF:
      case Opcode::JUMP_IF_NOT: read(i.a, Kind::Int); break;
      case Opcode::LOOP_NEXT:
        read(i.a, Kind::Int);
        read(i.b, Kind::Int);
        write(i.a, Kind::Int);
        break;
      case Opcode::MOVE:
        read(i.b, Kind::Any);
        write(i.a, Kind::Any);
        break;
      case Opcode::LIST_LEN: write(i.a, Kind::Int); break;
      default: break;
    }
  }
}

std::optional<uint32_t> jump_target(const Instruction& i) {
  if (i.op == Opcode::JUMP) return i.a;
  if (i.op == Opcode::JUMP_IF || i.op == Opcode::JUMP_IF_NOT) return i.b;
  if (i.op == Opcode::LOOP_NEXT || between(i.op, Opcode::JUMP_UNLESS_LT_INT, Opcode::JUMP_IF_NE_FLOAT)) return i.c;
  return std::nullopt;
}

const MathFunction* math_of(const Code::Impl& code, const Instruction& i) {
  return i.op == Opcode::CALL_IN_PLACE ? math_function(code.calls[i.a]) : nullptr;
}
bool Region::is_step(uint32_t at) const {
  const Instruction& i = code.instructions[at];
  if (i.op == Opcode::CALL_IN_PLACE) return code.calls[i.a].node->kind() != prim::RaiseException && !math_function(code.calls[i.a]);
  if (borrowed.count(at) || (at >= 2 && borrowed.count(at - 2))) return false;
  return between(i.op, Opcode::COPY, Opcode::UNBOX_BOOL) || i.op == Opcode::LIST_GET || i.op == Opcode::LIST_SET ||
         i.op == Opcode::LIST_APPEND || i.op == Opcode::APPEND_TEXT || between(i.op, Opcode::CALL_GRAPH, Opcode::IS_INSTANCE);
}
bool Region::has_translation(uint32_t at) const {
  const Instruction& i = code.instructions[at];
  return is_arithmetic(i.op) || jump_target(i) || i.op == Opcode::LOOP || i.op == Opcode::MOVE || is_step(at) || math_of(code, i) ||
         between(i.op, Opcode::LIST_LEN, Opcode::LIST_APPEND) || (at >= 2 && borrowed.count(at - 2));
}

std::optional<Region> find_region(const Code::Impl& code, uint32_t loop) {
  const Loop& inner = code.loops[loop];
  for (uint32_t k = 0; k <= loop; ++k) {  // in the order of their beginnings: outer ones first
    const Loop& outer = code.loops[k];
    if (outer.begin > inner.begin || outer.end < inner.end || outer.end - outer.begin > kMostInstructions) continue;
    Region r{.code = code, .begin = outer.begin, .end = outer.end};
    find_borrowed(r);
    if (!translatable(r) || !find_kinds(r)) continue;
    for (uint32_t n = k; n < code.loops.size(); ++n)
      if (r.contains(code.loops[n].begin)) r.loops.push_back(n);
    find_live(r);
    return r;
  }
  return std::nullopt;
}

}  // namespace cresset::jit::native
