// Running passes: verified, timed, reported, compared.
#include <algorithm>
#include <chrono>

#include <cresset/ir/pass.h>

namespace cresset::jit {
namespace {

thread_local CollectNotes* innermost_notes = nullptr;

bool named(const std::vector<std::string>& names, const Pass& pass) {
  return std::any_of(names.begin(), names.end(), [&](const std::string& n) { return n == pass.name || n == pass.command_name(); });
}

// Misspelt names would silently do nothing.
void check_names(const PipelineOptions& o) {
  for (const auto* names : {&o.disabled, &o.only, &o.dump_before, &o.dump_after})
    for (const std::string& name : *names) find_pass(name);
}

std::string heading(std::size_t index, const Pass& pass, const char* place, const char* state) {
  return "# " + std::string(place) + " " + std::to_string(index) + " " + pass.name + (state ? " (" + std::string(state) + ")" : "");
}

void dump(const std::string& heading, const Graph& graph) { logging::log(logging::Level::graph, heading + "\n" + graph.toString()); }

}  // namespace

std::string PassNote::str() const { return range.known() ? range.str() + ": " + text : text; }

CollectNotes::CollectNotes() : outer_(innermost_notes) { innermost_notes = this; }
CollectNotes::~CollectNotes() { innermost_notes = outer_; }

void note(logging::Level level, std::string text, const Node* at) {
  PassNote n{level, std::move(text), at ? at->sourceRange() : SourceRange()};
  logging::log(level, n.str());
  if (innermost_notes) innermost_notes->notes.push_back(std::move(n));
}

std::string pass_heading(const PassReport& r) { return heading(r.index, *r.pass, "after", r.changed ? "changed" : "unchanged"); }

bool run_passes(const std::shared_ptr<Graph>& graph, const std::vector<std::string>& names, const PipelineOptions& options) {
  check_names(options);
  std::vector<const Pass*> order;
  for (const std::string& name : names) order.push_back(&find_pass(name));
  for (std::size_t i = 0; i < order.size(); ++i)
    for (const std::string& needed : order[i]->needs) {
      const auto at = std::find_if(order.begin(), order.end(), [&](const Pass* p) { return p->name == needed; });
      CRESSET_CHECK_VALUE(at == order.end() || at < order.begin() + static_cast<std::ptrdiff_t>(i), "pass '", order[i]->name,
                          "' must stand behind '", needed, "'.");
    }
  const Pass* last = options.stop_after.empty() ? nullptr : &find_pass(options.stop_after);
  CRESSET_CHECK_VALUE(!last || std::find(order.begin(), order.end(), last) != order.end(), "stop after: '", options.stop_after,
                      "' is not among the passes that run.");
  const bool dumps_all = options.dump_before.empty() && options.dump_after.empty();
  bool any = false;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const Pass& pass = *order[i];
    const bool wanted = (options.only.empty() || named(options.only, pass)) && !named(options.disabled, pass) &&
                        (pass.device.empty() || options.device.empty() || pass.device == options.device);
    if (wanted) {
      const bool dumps = logging::current()->enabled(logging::Level::graph);
      if (dumps && named(options.dump_before, pass)) dump(heading(i, pass, "before", nullptr), *graph);
      const std::shared_ptr<Graph> before = options.check_with ? graph->copy() : nullptr;
      try {
        CollectNotes collected;
        const auto start = std::chrono::steady_clock::now();
        const bool changed = pass.run(graph);
        const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
        any = any || changed;
        if (options.verify) graph->lint();
        const PassReport report{i, &pass, changed, graph.get(), spent.count(), std::move(collected.notes)};
        if (dumps && (dumps_all || named(options.dump_after, pass))) dump(pass_heading(report), *graph);
        if (options.report) options.report(report);
        if (before && changed)
          if (const auto difference = run_difference(before, graph, *options.check_with, options.rtol, options.atol))
            throw Error("the pass changes the answer: " + *difference);
      } catch (Error& e) {
        e.add_context("in pass " + std::to_string(i) + " '" + pass.name + "'");
        throw;
      }
    }
    if (&pass == last) break;
  }
  return any;
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
