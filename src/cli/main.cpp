// The `cresset` command: parses, runs one subcommand, and turns exceptions into messages and exit status 1.
#include <cstdio>
#include <exception>
#include <string_view>

#include <cresset/base/error.h>
#include <cresset/version.h>

#include "cli/commands.h"

int main(int argc, char** argv) {
  CLI::App app{"Cresset: a tensor runtime to mount operators, gradients, devices and passes on.", "cresset"};
  app.set_version_flag("--version", CRESSET_VERSION);
  app.require_subcommand(1);
  app.fallthrough();
  cresset::cli::Shared shared;
  app.add_flag("--json", shared.json, "print JSON");
  app.add_flag("-v,--verbose", shared.verbose, "print more");
  app.add_option("--device", shared.device, "device of arguments that name none")->capture_default_str();
  cresset::cli::add_config(app, shared);
  cresset::cli::add_conform(app, shared);
  cresset::cli::add_doctor(app, shared);
  cresset::cli::add_explain(app, shared);
  cresset::cli::add_lower(app, shared);
  cresset::cli::add_new_backend(app, shared);
  cresset::cli::add_ops(app, shared);
  cresset::cli::add_run(app, shared);
  cresset::cli::add_show(app, shared);
  try {
    // All that follows is for the Python program, its --help and --json included.
    if (argc > 1 && std::string_view(argv[1]) == "conform") cresset::cli::run_conform({argv + 2, argv + argc});
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "cresset: %s\n", e.what());
    return 1;
  }
  return shared.status;
}
