// `cresset launch`, the launcher of ranks, and `cresset bench comm`, which measures communication: programs in Python.
#include "cli/commands.h"
#include "cli/python.h"

namespace cresset::cli {

namespace {
constexpr const char* kLaunch = "import sys; from cresset.distributed import run; sys.exit(run._main())";
constexpr const char* kBenchComm = "import sys; from cresset.distributed import _bench; sys.exit(_bench.main())";
}  // namespace

void run_in_python(const std::vector<std::string>& words) {
  if (words.empty()) return;
  if (words[0] == "conform") run_conform({words.begin() + 1, words.end()});
  if (words[0] == "launch") become_python("launch", kLaunch, {words.begin() + 1, words.end()});
  if (words.size() > 1 && words[0] == "bench" && words[1] == "comm")
    become_python("bench comm", kBenchComm, {words.begin() + 2, words.end()});
}

void add_launch(CLI::App& app, Shared&) {
  CLI::App* command =
      app.add_subcommand("launch", "starts ranks, as torchrun: launch --standalone --nproc-per-node 2 train.py; launch --help");
  command->fallthrough(false)->prefix_command();
  command->callback([command] { become_python("launch", kLaunch, command->remaining()); });
}

}  // namespace cresset::cli
