// All definitions of a source text. Names may be used before they are defined: every class is known by name first, then attributes and
// methods are added, then everything is compiled. Texts that ask for one another while they are defined are compiled together at the end.
#include <algorithm>
#include <map>

#include "ir/frontend/tree.h"
#include "ir/frontend/values.h"

namespace cresset::jit {
namespace {

enum class Base { Plain, Module, NamedTuple, Enum, Interface, ModuleInterface };

std::string last_name(const Expr& e) {
  return e.kind == ExprKind::Name || e.kind == ExprKind::Attribute ? e.text
         : e.kind == ExprKind::Call                                ? last_name(*e.parts[0])
                                                                   : std::string();
}

Base base_of(const ClassDefinition& c) {
  constexpr std::pair<std::string_view, Base> kBases[] = {
      {"object", Base::Plain}, {"Module", Base::Module},       {"NamedTuple", Base::NamedTuple},          {"Enum", Base::Enum},
      {"IntEnum", Base::Enum}, {"Interface", Base::Interface}, {"ModuleInterface", Base::ModuleInterface}};
  Base base = Base::Plain;
  for (const ExprPtr& written : c.bases) {
    const std::string name = last_name(*written);
    const auto found = std::find_if(std::begin(kBases), std::end(kBases), [&](const auto& entry) { return entry.first == name; });
    if (found == std::end(kBases) || c.bases.size() > 1)
      script_error(written->range,
                   "class '" + c.name + "': scripted classes have no base classes other than Module, NamedTuple, Enum and interfaces");
    base = found->second;
  }
  for (const ExprPtr& mark : c.decorators)
    if (last_name(*mark) == "interface") base = base == Base::Module ? Base::ModuleInterface : Base::Interface;
  return base;
}

class Text;
// What this thread is defining: all texts since the outermost call, and what is to be compiled at its end.
struct MethodWork {
  std::size_t depth = 0;
  std::vector<std::shared_ptr<Text>> texts;
  std::vector<intrusive_ptr<GraphFunction>> first, rest;
};
MethodWork& work() {
  thread_local const auto w = std::make_unique<MethodWork>();  // on the heap: thread-local storage is scarce
  return *w;
}

// A text, and what its functions look names up with.
class Text final : public Resolver, public std::enable_shared_from_this<Text> {
 public:
  Text(CompilationUnit& unit, std::string prefix, std::shared_ptr<const SourceFile> file, ResolverPtr outer);
  void define();
  void take_back();
  /// The meaning of a name that this text defines; null for others.
  TypePtr type(const std::string& name);
  SugaredValuePtr value(const std::string& name);
  SugaredValuePtr resolveValue(const std::string& name, GraphFunction& m, const SourceRange& range) override {
    SugaredValuePtr own = value(name);
    return own ? own : outer_->resolveValue(name, m, range);
  }
  TypePtr resolveType(const std::string& name, const SourceRange& range) override;

 private:
  struct Class {
    const ClassDefinition* tree = nullptr;
    Base base = Base::Plain;
    TypePtr type;
    bool begun = false;
  };
  std::string qualified(const std::string& name, bool is_class) const {
    return prefix_.empty() ? (is_class ? "__torch__." : "") + name : prefix_ + "." + name;
  }
  TypePtr annotation(const ExprPtr& e) { return type_of_annotation(e, this); }
  TypePtr create(Class& c);
  TypePtr named_tuple(const Class& c);
  TypePtr enumeration(const Class& c);
  void complete(Class& c);
  void attributes(Class& c, ClassType& type);
  void interface_methods(const Class& c);
  IValue constant(const ExprPtr& e, const TypePtr& type);
  Definition definition(const std::shared_ptr<const FunctionDefinition>& f) {
    Definition d;
    d.tree = f;
    d.resolver = shared_from_this();
    return d;
  }
  void declare_methods(const Class& c);

  CompilationUnit& unit_;
  std::string prefix_;
  std::shared_ptr<const SourceFile> file_;
  ResolverPtr outer_;
  std::map<std::string, Class> classes_;
  std::map<std::string, std::string> functions_;  // qualified names
  std::map<std::string, StmtPtr> constants_;
  std::vector<std::string> made_types_, made_functions_;
};

Text::Text(CompilationUnit& unit, std::string prefix, std::shared_ptr<const SourceFile> file, ResolverPtr outer)
    : unit_(unit), prefix_(std::move(prefix)), file_(std::move(file)), outer_(outer ? std::move(outer) : native_resolver(unit_)) {}

TypePtr Text::resolveType(const std::string& name, const SourceRange& range) {
  if (TypePtr t = type(name)) return t;
  if (TypePtr t = outer_->resolveType(name, range)) return t;
  if (TypePtr t = unit_.find_type(name)) return t;
  for (const auto& other : work().texts)
    if (other.get() != this)
      if (TypePtr t = other->type(name)) return t;
  return nullptr;
}

TypePtr Text::type(const std::string& name) {
  auto found = classes_.find(name);
  const std::string start = prefix_.empty() ? "__torch__." : prefix_ + ".";
  if (found == classes_.end() && name.starts_with(start)) found = classes_.find(name.substr(start.size()));
  return found == classes_.end() ? nullptr : create(found->second);
}

SugaredValuePtr Text::value(const std::string& name) {
  if (classes_.count(name)) return class_value(type(name));
  if (const auto f = functions_.find(name); f != functions_.end()) return function_value(unit_.find_function(f->second));
  if (const auto c = constants_.find(name); c != constants_.end()) {
    const Stmt& s = *c->second;
    return constant_value(constant(s.value, s.annotation ? annotation(s.annotation) : nullptr));
  }
  return nullptr;
}

// The class by its name, still without attributes; named tuples and enums at once.
TypePtr Text::create(Class& c) {
  if (c.type) return c.type;
  const ClassDefinition& tree = *c.tree;
  if (c.begun) script_error(tree.range, "the definition of '" + tree.name + "' needs itself");
  c.begun = true;
  const std::string name = qualified(tree.name, true);
  if (unit_.find_type(name)) script_error(tree.range, "class '" + name + "' already defined.");
  switch (c.base) {
    case Base::NamedTuple: c.type = named_tuple(c); break;
    case Base::Enum: c.type = enumeration(c); break;
    case Base::Interface:
    case Base::ModuleInterface: c.type = InterfaceType::create(name, c.base == Base::ModuleInterface); break;
    default: c.type = ClassType::create(name, c.base == Base::Module); break;
  }
  unit_.register_type(c.type);
  made_types_.push_back(name);
  return c.type;
}

TypePtr Text::named_tuple(const Class& c) {
  std::vector<std::string> fields;
  std::vector<TypePtr> members;
  for (const StmtPtr& s : c.tree->assignments) {
    if (!s->annotation || s->targets[0]->kind != ExprKind::Name)
      script_error(s->range, "a named tuple has fields with types only: 'name: type'");
    if (s->value) script_error(s->range, "default values of named tuples are not supported in source text");
    fields.push_back(s->targets[0]->text);
    members.push_back(annotation(s->annotation));
  }
  return named_tuple_of(qualified(c.tree->name, true), std::move(fields), std::move(members));
}

TypePtr Text::enumeration(const Class& c) {
  std::vector<std::pair<std::string, IValue>> enumerators;
  for (const StmtPtr& s : c.tree->assignments) {
    if (!s->value || s->targets.size() != 1 || s->targets[0]->kind != ExprKind::Name)
      script_error(s->range, "an enum has assignments only: 'NAME = value'");
    enumerators.emplace_back(s->targets[0]->text, constant(s->value, nullptr));
    if (!(*enumerators.back().second.type() == *enumerators[0].second.type()))
      script_error(s->range, "the values of an enum must have one type; '" + enumerators[0].second.type()->annotation_str() + "' and '" +
                                 enumerators.back().second.type()->annotation_str() + "' were given");
  }
  if (enumerators.empty()) script_error(c.tree->range, "an enum needs at least one enumerator");
  auto type = EnumType::create(qualified(c.tree->name, true), enumerators[0].second.type());
  for (auto& [name, value] : enumerators) type->addEnumerator(name, std::move(value));
  return type;
}

// Compiled and run as a function without parameters.
IValue Text::constant(const ExprPtr& e, const TypePtr& type) {
  if (e->kind == ExprKind::Constant && (!type || *e->value.type() == *type)) return e->value;
  auto result = std::make_shared<Stmt>();
  result->kind = StmtKind::Return;
  result->range = e->range;
  result->value = e;
  auto function = std::make_shared<FunctionDefinition>();
  function->range = function->header = e->range;
  function->name = "constant";
  function->body.push_back(result);
  Definition d = definition(function);
  if (type) d.types.emplace("return", type);
  CompilationUnit scratch;
  return (*define_functions(scratch, "", {d})[0])({});
}

void Text::interface_methods(const Class& c) {
  const auto interface = c.type->expect<InterfaceType>();
  for (const auto& f : c.tree->methods) {
    std::vector<Argument> arguments;
    for (const Parameter& p : f->parameters) {
      Argument a;
      a.name = p.name;
      a.type = arguments.empty() ? c.type : annotation(p.annotation);
      a.kwarg_only = p.kind == Parameter::KeywordOnly;
      if (p.default_value) a.default_value = constant(p.default_value, a.type);
      arguments.push_back(std::move(a));
    }
    if (arguments.empty()) script_error(f->range, "methods must have a self argument");
    Argument result;
    result.type = annotation(f->returns);
    interface->addMethod(FunctionSchema(OperatorName{f->name, ""}, std::move(arguments), {std::move(result)}));
  }
}

void Text::attributes(Class& c, ClassType& type) {
  std::vector<std::string> parameters, buffers, constants;
  const std::map<std::string, std::vector<std::string>*> lists = {
      {"__parameters__", &parameters}, {"__buffers__", &buffers}, {"__constants__", &constants}};
  for (const StmtPtr& s : c.tree->assignments) {
    const auto list = s->targets[0]->kind == ExprKind::Name ? lists.find(s->targets[0]->text) : lists.end();
    if (list == lists.end()) continue;
    if (s->value)
      for (const ExprPtr& e : s->value->parts) {
        if (e->kind != ExprKind::Constant || !e->value.isString()) script_error(e->range, list->first + ": a list of names was expected");
        list->second->push_back(e->value.toStringRef());
      }
  }
  const auto listed = [](const std::vector<std::string>& names, const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  for (const StmtPtr& s : c.tree->assignments) {
    const Expr& target = *s->targets[0];
    if (target.kind == ExprKind::Name && (lists.count(target.text) || target.text == "__annotations__" || target.text == "__slots__"))
      continue;
    // __annotations__["0"] = T states attributes whose names are no identifiers.
    const bool subscripted = target.kind == ExprKind::Subscript && target.parts[0]->kind == ExprKind::Name &&
                             target.parts[0]->text == "__annotations__" && target.parts[1]->kind == ExprKind::Constant &&
                             target.parts[1]->value.isString();
    if (s->targets.size() != 1 || (target.kind != ExprKind::Name && !subscripted))
      script_error(s->range, "an attribute was expected: 'name: type'");
    const std::string name = subscripted ? target.parts[1]->value.toStringRef() : target.text;
    const ExprPtr& written = subscripted ? s->value : s->annotation;
    const ExprPtr value = subscripted ? nullptr : s->value;
    const bool bare_final = written && last_name(*written) == "Final";
    const bool final = bare_final || (written && written->kind == ExprKind::Subscript && last_name(*written->parts[0]) == "Final");
    if (value && !final && written && !listed(constants, name))
      script_error(s->range, "attribute '" + name + "': a class states types only; give the value in __init__, or make it Final");
    if (value)
      type.addConstant(name, constant(value, written && !bare_final ? annotation(written) : nullptr));
    else
      type.addAttribute(name, annotation(written), listed(parameters, name), listed(buffers, name));
  }
}

void Text::declare_methods(const Class& c) {
  const auto type = c.type->expect<ClassType>();
  std::vector<Definition> definitions;
  for (const auto& f : c.tree->methods) {
    if (f->parameters.empty()) script_error(f->range, "methods must have a self argument");
    definitions.push_back(definition(f));
  }
  for (auto& f : declare_functions(unit_, type->name, definitions, type)) {
    made_functions_.push_back(f->qualname());
    (f->name() == "__init__" ? work().first : work().rest).push_back(std::move(f));
  }
}

void Text::complete(Class& c) {
  if (c.base == Base::Interface || c.base == Base::ModuleInterface) {
    interface_methods(c);
  } else if (c.base == Base::NamedTuple || c.base == Base::Enum) {
    if (!c.tree->methods.empty()) script_error(c.tree->methods[0]->range, "methods of named tuples and enums are not supported");
  } else {
    declare_methods(c);
    attributes(c, *c.type->expect<ClassType>());
  }
}

void Text::define() {
  std::vector<Class*> order;
  for (const SourceFile::Item& item : file_->items) {
    const std::string& name = item.type ? std::string(item.type->name) : item.function ? item.function->name : std::string();
    if (!name.empty() && (classes_.count(name) || functions_.count(name)))
      script_error(item.type ? item.type->range : item.function->range, "'" + name + "' is defined twice in this text");
    if (item.type) {
      Class& c = classes_[name];
      c.tree = item.type.get();
      c.base = base_of(*item.type);
      order.push_back(&c);
    } else if (item.function) {
      functions_[name] = qualified(name, false);
    } else if (item.statement->kind == StmtKind::Assign && item.statement->value && item.statement->targets.size() == 1 &&
               item.statement->targets[0]->kind == ExprKind::Name) {
      constants_[item.statement->targets[0]->text] = item.statement;
    } else if (item.statement->kind != StmtKind::Import && item.statement->kind != StmtKind::Pass &&
               !(item.statement->kind == StmtKind::Expression && item.statement->value->kind == ExprKind::Constant)) {
      script_error(item.statement->range, "expected a function or a class: other statements cannot stand outside of them");
    }
  }
  for (const SourceFile::Item& item : file_->items) {
    if (!item.function) continue;
    for (auto& f : declare_functions(unit_, prefix_, {definition(item.function)})) {
      made_functions_.push_back(f->qualname());
      work().rest.push_back(std::move(f));
    }
  }
  for (Class* c : order) create(*c);
  for (Class* c : order) complete(*c);
}

void Text::take_back() {
  for (const std::string& name : made_functions_) unit_.drop_function(name);
  for (const std::string& name : made_types_) unit_.drop_type(name);
}

// A failed text leaves nothing behind; when the outermost fails, the texts that were defined because of it go too.
class Definer {
 public:
  explicit Definer(std::shared_ptr<Text> text) : texts_(work().texts.size()), first_(work().first.size()), rest_(work().rest.size()) {
    ++work().depth;
    work().texts.push_back(std::move(text));
  }
  ~Definer() {
    MethodWork& w = work();
    if (!done_) {
      for (std::size_t i = texts_; i < w.texts.size(); ++i) w.texts[i]->take_back();
      w.texts.resize(texts_);
      w.first.resize(first_);
      w.rest.resize(rest_);
    }
    if (--w.depth == 0) w = MethodWork();
  }
  Definer(const Definer&) = delete;
  void run() {
    const std::shared_ptr<Text> text = work().texts.back();
    text->define();
    if (work().depth == 1) compile();
    done_ = true;
  }

 private:
  // Attributes of plain classes come from their __init__, so these go first. Compiling may define further texts.
  static void compile() {
    MethodWork& w = work();
    for (std::size_t i = 0, k = 0; i < w.first.size() || k < w.rest.size();) {
      const intrusive_ptr<GraphFunction> f = i < w.first.size() ? w.first[i++] : w.rest[k++];
      f->ensure_defined();
    }
  }
  std::size_t texts_, first_, rest_;
  bool done_ = false;
};

}  // namespace

void define_source(CompilationUnit& unit, const std::string& prefix, const std::shared_ptr<const Source>& source,
                   const ResolverPtr& resolver) {
  Definer(std::make_shared<Text>(unit, prefix, parse_source(source), resolver)).run();
}

void CompilationUnit::define(const std::string& source, const std::string& filename) {
  define_source(*this, "", std::make_shared<Source>(source, filename));
}

}  // namespace cresset::jit
