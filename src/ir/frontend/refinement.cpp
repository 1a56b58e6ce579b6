// Conditions: what they say of the types of variables, and which are known while compiling.
#include <cresset/base/stack.h>

#include "ir/frontend/annotation_words.h"
#include "ir/frontend/emitter.h"

namespace cresset::jit {
namespace {

// Both hold: the later one knows more.
Refinements both(Refinements a, const Refinements& b) {
  for (const auto& [name, type] : b) a[name] = type;
  return a;
}
// One of them holds: what they say in common.
Refinements either(const Refinements& a, const Refinements& b) {
  Refinements out;
  for (const auto& [name, type] : a)
    if (const auto other = b.find(name); other != b.end()) out[name] = unify_types(type, other->second, true);
  return out;
}

// The members that a value of this type may be.
std::vector<TypePtr> members_of(const TypePtr& t) {
  if (t->kind == TypeKind::Optional) {
    std::vector<TypePtr> out = members_of(t->element());
    out.push_back(basic_type(TypeKind::None));
    return out;
  }
  return t->kind == TypeKind::Union ? t->contained : std::vector<TypePtr>{t};
}

TypePtr any_of(const std::vector<TypePtr>& members) {
  return members.empty() ? nullptr : members.size() == 1 ? members[0] : union_of(members);
}

bool may_be_none(const Type& t) {
  if (t.kind == TypeKind::None || t.kind == TypeKind::Optional || t.kind == TypeKind::Any) return true;
  if (t.kind != TypeKind::Union) return false;
  for (const TypePtr& m : t.contained)
    if (may_be_none(*m)) return true;
  return false;
}

TypePtr without_none(const TypePtr& t) {
  std::vector<TypePtr> rest;
  for (const TypePtr& m : members_of(t))
    if (m->kind != TypeKind::None) rest.push_back(m);
  return any_of(rest);
}

bool is_none_literal(const Expr& e) { return e.kind == ExprKind::Constant && e.value.isNone(); }

void add_types(const SugaredValuePtr& v, const SourceRange& range, GraphFunction& m, std::vector<TypePtr>& types) {
  if (const TypePtr t = v->asType()) {
    types.push_back(t);
    return;
  }
  if (const auto all = v->asTypes()) {
    types.insert(types.end(), all->begin(), all->end());
    return;
  }
  if (!v->plainValue() && !v->asConstant()) {
    for (const SugaredValuePtr& part : v->asTuple(range, m)) add_types(part, range, m, types);
    return;
  }
  script_error(range, "Expression of type const cannot be used in a type expression");
}

// Any[]-like types stand for every type of their kind.
bool belongs(const Type& t, const Type& asked) {
  if (t.is_subtype_of(asked)) return true;
  return (asked.kind == TypeKind::AnyList && t.kind == TypeKind::List) || (asked.kind == TypeKind::AnyTuple && t.kind == TypeKind::Tuple);
}

}  // namespace

Condition Emitter::condition(const ExprPtr& e) {
  check_stack("scripts");
  switch (e->kind) {
    case ExprKind::Unary:
      if (e->text == "not") {
        Condition c = condition(e->parts[0]);
        std::swap(c.when_true, c.when_false);
        if (c.known)
          c.known = !*c.known;
        else
          c.value = builtin(e->range, Symbol::aten("__not__"), {c.value})->asValue(e->range, m_);
        return c;
      }
      break;
    case ExprKind::BoolOp: return junction(e->text, e->range, e->parts, 0);
    case ExprKind::Compare:
      if (e->operators.size() == 1 && (e->operators[0] == "is" || e->operators[0] == "is not")) return identity(*e);
      break;
    case ExprKind::Call:
      if (is_isinstance(*e)) return isinstance(*e);
      break;
    default: break;
  }
  return condition_of(e->range, sugared(e));
}

Condition Emitter::condition_of(const SourceRange& range, const SugaredValuePtr& v) {
  Condition c;
  if (!v->plainValue()) {
    if (const auto known = v->asConstant(); known && known->isBool()) {
      c.known = known->toBool();
      return c;
    }
  }
  c.value = to_bool(range, v);
  if (const auto known = constant_as<bool>(c.value)) {
    c.known = known;
    c.value = nullptr;
  }
  return c;
}

Value* Emitter::as_value(const SourceRange& range, const Condition& c) { return c.known ? constant(IValue(*c.known), range) : c.value; }

Value* Emitter::to_bool(const SourceRange& range, const SugaredValuePtr& thing) {
  Value* v = thing->asValue(range, m_);
  switch (v->type()->kind) {
    case TypeKind::Bool: return v;
    case TypeKind::Tensor:
    case TypeKind::Int:
    case TypeKind::Float:
    case TypeKind::Complex:
    case TypeKind::Number: return builtin(range, Symbol::aten("Bool"), {v})->asValue(range, m_);
    case TypeKind::String:
    case TypeKind::List:
    case TypeKind::Dict: {
      Value* length = builtin(range, aten::len, {v})->asValue(range, m_);
      return builtin(range, Symbol::aten("gt"), {length, constant(IValue(int64_t{0}), range)})->asValue(range, m_);
    }
    case TypeKind::Object:
      for (const char* magic : {"__bool__", "__len__"})
        if (thing->hasAttr(range, m_, magic)) {
          const SugaredValuePtr answer = thing->attr(range, m_, magic)->call(range, m_, {}, {}, 1);
          const TypePtr given = answer->asValue(range, m_)->type();
          if (given->kind != TypeKind::Bool && given->kind != TypeKind::Int)
            script_error(range, "expected a bool expression for condition but found " + given->annotation_str());
          return to_bool(range, answer);
        }
      break;
    default: break;
  }
  script_error(range, "Could not cast value of type " + v->type()->annotation_str() + " to bool");
}

// x is None, x is not None, a is b.
Condition Emitter::identity(const Expr& e) {
  const bool is = e.operators[0] == "is";
  ExprPtr a = e.parts[0], b = e.parts[1];
  if (is_none_literal(*a)) std::swap(a, b);
  const SugaredValuePtr left = sugared(a);
  Condition c;
  if (!is_none_literal(*b)) {
    const SugaredValuePtr right = sugared(b);
    c.value = to_bool(e.range, compare(e.range, e.operators[0], a, left, b, right));
    return c;
  }
  Value* v = left->plainValue();
  if (!v && !left->asConstant()) {  // modules, functions and the like are never None
    c.known = !is;
    return c;
  }
  if (!v) v = left->asValue(a->range, m_);
  const TypePtr type = v->type();
  const Variable* name = a->kind == ExprKind::Name ? names_.lookup(a->text) : nullptr;
  const bool open = name && name->annotated && may_be_none(*name->declared);  // x: Optional[int] = 3 asks, so that x may be None again
  if (type->kind == TypeKind::None || (!open && !may_be_none(*type))) {
    c.known = (type->kind == TypeKind::None) == is;
    return c;
  }
  Value* none = constant(IValue(), b->range);
  c.value = builtin(e.range, is ? aten::__is__ : aten::__isnot__, {v, none})->asValue(e.range, m_);
  if (name && type->kind != TypeKind::Any) (is ? c.when_false : c.when_true)[a->text] = without_none(type);
  return c;
}

// isinstance(x, T), and torch.jit.isinstance(x, T), which is the same.
bool Emitter::is_isinstance(const Expr& e) const {
  if (e.kind != ExprKind::Call || e.parts.size() != 3 || !e.keywords.empty() || e.parts[0]->text != "isinstance") return false;
  const Expr& callee = *e.parts[0];
  if (callee.kind == ExprKind::Name) return !names_.lookup("isinstance");
  return callee.kind == ExprKind::Attribute && callee.parts[0]->text == "jit" && !names_.lookup("jit");
}

Condition Emitter::isinstance(const Expr& e) {
  const SugaredValuePtr thing = sugared(e.parts[1]);
  std::vector<TypePtr> asked;
  const std::vector<ExprPtr> types = e.parts[2]->kind == ExprKind::Tuple ? e.parts[2]->parts : std::vector<ExprPtr>{e.parts[2]};
  for (const ExprPtr& t : types)
    for (const char* word : {"List", "Dict", "Tuple", "Optional", "Union"})
      if ((t->kind == ExprKind::Name || t->kind == ExprKind::Attribute) && t->text == word && !names_.lookup(word))
        script_error(t->range, missing_contained_type(word));
  add_types(sugared(e.parts[2]), e.parts[2]->range, m_, asked);
  Condition c;
  Value* v = graph_value(e.parts[1]->range, thing);
  if (!v) v = thing->asValue(e.parts[1]->range, m_);
  const TypePtr type = v->type();
  const auto fits = [&](const TypePtr& t) {
    return std::any_of(asked.begin(), asked.end(), [&](const TypePtr& a) { return belongs(*t, *a); });
  };
  std::vector<TypePtr> inside, outside, maybe;
  for (const TypePtr& member : members_of(type)) {
    if (fits(member)) {
      inside.push_back(member);
      continue;
    }
    // A more exact type than the member may be asked for: Any, interfaces, numbers.
    bool below = false;
    for (const TypePtr& a : asked)
      if (a->is_subtype_of(*member)) {
        below = true;
        inside.push_back(a);
      }
    (below ? maybe : outside).push_back(member);
  }
  if (maybe.empty() && (inside.empty() || outside.empty())) {
    c.known = outside.empty();
    return c;
  }
  Node* n = insert(prim::isinstance, {v}, 1, e.range);
  n->tys_(attr::types, asked);
  c.value = n->output()->setType(basic_type(TypeKind::Bool));
  const ExprPtr& a = e.parts[1];
  if (a->kind == ExprKind::Name && names_.lookup(a->text)) {
    if (TypePtr t = any_of(inside)) c.when_true[a->text] = t;
    outside.insert(outside.end(), maybe.begin(), maybe.end());
    if (TypePtr t = any_of(outside); t && *t != *type) c.when_false[a->text] = t;
  }
  return c;
}

// `a and b and c` from the first part on: the rest is only evaluated while the answer is open, and knows what came before.
Condition Emitter::junction(const std::string& word, const SourceRange& range, const std::vector<ExprPtr>& parts, std::size_t begin) {
  const bool conjunction = word == "and";
  Condition first;
  for (;; ++begin) {
    first = condition(parts[begin]);
    if (begin + 1 == parts.size() || !first.known) break;
    if (*first.known != conjunction) return first;  // decided: the rest is not compiled
    names_.refine(range, conjunction ? first.when_true : first.when_false);
  }
  if (begin + 1 == parts.size()) return first;
  Condition rest;
  const auto evaluate = [&]() -> Value* {
    rest = junction(word, range, parts, begin + 1);
    return as_value(range, rest);
  };
  const auto decided = [&]() -> Value* { return constant(IValue(!conjunction), range); };
  Condition c;
  c.value = conjunction ? choose(range, first, evaluate, decided, nullptr) : choose(range, first, decided, evaluate, nullptr);
  if (rest.known && *rest.known != conjunction) c.known = rest.known;  // whatever the first part says
  if (conjunction) {
    c.when_true = both(first.when_true, rest.when_true);
    c.when_false = either(first.when_false, rest.when_false);
  } else {
    c.when_true = either(first.when_true, rest.when_true);
    c.when_false = both(first.when_false, rest.when_false);
  }
  return c;
}

}  // namespace cresset::jit
