#include <cresset/engine/compile.h>

#include <algorithm>
#include <map>
#include <unordered_map>
#include <utility>

#include <cresset/core/grad_mode.h>
#include <cresset/engine/converters.h>
#include <cresset/engine/engine.h>
#include <cresset/engine/file.h>
#include <cresset/ir/function.h>

#include "engine/accuracy.h"

namespace cresset::engine {
namespace {

using jit::Block;
using jit::Node;
using jit::Value;

std::vector<std::string> backends(const CompileOptions& o) {
  std::vector<std::string> out(1);
  for (const char c : o.backend)
    if (c == ',')
      out.emplace_back();
    else if (c != ' ')
      out.back() += c;
  return out;
}

PartitionOptions partition_options(const CompileOptions& o, const std::string& backend, int64_t min_block_size) {
  const auto supports = engine_builder(backend).supports;
  const auto assumed = o.assume_supported;
  return {min_block_size, o.torch_executed_ops, [supports, assumed, backend](const Node* n) {
            return supports(n) || has_converter(backend, n) ||
                   std::find(assumed.begin(), assumed.end(), n->kind().toQualString()) != assumed.end();
          }};
}
bool is_whole(const Partition& p) { return p.segments.size() == 1 && p.segments[0].target == Target::engine; }

// One engine for all is no matter of size.
Partition decide(const std::shared_ptr<jit::Graph>& graph, const CompileOptions& o, const std::string& backend) {
  Partition all = partition(graph, partition_options(o, backend, 1));
  return is_whole(all) || o.min_block_size <= 1 ? all : partition(graph, partition_options(o, backend, o.min_block_size));
}

std::string names_of(const std::vector<ScalarType>& dtypes) {
  std::string out;
  for (const ScalarType t : dtypes) out += (out.empty() ? "" : ", ") + std::string(dtype_name(t));
  return out;
}
void check_precisions(const CompileOptions& o) {
  for (const std::string& backend : backends(o)) {
    const std::vector<ScalarType>& known = engine_builder(backend).precisions;
    for (const ScalarType t : o.enabled_precisions)
      CRESSET_CHECK_VALUE(std::find(known.begin(), known.end(), t) != known.end(), "compile: enabled_precisions: engines of '", backend,
                          "' compute in ", names_of(known), "; got ", dtype_name(t), ".");
  }
}

// Passes that all of the backends do without.
std::vector<std::string> passes_left_out(const CompileOptions& o) {
  std::vector<std::string> out;
  bool first = true;
  for (const std::string& backend : backends(o)) {
    const std::vector<std::string>& without = engine_builder(backend).without_passes;
    if (std::exchange(first, false)) out = without;
    std::erase_if(out, [&](const std::string& pass) { return std::find(without.begin(), without.end(), pass) == without.end(); });
  }
  return out;
}

bool has_choices(const jit::Graph& graph) {
  bool found = false;
  graph.block()->visit([&](const jit::Node* n) { found = found || n->kind() == jit::prim::If; });
  return found;
}

// Conditions that types answer by now go, and what that lets types say answers the next ones (attention's checks of its arguments, layer by
// layer); what follows a layer with constant weights becomes part of them. Until nothing is left to do.
jit::LoweredModule lowered(const jit::Module& module, const std::string& method, const CompileOptions& o) {
  constexpr int kMostRounds = 100;
  static const std::vector<std::string> answers = {"lower_simple_tuples", "infer_types", "peephole", "constant_propagation", "cse", "dce"};
  static const std::vector<std::string> foldings = {"fold_frozen_conv_bn", "fold_frozen_conv_add_or_sub", "fold_frozen_conv_mul_or_div",
                                                    "fold_frozen_linear_bn"};
  jit::PipelineOptions options = o.pipeline;
  for (const std::string& pass : passes_left_out(o)) options.lowering.disabled_passes.push_back(pass);
  jit::LoweredModule out = jit::lower(module, method, options);
  jit::PassContext context{.graph = out.graph, .options = o.pipeline.lowering, .parameters = std::move(out.parameters)};
  context.inputs = o.pipeline.inputs;
  const jit::PipelineOptions as_given{.lowering = o.pipeline.lowering};
  bool changed = has_choices(*context.graph);
  for (int i = 0; i < kMostRounds && changed; ++i) changed = run_passes(context, answers, as_given);
  bool folded = false;
  for (int i = 0; i < kMostRounds && run_passes(context, foldings); ++i) folded = true;
  if (folded) run_passes(context, {"dce"});
  return {context.graph, std::move(context.parameters)};
}

// "aten::add (file:1:2)", each operator once, with those of nested blocks.
void list_missing(const Partition& p, std::vector<std::string>& out) {
  for (const Decision& d : p.decisions) {
    if (d.target == Target::engine || d.reason == Reason::helper || d.reason == Reason::coupled || d.reason == Reason::small_block)
      continue;
    const std::string where = d.node->sourceRange().str(), name = d.node->kind().toQualString();
    const auto same = [&](const std::string& other) { return other == name || other.starts_with(name + " ("); };
    if (std::none_of(out.begin(), out.end(), same)) out.push_back(where.empty() ? name : name + " (" + where + ")");
  }
  for (const Segment& s : p.segments)
    for (const Partition& inner : s.blocks) list_missing(inner, out);
}

// Puts engines into a lowered graph whose first input is the new module.
class Stitcher {
 public:
  Stitcher(const std::shared_ptr<jit::Graph>& graph, jit::Module& module, std::vector<IValue> parameters, const CompileOptions& options)
      : graph_(graph), module_(module), options_(options) {
    const std::size_t first = graph->inputs().size() - parameters.size();
    for (std::size_t i = 0; i < parameters.size(); ++i) parameters_[graph->inputs()[first + i]] = std::move(parameters[i]);
  }

  /// Engines of one backend; what is left is for the next, and for finish().
  void run(const Partition& p, const std::string& backend) {
    backend_ = backend;
    placed_.clear();
    dead_.clear();
    stitch(p, graph_->block());
    for (Node* n : dead_) n->removeAllInputs();
    for (Node* n : dead_) n->destroy();
  }
  void finish() { read_parameters(); }

 private:
  // Nodes go to the end in the order of the segments, with the helpers that they use in front of them; constants stay in front of all.
  void stitch(const Partition& p, Block* block) {
    for (const Segment& s : p.segments) {
      if (s.target == Target::engine) {
        make_engine(p, s, block);
        continue;
      }
      for (Node* n : s.nodes) place(p, n, block);
      for (std::size_t i = 0; i < s.blocks.size(); ++i) stitch(s.blocks[i], s.nodes[0]->blocks()[i]);
    }
    place_inputs(p, block->return_node(), block);
    for (const Decision& d : p.decisions)
      if (d.reason == Reason::helper && !placed_.count(d.node)) dead_.push_back(d.node);
  }
  void place(const Partition& p, Node* n, Block* block) {
    if (!placed_.insert(n).second) return;
    place_inputs(p, n, block);
    for (Block* b : n->blocks()) {
      b->visit([&](Node* inner) { place_inputs(p, inner, block); });
      place_inputs(p, b->return_node(), block);
    }
    n->moveBefore(block->return_node());
  }
  void place_inputs(const Partition& p, const Node* n, Block* block) {
    for (const Value* v : n->inputs())
      if (Node* from = v->node(); from->owningBlock() == block && p.copied->count(from) && from->kind() != jit::prim::Constant)
        place(p, from, block);
  }

  void make_engine(const Partition& p, const Segment& s, Block* block) {
    const std::string name = "engine_" + std::to_string(engines_++);
    EngineSource source{name, nullptr, {}, options_.enabled_precisions};
    if (source.precisions.empty()) source.precisions = {ScalarType::Float};
    const auto inner = std::make_shared<jit::Graph>();
    std::unordered_map<const Value*, Value*> map;
    std::vector<Value*> given;
    for (Value* v : p.inputs(s))
      if (!parameters_.count(v)) {
        given.push_back(v);
        map[v] = inner->addInput()->setType(border_dtype(v, name) ? basic_type(TypeKind::Tensor) : v->type());
      }
    const auto weight = [&](const Value* v, const Tensor& value) {
      const auto narrow = narrowed(value.scalar_type(), "a weight", name);
      source.weights.push_back(narrow ? value.to(*narrow) : value);
      return map[v] = inner->addInput()->setType(narrow ? basic_type(TypeKind::Tensor) : v->type());
    };
    const std::function<Value*(Value*)> get = [&](Value* v) -> Value* {
      if (const auto found = map.find(v); found != map.end()) return found->second;
      if (const auto found = parameters_.find(v); found != parameters_.end()) return weight(v, found->second.toTensor());
      if (const auto constant = jit::toIValue(v); constant && constant->isTensor() && constant->toTensor().defined())
        return weight(v, constant->toTensor());
      add(*inner, v->node(), map, get);
      return map.at(v);
    };
    for (Node* n : s.nodes) add(*inner, n, map, get);
    const std::vector<Value*> results = p.outputs(s);
    for (Value* v : results) inner->registerOutput(map.at(v));
    inner->lint();
    source.graph = inner;

    const auto engine = make_intrusive<Engine>(backend_, std::move(source));
    const TypePtr type = custom_class_type_of(*engine);
    module_.register_attribute(name, type, IValue(engine));
    const jit::WithInsertPoint guard(block->return_node());
    Value* held = graph_->insertNode(graph_->createGetAttr(graph_->inputs()[0], name, type))->output();
    for (Value*& v : given)
      if (const auto narrow = border_dtype(v, name)) v = cast(v, *narrow);
    Value* list = graph_->insertNode(graph_->createList(basic_type(TypeKind::Tensor), given))->output();
    Value* out = graph_->insert(jit::Symbol::fromQualString("cresset::execute_engine"), {list, held});
    Node* unpack = graph_->insertNode(graph_->createListUnpack(out, results.size()));
    for (std::size_t i = 0; i < results.size(); ++i) {
      unpack->output(i)->setType(results[i]->type());
      const auto narrow = border_dtype(results[i], name);
      if (narrow) unpack->output(i)->setType(basic_type(TypeKind::Tensor));
      results[i]->replaceAllUsesWith(narrow ? cast(unpack->output(i), *dtype_of(results[i])) : unpack->output(i));
    }
    dead_.insert(dead_.end(), s.nodes.begin(), s.nodes.end());
  }
  static void add(jit::Graph& to, const Node* n, std::unordered_map<const Value*, Value*>& map, const std::function<Value*(Value*)>& get) {
    Node* copy = to.createClone(n, get);
    copy->copyMetadata(n);
    to.appendNode(copy);
    for (std::size_t i = 0; i < n->outputs().size(); ++i) map[n->output(i)] = copy->output(i);
  }

  // ---- dtypes that the backend does not take

  static std::optional<ScalarType> dtype_of(const Value* v) {
    const auto* type = v->type()->kind == TypeKind::Tensor ? static_cast<const TensorType*>(v->type().get()) : nullptr;
    return type && !type->hint ? type->dtype : std::nullopt;
  }
  // What a tensor of this dtype is inside of the engine; nothing where it may stay.
  std::optional<ScalarType> narrowed(ScalarType dtype, const std::string& what, const std::string& engine) const {
    const std::vector<ScalarType>& known = engine_builder(backend_).dtypes;
    if (known.empty() || std::find(known.begin(), known.end(), dtype) != known.end()) return std::nullopt;
    const bool wide = dtype == ScalarType::Long || dtype == ScalarType::Double;
    const ScalarType narrow = dtype == ScalarType::Long ? ScalarType::Int : ScalarType::Float;
    CRESSET_CHECK_VALUE(wide && std::find(known.begin(), known.end(), narrow) != known.end(), "compile: engines of '", backend_, "' take ",
                        names_of(known), "; ", what, " of ", engine, " is ", dtype_name(dtype),
                        ". Keep what uses it with the interpreter (torch_executed_ops).");
    CRESSET_CHECK_VALUE(options_.truncate_long_and_double, "compile: engines of '", backend_, "' take ", names_of(known), "; ", what,
                        " of ", engine, " is ", dtype_name(dtype), ". truncate_long_and_double casts it to ", dtype_name(narrow), ".");
    warn("compile: " + what + " of " + engine + " is cast from " + std::string(dtype_name(dtype)) + " to " + dtype_name(narrow) + ".");
    return narrow;
  }
  std::optional<ScalarType> border_dtype(const Value* v, const std::string& engine) {
    const auto dtype = dtype_of(v);
    if (!dtype) return std::nullopt;
    const auto [at, fresh] = narrow_.try_emplace({engine, v->debugName()});
    if (fresh) at->second = narrowed(*dtype, "%" + v->debugName(), engine);
    return at->second;
  }
  Value* cast(Value* v, ScalarType dtype) {
    return graph_->insert(jit::Symbol::fromQualString("aten::to"),
                          {v, IValue(static_cast<int64_t>(dtype)), IValue(false), IValue(false), IValue()});
  }

  // What the interpreter still needs of the parameters are attributes.
  void read_parameters() {
    std::size_t next = 0;
    for (std::size_t i = graph_->inputs().size(); i-- > 1;) {
      Value* v = graph_->inputs()[i];
      const auto found = parameters_.find(v);
      if (found == parameters_.end()) continue;
      if (v->hasUses()) {
        const std::string name = "weight_" + std::to_string(next++);
        const TypePtr type = found->second.isTensor() ? basic_type(TypeKind::Tensor) : v->type();
        module_.register_attribute(name, type, found->second, false, found->second.isTensor());
        Node* read = graph_->createGetAttr(graph_->inputs()[0], name, type);
        graph_->prependNode(read);
        read->output()->setType(v->type());
        v->replaceAllUsesWith(read->output());
      }
      graph_->eraseInput(i);
    }
  }

  std::shared_ptr<jit::Graph> graph_;
  jit::Module& module_;
  const CompileOptions& options_;
  std::string backend_;
  std::map<std::pair<std::string, std::string>, std::optional<ScalarType>> narrow_;  // by engine and value
  std::unordered_map<const Value*, IValue> parameters_;
  std::unordered_set<const Node*> placed_;
  std::vector<Node*> dead_;  // what went into engines, and helpers that nobody else needs
  std::size_t engines_ = 0;
};

}  // namespace

namespace {

void check_whole(const Partition& parts, const std::string& method, const CompileOptions& options) {
  if (!options.require_full_compilation || is_whole(parts)) return;
  std::vector<std::string> missing;
  list_missing(parts, missing);
  std::string names;
  for (const std::string& m : missing) names += (names.empty() ? "" : ", ") + m;
  CRESSET_THROW(ValueError, "compile: require_full_compilation: the engine '", options.backend, "' cannot have the whole of ", method,
                names.empty() ? ": values that are no tensors cross its border." : ": it does not have " + names + ".");
}

void check_options(const CompileOptions& options) {
  const bool falls_back = !options.torch_executed_ops.empty() || !options.pipeline.lowering.torch_executed_modules.empty();
  CRESSET_CHECK_VALUE(!options.require_full_compilation || !falls_back,
                      "compile: require_full_compilation and torch_executed_ops or torch_executed_modules exclude each other.");
  CRESSET_CHECK_VALUE(!options.require_full_compilation || backends(options).size() == 1,
                      "compile: require_full_compilation: one backend was required; got '", options.backend, "'.");
  check_precisions(options);
  check_calibration_method(options.calibration);
}

bool wants_int8(const CompileOptions& o) {
  return std::find(o.enabled_precisions.begin(), o.enabled_precisions.end(), ScalarType::Char) != o.enabled_precisions.end();
}

// The engines of a new module learn their ranges.
void calibrate(const jit::Module& module, const std::string& method, const CompileOptions& options) {
  std::vector<intrusive_ptr<Engine>> engines;
  for (std::string name = "engine_0"; module.hasattr(name); name = "engine_" + std::to_string(engines.size()))
    engines.push_back(module.attr(name).toCustomClass<Engine>());
  for (const auto& e : engines) e->begin_calibration();
  const NoGradGuard guard;
  for (const Stack& arguments : options.data) module.run_method(method, arguments);
  for (const auto& e : engines) e->end_calibration(options.calibration);
}

// The function of a module that has engines, with the signature of the one that it was made of.
void add_method(jit::Module& out, const std::shared_ptr<jit::Graph>& graph, const std::string& method, const FunctionSchema& schema) {
  auto function = make_intrusive<jit::GraphFunction>(out.type()->name + "." + method, graph);
  std::vector<Argument> arguments = schema.arguments();
  if (!arguments.empty()) arguments[0].type = out.type();
  function->setSchema(FunctionSchema(OperatorName{schema.name(), ""}, std::move(arguments), schema.returns()));
  out.type()->addMethod(std::move(function));
}

}  // namespace

Compiled compile(const jit::Module& module, const std::string& method, const CompileOptions& options) {
  check_options(options);
  CRESSET_CHECK_VALUE(!wants_int8(options) || !options.data.empty(),
                      "compile: enabled_precisions: int8 needs data for which ranges are learnt. Give a calibrator.");
  auto [graph, parameters] = lowered(module, method, options);
  jit::Module out(module.type()->name + "_engine");
  graph->insertInput(0, "self")->setType(out.type());
  Compiled result{module, "", 0};
  Stitcher stitcher(graph, out, std::move(parameters), options);
  const std::vector<std::string> names = backends(options);
  for (const std::string& backend : names) {
    const Partition parts = decide(graph, options, backend);
    check_whole(parts, method, options);
    result.report += (names.size() > 1 ? backend + "\n" : "") + report(parts);
    result.engines += parts.engines();
    if (parts.engines()) stitcher.run(parts, backend);
  }
  if (result.engines == 0) {
    warn("compile: no engine came of " + method + "; the module stays as it is.");
    return result;
  }
  stitcher.finish();
  jit::eliminate_dead_code(graph);  // constants that only engines have
  graph->lint();
  add_method(out, graph, method, module.get_method(method).getSchema());
  result.module = out;
  if (wants_int8(options)) calibrate(out, method, options);
  if (!options.data.empty()) result.accuracy = accuracy_of(out.get_method(method), module.get_method(method), options.data);
  return result;
}

Partitioned partition_method(const jit::Module& module, const std::string& method, const CompileOptions& options) {
  auto graph = lowered(module, method, options).graph;
  Partition parts = decide(graph, options, backends(options)[0]);
  return {std::move(graph), std::move(parts)};
}

std::string partition_report(const jit::Module& module, const std::string& method, const CompileOptions& options, bool nodes) {
  return report(partition_method(module, method, options).partition, nodes);
}

bool check_method_operator_support(const jit::Module& module, const std::string& method, const CompileOptions& options,
                                   std::vector<std::string>* missing) {
  std::vector<std::string> names;
  list_missing(partition(lowered(module, method, options).graph, partition_options(options, backends(options)[0], 1)), names);
  const bool all = names.empty();
  if (missing) *missing = std::move(names);
  return all;
}

std::string convert_method_to_engine(const jit::Module& module, const std::string& method, const CompileOptions& options) {
  CompileOptions whole = options;
  whole.require_full_compilation = true;
  const Compiled compiled = compile(module, method, whole);
  return engine_bytes(*compiled.module.attr("engine_0").toCustomClass<Engine>());
}

jit::Module embed_engine_in_new_module(const std::string& bytes, const std::string& name) {
  const intrusive_ptr<Engine> engine = engine_from_bytes(bytes);
  const jit::Graph& inner = *engine->source().graph;
  jit::Module out(name);
  const TypePtr type = custom_class_type_of(*engine), tensor = basic_type(TypeKind::Tensor);
  out.register_attribute("engine_0", type, IValue(engine));
  const auto graph = std::make_shared<jit::Graph>();
  Value* self = graph->addInput("self")->setType(out.type());
  std::vector<Argument> arguments{Argument("self", out.type())};
  std::vector<Value*> given;
  for (std::size_t i = 0; i < engine->num_inputs(); ++i) {
    const std::string input = "input_" + std::to_string(i);
    given.push_back(graph->addInput(input)->setType(inner.inputs()[i]->type()));
    arguments.emplace_back(input, tensor);
  }
  Value* held = graph->insertNode(graph->createGetAttr(self, "engine_0", type))->output();
  Value* list = graph->insertNode(graph->createList(tensor, given))->output();
  Value* results = graph->insert(jit::Symbol::fromQualString("cresset::execute_engine"), {list, held});
  Node* unpack = graph->insertNode(graph->createListUnpack(results, inner.outputs().size()));
  for (Value* v : unpack->outputs()) v->setType(tensor);
  const std::vector<Value*> results_of(unpack->outputs().begin(), unpack->outputs().end());
  Value* result = results_of.size() == 1 ? results_of[0] : graph->insertNode(graph->createTuple(results_of))->output();
  graph->registerOutput(result);
  graph->lint();
  const FunctionSchema schema(OperatorName{"forward", ""}, arguments, {Argument("", result->type())});
  add_method(out, graph, "forward", schema);
  return out;
}

}  // namespace cresset::engine
