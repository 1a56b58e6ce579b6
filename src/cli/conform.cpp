// `cresset conform` and `cresset ops --needed-by`: both are written in Python, which runs in the place of this program.
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <vector>

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

namespace {

std::string output_of(const std::string& interpreter, const char* program, const std::string& argument) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return "";
  const std::array<const char*, 5> argv = {interpreter.c_str(), "-c", program, argument.c_str(), nullptr};
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  pid_t child = 0;
  const bool started = posix_spawnp(&child, interpreter.c_str(), &actions, nullptr, const_cast<char* const*>(argv.data()), environ) == 0;
  posix_spawn_file_actions_destroy(&actions);
  ::close(ends[1]);
  std::string said;
  char part[512];
  for (ssize_t n; started && ((n = ::read(ends[0], part, sizeof part)) > 0 || (n < 0 && errno == EINTR));)
    if (n > 0) said.append(part, static_cast<std::size_t>(n));
  ::close(ends[0]);
  if (started)
    while (::waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
    }
  return said;
}

bool has_package(const std::string& interpreter) {
  return output_of(interpreter, "import importlib.util; print(importlib.util.find_spec('cresset') is not None)", "") == "True\n";
}

// Of the interpreters that are there, the first that has the package; the first when none has it.
std::string find_python() {
  std::error_code ignored;
  std::vector<std::string> there;
  const auto consider = [&](const std::filesystem::path& path) {
    if (std::filesystem::exists(path, ignored)) there.push_back(path.string());
  };
  consider(std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path() / "python3");
  if (const char* environment = std::getenv("VIRTUAL_ENV"); environment && *environment)
    consider(std::filesystem::path(environment) / "bin/python3");
  there.push_back("python3");
  consider(CRESSET_BUILD_INTERPRETER);
  for (const std::string& interpreter : there)
    if (has_package(interpreter)) return interpreter;
  return there.front();
}

}  // namespace

std::string python() {
  if (const char* chosen = std::getenv("CRESSET_PYTHON"); chosen && *chosen) return chosen;
  static const std::string found = find_python();
  return found;
}

std::string python_output(const char* program, const std::string& argument) { return output_of(python(), program, argument); }

void become_python(const std::string& command, const char* program, const std::vector<std::string>& arguments) {
  const std::string interpreter = python();
  std::vector<const char*> argv = {interpreter.c_str(), "-c", program};
  for (const std::string& a : arguments) argv.push_back(a.c_str());
  argv.push_back(nullptr);
  std::fflush(nullptr);
  ::execvp(interpreter.c_str(), const_cast<char* const*>(argv.data()));
  CRESSET_THROW(Error, command, ": Python was required; ", interpreter, " does not start: ", std::strerror(errno),
                ".\nNext: install Python 3.11 or newer, or set CRESSET_PYTHON to one.");
}

void run_conform(const std::vector<std::string>& arguments) { become_python("conform", kProgram, arguments); }

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
