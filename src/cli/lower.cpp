// `cresset lower [FILE]`: runs the lowering phase, or single passes, on IR text or on an archive, or on all of them in a folder. The graph
// goes to standard output, all messages to standard error. `cresset diff A B`: how two graphs differ.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <regex>
#include <sstream>

#include <nlohmann/json.hpp>

#include <cresset/ir/archive.h>
#include <cresset/ir/graph_diff.h>
#include <cresset/ir/ir_parser.h>
#include <cresset/ir/lowering.h>

#include "cli/commands.h"
#include "cli/lower_input.h"
#include "cli/lower_page.h"

namespace cresset::cli {
namespace {

struct Request {
  std::string file = "-", method = "forward", log = "warning", stop_after, html, output, format = "text";
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
  CRESSET_CHECK(!std::filesystem::is_directory(file), file, ": a file was required; this is a folder.");
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

// What is lowered: a module, or a graph.
struct Work {
  std::optional<jit::Module> module;
  std::shared_ptr<jit::Graph> graph;
};

Work read_work(const std::string& file) {
  const std::string bytes = read_all(file);
  Work work;
  if (bytes.starts_with("PK")) {
    jit::ExtraFilesMap none;
    work.module = jit::load_from_buffer(bytes, std::nullopt, none);
  } else {
    work.graph = parse(bytes, file);
    work.graph->lint();
  }
  return work;
}

void write_file(const std::filesystem::path& file, const std::string& text) {
  if (file.has_parent_path()) std::filesystem::create_directories(file.parent_path());
  std::ofstream out(file, std::ios::binary);
  out << text;
  out.close();
  CRESSET_CHECK(out, file.string(), ": the file cannot be written.");
}

class Lowering {
 public:
  Lowering(const Request& r) : request_(r) {
    for (const std::string& option : r.options) jit::set_lowering_option(pipeline_.lowering, option);
    pipeline_.lowering.disabled_passes.insert(pipeline_.lowering.disabled_passes.end(), r.disabled.begin(), r.disabled.end());
    pipeline_.only = r.only;
    pipeline_.stop_after = r.stop_after;
    pipeline_.dump_before = r.dump_before;
    pipeline_.dump_after = r.dump_after;
    pipeline_.inputs = input_specs(r.inputs);
    if (r.check) pipeline_.check_with = example_inputs(r.inputs);
    pipeline_.report = [this](const jit::PassReport& report) { this->report(report); };
  }

  int run(const std::string& file) {
    file_ = file;
    steps_.clear();
    json_steps_ = nlohmann::ordered_json::array();
    Work work = read_work(file);
    if (request_.bisect) return bisect(work);
    const std::string text = lower(work)->toString({.source_ranges = true, .constants = request_.constants});
    if (!request_.output.empty()) write_file(request_.output, text);
    if (is_json()) {
      nlohmann::ordered_json out = {{"file", file}, {"graph", text}, {"steps", std::move(json_steps_)}};
      if (!request_.output.empty()) out["output"] = request_.output;
      results_.push_back(std::move(out));
    } else if (request_.output.empty()) {
      std::printf("%s", text.c_str());
    }
    if (!request_.html.empty()) write_page(request_.html, file, steps_);
    return 0;
  }

  // Each file of a folder, whatever becomes of the others.
  int run_all(const std::filesystem::path& folder) {
    CRESSET_CHECK_VALUE(request_.html.empty(), "lower: --html is of one file; a folder was given.");
    std::vector<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder))
      if (entry.is_regular_file() && (entry.path().extension() == ".ir" || entry.path().extension() == ".pt"))
        files.push_back(entry.path());
    std::sort(files.begin(), files.end());
    CRESSET_CHECK_VALUE(!files.empty(), folder.string(), ": files .ir or .pt were expected in the folder; there are none.");
    int status = 0;
    const std::string output = request_.output;
    for (const auto& file : files) {
      try {
        if (!output.empty())
          request_.output = (std::filesystem::path(output) / std::filesystem::relative(file, folder).replace_extension(".ir")).string();
        else if (!is_json())
          std::printf("# %s\n", file.c_str());
        status = std::max(status, run(file.string()));
      } catch (const std::exception& e) {
        std::fprintf(stderr, "cresset: %s: %s\n", file.c_str(), e.what());
        if (is_json()) results_.push_back({{"file", file.string()}, {"error", e.what()}});
        status = 1;
      }
    }
    return status;
  }

  bool is_json() const { return request_.format == "json"; }
  const nlohmann::ordered_json& results() const { return results_; }

 private:
  std::shared_ptr<jit::Graph> lower(Work& work) {
    if (work.module) {
      before_ = work.module->get_method(request_.method).graph()->toString(kWithoutConstants);
      return request_.passes.empty() ? jit::lower(*work.module, request_.method, pipeline_).graph
                                     : jit::run_module_passes(*work.module, request_.method, request_.passes, pipeline_).graph;
    }
    before_ = work.graph->toString(kWithoutConstants);
    for (const std::string& name : request_.passes)
      CRESSET_CHECK_VALUE(name != kFreeze && name != kLowerGraph, name, ": a module is required; IR text was given.");
    jit::PassContext context{.graph = work.graph, .options = pipeline_.lowering};
    jit::run_passes(context, request_.passes.empty() ? jit::lowering_passes() : request_.passes, pipeline_);
    return work.graph;
  }

  int bisect(Work& work) {
    std::vector<std::string> names = request_.passes.empty() ? jit::lowering_passes() : request_.passes;
    std::shared_ptr<jit::Graph> graph = work.graph;
    std::vector<IValue> inputs = example_inputs(request_.inputs);
    if (!graph) {
      std::vector<IValue> parameters;
      std::tie(graph, parameters) = jit::lower_graph(jit::freeze_module(*work.module), request_.method);
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
    if (is_json()) {
      nlohmann::ordered_json notes = nlohmann::ordered_json::array();
      for (const jit::PassNote& n : r.notes)
        notes.push_back({{"level", to_string(n.log_level())}, {"place", n.where.known() ? n.where.str() : ""}, {"text", n.text}});
      json_steps_.push_back(
          {{"index", r.index}, {"name", r.pass->name}, {"changed", r.changed}, {"seconds", r.seconds}, {"notes", std::move(notes)}});
    }
    if (request_.html.empty()) return;
    Step step{r.pass->command_name(), r.pass->summary, r.changed, r.seconds, {}, before_, {}};
    for (const jit::PassNote& n : r.notes) step.notes.push_back(std::string(to_string(n.log_level())) + ": " + n.str());
    step.after = r.graph->toString(kWithoutConstants);
    before_ = step.after;
    steps_.push_back(std::move(step));
  }

  static constexpr jit::PrintOptions kWithoutConstants{.source_ranges = true, .constants = false};
  Request request_;
  jit::PipelineOptions pipeline_;
  std::string file_, before_;
  std::vector<Step> steps_;
  nlohmann::ordered_json json_steps_, results_ = nlohmann::ordered_json::array();
};

int run_lower(const Request& r) {
  Lowering lowering(r);
  const bool folder = r.file != "-" && std::filesystem::is_directory(r.file);
  const int status = folder ? lowering.run_all(r.file) : lowering.run(r.file);
  if (lowering.is_json() && !r.bisect) std::printf("%s\n", (folder ? lowering.results() : lowering.results().at(0)).dump(2).c_str());
  return status;
}

// The graph of a file: IR text, or a module's method with all calls inlined.
std::shared_ptr<jit::Graph> graph_of(const std::string& file, const std::string& method) {
  Work work = read_work(file);
  if (!work.module) return work.graph;
  const auto graph = work.module->get_method(method).graph()->copy();
  jit::inline_calls(graph);
  return graph;
}

int run_diff(const std::string& before, const std::string& after, const std::string& method, bool json) {
  const jit::GraphDiff diff = jit::diff_graphs(*graph_of(before, method), *graph_of(after, method));
  if (json) {
    static const char* kinds[] = {"same", "changed", "gone", "new"};
    nlohmann::ordered_json lines = nlohmann::ordered_json::array();
    for (const jit::DiffLine& l : diff.lines)
      lines.push_back({{"kind", kinds[static_cast<std::size_t>(l.kind)]}, {"before", l.before}, {"after", l.after}});
    const nlohmann::ordered_json out = {{"equal", diff.equal()}, {"same", diff.same}, {"changed", diff.changed},
                                        {"gone", diff.gone},     {"new", diff.fresh}, {"lines", std::move(lines)}};
    std::printf("%s\n", out.dump(2).c_str());
  } else {
    if (!diff.equal()) std::printf("%s", diff.str().c_str());
    std::printf("%zu nodes are the same, %zu changed, %zu gone, %zu new\n", diff.same, diff.changed, diff.gone, diff.fresh);
  }
  return diff.equal() ? 0 : 1;
}

}  // namespace

void add_lower(CLI::App& app, Shared& shared) {
  auto r = std::make_shared<Request>();
  CLI::App* command = app.add_subcommand("lower", "runs the lowering phase or single passes, e.g. lower --pass fuse-linear in.ir");
  // One value each time, so that the file may stand behind them; commas separate several.
  const auto names = [&](const char* name, std::vector<std::string>& into, const char* what) {
    command->add_option(name, into, what)->allow_extra_args(false)->delimiter(',');
  };
  command->add_option("file", r->file, "IR text or an archive, or a folder of .ir and .pt files; - is standard input")
      ->capture_default_str();
  names("--pass", r->passes, "passes to run, in this order, e.g. fuse-linear,dce; without any: the whole phase");
  names("--only", r->only, "of the passes that would run, only these");
  names("--disable", r->disabled, "passes that do not run");
  command->add_option("--stop-after", r->stop_after, "the last pass to run");
  command->add_option("--method", r->method, "the method of a module")->capture_default_str();
  command->add_option("--option", r->options, "options of passes, name=value; --list-options names them")->allow_extra_args(false);
  command->add_option("--log", r->log, "internal_error, error, warning, info, debug or graph")->capture_default_str();
  names("--dump-before", r->dump_before, "with --log graph: print the graph in front of these passes");
  names("--dump-after", r->dump_after, "with --log graph: print the graph behind these passes only");
  command
      ->add_option("--input", r->inputs,
                   "an input: (1,3,224,224)@f32 or [(min);(opt);(max)]@f32 types the graph; float32[2,3], 3, 1.5, true are examples for "
                   "--check and --bisect")
      ->allow_extra_args(false);
  command->add_option("--output", r->output, "write the graph to this file; for a folder, to this folder");
  command->add_option("--format", r->format, "text or json: the graph with a report of all passes")->check(CLI::IsMember({"text", "json"}));
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
    if (shared.json) r->format = "json";
    shared.status = run_lower(*r);
  });
  struct Two {
    std::string before, after, method = "forward";
    bool json = false;
  };
  auto two = std::make_shared<Two>();
  CLI::App* diff = app.add_subcommand("diff", "how two graphs differ, node by node; exit status 1 where they do");
  diff->add_option("before", two->before, "IR text or an archive")->required();
  diff->add_option("after", two->after, "IR text or an archive; - is standard input")->required();
  diff->add_option("--method", two->method, "the method of a module")->capture_default_str();
  diff->add_option_function<std::string>(
          "--format", [two](const std::string& f) { two->json = f == "json"; }, "text or json")
      ->check(CLI::IsMember({"text", "json"}));
  diff->callback([two, &shared] { shared.status = run_diff(two->before, two->after, two->method, two->json || shared.json); });
}

}  // namespace cresset::cli
