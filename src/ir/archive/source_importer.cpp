#include "ir/archive/source_importer.h"

#include <algorithm>
#include <charconv>
#include <map>

#include <cresset/base/interrupt.h>
#include <cresset/dispatch/custom_class.h>
#include <cresset/dispatch/tuple_type.h>

#include "ir/archive/code_printer.h"
#include "ir/archive/constant_expression.h"
#include "ir/archive/old_operators.h"
#include "ir/rewrite/module_reads.h"

namespace cresset::jit {
namespace {

std::pair<std::string, std::string> split(const std::string& qualified) {
  const std::size_t dot = qualified.rfind('.');
  if (dot == std::string::npos) return {"", qualified};
  return {qualified.substr(0, dot), qualified.substr(dot + 1)};
}

// `Class.__new__`: an object with empty slots, for which the code calls __init__ itself.
class NewObject final : public SugaredValue {
 public:
  explicit NewObject(TypePtr type) : type_(std::move(type)) {}
  std::string kind() const override { return "__new__"; }
  SugaredValuePtr call(const SourceRange& range, GraphFunction& m, const std::vector<CallArgument>&, const std::vector<CallArgument>&,
                       std::size_t) override {
    Graph& g = *m.graph();
    Node* n = g.insertNode(g.createObject(type_));
    n->setSourceRange(range);
    return simple_value(n->output());
  }

 private:
  TypePtr type_;
};

class ImportedClass final : public SugaredValue {
 public:
  explicit ImportedClass(TypePtr type) : type_(std::move(type)), plain_(class_value(type_)) {}
  std::string kind() const override { return plain_->kind(); }
  TypePtr asType() const override { return type_; }
  SugaredValuePtr attr(const SourceRange& range, GraphFunction& m, const std::string& field) override {
    if (field == "__new__") return std::make_shared<NewObject>(type_);
    if (const auto cls = type_->cast<ClassType>())
      if (Function* hook = cls->findHook(field)) return function_value(intrusive_ptr<Function>::reclaim_copy(hook));
    return plain_->attr(range, m, field);
  }
  SugaredValuePtr call(const SourceRange& range, GraphFunction& m, const std::vector<CallArgument>& args,
                       const std::vector<CallArgument>& kwargs, std::size_t results) override {
    return plain_->call(range, m, args, kwargs, results);
  }

 private:
  TypePtr type_;
  SugaredValuePtr plain_;
};

// A path that is a package, a class or a function, as far as it goes.
class Package final : public SugaredValue {
 public:
  Package(std::shared_ptr<SourceImporter> importer, std::string path) : importer_(std::move(importer)), path_(std::move(path)) {}
  std::string kind() const override { return "package '" + path_ + "'"; }
  SugaredValuePtr attr(const SourceRange&, GraphFunction&, const std::string& field) override {
    const std::string path = path_ + "." + field;
    if (const TypePtr type = importer_->find_type(path)) return std::make_shared<ImportedClass>(type);
    if (auto f = importer_->find_function(path)) return function_value(std::move(f));
    return std::make_shared<Package>(importer_, path);
  }

 private:
  std::shared_ptr<SourceImporter> importer_;
  std::string path_;
};

// The value of "c12"; null when there is none of that name.
const IValue* constant_named(const std::vector<IValue>& values, const std::string& name) {
  if (!name.starts_with('c')) return nullptr;
  std::size_t i = 0;
  const auto parsed = std::from_chars(name.data() + 1, name.data() + name.size(), i);
  return parsed.ec == std::errc() && i < values.size() && name == "c" + std::to_string(i) ? &values[i] : nullptr;
}

// The module torch as it was when the archive was written.
class VersionedTorch final : public SugaredValue {
 public:
  VersionedTorch(CompilationUnit& unit, int64_t version, SugaredValuePtr today)
      : unit_(unit), version_(version), today_(std::move(today)) {}
  std::string kind() const override { return today_->kind(); }
  SugaredValuePtr attr(const SourceRange& range, GraphFunction& m, const std::string& field) override {
    return operator_of_version(unit_, version_, field, today_->attr(range, m, field));
  }
  bool hasAttr(const SourceRange& range, GraphFunction& m, const std::string& field) override { return today_->hasAttr(range, m, field); }

 private:
  CompilationUnit& unit_;
  int64_t version_;
  SugaredValuePtr today_;
};

class Constants final : public SugaredValue {
 public:
  explicit Constants(const std::vector<IValue>& values) : values_(values) {}
  std::string kind() const override { return "table of constants"; }
  SugaredValuePtr attr(const SourceRange& range, GraphFunction&, const std::string& field) override {
    if (const IValue* value = constant_named(values_, field)) return constant_value(*value);
    script_error(range, "the archive has " + std::to_string(values_.size()) + " constants and no '" + field + "'");
  }

 private:
  const std::vector<IValue>& values_;
};

bool has_base(const ClassDefinition& c, std::string_view base) {
  return std::any_of(c.bases.begin(), c.bases.end(), [&](const ExprPtr& e) { return dotted_name(*e) == base; });
}

}  // namespace

SourceImporter::SourceImporter(CompilationUnit& unit, int64_t version, PackageSource source)
    : unit_(unit), version_(version), source_(std::move(source)), native_(native_resolver(unit_)) {}

const SourceImporter::Item* SourceImporter::find_item(const std::string& qualified) {
  const auto [package, name] = split(qualified);
  if (package.empty()) return nullptr;
  if (!packages_.count(package)) {
    PackageText text = source_(package);
    const auto file = packages_[package] = text.source ? parse_source(text.source) : std::make_shared<SourceFile>();
    if (!text.places.empty()) places_.emplace(text.source.get(), std::move(text.places));
    for (const Item& item : file->items) {
      const std::string* item_name = item.function ? &item.function->name : item.type ? &item.type->name : nullptr;
      if (item_name)
        CRESSET_CHECK(items_[package].emplace(*item_name, &item).second, "archive: '", package, ".", *item_name, "' is defined twice.");
    }
  }
  const auto& names = items_[package];
  const auto found = names.find(name);
  return found == names.end() ? nullptr : found->second;
}

TypePtr SourceImporter::find_type(const std::string& qualified) {
  if (TypePtr known = unit_.find_type(qualified)) return known;
  if (find_custom_class(qualified)) return object_type(qualified);
  const Item* item = find_item(qualified);
  return item && item->type ? define_type(qualified, *item->type) : nullptr;
}

intrusive_ptr<Function> SourceImporter::find_function(const std::string& qualified) {
  if (auto known = unit_.find_function(qualified)) return known;
  const Item* item = find_item(qualified);
  if (!item || !item->function) return nullptr;
  const auto declared = declare_functions(unit_, split(qualified).first, {definition(item->function)});
  for (const auto& f : declared) declared_.push_back(f.get());
  return declared.at(0);
}

void SourceImporter::compile_all() {
  // Compiling meets further functions.
  for (std::size_t i = 0; i < declared_.size(); ++i) {
    check_signals();
    compile(*declared_[i]);
  }
}

void SourceImporter::compile(GraphFunction& f) {
  f.ensure_defined();
  mark_by_comments(f);
  show_original_places(f);
}

void SourceImporter::mark_by_comments(GraphFunction& f) {
  bool marked = false;
  for (const auto& g : with_subgraphs(f.graph()))
    g->block()->visit([&](Node* n) {
      const std::shared_ptr<const Source> source = n->sourceRange().source();
      if (!source || n->kind() == prim::Constant) return;
      const auto [at, fresh] = has_marks_.try_emplace(source.get(), false);
      if (fresh) at->second = source->text().find(kFallbackComment) != std::string::npos;
      if (!at->second) return;
      const std::string_view text = source->text();
      std::size_t start = n->sourceRange().start(), end = text.find('\n', start);
      if (!text.substr(start, end == std::string_view::npos ? end : end - start).ends_with(kFallbackComment)) return;
      n->i_(attr::to_compile, 0);
      marked = true;
    });
  if (marked) f.invalidate();
}

void SourceImporter::show_original_places(GraphFunction& f) const {
  if (places_.empty()) return;
  for (const auto& g : with_subgraphs(f.graph()))
    g->block()->visit([this](Node* n) {
      const SourceRange& here = n->sourceRange();
      const auto places = places_.find(here.source().get());
      if (places != places_.end()) n->setSourceRange(place_of(places->second, here.start()));
    });
  f.invalidate();  // a __setstate__ ran while the objects were read
}

Definition SourceImporter::definition(const std::shared_ptr<const FunctionDefinition>& f) {
  Definition d;
  d.tree = f;
  d.resolver = shared_from_this();
  for (const Parameter& p : f->parameters)
    if (p.default_value)
      d.defaults.emplace(p.name, constant(p.default_value, p.annotation ? type_of_annotation(p.annotation, this) : nullptr));
  return d;
}

IValue SourceImporter::constant(const ExprPtr& e, const TypePtr& type) {
  return constant_of(e, type, this, [this](const std::string& name) { return named_constant(name); });
}

std::optional<IValue> SourceImporter::named_constant(const std::string& name) {
  const auto [owner, last] = split(name);
  if (owner == "CONSTANTS") {
    const IValue* value = constant_named(constants_, last);
    return value ? std::optional(*value) : std::nullopt;
  }
  if (const TypePtr type = find_type(owner))
    if (const auto enumeration = type->cast<EnumType>())
      if (auto e = enumeration->find(last)) return IValue(std::move(e));
  return std::nullopt;
}

TypePtr SourceImporter::define_type(const std::string& qualified, const ClassDefinition& c) {
  if (has_base(c, "NamedTuple")) return define_named_tuple(qualified, c);
  if (has_base(c, "Enum")) return define_enum(qualified, c);
  if (has_base(c, "ModuleInterface") || has_base(c, "Interface")) return define_interface(qualified, c, has_base(c, "ModuleInterface"));
  const bool is_module = has_base(c, "Module");
  if (!c.bases.empty() && !is_module) script_error(c.range, "archive: the base class of '" + qualified + "' is unknown");
  return define_class(qualified, c, is_module);
}

TypePtr SourceImporter::define_class(const std::string& qualified, const ClassDefinition& c, bool is_module) {
  const ClassTypePtr type = ClassType::create(qualified, is_module);
  unit_.register_type(type);                              // before its attributes, which may be of this class
  std::map<std::string, std::vector<std::string>> lists;  // of names
  std::vector<std::string>&parameters = lists["__parameters__"], &buffers = lists["__buffers__"];
  std::vector<std::string>&before = lists["__forward_pre_hooks__"], &after = lists["__forward_hooks__"];
  const auto among = [](const std::vector<std::string>& names, const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  const auto add = [&](const std::string& name, const ExprPtr& annotation) {
    TypePtr declared = type_of_annotation(annotation, this);
    if (declared->kind == TypeKind::Tensor)
      if (TypePtr packed = packed_weights_of(qualified, name)) declared = std::move(packed);
    type->addAttribute(name, std::move(declared), among(parameters, name), among(buffers, name));
  };
  for (const StmtPtr& s : c.assignments) {
    if (s->targets.size() != 1) script_error(s->range, "archive: a field of a class was expected here");
    const Expr& target = *s->targets[0];
    if (target.kind == ExprKind::Subscript && dotted_name(*target.parts[0]) == "__annotations__" && s->value) {
      const IValue name = constant(target.parts.at(1), basic_type(TypeKind::String));
      add(name.toStringRef(), s->value);
    } else if (target.kind != ExprKind::Name) {
      script_error(s->range, "archive: a field of a class was expected here");
    } else if (!s->annotation) {
      const IValue names = constant(s->value, nullptr);
      const auto list = lists.find(target.text);
      if (list != lists.end() && names.isList())
        for (const IValue& n : names.toListRef()) list->second.push_back(n.toStringRef());
    } else if (s->value) {
      type->addConstant(target.text, constant(s->value, type_of_annotation(s->annotation, this)));
    } else {
      add(target.text, s->annotation);
    }
  }
  std::vector<Definition> methods, hooks;
  for (const auto& m : c.methods) (among(before, m->name) || among(after, m->name) ? hooks : methods).push_back(definition(m));
  const auto declared_hooks = declare_functions(unit_, qualified, hooks), declared = declare_functions(unit_, qualified, methods, type);
  for (const auto* functions : {&declared_hooks, &declared})
    for (const auto& f : *functions) declared_.push_back(f.get());
  const auto hook_named = [&](const std::string& name) {
    for (const auto& f : declared_hooks)
      if (f->name() == name) return f.get();
    script_error(c.range, "archive: the hook '" + name + "' of '" + qualified + "' is missing");
  };
  for (const std::string& name : before) type->addForwardPreHook(hook_named(name));
  for (const std::string& name : after) type->addForwardHook(hook_named(name));
  return type;
}

TypePtr SourceImporter::define_interface(const std::string& qualified, const ClassDefinition& c, bool is_module) {
  const auto type = InterfaceType::create(qualified, is_module);
  unit_.register_type(type);
  for (const auto& m : c.methods) {
    std::vector<Argument> arguments, returns(1);
    for (const Parameter& p : m->parameters) {
      Argument a;
      a.name = p.name;
      a.type = arguments.empty() ? TypePtr(type) : type_of_annotation(p.annotation, this);
      if (p.default_value) a.default_value = constant(p.default_value, a.type);
      arguments.push_back(std::move(a));
    }
    returns[0].type = type_of_annotation(m->returns, this);
    type->addMethod(FunctionSchema(OperatorName{m->name, ""}, std::move(arguments), std::move(returns)));
  }
  return type;
}

TypePtr SourceImporter::define_enum(const std::string& qualified, const ClassDefinition& c) {
  std::vector<std::pair<std::string, IValue>> values;
  for (const StmtPtr& s : c.assignments) {
    if (s->targets.size() != 1 || s->targets[0]->kind != ExprKind::Name || !s->value)
      script_error(s->range, "archive: an enumerator was expected here");
    values.emplace_back(s->targets[0]->text, constant(s->value, nullptr));
  }
  if (values.empty()) script_error(c.range, "archive: the enum '" + qualified + "' has no values");
  const auto type = EnumType::create(qualified, values[0].second.type());
  for (auto& [name, value] : values) type->addEnumerator(name, std::move(value));
  unit_.register_type(type);
  return type;
}

TypePtr SourceImporter::define_named_tuple(const std::string& qualified, const ClassDefinition& c) {
  std::vector<std::string> fields;
  std::vector<TypePtr> members;
  for (const StmtPtr& s : c.assignments) {
    if (s->targets.size() != 1 || s->targets[0]->kind != ExprKind::Name || !s->annotation)
      script_error(s->range, "archive: a field of a named tuple was expected here");
    fields.push_back(s->targets[0]->text);
    members.push_back(type_of_annotation(s->annotation, this));
  }
  const TypePtr type = named_tuple_of(qualified, std::move(fields), std::move(members));
  unit_.register_type(type);
  return type;
}

SugaredValuePtr SourceImporter::resolveValue(const std::string& name, GraphFunction& m, const SourceRange& range) {
  if (name == "CONSTANTS") return std::make_shared<Constants>(constants_);
  if (name == "__torch__") return std::make_shared<Package>(shared_from_this(), name);
  SugaredValuePtr known = native_->resolveValue(name, m, range);
  return name == "torch" ? std::make_shared<VersionedTorch>(unit_, version_, std::move(known)) : known;
}

TypePtr SourceImporter::resolveType(const std::string& name, const SourceRange& range) {
  if (TypePtr type = find_type(name)) return type;
  return native_->resolveType(name, range);
}

}  // namespace cresset::jit
