// Passes: one file a pass in src/ir/passes, registered by name; the order of lowering is one list in pipeline.cpp.
#pragma once

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include <cresset/ir/input_spec.h>
#include <cresset/ir/ir.h>
#include <cresset/ir/logging.h>
#include <cresset/ir/lowering_options.h>

namespace cresset::jit {

enum class NoteLevel : uint8_t { error, warning, info, debug };
/// What a pass says about one of its decisions: a check that was removed, an assumption, a node that could not be rewritten.
struct CRESSET_API PassNote {
  NoteLevel level;
  std::string text;
  SourceRange where;
  /// "file:line:column: text".
  std::string str() const;
  logging::Level log_level() const;
};

/// One run of passes over a graph.
struct PassContext {
  std::shared_ptr<Graph> graph;
  LoweringOptions options = {};
  /// The values of the graph's last inputs, in their order: lower_graph makes such inputs, other passes may use them up.
  std::vector<IValue> parameters = {};
  std::function<void(const PassNote&)> sink = {};  // may be empty
  /// What is known of the true inputs besides their types: ranges of sizes.
  InputSpecs inputs = {};

  /// Inputs that the caller gives.
  std::size_t real_inputs() const { return graph->inputs().size() - std::min(parameters.size(), graph->inputs().size()); }
  void note(NoteLevel level, const Node* where, std::string text) const {
    if (sink) sink({level, std::move(text), where ? where->sourceRange() : SourceRange()});
  }
};

/// A change of graphs that keeps their meaning.
struct CRESSET_API Pass {
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
  /// The name on the command line where it is not the name with dashes: "eliminate-common-subexpression".
  std::string title = {};
  /// The device whose pipelines the pass is for ("cuda"); empty: all.
  std::string device = {};

  /// The name on the command line.
  std::string command_name() const;
};

/// Adds a pass while the library starts; a name may be given once.
struct CRESSET_API RegisterPass {
  explicit RegisterPass(Pass pass);
};
/// Beside which pass of the order of lowering a new one stands; without both it is registered only.
struct PassPosition {
  std::string before = {}, after = {};
};
CRESSET_API void register_pass(Pass pass, const PassPosition& position = {});
/// Takes a pass out of the registry and of the order; false when there was none.
CRESSET_API bool unregister_pass(const std::string& name);

/// All passes, by name.
CRESSET_API std::vector<std::shared_ptr<const Pass>> passes();
/// By name or by name on the command line; raises with the names there are.
CRESSET_API std::shared_ptr<const Pass> find_pass(const std::string& name);

/// What a pipeline reports behind each pass.
struct PassReport {
  std::size_t index;
  const Pass* pass;
  bool changed;
  const Graph* graph;
  double seconds = 0;
  std::vector<PassNote> notes = {};
};
struct PipelineOptions {
  bool verify = true;  // lint behind each pass
  std::function<void(const PassReport&)> report = {};
  std::vector<std::string> only = {};  // when not empty, no others run
  std::string stop_after = {};         // the last one that runs; an error when it is not in the list
  /// At log level graph: the graphs in front of these passes, and behind these; without both, behind every pass.
  std::vector<std::string> dump_before = {}, dump_after = {};
  /// Runs the graph before and behind each pass that changed it, on copies of these values, and raises when the answers differ.
  std::optional<std::vector<IValue>> check_with = {};
  double rtol = 1e-5, atol = 1e-6;
  /// Types of the true inputs: the graph is typed with them, and infer_types runs in front of the passes.
  InputSpecs inputs = {};
  /// For the passes; disabled_passes are left out, and passes of other devices than target_device.
  LoweringOptions lowering = {};
};
/// Runs passes by name in the given order; an error names the pass. Notes of passes go to the context's sink and to the current logger.
CRESSET_API bool run_passes(PassContext& context, const std::vector<std::string>& names, const PipelineOptions& options = {});
CRESSET_API bool run_passes(const std::shared_ptr<Graph>& graph, const std::vector<std::string>& names,
                            const PipelineOptions& options = {});
/// The order of lowering, registered additions included.
CRESSET_API std::vector<std::string> lowering_passes();
/// "# after 3 dce (changed)": the heading of a dump; the graph's text follows it. It is a comment of that text.
CRESSET_API std::string pass_heading(const PassReport& report);

/// The first pass whose result differs from the given graph's on these inputs; nothing when all agree. The graph stays as it is.
struct Disagreement {
  std::size_t index;
  std::string pass;
  std::string what;  // "result 0: …"
};
CRESSET_API std::optional<Disagreement> bisect_passes(const std::shared_ptr<Graph>& graph, const std::vector<std::string>& names,
                                                      const std::vector<IValue>& inputs, const PipelineOptions& options = {});
/// How the answers of two graphs differ on copies of the inputs (results, exceptions, and what they wrote into the inputs); nothing when
/// they do not.
CRESSET_API std::optional<std::string> run_difference(const std::shared_ptr<Graph>& a, const std::shared_ptr<Graph>& b,
                                                      const std::vector<IValue>& inputs, double rtol = 1e-5, double atol = 1e-6);

// The passes as functions.
CRESSET_API bool eliminate_common_subexpressions(const std::shared_ptr<Graph>& graph);
struct DeadCodeOptions {
  /// Off: quicker, and every write stays.
  bool with_aliases = true;
  /// Nodes whose results nobody needs go although they print, raise or have other effects. Writes that somebody may see stay.
  bool delete_effects = false;
  /// Is given the values that are needed, of all blocks of the graph, before something goes; once for each time that the graph is marked.
  std::function<void(const std::unordered_set<const Value*>&)> live_values = {};
};
CRESSET_API bool eliminate_dead_code(const std::shared_ptr<Graph>& graph, const DeadCodeOptions& options = {});
CRESSET_API bool propagate_constants(const std::shared_ptr<Graph>& graph);
CRESSET_API bool pool_constants(const std::shared_ptr<Graph>& graph);
CRESSET_API bool lower_simple_tuples(const std::shared_ptr<Graph>& graph);
CRESSET_API bool remove_list_mutation(const std::shared_ptr<Graph>& graph);
/// With a filter only nodes for which it says yes.
CRESSET_API bool remove_tensor_mutation(const std::shared_ptr<Graph>& graph, const std::function<bool(Node*)>& filter = nullptr);
CRESSET_API bool unroll_loops(const std::shared_ptr<Graph>& graph);
/// Only loops with a constant number of iterations.
CRESSET_API bool unroll_constant_loops(const std::shared_ptr<Graph>& graph);
/// Small local rules until nothing changes; of the options it looks at trust_types, trust_examples, fuse_addmm and refine_list_lengths.
CRESSET_API bool peephole(const std::shared_ptr<Graph>& graph, const LoweringOptions& options = {});
CRESSET_API bool inline_calls(const std::shared_ptr<Graph>& graph);

}  // namespace cresset::jit
