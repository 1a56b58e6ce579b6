// `cresset conform` and `cresset ops --needed-by`: both are written in Python, which runs in the place of this program.
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>

#include <cresset/base/error.h>

#include "cli/commands.h"
#include "cli/python.h"

namespace cresset::cli {
namespace {

constexpr const char* kProgram = R"(
import sys
try:
    from cresset.conform.__main__ import main
except ModuleNotFoundError as error:
    if (error.name or "").partition(".")[0] != "cresset":
        raise
    sys.exit(f"cresset conform: the Python package cresset was required; {sys.executable} does not have it.\n"
             "Next: pip install the wheel of this version, or set CRESSET_PYTHON to a Python that has it.")
sys.exit(main())
)";

}  // namespace

std::string python() {
  if (const char* chosen = std::getenv("CRESSET_PYTHON"); chosen && *chosen) return chosen;
  std::error_code ignored;
  const std::filesystem::path beside = std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path() / "python3";
  return std::filesystem::exists(beside, ignored) ? beside.string() : "python3";
}

void run_conform(const std::vector<std::string>& arguments) {
  const std::string interpreter = python();
  std::vector<const char*> argv = {interpreter.c_str(), "-c", kProgram};
  for (const std::string& a : arguments) argv.push_back(a.c_str());
  argv.push_back(nullptr);
  std::fflush(nullptr);
  ::execvp(interpreter.c_str(), const_cast<char* const*>(argv.data()));
  CRESSET_THROW(Error, "conform: Python was required; ", interpreter, " does not start: ", std::strerror(errno),
                ".\nNext: install Python 3.11 or newer, or set CRESSET_PYTHON to one.");
}

void add_conform(CLI::App& app, Shared& shared) {
  CLI::App* command = app.add_subcommand("conform", "compare a device with the CPU, operator by operator; conform --help says more");
  command->fallthrough(false)->prefix_command();
  command->callback([command, &shared] {
    std::vector<std::string> arguments = {"--device", shared.device};
    if (shared.json) arguments.push_back("--json");
    if (shared.verbose) arguments.push_back("--verbose");
    for (const std::string& a : command->remaining()) arguments.push_back(a);
    run_conform(arguments);
  });
}

}  // namespace cresset::cli
