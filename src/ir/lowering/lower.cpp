// The lowering phase: marks, freezing, attributes as inputs, passes.
#include <algorithm>
#include <utility>

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
  // With a method besides forward, freezing shows forward's graph first.
  bool is_other = method != "forward" && !options.lowering.unfreeze && module.find_method("forward");
  const AfterInlining mark = [&](const std::shared_ptr<Graph>& graph) {
    if (!std::exchange(is_other, false)) set_input_types(*graph, options.inputs, 1, graph->inputs().size() - 1);
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

PassedModule run_module_passes(const Module& module, const std::string& method, const std::vector<std::string>& names,
                               const PipelineOptions& options) {
  const auto is = [](const std::string& name, const char* words) {
    std::string plain = name;
    std::replace(plain.begin(), plain.end(), '-', '_');
    return plain == words;
  };
  const auto of_modules = [&](const std::string& name) { return is(name, "freeze_module") || is(name, "lower_graph"); };
  const auto last = std::find_if(names.rbegin(), names.rend(), of_modules);
  std::size_t left = static_cast<std::size_t>(last.base() - names.begin());  // up to the last pass of modules
  PassedModule work{module.clone(), nullptr, {}};
  bool lowered = false;  // the graph has no self any more
  std::vector<std::string> pending;
  const auto flush = [&] {
    if (pending.empty()) return;
    // The module's own graph while passes of modules follow.
    if (!work.graph) work.graph = left ? work.module.get_method(method).graph() : work.module.get_method(method).graph()->copy();
    PipelineOptions pipeline = options;
    if (left) pipeline.inputs.clear();
    if (!lowered && !pipeline.inputs.empty()) pipeline.inputs.insert(pipeline.inputs.begin(), std::nullopt);  // self
    PassContext context{.graph = work.graph, .options = options.lowering, .parameters = std::move(work.parameters)};
    run_passes(context, pending, pipeline);
    work.parameters = std::move(context.parameters);
    pending.clear();
    if (left) {
      if (auto* f = dynamic_cast<GraphFunction*>(&work.module.get_method(method).function())) f->invalidate();
      work.graph = nullptr;
    }
  };
  for (const std::string& name : names) {
    if (!of_modules(name)) {
      pending.push_back(name);
      left -= left > 0;
      continue;
    }
    CRESSET_CHECK_VALUE(!lowered, name, ": a module is required; give it in front of lower-graph.");
    flush();
    --left;
    if (is(name, "freeze_module")) {
      work.module = freeze_with_hints(work.module, method == "forward" ? std::vector<std::string>() : std::vector<std::string>{method}, {},
                                      options.lowering);
    } else {
      std::tie(work.graph, work.parameters) = lower_graph(work.module, method);
      lowered = true;
    }
  }
  flush();
  if (!work.graph) work.graph = work.module.get_method(method).graph();
  if (!options.lowering.trust_examples) erase_hints(work.graph);
  return work;
}

}  // namespace cresset::jit
