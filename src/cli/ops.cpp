// `cresset ops`: the operators of this process, their schemas, and the declarations a backend author starts from.
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string_view>

#include <cresset/dispatch/dispatcher.h>

#include "cli/commands.h"

// The generated file, inside of the program: no second copy to find at run time.
asm(".section .rodata\n"
    ".global cresset_declarations_begin\ncresset_declarations_begin:\n"
    ".incbin \"" CRESSET_DECLARATIONS_FILE
    "\"\n"
    ".global cresset_declarations_end\ncresset_declarations_end:\n"
    ".previous\n");
extern "C" const char cresset_declarations_begin[], cresset_declarations_end[];

namespace cresset::cli {
namespace {

struct OpsOptions {
  bool declarations = false;
  bool needed = false;
  std::string filter;
  std::string model;
  std::vector<std::string> backends;
};

void print_declarations(const OpsOptions& options) {
  std::string_view text(cresset_declarations_begin, static_cast<std::size_t>(cresset_declarations_end - cresset_declarations_begin));
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    const bool wanted = line.find(options.filter) != std::string_view::npos &&
                        (!options.needed || line.find("\"dispatch\": \"True\", \"default\": \"False\"") != std::string_view::npos);
    if (wanted) std::printf("%.*s\n", static_cast<int>(line.size()), line.data());
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
}

void list(const OpsOptions& options, const Shared& shared) {
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (const OperatorName& name : Dispatcher::singleton().getAllOpNames()) {
    if (name.str().find(options.filter) == std::string::npos) continue;
    const auto op = Dispatcher::singleton().findSchema(name);
    if (!op) continue;
    if (shared.json)
      all.push_back({{"name", name.str()}, {"schema", op->schema().str()}, {"tags", op->getTags()}});
    else if (shared.verbose)
      std::printf("%s\n%s\n", op->dumpState().c_str(), op->dumpComputedTable().c_str());
    else
      std::printf("%s\n", op->schema().str().c_str());
  }
  if (shared.json) std::printf("%s\n", all.dump(2).c_str());
}

// The operators that a model calls, and how the chosen device runs each.
void needed_by(const OpsOptions& options, const Shared& shared) {
  std::vector<std::string> arguments = {"--needed-by", options.model, "--device", shared.device};
  for (const std::string& backend : options.backends) arguments.insert(arguments.end(), {"--load", backend});
  if (shared.json) arguments.emplace_back("--json");
  run_conform(arguments);
}

void run(const OpsOptions& options, const Shared& shared) {
  if (!options.model.empty())
    needed_by(options, shared);
  else if (options.declarations)
    print_declarations(options);
  else
    list(options, shared);
}

}  // namespace

void add_ops(CLI::App& app, Shared& shared) {
  auto options = std::make_shared<OpsOptions>();
  CLI::App* command = app.add_subcommand("ops", "list operators; -v adds their registrations and tables");
  command->add_option("filter", options->filter, "only names that contain this text");
  command->add_flag("--declarations", options->declarations,
                    "RegistrationDeclarations.h: C++ signature, then schema, dispatch and default");
  command->add_flag("--needed", options->needed, "with --declarations: only those that a backend must provide");
  command->add_option(
      "--needed-by", options->model,
      "only what a model needs, and whether --device has a kernel, derives it or falls back: an example model or a Python file");
  command->add_option("--load", options->backends, "with --needed-by: backend to load first; repeatable")->take_all();
  command->callback([options, &shared] { run(*options, shared); });
}

}  // namespace cresset::cli
