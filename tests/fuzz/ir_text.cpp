// Any text: either a clear error, or a graph that is well formed and is read back as it was printed.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include <cresset/base/error.h>
#include <cresset/ir/ir_parser.h>

using namespace cresset;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  std::shared_ptr<jit::Graph> graph;
  try {
    graph = jit::parse_ir(text);
    graph->lint();
  } catch (const Error&) {
    return 0;
  }
  const std::string printed = graph->toString();
  if (jit::parse_ir(printed)->toString() != printed) std::abort();
  return 0;
}
