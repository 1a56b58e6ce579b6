// Any text where a program names something: an equation of einsum, a device, a dispatch key, an operator.
#include <cstdint>
#include <string>
#include <vector>

#include <cresset/base/error.h>
#include <cresset/core/device.h>
#include <cresset/core/dispatch_key_set.h>
#include <cresset/dispatch/function_schema.h>
#include <cresset/ops/functions_creation.h>
#include <cresset/ops/functions_matmul.h>

using namespace cresset;

namespace {
template <class F>
void attempt(const F& f) {
  try {
    f();
  } catch (const Error&) {
  }
}
}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  attempt([&] { Device{text}; });
  attempt([&] { parseDispatchKey(text); });
  attempt([&] { parse_schema_or_name(text); });
  static const std::vector<Tensor> tensors = {cresset::ones({2, 3}), cresset::ones({3, 2}), cresset::ones({2, 2, 3})};
  for (std::size_t n = 1; n <= tensors.size(); ++n) attempt([&] { cresset::einsum(text, {tensors.data(), n}); });
  return 0;
}
