// Any file as a script archive: either a clear error, or a module whose graphs are well formed.
#include <cresset/base/error.h>
#include <cresset/ir/archive.h>

#include "bundle.h"

using namespace cresset;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  jit::ExtraFilesMap extra;
  try {
    const jit::Module module = jit::load_from_buffer(fuzz::archive_of(data, size), std::nullopt, extra);
    for (const auto& method : module.get_methods()) method.graph()->lint();
  } catch (const Error&) {
  }
  return 0;
}
