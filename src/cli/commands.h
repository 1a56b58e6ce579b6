// The subcommands of `cresset`. Each adds itself to the parser and sets the exit status through `status`.
#pragma once

#include <CLI/CLI.hpp>

namespace cresset::cli {

/// Options that all subcommands share.
struct Shared {
  bool json = false;
  bool verbose = false;
  std::string device = "cpu";
  int status = 0;
};

void add_bench(CLI::App& app, Shared& shared);
void add_compile(CLI::App& app, Shared& shared);
void add_config(CLI::App& app, Shared& shared);
void add_conform(CLI::App& app, Shared& shared);
void add_doctor(CLI::App& app, Shared& shared);
void add_explain(CLI::App& app, Shared& shared);
void add_launch(CLI::App& app, Shared& shared);
void add_lower(CLI::App& app, Shared& shared);
void add_new_backend(CLI::App& app, Shared& shared);
void add_ops(CLI::App& app, Shared& shared);
void add_partition(CLI::App& app, Shared& shared);
void add_run(CLI::App& app, Shared& shared);
void add_show(CLI::App& app, Shared& shared);

/// Becomes `python -m cresset.conform ARGUMENT...`; returns only by an exception, where there is no Python.
void run_conform(const std::vector<std::string>& arguments);

/// Becomes the program in Python that a command line names, with all that follows; returns where it names none.
void run_in_python(const std::vector<std::string>& words);

}  // namespace cresset::cli
