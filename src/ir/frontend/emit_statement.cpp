// Statements without blocks of their own.
#include <algorithm>

#include <cresset/base/stack.h>
#include <cresset/ir/operator.h>

#include "ir/frontend/closure.h"
#include "ir/frontend/emitter.h"

namespace cresset::jit {
namespace {

// What programs catch as a ValueError, where other errors of the compiler are of its own class.
class MisplacedAnnotation final : public ValueError {
 public:
  using ValueError::ValueError;
};

// The word that a statement begins with.
SourceRange keyword_of(const SourceRange& range) {
  const std::string_view text = range.source()->text();
  std::size_t end = range.start();
  while (end < text.size() && text[end] >= 'a' && text[end] <= 'z') ++end;
  return SourceRange(range.source(), range.start(), std::max(end, range.start() + 1));
}

std::string not_supported(StmtKind kind) {
  switch (kind) {
    case StmtKind::FunctionDef: return "function definitions aren't supported";
    case StmtKind::ClassDef: return "class definitions aren't supported";
    case StmtKind::Import: return "import statements aren't supported";
    case StmtKind::Global: return "global variables aren't supported";
    case StmtKind::Nonlocal: return "nonlocal variables aren't supported";
    case StmtKind::Try: return "try blocks aren't supported";
    default: return "async statements aren't supported";
  }
}

struct InPlace {
  const char *text, *tensor, *list;  // list: null where lists have none
};
constexpr InPlace kInPlace[] = {
    {"+", "aten::add_", "aten::add_"}, {"-", "aten::sub_", nullptr},           {"*", "aten::mul_", "aten::mul_"},
    {"/", "aten::div_", nullptr},      {"//", "aten::floor_divide_", nullptr}, {"%", "aten::remainder_", nullptr},
    {"**", "aten::pow_", nullptr},     {"<<", "aten::__ilshift__", nullptr},   {">>", "aten::__irshift__", nullptr},
    {"&", "aten::__iand__", nullptr},  {"|", "aten::__ior__", nullptr},        {"^", "aten::__ixor__", nullptr},
};
struct InPlaceMethod {
  const char *text, *magic;
};
constexpr InPlaceMethod kInPlaceMethods[] = {
    {"+", "__iadd__"}, {"-", "__isub__"},  {"*", "__imul__"},    {"/", "__itruediv__"}, {"//", "__ifloordiv__"},
    {"%", "__imod__"}, {"**", "__ipow__"}, {"@", "__imatmul__"}, {"<<", "__ilshift__"}, {">>", "__irshift__"},
    {"&", "__iand__"}, {"|", "__ior__"},   {"^", "__ixor__"},
};

}  // namespace

void Emitter::statements(const std::vector<StmtPtr>& list) {
  for (const StmtPtr& s : list) {
    if (names_.top().exits) return;  // never reached: such code may use what only exists where it is reached
    try {
      statement(*s);
    } catch (const ScriptError&) {
      throw;
    } catch (const MisplacedAnnotation&) {
      throw;
    } catch (const Error& error) {  // of something that knows no places
      script_error(s->range, error.what());
    }
  }
}

void Emitter::statement(const Stmt& s) {
  check_stack("scripts");
  switch (s.kind) {
    case StmtKind::Expression: sugared(s.value); return;
    case StmtKind::Assign:
      if (s.annotation)
        annotated_assignment(s);
      else
        assignment(s);
      return;
    case StmtKind::AugAssign: augmented_assignment(s); return;
    case StmtKind::Return: return_statement(s); return;
    case StmtKind::If: branch(s.range, condition(s.value), [&] { statements(s.body); }, [&] { statements(s.orelse); }); return;
    case StmtKind::While: while_loop(s); return;
    case StmtKind::For: for_loop(s); return;
    case StmtKind::Assert: assertion(s); return;
    case StmtKind::Raise: raise(s); return;
    case StmtKind::Pass: return;
    case StmtKind::Break: leave_loop(s, prim::BreakStmt); return;
    case StmtKind::Continue: leave_loop(s, prim::ContinueStmt); return;
    case StmtKind::Delete:
      for (const ExprPtr& target : s.targets) remove(*target);
      return;
    case StmtKind::With: with(s, 0); return;
    case StmtKind::FunctionDef:
      if (is_closure(*s.function)) {
        names_.assign(s.range, s.function->name, closure_value(s.function, names_, definition_.resolver, m_));
        return;
      }
      [[fallthrough]];
    default: throw UnsupportedNodeError(keyword_of(s.range), not_supported(s.kind));
  }
}

// ---- assignments

void Emitter::assignment(const Stmt& s) {
  // a, b = b, a needs no tuple.
  const ExprPtr& target = s.targets[0];
  const auto plain_tuple = [](const Expr& e) {
    if (e.kind != ExprKind::Tuple) return false;
    for (const ExprPtr& part : e.parts)
      if (part->kind == ExprKind::Starred) return false;
    return true;
  };
  if (s.targets.size() == 1 && plain_tuple(*target) && plain_tuple(*s.value) && target->parts.size() == s.value->parts.size()) {
    std::vector<SugaredValuePtr> values;
    for (const ExprPtr& part : s.value->parts) values.push_back(sugared(part));
    for (std::size_t i = 0; i < values.size(); ++i) assign(target->parts[i], values[i], s.value->parts[i]);
    return;
  }
  // A variable of a block around keeps its type; one of this block may get another, and only what is empty takes the old one.
  TypePtr hint;
  const bool empty = s.value->kind != ExprKind::ListComp && s.value->kind != ExprKind::DictComp && s.value->parts.empty();
  if (target->kind == ExprKind::Name && s.targets.size() == 1)
    if (const Variable* known = names_.lookup(target->text); known && known->declared && !known->thing)
      if (empty || !known->type || known->declared_in != &names_.top()) hint = known->declared;
  const SugaredValuePtr v = s.value->kind == ExprKind::List ? list(*s.value, hint, true) : sugared(s.value, hint);
  for (const ExprPtr& t : s.targets) assign(t, v, s.value);
}

void Emitter::annotated_assignment(const Stmt& s) {
  const ExprPtr& target = s.targets[0];
  const bool of_self = target->kind == ExprKind::Attribute && target->parts[0]->kind == ExprKind::Name && target->parts[0]->text == "self";
  if (of_self && tree_.name != "__init__") {
    const SourceRange range(target->range.source(), target->parts[0]->range.start(), s.annotation->range.end());
    throw MisplacedAnnotation("Type annotations on instance attributes must be declared in __init__, not '" + tree_.name +
                              "': SourceRange at:\n" + range.highlight());
  }
  const TypePtr type = annotation(s.annotation);
  if (!s.value) {
    if (target->kind == ExprKind::Name) names_.declare(target->range, target->text, type);
    return;
  }
  const SugaredValuePtr v = sugared(s.value, type);
  Value* plain = v->asValue(s.value->range, m_);
  if (target->kind == ExprKind::Name) {
    if (const Variable* known = names_.lookup(target->text); known && known->declared_in != &names_.top())
      script_error(target->range, "Attempting to declare and annotate the type of variable '" + target->text +
                                      "' but it is already defined in an outer block");
  }
  Value* fitting = converted(s.value->range, plain, type);
  if (!fitting->type()->is_subtype_of(*type)) {
    const ExprKind written = s.value->kind;
    const TypeKind wanted = (type->kind == TypeKind::Optional ? type->element() : type)->kind;
    const auto refuse_kind = [&](const std::string& kind) {
      const bool choice = type->kind == TypeKind::Union;
      script_error(s.value->range, (choice ? "Expected an Union type annotation with an inner " + kind + " type, but got "
                                           : "Expected an annotation of type " + kind + " but got ") +
                                       type->annotation_str());
    };
    const auto offers = [&](TypeKind kind) {
      if (type->kind != TypeKind::Union) return wanted == kind;
      return std::any_of(type->contained.begin(), type->contained.end(), [&](const TypePtr& t) { return t->kind == kind; });
    };
    if ((written == ExprKind::List || written == ExprKind::ListComp) && !offers(TypeKind::List)) refuse_kind("List");
    if ((written == ExprKind::Dict || written == ExprKind::DictComp) && !offers(TypeKind::Dict)) refuse_kind("Dict");
    const std::string what = target->kind == ExprKind::Name ? "Variable '" + target->text + "'" : "The target";
    script_error(target->range, what + " is annotated with type " + type->annotation_str() + " but is being assigned to a value of type " +
                                    plain->type()->annotation_str());
  }
  assign(target, simple_value(fitting), s.value);
  if (target->kind == ExprKind::Name) names_.annotate(target->text, type);
}

void Emitter::assign(const ExprPtr& target, const SugaredValuePtr& v, const ExprPtr& source) {
  // The whole of `target = source` where it stands like that.
  const auto whole = [&] {
    const SourceRange &left = target->range, &right = source->range;
    return left.source() == right.source() && left.start() < right.end() ? SourceRange(left.source(), left.start(), right.end()) : left;
  };
  switch (target->kind) {
    case ExprKind::Name: {
      Value* plain = graph_value(source->range, v);
      if (!plain) {
        names_.assign(target->range, target->text, v);
        return;
      }
      const Variable* known = names_.lookup(target->text);
      const bool bound = known && known->declared && (known->declared_in != &names_.top() || !known->type);
      if (bound) plain = converted(target->range, plain, known->declared);
      names_.assign(target->range, target->text, simple_value(plain));
      return;
    }
    case ExprKind::Tuple:
    case ExprKind::List: unpack(target, v, source); return;
    case ExprKind::Subscript: assign_subscript(*target, v->asValue(source->range, m_), whole()); return;
    case ExprKind::Attribute: {
      const SugaredValuePtr object = sugared(target->parts[0]);
      object->setAttr(whole(), m_, target->text, v->asValue(source->range, m_));
      return;
    }
    case ExprKind::Starred: script_error(target->range, "Starred expression on the left-hand side must be in a tuple or list");
    default: script_error(target->range, "unexpected expression on left-hand side of assignment");
  }
}

void Emitter::unpack(const ExprPtr& target, const SugaredValuePtr& v, const ExprPtr& source) {
  std::optional<std::size_t> star;
  for (std::size_t i = 0; i < target->parts.size(); ++i) {
    if (target->parts[i]->kind != ExprKind::Starred) continue;
    if (star) script_error(target->range, "Only one starred expression is allowed on the lhs");
    star = i;
  }
  if (star && target->parts.size() == 1)
    script_error(target->range, "A Starred expression may only appear on the lhs within the presence of another non-starred expression");
  const std::size_t wanted = target->parts.size();
  const auto size = star ? std::nullopt : std::optional(wanted);
  const std::vector<SugaredValuePtr> parts = v->asTuple(source->range, m_, size);
  if (!star && parts.size() != wanted)
    script_error(target->range,
                 parts.size() < wanted
                     ? "need " + std::to_string(wanted) + " values to unpack but found only " + std::to_string(parts.size())
                     : "too many values to unpack: need " + std::to_string(wanted) + " but found " + std::to_string(parts.size()));
  if (star && parts.size() + 1 < wanted)
    script_error(target->range,
                 "need at least " + std::to_string(wanted - 1) + " values to unpack but found only " + std::to_string(parts.size()));
  std::size_t next = 0;
  for (std::size_t i = 0; i < wanted; ++i) {
    if (star != i) {
      assign(target->parts[i], parts[next++], source);
      continue;
    }
    const std::size_t count = parts.size() + 1 - wanted;
    std::vector<SugaredValuePtr> rest(parts.begin() + static_cast<std::ptrdiff_t>(next),
                                      parts.begin() + static_cast<std::ptrdiff_t>(next + count));
    next += count;
    SugaredValuePtr together = tuple_value(rest);
    std::vector<Value*> values;
    for (const SugaredValuePtr& part : rest)
      if (Value* plain = graph_value(source->range, part)) values.push_back(plain);
    if (values.size() == rest.size()) together = simple_value(insert_node(m_, graph().createTuple(values), source->range)->output());
    assign(target->parts[i]->parts[0], together, source);
  }
}

Value* Emitter::augmented(const std::string& op, const SourceRange& range, const SugaredValuePtr& left, Value* right, bool& in_place) {
  Value* plain = left->asValue(range, m_);
  const TypeKind kind = plain->type()->kind;
  in_place = false;
  if (kind == TypeKind::Object) {
    for (const InPlaceMethod& m : kInPlaceMethods)
      if (op == m.text && left->hasAttr(range, m_, m.magic))
        return left->attr(range, m_, m.magic)->call(range, m_, {{range, simple_value(right), {}}}, {}, 1)->asValue(range, m_);
    const auto plainly = [](std::string magic) { return magic.erase(2, 1); };  // __iadd__: __add__
    for (const InPlaceMethod& m : kInPlaceMethods)
      if (op == m.text && !left->hasAttr(range, m_, plainly(m.magic)))
        script_error(range, "Cannot emit inplace op on " + plain->type()->annotation_str() + " since it does not define an " + m.magic +
                                " or " + plainly(m.magic) + " method");
  }
  for (const InPlace& p : kInPlace) {
    if (op != p.text) continue;
    const char* name = kind == TypeKind::Tensor ? p.tensor : kind == TypeKind::List ? p.list : nullptr;
    if (!name || operators_of(Symbol::fromQualString(name)).empty()) break;
    in_place = true;
    return builtin(range, Symbol::fromQualString(name), {plain, right})->asValue(range, m_);
  }
  return binary(range, op, left, range, simple_value(right), range)->asValue(range, m_);
}

void Emitter::augmented_assignment(const Stmt& s) {
  const ExprPtr& target = s.targets[0];
  bool in_place = false;
  switch (target->kind) {
    case ExprKind::Name: {
      const SugaredValuePtr old = sugared(target);
      Value* result = augmented(s.text, s.range, old, value(s.value), in_place);
      names_.assign(target->range, target->text, simple_value(result));
      return;
    }
    case ExprKind::Attribute: {
      const SugaredValuePtr object = sugared(target->parts[0]);
      const SugaredValuePtr old = object->attr(target->range, m_, target->text);
      Value* result = augmented(s.text, s.range, old, value(s.value), in_place);
      if (!in_place) object->setAttr(target->range, m_, target->text, result);
      return;
    }
    case ExprKind::Subscript: augmented_subscript(s); return;
    default: script_error(target->range, "left-hand side of augmented assignment must be a variable, an attribute or a subscript");
  }
}

void Emitter::remove(const Expr& target) {
  if (target.kind == ExprKind::Name) {
    names_.remove(target.range, target.text);
    return;
  }
  if (target.kind == ExprKind::Tuple) {
    for (const ExprPtr& part : target.parts) remove(*part);
    return;
  }
  if (target.kind != ExprKind::Subscript)
    script_error(target.range, "del statements are only supported for deleting variables and elements of lists and dicts");
  if (target.parts[1]->kind == ExprKind::Slice)
    script_error(target.range, "del statements only support deletion at a single index, slicing is not supported");
  const SugaredValuePtr base = sugared(target.parts[0]);
  const Value* container = base->asValue(target.range, m_);
  const SugaredValuePtr index = sugared(target.parts[1]);
  if (container->type()->kind == TypeKind::Object && !base->hasAttr(target.range, m_, "__delitem__"))
    script_error(target.range, "Class does not define __delitem__");
  if (container->type()->kind == TypeKind::Object)
    base->attr(target.range, m_, "__delitem__")->call(target.range, m_, {{target.range, index, {}}}, {}, 0);
  else
    builtin_function(Symbol::aten("Delete"))->call(target.range, m_, {{target.range, base, {}}, {target.range, index, {}}}, {}, 0);
}

// ---- ways out

// The exceptions of Python itself.
bool is_python_exception(const std::string& name) {
  static const std::set<std::string> names = {"BaseException",
                                              "Exception",
                                              "ArithmeticError",
                                              "AssertionError",
                                              "AttributeError",
                                              "BufferError",
                                              "EOFError",
                                              "FloatingPointError",
                                              "ImportError",
                                              "IndexError",
                                              "KeyError",
                                              "KeyboardInterrupt",
                                              "LookupError",
                                              "MemoryError",
                                              "ModuleNotFoundError",
                                              "NameError",
                                              "NotImplementedError",
                                              "OSError",
                                              "OverflowError",
                                              "RecursionError",
                                              "ReferenceError",
                                              "RuntimeError",
                                              "StopIteration",
                                              "SyntaxError",
                                              "SystemError",
                                              "SystemExit",
                                              "TimeoutError",
                                              "TypeError",
                                              "UnboundLocalError",
                                              "UnicodeError",
                                              "ValueError",
                                              "ZeroDivisionError"};
  return names.count(name) != 0;
}

void Emitter::raise_exception(const SourceRange& range, Value* message, const std::string& class_name) {
  Value* name = constant(class_name.empty() ? IValue() : IValue(class_name), range);
  insert(prim::RaiseException, {message, name}, 0, range);
  set_exits();
}

void Emitter::raise(const Stmt& s) {
  if (!s.value) script_error(s.range, "raise without an exception is not supported");
  const bool called = s.value->kind == ExprKind::Call;
  const ExprPtr& type = called ? s.value->parts[0] : s.value;
  std::string class_name;
  if (type->kind == ExprKind::Name && !names_.lookup(type->text) && is_python_exception(type->text)) {
    class_name = "builtins." + type->text;
  } else if (type->kind == ExprKind::Name || type->kind == ExprKind::Attribute) {
    const SugaredValuePtr thing = sugared(type);
    const auto name = thing->asConstant();  // an exception class of the program gives its qualified name
    if (thing->plainValue() || !name || !name->isString()) script_error(s.range, "exceptions must derive from BaseException");
    class_name = name->toStringRef();
  } else {
    script_error(s.range, "exceptions must derive from BaseException");
  }
  if (!called) {
    raise_exception(s.range, constant(IValue(""), s.range), "");
    return;
  }
  std::vector<Value*> parts;
  for (const CallArgument& a : arguments(s.value->parts, 1)) parts.push_back(a.value->asValue(a.range, m_));
  Value* message = nullptr;
  if (parts.empty()) {
    message = constant(IValue(""), s.range);
  } else if (parts.size() == 1 && parts[0]->type()->kind == TypeKind::String) {
    message = parts[0];
  } else {
    Value* all = parts.size() == 1 ? parts[0] : insert_node(m_, graph().createTuple(parts), s.range)->output();
    message = builtin(s.range, Symbol::aten("str"), {all})->asValue(s.range, m_);
  }
  raise_exception(SourceRange(s.range.source(), s.range.start(), s.value->range.end()), message, class_name);
}

void Emitter::assertion(const Stmt& s) {
  const Condition c = condition(s.value);
  const auto fail = [&] {
    const std::string heading = "AssertionError: ";
    if (!s.message) {
      raise_exception(s.range, constant(IValue(heading), s.range), "");
      return;
    }
    Value* text = value(s.message);
    if (text->type()->kind != TypeKind::String) text = builtin(s.range, Symbol::aten("str"), {text})->asValue(s.range, m_);
    const auto known = constant_as<std::string>(text);
    Value* whole = known ? constant(IValue(heading + *known), s.range)
                         : builtin(s.range, Symbol::aten("add"), {constant(IValue(heading), s.range), text})->asValue(s.range, m_);
    raise_exception(s.range, whole, "");
  };
  branch(s.range, c, [] {}, fail);
}

void Emitter::return_statement(const Stmt& s) {
  const TypePtr hint = declared_result_;
  Value* v = s.value ? value(s.value, hint) : constant(IValue(), s.range);
  if (declared_result_) {
    v = converted(s.range, v, declared_result_);
    if (!v->type()->is_subtype_of(*declared_result_))
      script_error(s.range, "Return value was annotated as having type " + declared_result_->annotation_str() +
                                " but is actually of type " + v->type()->annotation_str());
  } else {
    const TypePtr type = unshaped(v->type());
    const TypePtr both = result_ ? unify_types(result_, type) : type;
    if (!both)
      script_error(s.range, "Previous return statement returned a value of type " + result_->annotation_str() +
                                " but this return statement returns a value of type " + type->annotation_str());
    result_ = both;
  }
  insert(prim::ReturnStmt, {v}, 0, s.range);
  set_exits();
}

void Emitter::leave_loop(const Stmt& s, Symbol kind) {
  const std::string word = kind == prim::BreakStmt ? "break" : "continue";
  if (loop_.kind == LoopKind::None) script_error(s.range, "SyntaxError: '" + word + "' outside loop");
  if (loop_.kind == LoopKind::Unrolled)
    script_error(s.range,
                 "Because we emit iteration over modulelists or tuples as unrolled loops, we do not support break or continue inside "
                 "the body of these loops");
  if (kind == prim::ContinueStmt) loop_.node->i_(Symbol::attr("continues"), 1);
  insert(kind, {}, 0, s.range);
  set_exits();
}

}  // namespace cresset::jit
