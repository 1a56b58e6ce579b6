// What `cresset compile` and `cresset partition` have in common.
#pragma once

#include <string>
#include <vector>

#include <cresset/engine/compile.h>
#include <CLI/CLI.hpp>

namespace cresset::cli {

struct CompileRequest {
  std::string in, method = "forward";
  std::vector<std::string> specs, modules, precisions, libraries;
  engine::CompileOptions options;
};

void add_compile_options(CLI::App* command, CompileRequest& r);
/// Loads shared libraries that register operators, backends and converters, before any model is read.
void load_libraries(const CompileRequest& r);
/// The options with specifications and names read. Raises with what cannot be read.
engine::CompileOptions compile_options(const CompileRequest& r);

}  // namespace cresset::cli
