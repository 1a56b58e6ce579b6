// Does a node fit a schema, which types do its outputs have, and calls built from values.
#include <cresset/ir/operator.h>

#include "ir/graph/loose_match.h"

namespace cresset::jit {
namespace {

bool refuse(std::string* why_not, const TypePtr& formal, const TypePtr& actual) {
  if (why_not && why_not->empty()) *why_not = "Cannot match " + formal->annotation_str() + " to " + actual->annotation_str() + ".";
  return false;
}

}  // namespace

bool match_type(const TypePtr& formal, const TypePtr& actual, TypeVariables& variables, std::string* why_not) {
  switch (formal->kind) {
    case TypeKind::Var: {
      const auto [bound, fresh] = variables.emplace(formal->name, actual);
      if (fresh) return true;
      if (actual->is_subtype_of(*bound->second)) return true;
      // Tensors have knowledge in common; anything else must fit the first type, since lists and dicts may be written: None into int[].
      if (bound->second->kind != TypeKind::Tensor || actual->kind != TypeKind::Tensor) {
        if (why_not && why_not->empty())
          *why_not = "Type variable '" + formal->name + "' previously matched to type " + bound->second->annotation_str() +
                     " is matched to type " + actual->annotation_str() + ".";
        return false;
      }
      bound->second = unify_types(bound->second, actual);
      return true;
    }
    case TypeKind::List:
      if (actual->kind == TypeKind::List && formal->has_free_variables())
        return match_type(formal->element(), actual->element(), variables, why_not);
      // Refined tensors in a list are only knowledge, and indices are tensors or None (Tensor?[]).
      if (actual->kind == TypeKind::List && actual->element()->kind == TypeKind::Tensor &&
          (formal->element()->kind == TypeKind::Optional ? formal->element()->element() : formal->element())->kind == TypeKind::Tensor)
        return true;
      break;
    case TypeKind::Optional:
      if (actual->kind == TypeKind::None) return true;
      return match_type(formal->element(), actual->kind == TypeKind::Optional ? actual->element() : actual, variables, why_not);
    case TypeKind::Tuple:
    case TypeKind::Dict:
    case TypeKind::Future:
    case TypeKind::RRef:
    case TypeKind::Await:
      if (!formal->has_free_variables()) break;
      if (actual->kind != formal->kind || actual->contained.size() != formal->contained.size()) return refuse(why_not, formal, actual);
      for (std::size_t i = 0; i < formal->contained.size(); ++i)
        if (!match_type(formal->contained[i], actual->contained[i], variables, why_not)) return false;
      return true;
    default: break;
  }
  return actual->is_subtype_of(*formal) || refuse(why_not, formal, actual);
}

TypePtr value_type_of(const TypePtr& formal, const TypeVariables& variables) {
  switch (formal->kind) {
    case TypeKind::SymInt:
    case TypeKind::ScalarType:
    case TypeKind::Layout:
    case TypeKind::MemoryFormat: return basic_type(TypeKind::Int);
    case TypeKind::Var: {
      const auto found = variables.find(formal->name);
      return found == variables.end() ? nullptr : found->second;
    }
    default: break;
  }
  if (formal->contained.empty() || !formal->name.empty()) return formal;
  std::vector<TypePtr> members;
  bool same = true;
  for (const TypePtr& t : formal->contained) {
    members.push_back(value_type_of(t, variables));
    if (!members.back()) return nullptr;
    same = same && members.back() == t;
  }
  if (same) return formal;
  switch (formal->kind) {
    case TypeKind::List: return list_of(members[0]);
    case TypeKind::Optional: return optional_of(members[0]);
    case TypeKind::Tuple: return tuple_of(std::move(members));
    case TypeKind::Dict: return dict_of(members[0], members[1]);
    case TypeKind::Future: return future_of(members[0]);
    case TypeKind::RRef: return rref_of(members[0]);
    case TypeKind::Await: return await_of(members[0]);
    default: return union_of(std::move(members));
  }
}

namespace {
bool match_inputs(const FunctionSchema& schema, const std::vector<Value*>& inputs, TypeVariables& variables) {
  const std::vector<Argument>& formals = schema.arguments();
  if (inputs.size() < formals.size() || (inputs.size() > formals.size() && !schema.is_vararg())) return false;
  for (std::size_t i = 0; i < formals.size(); ++i)
    if (!match_type(formals[i].type, inputs[i]->type(), variables)) return false;
  return true;
}
}  // namespace

bool inputs_match_schema(const Node& n, const FunctionSchema& schema) {
  TypeVariables variables;
  return match_inputs(schema, n.inputs(), variables);
}

bool takes_bool_as_number(const FunctionSchema& schema, const std::vector<Value*>& inputs) {
  for (std::size_t i = 0; i < schema.arguments().size(); ++i) {
    const Type* formal = schema.arguments()[i].type.get();
    if (formal->kind == TypeKind::Optional) formal = formal->element().get();
    if (formal->kind == TypeKind::Number && inputs[i] && inputs[i]->type()->kind == TypeKind::Bool) return true;
  }
  return false;
}

std::vector<TypePtr> output_types(const FunctionSchema& schema, const std::vector<Value*>& inputs) {
  TypeVariables variables;
  if (!match_inputs(schema, inputs, variables)) return {};
  std::vector<TypePtr> out;
  for (const Argument& r : schema.returns()) {
    out.push_back(value_type_of(r.type, variables));
    if (!out.back()) return {};
  }
  return out;
}

namespace {

// The inputs of a call in the schema's order. A null entry is to become the default, or a list of these elements.
struct Arranged {
  std::vector<Value*> inputs;
  std::size_t list_at = 0;
  std::vector<Value*> elements;
};

// Elements that stand for a list, as in Python: rand(2, 3) for rand([2, 3]) where the list is the last positional argument, and one number
// for a list whose length the schema says.
std::vector<Value*> list_elements(const std::vector<Argument>& formals, std::size_t i, const std::vector<Value*>& args) {
  const Argument& a = formals[i];
  const Type& list = a.type->kind == TypeKind::Optional ? *a.type->element() : *a.type;
  if (list.kind != TypeKind::List || list.has_free_variables()) return {};
  std::vector<Value*> elements;
  if (a.N())
    elements.assign(static_cast<std::size_t>(*a.N()), args[i]);
  else if (i + 1 == formals.size() || formals[i + 1].kwarg_only)
    elements.assign(args.begin() + static_cast<std::ptrdiff_t>(i), args.end());
  TypeVariables none;
  for (const Value* v : elements)
    if (!match_type(list.element(), v->type(), none)) return {};
  return elements;
}

// Or the reason why the arguments do not fit.
std::optional<Arranged> arrange(const FunctionSchema& schema, const std::vector<Value*>& args,
                                const std::vector<std::pair<std::string, Value*>>& kwargs, std::string& why_not) {
  const std::vector<Argument>& formals = schema.arguments();
  Arranged arranged;
  std::vector<Value*>& out = arranged.inputs;
  TypeVariables variables;
  std::size_t used = 0, positional_used = args.size();
  for (std::size_t i = 0; i < formals.size(); ++i) {
    Value* given = nullptr;
    if (i < args.size() && !formals[i].kwarg_only) given = args[i];
    if (given && arranged.elements.empty() && !match_type(formals[i].type, given->type(), variables)) {
      arranged.elements = list_elements(formals, i, args);
      if (!arranged.elements.empty()) {
        arranged.list_at = i;
        if (!formals[i].N()) positional_used = i + 1;
        out.push_back(nullptr);
        continue;
      }
    }
    for (const auto& [name, value] : kwargs) {
      if (name != formals[i].name) continue;
      if (given) {
        why_not = "argument '" + name + "' was given twice.";
        return std::nullopt;
      }
      given = value;
      ++used;
    }
    if (!given && !formals[i].default_value) {
      why_not = "argument '" + formals[i].name + "' is missing.";
      return std::nullopt;
    }
    if (given && !match_type(formals[i].type, given->type(), variables, &why_not)) {
      why_not = "argument '" + formals[i].name + "': " + why_not;
      return std::nullopt;
    }
    out.push_back(given);
  }
  std::size_t positional = 0;
  for (const Argument& a : formals) positional += !a.kwarg_only;
  if (schema.is_vararg()) {
    for (std::size_t i = positional; i < args.size(); ++i) out.push_back(args[i]);
  } else if (positional_used > positional) {
    why_not =
        "at most " + std::to_string(positional) + " positional arguments are allowed; " + std::to_string(args.size()) + " were given.";
    return std::nullopt;
  }
  if (used != kwargs.size()) {
    why_not = "a keyword argument is unknown.";
    return std::nullopt;
  }
  return arranged;
}

}  // namespace

Value* emit_operator_call(Graph& g, Symbol op, const std::vector<Value*>& args, const std::vector<std::pair<std::string, Value*>>& kwargs,
                          SourceRange range) {
  std::string reasons;
  const std::vector<const Operator*> overloads = operators_of(op);
  const Operator* chosen = nullptr;
  std::optional<Arranged> call;
  for (const Operator* candidate : overloads) {
    std::string why_not;
    auto arranged = arrange(candidate->schema(), args, kwargs, why_not);
    if (!arranged) {
      reasons += "\n  " + candidate->schema().str() + ": " + why_not;
      continue;
    }
    const bool loosely = takes_bool_as_number(candidate->schema(), arranged->inputs);
    if (loosely && chosen) continue;
    chosen = candidate;
    call = std::move(arranged);
    if (!loosely) break;
  }
  if (chosen) {
    const FunctionSchema& schema = chosen->schema();
    for (std::size_t i = 0; i < schema.arguments().size(); ++i) {
      if (call->inputs[i]) continue;
      const Argument& a = schema.arguments()[i];
      if (i == call->list_at && !call->elements.empty()) {
        Node* list = g.insertNode(
            g.createList(value_type_of(a.type->kind == TypeKind::Optional ? a.type->element() : a.type, {})->element(), call->elements));
        list->setSourceRange(range);
        call->inputs[i] = list->output();
        continue;
      }
      const TypePtr type = a.default_value->isNone() ? basic_type(TypeKind::None) : value_type_of(a.type, {});
      const auto constant = tryInsertConstant(g, *a.default_value, type && type->kind == TypeKind::Optional ? type->element() : type);
      CRESSET_CHECK(constant, schema.name(), ": the default of '", a.name, "' cannot be a constant. Give the argument.");
      (*constant)->node()->setSourceRange(range);
      call->inputs[i] = *constant;
    }
    Node* n = g.insertNode(g.create(op, call->inputs, 0));
    n->setSourceRange(std::move(range));
    std::vector<TypePtr> types = output_types(schema, n->inputs());
    for (std::size_t i = 0; i < schema.returns().size(); ++i) n->addOutput()->setType(types.empty() ? basic_type(TypeKind::Any) : types[i]);
    if (n->outputs().size() == 1) return n->output();
    if (n->outputs().empty()) return g.insertNode(g.createNone())->output();
    return g.insertNode(g.createTuple(n->outputs()))->output();
  }
  std::string types;
  for (const Value* v : args) types += (types.empty() ? "" : ", ") + v->type()->str();
  CRESSET_THROW(Error, reasons.empty() ? "Unknown builtin op: " : "Arguments for call are not valid: ", op.toQualString(), "(", types,
                reasons.empty() ? ")." : ").", reasons, range.known() ? "\n" + range.highlight() : "");
}

}  // namespace cresset::jit
