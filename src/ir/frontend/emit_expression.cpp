// Expressions. Operators go by their names in the registry; objects of classes answer with their magic methods.
#include <algorithm>
#include <array>

#include <cresset/base/stack.h>

#include "ir/frontend/emitter.h"
#include "ir/frontend/script_error.h"
#include "ir/frontend/values.h"

namespace cresset::jit {
namespace {

struct BinaryOperator {
  const char *text, *op, *magic;
};
constexpr std::array kBinary = {
    BinaryOperator{"+", "aten::add", "__add__"},
    BinaryOperator{"-", "aten::sub", "__sub__"},
    BinaryOperator{"*", "aten::mul", "__mul__"},
    BinaryOperator{"/", "aten::div", "__truediv__"},
    BinaryOperator{"//", "aten::floordiv", "__floordiv__"},
    BinaryOperator{"%", "aten::remainder", "__mod__"},
    BinaryOperator{"**", "aten::pow", "__pow__"},
    BinaryOperator{"@", "aten::matmul", "__matmul__"},
    BinaryOperator{"<<", "aten::__lshift__", "__lshift__"},
    BinaryOperator{">>", "aten::__rshift__", "__rshift__"},
    BinaryOperator{"&", "aten::__and__", "__and__"},
    BinaryOperator{"|", "aten::__or__", "__or__"},
    BinaryOperator{"^", "aten::__xor__", "__xor__"},
    BinaryOperator{"<", "aten::lt", "__lt__"},
    BinaryOperator{"<=", "aten::le", "__le__"},
    BinaryOperator{">", "aten::gt", "__gt__"},
    BinaryOperator{">=", "aten::ge", "__ge__"},
    BinaryOperator{"==", "aten::eq", "__eq__"},
    BinaryOperator{"!=", "aten::ne", "__ne__"},
};

const BinaryOperator& binary_operator(const std::string& text) {
  for (const BinaryOperator& o : kBinary)
    if (text == o.text) return o;
  CRESSET_THROW(Error, "script: there is no operator '", text, "'.");
}

// The first character, which is what PyTorch marks of what it does not read further.
SourceRange begin_of(const SourceRange& range) { return SourceRange(range.source(), range.start(), range.start() + 1); }

[[noreturn]] void not_supported(const Expr& e) {
  const auto unknown = [&](const char* kind) { return UnsupportedNodeError(begin_of(e.range), std::string(kind) + " aren't supported"); };
  switch (e.kind) {
    case ExprKind::Lambda: throw unknown("Lambda");
    case ExprKind::Set: throw unknown("Set");
    case ExprKind::Await: throw unknown("Await");
    case ExprKind::Yield: throw unknown("Yield");
    case ExprKind::Walrus: throw unknown("NamedExpr");
    case ExprKind::SetComp: throw unknown("SetComp");
    case ExprKind::Starred: script_error(e.range, "Starred expressions are only supported in calls and as targets");
    case ExprKind::Slice: script_error(e.range, "slices are only supported inside of subscripts");
    default: script_error(e.range, "Cannot emit expr for: (dots)");
  }
}

// What Python itself provides; a resolver is asked for other names first.
bool is_python_builtin(const std::string& name) {
  static const std::set<std::string> names = {
      "print", "len", "range",   "enumerate", "zip", "isinstance", "getattr", "hasattr", "tuple",    "list",  "dict", "int", "float",
      "bool",  "str", "complex", "min",       "max", "abs",        "round",   "sorted",  "all",      "any",   "sum",  "ord", "chr",
      "hex",   "oct", "bin",     "divmod",    "pow", "type",       "id",      "hash",    "reversed", "super", "slice"};
  return names.count(name) != 0;
}

}  // namespace

namespace {
// Things that have no attributes at all say so with an error.
bool answers(const SourceRange& range, GraphFunction& m, SugaredValue& thing, const char* magic) {
  try {
    return thing.hasAttr(range, m, magic);
  } catch (const ScriptError&) {
    return false;
  }
}
}  // namespace

Node* Emitter::insert(Symbol kind, const std::vector<Value*>& inputs, std::size_t outputs, const SourceRange& range) {
  return insert_node(m_, graph().create(kind, inputs, outputs), range);
}

Value* Emitter::constant(const IValue& v, const SourceRange& range) { return graph().insertConstant(v, range); }

Value* Emitter::graph_value(const SourceRange& range, const SugaredValuePtr& v) {
  if (Value* plain = v->plainValue()) return plain;
  return v->asConstant() ? v->asValue(range, m_) : nullptr;
}

namespace {
// Does nobody use the value but a tuple that nobody uses?
bool unseen(const Value* v) {
  if (!v->hasUses()) return true;
  const Node* user = v->uses()[0].user;
  return v->uses().size() == 1 && user->kind() == prim::TupleConstruct && unseen(user->output());
}
}  // namespace

Value* Emitter::converted(const SourceRange& range, Value* v, const TypePtr& type) {
  if (*v->type() == *type) return v;
  const TypeKind from = v->type()->kind;
  if (from == TypeKind::None && type->kind == TypeKind::Optional) {
    const auto none = tryInsertConstant(graph(), IValue(), type);
    (*none)->node()->setSourceRange(range);
    return *none;
  }
  if (from == TypeKind::Tensor) {
    const char* conversion = type->kind == TypeKind::Int       ? "aten::IntImplicit"
                             : type->kind == TypeKind::Float   ? "aten::FloatImplicit"
                             : type->kind == TypeKind::Complex ? "aten::ComplexImplicit"
                             : type->kind == TypeKind::Number  ? "aten::ScalarImplicit"
                                                               : nullptr;
    if (conversion) return graph().insert(Symbol::fromQualString(conversion), {v}, {}, range);
  }
  if (from == TypeKind::String && type->kind == TypeKind::Device) return graph().insert(Symbol::aten("device"), {v}, {}, range);
  // Tuples member by member: (None, 1) as Tuple[Optional[int], int].
  if (from == TypeKind::Tuple && type->kind == TypeKind::Tuple && v->node()->kind() == prim::TupleConstruct &&
      v->type()->contained.size() == type->contained.size()) {
    std::vector<Value*> members;
    const std::vector<Value*> given = v->node()->inputs();
    for (std::size_t i = 0; i < given.size(); ++i) members.push_back(converted(range, given[i], type->contained[i]));
    if (members == given && type->name.empty()) return v;
    return insert_node(m_, graph().createTuple(members, type->name.empty() ? nullptr : type), range)->output();
  }
  // A display that nobody else has seen takes the type that is asked for.
  const Node* n = v->node();
  if (type->kind == TypeKind::Optional) return converted(range, v, type->element());
  if ((n->kind() == prim::ListConstruct || n->kind() == prim::DictConstruct) && n->inputs().empty() && from == type->kind && unseen(v))
    v->setType(type);
  return v;
}

SugaredValuePtr Emitter::sugared(const ExprPtr& e, const TypePtr& hint) {
  check_stack("scripts");
  switch (e->kind) {
    case ExprKind::Name: return name(*e);
    case ExprKind::Constant: return simple_value(constant(e->value, e->range));
    case ExprKind::FormatString: return format_string(*e);
    case ExprKind::Unary: return unary(e);
    case ExprKind::Binary: {
      const SugaredValuePtr a = sugared(e->parts[0]), b = sugared(e->parts[1]);
      if (e->text == "|")  // int | str
        if (const TypePtr left = a->asType(), right = b->asType(); left && right) return type_value(union_of({left, right}));
      return binary(e->range, e->text, a, e->parts[0]->range, b, e->parts[1]->range);
    }
    case ExprKind::BoolOp: return simple_value(as_value(e->range, condition(e)));
    case ExprKind::Compare: return comparison(*e);
    case ExprKind::Conditional: return conditional(*e, hint);
    case ExprKind::Attribute: return sugared(e->parts[0])->attr(e->range, m_, e->text);
    case ExprKind::Subscript: return subscript(*e, hint);
    case ExprKind::Call: return call(*e, hint);
    case ExprKind::List: return list(*e, hint);
    case ExprKind::Tuple: return tuple(*e, hint);
    case ExprKind::Dict: return dict(*e, hint);
    case ExprKind::ListComp:
    case ExprKind::GeneratorExp:  // as a list
    case ExprKind::DictComp: return comprehension(*e, hint);
    default: not_supported(*e);
  }
}

SugaredValuePtr Emitter::name(const Expr& e) {
  if (SugaredValuePtr known = names_.find(e.text, e.range)) return known;
  const bool builtin = is_python_builtin(e.text);
  if (builtin)
    if (SugaredValuePtr form = special_form(e.text)) return form;
  if (definition_.resolver)
    if (SugaredValuePtr found = definition_.resolver->resolveValue(e.text, m_, e.range)) return found;
  if (!builtin)
    if (SugaredValuePtr form = special_form(e.text)) return form;
  if (is_python_exception(e.text)) script_error(e.range, "Python exception class '" + e.text + "' cannot be used as a value");
  script_error(e.range, "undefined value " + e.text);
}

SugaredValuePtr Emitter::builtin(const SourceRange& range, Symbol op, const std::vector<Value*>& args) {
  std::vector<CallArgument> list;
  for (Value* v : args) list.push_back({range, simple_value(v), {}});
  return builtin_function(op)->call(range, m_, list, {}, 1);
}

SugaredValuePtr Emitter::operation(const SourceRange& range, Symbol op, const char* magic, const SugaredValuePtr& a, const SourceRange& ra,
                                   const SugaredValuePtr& b, const SourceRange& rb) {
  const Value* plain = a->plainValue();
  const bool instance = plain && (plain->type()->kind == TypeKind::Object || plain->type()->kind == TypeKind::Interface);
  if (instance || (!plain && !a->asConstant() && answers(range, m_, *a, magic)))
    return a->attr(range, m_, magic)->call(range, m_, {{rb, b, {}}}, {}, 1);
  return builtin_function(op)->call(range, m_, {{ra, a, {}}, {rb, b, {}}}, {}, 1);
}

SugaredValuePtr Emitter::binary(const SourceRange& range, const std::string& op, const SugaredValuePtr& a, const SourceRange& ra,
                                const SugaredValuePtr& b, const SourceRange& rb) {
  const BinaryOperator& o = binary_operator(op);
  Symbol kind = Symbol::fromQualString(o.op);
  const Value *left = a->plainValue(), *right = b->plainValue();
  const auto is_tuple = [](const SugaredValue& v, const Value* plain) {
    return plain ? plain->type()->kind == TypeKind::Tuple : v.kind() == "tuple";
  };
  if (op == "+" && is_tuple(*a, left) && is_tuple(*b, right)) {
    std::vector<SugaredValuePtr> parts = a->asTuple(ra, m_, std::nullopt);
    for (SugaredValuePtr& part : b->asTuple(rb, m_, std::nullopt)) parts.push_back(std::move(part));
    return tuple_value(std::move(parts));
  }
  if (op == "%" && left && left->type()->kind == TypeKind::String) kind = Symbol::aten("percentFormat");
  return operation(range, kind, o.magic, a, ra, b, rb);
}

SugaredValuePtr Emitter::unary(const ExprPtr& whole) {
  const Expr& e = *whole;
  if (e.text == "not") return simple_value(as_value(e.range, condition(whole)));
  const ExprPtr& part = e.parts[0];
  if (part->kind == ExprKind::Constant && part->value.isScalar() && e.text != "~") {
    const IValue v = part->value.isBool() ? IValue(int64_t{part->value.toBool()}) : part->value;
    if (e.text == "+") return simple_value(constant(v, e.range));
    if (v.isInt()) return simple_value(constant(IValue(static_cast<int64_t>(0 - static_cast<uint64_t>(v.toInt()))), e.range));
    if (v.isDouble()) return simple_value(constant(IValue(-v.toDouble()), e.range));
    return simple_value(constant(IValue(-v.toComplexDouble()), e.range));
  }
  const SugaredValuePtr v = sugared(part);
  const char* op = e.text == "-" ? "aten::neg" : e.text == "+" ? "aten::positive" : "aten::bitwise_not";
  const char* magic = e.text == "-" ? "__neg__" : e.text == "+" ? "__pos__" : "__invert__";
  const Value* plain = v->plainValue();
  if (plain && plain->type()->kind == TypeKind::Object) return v->attr(e.range, m_, magic)->call(e.range, m_, {}, {}, 1);
  if (e.text == "+" && plain && plain->type()->is_subtype_of(*basic_type(TypeKind::Number))) return v;
  return builtin_function(Symbol::fromQualString(op))->call(e.range, m_, {{part->range, v, {}}}, {}, 1);
}

SugaredValuePtr Emitter::compare(const SourceRange& range, const std::string& op, const ExprPtr& a, const SugaredValuePtr& left,
                                 const ExprPtr& b, const SugaredValuePtr& right) {
  if (op == "in" || op == "not in") {
    const SugaredValuePtr found = operation(range, Symbol::aten("__contains__"), "__contains__", right, b->range, left, a->range);
    if (op == "in") return found;
    return builtin(range, Symbol::aten("__not__"), {to_bool(range, found)});
  }
  if (op == "is" || op == "is not") {
    const Symbol kind = op == "is" ? aten::__is__ : aten::__isnot__;
    return builtin_function(kind)->call(range, m_, {{a->range, left, {}}, {b->range, right, {}}}, {}, 1);
  }
  return binary(range, op, left, a->range, right, b->range);
}

SugaredValuePtr Emitter::comparison(const Expr& e) {
  if (e.operators.size() == 1) {
    if (e.operators[0] == "is" || e.operators[0] == "is not") return simple_value(as_value(e.range, identity(e)));
    const SugaredValuePtr a = sugared(e.parts[0]), b = sugared(e.parts[1]);
    return compare(e.range, e.operators[0], e.parts[0], a, e.parts[1], b);
  }
  // a < b < c: each operand once, and the rest only while the comparisons hold.
  const std::function<Value*(std::size_t, const SugaredValuePtr&)> from = [&](std::size_t i, const SugaredValuePtr& left) -> Value* {
    const SugaredValuePtr right = sugared(e.parts[i + 1]);
    Value* here = to_bool(e.range, compare(e.range, e.operators[i], e.parts[i], left, e.parts[i + 1], right));
    if (i + 1 == e.operators.size()) return here;
    Condition c;
    c.value = here;
    return choose(e.range, c, [&] { return from(i + 1, right); }, [&] { return constant(IValue(false), e.range); }, nullptr);
  };
  return simple_value(from(0, sugared(e.parts[0])));
}

SugaredValuePtr Emitter::conditional(const Expr& e, const TypePtr& hint) {
  const Condition c = condition(e.parts[0]);
  if (c.known) {
    names_.refine(e.range, *c.known ? c.when_true : c.when_false);
    return sugared(e.parts[*c.known ? 1 : 2], hint);
  }
  const auto mismatch = [](const Type& a, const Type& b) {
    return "if-expression's true branch has type " + a.annotation_str() + " but false branch has type " + b.annotation_str();
  };
  const auto arm = [&](const ExprPtr& part) {
    Value* v = value(part, hint);
    return hint && hint->kind == TypeKind::Any && v->type()->kind != TypeKind::Any ? graph().insertUncheckedCast(v, hint) : v;
  };
  return simple_value(choose(e.range, c, [&] { return arm(e.parts[1]); }, [&] { return arm(e.parts[2]); }, mismatch));
}

namespace {
// The list, dict or tuple type in a hint: List[int] of Optional[List[int]]; null when the hint says nothing of this kind.
TypePtr hint_of(TypeKind kind, const TypePtr& hint) {
  if (!hint || hint->kind == kind) return hint;
  for (const TypePtr& member : hint->contained)
    if ((hint->kind == TypeKind::Optional || hint->kind == TypeKind::Union) && member->kind == kind) return member;
  return nullptr;
}
// The types of a kind among which a union leaves the choice; empty where there is none to make.
std::vector<TypePtr> choices_of(TypeKind kind, const TypePtr& hint) {
  std::vector<TypePtr> found;
  if (hint && hint->kind == TypeKind::Union)
    for (const TypePtr& member : hint->contained)
      if (member->kind == kind) found.push_back(member);
  return found.size() > 1 ? found : std::vector<TypePtr>();
}
}  // namespace

TypePtr only_hint_of(TypeKind kind, const TypePtr& hint) { return choices_of(kind, hint).empty() ? hint_of(kind, hint) : nullptr; }

std::string dict_mismatch(const Type& wanted, const Type& found) {
  std::string text;
  constexpr std::array kMembers = {"key", "value"};
  for (const std::size_t i : {0, 1})
    if (!found.contained[i]->is_subtype_of(*wanted.contained[i]))
      text += "Dict type annotation `" + wanted.annotation_str() + "` did not match the type of an actual " + kMembers[i] + " type `" +
              found.contained[i]->annotation_str() + "`\n";
  return text;
}

namespace {
std::string named_choices(const std::vector<TypePtr>& choices) {
  std::string text;
  for (std::size_t i = 0; i < choices.size(); ++i)
    text += (i == 0 ? "" : i + 1 == choices.size() ? " or " : ", ") + choices[i]->annotation_str();
  return text;
}
bool all_fit(const std::vector<Value*>& values, const Type& type) {
  return std::all_of(values.begin(), values.end(), [&](const Value* v) { return v->type()->is_subtype_of(type); });
}
std::string unified_name(const std::vector<Value*>& values) {
  TypePtr found = unshaped(values[0]->type());
  for (const Value* v : values)
    if (TypePtr both = unify_types(found, unshaped(v->type()), true)) found = both;
  return found->annotation_str();
}
[[noreturn]] void refuse_empty(const SourceRange& range, const Type& hint, const std::string& kind) {
  std::string word = kind;
  word[0] = static_cast<char>(word[0] - 'A' + 'a');
  script_error(range, "Cannot assign an empty " + word + " to a variable annotated to be type " + hint.annotation_str() +
                          " because there are multiple possible " + kind + " type candidates in the Union annotation");
}
TypePtr choose_list(const SourceRange& range, const Type& hint, const std::vector<TypePtr>& choices, const std::vector<Value*>& values) {
  if (values.empty()) refuse_empty(range, hint, "List");
  for (const TypePtr& choice : choices)
    if (all_fit(values, *choice->element())) return choice;
  script_error(range, "Union type annotation `" + hint.annotation_str() + "` can hold " + named_choices(choices) +
                          ", but none of those types match the types of the given list elements, which were unified to " +
                          unified_name(values));
}
TypePtr choose_dict(const SourceRange& range, const Type& hint, const std::vector<TypePtr>& choices, const std::vector<Value*>& keys,
                    const std::vector<Value*>& values) {
  if (values.empty()) refuse_empty(range, hint, "Dict");
  for (const TypePtr& choice : choices)
    if (all_fit(keys, *choice->contained[0]) && all_fit(values, *choice->contained[1])) return choice;
  script_error(range, "Union type annotation `" + hint.annotation_str() + "` can hold " + named_choices(choices) +
                          ", but none of those dict types can hold the types of the given keys and values, which were unified to Dict[" +
                          unified_name(keys) + ", " + unified_name(values) + "]");
}
}  // namespace

// may_differ: elements that do not fit the hint make a list of their own type, which the assignment refuses with the variable's name.
SugaredValuePtr Emitter::list(const Expr& e, const TypePtr& hint, bool may_differ) {
  std::vector<Value*> values;
  for (const CallArgument& a : arguments(e.parts, 0)) values.push_back(a.value->asValue(a.range, m_));
  const std::vector<TypePtr> choices = choices_of(TypeKind::List, hint);
  TypePtr wanted = choices.empty() ? hint_of(TypeKind::List, hint) : choose_list(e.range, *hint, choices, values);
  if (wanted) {
    std::vector<Value*> fitting = values;
    for (Value*& v : fitting) v = converted(e.range, v, wanted->element());
    if (all_fit(fitting, *wanted->element()))
      values = std::move(fitting);
    else if (may_differ)
      wanted = nullptr;
    else
      script_error(e.range, "List type annotation `" + wanted->annotation_str() +
                                "` did not match the types of the given list elements, which were unified to " + unified_name(values));
  }
  TypePtr element = wanted ? wanted->element() : values.empty() ? TypePtr(TensorType::get()) : nullptr;
  if (!element) {
    element = unshaped(values[0]->type());
    for (const Value* v : values) {
      const TypePtr both = unify_types(element, unshaped(v->type()), true);
      if (!both) script_error(e.range, "List elements must have a common type");
      element = both;
    }
  }
  return simple_value(insert_node(m_, graph().createList(element, values), e.range)->output());
}

SugaredValuePtr Emitter::dict(const Expr& e, const TypePtr& hint) {
  if (const std::vector<TypePtr> choices = choices_of(TypeKind::Dict, hint); !choices.empty()) {
    std::vector<Value*> keys, values;
    for (std::size_t i = 0; i + 1 < e.parts.size(); i += 2) {
      keys.push_back(value(e.parts[i]));
      values.push_back(value(e.parts[i + 1]));
    }
    const TypePtr chosen = choose_dict(e.range, *hint, choices, keys, values);
    return simple_value(insert_node(m_, graph().createDict(chosen->contained[0], chosen->contained[1], keys, values), e.range)->output());
  }
  const TypePtr wanted = hint_of(TypeKind::Dict, hint);
  TypePtr key = wanted ? wanted->contained[0] : nullptr, element = wanted ? wanted->contained[1] : nullptr;
  std::vector<Value*> keys, values;
  for (std::size_t i = 0; i + 1 < e.parts.size(); i += 2) {
    keys.push_back(value(e.parts[i], key));
    values.push_back(value(e.parts[i + 1], element));
    if (wanted) {
      keys.back() = converted(e.range, keys.back(), key);
      values.back() = converted(e.range, values.back(), element);
    } else {
      key = key ? unify_types(key, unshaped(keys.back()->type())) : unshaped(keys.back()->type());
      if (!key)
        script_error(e.parts[i]->range, "Dict keys must contain only a single type. Expected: " + keys[0]->type()->annotation_str() +
                                            " but found " + keys.back()->type()->annotation_str() + " instead");
      element = element ? unify_types(element, unshaped(values.back()->type()), true) : unshaped(values.back()->type());
    }
    if (!keys.back()->type()->is_subtype_of(*key) || !values.back()->type()->is_subtype_of(*element))
      script_error(e.range, "Type annotation was inferred to be `" + wanted->annotation_str() + "`, but the dict contains a key of type " +
                                keys.back()->type()->annotation_str() + " and a value of type " + values.back()->type()->annotation_str());
  }
  if (!key) {
    key = basic_type(TypeKind::String);
    element = TensorType::get();
  }
  return simple_value(insert_node(m_, graph().createDict(key, element, keys, values), e.range)->output());
}

SugaredValuePtr Emitter::tuple(const Expr& e, const TypePtr& hint) {
  const TypePtr wanted = hint_of(TypeKind::Tuple, hint);
  std::vector<SugaredValuePtr> parts;
  std::vector<Value*> values;
  for (std::size_t i = 0; i < e.parts.size(); ++i) {
    if (e.parts[i]->kind == ExprKind::Starred) {
      for (SugaredValuePtr& member : sugared(e.parts[i]->parts[0])->asTuple(e.parts[i]->range, m_)) parts.push_back(std::move(member));
      continue;
    }
    const TypePtr member =
        wanted && i < wanted->contained.size() && wanted->contained.size() == e.parts.size() ? wanted->contained[i] : nullptr;
    SugaredValuePtr part = sugared(e.parts[i], member);
    if (member)
      if (Value* plain = part->plainValue()) part = simple_value(converted(e.parts[i]->range, plain, member));
    parts.push_back(std::move(part));
  }
  for (const SugaredValuePtr& part : parts)
    if (Value* v = graph_value(e.range, part)) values.push_back(v);
  if (values.size() != parts.size()) return tuple_value(std::move(parts));
  return simple_value(insert_node(m_, graph().createTuple(values), e.range)->output());
}

SugaredValuePtr Emitter::format_string(const Expr& e) {
  std::string text;
  std::vector<Value*> values;
  for (const ExprPtr& part : e.parts) {
    if (part->kind == ExprKind::Constant) {
      // Braces of the text itself are doubled for aten::format.
      for (const char c : part->value.toStringRef()) {
        text += c;
        if (c == '{' || c == '}') text += c;
      }
      continue;
    }
    if (!part->text.empty())
      throw NotSupportedError(begin_of(e.range),
                              part->text[0] == '!' ? "Don't support conversion in JoinedStr" : "Don't support formatting in JoinedStr");
    text += "{}";
    values.push_back(value(part->parts[0]));
  }
  if (values.empty()) {
    std::string plain;
    for (const ExprPtr& part : e.parts) plain += part->value.toStringRef();
    return simple_value(constant(IValue(plain), e.range));
  }
  values.insert(values.begin(), constant(IValue(text), e.range));
  return builtin(e.range, aten::format, values);
}

std::vector<CallArgument> Emitter::arguments(const std::vector<ExprPtr>& parts, std::size_t begin) {
  std::vector<CallArgument> out;
  for (std::size_t i = begin; i < parts.size(); ++i) {
    const Expr& e = *parts[i];
    if (e.kind != ExprKind::Starred) {
      out.push_back({e.range, sugared(parts[i]), {}});
      continue;
    }
    for (SugaredValuePtr& member : sugared(e.parts[0])->asTuple(e.range, m_)) out.push_back({e.range, std::move(member), {}});
  }
  return out;
}

namespace {
// What dict(...) makes of keys and values fits the annotation. A dict that is copied has a type already, and the assignment looks at that.
void check_made_dict(const SourceRange& range, const Value* made, const TypePtr& hint, const std::vector<CallArgument>& args) {
  const TypePtr wanted = only_hint_of(TypeKind::Dict, hint);
  if (!wanted || !made || made->type()->kind != TypeKind::Dict || made->type()->is_subtype_of(*wanted)) return;
  if (made->node()->kind() == prim::DictConstruct && made->node()->inputs().empty() && !made->hasUses()) return;  // empty: takes the type
  const Value* copied = args.empty() ? nullptr : args[0].value->plainValue();
  if (copied && copied->type()->kind == TypeKind::Dict) return;
  if (const std::string text = dict_mismatch(*wanted, *made->type()); !text.empty()) script_error(range, text);
}
// Calls that are no calls of a function: errors of theirs show the whole of them, those of others what is called.
bool is_form_of_the_language(const std::string& kind) {
  constexpr std::array kForms = {"annotate", "getattr", "hasattr", "uninitialized", "unchecked_cast", "_unwrap_optional", "fork", "_fork"};
  constexpr std::string_view kForm = "special form ";
  return kind.starts_with(kForm) && std::find(kForms.begin(), kForms.end(), kind.substr(kForm.size())) != kForms.end();
}
}  // namespace

SugaredValuePtr Emitter::call(const Expr& e, const TypePtr& hint) {
  if (is_isinstance(e)) return simple_value(as_value(e.range, isinstance(e)));
  const SugaredValuePtr callee = [&] {
    const CallPlace here(e.parts[0]->range);  // naming a function compiles it
    return sugared(e.parts[0]);
  }();
  if (hint && e.parts.size() == 1 && e.keywords.empty())
    if (Value* list = emit_tolist(e.range, m_, *callee, hint)) return simple_value(list);
  std::vector<CallArgument> args, kwargs;
  if (callee->kind() == "special form annotate" && e.parts.size() == 3) {
    // The first argument is the type of the second.
    args.push_back({e.parts[1]->range, sugared(e.parts[1]), {}});
    const TypePtr type = args[0].value->asType();
    if (type && e.parts[2]->kind == ExprKind::ListComp && type->kind != TypeKind::Any && !hint_of(TypeKind::List, type))
      script_error(e.parts[2]->range, "Expected an annotation of type List but got " + type->annotation_str());
    args.push_back({e.parts[2]->range, type ? simple_value(converted(e.range, value(e.parts[2], type), type)) : sugared(e.parts[2]), {}});
  } else {
    args = arguments(e.parts, 1);
  }
  for (const Keyword& k : e.keywords) {
    if (k.name.empty()) throw NotSupportedError(k.range, "keyword-arg expansion is not supported");
    kwargs.push_back({k.range, sugared(k.value), k.name});
  }
  const CallPlace here(e.range);
  SourceRange place = is_form_of_the_language(callee->kind()) ? e.range : e.parts[0]->range;
  if (callee->kind() == "method tolist" && place.filename() == "<string>")  // as PyTorch marks it in programs that are given as text
    place = SourceRange(place.source(), place.start(), place.end() + 1);
  try {
    SugaredValuePtr result = callee->call(place, m_, args, kwargs, 1);
    if (hint && e.parts[0]->text == "dict" && callee->kind() == "dict") check_made_dict(e.range, result->plainValue(), hint, args);
    return result;
  } catch (const ScriptError&) {
    throw;
  } catch (const Error& error) {
    script_error(place, error.what());
  }
}

}  // namespace cresset::jit
