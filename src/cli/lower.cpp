// `cresset lower [FILE]`: runs the lowering phase, or single passes, on IR text or on an archive. The graph goes to standard output, all
// messages to standard error.
#include <cstdio>
#include <fstream>
#include <iostream>
#include <iterator>
#include <regex>
#include <sstream>

#include <cresset/ir/archive.h>
#include <cresset/ir/ir_parser.h>
#include <cresset/ir/lowering.h>

#include "cli/commands.h"
#include "cli/lower_input.h"
#include "cli/lower_page.h"

namespace cresset::cli {
namespace {

struct Request {
  std::string file = "-", method = "forward", log = "warning", stop_after, html;
  std::vector<std::string> passes, only, disabled, options, inputs, dump_before, dump_after;
  bool list = false, check = false, bisect = false, colour = false, times = false, constants = true;
};

constexpr const char* kFreeze = "freeze-module";
constexpr const char* kLowerGraph = "lower-graph";

void print_list() {
  std::printf("%-40s %-10s %s\n", kFreeze, "module", "attributes that nobody writes become constants; calls are inlined");
  std::printf("%-40s %-10s %s\n", kLowerGraph, "module", "attributes become inputs of the graph");
  for (const auto& p : jit::passes()) std::printf("%-40s %-10s %s\n", p->command_name().c_str(), p->phase.c_str(), p->summary.c_str());
}

std::string read_all(const std::string& file) {
  if (file == "-") return {std::istreambuf_iterator<char>(std::cin), {}};
  std::ifstream in(file, std::ios::binary);
  CRESSET_CHECK(in, file, ": the file cannot be read.");
  return {std::istreambuf_iterator<char>(in), {}};
}

// Errors of the reader name line and column inside of the text; the command names them with the file, as compilers do.
std::shared_ptr<jit::Graph> parse(const std::string& text, const std::string& file) {
  try {
    return jit::parse_ir(text);
  } catch (const Error& e) {
    std::smatch place;
    const std::string message = e.what();
    if (!std::regex_search(message, place, std::regex("line (\\d+), column (\\d+)"))) throw;
    throw Error((file == "-" ? "<stdin>" : file) + ":" + place[1].str() + ":" + place[2].str() + ": " + message);
  }
}

// What is lowered: a module until lower-graph or another pass of graphs is reached, then a graph.
struct Work {
  std::optional<jit::Module> module;
  std::shared_ptr<jit::Graph> graph;
  std::vector<IValue> parameters;
  std::string method;

  const std::shared_ptr<jit::Graph>& need_graph() {
    if (!graph) graph = module->get_method(method).graph()->copy();
    return graph;
  }
  jit::Module& need_module(const std::string& pass) {
    CRESSET_CHECK_VALUE(module && !graph, pass, ": a module is required; ",
                        module ? "give it in front of passes of graphs." : "IR text was given.");
    return *module;
  }
};

class Lowering {
 public:
  Lowering(const Request& r) : request_(r) {
    for (const std::string& option : r.options) jit::set_lowering_option(pipeline_.lowering, option);
    pipeline_.lowering.disabled_passes.insert(pipeline_.lowering.disabled_passes.end(), r.disabled.begin(), r.disabled.end());
    pipeline_.only = r.only;
    pipeline_.stop_after = r.stop_after;
    pipeline_.dump_before = r.dump_before;
    pipeline_.dump_after = r.dump_after;
    if (r.check) pipeline_.check_with = example_inputs(r.inputs);
    pipeline_.report = [this](const jit::PassReport& report) { this->report(report); };
  }

  int run() {
    const std::string bytes = read_all(request_.file);
    work_.method = request_.method;
    if (bytes.starts_with("PK")) {
      jit::ExtraFilesMap none;
      work_.module = jit::load_from_buffer(bytes, std::nullopt, none);
    } else {
      work_.graph = parse(bytes, request_.file);
      work_.graph->lint();
    }
    if (request_.bisect) return bisect();
    if (request_.passes.empty() && work_.module)
      lower_module();
    else
      run_graph_passes();
    const jit::PrintOptions print{.source_ranges = true, .constants = request_.constants};
    std::printf("%s", work_.need_graph()->toString(print).c_str());
    if (!request_.html.empty()) write_page(request_.html, request_.file, steps_);
    return 0;
  }

 private:
  void lower_module() {
    before_ = work_.module->get_method(work_.method).graph()->toString(kWithoutConstants);
    jit::LoweredModule lowered = jit::lower(*work_.module, work_.method, pipeline_);
    work_.graph = std::move(lowered.graph);
  }

  // Passes one by one, because those of modules may stand among them.
  void run_graph_passes() {
    const std::vector<std::string> names = request_.passes.empty() ? jit::lowering_passes() : request_.passes;
    std::vector<std::string> pending;
    const auto flush = [&] {
      if (pending.empty()) return;
      before_ = work_.need_graph()->toString(kWithoutConstants);
      jit::PassContext context{.graph = work_.need_graph(), .options = pipeline_.lowering, .parameters = work_.parameters};
      jit::run_passes(context, pending, pipeline_);
      work_.parameters = std::move(context.parameters);
      pending.clear();
    };
    for (const std::string& name : names) {
      if (name == kFreeze) {
        flush();
        *work_.module = jit::freeze_module(work_.need_module(name));
      } else if (name == kLowerGraph) {
        flush();
        std::tie(work_.graph, work_.parameters) = jit::lower_graph(work_.need_module(name), work_.method);
      } else {
        pending.push_back(name);
      }
    }
    flush();
  }

  int bisect() {
    std::vector<std::string> names = request_.passes.empty() ? jit::lowering_passes() : request_.passes;
    std::shared_ptr<jit::Graph> graph = work_.graph;
    std::vector<IValue> inputs = example_inputs(request_.inputs);
    if (!graph) {
      std::vector<IValue> parameters;
      std::tie(graph, parameters) = jit::lower_graph(jit::freeze_module(*work_.module), work_.method);
      inputs.insert(inputs.end(), parameters.begin(), parameters.end());
    }
    pipeline_.report = {};
    const auto found = jit::bisect_passes(graph, names, inputs, pipeline_);
    if (!found) {
      std::printf("no pass changes the answer on these inputs\n");
      return 0;
    }
    std::printf("%zu %s: %s\n", found->index, found->pass.c_str(), found->what.c_str());
    return 1;
  }

  void report(const jit::PassReport& r) {
    if (request_.times) std::fprintf(stderr, "%8.3f ms  %s%s\n", r.seconds * 1e3, r.pass->name.c_str(), r.changed ? " (changed)" : "");
    if (request_.html.empty()) return;
    Step step{r.pass->command_name(), r.pass->summary, r.changed, r.seconds, {}, before_, {}};
    for (const jit::PassNote& n : r.notes) step.notes.push_back(std::string(to_string(n.log_level())) + ": " + n.str());
    step.after = r.graph->toString(kWithoutConstants);
    before_ = step.after;
    steps_.push_back(std::move(step));
  }

  static constexpr jit::PrintOptions kWithoutConstants{.source_ranges = true, .constants = false};
  const Request& request_;
  jit::PipelineOptions pipeline_;
  Work work_;
  std::string before_;
  std::vector<Step> steps_;
};

}  // namespace

void add_lower(CLI::App& app, Shared& shared) {
  auto r = std::make_shared<Request>();
  CLI::App* command = app.add_subcommand("lower", "runs the lowering phase or single passes, e.g. lower --pass fuse-linear in.ir");
  // One value each time, so that the file may stand behind them; commas separate several.
  const auto names = [&](const char* name, std::vector<std::string>& into, const char* what) {
    command->add_option(name, into, what)->allow_extra_args(false)->delimiter(',');
  };
  command->add_option("file", r->file, "IR text or an archive; - is standard input")->capture_default_str();
  names("--pass", r->passes, "passes to run, in this order, e.g. fuse-linear,dce; without any: the whole phase");
  names("--only", r->only, "of the passes that would run, only these");
  names("--disable", r->disabled, "passes that do not run");
  command->add_option("--stop-after", r->stop_after, "the last pass to run");
  command->add_option("--method", r->method, "the method of a module")->capture_default_str();
  command->add_option("--option", r->options, "options of passes, name=value; --list-options names them")->allow_extra_args(false);
  command->add_option("--log", r->log, "internal_error, error, warning, info, debug or graph")->capture_default_str();
  names("--dump-before", r->dump_before, "with --log graph: print the graph in front of these passes");
  names("--dump-after", r->dump_after, "with --log graph: print the graph behind these passes only");
  command->add_option("--input", r->inputs, "an example input for --check and --bisect: float32[2,3], 3, 1.5, true")
      ->allow_extra_args(false);
  command->add_option("--html", r->html, "write a page that steps through the passes");
  command->add_flag("--check", r->check, "run the graph on the inputs before and behind each pass; other answers are errors");
  command->add_flag("--bisect", r->bisect, "name the first pass that changes the answer on the inputs");
  command->add_flag("--list", r->list, "list the passes");
  command->add_flag("--colour", r->colour, "colour messages");
  command->add_flag("--times", r->times, "print how long each pass takes");
  command->add_flag("!--no-constants", r->constants, "leave the contents of tensors out of the text");
  auto options = std::make_shared<bool>(false);
  command->add_flag("--list-options", *options, "list the options of passes");
  command->callback([r, options, &shared] {
    if (r->list) return print_list();
    if (*options) {
      for (const std::string& name : jit::lowering_option_names()) std::printf("%s\n", name.c_str());
      return;
    }
    const auto& logger = jit::logging::process_logger();
    logger->set_level(jit::logging::level_from(r->log));
    logger->set_colour(r->colour);
    shared.status = Lowering(*r).run();
  });
}

}  // namespace cresset::cli
