// The loops of narrow_loops.h. Compiled once for each instruction set, with CRESSET_ISA_NAMESPACE defined as its name.
#include "backends/cpu/narrow_loops.h"

#include <limits>

#include "backends/cpu/isa_begin.h"

namespace cresset::cpu::CRESSET_ISA_NAMESPACE {
namespace {

template <class T>
void narrow(const float* __restrict x, T* __restrict y, int64_t n, float factor) {
  constexpr auto kLeast = static_cast<float>(std::numeric_limits<T>::min()), kMost = static_cast<float>(std::numeric_limits<T>::max());
  for (int64_t i = 0; i < n; ++i) {
    float v = x[i] * factor;
    v = v > kLeast ? v : kLeast;
    v = v < kMost ? v : kMost;
    y[i] = static_cast<T>(static_cast<int32_t>(__builtin_rintf(v)));
  }
}

}  // namespace

const NarrowLoops& narrow_loops() {
  static constexpr NarrowLoops loops{&narrow<uint8_t>, &narrow<int8_t>};
  return loops;
}

}  // namespace cresset::cpu::CRESSET_ISA_NAMESPACE
