// The loops of pool_loops.h. Compiled once for each instruction set, with CRESSET_ISA_NAMESPACE defined as its name.
#include "backends/cpu/pool_loops.h"

#include "backends/cpu/pointwise_loops.h"

namespace cresset::cpu::CRESSET_ISA_NAMESPACE {
namespace {

void max(const float* x, int32_t place, float* value, int32_t* best, int64_t n) {
  CRESSET_POINTWISE_FOR(i, n) {
    const bool keep = x[i] <= value[i] || (value[i] != value[i] && x[i] == x[i]);
    value[i] = keep ? value[i] : x[i];
    best[i] = keep ? best[i] : place;
  }
}
void add(const float* x, float* sum, int64_t n) { CRESSET_POINTWISE_FOR(i, n) sum[i] += x[i]; }
void divide(const float* sum, float divisor, float* y, int64_t n) { CRESSET_POINTWISE_FOR(i, n) y[i] = sum[i] / divisor; }

constexpr PoolLoops loops = {max, add, divide};

}  // namespace

const PoolLoops& pool_loops() { return loops; }

}  // namespace cresset::cpu::CRESSET_ISA_NAMESPACE
