// Any text as an operator's schema: either a clear error, or a schema that is read back as it was printed.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include <cresset/base/error.h>
#include <cresset/dispatch/function_schema.h>

using namespace cresset;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  std::string printed;
  try {
    printed = parse_schema({reinterpret_cast<const char*>(data), size}).str();
  } catch (const Error&) {
    return 0;
  }
  if (parse_schema(printed).str() != printed) std::abort();
  return 0;
}
