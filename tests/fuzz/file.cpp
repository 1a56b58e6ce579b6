#include "file.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>

namespace cresset::fuzz {

std::string file_of(const uint8_t* data, std::size_t size) {
  static const int file = memfd_create("input", 0);
  if (file < 0 || ftruncate(file, 0) != 0 || pwrite(file, data, size, 0) != static_cast<ssize_t>(size)) std::abort();
  return "/proc/self/fd/" + std::to_string(file);
}

}  // namespace cresset::fuzz
