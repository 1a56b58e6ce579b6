// Execution of flat code.
#include <cmath>
#include <cstring>
#include <mutex>

#include <cresset/ir/class_type.h>

#include "ir/builtin_call.h"
#include "ir/code.h"
#include "ir/custom_class_function.h"

namespace cresset::jit {
namespace {

// Frames of a thread lie one behind the other in chunks; a frame is given back before the one below it.
class Arena {
 public:
  void* allocate(std::size_t bytes) {
    if (used_ + bytes > capacity_) grow(bytes);
    void* p = chunks_.back().get() + used_;
    used_ += bytes;
    return p;
  }
  struct Mark {
    std::size_t chunks, used, capacity;
  };
  Mark mark() const { return {chunks_.size(), used_, capacity_}; }
  void release(const Mark& m) {
    // One chunk more than needed is kept, so that calls at the edge of a chunk do not allocate each time.
    while (chunks_.size() > m.chunks + 1) chunks_.pop_back();
    if (chunks_.size() > m.chunks) spare_ = std::move(chunks_.back()), spare_size_ = capacity_, chunks_.pop_back();
    used_ = m.used;
    capacity_ = m.capacity;
  }

 private:
  void grow(std::size_t bytes) {
    const std::size_t size = std::max<std::size_t>(bytes, 256 << 10);
    if (spare_ && spare_size_ >= size) {
      chunks_.push_back(std::move(spare_));
      capacity_ = spare_size_;
    } else {
      chunks_.push_back(std::make_unique<std::byte[]>(size));
      capacity_ = size;
    }
    used_ = 0;
  }
  std::vector<std::unique_ptr<std::byte[]>> chunks_;
  std::unique_ptr<std::byte[]> spare_;
  std::size_t used_ = 0, capacity_ = 0, spare_size_ = 0;
};
// On the heap: the library's thread-local memory is small.
Arena& arena() {
  static thread_local const auto a = std::make_unique<Arena>();
  return *a;
}

// The functions that are running on this thread, for stack traces.
struct Active {
  const Code::Impl* code;
  const Instruction* at;
  Active* below;
};
thread_local Active* innermost = nullptr;
thread_local int depth = 0;
thread_local bool annotated = false;  // the exception on its way up has its trace already
constexpr int kDeepest = 2000;

class Frame {
 public:
  explicit Frame(const Code::Impl& code) : code_(code), mark_(arena().mark()) {
    static_assert(alignof(IValue) <= 16 && sizeof(Slot) == 8);
    const std::size_t scalar_bytes = (code.scalars * sizeof(Slot) + 15) & ~std::size_t{15};
    auto* memory = static_cast<std::byte*>(arena().allocate(scalar_bytes + code.boxed * sizeof(IValue)));
    s = reinterpret_cast<Slot*>(memory);
    std::memcpy(s, code.initial.data(), code.initial.size() * sizeof(Slot));
    std::memset(s + code.initial.size(), 0, (code.scalars - code.initial.size()) * sizeof(Slot));
    r = reinterpret_cast<IValue*>(memory + scalar_bytes);
    for (uint32_t i = 0; i < code.boxed; ++i) new (r + i) IValue();
  }
  ~Frame() {
    for (uint32_t i = 0; i < code_.boxed; ++i) r[i].~IValue();
    arena().release(mark_);
  }
  Frame(const Frame&) = delete;

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

  Slot* s;
  IValue* r;

 private:
  const Code::Impl& code_;
  Arena::Mark mark_;
};

std::string place(const Active& a) {
  const std::size_t index = static_cast<std::size_t>(a.at - a.code->instructions.data());
  const Node* n = a.code->sources[std::min(index, a.code->sources.size() - 1)];
  std::string out;
  const auto line = [&](const SourceRange& range, const std::string& function, const Node* node) {
    if (range.known() && !range.source()->text().empty()) {
      const std::string_view text = range.source()->line_text(range.line());
      out +=
          "  File \"" + range.filename() + "\", line " + std::to_string(range.line()) + ", in " + function + "\n" + std::string(text) +
          "\n" + std::string(range.column(), ' ') +
          std::string(std::max<std::size_t>(1, std::min(range.end() - range.start(), text.size() - std::min(text.size(), range.column()))),
                      '~') +
          " <--- HERE\n";
    } else if (range.known()) {
      out += "  File \"" + range.filename() + "\", line " + std::to_string(range.line()) + ", in " + function +
             (node ? ": " + node->str() : "") + "\n";
    } else {
      out += "  in " + function + (node ? ": " + node->str() : "") + "\n";
    }
  };
  std::string function = a.code->name;
  for (const InlinedCallStack* c = n->callstack().get(); c; c = c->callee.get()) {
    line(c->call_site, function, nullptr);
    function = c->function_name + (c->module_path.empty() ? "" : " [" + c->module_path + "]");
  }
  line(n->sourceRange(), function, n->kind() == prim::Return ? nullptr : n);
  return out;
}

std::string stack_trace() {
  std::vector<const Active*> frames;
  for (const Active* a = innermost; a; a = a->below) frames.push_back(a);
  std::string out = "The following operation failed in the TorchScript interpreter.\nTraceback of TorchScript (most recent call last):\n";
  constexpr std::size_t kShown = 40;  // of a deep recursion the ends
  for (std::size_t i = frames.size(); i-- > 0;) {
    if (frames.size() > kShown && i < frames.size() - kShown / 2 && i >= kShown / 2) {
      if (i == kShown / 2) out += "  ...\n";
      continue;
    }
    out += place(*frames[i]);
  }
  out.pop_back();
  return out;
}

class Activation {
 public:
  explicit Activation(const Code::Impl& code) : active{&code, code.instructions.data(), innermost} {
    CRESSET_CHECK(depth < kDeepest, "maximum recursion depth exceeded in '", code.name, "': ", kDeepest, " calls of scripts are active.");
    innermost = &active;
    ++depth;
  }
  ~Activation() {
    innermost = active.below;
    if (--depth == 0) annotated = false;
  }
  Active active;
};

ClassType& class_of(const ivalue::Object& o) {
  const auto* cls = dynamic_cast<const ClassType*>(o.type.get());
  CRESSET_CHECK(cls, "the class '", o.type->str(), "' of an object is not known.");
  return const_cast<ClassType&>(*cls);
}

const IValue& attribute(const IValue& object, const Call& c) {
  const ivalue::Object& o = object.toObjectRef();
  const std::size_t slot = c.slot ? *c.slot : class_of(o).getAttributeSlot(c.name);
  CRESSET_CHECK_AS(AttributeError, slot < o.slots.size(), "'", o.type->str(), "' object has no value for attribute '", c.name, "'.");
  return o.slots[slot];
}

void call_function(Function& f, Stack& stack) { f.run(stack); }

Function& method_of(const IValue& self, const std::string& name) { return class_of(self.toObjectRef()).getMethod(name); }

std::mutex python_mutex;
PythonOpHandler& python_handler() {
  static PythonOpHandler handler;
  return handler;
}

bool same_refinement(const IValue& v, const Type& type) { return value_is_of_type(v, type); }

}  // namespace

void set_python_op_handler(PythonOpHandler handler) {
  const std::lock_guard lock(python_mutex);
  python_handler() = std::move(handler);
}

bool value_is_of_type(const IValue& v, const Type& type) {
  switch (type.kind) {
    case TypeKind::Any:
    case TypeKind::Var: return true;
    case TypeKind::Optional: return v.isNone() || value_is_of_type(v, *type.element());
    case TypeKind::Union:
      for (const TypePtr& t : type.contained)
        if (value_is_of_type(v, *t)) return true;
      return false;
    case TypeKind::Tensor: {
      if (!v.isTensor()) return false;
      const auto& wanted = static_cast<const TensorType&>(type);
      return !wanted.is_refined() || (v.toTensor().defined() && TensorType::create(v.toTensor())->is_subtype_of(wanted));
    }
    case TypeKind::None: return v.isNone();
    case TypeKind::Int:
    case TypeKind::SymInt:
    case TypeKind::ScalarType:
    case TypeKind::Layout:
    case TypeKind::MemoryFormat: return v.isInt();
    case TypeKind::Float: return v.isDouble();
    case TypeKind::Bool: return v.isBool();
    case TypeKind::Complex: return v.isComplexDouble();
    case TypeKind::Number: return v.isScalar();
    case TypeKind::String: return v.isString();
    case TypeKind::Device: return v.isDevice();
    case TypeKind::Generator: return v.isGenerator();
    case TypeKind::Storage: return v.isStorage();
    case TypeKind::AnyList: return v.isList();
    case TypeKind::AnyTuple: return v.isTuple();
    case TypeKind::AnyEnum: return v.isEnum();
    case TypeKind::AnyClass: return v.isObject();
    case TypeKind::List: {
      if (!v.isList()) return false;
      const ivalue::ListImpl& l = v.toListImpl();
      if (l.element_type && (l.element_type->is_subtype_of(*type.element()) || l.elements.empty()))
        return l.element_type->is_subtype_of(*type.element()) || l.elements.empty();
      for (const IValue& e : l.elements)
        if (!value_is_of_type(e, *type.element())) return false;
      return true;
    }
    case TypeKind::Tuple: {
      if (!v.isTuple() || v.toTupleElements().size() != type.contained.size()) return false;
      for (std::size_t i = 0; i < type.contained.size(); ++i)
        if (!value_is_of_type(v.toTupleElements()[i], *type.contained[i])) return false;
      return true;
    }
    case TypeKind::Dict:
      if (!v.isGenericDict()) return false;
      for (const auto& [key, value] : v.toDictImpl().items)
        if (!value_is_of_type(key, *type.contained[0]) || !value_is_of_type(value, *type.contained[1])) return false;
      return true;
    case TypeKind::Future: return v.isFuture();
    case TypeKind::Function: return v.isFunction();
    case TypeKind::Enum: return v.isEnum() && *v.toEnumHolder()->type == type;
    case TypeKind::Interface: return v.isScriptObject() && v.toObjectRef().type->is_subtype_of(type);
    case TypeKind::Object: return v.isCustomClass() || (v.isScriptObject() && *v.toObjectRef().type == type);
    case TypeKind::Capsule: return v.isCapsule();
    default: return false;
  }
}

Code::Code(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Code::~Code() = default;
std::size_t Code::num_inputs() const { return impl_->inputs.size(); }
std::size_t Code::num_outputs() const { return impl_->outputs.size(); }

std::string Code::dump() const {
  constexpr const char* names[] = {
#define CRESSET_NAME(name) #name,
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

// The instructions that are calls, kept out of the loop over the fast ones.
CRESSET_NOINLINE void execute_call(const Code::Impl& code, Frame& f, const Instruction& i, Stack& stack) {
  const Call& c = code.calls[i.a];
  switch (i.op) {
    case Opcode::CALL_GRAPH:
      f.push_inputs(stack, c);
      c.graph->run(stack);
      f.pop_outputs(stack, c);
      return;
    case Opcode::CALL_FUNCTION:
      // The function itself is the first operand.
      for (uint32_t k = 1; k < c.in_count; ++k) f.push(stack, code.operands[c.in_begin + k]);
      call_function(*c.callee, stack);
      f.pop_outputs(stack, c);
      return;
    case Opcode::CALL_VALUE: {
      f.push(stack, code.operands[c.in_begin]);
      const auto callee = pop(stack).toFunction();
      for (uint32_t k = 1; k < c.in_count; ++k) f.push(stack, code.operands[c.in_begin + k]);
      call_function(static_cast<Function&>(*callee), stack);
      f.pop_outputs(stack, c);
      return;
    }
    case Opcode::CALL_METHOD: {
      f.push_inputs(stack, c);
      if (const IValue self = peek(stack, 0, c.in_count); !c.callee && self.isCustomClass()) {
        call_custom_method(self, c.name, stack);
        f.pop_outputs(stack, c);
        return;
      }
      Function& method = c.callee ? *c.callee : method_of(peek(stack, 0, c.in_count), c.name);
      call_function(method, stack);
      f.pop_outputs(stack, c);
      return;
    }
    case Opcode::MAKE_LIST: {
      std::vector<IValue> elements;
      elements.reserve(c.in_count);
      for (uint32_t k = 0; k < c.in_count; ++k) f.push(elements, code.operands[c.in_begin + k]);
      stack.emplace_back(make_intrusive<ivalue::ListImpl>(std::move(elements), c.type));
      f.pop_outputs(stack, c);
      return;
    }
    case Opcode::MAKE_TUPLE: {
      std::vector<IValue> elements;
      elements.reserve(c.in_count);
      for (uint32_t k = 0; k < c.in_count; ++k) f.push(elements, code.operands[c.in_begin + k]);
      stack.emplace_back(make_intrusive<ivalue::TupleImpl>(std::move(elements), c.type));
      f.pop_outputs(stack, c);
      return;
    }
    case Opcode::MAKE_DICT: {
      f.push_inputs(stack, c);
      auto dict = make_intrusive<ivalue::DictImpl>();
      dict->key_type = c.type->contained.at(0);
      dict->value_type = c.type->contained.at(1);
      for (uint32_t k = 0; k + 1 < c.in_count; k += 2) {
        IValue &key = peek(stack, k, c.in_count), &value = peek(stack, k + 1, c.in_count);
        dict->items.insert_or_assign(key, value);
      }
      drop(stack, c.in_count);
      stack.emplace_back(std::move(dict));
      f.pop_outputs(stack, c);
      return;
    }
    case Opcode::MAKE_OBJECT: {
      stack.emplace_back(new_object(c.type, static_cast<const ClassType&>(*c.type).numAttributes()));
      f.pop_outputs(stack, c);
      return;
    }
    case Opcode::UNPACK_TUPLE: {
      f.push_inputs(stack, c);
      const IValue tuple = pop(stack);
      const auto& elements = tuple.toTupleElements();
      CRESSET_CHECK(elements.size() == c.out_count, "Expected ", c.out_count, " elements in a tuple but found ", elements.size());
      for (const IValue& e : elements) stack.push_back(e);
      f.pop_outputs(stack, c);
      return;
    }
    case Opcode::UNPACK_LIST: {
      f.push_inputs(stack, c);
      const IValue list = pop(stack);
      const auto& elements = list.toListImpl().elements;
      CRESSET_CHECK(elements.size() == c.out_count, "Expected ", c.out_count, " elements in a list but found ", elements.size());
      for (const IValue& e : elements) stack.push_back(e);
      f.pop_outputs(stack, c);
      return;
    }
    case Opcode::INDEX_TUPLE: {
      f.push_inputs(stack, c);
      const int64_t at = pop(stack).toInt();
      const IValue tuple = pop(stack);
      const auto& elements = tuple.toTupleElements();
      const int64_t n = static_cast<int64_t>(elements.size()), index = at < 0 ? at + n : at;
      CRESSET_CHECK_INDEX(index >= 0 && index < n, "Tuple index out of range");
      stack.push_back(elements[static_cast<std::size_t>(index)]);
      f.pop_outputs(stack, c);
      return;
    }
    case Opcode::SLICE_TUPLE: {
      f.push_inputs(stack, c);
      const IValue tuple = pop(stack);
      const auto& elements = tuple.toTupleElements();
      const auto n = static_cast<int64_t>(elements.size());
      const auto clamp = [&](int64_t k) { return std::clamp<int64_t>(k < 0 ? k + n : k, 0, n); };
      const int64_t from = clamp(c.begin), to = std::max(from, clamp(c.end));
      stack.emplace_back(make_intrusive<ivalue::TupleImpl>(std::vector<IValue>(elements.begin() + from, elements.begin() + to)));
      f.pop_outputs(stack, c);
      return;
    }
    case Opcode::GET_ATTRIBUTE: {
      f.push_inputs(stack, c);
      const IValue object = pop(stack);
      stack.push_back(attribute(object, c));
      f.pop_outputs(stack, c);
      return;
    }
    case Opcode::SET_ATTRIBUTE: {
      f.push_inputs(stack, c);
      IValue value = pop(stack);
      ivalue::Object& o = stack.back().toObjectRef();
      o.set_slot(c.slot ? *c.slot : class_of(o).getAttributeSlot(c.name), std::move(value));
      stack.pop_back();
      return;
    }
    case Opcode::HAS_ATTRIBUTE: {
      f.push_inputs(stack, c);
      const IValue object = pop(stack);
      stack.emplace_back(class_of(object.toObjectRef()).hasAttribute(c.name));
      f.pop_outputs(stack, c);
      return;
    }
    case Opcode::IS_INSTANCE: {
      f.push_inputs(stack, c);
      const IValue v = pop(stack);
      bool is = false;
      for (const TypePtr& t : c.types) is = is || value_is_of_type(v, *t);
      stack.emplace_back(is);
      f.pop_outputs(stack, c);
      return;
    }
    case Opcode::FORK: {
      std::vector<IValue> arguments;
      for (uint32_t k = 0; k < c.in_count; ++k) f.push(arguments, code.operands[c.in_begin + k]);
      auto future = launch(
          [graph = c.graph, arguments = std::move(arguments)]() mutable {
            graph->run(arguments);
            if (arguments.size() == 1) return std::move(arguments[0]);
            return arguments.empty() ? IValue() : IValue(make_intrusive<ivalue::TupleImpl>(std::move(arguments)));
          },
          c.type);
      stack.emplace_back(std::move(future));
      f.pop_outputs(stack, c);
      return;
    }
    case Opcode::GUARD:
      f.push_inputs(stack, c);
      CRESSET_CHECK(same_refinement(stack.back(), *c.types[0]), "Guard: a tensor of type '", c.types[0]->str(), "' was required; '",
                    stack.back().isTensor() ? TensorType::create(stack.back().toTensor())->str() : stack.back().type()->str(),
                    "' was given.");
      f.pop_outputs(stack, c);
      return;
    case Opcode::CHECK_TYPES: {
      f.push_inputs(stack, c);
      bool all = c.types.size() == c.in_count;
      for (uint32_t k = 0; all && k < c.in_count; ++k) {
        const IValue& v = peek(stack, k, c.in_count);
        if (c.node->kind() == prim::RequiresGradCheck) {
          const auto* t = dynamic_cast<const TensorType*>(c.types[k].get());
          all = v.isTensor() && t && v.toTensor().requires_grad() == t->requires_grad.value_or(false);
        } else {
          all = same_refinement(v, *c.types[k]);
        }
      }
      stack.emplace_back(all);
      f.pop_outputs(stack, c);
      return;
    }
    case Opcode::ENTER: {
      f.push_inputs(stack, c);
      if (stack.back().isScriptObject()) call_function(method_of(stack.back(), "__enter__"), stack);
      if (c.out_count == 0)
        stack.pop_back();
      else
        f.pop_outputs(stack, c);
      return;
    }
    case Opcode::EXIT: {
      f.push_inputs(stack, c);
      if (stack.back().isScriptObject()) {
        Function& exit = method_of(stack.back(), "__exit__");
        for (int k = 0; k < 3; ++k) stack.emplace_back();
        call_function(exit, stack);
      }
      if (c.out_count == 0) {
        if (!stack.empty()) stack.pop_back();
      } else {
        f.pop_outputs(stack, c);
      }
      return;
    }
    case Opcode::PYTHON: {
      PythonOpHandler handler;
      {
        const std::lock_guard lock(python_mutex);
        handler = python_handler();
      }
      CRESSET_CHECK(handler, "the Python function of ", c.node->str(), " cannot be called from here.");
      f.push_inputs(stack, c);
      handler(*c.node, stack);
      f.pop_outputs(stack, c);
      return;
    }
    default: CRESSET_INTERNAL_ASSERT(false, "opcode");
  }
}

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

CRESSET_ALWAYS_INLINE IValue& element(IValue& list, int64_t at) {
  auto& elements = list.toListImpl().elements;
  return elements[static_cast<std::size_t>(builtin::normal_index(at, elements.size()))];
}

// A number into a list. What owns nothing may be written over without looking at what was there.
CRESSET_ALWAYS_INLINE void set_number(IValue& to, IValue v) {
  if (to.isInt() || to.isDouble() || to.isBool())
    std::construct_at(&to, std::move(v));
  else
    to = std::move(v);
}

}  // namespace

void Code::run(Stack& stack) const {
  const Impl& code = *impl_;
  CRESSET_CHECK(stack.size() >= code.inputs.size(), code.name, ": ", code.inputs.size(), " inputs are required; ", stack.size(),
                " were given.");
  Activation activation(code);
  Frame f(code);
  Slot* const s = f.s;
  IValue* const r = f.r;
  {
    IValue* first = stack.data() + stack.size() - code.inputs.size();
    for (std::size_t k = 0; k < code.inputs.size(); ++k) f.store(std::move(first[k]), code.inputs[k]);
    stack.resize(stack.size() - code.inputs.size());
  }
  const std::size_t base = stack.size();
  const Instruction* const start = code.instructions.data();
  const Instruction* ip = start;
  // Each instruction jumps to the next one's code by itself: one predictable jump for each kind instead of one for all.
  static const void* const labels[] = {
#define CRESSET_LABEL(name) &&label_##name,
      CRESSET_FORALL_OPCODES(CRESSET_LABEL)
#undef CRESSET_LABEL
  };
#define CRESSET_DISPATCH() goto* labels[static_cast<std::size_t>(ip->op)]
#define CRESSET_NEXT()  \
  do {                  \
    ++ip;               \
    CRESSET_DISPATCH(); \
  } while (false)
  try {
    CRESSET_DISPATCH();
  label_RETURN:
    for (const Operand& o : code.outputs) f.push(stack, o);
    return;
  label_JUMP:
    ip = start + ip->a;
    CRESSET_DISPATCH();
  label_JUMP_IF_NOT:
    ip = s[ip->a].i ? ip + 1 : start + ip->b;
    CRESSET_DISPATCH();
  label_JUMP_IF:
    ip = s[ip->a].i ? start + ip->b : ip + 1;
    CRESSET_DISPATCH();
  label_LOOP_NEXT:
    ip = ++s[ip->a].i < s[ip->b].i ? start + ip->c : ip + 1;
    CRESSET_DISPATCH();
  label_MOVE:
    s[ip->a] = s[ip->b];
    CRESSET_NEXT();
  label_COPY:
    r[ip->a] = r[ip->b];
    CRESSET_NEXT();
  label_TAKE:
    r[ip->a] = std::move(r[ip->b]);
    CRESSET_NEXT();
  label_LOAD:
    r[ip->a] = code.constants[ip->b];
    CRESSET_NEXT();
  label_DROP:
    r[ip->a] = IValue();
    CRESSET_NEXT();
  label_BOX_INT:
    r[ip->a] = IValue(s[ip->b].i);
    CRESSET_NEXT();
  label_BOX_FLOAT:
    r[ip->a] = IValue(s[ip->b].d);
    CRESSET_NEXT();
  label_BOX_BOOL:
    r[ip->a] = IValue(s[ip->b].i != 0);
    CRESSET_NEXT();
  label_UNBOX_INT:
    s[ip->a].i = r[ip->b].toInt();
    CRESSET_NEXT();
  label_UNBOX_FLOAT:
    s[ip->a].d = r[ip->b].toDouble();
    CRESSET_NEXT();
  label_UNBOX_BOOL:
    s[ip->a].i = r[ip->b].toBool();
    CRESSET_NEXT();
    // Numbers: where the result goes, and what it is of the operands b and c.
#define CRESSET_NUMBER(name, field, ...)       \
  label_##name : s[ip->a].field = __VA_ARGS__; \
  CRESSET_NEXT();
#define B s[ip->b]
#define C s[ip->c]
    CRESSET_NUMBER(ADD_INT, i, builtin::wrap_add(B.i, C.i))
    CRESSET_NUMBER(SUB_INT, i, builtin::wrap_sub(B.i, C.i))
    CRESSET_NUMBER(MUL_INT, i, builtin::wrap_mul(B.i, C.i))
    CRESSET_NUMBER(FLOORDIV_INT, i, builtin::floor_div(B.i, C.i))
    CRESSET_NUMBER(MOD_INT, i, builtin::floor_mod(B.i, C.i))
    CRESSET_NUMBER(MIN_INT, i, std::min(B.i, C.i))
    CRESSET_NUMBER(MAX_INT, i, std::max(B.i, C.i))
    CRESSET_NUMBER(AND_INT, i, B.i & C.i)
    CRESSET_NUMBER(OR_INT, i, B.i | C.i)
    CRESSET_NUMBER(XOR_INT, i, B.i ^ C.i)
    CRESSET_NUMBER(LT_INT, i, B.i < C.i)
    CRESSET_NUMBER(LE_INT, i, B.i <= C.i)
    CRESSET_NUMBER(GT_INT, i, B.i > C.i)
    CRESSET_NUMBER(GE_INT, i, B.i >= C.i)
    CRESSET_NUMBER(EQ_INT, i, B.i == C.i)
    CRESSET_NUMBER(NE_INT, i, B.i != C.i)
    CRESSET_NUMBER(ADD_FLOAT, d, B.d + C.d)
    CRESSET_NUMBER(SUB_FLOAT, d, B.d - C.d)
    CRESSET_NUMBER(MUL_FLOAT, d, B.d * C.d)
    CRESSET_NUMBER(DIV_FLOAT, d, B.d / C.d)
    CRESSET_NUMBER(MIN_FLOAT, d, C.d < B.d ? C.d : B.d)
    CRESSET_NUMBER(MAX_FLOAT, d, C.d > B.d ? C.d : B.d)
    CRESSET_NUMBER(LT_FLOAT, i, B.d < C.d)
    CRESSET_NUMBER(LE_FLOAT, i, B.d <= C.d)
    CRESSET_NUMBER(GT_FLOAT, i, B.d > C.d)
    CRESSET_NUMBER(GE_FLOAT, i, B.d >= C.d)
    CRESSET_NUMBER(EQ_FLOAT, i, B.d == C.d)
    CRESSET_NUMBER(NE_FLOAT, i, B.d != C.d)
    CRESSET_NUMBER(DIV_INT, d, static_cast<double>(B.i) / static_cast<double>(C.i))
    CRESSET_NUMBER(NEG_INT, i, builtin::wrap_sub(0, B.i))
    CRESSET_NUMBER(NEG_FLOAT, d, -B.d)
    CRESSET_NUMBER(ABS_INT, i, B.i < 0 ? builtin::wrap_sub(0, B.i) : B.i)
    CRESSET_NUMBER(ABS_FLOAT, d, std::fabs(B.d))
    CRESSET_NUMBER(NOT, i, !B.i)
    CRESSET_NUMBER(INT_TO_FLOAT, d, static_cast<double>(B.i))
    CRESSET_NUMBER(INT_TO_BOOL, i, B.i != 0)
    CRESSET_NUMBER(FLOAT_TO_BOOL, i, B.d != 0)
    CRESSET_NUMBER(SQRT_FLOAT, d, std::sqrt(B.d))
#undef B
#undef C
#undef CRESSET_NUMBER
#define CRESSET_JUMPS(name, field, op)                                                       \
  label_JUMP_UNLESS_##name : ip = s[ip->a].field op s[ip->b].field ? ip + 1 : start + ip->c; \
  CRESSET_DISPATCH();                                                                        \
  label_JUMP_IF_##name : ip = s[ip->a].field op s[ip->b].field ? start + ip->c : ip + 1;     \
  CRESSET_DISPATCH();
    CRESSET_JUMPS(LT_INT, i, <)
    CRESSET_JUMPS(LE_INT, i, <=)
    CRESSET_JUMPS(GT_INT, i, >)
    CRESSET_JUMPS(GE_INT, i, >=)
    CRESSET_JUMPS(EQ_INT, i, ==)
    CRESSET_JUMPS(NE_INT, i, !=)
    CRESSET_JUMPS(LT_FLOAT, d, <)
    CRESSET_JUMPS(LE_FLOAT, d, <=)
    CRESSET_JUMPS(GT_FLOAT, d, >)
    CRESSET_JUMPS(GE_FLOAT, d, >=)
    CRESSET_JUMPS(EQ_FLOAT, d, ==)
    CRESSET_JUMPS(NE_FLOAT, d, !=)
#undef CRESSET_JUMPS
  label_LIST_LEN:
    s[ip->a].i = static_cast<int64_t>(r[ip->b].toListImpl().elements.size());
    CRESSET_NEXT();
  label_LIST_GET_INT:
    s[ip->a].i = element(r[ip->b], s[ip->c].i).toInt();
    CRESSET_NEXT();
  label_LIST_GET_FLOAT:
    s[ip->a].d = element(r[ip->b], s[ip->c].i).toDouble();
    CRESSET_NEXT();
  label_LIST_GET_BOOL:
    s[ip->a].i = element(r[ip->b], s[ip->c].i).toBool();
    CRESSET_NEXT();
  label_LIST_GET:
    r[ip->a] = IValue(element(r[ip->b], s[ip->c].i));
    CRESSET_NEXT();
  label_LIST_SET_INT:
    set_number(element(r[ip->b], s[ip->c].i), IValue(s[ip->a].i));
    CRESSET_NEXT();
  label_LIST_SET_FLOAT:
    set_number(element(r[ip->b], s[ip->c].i), IValue(s[ip->a].d));
    CRESSET_NEXT();
  label_LIST_SET_BOOL:
    set_number(element(r[ip->b], s[ip->c].i), IValue(s[ip->a].i != 0));
    CRESSET_NEXT();
  label_LIST_SET:
    element(r[ip->b], s[ip->c].i) = r[ip->a];
    CRESSET_NEXT();
  label_LIST_APPEND_INT:
    r[ip->b].toListImpl().elements.emplace_back(s[ip->a].i);
    CRESSET_NEXT();
  label_LIST_APPEND_FLOAT:
    r[ip->b].toListImpl().elements.emplace_back(s[ip->a].d);
    CRESSET_NEXT();
  label_LIST_APPEND_BOOL:
    r[ip->b].toListImpl().elements.emplace_back(s[ip->a].i != 0);
    CRESSET_NEXT();
  label_LIST_APPEND:
    r[ip->b].toListImpl().elements.push_back(r[ip->a]);
    CRESSET_NEXT();
  label_CALL_OPERATOR: {
    const Call& c = code.calls[ip->a];
    activation.active.at = ip;
    call_operator(f, c, stack);
    f.pop_outputs(stack, c);
    CRESSET_NEXT();
  }
  label_CALL_BUILTIN: {
    const Call& c = code.calls[ip->a];
    activation.active.at = ip;
    f.push_inputs(stack, c);
    if (c.vararg) stack.emplace_back(static_cast<int64_t>(c.in_count));
    c.function(stack);
    f.pop_outputs(stack, c);
    CRESSET_NEXT();
  }
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
    activation.active.at = ip;
    execute_call(code, f, *ip, stack);
    CRESSET_NEXT();
  } catch (Error& e) {
    activation.active.at = ip;
    if (!annotated) {
      e.add_context(stack_trace());
      annotated = true;
    }
    stack.resize(std::min(stack.size(), base));
    throw;
  }
#undef CRESSET_NEXT
#undef CRESSET_DISPATCH
}

std::vector<IValue> run_graph(const std::shared_ptr<const Graph>& graph, std::vector<IValue> inputs) {
  Code::compile(graph)->run(inputs);
  return inputs;
}

}  // namespace cresset::jit
