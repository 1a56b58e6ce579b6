// The loops of activation_loops.h. Compiled once for each instruction set, with CRESSET_ISA_NAMESPACE defined as its name.
#include "backends/cpu/activation_loops.h"

#include "backends/cpu/pointwise_loops.h"

namespace cresset::cpu::CRESSET_ISA_NAMESPACE {
namespace {

using namespace scalar_math;

// 1 + exp(-x). Infinity where exp(-x) is beyond 6e37, so that what is divided by it is 0 and not a number below the normal ones.
inline float one_and_exp_minus(float x) {
  constexpr float kEnd = 87.0f;
  const float within = x > kEnd ? kEnd : x;
  return select(x < -kEnd, kInf<float>, 1.0f + normal_exp(-within));
}

void gelu_in_place(float* y, int64_t n) { CRESSET_POINTWISE_FOR(i, n) y[i] = gelu_erf(y[i]); }
void hardswish_in_place(float* y, int64_t n) {
  CRESSET_POINTWISE_FOR(i, n) {
    const float x = y[i], part = multiply_add(x, 1.0f / 6, 0.5f), above = part < 0 ? 0.0f : part;
    y[i] = x * (above > 1 ? 1.0f : above);
  }
}
void relu_in_place(float* y, int64_t n) { CRESSET_POINTWISE_FOR(i, n) y[i] = y[i] < 0 ? 0.0f : y[i]; }
void tanh_in_place(float* y, int64_t n) { CRESSET_POINTWISE_FOR(i, n) y[i] = tanh(y[i]); }
void add_in_place(float* y, const float* operand, int64_t n) { CRESSET_POINTWISE_FOR(i, n) y[i] += operand[i]; }
void mul_in_place(float* y, const float* operand, int64_t n) { CRESSET_POINTWISE_FOR(i, n) y[i] *= operand[i]; }
void sigmoid_in_place(float* y, int64_t n) { CRESSET_POINTWISE_FOR(i, n) y[i] = 1.0f / one_and_exp_minus(y[i]); }
void silu_in_place(float* y, int64_t n) { CRESSET_POINTWISE_FOR(i, n) y[i] = y[i] / one_and_exp_minus(y[i]); }

}  // namespace

// oneDNN is quicker at these two with narrower vectors.
constexpr bool kWide = CRESSET_ISA_VECTOR_BYTES == 64;
extern const ActivationLoops activation_loops = {.gelu = kWide ? gelu_in_place : nullptr,
                                                 .hardswish = kWide ? hardswish_in_place : nullptr,
                                                 .sigmoid = sigmoid_in_place,
                                                 .silu = silu_in_place,
                                                 .relu = relu_in_place,
                                                 .tanh = tanh_in_place,
                                                 .add = add_in_place,
                                                 .mul = mul_in_place};

}  // namespace cresset::cpu::CRESSET_ISA_NAMESPACE
