// Execution of flat code.
#include <cmath>

#include <cresset/base/interrupt.h>

#include "ir/operators/builtin_call.h"
#include "ir/run/frame.h"

namespace cresset::jit {

Code::Code(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
Code::Code(const std::shared_ptr<Graph>& graph, std::string function_name) : Code(*compile(graph->copy(), std::move(function_name))) {}
std::shared_ptr<Graph> Code::graph() const { return std::const_pointer_cast<Graph>(impl_->graph); }
std::size_t Code::num_inputs() const { return impl_->inputs.size(); }
std::size_t Code::num_outputs() const { return impl_->outputs.size(); }

std::string Code::dump() const {
  constexpr const char* names[] = {
#define CRESSET_NAME(name, ...) #name,
      CRESSET_FORALL_OPCODES(CRESSET_NAME)
#undef CRESSET_NAME
  };
  std::string out;
  for (std::size_t i = 0; i < impl_->instructions.size(); ++i) {
    const Instruction& x = impl_->instructions[i];
    out += std::to_string(i) + ": " + names[static_cast<std::size_t>(x.op)] + " " + std::to_string(x.a) + " " + std::to_string(x.b) + " " +
           std::to_string(x.c);
    if (x.op >= Opcode::CALL_OPERATOR) out += "  " + impl_->calls[x.a].node->str();
    out += "\n";
  }
  return out;
}

namespace {

// The dispatcher's call with the keys collected while the operands are put on the stack.
CRESSET_ALWAYS_INLINE void call_operator(Frame& f, const Call& c, Stack& stack) {
  f.push_inputs(stack, c);
  const OperatorHandle& op = *c.op->handle();
  DispatchKeySet ks;
  const IValue* first = stack.data() + stack.size() - c.in_count;
  for (uint32_t k = 0; k < c.in_count; ++k) {
    const IValue& v = first[k];
    if (v.isTensor())
      ks |= v.toTensor().key_set();
    else if (CRESSET_UNLIKELY(v.isList() || v.isGenerator()))
      return op.callBoxed(stack);
  }
  ks = cresset::impl::with_local_keys(ks);
  op.entry()->lookup(ks).callBoxed(op, ks, &stack);
}

// A number into a list. One of the same kind owns nothing and may be written over without looking at what was there.
CRESSET_ALWAYS_INLINE void set_number(IValue& to, IValue v) {
  if (CRESSET_LIKELY(to.tag() == v.tag()))
    std::construct_at(&to, std::move(v));
  else
    to = std::move(v);
}

// The register whose value an instruction takes from the one before it; 0, a constant, for those that do not.
CRESSET_ALWAYS_INLINE uint32_t last_operand(const Instruction& i) {
  return !is_arithmetic(i.op) ? 0 : i.op >= Opcode::ADD_INT_C ? i.c : i.b;
}

}  // namespace

void Code::run(Stack& stack) const {
  const Impl& code = *impl_;
  CRESSET_CHECK(stack.size() >= code.inputs.size(), code.name, ": ", code.inputs.size(), " inputs are required; ", stack.size(),
                " were given.");
  Activation activation(code);
  Frame f(code);
  f.stack = &stack;
  f.active = &activation.active;
  Slot* const s = f.s;
  IValue* const r = f.r;
  {
    IValue* first = stack.data() + stack.size() - code.inputs.size();
    for (std::size_t k = 0; k < code.inputs.size(); ++k) f.store(std::move(first[k]), code.inputs[k]);
    stack.resize(stack.size() - code.inputs.size());
  }
  const std::size_t base = stack.size();
  // What the last instruction on numbers gave, for the next one.
  int64_t last_i = 0;
  double last_d = 0;
  const Instruction* ip = f.start;
  // Each instruction jumps to the next one's code by itself: one predictable jump for each kind instead of one for all.
  static const void* const labels[] = {
#define CRESSET_LABEL(name, ...) &&label_##name,
      CRESSET_FORALL_OPCODES(CRESSET_LABEL)
#undef CRESSET_LABEL
  };
#define CRESSET_DISPATCH() goto* labels[static_cast<std::size_t>(ip->op)]
#define CRESSET_NEXT()  \
  do {                  \
    ++ip;               \
    CRESSET_DISPATCH(); \
  } while (false)
// After instructions that call functions: the last results need not survive a call, so that they can stay in machine registers.
#define CRESSET_FORGET_AND_NEXT() \
  do {                            \
    last_i = 0;                   \
    last_d = 0;                   \
    CRESSET_NEXT();               \
  } while (false)
  try {
    CRESSET_DISPATCH();
  label_RETURN:
    for (const Operand& o : code.outputs) f.push(stack, o);
    return;
  label_JUMP:
    ip = f.start + ip->a;
    CRESSET_DISPATCH();
  label_JUMP_IF_NOT:
    ip = s[ip->a].i ? ip + 1 : f.start + ip->b;
    CRESSET_DISPATCH();
  label_JUMP_IF:
    ip = s[ip->a].i ? f.start + ip->b : ip + 1;
    CRESSET_DISPATCH();
  label_LOOP_NEXT:
    ip = ++s[ip->a].i < s[ip->b].i ? f.start + ip->c : ip + 1;
    CRESSET_DISPATCH();
  label_LOOP:
    if (CRESSET_LIKELY(--s[ip->b].i > 0)) CRESSET_NEXT();
    check_signals();
    if (const native::Function native = code.loops.enter(code, ip->a, s[ip->b].i)) {
      ip = f.start + native(s, r, &f, ip->a);
      if (CRESSET_UNLIKELY(f.error != nullptr)) std::rethrow_exception(std::move(f.error));
      const uint32_t last = last_operand(*ip);
      last_i = s[last].i;
      last_d = s[last].d;
      CRESSET_DISPATCH();
    }
    CRESSET_FORGET_AND_NEXT();
  label_MOVE:
    s[ip->a] = s[ip->b];
    CRESSET_NEXT();
  label_COPY:
    r[ip->a] = r[ip->b];
    CRESSET_FORGET_AND_NEXT();
  label_TAKE:
    r[ip->a] = std::move(r[ip->b]);
    CRESSET_FORGET_AND_NEXT();
  label_LOAD:
    r[ip->a] = code.constants[ip->b];
    CRESSET_FORGET_AND_NEXT();
  label_DROP:
    r[ip->a] = IValue();
    CRESSET_FORGET_AND_NEXT();
  label_BOX_INT:
    r[ip->a] = IValue(s[ip->b].i);
    CRESSET_FORGET_AND_NEXT();
  label_BOX_FLOAT:
    r[ip->a] = IValue(s[ip->b].d);
    CRESSET_FORGET_AND_NEXT();
  label_BOX_BOOL:
    r[ip->a] = IValue(s[ip->b].i != 0);
    CRESSET_FORGET_AND_NEXT();
  label_UNBOX_INT:
    s[ip->a].i = r[ip->b].toInt();
    CRESSET_NEXT();
  label_UNBOX_FLOAT:
    s[ip->a].d = r[ip->b].toDouble();
    CRESSET_NEXT();
  label_UNBOX_BOOL:
    s[ip->a].i = r[ip->b].toBool();
    CRESSET_NEXT();
#define CRESSET_NUMBER_inline(name, in, out, ...)                 \
  label_##name : {                                                \
    [[maybe_unused]] const auto x = s[ip->b].in, y = s[ip->c].in; \
    s[ip->a].out = last_##out = __VA_ARGS__;                      \
    CRESSET_NEXT();                                               \
  }                                                               \
  label_##name##_B : {                                            \
    [[maybe_unused]] const auto x = last_##in, y = s[ip->c].in;   \
    s[ip->a].out = last_##out = __VA_ARGS__;                      \
    CRESSET_NEXT();                                               \
  }                                                               \
  label_##name##_C : {                                            \
    [[maybe_unused]] const auto x = s[ip->b].in, y = last_##in;   \
    s[ip->a].out = last_##out = __VA_ARGS__;                      \
    CRESSET_NEXT();                                               \
  }
// As CRESSET_FORGET_AND_NEXT, but for the result.
#define CRESSET_NUMBER_called(name, in, out, ...)                 \
  label_##name : label_##name##_B : label_##name##_C : {          \
    [[maybe_unused]] const auto x = s[ip->b].in, y = s[ip->c].in; \
    const auto result = __VA_ARGS__;                              \
    last_i = 0;                                                   \
    last_d = 0;                                                   \
    s[ip->a].out = last_##out = result;                           \
    CRESSET_NEXT();                                               \
  }
#define CRESSET_NUMBER(name, arity, how, in, out, ...) CRESSET_NUMBER_##how(name, in, out, __VA_ARGS__)
    CRESSET_FORALL_SCALAR_INSTRUCTIONS(CRESSET_NUMBER, )
#undef CRESSET_NUMBER
#undef CRESSET_NUMBER_called
#undef CRESSET_NUMBER_inline
#define CRESSET_JUMPS(name, field, op)                                                         \
  label_JUMP_UNLESS_##name : ip = s[ip->a].field op s[ip->b].field ? ip + 1 : f.start + ip->c; \
  CRESSET_DISPATCH();                                                                          \
  label_JUMP_IF_##name : ip = s[ip->a].field op s[ip->b].field ? f.start + ip->c : ip + 1;     \
  CRESSET_DISPATCH();
    CRESSET_FORALL_COMPARISONS(CRESSET_JUMPS, )
#undef CRESSET_JUMPS
  label_LIST_LEN:
    s[ip->a].i = last_i = static_cast<int64_t>(r[ip->b].toListImpl().elements.size());
    CRESSET_NEXT();
  label_LIST_GET_INT:
    s[ip->a].i = last_i = element(r[ip->b], s[ip->c].i).toInt();
    last_d = 0;
    CRESSET_NEXT();
  label_LIST_GET_FLOAT:
    s[ip->a].d = last_d = element(r[ip->b], s[ip->c].i).toDouble();
    last_i = 0;
    CRESSET_NEXT();
  label_LIST_GET_BOOL:
    s[ip->a].i = last_i = element(r[ip->b], s[ip->c].i).toBool();
    last_d = 0;
    CRESSET_NEXT();
  label_LIST_GET:
    r[ip->a] = IValue(element(r[ip->b], s[ip->c].i));
    CRESSET_FORGET_AND_NEXT();
  label_LIST_SET_INT:
    set_number(element(r[ip->b], s[ip->c].i), IValue(s[ip->a].i));
    CRESSET_FORGET_AND_NEXT();
  label_LIST_SET_FLOAT:
    set_number(element(r[ip->b], s[ip->c].i), IValue(s[ip->a].d));
    CRESSET_FORGET_AND_NEXT();
  label_LIST_SET_BOOL:
    set_number(element(r[ip->b], s[ip->c].i), IValue(s[ip->a].i != 0));
    CRESSET_FORGET_AND_NEXT();
  label_LIST_SET:
    element(r[ip->b], s[ip->c].i) = r[ip->a];
    CRESSET_FORGET_AND_NEXT();
  label_LIST_APPEND_INT:
    r[ip->b].toListImpl().elements.emplace_back(s[ip->a].i);
    CRESSET_FORGET_AND_NEXT();
  label_LIST_APPEND_FLOAT:
    r[ip->b].toListImpl().elements.emplace_back(s[ip->a].d);
    CRESSET_FORGET_AND_NEXT();
  label_LIST_APPEND_BOOL:
    r[ip->b].toListImpl().elements.emplace_back(s[ip->a].i != 0);
    CRESSET_FORGET_AND_NEXT();
  label_LIST_APPEND:
    r[ip->b].toListImpl().elements.push_back(r[ip->a]);
    CRESSET_FORGET_AND_NEXT();
  label_CALL_OPERATOR: {
    const Call& c = code.calls[ip->a];
    activation.active.at = ip;
    f.count_call();
    call_operator(f, c, stack);
    f.pop_outputs(stack, c);
    CRESSET_FORGET_AND_NEXT();
  }
  label_CALL_BUILTIN: {
    const Call& c = code.calls[ip->a];
    activation.active.at = ip;
    f.count_call();
    f.push_inputs(stack, c);
    if (c.vararg) stack.emplace_back(static_cast<int64_t>(c.in_count));
    c.function(stack);
    f.pop_outputs(stack, c);
    CRESSET_FORGET_AND_NEXT();
  }
  label_CALL_IN_PLACE:
    activation.active.at = ip;
    f.call_in_place(code.calls[ip->a]);
    CRESSET_FORGET_AND_NEXT();
  label_APPEND_TEXT:
    activation.active.at = ip;
    f.append_text(code.calls[ip->a]);
    CRESSET_FORGET_AND_NEXT();
  label_CALL_GRAPH:
  label_CALL_FUNCTION:
  label_CALL_METHOD:
  label_CALL_VALUE:
  label_MAKE_LIST:
  label_MAKE_TUPLE:
  label_MAKE_DICT:
  label_MAKE_OBJECT:
  label_UNPACK_TUPLE:
  label_UNPACK_LIST:
  label_INDEX_TUPLE:
  label_SLICE_TUPLE:
  label_GET_ATTRIBUTE:
  label_SET_ATTRIBUTE:
  label_HAS_ATTRIBUTE:
  label_IS_INSTANCE:
  label_FORK:
  label_CHECK_TYPES:
  label_GUARD:
  label_ENTER:
  label_EXIT:
  label_PYTHON:
  label_CALL_OPERATION:
    activation.active.at = ip;
    execute_call(code, f, *ip, stack);
    CRESSET_FORGET_AND_NEXT();
  } catch (Error& e) {
    activation.active.at = ip;
    Activation::annotate(e);
    stack.resize(std::min(stack.size(), base));
    leave_open(f);
    throw;
  } catch (...) {
    leave_open(f);
    throw;
  }
#undef CRESSET_FORGET_AND_NEXT
#undef CRESSET_NEXT
#undef CRESSET_DISPATCH
}

void InterpreterState::run(Stack& stack) {
  const WithTaskLauncher with(launcher_);
  code_.run(stack);
}
intrusive_ptr<ivalue::Future> InterpreterState::runAsync(Stack& stack) {
  const auto run = [&] {
    code_.run(stack);
    if (stack.size() == 1) return std::move(stack[0]);
    return stack.empty() ? IValue() : IValue(make_intrusive<ivalue::TupleImpl>(std::move(stack)));
  };
  return run_as_future(run, launcher_);
}

std::vector<IValue> run_graph(const std::shared_ptr<const Graph>& graph, std::vector<IValue> inputs) {
  Code::compile(graph)->run(inputs);
  return inputs;
}

}  // namespace cresset::jit
