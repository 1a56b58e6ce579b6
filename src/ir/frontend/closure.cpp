#include "ir/frontend/closure.h"

#include "ir/frontend/emitter.h"

namespace cresset::jit {
namespace {

// The names that a body reads or writes.
void names_of(const Expr& e, std::set<std::string>& names) {
  if (e.kind == ExprKind::Name) names.insert(e.text);
  for (const ExprPtr& part : e.parts)
    if (part) names_of(*part, names);
  for (const Keyword& k : e.keywords) names_of(*k.value, names);
  for (const Comprehension& c : e.generators) {
    names_of(*c.target, names);
    names_of(*c.iterable, names);
    for (const ExprPtr& condition : c.conditions) names_of(*condition, names);
  }
}
void names_of(const std::vector<StmtPtr>& body, std::set<std::string>& names) {
  for (const StmtPtr& s : body) {
    for (const ExprPtr& e : {s->value, s->message})
      if (e) names_of(*e, names);
    for (const ExprPtr& e : s->targets) names_of(*e, names);
    for (const WithItem& w : s->items) {
      names_of(*w.value, names);
      if (w.target) names_of(*w.target, names);
    }
    names_of(s->body, names);
    names_of(s->orelse, names);
    if (s->function) names_of(s->function->body, names);
  }
}

// Things of the compiler that the names around a closure mean.
class Surroundings final : public Resolver {
 public:
  Surroundings(ResolverPtr outer, std::map<std::string, SugaredValuePtr> things) : outer_(std::move(outer)), things_(std::move(things)) {}
  SugaredValuePtr resolveValue(const std::string& name, GraphFunction& m, const SourceRange& range) override {
    const auto found = things_.find(name);
    return found != things_.end() ? found->second : outer_->resolveValue(name, m, range);
  }
  TypePtr resolveType(const std::string& name, const SourceRange& range) override { return outer_->resolveType(name, range); }

 private:
  ResolverPtr outer_;
  std::map<std::string, SugaredValuePtr> things_;
};

// Compiled as a function of the values it captured; where it is called that function's body goes.
class Closure final : public SugaredValue {
 public:
  Closure(Definition definition, std::vector<Value*> captured) : definition_(std::move(definition)), captured_(std::move(captured)) {}
  std::string kind() const override { return "function"; }
  SugaredValuePtr call(const SourceRange& range, GraphFunction& m, const std::vector<CallArgument>& args,
                       const std::vector<CallArgument>& kwargs, std::size_t) override {
    if (!args.empty() || !kwargs.empty()) script_error(range, "a function inside of a function takes no arguments");
    GraphFunction body(definition_.tree->name, std::make_shared<Graph>());
    Emitter(definition_, body, nullptr, nullptr).run();
    return simple_value(m.graph()->insertGraph(*body.graph(), captured_).at(0));
  }

 private:
  Definition definition_;
  std::vector<Value*> captured_;
};

}  // namespace

bool is_closure(const FunctionDefinition& f) {
  return f.name.starts_with("__forked_function") && f.parameters.empty() && f.decorators.empty();
}

SugaredValuePtr closure_value(const std::shared_ptr<const FunctionDefinition>& f, Environment& around, const ResolverPtr& resolver,
                              GraphFunction& m) {
  std::set<std::string> names;
  names_of(f->body, names);
  auto tree = std::make_shared<FunctionDefinition>(*f);
  Definition definition;
  std::map<std::string, SugaredValuePtr> things;
  std::vector<Value*> captured;
  for (const std::string& name : names) {
    const Variable* variable = around.lookup(name);
    if (!variable) continue;
    const SugaredValuePtr thing = around.find(name, f->header);
    if (variable->thing) {
      things.emplace(name, thing);
      continue;
    }
    captured.push_back(thing->asValue(f->header, m));
    Parameter p;
    p.range = f->header;
    p.name = name;
    tree->parameters.push_back(std::move(p));
    definition.types.emplace(name, captured.back()->type());
  }
  definition.tree = std::move(tree);
  definition.resolver = std::make_shared<Surroundings>(resolver, std::move(things));
  return std::make_shared<Closure>(std::move(definition), std::move(captured));
}

}  // namespace cresset::jit
