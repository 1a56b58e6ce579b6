// Functions and compilation units.
#include <cresset/ir/function.h>

#include <atomic>
#include <cstdio>

#include <cresset/base/stack.h>
#include <cresset/ir/custom_passes.h>
#include <cresset/ir/interpreter.h>
#include <cresset/ir/operator.h>
#include <cresset/ir/tracer.h>

#include "ir/run/custom_passes.h"
#include "ir/run/inlining.h"

namespace cresset::jit {
namespace {

// How often a graph of any function was replaced or invalidated: code with the body of another function may be out of date.
std::atomic<uint64_t> graphs_changed{0};

}  // namespace

void Function::setSchema(FunctionSchema schema) {
  CRESSET_THROW(Error, "setSchema: the schema of '", qualname(), "' cannot change; '", schema.str(), "' was given.");
}
BuiltinOpFunction::BuiltinOpFunction(QualifiedName name, FunctionSchema schema, std::function<void(Stack&)> function, std::string doc)
    : Function(name.qualifiedName()), schema_(std::move(schema)), function_(std::move(function)) {
  CRESSET_CHECK(schema_.returns().size() == 1, "BuiltinOpFunction: a schema with one return was required; '", schema_.str(),
                "' was given.");
  doc_ = std::move(doc);
}

IValue Function::operator()(Stack arguments) {
  checkAndNormalize(arguments, {});
  run(arguments);
  if (arguments.empty()) return IValue();
  if (arguments.size() == 1) return std::move(arguments[0]);
  return IValue(make_intrusive<ivalue::TupleImpl>(std::move(arguments)));
}

namespace {
// A class with the unit that it is of, for messages about two of one name.
std::string with_unit(const TypePtr& t) {
  const auto cls = t->cast<ClassType>();
  char place[32];
  std::snprintf(place, sizeof(place), "0x%zx", reinterpret_cast<std::size_t>(cls ? cls->unit().get() : nullptr));
  return t->annotation_str() + (cls ? " (of Python compilation unit at: " + std::string(place) + ")" : "");
}
}  // namespace

void Function::checkAndNormalize(Stack& arguments, const std::vector<std::pair<std::string, IValue>>& kwargs) const {
  const FunctionSchema& schema = getSchema();
  const std::vector<Argument>& formals = schema.arguments();
  CRESSET_CHECK(arguments.size() <= formals.size(), name(), "() expected at most ", formals.size(), " argument(s) but received ",
                arguments.size(), " argument(s). Declaration: ", schema.str());
  std::size_t used = 0;
  for (const auto& [key, value] : kwargs) {
    const auto index = schema.argument_index(key);
    CRESSET_CHECK(index, "Unknown keyword argument '", key, "' for operator '", name(), "'. Schema: ", schema.str());
    CRESSET_CHECK(*index >= arguments.size(), name(), "() got multiple values for argument '", key, "'");
  }
  for (std::size_t i = arguments.size(); i < formals.size(); ++i) {
    bool found = false;
    for (const auto& [key, value] : kwargs)
      if (key == formals[i].name) {
        arguments.push_back(value);
        found = true;
        ++used;
      }
    if (found) continue;
    CRESSET_CHECK(formals[i].default_value, name(), "() is missing value for argument '", formals[i].name,
                  "'. Declaration: ", schema.str());
    arguments.push_back(*formals[i].default_value);
  }
  for (std::size_t i = 0; i < formals.size(); ++i) {
    if (value_is_of_type(arguments[i], *formals[i].type)) continue;
    const TypePtr &wanted = formals[i].type, given = arguments[i].type();
    const bool same_name = wanted->annotation_str() == given->annotation_str();
    CRESSET_THROW(Error, name(), "() Expected a value of type '", same_name ? with_unit(wanted) : wanted->annotation_str(),
                  "' for argument '", formals[i].name, "' but instead found type '", same_name ? with_unit(given) : given->annotation_str(),
                  "'. Declaration: ", schema.str());
  }
}

FunctionSchema schema_of_graph(const Graph& g, const std::string& name) {
  std::vector<Argument> arguments, returns;
  for (const Value* v : g.inputs()) {
    Argument a;
    a.name = v->hasDebugName() ? v->debugNameBase() : "argument_" + v->debugName();
    a.type = v->type()->kind == TypeKind::Tensor ? TensorType::get() : v->type();
    arguments.push_back(std::move(a));
  }
  for (const Value* v : g.outputs()) {
    Argument a;
    a.type = v->type()->kind == TypeKind::Tensor ? TensorType::get() : v->type();
    returns.push_back(std::move(a));
  }
  return FunctionSchema(OperatorName{name, ""}, std::move(arguments), std::move(returns));
}

GraphFunction* tryToGraphFunction(Function& f) { return dynamic_cast<GraphFunction*>(&f); }
GraphFunction& toGraphFunction(Function& f) {
  GraphFunction* g = tryToGraphFunction(f);
  CRESSET_CHECK(g, "toGraphFunction: a function with a graph was required; '", f.qualname(), "' has none.");
  return *g;
}
const GraphFunction& toGraphFunction(const Function& f) { return toGraphFunction(const_cast<Function&>(f)); }

IValue Function::operator()(Stack arguments, const std::unordered_map<std::string, IValue>& kwargs) {
  checkAndNormalize(arguments, {kwargs.begin(), kwargs.end()});
  return (*this)(std::move(arguments));
}

GraphFunction::GraphFunction(std::string qualified_name, std::shared_ptr<Graph> graph, std::function<void(GraphFunction&)> creator)
    : Function(std::move(qualified_name)), graph_(std::move(graph)), creator_(std::move(creator)) {}

// The creator is taken out first: a function that calls itself sees an unfinished graph. When it fails the function is as it was.
void GraphFunction::ensure_defined() const {
  const std::lock_guard lock(mutex_);
  if (!creator_) return;
  check_stack("scripts");
  auto creator = std::exchange(creator_, nullptr);
  creating_ = true;
  try {
    creator(const_cast<GraphFunction&>(*this));
  } catch (...) {
    graph_ = nullptr;
    creator_ = std::move(creator);
    creating_ = false;
    throw;
  }
  creating_ = false;
}
const FunctionSchema& GraphFunction::getSchema() const {
  const std::lock_guard lock(mutex_);
  if (!schema_) {
    ensure_defined();
    if (!schema_) {
      CRESSET_CHECK(graph_ && !creating_, "function '", name(), "' is called recursively. Recursive calls are not supported");
      schema_ = schema_of_graph(*graph_, name());
    }
  }
  return *schema_;
}
void GraphFunction::setSchema(FunctionSchema schema) {
  const std::lock_guard lock(mutex_);
  schema_ = std::move(schema);
}
std::shared_ptr<Graph> GraphFunction::graph() const {
  const std::lock_guard lock(mutex_);
  ensure_defined();
  return graph_;
}
void GraphFunction::setGraph(std::shared_ptr<Graph> graph) {
  const std::lock_guard lock(mutex_);
  if (graph_) ++graphs_changed;
  graph_ = std::move(graph);
  compiled_ = nullptr;
}
struct GraphFunction::Compiled {
  std::shared_ptr<const Code> code;
  bool alone;                               // contains no other function's body
  uint64_t graphs_changed, passes_changed;  // when it was compiled
  bool holds(uint64_t changes, uint64_t passes) const { return passes_changed == passes && (alone || graphs_changed == changes); }
};

std::shared_ptr<const Code> GraphFunction::code() {
  const uint64_t changes = graphs_changed.load(std::memory_order_acquire), passes = custom_pass_changes();
  std::shared_ptr<Graph> copy;
  {
    const std::lock_guard lock(mutex_);
    if (compiled_ && compiled_->holds(changes, passes)) return compiled_->code;
    ensure_defined();
    // The code keeps a copy: the graph may be changed by passes later (invalidate() makes the changes count).
    copy = graph_->copy();
  }
  // Without the lock: other functions are asked for their graphs.
  for (const auto& [pass, number] : getCustomPrePasses()) pass(copy);
  const bool alone = !inline_small_calls(*copy, *this);
  for (const auto& [pass, number] : getCustomPostPasses()) pass(copy);
  auto compiled = std::make_shared<const Compiled>(Compiled{Code::compile(std::move(copy), name()), alone, changes, passes});
  const std::lock_guard lock(mutex_);
  if (changes != graphs_changed.load(std::memory_order_acquire)) return compiled->code;
  // Threads that call for the first time at once all run the code that was there first: its loops are translated once.
  if (!compiled_ || !compiled_->holds(changes, passes)) compiled_ = compiled;
  return compiled_->code;
}
void GraphFunction::run(Stack& stack) {
  if (CRESSET_UNLIKELY(tracer::is_tracing())) return tracer::call_function(*this, stack);
  code()->run(stack);
}
void GraphFunction::invalidate() {
  const std::lock_guard lock(mutex_);
  ++graphs_changed;
  compiled_ = nullptr;
}

void GraphFunction::leave_unit() {
  const std::lock_guard lock(mutex_);
  if (creator_)
    creator_ = [](GraphFunction& f) {
      CRESSET_THROW(Error, "function '", f.qualname(), "' was not compiled before its compilation unit went away.");
    };
}

// ---- compilation units

CompilationUnit::~CompilationUnit() {
  for (const auto& [name, type] : types_) take_apart(type);
  for (const auto& f : functions_)
    if (auto* graph_function = dynamic_cast<GraphFunction*>(f.get())) graph_function->leave_unit();
}

void CompilationUnit::take_apart(const TypePtr& type) {
  if (const auto cls = type->cast<ClassType>()) cls->leave_unit();
  if (const auto interface = type->cast<InterfaceType>()) interface->methods_.clear();
  if (const auto enumeration = type->cast<EnumType>()) enumeration->enumerators_.clear();
}

intrusive_ptr<Function> CompilationUnit::find_function(std::string_view qualified_name) const {
  const std::shared_lock lock(mutex_);
  const auto found = function_index_.find(std::string(qualified_name));
  return found == function_index_.end() ? nullptr : functions_[found->second];
}
Function& CompilationUnit::get_function(std::string_view qualified_name) const {
  const auto f = find_function(qualified_name);
  CRESSET_CHECK_AS(AttributeError, f, "attempted to get undefined function ", qualified_name);
  return *f;
}
void CompilationUnit::register_function(intrusive_ptr<Function> f) {
  const std::unique_lock lock(mutex_);
  CRESSET_CHECK(!function_index_.count(f->qualname()), "method '", f->qualname(), "' already defined.");
  function_index_.emplace(f->qualname(), functions_.size());
  f->unit_ = weak_from_this();
  functions_.push_back(std::move(f));
}
intrusive_ptr<GraphFunction> CompilationUnit::create_function(std::string qualified_name, std::shared_ptr<Graph> graph, bool mangled,
                                                              std::function<void(GraphFunction&)> creator) {
  if (mangled) qualified_name = mangle(qualified_name);
  auto f = make_intrusive<GraphFunction>(std::move(qualified_name), std::move(graph), std::move(creator));
  register_function(f);
  return f;
}
void CompilationUnit::drop_function(std::string_view qualified_name) {
  const std::unique_lock lock(mutex_);
  const auto found = function_index_.find(std::string(qualified_name));
  if (found == function_index_.end()) return;
  functions_.erase(functions_.begin() + static_cast<std::ptrdiff_t>(found->second));
  function_index_.clear();
  for (std::size_t i = 0; i < functions_.size(); ++i) function_index_.emplace(functions_[i]->qualname(), i);
}
void CompilationUnit::unsafeRemoveMethod(const QualifiedName& name) {
  CRESSET_CHECK(find_function(name.qualifiedName()), "method '", name.qualifiedName(), "' does not exist.");
  drop_function(name.qualifiedName());
}
std::vector<intrusive_ptr<Function>> CompilationUnit::functions() const {
  const std::shared_lock lock(mutex_);
  return functions_;
}
void CompilationUnit::register_type(TypePtr named) {
  const std::unique_lock lock(mutex_);
  CRESSET_CHECK(!named->name.empty(), "register_type: a type with a name was required; '", named->str(), "' was given.");
  CRESSET_CHECK(!types_.count(named->name), "class '", named->name, "' already defined.");
  if (const auto cls = named->cast<ClassType>()) cls->join(weak_from_this().lock());
  types_.emplace(named->name, std::move(named));
}
void CompilationUnit::drop_type(std::string_view qualified_name) {
  const std::unique_lock lock(mutex_);
  const auto found = types_.find(std::string(qualified_name));
  if (found == types_.end()) return;
  take_apart(found->second);
  types_.erase(found);
}
TypePtr CompilationUnit::find_type(std::string_view qualified_name) const {
  const std::shared_lock lock(mutex_);
  const auto found = types_.find(std::string(qualified_name));
  return found == types_.end() ? nullptr : found->second;
}
std::shared_ptr<ClassType> CompilationUnit::find_class(std::string_view qualified_name) const {
  const TypePtr t = find_type(qualified_name);
  return t ? t->cast<ClassType>() : nullptr;
}
std::shared_ptr<InterfaceType> CompilationUnit::get_interface(std::string_view qualified_name) const {
  const TypePtr t = find_type(qualified_name);
  return t ? t->cast<InterfaceType>() : nullptr;
}
std::vector<Function*> CompilationUnit::get_functions() const {
  std::vector<Function*> out;
  for (const auto& f : functions()) out.push_back(f.get());
  return out;
}
std::string CompilationUnit::mangle(const std::string& qualified_name) const {
  const auto taken = [this](const std::string& name) { return find_type(name) || find_function(name); };
  return taken(qualified_name) ? mangle_name(qualified_name, taken) : qualified_name;
}
TypeResolver CompilationUnit::resolver() const {
  return [this](const std::string& name) { return find_type(name); };
}

std::shared_ptr<CompilationUnit> compile(const std::string& source) {
  auto unit = std::make_shared<CompilationUnit>();
  unit->define(source);
  return unit;
}

IValue call_method(const intrusive_ptr<ivalue::Object>& object, const std::string& method, Stack arguments) {
  const auto cls = object->type->cast<ClassType>();
  CRESSET_CHECK(cls, "call_method: an object of a known class was required; '", object->type->str(), "' was given.");
  arguments.insert(arguments.begin(), IValue(object));
  return cls->getMethod(method)(std::move(arguments));
}

}  // namespace cresset::jit
