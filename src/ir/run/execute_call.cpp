// What the instructions do that call, make and take apart.
#include <mutex>

#include <cresset/base/fork.h>
#include <cresset/ir/class_type.h>
#include <cresset/ir/operator.h>

#include "ir/graph/autocast_class.h"
#include "ir/operators/builtin_call.h"
#include "ir/operators/custom_class_function.h"
#include "ir/run/delay.h"
#include "ir/run/frame.h"

namespace cresset::jit {
namespace {

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

std::vector<int64_t> enter_autocast(const IValue& self) {
  auto& object = self.toObjectRef();
  Stack stack{object.getAttr("device"), object.getAttr("fast_dtype"), object.getAttr("_enabled")};
  find_operator("autocast::enter")->call(stack);
  return stack.at(0).toIntVector();
}
void leave_autocast(const Frame::Open& block) {
  if (block.autocast.empty()) return;
  Stack stack{block.object.toObjectRef().getAttr("device"), block.autocast};
  find_operator("autocast::leave")->call(stack);
}

ForkSafe<std::mutex> python_mutex;
PythonOpHandler& python_handler() {
  static PythonOpHandler handler;
  return handler;
}

}  // namespace

void set_python_op_handler(PythonOpHandler handler) {
  const std::lock_guard lock(python_mutex);
  python_handler() = std::move(handler);
}

void execute_call(const Code::Impl& code, Frame& f, const Instruction& i, Stack& stack) {
  const Call& c = code.calls[i.a];
  f.count_call();
  // What was called leaves its results on the stack; the last ones are the node's, and others are of no use.
  const std::size_t before = stack.size();
  const auto give = [&] {
    CRESSET_CHECK(stack.size() >= before + c.out_count, c.node->kind().toQualString(), ": a node with ", stack.size() - before,
                  " results was required; it has ", c.out_count, ".");
    f.pop_outputs(stack, c);
    stack.resize(before);
  };
  switch (i.op) {
    case Opcode::CALL_GRAPH:
      f.push_inputs(stack, c);
      c.graph->run(stack);
      give();
      return;
    case Opcode::CALL_OPERATION:
      f.push_inputs(stack, c);
      c.operation(stack);
      give();
      return;
    case Opcode::CALL_FUNCTION:
      // The function itself is the first operand.
      for (uint32_t k = 1; k < c.in_count; ++k) f.push(stack, code.operands[c.in_begin + k]);
      call_function(*c.callee, stack);
      give();
      return;
    case Opcode::CALL_VALUE: {
      f.push(stack, code.operands[c.in_begin]);
      const auto callee = pop(stack).toFunction();
      for (uint32_t k = 1; k < c.in_count; ++k) f.push(stack, code.operands[c.in_begin + k]);
      call_function(static_cast<Function&>(*callee), stack);
      give();
      return;
    }
    case Opcode::CALL_METHOD: {
      if (c.type) {  // the constructor of a C++ class: the object's register has been empty so far
        for (uint32_t k = 1; k < c.in_count; ++k) f.push(stack, code.operands[c.in_begin + k]);
        custom_class_of(*c.type)->methods.at(c.name).run(stack);
        f.store(pop(stack), code.operands[c.in_begin]);
        stack.emplace_back();
        give();
        return;
      }
      f.push_inputs(stack, c);
      if (const IValue self = peek(stack, 0, c.in_count); !c.callee && self.isCustomClass()) {
        call_custom_method(self, c.name, stack);
        give();
        return;
      }
      Function& method = c.callee ? *c.callee : method_of(peek(stack, 0, c.in_count), c.name);
      call_function(method, stack);
      give();
      return;
    }
    case Opcode::MAKE_LIST: {
      std::vector<IValue> elements;
      elements.reserve(c.in_count);
      for (uint32_t k = 0; k < c.in_count; ++k) f.push(elements, code.operands[c.in_begin + k]);
      stack.emplace_back(make_intrusive<ivalue::ListImpl>(std::move(elements), c.type));
      give();
      return;
    }
    case Opcode::MAKE_TUPLE: {
      std::vector<IValue> elements;
      elements.reserve(c.in_count);
      for (uint32_t k = 0; k < c.in_count; ++k) f.push(elements, code.operands[c.in_begin + k]);
      stack.emplace_back(make_intrusive<ivalue::TupleImpl>(std::move(elements), c.type));
      give();
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
      give();
      return;
    }
    case Opcode::MAKE_OBJECT: {
      if (!c.type)
        stack.emplace_back();
      else
        stack.emplace_back(new_object(c.type, static_cast<const ClassType&>(*c.type).numAttributes()));
      give();
      return;
    }
    case Opcode::UNPACK_TUPLE: {
      f.push_inputs(stack, c);
      const IValue tuple = pop(stack);
      const auto& elements = tuple.toTupleElements();
      CRESSET_CHECK(elements.size() == c.out_count, "Expected ", c.out_count, " elements in a tuple but found ", elements.size());
      for (const IValue& e : elements) stack.push_back(e);
      give();
      return;
    }
    case Opcode::UNPACK_LIST: {
      f.push_inputs(stack, c);
      const IValue list = pop(stack);
      const auto& elements = list.toListImpl().elements;
      CRESSET_CHECK(elements.size() == c.out_count, "Expected ", c.out_count, " elements in a list but found ", elements.size());
      for (const IValue& e : elements) stack.push_back(e);
      give();
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
      give();
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
      give();
      return;
    }
    case Opcode::GET_ATTRIBUTE: {
      f.push_inputs(stack, c);
      const IValue object = pop(stack);
      stack.push_back(attribute(object, c));
      give();
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
      give();
      return;
    }
    case Opcode::IS_INSTANCE: {
      f.push_inputs(stack, c);
      const IValue v = pop(stack);
      bool is = false;
      for (const TypePtr& t : c.types) is = is || value_is_of_type(v, *t);
      stack.emplace_back(is);
      give();
      return;
    }
    case Opcode::FORK: {
      std::vector<IValue> arguments;
      for (uint32_t k = 0; k < c.in_count; ++k) f.push(arguments, code.operands[c.in_begin + k]);
      const auto begin = c.node->kind() == prim::awaitable ? delay : launch;
      auto future = begin(
          [graph = c.graph, arguments = std::move(arguments)]() mutable {
            graph->run(arguments);
            if (arguments.size() == 1) return std::move(arguments[0]);
            return arguments.empty() ? IValue() : IValue(make_intrusive<ivalue::TupleImpl>(std::move(arguments)));
          },
          c.type);
      stack.emplace_back(std::move(future));
      give();
      return;
    }
    case Opcode::GUARD:
      f.push_inputs(stack, c);
      CRESSET_CHECK(value_is_of_type(stack.back(), *c.types[0]), "Guard: a tensor of type '", c.types[0]->str(), "' was required; '",
                    stack.back().isTensor() ? TensorType::create(stack.back().toTensor())->str() : stack.back().type()->str(),
                    "' was given.");
      give();
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
          all = value_is_of_type(v, *c.types[k]);
        }
      }
      stack.emplace_back(all);
      give();
      return;
    }
    case Opcode::ENTER: {
      f.push_inputs(stack, c);
      if (stack.back().isScriptObject()) {
        IValue object = stack.back();
        call_function(method_of(object, "__enter__"), stack);
        std::vector<int64_t> before = is_autocast_class(*object.toObjectRef().type) ? enter_autocast(object) : std::vector<int64_t>();
        f.open.push_back({std::move(object), std::move(before)});
      }
      give();
      return;
    }
    case Opcode::EXIT: {
      f.push_inputs(stack, c);
      if (stack.back().isScriptObject()) {
        if (!f.open.empty()) {
          leave_autocast(f.open.back());
          f.open.pop_back();
        }
        Function& exit = method_of(stack.back(), "__exit__");
        for (int k = 0; k < 3; ++k) stack.emplace_back();
        call_function(exit, stack);
      }
      give();
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
      give();
      return;
    }
    default: CRESSET_INTERNAL_ASSERT(false, "opcode");
  }
}

void leave_open(Frame& f) noexcept {
  while (!f.open.empty()) {
    const Frame::Open open = std::move(f.open.back());
    f.open.pop_back();
    Stack stack{open.object, IValue(), IValue(), IValue()};
    try {
      leave_autocast(open);
      call_function(method_of(stack.front(), "__exit__"), stack);
    } catch (...) {  // the error that ends the frame is the one to see
    }
  }
}

}  // namespace cresset::jit
