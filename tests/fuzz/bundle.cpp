#include "bundle.h"

#include <set>
#include <sstream>
#include <string_view>

#include "ir/archive/zip_archive.h"

namespace cresset::fuzz {

std::string archive_of(const uint8_t* data, std::size_t size) {
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  static constexpr std::string_view head = "=== ";
  if (!rest.starts_with(head)) return std::string(rest);
  std::ostringstream out;
  jit::ZipWriter zip(out);
  std::set<std::string> names;
  while (rest.starts_with(head)) {
    const std::size_t line = std::min(rest.find('\n'), rest.size());
    std::string name(rest.substr(head.size(), line - head.size()));
    rest.remove_prefix(std::min(line + 1, rest.size()));
    const std::size_t next = rest.find("\n=== ");
    const std::string_view content = rest.substr(0, next);
    if (names.insert(name).second && !name.empty()) zip.add(name, content);
    rest.remove_prefix(next == std::string_view::npos ? rest.size() : next + 1);
  }
  zip.finish();
  return std::move(out).str();
}

}  // namespace cresset::fuzz
