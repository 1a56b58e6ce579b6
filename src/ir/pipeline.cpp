// The order of lowering, and the registry of passes.
#include <cresset/ir/pass.h>

#include <algorithm>
#include <map>

namespace cresset::jit {

const std::vector<std::string>& lowering_passes() {
  static const std::vector<std::string> order = {
      "inline",
      "constant_propagation",
      "dce",
  };
  return order;
}

namespace {
std::map<std::string, Pass>& registry() {
  static auto* all = new std::map<std::string, Pass>;
  return *all;
}
}  // namespace

RegisterPass::RegisterPass(Pass pass) {
  std::string name = pass.name;
  CRESSET_CHECK(!pass.run != !pass.run_in, "pass '", name, "' must have one function: run or run_in.");
  if (pass.run_in)
    pass.run = [in = pass.run_in](const std::shared_ptr<Graph>& g) {
      PassContext context{.graph = g};
      return in(context);
    };
  else
    pass.run_in = [run = pass.run](PassContext& context) { return run(context.graph); };
  CRESSET_CHECK(registry().emplace(name, std::move(pass)).second, "pass '", name, "' is registered twice.");
}

std::vector<const Pass*> passes() {
  std::vector<const Pass*> out;
  for (const auto& [name, pass] : registry()) out.push_back(&pass);
  return out;
}

const Pass& find_pass(const std::string& name) {
  const auto found = registry().find(name);
  if (found == registry().end()) {
    std::string names;
    for (const auto& [known, pass] : registry()) names += (names.empty() ? "" : ", ") + known;
    CRESSET_THROW(ValueError, "there is no pass '", name, "'. Passes: ", names);
  }
  return found->second;
}

std::string pass_heading(const PassReport& r) {
  return "# after " + std::to_string(r.index) + " " + r.pass->name + " (" + (r.changed ? "changed" : "unchanged") + ")";
}

bool run_passes(const std::shared_ptr<Graph>& graph, const std::vector<std::string>& names, const PipelineOptions& options) {
  bool any = false;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const Pass& pass = find_pass(names[i]);
    for (const std::string& needed : pass.needs) {
      const auto at = std::find(names.begin(), names.end(), needed);
      CRESSET_CHECK_VALUE(at == names.end() || at < names.begin() + static_cast<std::ptrdiff_t>(i), "pass '", pass.name,
                          "' must stand behind '", needed, "'.");
    }
    try {
      const bool changed = pass.run(graph);
      any = any || changed;
      if (options.verify) graph->lint();
      if (options.report) options.report({i, &pass, changed, graph.get()});
    } catch (Error& e) {
      e.add_context("in pass " + std::to_string(i) + " '" + pass.name + "'");
      throw;
    }
  }
  return any;
}

}  // namespace cresset::jit
