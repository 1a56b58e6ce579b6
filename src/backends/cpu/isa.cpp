// Choice of the instruction set.
#include "backends/cpu/isa.h"

#include <cresset/dispatch/library.h>

#include <cstdlib>
#include <iterator>
#include <string>

#include <cresset/base/error.h>

#include "backends/cpu/convert.h"

namespace cresset::cpu {
namespace {

struct IsaRow {
  const char* name;
  bool (*supported)();
};
constexpr IsaRow kRows[] = {CRESSET_ISA_ROWS};
static_assert(std::size(kRows) == kNumIsas);

// The sets are ordered: a processor without one has none of those behind it.
Isa best_of_processor() {
  int best = 0;
  while (best + 1 < kNumIsas && kRows[best + 1].supported()) ++best;
  return static_cast<Isa>(best);
}

// "avx2 or avx512"
std::string compiled_names() {
  std::string out;
  for (const Isa i : kCompiledIsas) out += (out.empty() ? "" : " or ") + std::string(isa_name(i));
  return out;
}

Isa choose() {
  const Isa best = best_of_processor();
  const char* wanted = std::getenv("CRESSET_ISA");
  const bool any = !wanted || !*wanted;
  const Isa* chosen = nullptr;
  for (const Isa& candidate : kCompiledIsas) {
    if (!any && std::string(wanted) != isa_name(candidate)) continue;
    CRESSET_CHECK(any || candidate <= best, "CRESSET_ISA: ", wanted, " is not supported by this processor; the best is ", isa_name(best),
                  ".");
    if (candidate <= best) chosen = &candidate;
  }
  CRESSET_CHECK(any || chosen, "CRESSET_ISA: ", compiled_names(), " was required; given '", wanted, "'.");
  CRESSET_CHECK(chosen, "cresset: the kernels of this build are for ", compiled_names(), "; this processor has no more than ",
                isa_name(best), ". Build with -D CRESSET_CPU_ISAS=all.");
  return *chosen;
}

}  // namespace

Isa isa() {
  static const Isa chosen = choose();
  return chosen;
}

const char* isa_name(Isa isa) { return kRows[static_cast<int>(isa)].name; }

const ConvertTable& convert_table() {
  static const ConvertTable& table = CRESSET_FOR_THIS_PROCESSOR(convert_functions);
  return table;
}

}  // namespace cresset::cpu

namespace {
// What `cresset doctor` and Python ask for without knowing this backend.
CRESSET_LIBRARY_FRAGMENT(cresset, m) {
  m.def("cpu_capability() -> str", [] { return std::string(cresset::cpu::isa_name(cresset::cpu::isa())); });
}
}  // namespace
