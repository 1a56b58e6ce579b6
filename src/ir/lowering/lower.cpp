// The lowering phase: marks, freezing, attributes as inputs, passes.
#include <cresset/ir/lowering.h>

#include "ir/lowering/freeze.h"
#include "ir/rewrite/type_facts.h"

namespace cresset::jit {
namespace {

void log_graph(const std::string& heading, const Graph& g) {
  if (logging::current()->enabled(logging::Level::graph)) logging::log(logging::Level::graph, heading + "\n" + g.toString());
}

void log_options(const LoweringOptions& o) {
  std::string modules;
  for (const std::string& name : o.torch_executed_modules) modules += (modules.empty() ? "" : ", ") + name;
  logging::log(logging::Level::debug, "lowering: unfreeze " + std::to_string(o.unfreeze) + ", disable_cse " +
                                          std::to_string(o.disable_cse) + ", device " + o.target_device.value_or("as made") +
                                          ", modules in the fallback: " + (modules.empty() ? "none" : modules));
}

}  // namespace

LoweredModule lower(const Module& module, const std::string& method, const PipelineOptions& options) {
  log_options(options.lowering);
  log_graph("# " + method + " before lowering", *module.get_method(method).graph());
  // Marks come with the call stacks that inlining leaves, before anything else moves nodes: freezing or not makes no difference.
  const AfterInlining mark = [&](const std::shared_ptr<Graph>& graph) {
    if (options.lowering.torch_executed_modules.empty()) return;
    PassContext context{.graph = graph, .options = options.lowering};
    context.sink = [](const PassNote& n) { logging::log(n.log_level(), n.str()); };
    mark_for_fallback(context);
  };
  Module frozen = module;
  if (!options.lowering.unfreeze) {
    frozen = freeze_with_hints(module, method == "forward" ? std::vector<std::string>() : std::vector<std::string>{method}, mark,
                               options.lowering);
    log_graph("# " + method + " after freezing", *frozen.get_method(method).graph());
  }
  auto [graph, parameters] = lower_graph(frozen, method, options.lowering.unfreeze ? mark : AfterInlining());
  PipelineOptions pipeline = options;
  pipeline.lowering.torch_executed_modules.clear();  // marked already
  PassContext context{.graph = graph, .options = pipeline.lowering, .parameters = std::move(parameters)};
  run_passes(context, lowering_passes(), pipeline);
  if (!options.lowering.trust_examples) erase_hints(graph);
  if (logging::current()->enabled(logging::Level::info)) logging::log(logging::Level::info, "lowered graph:\n" + graph->toString());
  return {graph, std::move(context.parameters)};
}

}  // namespace cresset::jit
