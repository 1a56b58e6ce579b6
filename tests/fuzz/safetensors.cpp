// Any file as one of safetensors: either a clear error, or tensors.
#include <cresset/base/error.h>
#include <cresset/nn/safetensors.h>

#include "file.h"

using namespace cresset;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  try {
    load_safetensors(fuzz::file_of(data, size));
  } catch (const Error&) {
  }
  return 0;
}
