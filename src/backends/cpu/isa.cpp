// Choice of the instruction set.
#include "backends/cpu/isa.h"

#include <cresset/dispatch/library.h>

#include <cstdlib>
#include <string>

#include <cresset/base/error.h>

#include "backends/cpu/convert.h"

namespace cresset::cpu {
namespace {

Isa best_isa() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512cd") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
    return Isa::Avx512;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("f16c"))
    return Isa::Avx2;
#endif
  return Isa::Baseline;
}

Isa choose() {
  const Isa best = best_isa();
  const char* wanted = std::getenv("CRESSET_ISA");
  if (!wanted || !*wanted) return best;
  for (int i = 0; i < kNumIsas; ++i) {
    const Isa candidate = static_cast<Isa>(i);
    if (std::string(wanted) != isa_name(candidate)) continue;
    CRESSET_CHECK(candidate <= best, "CRESSET_ISA: ", wanted, " is not supported by this processor; the best is ", isa_name(best), ".");
    return candidate;
  }
  CRESSET_THROW(Error, "CRESSET_ISA: baseline, avx2 or avx512 was required; given '", wanted, "'.");
}

}  // namespace

Isa isa() {
  static const Isa chosen = choose();
  return chosen;
}

const char* isa_name(Isa isa) {
  constexpr const char* names[] = {"baseline", "avx2", "avx512"};
  return names[static_cast<int>(isa)];
}

const ConvertTable& convert_table() {
#if defined(__x86_64__)
  static const ConvertTable* const table[] = {&baseline::convert_functions, &avx2::convert_functions, &avx512::convert_functions};
  return *table[static_cast<int>(isa())];
#else
  return baseline::convert_functions;
#endif
}

}  // namespace cresset::cpu

namespace {
// What `cresset doctor` and Python ask for without knowing this backend.
CRESSET_LIBRARY_FRAGMENT(cresset, m) {
  m.def("cpu_capability() -> str", [] { return std::string(cresset::cpu::isa_name(cresset::cpu::isa())); });
}
}  // namespace
