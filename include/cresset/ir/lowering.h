// Lowering of modules: freezing, attributes as inputs, marks for the fallback executor, and the whole phase in one call.
#pragma once

#include <cresset/ir/module.h>
#include <cresset/ir/pass.h>

namespace cresset::jit {

/// Runs on a method's graph once all calls are inlined and nothing else was done to it.
using AfterInlining = std::function<void(const std::shared_ptr<Graph>&)>;

/// A module of which attributes that nobody writes are constants of the methods' graphs, calls are inlined, and what is not used any more
/// is gone. The given module stays as it is. `preserved` names attributes (paths, "layer1.weight"), submodules or methods that stay;
/// unknown names raise. Of modules in training mode parameters, buffers and the training flag stay attributes. Of the options it looks at
/// trust_types and trust_examples: what a trace saw of its example is not in the result's types, unless it may be baked in.
CRESSET_API Module freeze_module(const Module& module, const std::vector<std::string>& preserved = {},
                                 const AfterInlining& after_inlining = {}, const LoweringOptions& options = {});

/// The method's graph without self: each tensor attribute that is read is an input behind the true ones, in the order of the first read;
/// the values come with it. Other attributes become constants. A write of an attribute raises with its name and place.
CRESSET_API std::pair<std::shared_ptr<Graph>, std::vector<IValue>> lower_graph(const Module& module, const std::string& method = "forward",
                                                                               const AfterInlining& after_inlining = {});
/// The same for a graph whose first input is the module; the graph stays as it is.
CRESSET_API std::pair<std::shared_ptr<Graph>, std::vector<IValue>> lower_graph(const Module& module, const Graph& graph,
                                                                               const AfterInlining& after_inlining = {});

/// Marks (to_compile = 0) what stays in the fallback executor: nodes whose call stack leads through one of the modules, named by class
/// ("pkg.Block") or instance path ("layer1.0"), and nodes between delimiters. Names that occur nowhere are warned about.
CRESSET_API bool mark_for_fallback(PassContext& context);

struct LoweredModule {
  std::shared_ptr<Graph> graph;
  std::vector<IValue> parameters;  // values of the graph's last inputs
};
/// The lowering phase: marks, freezing (unless `unfreeze`), attributes as inputs, then the passes in the order of lowering_passes(). The
/// given module stays as it is.
CRESSET_API LoweredModule lower(const Module& module, const std::string& method = "forward", const PipelineOptions& options = {});

/// What passes made of a module: a module until lower_graph or the first pass of graphs behind freezing, a graph then.
struct PassedModule {
  Module module;
  std::shared_ptr<Graph> graph;    // of the method
  std::vector<IValue> parameters;  // values of the graph's last inputs
};
/// Runs passes by name on a module's method: those of graphs, and freeze_module and lower_graph among them, so that one may stand in front
/// of freezing ("notate_module_for_fallback", "freeze_module", "mark_nodes_for_fallback"). Specifications of inputs type the graph when the
/// first pass behind the module's runs. The given module stays as it is.
CRESSET_API PassedModule run_module_passes(const Module& module, const std::string& method, const std::vector<std::string>& names,
                                           const PipelineOptions& options = {});

}  // namespace cresset::jit
