// The functions of the language, by name.
#include <functional>
#include <map>

#include "ir/frontend/script_error.h"
#include "ir/frontend/values.h"

namespace cresset::jit {
namespace {

struct FormCall {
  const SourceRange& range;
  GraphFunction& m;
  const std::vector<CallArgument>& args;
  const std::vector<CallArgument>& kwargs;

  Graph& graph() const { return *m.graph(); }
  Value* value(std::size_t i) const { return args[i].value->asValue(args[i].range, m); }
  // Between `least` and `most` positional arguments and no keywords.
  void takes(const char* name, std::size_t least, std::size_t most) const {
    if (!kwargs.empty()) script_error(range, std::string(name) + " does not take keyword arguments");
    if (args.size() < least || args.size() > most)
      script_error(range, std::string(name) + " expected " + (least == most ? "" : "at least ") + std::to_string(least) + " argument" +
                              (least == 1 ? "" : "s") + ", got " + std::to_string(args.size()));
  }
  std::string text(const char* name, std::size_t i) const {
    const auto constant = args[i].value->asConstant();
    if (!constant || !constant->isString()) script_error(args[i].range, std::string(name) + "'s second argument must be a string literal");
    return constant->toStringRef();
  }
  TypePtr type(const char* name, std::size_t i) const {
    TypePtr t = args[i].value->asType();
    if (const auto constant = t ? std::nullopt : args[i].value->asConstant(); constant && constant->isNone())
      t = basic_type(TypeKind::None);
    if (!t) script_error(args[i].range, std::string(name) + ": a type was expected; a " + args[i].value->kind() + " was given");
    return t;
  }
  SugaredValuePtr op(std::vector<Symbol> kinds) const {
    return simple_value(emit_operator(range, graph(), kinds, call_values(m, args, kwargs)));
  }
};
using Form = std::function<SugaredValuePtr(const FormCall&)>;

class SpecialForm final : public SugaredValue {
 public:
  SpecialForm(const std::string& name, const Form& form) : name_(name), form_(form) {}
  std::string kind() const override { return "special form " + name_; }
  Value* asValue(const SourceRange& range, GraphFunction&) override { script_error(range, name_ + " cannot be used as a value"); }
  SugaredValuePtr call(const SourceRange& range, GraphFunction& m, const std::vector<CallArgument>& args,
                       const std::vector<CallArgument>& kwargs, std::size_t) override {
    return form_(FormCall{range, m, args, kwargs});
  }

 private:
  const std::string& name_;
  const Form& form_;
};

// What Python has and scripts have not.
class RefusedForm final : public SugaredValue {
 public:
  explicit RefusedForm(std::string name) : name_(std::move(name)) {}
  std::string kind() const override { return "Python builtin " + name_; }
  SugaredValuePtr call(const SourceRange& range, GraphFunction&, const std::vector<CallArgument>&, const std::vector<CallArgument>&,
                       std::size_t) override {
    script_error(range, "Python builtin " + name_ + " is currently not supported in scripts");
  }

 private:
  std::string name_;
};

Form operator_form(const char* kind) {
  return [kind = Symbol::fromQualString(kind)](const FormCall& c) { return c.op({kind}); };
}

SugaredValuePtr none(const FormCall& c) { return simple_value(c.graph().insertConstant(IValue(), c.range)); }

SugaredValuePtr print(const FormCall& c) {
  std::vector<Value*> values;
  for (const CallValue& v : call_values(c.m, c.args)) values.push_back(v.value);
  if (!c.kwargs.empty()) script_error(c.range, "print doesn't accept any keyword arguments");
  c.graph().insertNode(c.graph().create(prim::Print, values, 0))->setSourceRange(c.range);
  return none(c);
}

SugaredValuePtr len(const FormCall& c) {
  c.takes("len", 1, 1);
  const SugaredValuePtr& thing = c.args[0].value;
  // A container of modules may have a length of its own, whatever it iterates over.
  const bool answers = thing->plainValue() || thing->asConstant() || thing->kind() == "module";
  return simple_value(length_of(c.range, c.m, answers ? thing : thing->iter(c.range, c.m)));
}

// min and max: of two numbers, of several, of a list or another iterable.
SugaredValuePtr extreme(const FormCall& c, const char* name) {
  const std::vector<Symbol> kinds{Symbol::prim(name), Symbol::aten(name)};
  const auto of = [&](const std::vector<Value*>& values) {
    std::vector<CallValue> args;
    for (Value* v : values) args.push_back({v, ""});
    return emit_operator(c.range, c.graph(), kinds, std::move(args));
  };
  c.takes(name, 1, 1 << 20);
  if (c.args.size() == 1) {
    const Value* plain = c.args[0].value->plainValue();
    const bool as_it_is = plain && (plain->type()->kind == TypeKind::List || plain->type()->kind == TypeKind::Tensor);
    return simple_value(of({as_it_is ? c.value(0) : list_of_iterable(c.range, c.m, c.args[0].value)}));
  }
  Value* best = c.value(0);
  for (std::size_t i = 1; i < c.args.size(); ++i) best = of({best, c.value(i)});
  return simple_value(best);
}

// Functions of a list that take other iterables too.
Form list_form(const char* name) {
  return [name](const FormCall& c) {
    c.takes(name, 1, 1);
    const Value* plain = c.args[0].value->plainValue();
    const bool as_it_is = plain && (plain->type()->kind == TypeKind::List || plain->type()->kind == TypeKind::Tensor);
    Value* list = as_it_is ? c.value(0) : list_of_iterable(c.range, c.m, c.args[0].value);
    return simple_value(emit_operator(c.range, c.graph(), {Symbol::aten(name)}, {{list, ""}}));
  };
}

void add_types(const FormCall& c, const CallArgument& a, std::vector<TypePtr>& out) {
  if (TypePtr t = a.value->asType()) {
    if (t->kind == TypeKind::Union)
      out.insert(out.end(), t->contained.begin(), t->contained.end());
    else
      out.push_back(std::move(t));
    return;
  }
  if (const auto all = a.value->asTypes()) {
    out.insert(out.end(), all->begin(), all->end());
    return;
  }
  for (const SugaredValuePtr& part : a.value->asTuple(a.range, c.m)) add_types(c, {a.range, part, ""}, out);
}

bool is_of(const Type& t, const Type& asked) {
  if (asked.kind == TypeKind::AnyList) return t.kind == TypeKind::List || t.kind == TypeKind::AnyList;
  if (asked.kind == TypeKind::AnyTuple) return t.kind == TypeKind::Tuple || t.kind == TypeKind::AnyTuple;
  return t.is_subtype_of(asked);
}

// Decided here when the types say enough, otherwise a question for the run.
SugaredValuePtr isinstance(const FormCall& c) {
  c.takes("isinstance", 2, 2);
  std::vector<TypePtr> asked;
  add_types(c, c.args[1], asked);
  Value* v = c.value(0);
  std::vector<TypePtr> possible{v->type()};
  if (v->type()->kind == TypeKind::Union) possible = v->type()->contained;
  if (v->type()->kind == TypeKind::Optional) possible = {v->type()->element(), basic_type(TypeKind::None)};
  bool all = true, some = false;
  for (const TypePtr& p : possible) {
    bool sure = false;
    for (const TypePtr& a : asked) {
      sure = sure || is_of(*p, *a);
      some = some || a->is_subtype_of(*p);
    }
    all = all && sure;
    some = some || sure;
  }
  if (all || !some) return constant_value(IValue(all));
  Value* out = insert_node(c.range, c.graph(), prim::isinstance, {v}, basic_type(TypeKind::Bool));
  out->node()->tys_(attr::types, asked);
  return simple_value(out);
}

SugaredValuePtr getattr(const FormCall& c) {
  c.takes("getattr", 2, 3);
  const std::string name = c.text("getattr", 1);
  if (c.args.size() == 3 && !c.args[0].value->hasAttr(c.range, c.m, name)) return c.args[2].value;
  return c.args[0].value->attr(c.range, c.m, name);
}

SugaredValuePtr hasattr(const FormCall& c) {
  c.takes("hasattr", 2, 2);
  return constant_value(IValue(c.args[0].value->hasAttr(c.range, c.m, c.text("hasattr", 1))));
}

// The value as this type: converted where calls convert, an empty list or dict of the type, or the same value under a wider type.
SugaredValuePtr annotate(const FormCall& c) {
  c.takes("annotate", 2, 2);
  const TypePtr type = c.type("annotate", 0);
  Value* v = c.value(1);
  const bool empty = v->node()->inputs().empty() && !v->hasUses() && v->type()->kind == type->kind &&
                     (v->node()->kind() == prim::ListConstruct || v->node()->kind() == prim::DictConstruct);
  if (empty) return simple_value(v->setType(type));
  Value* fitting = convert_to(c.range, c.graph(), v, type);
  if (!fitting)
    script_error(c.range, "expected an expression of type " + type->annotation_str() + " but found " + v->type()->annotation_str());
  if (*fitting->type() == *type) return simple_value(fitting);
  return simple_value(insert_node(c.range, c.graph(), prim::unchecked_cast, {fitting}, type));
}

SugaredValuePtr unchecked_cast(const FormCall& c) {
  c.takes("unchecked_cast", 2, 2);
  const TypePtr type = c.type("unchecked_cast", 0);
  return simple_value(insert_node(c.range, c.graph(), prim::unchecked_cast, {c.value(1)}, type));
}

SugaredValuePtr uninitialized(const FormCall& c) {
  c.takes("uninitialized", 1, 1);
  return simple_value(c.graph().insertNode(c.graph().createUninitialized(c.type("uninitialized", 0)))->setSourceRange(c.range)->output());
}

// The call is emitted into a block of the node first; the block becomes the subgraph, and what it uses from outside becomes inputs.
SugaredValuePtr later(const FormCall& c, Symbol kind, TypePtr (*type_of)(TypePtr)) {
  if (c.args.empty()) script_error(c.range, std::string("Expected at least one argument to ").append(kind.toUnqualString()).append("()"));
  Graph& g = c.graph();
  Node* node = g.insertNode(g.create(kind))->setSourceRange(c.range);
  std::vector<CallArgument> args(c.args.begin() + 1, c.args.end()), kwargs = c.kwargs;
  for (std::vector<CallArgument>* list : {&args, &kwargs})
    for (CallArgument& a : *list) {
      const WithInsertPoint outside(node);
      a.value = simple_value(a.value->asValue(a.range, c.m));
    }
  Block* block = node->addBlock();
  {
    const WithInsertPoint inside(block);
    block->registerOutput(c.args[0].value->call(c.range, c.m, args, kwargs, 1)->asValue(c.range, c.m));
  }
  auto body = std::make_shared<Graph>();
  std::unordered_map<Value*, Value*> lifted;
  body->block()->cloneFrom(block, [&](Value* v) {
    Value*& inside = lifted[v];
    if (!inside) {
      inside = body->addInput()->setType(v->type());
      node->addInput(v);
    }
    return inside;
  });
  node->output()->setType(type_of(block->outputs()[0]->type()));
  node->eraseBlock(0);
  node->g_(attr::Subgraph, body);
  return simple_value(node->output());
}

SugaredValuePtr fork(const FormCall& c) { return later(c, prim::fork, future_of); }
SugaredValuePtr awaitable(const FormCall& c) { return later(c, prim::awaitable, await_of); }
SugaredValuePtr wait(const FormCall& c) { return c.op({aten::wait}); }

SugaredValuePtr unwrap_optional(const FormCall& c) {
  c.takes("_unwrap_optional", 1, 1);
  Value* v = c.value(0);
  if (v->type()->kind == TypeKind::None)
    script_error(c.range, "Unwrapping null optional: the type of its value could not be inferred from actual type None");
  return v->type()->kind == TypeKind::Optional ? operator_result(c.range, c.m, aten::_unwrap_optional, {v}) : c.args[0].value;
}

Form constant_form(bool value) {
  return [value](const FormCall&) { return constant_value(IValue(value)); };
}

const std::map<std::string, Form>& forms() {
  static const std::map<std::string, Form> table = {
      {"print", print},
      {"len", len},
      {"range", [](const FormCall& c) { return range_value(c.range, c.m, c.args); }},
      {"slice", [](const FormCall& c) { return slice_value(c.range, c.m, c.args, c.kwargs); }},
      {"zip", [](const FormCall& c) { return zip_value(c.range, c.m, c.args); }},
      {"enumerate", [](const FormCall& c) { return enumerate_value(c.range, c.m, c.args, c.kwargs); }},
      {"reversed",
       [](const FormCall& c) {
         c.takes("reversed", 1, 1);
         return reversed_value(c.range, c.m, c.args[0]);
       }},
      {"sorted", list_form("sorted")},
      {"sum", list_form("sum")},
      {"any", list_form("any")},
      {"all", list_form("all")},
      {"min", [](const FormCall& c) { return extreme(c, "min"); }},
      {"max", [](const FormCall& c) { return extreme(c, "max"); }},
      {"abs", [](const FormCall& c) { return c.op({prim::abs, Symbol::aten("abs")}); }},
      {"round", operator_form("aten::round")},
      {"pow", operator_form("aten::pow")},
      {"divmod", operator_form("aten::divmod")},
      {"ord", operator_form("aten::ord")},
      {"chr", operator_form("aten::chr")},
      {"hex", operator_form("aten::hex")},
      {"oct", operator_form("aten::oct")},
      {"bin", operator_form("aten::bin")},
      {"hash", operator_form("aten::hash")},
      {"id", operator_form("prim::id")},
      {"isinstance", isinstance},
      {"getattr", getattr},
      {"hasattr", hasattr},
      {"annotate", annotate},
      {"unchecked_cast", unchecked_cast},
      {"uninitialized", uninitialized},
      {"fork", fork},
      {"_fork", fork},
      {"awaitable", awaitable},
      {"_awaitable", awaitable},
      {"_awaitable_nowait", operator_form("prim::awaitable_nowait")},
      {"_awaitable_wait", operator_form("prim::awaitable_wait")},
      {"wait", wait},
      {"_wait", wait},
      {"_unwrap_optional", unwrap_optional},
      {"is_scripting", constant_form(true)},
      {"is_tracing", constant_form(false)},
  };
  return table;
}

constexpr std::pair<std::string_view, TypeKind> kNumberCasts[] = {{"int", TypeKind::Int},
                                                                  {"float", TypeKind::Float},
                                                                  {"bool", TypeKind::Bool},
                                                                  {"complex", TypeKind::Complex},
                                                                  {"str", TypeKind::String}};

constexpr std::string_view kRefused[] = {
    "iter",   "next",   "open",     "type",         "callable",    "setattr",    "delattr", "eval",   "exec",   "map",
    "filter", "super",  "globals",  "locals",       "vars",        "dir",        "input",   "set",    "bytes",  "frozenset",
    "slice",  "object", "property", "staticmethod", "classmethod", "issubclass", "repr",    "format", "compile"};

}  // namespace

SugaredValuePtr special_form(const std::string& name) {
  if (const auto found = forms().find(name); found != forms().end()) return std::make_shared<SpecialForm>(found->first, found->second);
  for (const auto& [word, type] : kNumberCasts)
    if (word == name) return type_value(basic_type(type));
  if (name == "list" || name == "dict" || name == "tuple") return type_constructor(name);
  for (const std::string_view word : kRefused)
    if (word == name) return std::make_shared<RefusedForm>(name);
  return nullptr;
}

}  // namespace cresset::jit
