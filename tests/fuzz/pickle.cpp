// Any bytes as a pickle of a script's values: either a clear error, or a value.
#include <cresset/base/error.h>
#include <cresset/ops/functions_creation.h>

#include "ir/archive/unpickler.h"

using namespace cresset;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  jit::UnpicklerHooks hooks;
  hooks.type = [](const std::string&) { return TypePtr(); };
  hooks.object = [](const TypePtr&, IValue state) { return state; };
  hooks.storage = [](const std::string&, ScalarType dtype, const std::string&, int64_t) {
    return cresset::zeros({64}, TensorOptions(dtype));
  };
  try {
    jit::unpickle({reinterpret_cast<const char*>(data), size}, "input", hooks);
  } catch (const Error&) {
  }
  return 0;
}
