// Any file as an archive of torch.export: either a clear error, or a program whose graph is well formed.
#include <cresset/base/error.h>
#include <cresset/ir/export.h>

#include "bundle.h"

using namespace cresset;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  try {
    jit::load_exported_bytes(fuzz::archive_of(data, size));
  } catch (const Error&) {
  }
  return 0;
}
