// Debian's static asmjit can become part of a shared library but for one member, which refers to stderr in a way that only programs can.
// These are the three functions of that member, so that the linker does not take it.
#include <asmjit/core.h>

#include <cstdio>
#include <cstdlib>

ASMJIT_BEGIN_NAMESPACE
namespace DebugUtils {

const char* errorAsString(Error) noexcept { return "asmjit"; }
void debugOutput(const char*) noexcept {}
void assertionFailed(const char* file, int line, const char* message) noexcept {
  std::fprintf(stderr, "%s:%d: %s\n", file, line, message);
  std::abort();
}

}  // namespace DebugUtils
ASMJIT_END_NAMESPACE
