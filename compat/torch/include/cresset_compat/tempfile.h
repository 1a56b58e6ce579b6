// c10/util/tempfile.h: files that live as long as the object that made them.
#pragma once

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

#include <unistd.h>

#include <cresset_compat/macros.h>

namespace c10 {

/// A new file with a name of its own in the folder for such files (TMPDIR, TMP, TEMP or TEMPDIR, else /tmp); removed with the object.
class TempFile {
 public:
  TempFile(std::string name, int fd) : fd(fd), name(std::move(name)) {}
  TempFile(TempFile&& other) noexcept : fd(std::exchange(other.fd, -1)), name(std::exchange(other.name, {})) {}
  TempFile& operator=(TempFile&& other) noexcept {
    std::swap(fd, other.fd);
    std::swap(name, other.name);
    return *this;
  }
  ~TempFile() {
    if (fd >= 0) ::close(fd);
    if (!name.empty()) ::unlink(name.c_str());
  }
  int fd;
  std::string name;
};

inline std::optional<TempFile> try_make_tempfile(std::string_view prefix = "torch-file-") {
  std::string name = "/tmp";
  for (const char* variable : {"TMPDIR", "TMP", "TEMP", "TEMPDIR"}) {
    if (const char* folder = std::getenv(variable); folder && *folder) {
      name = folder;
      break;
    }
  }
  name.append("/").append(prefix).append("XXXXXX");
  const int fd = ::mkstemp(name.data());
  if (fd < 0) return std::nullopt;
  return TempFile(std::move(name), fd);
}
inline TempFile make_tempfile(std::string_view prefix = "torch-file-") {
  std::optional<TempFile> file = try_make_tempfile(prefix);
  CRESSET_CHECK(file, "Error generating temporary file: ", std::strerror(errno));
  return std::move(*file);
}

}  // namespace c10
