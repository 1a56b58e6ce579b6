// `cresset config`: where this installation is, for build systems without CMake or pkg-config.
#include <dlfcn.h>

#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include <cresset/base/error.h>
#include <cresset/version.h>

#include "cli/commands.h"

namespace cresset::cli {
namespace {

// libcresset.so as it was loaded. It is in PREFIX/lib; PREFIX is that of `cmake --install`, or the package's folder in a wheel.
std::filesystem::path library_file() {
  Dl_info info{};
  CRESSET_INTERNAL_ASSERT(dladdr(reinterpret_cast<const void*>(&set_warning_handler), &info) != 0);
  return std::filesystem::canonical(info.dli_fname);
}

void config(const std::string& key, const Shared& shared) {
  const std::filesystem::path prefix = library_file().parent_path().parent_path();
  CRESSET_CHECK(key == "version" || std::filesystem::exists(prefix / "include" / "cresset"), "config: there are no headers in ",
                (prefix / "include").string(),
                ", because this program was not run from an installation. Run `cmake --install BUILD --prefix DIR`, then DIR/bin/cresset.");
  nlohmann::ordered_json values;
  values["version"] = CRESSET_VERSION;
  values["prefix"] = prefix.string();
  values["include"] = (prefix / "include").string();
  values["lib"] = (prefix / "lib").string();
  values["cmake"] = (prefix / "lib" / "cmake" / "Cresset").string();
  values["cflags"] = "-std=c++20 -I" + values["include"].get<std::string>();
  values["libs"] = "-L" + values["lib"].get<std::string>() + " -Wl,-rpath," + values["lib"].get<std::string>() + " -lcresset";
  if (!key.empty()) {
    CRESSET_CHECK_VALUE(values.contains(key), "config: one of version, prefix, include, lib, cmake, cflags, libs was required; '", key,
                        "' was given.");
    std::printf("%s\n", values[key].get<std::string>().c_str());
  } else if (shared.json) {
    std::printf("%s\n", values.dump(2).c_str());
  } else {
    for (const auto& [name, value] : values.items()) std::printf("%-8s %s\n", name.c_str(), value.get<std::string>().c_str());
  }
}

}  // namespace

void add_config(CLI::App& app, Shared& shared) {
  auto key = std::make_shared<std::string>();
  CLI::App* command =
      app.add_subcommand("config", "where headers and library are, e.g. g++ $(cresset config cflags) f.cpp $(cresset config libs)");
  command->add_option("key", *key, "one value alone");
  command->callback([key, &shared] { config(*key, shared); });
}

}  // namespace cresset::cli
