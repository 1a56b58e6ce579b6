// Any file as one of NumPy's: either a clear error, or a tensor.
#include <cresset/base/error.h>

#include "cli/npy.h"
#include "file.h"

using namespace cresset;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  try {
    cli::read_npy(fuzz::file_of(data, size));
  } catch (const Error&) {
  }
  return 0;
}
