// Functions from definitions: declared, compiled when asked for, taken back when the compilation fails.
#include <cresset/ir/interpreter.h>

#include "ir/frontend/emitter.h"
#include "ir/frontend/script_error.h"

namespace cresset::jit {

Emitter::Emitter(const Definition& definition, GraphFunction& m, const SelfFactory& self, const ClassTypePtr& owner)
    : definition_(definition), tree_(*definition.tree), m_(m), self_(self), owner_(owner), names_(m) {}

FunctionSchema Emitter::run() {
  parameters();
  statements(tree_.body);
  finish();
  return FunctionSchema(OperatorName{m_.name(), ""}, arguments_, {[&] {
                          Argument a;
                          a.type = result_;
                          return a;
                        }()});
}

TypePtr Emitter::annotation(const ExprPtr& e) { return type_of_annotation(e, definition_.resolver.get()); }

std::optional<IValue> Emitter::default_of(const Parameter& p, const TypePtr& type) {
  std::optional<IValue> v;
  if (const auto given = definition_.defaults.find(p.name); given != definition_.defaults.end()) {
    v = given->second;
  } else if (p.default_value) {
    // A constant expression of the text, run in a graph of its own.
    auto text = make_intrusive<GraphFunction>("default", std::make_shared<Graph>());
    Definition of_default = definition_;
    of_default.defaults.clear();
    Emitter emitter(of_default, *text, nullptr, nullptr);
    Value* result = emitter.converted(p.range, emitter.value(p.default_value, type), type);
    text->graph()->registerOutput(result);
    to_ssa(*text->graph(), {});
    v = (*text)({});
  }
  if (!v) return v;
  const bool as_float = type->kind == TypeKind::Float && v->isInt();
  if (as_float) v = IValue(v->toDouble());
  if (!value_is_of_type(*v, *type)) {
    std::string message = "Expected a default value of type " + type->annotation_str() + (p.annotation ? "" : " (inferred)") +
                          " on parameter \"" + p.name + "\".";
    if (!p.annotation) message += "Because \"" + p.name + "\" was not annotated with an explicit type it is assumed to be type 'Tensor'.";
    script_error(tree_.range, message);
  }
  return v;
}

namespace {
// BroadcastingListN[t] and _size_N_t, in Optional, too: of how many equal numbers one may stand for the list.
std::optional<int32_t> list_size(const ExprPtr& annotation) {
  if (!annotation) return std::nullopt;
  if (annotation->kind == ExprKind::Subscript) {
    const auto size = list_size(annotation->parts[0]);
    return !size && annotation->parts[0]->text == "Optional" && annotation->parts.size() == 2 ? list_size(annotation->parts[1]) : size;
  }
  if (annotation->kind != ExprKind::Name && annotation->kind != ExprKind::Attribute) return std::nullopt;
  constexpr std::string_view kList = "BroadcastingList", kSize = "_size_", kBehind = "_t";
  const std::string_view name = annotation->text;
  std::string_view digit;
  if (name.starts_with(kList)) digit = name.substr(kList.size());
  if (name.starts_with(kSize) && name.ends_with(kBehind)) digit = name.substr(kSize.size(), name.size() - kSize.size() - kBehind.size());
  return digit.size() == 1 && digit[0] >= '1' && digit[0] <= '9' ? std::optional(digit[0] - '0') : std::nullopt;
}
}  // namespace

void Emitter::parameters() {
  if (const auto given = definition_.types.find("return"); given != definition_.types.end())
    declared_result_ = given->second;
  else if (tree_.returns)
    declared_result_ = annotation(tree_.returns);
  bool first = owner_ != nullptr;
  for (const Parameter& p : tree_.parameters) {
    if (p.kind == Parameter::VarPositional || p.kind == Parameter::VarKeyword)
      throw NotSupportedError(SourceRange(p.range.source(), p.range.start() + (p.kind == Parameter::VarKeyword ? 1 : 0), p.range.end()),
                              "Compiled functions can't take variable number of arguments or use keyword-only arguments with defaults");
    Value* input = graph().addInput(p.name);
    Argument a;
    a.name = p.name;
    a.kwarg_only = p.kind == Parameter::KeywordOnly;
    if (first) {
      first = false;
      a.type = owner_;
      input->setType(owner_);
      names_.assign(p.range, p.name, self_ ? self_(input) : simple_value(input));
      arguments_.push_back(std::move(a));
      continue;
    }
    const auto given = definition_.types.find(p.name);
    a.type = given != definition_.types.end() ? given->second : p.annotation ? annotation(p.annotation) : inferred_tensor();
    a.default_value = default_of(p, a.type);
    a.N = list_size(p.annotation);
    input->setType(a.type);
    names_.assign(p.range, p.name, simple_value(input));
    arguments_.push_back(std::move(a));
  }
}

// The way out at the end of the text, and the value that all returns give.
void Emitter::finish() {
  if (!names_.top().exits) {
    const TypePtr none = basic_type(TypeKind::None);
    const TypePtr expected = declared_result_;
    if (expected && expected->kind != TypeKind::None)
      script_error(tree_.range, "Function was not annotated as having type None, but does not return along all paths");
    Value* v = converted(tree_.range, constant(IValue(), tree_.range), expected ? expected : none);
    insert(prim::ReturnStmt, {v}, 0, tree_.range);
    if (!expected) {
      const TypePtr both = result_ ? unify_types(result_, none) : none;
      if (!both)
        script_error(tree_.range, "Previous return statement returned a value of type " + result_->annotation_str() +
                                      " but this return statement returns a value of type NoneType");
      result_ = both;
    }
  }
  if (declared_result_) result_ = declared_result_;
  if (!result_) result_ = basic_type(TypeKind::None);  // it always raises
  const Ways ways = transform_exits(graph());
  {
    const WithInsertPoint here(graph().block());
    graph().registerOutput(insert_node(m_, graph().createLoad("$return", result_), tree_.range)->output());
  }
  to_ssa(graph(), ways);
  canonicalize_loops(graph());
  tidy(m_.graph());
  graph().lint();
}

namespace {

void compile(GraphFunction& f, const Definition& definition, const ClassTypePtr& owner, const SelfFactory& self) {
  const CompilingFunction here(f.name());
  f.setGraph(std::make_shared<Graph>());
  f.setSchema(Emitter(definition, f, self, owner).run());
}

// What was declared, to take it back.
class Declared {
 public:
  Declared(CompilationUnit& unit, ClassTypePtr owner) : unit_(unit), owner_(std::move(owner)) {}
  ~Declared() {
    if (kept_) return;
    for (const auto& f : functions_) {
      if (owner_)
        owner_->removeMethod(f->name());
      else
        unit_.drop_function(f->qualname());
    }
  }
  Declared(const Declared&) = delete;
  void add(const std::string& name, const Definition& definition, const SelfFactory& self) {
    auto f = make_intrusive<GraphFunction>(name, nullptr,
                                           [definition, self, owner = owner_](GraphFunction& m) { compile(m, definition, owner, self); });
    if (owner_)
      owner_->addMethod(f);
    else
      unit_.register_function(f);
    functions_.push_back(f);
  }
  std::vector<intrusive_ptr<GraphFunction>> keep() {
    kept_ = true;
    return functions_;
  }
  const std::vector<intrusive_ptr<GraphFunction>>& functions() const { return functions_; }

 private:
  CompilationUnit& unit_;
  ClassTypePtr owner_;
  std::vector<intrusive_ptr<GraphFunction>> functions_;
  bool kept_ = false;
};

void declare(Declared& declared, const std::string& prefix, const std::vector<Definition>& definitions, const SelfFactory& self) {
  for (const Definition& d : definitions) {
    const std::string& name = d.name.empty() ? d.tree->name : d.name;
    declared.add(prefix.empty() ? name : prefix + "." + name, d, self);
  }
}

}  // namespace

std::vector<intrusive_ptr<GraphFunction>> declare_functions(CompilationUnit& unit, const std::string& prefix,
                                                            const std::vector<Definition>& definitions, const ClassTypePtr& owner,
                                                            const SelfFactory& self) {
  Declared declared(unit, owner);
  declare(declared, prefix, definitions, self);
  return declared.keep();
}

std::vector<intrusive_ptr<GraphFunction>> define_functions(CompilationUnit& unit, const std::string& prefix,
                                                           const std::vector<Definition>& definitions, const ClassTypePtr& owner,
                                                           const SelfFactory& self) {
  Declared declared(unit, owner);
  declare(declared, prefix, definitions, self);
  for (const auto& f : declared.functions()) f->ensure_defined();
  return declared.keep();
}

}  // namespace cresset::jit
