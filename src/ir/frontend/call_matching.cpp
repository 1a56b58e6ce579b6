// A call is planned first, for each overload anew; only the plan that fits changes the graph.
#include "ir/frontend/call_matching.h"

#include <algorithm>

#include "ir/frontend/sugared_value.h"

namespace cresset::jit {
namespace {

enum class Conversion { None, TupleToList, Repeat, Collect, ToInt, ToFloat, ToComplex, ToScalar, ToDevice, Retype, Members, Default };

struct Planned {
  Conversion how = Conversion::None;
  std::vector<Value*> values;
  TypePtr type;                  // of a made list: its type
  std::size_t N = 0;             // of Repeat
  std::vector<TypePtr> members;  // of Members: the types that they are to have
};

bool is_number(const Type& t) {
  return t.kind == TypeKind::Int || t.kind == TypeKind::Float || t.kind == TypeKind::Complex || t.kind == TypeKind::Number ||
         t.kind == TypeKind::SymInt;
}

const TypePtr& without_optional(const TypePtr& t) { return t->kind == TypeKind::Optional ? t->element() : t; }

// The list that a tuple's members make for this type of lists, or null.
TypePtr list_of_tuple(const TypePtr& list, const Type& tuple) {
  TypePtr element = list->element();
  for (const TypePtr& member : tuple.contained) {
    TypeVariables free;
    if (!match_type(element, member, free)) return nullptr;
  }
  if (element->has_free_variables()) {
    if (tuple.contained.empty()) return nullptr;
    TypeVariables variables;
    for (const TypePtr& member : tuple.contained)
      if (!match_type(element, member, variables)) return nullptr;
    element = value_type_of(element, variables);
  }
  const TypePtr plain = value_type_of(element, {});
  return list_of(plain ? plain : element);
}

// [] or {} that nobody has seen yet: it takes the type that is asked for.
bool is_empty_display(const Value& v) {
  const Symbol kind = v.node()->kind();
  return (kind == prim::ListConstruct || kind == prim::DictConstruct) && v.node()->inputs().empty() && !v.hasUses();
}

class Planner {
 public:
  Planner(const FunctionSchema& schema, bool convert) : schema_(schema), convert_(convert) {}

  // Fills `plan`, one entry for each argument and each value of a variadic tail; otherwise says why not.
  bool run(const std::vector<CallValue>& args, Value* self, std::vector<Planned>& plan) {
    const std::vector<Argument>& formals = schema_.arguments();
    std::vector<Value*> positional;
    if (self) positional.push_back(self);
    for (const CallValue& a : args)
      if (a.name.empty()) positional.push_back(a.value);
    std::vector<bool> used(args.size());
    std::size_t next = 0;  // of the positional values
    for (std::size_t i = 0; i < formals.size(); ++i) {
      const Argument& formal = formals[i];
      Value* given = nullptr;
      for (std::size_t k = 0; k < args.size(); ++k) {
        // `input` is `self` in Python's functions.
        const bool named =
            args[k].name == formal.name || (i == 0 && formal.name == "self" && args[k].name == "input" && takes_input(formals));
        if (args[k].name.empty() || !named) continue;
        if (given) return refuse("Keyword argument " + formal.name + " specified twice.");
        given = args[k].value;
        used[k] = true;
      }
      if (!formal.kwarg_only && next < positional.size()) {
        if (given) return refuse("Keyword argument " + formal.name + " specified twice.");
        if (collects(formals, i, positional, next)) {
          Planned p;
          p.how = Conversion::Collect;
          p.values.assign(positional.begin() + static_cast<std::ptrdiff_t>(next), positional.end());
          p.type = value_type_of(without_optional(formal.type), {});
          plan.push_back(std::move(p));
          next = positional.size();
          continue;
        }
        given = positional[next++];
      }
      if (!given) {
        if (!formal.default_value) return refuse("Argument " + formal.name + " not provided.");
        plan.push_back({Conversion::Default, {}, nullptr, 0, {}});
        continue;
      }
      Planned p;
      if (!fit(formal, given, p)) return false;
      plan.push_back(std::move(p));
    }
    if (next < positional.size()) {
      if (!schema_.is_vararg()) {
        const auto allowed =
            static_cast<std::size_t>(std::count_if(formals.begin(), formals.end(), [](const Argument& a) { return !a.kwarg_only; }));
        return refuse("Expected at most " + std::to_string(allowed) + " arguments but found " + std::to_string(positional.size()) +
                      " positional arguments.");
      }
      for (; next < positional.size(); ++next) plan.push_back({Conversion::None, {positional[next]}, nullptr, 0, {}});
    }
    for (std::size_t k = 0; k < args.size(); ++k)
      if (!args[k].name.empty() && !used[k]) return refuse("Keyword argument " + args[k].name + " unknown.");
    return true;
  }

  const std::string& why_not() const { return why_not_; }
  const TypeVariables& variables() const { return variables_; }

 private:
  static bool takes_input(const std::vector<Argument>& formals) {
    return std::none_of(formals.begin(), formals.end(), [](const Argument& a) { return a.name == "input"; });
  }
  bool refuse(std::string message) {
    why_not_ = std::move(message);
    return false;
  }

  // view(2, 3): the numbers at the end are one list, when the last positional argument is a list and what stands there is none.
  bool collects(const std::vector<Argument>& formals, std::size_t i, const std::vector<Value*>& positional, std::size_t next) {
    const Argument& formal = formals[i];
    const bool last = i + 1 == formals.size() || formals[i + 1].kwarg_only;
    const TypePtr& type = formal.type;  // not an optional list, nor one of given length: int[2]
    if (!last || type->kind != TypeKind::List || formal.N || type->element()->kind == TypeKind::Var ||
        type->element()->kind == TypeKind::Any)
      return false;
    // A single number may be meant for another overload: hsplit(x, 2) is not hsplit(x, [2]).
    if (!convert_ && positional.size() - next == 1 && !schema_.overload_name().empty()) return false;
    TypeVariables free;
    if (match_type(formal.type, positional[next]->type(), free)) return false;
    return std::all_of(positional.begin() + static_cast<std::ptrdiff_t>(next), positional.end(), [&](const Value* v) {
      TypeVariables variables;
      return match_type(type->element(), v->type(), variables);
    });
  }

  // How a value of type `actual` becomes one for the formal argument, and its type then: `actual` where nothing is converted. `v` is null
  // for the member of a tuple.
  TypePtr converted(const Argument& formal, const Value* v, const TypePtr& actual, Planned& p) {
    const TypePtr& wanted = without_optional(formal.type);
    if (v && is_empty_display(*v) && wanted->kind == actual->kind && value_type_of(wanted, variables_)) {
      p.how = Conversion::Retype;
      return p.type = value_type_of(wanted, variables_);
    }
    if (wanted->kind == TypeKind::List && actual->kind == TypeKind::Tuple && !(formal.alias && formal.alias->is_write)) {
      // A list made of a tuple is new: nobody would see what is written into it.
      if (TypePtr list = list_of_tuple(wanted, *actual)) {
        p.how = Conversion::TupleToList;
        return p.type = list;
      }
    } else if (wanted->kind == TypeKind::Union && actual->kind == TypeKind::Tuple && !actual->is_subtype_of(*wanted)) {
      for (const TypePtr& member : wanted->contained) {
        const TypePtr list = member->kind == TypeKind::List ? list_of_tuple(member, *actual) : nullptr;
        if (!list) continue;
        p.how = Conversion::TupleToList;
        return p.type = list;
      }
    } else if (wanted->kind == TypeKind::Tuple && actual->kind == TypeKind::Tuple && wanted->contained.size() == actual->contained.size() &&
               !wanted->has_free_variables() && !actual->is_subtype_of(*wanted)) {
      return tuple_by_members(*wanted, *actual, p);
    } else if (wanted->kind == TypeKind::List && formal.N && actual->is_subtype_of(*value_type_of(wanted->element(), {}))) {
      p.how = Conversion::Repeat;
      p.N = static_cast<std::size_t>(*formal.N);
      return p.type = list_of(actual);
    } else if (convert_ && wanted->kind == TypeKind::Device && actual->kind == TypeKind::String) {
      p.how = Conversion::ToDevice;
      return basic_type(TypeKind::Device);
    } else if (convert_ && actual->kind == TypeKind::Tensor && is_number(*wanted)) {
      p.how = wanted->kind == TypeKind::Float     ? Conversion::ToFloat
              : wanted->kind == TypeKind::Complex ? Conversion::ToComplex
              : wanted->kind == TypeKind::Number  ? Conversion::ToScalar
                                                  : Conversion::ToInt;
      return value_type_of(wanted, {});
    } else if (convert_ && actual->kind == TypeKind::Number && (wanted->kind == TypeKind::Int || wanted->kind == TypeKind::Float)) {
      p.how = wanted->kind == TypeKind::Float ? Conversion::ToFloat : Conversion::ToInt;
      return wanted;
    }
    return actual;
  }

  // (tensor, tensor) for Tuple[int, float]: each member as an argument of its type.
  TypePtr tuple_by_members(const Type& wanted, const Type& actual, Planned& p) {
    std::vector<TypePtr> members;
    for (std::size_t i = 0; i < actual.contained.size(); ++i) {
      Argument member;
      member.type = wanted.contained[i];
      Planned ignored;
      members.push_back(converted(member, nullptr, actual.contained[i], ignored));
    }
    p.how = Conversion::Members;
    p.members = wanted.contained;
    return tuple_of(std::move(members));
  }

  bool fit(const Argument& formal, Value* v, Planned& p) {
    p.values = {v};
    const TypePtr actual = v->type(), as = converted(formal, v, actual, p);
    std::string why_not;
    if (match_type(formal.type, as, variables_, &why_not)) return true;
    if (formal.type->has_free_variables())
      return refuse("Could not match type " + type_words(actual) + " to " + formal.type->annotation_str() + " in argument '" + formal.name +
                    "': " + why_not);
    std::string text = "Expected a value of type '" + formal.type->annotation_str() + "' for argument '" + formal.name +
                       "' but instead found type '" + type_words(p.how == Conversion::Members ? as : actual) + "'.";
    if (actual == inferred_tensor()) text += "\n" + inferred_words("the value for argument '" + formal.name + "'");
    // Objects and interfaces that lack a method of an interface.
    std::string details;
    if ((actual->kind == TypeKind::Object || actual->kind == TypeKind::Interface) && !actual->is_subtype_of(*formal.type, &details) &&
        !details.empty())
      text += "\n" + details;
    return refuse(std::move(text));
  }

  const FunctionSchema& schema_;
  bool convert_;
  TypeVariables variables_;
  std::string why_not_;
};

Value* insert_call(const SourceRange& range, Graph& g, const char* op, Value* v, TypeKind type) {
  Node* n = g.insertNode(g.create(Symbol::aten(op), {v}));
  n->setSourceRange(range);
  n->output()->setType(basic_type(type));
  return n->output();
}

Value* made_list(const SourceRange& range, Graph& g, const TypePtr& list, const std::vector<Value*>& members) {
  Node* n = g.insertNode(g.createList(list->element(), members));
  n->setSourceRange(range);
  return n->output();
}

Value* emit(const SourceRange& range, Graph& g, const Planned& p, const Argument* formal) {
  Value* v = p.values.empty() ? nullptr : p.values[0];
  switch (p.how) {
    case Conversion::None: return v;
    case Conversion::Retype: return v->setType(p.type);
    case Conversion::Collect: return made_list(range, g, p.type, p.values);
    case Conversion::Repeat: return made_list(range, g, p.type, std::vector<Value*>(p.N, v));
    case Conversion::TupleToList: {
      Node* unpack = g.insertNode(g.createTupleUnpack(v));
      unpack->setSourceRange(range);
      return made_list(range, g, p.type, unpack->outputs());
    }
    case Conversion::Members: {
      Node* unpack = g.insertNode(g.createTupleUnpack(v));
      unpack->setSourceRange(range);
      std::vector<Value*> members;
      for (std::size_t i = 0; i < p.members.size(); ++i) members.push_back(convert_to(range, g, unpack->outputs()[i], p.members[i]));
      Node* n = g.insertNode(g.createTuple(members));
      n->setSourceRange(range);
      return n->output();
    }
    case Conversion::ToInt: return insert_call(range, g, v->type()->kind == TypeKind::Tensor ? "IntImplicit" : "Int", v, TypeKind::Int);
    case Conversion::ToFloat:
      return insert_call(range, g, v->type()->kind == TypeKind::Tensor ? "FloatImplicit" : "Float", v, TypeKind::Float);
    case Conversion::ToComplex: return insert_call(range, g, "ComplexImplicit", v, TypeKind::Complex);
    case Conversion::ToScalar: return insert_call(range, g, "ScalarImplicit", v, TypeKind::Number);
    case Conversion::ToDevice:
      if (const auto text = constant_as<std::string>(v)) return g.insertConstant(IValue(Device(*text)), range);
      return insert_call(range, g, "device", v, TypeKind::Device);
    case Conversion::Default: break;
  }
  const TypePtr type = formal->default_value->isNone() ? basic_type(TypeKind::None) : value_type_of(without_optional(formal->type), {});
  const auto constant = tryInsertConstant(g, *formal->default_value, type);
  if (!constant) script_error(range, "the default of argument '" + formal->name + "' cannot be a constant: the argument must be given");
  (*constant)->node()->setSourceRange(range);
  return *constant;
}

std::vector<Value*> emit_all(const SourceRange& range, Graph& g, const std::vector<Planned>& plan, const FunctionSchema& schema) {
  std::vector<Value*> out;
  for (std::size_t i = 0; i < plan.size(); ++i)
    out.push_back(emit(range, g, plan[i], i < schema.arguments().size() ? &schema.arguments()[i] : nullptr));
  return out;
}

// Several results are a tuple, with the names that the schema gives them (torch.max(x, 1).values); none is None.
Value* packed(Graph& g, const std::vector<Value*>& results, const FunctionSchema& schema, const SourceRange& range) {
  if (results.size() == 1) return results[0];
  std::vector<std::string> names;
  std::vector<TypePtr> types;
  for (std::size_t i = 0; i < results.size(); ++i) {
    types.push_back(results[i]->type());
    if (!schema.returns()[i].name.empty()) names.push_back(schema.returns()[i].name);
  }
  const TypePtr named = !names.empty() && names.size() == types.size() ? named_tuple_of("", std::move(names), std::move(types)) : nullptr;
  Node* n = g.insertNode(results.empty() ? g.createNone() : g.createTuple(results, named));
  n->setSourceRange(range);
  return n->output();
}

Value* emit_call(const SourceRange& range, Graph& g, Symbol kind, const FunctionSchema& schema, const std::vector<Planned>& plan,
                 const TypeVariables& variables) {
  Node* n = g.create(kind, emit_all(range, g, plan, schema), 0);
  g.insertNode(n)->setSourceRange(range);
  for (const Argument& r : schema.returns()) {
    TypePtr type = value_type_of(r.type, variables);
    n->addOutput()->setType(type ? std::move(type) : basic_type(TypeKind::Any));
  }
  // A node does not say which inputs were given by keyword.
  if (const FunctionSchema* understood = n->maybeSchema(); understood && schema.is_mutable() && !understood->is_mutable())
    script_error(range, schema.str() + " cannot be called in a script: a graph does not tell it from " + understood->str() +
                            ". Copy the result instead: out.copy_(...)");
  return packed(g, n->outputs(), schema, range);
}

std::string indented(const std::string& text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    out += "  " + text.substr(at, end - at) + "\n";
    at = end + 1;
  }
  return out;
}

// Names that are close to an unknown one.
std::string similar_operators(Symbol kind) {
  const std::string& wanted = kind.toQualString();
  std::vector<std::pair<std::size_t, std::string>> near;
  for (const std::string& known : operator_kinds()) {
    if (known.size() > wanted.size() + 2 || wanted.size() > known.size() + 2) continue;
    std::vector<std::size_t> row(known.size() + 1);
    for (std::size_t j = 0; j <= known.size(); ++j) row[j] = j;
    for (std::size_t i = 1; i <= wanted.size(); ++i) {
      std::size_t corner = std::exchange(row[0], i);
      for (std::size_t j = 1; j <= known.size(); ++j) {
        const std::size_t up = row[j];
        row[j] = std::min({row[j] + 1, row[j - 1] + 1, corner + (wanted[i - 1] != known[j - 1])});
        corner = up;
      }
    }
    if (row.back() <= 2) near.emplace_back(row.back(), known);
  }
  std::sort(near.begin(), near.end());
  std::string out;
  for (std::size_t i = 0; i < std::min<std::size_t>(near.size(), 4); ++i) out += "\n\t" + near[i].second;
  return out.empty()
             ? "\nCould not find any similar ops to " + wanted + ". This op may not exist or may not be currently supported in scripts."
             : "\nHere are some suggestions: " + out;
}

// What an operator of a number and a tensor is by the operators that take the tensor first: `prepare` of the tensor, then `op`.
struct Reflected {
  const char *kind, *prepare, *op;
};
constexpr Reflected kReflected[] = {
    {"aten::add", nullptr, "add"},         {"aten::mul", nullptr, "mul"},         {"aten::sub", "neg", "add"},
    {"aten::div", "reciprocal", "mul"},    {"aten::eq", nullptr, "eq"},           {"aten::ne", nullptr, "ne"},
    {"aten::lt", nullptr, "gt"},           {"aten::gt", nullptr, "lt"},           {"aten::le", nullptr, "ge"},
    {"aten::ge", nullptr, "le"},           {"aten::__and__", nullptr, "__and__"}, {"aten::__or__", nullptr, "__or__"},
    {"aten::__xor__", nullptr, "__xor__"},
};

// Null when the call is none of those, or some overload takes the number first.
Value* emit_reflected(const SourceRange& range, Graph& g, Symbol kind, const std::vector<CallValue>& args, Value* self) {
  const auto row =
      std::find_if(std::begin(kReflected), std::end(kReflected), [&](const Reflected& r) { return kind.toQualString() == r.kind; });
  if (row == std::end(kReflected) || self || args.size() != 2 || !args[0].name.empty() || !args[1].name.empty()) return nullptr;
  const Type &left = *args[0].value->type(), &right = *args[1].value->type();
  if (!(is_number(left) || left.kind == TypeKind::Bool) || right.kind != TypeKind::Tensor) return nullptr;
  std::vector<CallValue> swapped = args;
  std::swap(swapped[0], swapped[1]);
  if (row->prepare) swapped[0].value = emit_operator(range, g, {Symbol::aten(row->prepare)}, {swapped[0]});
  return emit_operator(range, g, {Symbol::aten(row->op)}, std::move(swapped));
}

// The dispatcher's overloads go first: they are what the operator is known for. The one without a name leads, those of tensors follow,
// which need no tensor to become a number, and the others as they were defined, as in PyTorch.
std::vector<std::pair<Symbol, const Operator*>> candidates_of(const std::vector<Symbol>& kinds) {
  std::vector<std::pair<Symbol, const Operator*>> out;
  for (const bool dispatched : {true, false})
    for (const Symbol kind : kinds) {
      const auto begin = static_cast<std::ptrdiff_t>(out.size());
      for (const Operator* op : operators_of(kind))
        if (op->handle().has_value() == dispatched) out.emplace_back(kind, op);
      if (dispatched)
        std::stable_sort(out.begin() + begin, out.end(), [](const auto& a, const auto& b) {
          const auto place = [](const Operator& op) {
            const std::string& name = op.schema().overload_name();
            return name.empty() ? 0 : name.starts_with("Tensor") ? 1 : 2;
          };
          return place(*a.second) < place(*b.second);
        });
    }
  return out;
}

}  // namespace

Value* emit_operator(const SourceRange& range, Graph& g, std::vector<Symbol> kinds, std::vector<CallValue> args, Value* self) {
  if (kinds[0] == Symbol::aten("floordiv")) kinds.push_back(Symbol::aten("floor_divide"));  // x // y of tensors
  for (Symbol& kind : kinds) kind = canonical_operator(kind);
  const auto candidates = candidates_of(kinds);
  if (candidates.empty())
    script_error(range, "Unknown builtin op: " + kinds[0].toQualString() + "." + similar_operators(kinds[0]) + "\n\nThe original call is");
  std::vector<std::pair<std::string, std::string>> reasons;
  if (Value* v = emit_reflected(range, g, kinds[0], args, self)) return v;
  for (const bool convert : {false, true}) {
    reasons.clear();
    for (const auto& [kind, op] : candidates) {
      Planner planner(op->schema(), convert);
      std::vector<Planned> plan;
      if (planner.run(args, self, plan)) return emit_call(range, g, kind, op->schema(), plan, planner.variables());
      reasons.emplace_back(op->schema().str(), planner.why_not());
    }
  }
  if (reasons.size() == 1) script_error(range, "\n" + reasons[0].first + ":\n" + reasons[0].second + "\n");
  std::string text = "Arguments for call are not valid.\nThe following variants are available:\n";
  for (const auto& [schema, why_not] : reasons) text += "  \n" + indented(schema + ":\n" + why_not);
  script_error(range, text + "\nThe original call is");
}

std::vector<Value*> match_schema(const SourceRange& range, Graph& g, const FunctionSchema& schema, const std::vector<CallValue>& args,
                                 Value* self) {
  Planner planner(schema, true);
  std::vector<Planned> plan;
  if (!planner.run(args, self, plan)) script_error(range, "\n" + schema.str() + ":\n" + planner.why_not() + "\n");
  return emit_all(range, g, plan, schema);
}

Value* convert_to(const SourceRange& range, Graph& g, Value* v, const TypePtr& type, bool convert) {
  Argument formal;
  formal.type = type;
  const FunctionSchema schema(OperatorName{"annotate", ""}, {formal}, {});
  Planner planner(schema, convert);
  std::vector<Planned> plan;
  if (!planner.run({{v, ""}}, nullptr, plan) || plan[0].how == Conversion::Collect) return nullptr;
  return emit(range, g, plan[0], &formal);
}

bool is_method_of(Symbol kind, const TypePtr& type) {
  for (const Operator* op : operators_of(kind)) {
    const std::vector<Argument>& formals = op->schema().arguments();
    TypeVariables variables;
    if (!formals.empty() && formals[0].name == "self" && match_type(formals[0].type, type, variables)) return true;
  }
  return false;
}

}  // namespace cresset::jit
