// The `cresset` command: parses, runs one subcommand, and turns exceptions into messages and exit status 1.
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <iostream>

#include <cresset/base/error.h>
#include <cresset/version.h>

#include "cli/commands.h"

namespace {
int output_failed() {
  std::fprintf(stderr, "cresset: the output cannot be written: %s.\n", std::strerror(errno));
  return 1;
}
}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Cresset: a tensor runtime to mount operators, gradients, devices and passes on.", "cresset"};
  app.set_version_flag("--version", CRESSET_VERSION);
  app.require_subcommand(1);
  app.fallthrough();
  cresset::cli::Shared shared;
  app.add_flag("--json", shared.json, "print JSON");
  app.add_flag("-v,--verbose", shared.verbose, "print more");
  app.add_option("--device", shared.device, "device of arguments that name none")->capture_default_str();
  cresset::cli::add_bench(app, shared);
  cresset::cli::add_config(app, shared);
  cresset::cli::add_conform(app, shared);
  cresset::cli::add_doctor(app, shared);
  cresset::cli::add_explain(app, shared);
  cresset::cli::add_compile(app, shared);
  cresset::cli::add_launch(app, shared);
  cresset::cli::add_lower(app, shared);
  cresset::cli::add_new_backend(app, shared);
  cresset::cli::add_ops(app, shared);
  cresset::cli::add_partition(app, shared);
  cresset::cli::add_run(app, shared);
  cresset::cli::add_show(app, shared);
  try {
    // All that follows is for the Python program, its --help and --json included.
    cresset::cli::run_in_python({argv + 1, argv + argc});
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    const int status = app.exit(e);
    std::cout.flush();
    return std::cout ? status : output_failed();
  } catch (const std::exception& e) {
    std::fprintf(stderr, "cresset: %s\n", e.what());
    return 1;
  }
  // A full disk is not noticed before the last of the output has gone there.
  if (std::fflush(stdout) != 0 || std::ferror(stdout)) return output_failed();
  return shared.status;
}
