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

// A NaN stays one.
inline float limited(float x, float least, float most) {
  const float above = x < least ? least : x;
  return above > most ? most : above;
}

#define CRESSET_IN_PLACE(name, expression)                                                        \
  void name##_in_place(float* y, int64_t n, [[maybe_unused]] float a, [[maybe_unused]] float b) { \
    CRESSET_POINTWISE_FOR(i, n) {                                                                 \
      const float x = y[i];                                                                       \
      y[i] = expression;                                                                          \
    }                                                                                             \
  }
CRESSET_IN_PLACE(clamp, limited(x, a, b))
CRESSET_IN_PLACE(gelu, gelu_erf(x))
CRESSET_IN_PLACE(hardsigmoid, limited(multiply_add(x, 1.0f / 6, 0.5f), 0.0f, 1.0f))
CRESSET_IN_PLACE(hardswish, x* limited(multiply_add(x, 1.0f / 6, 0.5f), 0.0f, 1.0f))
CRESSET_IN_PLACE(leaky_relu, x > 0 ? x : x * a)
CRESSET_IN_PLACE(relu, x < 0 ? 0.0f : x)
CRESSET_IN_PLACE(sigmoid, 1.0f / one_and_exp_minus(x))
CRESSET_IN_PLACE(silu, x / one_and_exp_minus(x))
CRESSET_IN_PLACE(tanh, tanh(x))
#undef CRESSET_IN_PLACE
void add_in_place(float* y, const float* operand, int64_t n) { CRESSET_POINTWISE_FOR(i, n) y[i] += operand[i]; }
void mul_in_place(float* y, const float* operand, int64_t n) { CRESSET_POINTWISE_FOR(i, n) y[i] *= operand[i]; }

}  // namespace

// oneDNN is quicker at these two with narrower vectors.
constexpr bool kWide = CRESSET_ISA_VECTOR_BYTES == 64;
extern const ActivationLoops activation_loops = {.gelu = kWide ? gelu_in_place : nullptr,
                                                 .hardswish = kWide ? hardswish_in_place : nullptr,
                                                 .sigmoid = sigmoid_in_place,
                                                 .silu = silu_in_place,
                                                 .clamp = clamp_in_place,
                                                 .hardsigmoid = hardsigmoid_in_place,
                                                 .leaky_relu = leaky_relu_in_place,
                                                 .relu = relu_in_place,
                                                 .tanh = tanh_in_place,
                                                 .add = add_in_place,
                                                 .mul = mul_in_place};

}  // namespace cresset::cpu::CRESSET_ISA_NAMESPACE
