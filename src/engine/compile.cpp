#include <cresset/engine/compile.h>

#include <algorithm>
#include <unordered_map>
#include <utility>

#include <cresset/engine/engine.h>
#include <cresset/ir/function.h>

namespace cresset::engine {
namespace {

using jit::Block;
using jit::Node;
using jit::Value;

PartitionOptions partition_options(const CompileOptions& o, int64_t min_block_size) {
  return {min_block_size, o.torch_executed_ops, engine_builder(o.backend).supports};
}
bool is_whole(const Partition& p) { return p.segments.size() == 1 && p.segments[0].target == Target::engine; }

// One engine for all is no matter of size.
Partition decide(const std::shared_ptr<jit::Graph>& graph, const CompileOptions& o) {
  Partition all = partition(graph, partition_options(o, 1));
  return is_whole(all) || o.min_block_size <= 1 ? all : partition(graph, partition_options(o, o.min_block_size));
}

// What follows a layer with constant weights becomes part of them, until nothing is left to fold.
jit::LoweredModule lowered(const jit::Module& module, const std::string& method, const CompileOptions& o) {
  constexpr int kMostRounds = 100;
  static const std::vector<std::string> foldings = {"fold_frozen_conv_bn", "fold_frozen_conv_add_or_sub", "fold_frozen_conv_mul_or_div",
                                                    "fold_frozen_linear_bn"};
  jit::PipelineOptions options = o.pipeline;
  const std::vector<std::string>& without = engine_builder(o.backend).without_passes;
  options.lowering.disabled_passes.insert(options.lowering.disabled_passes.end(), without.begin(), without.end());
  jit::LoweredModule out = jit::lower(module, method, options);
  jit::PassContext context{.graph = out.graph, .options = o.pipeline.lowering, .parameters = std::move(out.parameters)};
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
  Stitcher(const std::shared_ptr<jit::Graph>& graph, jit::Module& module, std::vector<IValue> parameters, std::string backend)
      : graph_(graph), module_(module), backend_(std::move(backend)) {
    const std::size_t first = graph->inputs().size() - parameters.size();
    for (std::size_t i = 0; i < parameters.size(); ++i) parameters_[graph->inputs()[first + i]] = std::move(parameters[i]);
  }

  void run(const Partition& p) {
    stitch(p, graph_->block());
    for (Node* n : dead_) n->removeAllInputs();
    for (Node* n : dead_) n->destroy();
    read_parameters();
  }

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
    EngineSource source{name, nullptr, {}};
    const auto inner = std::make_shared<jit::Graph>();
    std::unordered_map<const Value*, Value*> map;
    std::vector<Value*> given;
    for (Value* v : p.inputs(s))
      if (!parameters_.count(v)) {
        given.push_back(v);
        map[v] = inner->addInput()->setType(v->type());
      }
    const auto weight = [&](const Value* v, const Tensor& value) {
      source.weights.push_back(value);
      return map[v] = inner->addInput()->setType(v->type());
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
    Value* list = graph_->insertNode(graph_->createList(basic_type(TypeKind::Tensor), given))->output();
    Value* out = graph_->insert(jit::Symbol::fromQualString("cresset::execute_engine"), {list, held});
    Node* unpack = graph_->insertNode(graph_->createListUnpack(out, results.size()));
    for (std::size_t i = 0; i < results.size(); ++i) {
      unpack->output(i)->setType(results[i]->type());
      results[i]->replaceAllUsesWith(unpack->output(i));
    }
    dead_.insert(dead_.end(), s.nodes.begin(), s.nodes.end());
  }
  static void add(jit::Graph& to, const Node* n, std::unordered_map<const Value*, Value*>& map, const std::function<Value*(Value*)>& get) {
    Node* copy = to.createClone(n, get);
    copy->copyMetadata(n);
    to.appendNode(copy);
    for (std::size_t i = 0; i < n->outputs().size(); ++i) map[n->output(i)] = copy->output(i);
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
  std::string backend_;
  std::unordered_map<const Value*, IValue> parameters_;
  std::unordered_set<const Node*> placed_;
  std::vector<Node*> dead_;  // what went into engines, and helpers that nobody else needs
  std::size_t engines_ = 0;
};

}  // namespace

Compiled compile(const jit::Module& module, const std::string& method, const CompileOptions& options) {
  const bool falls_back = !options.torch_executed_ops.empty() || !options.pipeline.lowering.torch_executed_modules.empty();
  CRESSET_CHECK_VALUE(!options.require_full_compilation || !falls_back,
                      "compile: require_full_compilation and torch_executed_ops or torch_executed_modules exclude each other.");
  auto [graph, parameters] = lowered(module, method, options);
  jit::Module out(module.type()->name + "_engine");
  graph->insertInput(0, "self")->setType(out.type());
  const Partition parts = decide(graph, options);
  if (options.require_full_compilation && !is_whole(parts)) {
    std::vector<std::string> missing;
    list_missing(parts, missing);
    std::string names;
    for (const std::string& m : missing) names += (names.empty() ? "" : ", ") + m;
    CRESSET_THROW(ValueError, "compile: require_full_compilation: the engine '", options.backend, "' cannot have the whole of ", method,
                  names.empty() ? ": values that are no tensors cross its border." : ": it does not have " + names + ".");
  }
  Compiled result{module, report(parts), parts.engines()};
  if (result.engines == 0) {
    warn("compile: no engine came of " + method + "; the module stays as it is.");
    return result;
  }
  Stitcher(graph, out, std::move(parameters), options.backend).run(parts);
  jit::eliminate_dead_code(graph);  // constants that only engines have
  graph->lint();
  auto function = make_intrusive<jit::GraphFunction>(out.type()->name + "." + method, graph);
  const FunctionSchema schema = module.get_method(method).getSchema();
  std::vector<Argument> arguments = schema.arguments();
  if (!arguments.empty()) arguments[0].type = out.type();
  function->setSchema(FunctionSchema(OperatorName{schema.name(), ""}, std::move(arguments), schema.returns()));
  out.type()->addMethod(std::move(function));
  result.module = out;
  return result;
}

std::string partition_report(const jit::Module& module, const std::string& method, const CompileOptions& options, bool nodes) {
  return report(decide(lowered(module, method, options).graph, options), nodes);
}

bool check_method_operator_support(const jit::Module& module, const std::string& method, const CompileOptions& options,
                                   std::vector<std::string>* missing) {
  std::vector<std::string> names;
  list_missing(partition(lowered(module, method, options).graph, partition_options(options, 1)), names);
  const bool all = names.empty();
  if (missing) *missing = std::move(names);
  return all;
}

}  // namespace cresset::engine
