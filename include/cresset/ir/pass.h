// Passes: one file a pass in src/ir/passes, registered by name; the order of lowering is one list in pipeline.cpp.
#pragma once

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include <cresset/ir/ir.h>
#include <cresset/ir/lowering_options.h>

namespace cresset::jit {

enum class NoteLevel : uint8_t { error, warning, info, debug };
/// What a pass says about one of its decisions: a check that was removed, an assumption, a node that could not be rewritten.
struct PassNote {
  NoteLevel level;
  std::string text;
  SourceRange where;
};

/// One run of passes over a graph.
struct PassContext {
  std::shared_ptr<Graph> graph;
  LoweringOptions options = {};
  /// The values of the graph's last inputs, in their order: lower_graph makes such inputs, other passes may use them up.
  std::vector<IValue> parameters = {};
  std::function<void(const PassNote&)> sink = {};  // may be empty

  /// Inputs that the caller gives.
  std::size_t real_inputs() const { return graph->inputs().size() - std::min(parameters.size(), graph->inputs().size()); }
  void note(NoteLevel level, const Node* where, std::string text) const {
    if (sink) sink({level, std::move(text), where ? where->sourceRange() : SourceRange()});
  }
};

/// A change of graphs that keeps their meaning.
struct Pass {
  std::string name;                // as PyTorch's _jit_pass_NAME says it
  std::string phase;               // "cleanup", "simplify", "lower", …
  std::string summary;             // one line
  std::vector<std::string> needs;  // passes that must have run before, when they are in the same pipeline
  std::vector<std::string> keeps;  // what it never touches: "names", "marks", "aliasing"
  // One of the two is given; registration makes the other from it.
  /// Changes the graph in place; true when it did.
  std::function<bool(const std::shared_ptr<Graph>&)> run = {};
  /// The same with options and notes; `run` takes the default options and drops the notes.
  std::function<bool(PassContext&)> run_in = {};
};

/// Adds a pass while the library starts; a name may be given once.
struct CRESSET_API RegisterPass {
  explicit RegisterPass(Pass pass);
};

/// All passes, by name.
CRESSET_API std::vector<const Pass*> passes();
/// Raises with the names there are.
CRESSET_API const Pass& find_pass(const std::string& name);

/// What a pipeline reports behind each pass.
struct PassReport {
  std::size_t index;
  const Pass* pass;
  bool changed;
  const Graph* graph;
};
struct PipelineOptions {
  bool verify = true;  // lint behind each pass
  std::function<void(const PassReport&)> report;
};
/// Runs passes by name in the given order; an error names the pass.
CRESSET_API bool run_passes(const std::shared_ptr<Graph>& graph, const std::vector<std::string>& names,
                            const PipelineOptions& options = {});
/// The order of lowering.
CRESSET_API const std::vector<std::string>& lowering_passes();
/// "after 3 dce (changed)": the heading of a dump; the graph's text follows it.
CRESSET_API std::string pass_heading(const PassReport& report);

// The passes as functions.
CRESSET_API bool eliminate_dead_code(const std::shared_ptr<Graph>& graph, bool with_aliases = true);
CRESSET_API bool propagate_constants(const std::shared_ptr<Graph>& graph);
CRESSET_API bool inline_calls(const std::shared_ptr<Graph>& graph);

}  // namespace cresset::jit
