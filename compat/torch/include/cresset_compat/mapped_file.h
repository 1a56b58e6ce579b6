// from_file: a tensor over a file.
#pragma once

#include <cerrno>
#include <cstring>
#include <optional>
#include <string>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cresset/ops/from_blob.h>

namespace cresset {

/// A tensor of `size` elements over a file: what is written to it reaches the file when it is `shared` (the file is made, and made longer,
/// where that is needed), and nobody else otherwise. Raises Error for a file that cannot be opened or is too short.
inline Tensor from_file(const std::string& filename, std::optional<bool> shared = std::nullopt, std::optional<int64_t> size = 0,
                        const TensorOptions& options = {}) {
  const bool writes = shared.value_or(false);
  const int64_t count = size.value_or(0);
  const size_t bytes = static_cast<size_t>(count) * options.dtype().itemsize();
  const int file = ::open(filename.c_str(), writes ? O_RDWR | O_CREAT : O_RDONLY, 0600);
  CRESSET_CHECK(file >= 0, "unable to open file <", filename, "> in ", writes ? "read-write" : "read-only", " mode: ", std::strerror(errno),
                " (", errno, ")");
  struct stat facts {};
  const bool known = ::fstat(file, &facts) == 0;
  const bool fits = known && (static_cast<size_t>(facts.st_size) >= bytes || (writes && ::ftruncate(file, static_cast<off_t>(bytes)) == 0));
  void* data = fits && bytes ? ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, writes ? MAP_SHARED : MAP_PRIVATE, file, 0) : nullptr;
  ::close(file);
  CRESSET_CHECK(fits, "file <", filename, "> size <", known ? facts.st_size : 0, "> is smaller than the required mapping size <", bytes,
                ">");
  CRESSET_CHECK(data != MAP_FAILED, "unable to mmap ", bytes, " bytes from file <", filename, ">: ", std::strerror(errno), " (", errno,
                ")");
  return from_blob(
      data, {count},
      [bytes](void* p) {
        if (p) ::munmap(p, bytes);
      },
      options);
}

}  // namespace cresset
