// `cresset config`: where this installation is, for build systems without CMake or pkg-config.
#include <dlfcn.h>

#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

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

void config(const std::vector<std::string>& keys, const Shared& shared) {
  const std::filesystem::path prefix = library_file().parent_path().parent_path();
  CRESSET_CHECK(keys == std::vector<std::string>{"version"} || std::filesystem::exists(prefix / "include" / "cresset"),
                "config: there are no headers in ", (prefix / "include").string(),
                ", because this program was not run from an installation. Run `cmake --install BUILD --prefix DIR`, then DIR/bin/cresset.");
  nlohmann::ordered_json values;
  values["version"] = CRESSET_VERSION;
  values["prefix"] = prefix.string();
  values["include"] = (prefix / "include").string();
  values["lib"] = (prefix / "lib").string();
  values["cmake"] = (prefix / "lib" / "cmake" / "Cresset").string();
  values["cmake-prefix"] = prefix.string();
  values["compat"] = (prefix / "include" / "cresset_compat").string();
  values["cflags"] = "-std=c++20 -I" + values["include"].get<std::string>();
  values["compat-cflags"] = values["cflags"].get<std::string>() + " -I" + values["compat"].get<std::string>();
  values["libs"] = "-L" + values["lib"].get<std::string>() + " -Wl,-rpath," + values["lib"].get<std::string>() + " " CRESSET_LINK_FLAGS;
  values["ldflags"] = values["libs"];
  if (!keys.empty()) {
    std::string names, line;
    for (const auto& [name, value] : values.items()) names += (names.empty() ? "" : ", ") + name;
    for (const std::string& key : keys) {
      CRESSET_CHECK_VALUE(values.contains(key), "config: one of ", names, " was required; '", key, "' was given.");
      line += (line.empty() ? "" : " ") + values[key].get<std::string>();
    }
    std::printf("%s\n", line.c_str());
  } else if (shared.json) {
    std::printf("%s\n", values.dump(2).c_str());
  } else {
    for (const auto& [name, value] : values.items()) std::printf("%-13s %s\n", name.c_str(), value.get<std::string>().c_str());
  }
}

}  // namespace

void add_config(CLI::App& app, Shared& shared) {
  auto keys = std::make_shared<std::vector<std::string>>();
  CLI::App* command = app.add_subcommand("config", "where headers and library are, e.g. g++ f.cpp $(cresset config --cflags --ldflags)");
  command->add_option("keys", *keys, "these values alone, on one line");
  // The spelling of other projects' config programs: --cflags --ldflags.
  for (const char* name : {"cflags", "compat-cflags", "libs", "ldflags", "cmake-prefix"})
    command->add_flag_callback(std::string("--") + name, [keys, name] { keys->push_back(name); }, std::string("the value of ") + name);
  command->callback([keys, &shared] { config(*keys, shared); });
}

}  // namespace cresset::cli
