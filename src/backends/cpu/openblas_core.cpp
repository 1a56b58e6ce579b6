// Kernels of OpenBLAS for this processor. Libraries that are older than a processor do not know its model, and take kernels without AVX for
// it (0.3.21 on Xeons of 2023: a fifth of the speed). What the processor can do is known here, and OpenBLAS chooses again by its name.
//
// It has to happen before anybody multiplies, so it is done while this library is loaded. OPENBLAS_CORETYPE of the user's is left alone.
#include <cblas.h>
#include <dlfcn.h>

#include <cstdlib>
#include <string>
#include <string_view>

#include "backends/cpu/isa.h"

namespace cresset::cpu {
namespace {

constexpr const char* kVariable = "OPENBLAS_CORETYPE";

// OpenBLAS' names of kernels without AVX2.
bool is_old(std::string_view core) {
  for (const std::string_view name :
       {"Katmai", "Coppermine", "Northwood",    "Prescott",  "Banias", "Atom",   "Core2",       "Penryn",    "Dunnington", "Nehalem",
        "Athlon", "Opteron",    "Opteron_SSE3", "Barcelona", "Nano",   "Bobcat", "Sandybridge", "Bulldozer", "Piledriver", "Steamroller"})
    if (core == name) return true;
  return false;
}

// What this processor is called there; null where the choice is left to the library.
const char* core_of_processor() {
#if defined(__x86_64__)
  const std::string_view level = isa_name(isa());
  return level == "avx512" ? "SkylakeX" : level == "avx2" ? "Haswell" : nullptr;
#else
  return nullptr;
#endif
}

void choose_again() noexcept {
  try {
    const char* const core = core_of_processor();
    if (!core || std::getenv(kVariable) || !is_old(openblas_get_corename())) return;
    // Of builds that have kernels for several processors; another library of the same interface has no such functions.
    const auto function = [](const char* name) { return reinterpret_cast<void (*)()>(dlsym(RTLD_DEFAULT, name)); };
    const auto quit = function("gotoblas_dynamic_quit"), begin = function("gotoblas_dynamic_init");
    if (!quit || !begin || setenv(kVariable, core, 1) != 0) return;
    quit();
    begin();
    unsetenv(kVariable);
  } catch (...) {  // an unknown CRESSET_ISA is told at first use
  }
}

[[maybe_unused]] const bool chosen = (choose_again(), true);

}  // namespace
}  // namespace cresset::cpu
