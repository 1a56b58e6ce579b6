// Functions of the language itself: printing, raising, casts, identity, enums; and the list of all tables.
#include <cstdio>
#include <mutex>

#include <cresset/base/fork.h>
#include <cresset/dispatch/script_values.h>
#include <cresset/ir/class_type.h>
#include <cresset/ir/script_effects.h>
#include <cresset/ops/functions_concat.h>

#include "ir/operators/builtin_call.h"
#include "ops/shared/shape_util.h"

namespace cresset::jit {

namespace {
ForkSafe<std::mutex> print_mutex;
PrintHandler& current_print_handler() {
  static PrintHandler handler = [](const std::string& text) {
    std::fwrite(text.data(), 1, text.size(), stdout);
    std::fflush(stdout);
  };
  return handler;
}
}  // namespace

PrintHandler set_print_handler(PrintHandler handler) {
  const std::lock_guard lock(print_mutex);
  return std::exchange(current_print_handler(), std::move(handler));
}

namespace builtin {
namespace {

void print(Stack& stack) {
  const auto n = static_cast<std::size_t>(pop(stack).toInt());
  std::string text;
  for (std::size_t i = 0; i < n; ++i) text += (i ? " " : "") + script_text(stack[stack.size() - n + i]);
  drop(stack, n);
  PrintHandler handler;
  {
    const std::lock_guard lock(print_mutex);
    handler = current_print_handler();
  }
  handler(text + "\n");
}

bool same_object(const IValue& a, const IValue& b) {
  if (a.isNone() || b.isNone()) return a.isNone() && b.isNone();
  return a.is(b);
}

Tensor cat_of(const std::vector<Tensor>& parts, int64_t dim) { return cat(parts, dim); }
Tensor stack_of(const std::vector<Tensor>& parts, int64_t dim) { return cresset::stack(parts, dim); }
// Tensors and behind them a dimension.
void of_members(Stack& stack, Tensor (*join)(const std::vector<Tensor>&, int64_t)) {
  const auto n = static_cast<std::size_t>(pop(stack).toInt());
  CRESSET_CHECK(n > 1, "prim::VarConcat, prim::VarStack: tensors and a dimension were required; ", n, " values were given.");
  const int64_t dim = pop(stack).toInt();
  std::vector<Tensor> parts;
  for (std::size_t i = n - 1; i > 0; --i) parts.push_back(stack[stack.size() - i].toTensor());
  drop(stack, n - 1);
  push(stack, join(parts, dim));
}

// The shape that tensors of these shapes have together.
void broadcast_sizes(Stack& stack) {
  const auto n = static_cast<std::size_t>(pop(stack).toInt());
  DimVector out;
  for (std::size_t i = 0; i < n; ++i) out = ops::infer_broadcast(out, peek(stack, i, n).toIntVector());
  drop(stack, n);
  push(stack, std::vector<int64_t>(out.begin(), out.end()));
}

void any_nonzero(Stack& stack, bool all) {
  const auto n = static_cast<std::size_t>(pop(stack).toInt());
  std::size_t defined = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const IValue& v = stack[stack.size() - n + i];
    if (v.isTensor()) {
      defined += v.toTensor().defined();
    } else if (v.isList()) {
      bool every = true;
      for (const IValue& e : v.toListRef()) every = every && e.isTensor() && e.toTensor().defined();
      defined += every;
    }
  }
  drop(stack, n);
  push(stack, all ? defined == n : defined > 0);
}

IValue unwrapped(IValue& v) {
  CRESSET_CHECK(!v.isNone(), "Unwrapping null optional");
  return v;
}

// A module of a container of modules: an attribute with the index or key for its name.
IValue element_named(const IValue& container, const std::string& name) {
  const ivalue::Object& o = container.toObjectRef();
  const auto slot = o.type->expect<ClassType>()->findAttributeSlot(name);
  CRESSET_CHECK_INDEX(slot && *slot < o.slots.size(), "'", o.type->name, "' has no element '", name, "'.");
  return o.slots[*slot];
}

[[noreturn]] void raise(IValue& message, IValue& class_name) {
  throw ScriptException(message.isString() ? message.toStringRef() : script_text(message),
                        class_name.isNone() ? "" : class_name.toStringRef());
}

int64_t hash_of(const IValue& v) {
  switch (v.tag()) {
    case IValue::Tag::Int: return v.toInt();
    case IValue::Tag::Bool: return v.toBool();
    case IValue::Tag::Double: return static_cast<int64_t>(std::hash<double>()(v.toDouble()));
    case IValue::Tag::String: return static_cast<int64_t>(std::hash<std::string>()(v.toStringRef()));
    case IValue::Tag::Tuple: {
      uint64_t h = 1469598103934665603ull;
      for (const IValue& e : v.toTupleElements()) h = (h ^ static_cast<uint64_t>(hash_of(e))) * 1099511628211ull;
      return static_cast<int64_t>(h);
    }
    case IValue::Tag::None: return 0x6e6f6e65;
    case IValue::Tag::Device: return static_cast<int64_t>(std::hash<std::string>()(v.toDevice().str()));
    case IValue::Tag::Tensor: return reinterpret_cast<int64_t>(v.toTensor().unsafeGetTensorImpl());
    default: CRESSET_THROW(TypeError, "unhashable type: '", v.type()->annotation_str(), "'");
  }
}

int64_t dtype_of_autocast(std::string device_type) {
  Stack stack{IValue(std::move(device_type))};
  find_operator("autocast::dtype")->call(stack);
  return stack.at(0).toInt();
}

bool autocast_is_on() { return !cresset::impl::tls_is_dispatch_key_excluded(DispatchKey::AutocastFunctionality); }

const BuiltinRow kPrimRows[] = {
    {"prim::Print(...) -> ()", &print, {.side_effects = true}},
    {"prim::RaiseException(str msg, str? cls=None) -> ()",
     CRESSET_BUILTIN((IValue & m, IValue& c)->void { raise(m, c); }),
     {.side_effects = true}},
    // Of graphs from before exceptions had classes.
    {"prim::RaiseException.message(str msg) -> ()",
     CRESSET_BUILTIN((IValue & m)->void {
       IValue none;
       raise(m, none);
     }),
     {.side_effects = true}},
    {"aten::warn(str message, int stacklevel=2) -> ()",
     CRESSET_BUILTIN((Text m, int64_t)->void { cresset::warn(m); }),
     {.side_effects = true}},
    {"aten::is_grad_enabled() -> bool", CRESSET_BUILTIN(()->bool { return GradMode::is_enabled(); }), {.side_effects = true}},
    {"aten::set_grad_enabled(bool val) -> ()", CRESSET_BUILTIN((bool on)->void { GradMode::set_enabled(on); }), {.side_effects = true}},
    // On any device: the layer that knows devices apart lies above.
    {"aten::is_autocast_enabled() -> bool", CRESSET_BUILTIN(()->bool { return autocast_is_on(); }), {.side_effects = true}},
    {"aten::is_autocast_cpu_enabled() -> bool", CRESSET_BUILTIN(()->bool { return autocast_is_on(); }), {.side_effects = true}},
    {"aten::get_autocast_dtype(str device_type) -> int",
     CRESSET_BUILTIN((Text device_type)->int64_t { return dtype_of_autocast(std::string(device_type)); }),
     {.side_effects = true}},
    {"aten::_unwrap_optional(t(a)? optional) -> t(a)", CRESSET_BUILTIN((IValue & v)->IValue { return unwrapped(v); })},
    {"prim::unchecked_unwrap_optional(t(a)? optional) -> t(a)", CRESSET_BUILTIN((IValue & v)->IValue { return v; })},
    {"aten::__is__(t1 self, t2 obj) -> bool", CRESSET_BUILTIN((IValue & a, IValue& b)->bool { return same_object(a, b); })},
    {"aten::__isnot__(t1 self, t2 obj) -> bool", CRESSET_BUILTIN((IValue & a, IValue& b)->bool { return !same_object(a, b); })},
    // Around what an engine holds as a constant (documented form of unpack-addmm).
    {"trt::const(Tensor(a) val) -> Tensor(a)", CRESSET_BUILTIN((IValue & v)->IValue { return v; })},
    {"aten::hash.generic(t value) -> int", CRESSET_BUILTIN((IValue & v)->int64_t { return hash_of(v); })},
    {"prim::id(AnyClassType? x) -> int",
     CRESSET_BUILTIN((IValue & v)->int64_t { return v.isNone() ? 0 : reinterpret_cast<int64_t>(v.toObject().get()); })},
    {"prim::EnumName(AnyEnumType enum) -> str", CRESSET_BUILTIN((IValue & v)->std::string { return v.toEnumHolder()->name; })},
    {"prim::EnumValue.int(AnyEnumType enum) -> int", CRESSET_BUILTIN((IValue & v)->IValue { return v.toEnumHolder()->value; })},
    {"prim::EnumValue.float(AnyEnumType enum) -> float", CRESSET_BUILTIN((IValue & v)->IValue { return v.toEnumHolder()->value; })},
    {"prim::EnumValue.str(AnyEnumType enum) -> str", CRESSET_BUILTIN((IValue & v)->IValue { return v.toEnumHolder()->value; })},
    {"prim::AutogradZero() -> Tensor", CRESSET_BUILTIN(()->Tensor { return Tensor(); })},
    {"prim::AutogradAdd(Any a, Any b) -> Any", CRESSET_BUILTIN((IValue & a, IValue& b)->IValue {
       const bool has_a = a.isTensor() && a.toTensor().defined(), has_b = b.isTensor() && b.toTensor().defined();
       if (!has_a || !has_b) return has_a ? a : b;
       return IValue(a.toTensor().add(b.toTensor()));
     })},
    {"prim::VarConcat(...) -> Tensor", +[](Stack& s) { of_members(s, &cat_of); }},
    {"prim::VarStack(...) -> Tensor", +[](Stack& s) { of_members(s, &stack_of); }},
    {"prim::BroadcastSizes(...) -> int[]", &broadcast_sizes},
    {"prim::AutogradAnyNonZero(...) -> bool", +[](Stack& s) { any_nonzero(s, false); }},
    {"prim::AutogradAllNonZero(...) -> bool", +[](Stack& s) { any_nonzero(s, true); }},
    {"prim::IfThenElse(bool cond, Any(a) x, Any(b) y) -> Any(b|a)",
     CRESSET_BUILTIN((bool c, IValue& x, IValue& y)->IValue { return c ? x : y; })},
    {"prim::ModuleContainerIndex.list(Any self, int ind) -> Any",
     CRESSET_BUILTIN((IValue & o, int64_t i)->IValue { return element_named(o, std::to_string(i)); })},
    {"prim::ModuleContainerIndex.dict(Any self, str ind) -> Any",
     CRESSET_BUILTIN((IValue & o, Text name)->IValue { return element_named(o, std::string(name)); })},
    {"aten::wait(Future(t) self) -> t", CRESSET_BUILTIN((IValue & f)->IValue { return jit::wait(f.toFuture()); }), {.side_effects = true}},
    {"prim::awaitable_wait(Await(t) self) -> t",
     CRESSET_BUILTIN((IValue & f)->IValue { return jit::wait(f.toFuture()); }),
     {.side_effects = true}},
    {"prim::awaitable_nowait(t self) -> Await(t)",
     CRESSET_BUILTIN((IValue & value)->IValue {
       auto future = make_intrusive<ivalue::Future>(value.type());
       future->mark_completed(value);
       return IValue(std::move(future));
     }),
     {.side_effects = true}},
};

}  // namespace
}  // namespace builtin

void register_prim_builtins(const AddRows& add) { add(builtin::kPrimRows, std::size(builtin::kPrimRows)); }

void register_all_builtins(const AddRows& add) {
  register_prim_builtins(add);
  register_counter_builtins(add);
  register_number_builtins(add);
  register_string_builtins(add);
  register_list_builtins(add);
  register_dict_builtins(add);
  register_tensor_builtins(add);
}

}  // namespace cresset::jit
