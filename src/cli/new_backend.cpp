// `cresset new-backend mychip`: a folder with a complete backend, the one of backends/minimal under another name.
#include <algorithm>
#include <cctype>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string_view>
#include <utility>
#include <vector>

#include <cresset/base/error.h>
#include <cresset/core/device.h>

#include "cli/commands.h"

// The files of backends/minimal, one behind the other, each after a line "%%FILE path".
asm(".section .rodata\n"
    ".global cresset_backend_files_begin\ncresset_backend_files_begin:\n"
    ".incbin \"" CRESSET_BACKEND_FILES
    "\"\n"
    ".global cresset_backend_files_end\ncresset_backend_files_end:\n"
    ".previous\n");
extern "C" const char cresset_backend_files_begin[], cresset_backend_files_end[];

namespace cresset::cli {
namespace {

constexpr std::string_view kMark = "%%FILE ";

struct NewBackendOptions {
  std::string name;
  std::string folder;
  std::vector<std::string> examples;
};

constexpr std::string_view kExamples[] = {"streams", "events", "memory", "autocast", "rng", "operator", "autograd"};

std::string replaced(std::string_view text, std::string_view from, std::string_view to) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t next = std::min(text.find(from, at), text.size());
    out.append(text.substr(at, next - at));
    if (next < text.size()) out.append(to);
    at = next + (next < text.size() ? from.size() : 0);
  }
  return out;
}

// minimal → mychip, Minimal → Mychip, MINIMAL → MYCHIP.
std::string renamed(std::string_view text, const std::string& name) {
  std::string type = name;
  type[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(type[0])));
  std::string macro = name;
  for (char& c : macro) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return replaced(replaced(replaced(text, "minimal", name), "Minimal", type), "MINIMAL", macro);
}

std::vector<std::pair<std::string, std::string>> files_of(const std::string& name) {
  std::string_view rest(cresset_backend_files_begin, static_cast<std::size_t>(cresset_backend_files_end - cresset_backend_files_begin));
  std::vector<std::pair<std::string, std::string>> out;
  while (rest.substr(0, kMark.size()) == kMark) {
    const std::size_t line = rest.find('\n');
    const std::string_view path = rest.substr(kMark.size(), line - kMark.size());
    rest.remove_prefix(line + 1);
    const std::size_t next = rest.substr(0, kMark.size()) == kMark ? 0 : std::min(rest.find("\n%%FILE ") + 1, rest.size());
    const std::size_t end = next == 0 && rest.find("\n%%FILE ") == std::string_view::npos ? rest.size() : next;
    out.emplace_back(renamed(path, name), renamed(rest.substr(0, end), name));
    rest.remove_prefix(end);
  }
  return out;
}

void check_name(const std::string& name) {
  const bool plain = !name.empty() && std::islower(static_cast<unsigned char>(name[0])) &&
                     std::all_of(name.begin(), name.end(), [](unsigned char c) { return std::islower(c) || std::isdigit(c) || c == '_'; });
  CRESSET_CHECK(plain, "new-backend: a name of small letters, digits and _ was required; '", name, "' was given.");
  for (const char* taken : {"cpu", "meta", "cuda", "xla", "mps", "xpu", "hip", "privateuseone", "privateusetwo", "privateusethree"})
    CRESSET_CHECK(name != taken, "new-backend: '", name, "' is the name of another device. Choose one of your own.");
}

void new_backend(Shared& shared, const NewBackendOptions& options) {
  check_name(options.name);
  const std::filesystem::path folder = options.folder.empty() ? options.name : options.folder;
  CRESSET_CHECK(!std::filesystem::exists(folder), "new-backend: ", folder.string(),
                " is there already. Choose another place with --folder.");
  std::string examples;
  for (const std::string& e : options.examples) {
    CRESSET_CHECK(std::find(std::begin(kExamples), std::end(kExamples), e) != std::end(kExamples),
                  "new-backend: examples are streams, events, memory, autocast, rng, operator and autograd; '", e, "' was given.");
    examples += (examples.empty() ? "" : ";") + e;
  }
  for (const auto& [path, plain] : files_of(options.name)) {
    const std::string text = path == "CMakeLists.txt" ? replaced(plain, "_EXAMPLES \"\"", "_EXAMPLES \"" + examples + "\"") : plain;
    std::filesystem::create_directories((folder / path).parent_path());
    std::ofstream out(folder / path, std::ios::binary);
    out << text;
    CRESSET_CHECK(out.flush(), "new-backend: ", (folder / path).string(), " cannot be written.");
    if (!shared.json) std::printf("%s\n", (folder / path).string().c_str());
  }
  if (!shared.json)
    std::printf("\nBuild and test it:\n  pip install --no-build-isolation %s && pytest %s/tests\n", folder.string().c_str(),
                folder.string().c_str());
}

}  // namespace

void add_new_backend(CLI::App& app, Shared& shared) {
  static NewBackendOptions options;
  auto* command = app.add_subcommand("new-backend", "a folder with a complete device backend to start from");
  command->add_option("name", options.name, "the device's name, as in device strings")->required();
  command->add_option("--folder", options.folder, "where to write it (default: a folder of the name)");
  command->add_option("--with", options.examples, "examples to switch on: streams, events, memory, autocast, rng, operator, autograd")
      ->delimiter(',');
  command->callback([&shared] { new_backend(shared, options); });
}

}  // namespace cresset::cli
