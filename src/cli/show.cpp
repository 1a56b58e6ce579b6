// `cresset show`: what is in an archive.
#include <cstdio>
#include <fstream>
#include <map>

#include <nlohmann/json.hpp>

#include <cresset/dispatch/tensor_type.h>
#include <cresset/ir/archive.h>
#include <cresset/ir/operator.h>
#include <cresset/ir/pass.h>

#include "cli/commands.h"
#include "cli/show_html.h"

namespace cresset::cli {
namespace {

struct ShowOptions {
  std::string model, method = "forward", html;
  bool graph = false, code = false, operators = false;
};

std::string tensor_text(const Tensor& t) { return std::string(dtype_word(t.scalar_type())) + " " + to_string(IValue(t.sizes().vec())); }

void print_modules(const jit::Module& module) {
  for (const auto& [path, m] : module.named_modules()) {
    std::printf("%s%s%s\n", path.c_str(), path.empty() ? "" : ": ", jit::unmangled_name(m.type()->name).c_str());
    for (const bool buffers : {false, true})
      for (const auto& [name, t] : buffers ? m.named_buffers(false) : m.named_parameters(false))
        std::printf("  %s%s%s: %s%s\n", path.c_str(), path.empty() ? "" : ".", name.c_str(), tensor_text(t).c_str(),
                    buffers ? " (buffer)" : "");
  }
}

void print_operators(const jit::Graph& graph, const Shared& shared) {
  std::map<std::string, std::pair<int64_t, bool>> counts;  // by kind: how many, and whether all of them can run
  graph.block()->visit([&](jit::Node* n) {
    if (n->kind() == jit::prim::Constant) return;
    auto& [count, known] = counts.try_emplace(n->kind().toQualString(), 0, true).first->second;
    ++count;
    known = known && (jit::is_structural(n->kind()) || n->maybeOperator());
  });
  if (shared.json) {
    nlohmann::ordered_json out = nlohmann::ordered_json::object();
    for (const auto& [kind, entry] : counts) out[kind] = {{"count", entry.first}, {"known", entry.second}};
    std::printf("%s\n", out.dump(2).c_str());
    return;
  }
  for (const auto& [kind, entry] : counts)
    std::printf("%6lld  %s%s\n", static_cast<long long>(entry.first), kind.c_str(), entry.second ? "" : "  (unknown)");
}

void show(const ShowOptions& options, const Shared& shared) {
  const jit::Module module = jit::load(options.model, Device(shared.device));
  const jit::Method method = module.get_method(options.method);
  const auto graph = method.graph()->copy();
  jit::inline_calls(graph);
  if (!options.html.empty()) {
    std::ofstream out(options.html, std::ios::trunc);
    out << html_page(module, method);
    out.close();
    CRESSET_CHECK(out, options.html, " cannot be written.");
  }
  if (options.code) std::fputs(jit::code_of(method.function()).c_str(), stdout);
  if (options.graph) std::fputs(graph->toString({.source_ranges = shared.verbose, .constants = false}).c_str(), stdout);
  if (options.operators) print_operators(*graph, shared);
  if (!options.code && !options.graph && !options.operators && options.html.empty()) print_modules(module);
}

}  // namespace

void add_show(CLI::App& app, Shared& shared) {
  CLI::App* command = app.add_subcommand("show", "show a saved script: its modules, its graph, its code, its operators");
  auto options = std::make_shared<ShowOptions>();
  command->add_option("model", options->model, "archive of jit.save")->required();
  command->add_flag("--graph", options->graph, "the graph of the method with all calls inlined; with -v also where each node comes from");
  command->add_flag("--code", options->code, "the source text of the method");
  command->add_flag("--ops", options->operators, "the operators of the graph, counted");
  command->add_option("--method", options->method, "method to show")->capture_default_str();
  command->add_option("--html", options->html, "write a page with modules, graph and code to this file");
  command->callback([options, &shared] { show(*options, shared); });
}

}  // namespace cresset::cli
