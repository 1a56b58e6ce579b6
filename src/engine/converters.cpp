#include <cresset/engine/converters.h>

#include <map>
#include <mutex>

#include <cresset/dispatch/dispatcher.h>
#include <cresset/ir/pass.h>

namespace cresset::engine {
namespace {

using jit::Node;
using jit::Value;

struct Registry {
  std::mutex mutex;
  std::map<std::pair<std::string, OperatorName>, std::shared_ptr<const ConversionPattern>> converters;  // by backend and operator
  std::map<OperatorName, std::shared_ptr<const Evaluator>> evaluators;
};
Registry& registry();
Registry& registry() {
  static auto& all = *new Registry;  // converters of Python outlive the end of the process
  return all;
}

bool same_types(const std::vector<Argument>& a, const std::vector<Argument>& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i)
    if (!(*a[i].type == *b[i].type)) return false;
  return true;
}

// The operator that a schema means: the overload with these arguments where the text does not name one.
OperatorName operator_of(const std::string& signature) {
  FunctionSchema schema = [&] {
    try {
      return parse_schema(signature);
    } catch (const Error& e) {
      CRESSET_THROW(ValueError, "register_converter: a schema like aten::foo(Tensor x) -> Tensor was required; got '", signature, "'. ",
                    e.what());
    }
  }();
  const OperatorName& name = schema.operator_name();
  std::optional<OperatorName> found;
  bool registered = false;
  for (const OperatorName& other : Dispatcher::singleton().getAllOpNames()) {
    if (other.name != name.name || (!name.overload_name.empty() && other != name)) continue;
    registered = true;
    const auto op = Dispatcher::singleton().findSchema(other);
    if (op && same_types(op->schema().arguments(), schema.arguments()) && (!found || other == name)) found = other;
  }
  CRESSET_CHECK_VALUE(found || !registered, "register_converter: no overload of ", name.name, " has the arguments of '", signature, "'.");
  return found ? *found : name;
}

std::optional<OperatorName> name_of(const Node* n) {
  const FunctionSchema* schema = n->maybeSchema();
  return schema ? std::optional(schema->operator_name()) : std::nullopt;
}

std::shared_ptr<const ConversionPattern> converter_of(const std::string& backend, const Node* n) {
  const auto name = name_of(n);
  if (!name) return nullptr;
  Registry& all = registry();
  std::shared_ptr<const ConversionPattern> out;
  {
    const std::lock_guard lock(all.mutex);
    const auto found = all.converters.find({backend, *name});
    if (found == all.converters.end()) return nullptr;
    out = found->second;
  }
  return !out->supports || out->supports(n) ? out : nullptr;
}

std::shared_ptr<const Evaluator> evaluator_of(const Node* n) {
  const auto name = name_of(n);
  if (!name) return nullptr;
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  const auto found = all.evaluators.find(*name);
  return found == all.evaluators.end() ? nullptr : found->second;
}

bool has_constant_inputs(const Node* n) {
  for (const Value* v : n->inputs()) {
    const auto known = jit::toIValue(v);
    if (!known && !(v->node()->kind() == jit::prim::ListConstruct && has_constant_inputs(v->node()))) return false;
  }
  return true;
}

}  // namespace

ConversionCtx::ConversionCtx(std::shared_ptr<jit::Graph> graph, std::vector<Tensor> weights)
    : graph_(std::move(graph)), given_(graph_->inputs().size() - weights.size()), weights_(std::move(weights)) {}

Value* ConversionCtx::call(const std::string& op, const jit::NamedValues& arguments) {
  return graph_->insert(jit::Symbol::fromQualString(op), arguments);
}

Value* ConversionCtx::weight(Tensor value) {
  weights_.push_back(std::move(value));
  return graph_->addInput()->setType(basic_type(TypeKind::Tensor));
}

std::optional<IValue> ConversionCtx::constant(const Value* v) const {
  if (v->node() == graph_->param_node()) {
    const std::size_t i = v->offset();
    return i < given_ ? std::nullopt : std::optional<IValue>(weights_[i - given_]);
  }
  if (v->node()->kind() != jit::prim::ListConstruct) return jit::toIValue(v);
  std::vector<int64_t> whole;
  std::vector<double> numbers;
  for (const Value* m : v->node()->inputs()) {
    const auto member = constant(m);
    if (!member || !(member->isInt() || member->isDouble())) return std::nullopt;
    if (member->isInt())
      whole.push_back(member->toInt());
    else
      numbers.push_back(member->toDouble());
  }
  if (!numbers.empty() && !whole.empty()) return std::nullopt;
  return numbers.empty() ? IValue(std::move(whole)) : IValue(std::move(numbers));
}

// One engine's graph on its way to its backend.
class Conversion {
 public:
  Conversion(const std::string& backend, const EngineSource& source) : backend_(backend), ctx_(source.graph->copy(), source.weights) {}

  bool run() {
    bool changed = false;
    for (Node* n : snapshot()) changed = evaluate(n) || changed;
    for (Node* n : snapshot()) changed = convert(n) || changed;  // not what converters wrote
    if (changed) {
      jit::eliminate_dead_code(ctx_.graph_);
      ctx_.graph_->lint();
    }
    return changed;
  }
  EngineSource result(const EngineSource& source) const {
    EngineSource out = source;
    out.graph = ctx_.graph_;
    out.weights = ctx_.weights_;
    return out;
  }

 private:
  std::vector<Node*> snapshot() const {
    std::vector<Node*> out;
    for (Node* n : ctx_.graph_->nodes()) out.push_back(n);
    return out;
  }

  bool evaluate(Node* n) {
    const auto evaluator = evaluator_of(n);
    if (!evaluator) return false;
    std::vector<IValue> inputs;
    for (const Value* v : n->inputs()) {
      const auto known = ctx_.constant(v);
      if (!known) return false;
      inputs.push_back(*known);
    }
    const std::vector<IValue> values = (*evaluator)(inputs);
    check_count("evaluator", n, values.size());
    const jit::WithInsertPoint guard(n);
    std::vector<Value*> results;
    for (const IValue& v : values) results.push_back(v.isTensor() ? ctx_.weight(v.toTensor()) : ctx_.graph_->insertConstant(v));
    replace(n, results);
    return true;
  }
  bool convert(Node* n) {
    const auto pattern = converter_of(backend_, n);
    if (!pattern) return false;
    const jit::WithInsertPoint guard(n);
    const std::vector<Value*> results = pattern->converter(ctx_, n, {n->inputs().begin(), n->inputs().end()});
    check_count("converter", n, results.size());
    replace(n, results);
    return true;
  }
  static void check_count(const char* what, const Node* n, std::size_t given) {
    CRESSET_CHECK_VALUE(given == n->outputs().size(), what, " of ", n->kind().toQualString(), ": ", n->outputs().size(),
                        " results were required; it gave ", given, ".");
  }
  static void replace(Node* n, const std::vector<Value*>& results) {
    for (std::size_t i = 0; i < results.size(); ++i) {
      CRESSET_CHECK_VALUE(results[i] && results[i]->owningGraph() == n->owningGraph(), "converter of ", n->kind().toQualString(),
                          ": a value of the graph that is converted was required.");
      n->output(i)->replaceAllUsesWith(results[i]);
    }
    n->destroy();
  }

  const std::string& backend_;
  ConversionCtx ctx_;
};

void register_converter(const std::string& backend, ConversionPattern pattern) {
  CRESSET_CHECK_VALUE(!backend.empty() && pattern.converter, "register_converter: a backend's name and a function were required.");
  const OperatorName name = operator_of(pattern.signature);
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  auto& place = all.converters[{backend, name}];
  if (place) warn("register_converter: the converter of " + pattern.signature + " for '" + backend + "' replaces another one.");
  place = std::make_shared<const ConversionPattern>(std::move(pattern));
}

void register_evaluator(const std::string& signature, Evaluator evaluator) {
  CRESSET_CHECK_VALUE(evaluator, "register_evaluator: a function was required.");
  const OperatorName name = operator_of(signature);
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  auto& place = all.evaluators[name];
  CRESSET_CHECK_VALUE(!place, "register_evaluator: ", signature, " has an evaluator.");
  place = std::make_shared<const Evaluator>(std::move(evaluator));
}

bool has_converter(const std::string& backend, const Node* n) {
  return converter_of(backend, n) != nullptr || (evaluator_of(n) && has_constant_inputs(n));
}

EngineSource converted(const std::string& backend, const EngineSource& source) {
  Conversion conversion(backend, source);
  return conversion.run() ? conversion.result(source) : source;
}

}  // namespace cresset::engine
