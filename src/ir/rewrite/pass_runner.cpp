// Running passes: verified, timed, reported, compared.
#include <algorithm>
#include <chrono>

#include <cresset/ir/pass.h>

namespace cresset::jit {
namespace {

bool named(const std::vector<std::string>& names, const Pass& pass) {
  return std::any_of(names.begin(), names.end(), [&](const std::string& n) { return n == pass.name || n == pass.command_name(); });
}

// Misspelt names would silently do nothing.
void check_names(const PipelineOptions& o) {
  for (const auto* names : {&o.lowering.disabled_passes, &o.only, &o.dump_before, &o.dump_after})
    for (const std::string& name : *names) find_pass(name);
}

std::string heading(std::size_t index, const Pass& pass, const char* place, const char* state) {
  return "# " + std::string(place) + " " + std::to_string(index) + " " + pass.name + (state ? " (" + std::string(state) + ")" : "");
}

void dump(const std::string& heading, const Graph& graph) { logging::log(logging::Level::graph, heading + "\n" + graph.toString()); }

void check_order(const std::vector<std::shared_ptr<const Pass>>& order) {
  for (std::size_t i = 0; i < order.size(); ++i)
    for (const std::string& needed : order[i]->needs) {
      const auto at = std::find_if(order.begin(), order.end(), [&](const auto& p) { return p->name == needed; });
      CRESSET_CHECK_VALUE(at == order.end() || at < order.begin() + static_cast<std::ptrdiff_t>(i), "pass '", order[i]->name,
                          "' must stand behind '", needed, "'.");
    }
}

bool wanted(const Pass& pass, const PipelineOptions& o) {
  if (!o.only.empty() && !named(o.only, pass)) return false;
  if (named(o.lowering.disabled_passes, pass)) return false;
  if (o.lowering.disable_cse && pass.name == "cse") return false;
  // "cuda:0" runs the passes of cuda.
  return pass.device.empty() || (o.lowering.target_device && o.lowering.target_device->starts_with(pass.device));
}

// Notes reach the context's sink, the log and the report.
class CollectNotes {
 public:
  CollectNotes(PassContext& context, std::vector<PassNote>& notes) : context_(context), outer_(context.sink) {
    context.sink = [&notes, outer = outer_](const PassNote& n) {
      notes.push_back(n);
      logging::log(n.log_level(), n.str());
      if (outer) outer(n);
    };
  }
  ~CollectNotes() { context_.sink = outer_; }
  CollectNotes(const CollectNotes&) = delete;

 private:
  PassContext& context_;
  std::function<void(const PassNote&)> outer_;
};

bool run_one(PassContext& context, std::size_t i, const Pass& pass, const PipelineOptions& options) {
  const std::shared_ptr<Graph> graph = context.graph;
  const bool dumps = logging::current()->enabled(logging::Level::graph);
  if (dumps && named(options.dump_before, pass)) dump(heading(i, pass, "before", nullptr), *graph);
  const std::shared_ptr<Graph> before = options.check_with ? graph->copy() : nullptr;
  try {
    PassReport report{i, &pass, false, graph.get()};
    const CollectNotes collected(context, report.notes);
    const auto start = std::chrono::steady_clock::now();
    report.changed = pass.run_in(context);
    report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    // A pass that says it changed nothing is believed until the end, where the whole is looked at once more.
    if (options.verify && report.changed) graph->lint();
    const bool dumps_all = options.dump_before.empty() && options.dump_after.empty();
    if (dumps && (dumps_all || named(options.dump_after, pass))) dump(pass_heading(report), *graph);
    if (options.report) options.report(report);
    if (before && report.changed)
      if (const auto difference = run_difference(before, graph, *options.check_with, options.rtol, options.atol))
        throw Error("the pass changes the answer: " + *difference);
    return report.changed;
  } catch (Error& e) {
    e.add_context("in pass " + std::to_string(i) + " '" + pass.name + "'");
    throw;
  }
}

}  // namespace

std::string PassNote::str() const { return where.known() ? where.str() + ": " + text : text; }

logging::Level PassNote::log_level() const {
  switch (level) {
    case NoteLevel::error: return logging::Level::error;
    case NoteLevel::warning: return logging::Level::warning;
    case NoteLevel::info: return logging::Level::info;
    default: return logging::Level::debug;
  }
}

std::string pass_heading(const PassReport& r) { return heading(r.index, *r.pass, "after", r.changed ? "changed" : "unchanged"); }

bool run_passes(PassContext& context, const std::vector<std::string>& names, const PipelineOptions& options) {
  check_names(options);
  std::vector<std::shared_ptr<const Pass>> order;
  for (const std::string& name : names) order.push_back(find_pass(name));
  check_order(order);
  const std::shared_ptr<const Pass> last = options.stop_after.empty() ? nullptr : find_pass(options.stop_after);
  CRESSET_CHECK_VALUE(!last || std::find(order.begin(), order.end(), last) != order.end(), "stop after: '", options.stop_after,
                      "' is not among the passes that run.");
  bool any = false;
  if (!options.inputs.empty()) {
    context.inputs = options.inputs;
    set_input_types(*context.graph, context.inputs, 0, context.real_inputs());
    any = find_pass("infer_types")->run_in(context);
    if (logging::current()->enabled(logging::Level::graph)) dump("# typed by the inputs", *context.graph);
  }
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (wanted(*order[i], options)) any = run_one(context, i, *order[i], options) || any;
    if (order[i] == last) break;
  }
  if (options.verify) context.graph->lint();
  return any;
}

bool run_passes(const std::shared_ptr<Graph>& graph, const std::vector<std::string>& names, const PipelineOptions& options) {
  PassContext context{.graph = graph, .options = options.lowering};
  return run_passes(context, names, options);
}

std::optional<Disagreement> bisect_passes(const std::shared_ptr<Graph>& graph, const std::vector<std::string>& names,
                                          const std::vector<IValue>& inputs, const PipelineOptions& options) {
  // One walk: a pass that changed something is followed by a run, the first difference is the answer.
  std::optional<Disagreement> found;
  struct Stop {};
  PipelineOptions walk = options;
  walk.check_with.reset();
  const std::shared_ptr<Graph> work = graph->copy();
  walk.report = [&](const PassReport& r) {
    if (!r.changed) return;
    if (auto what = run_difference(graph, work, inputs, options.rtol, options.atol)) {
      found = Disagreement{r.index, r.pass->name, std::move(*what)};
      throw Stop();
    }
  };
  try {
    run_passes(work, names, walk);
  } catch (const Stop&) {
  }
  return found;
}

}  // namespace cresset::jit
