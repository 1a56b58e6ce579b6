// Any source text: either a script error, or functions whose graphs are well formed.
#include <cstdint>
#include <string>

#include <cresset/base/error.h>
#include <cresset/ir/function.h>

using namespace cresset;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  const std::string source(reinterpret_cast<const char*>(data), size);
  const auto unit = std::make_shared<jit::CompilationUnit>();
  try {
    unit->define(source);
  } catch (const Error&) {
    return 0;
  }
  for (const auto& function : unit->functions())
    if (const auto* compiled = dynamic_cast<const jit::GraphFunction*>(function.get())) compiled->graph()->lint();
  return 0;
}
