// erf of floats as arithmetic that inlines into vectorised loops. Part of scalar_math.h. Coefficients: minimax fits of the relative
// error of erf, rounded to float.
#pragma once

namespace cresset::cpu::CRESSET_ISA_NAMESPACE {
namespace {
namespace scalar_math {

// where() for values that are costly to compute. The compiler would move a computation that only one branch needs into that branch, and
// a loop with branches is not vectorised; a choice made of bit operations needs both values.
template <class T>
inline T select(bool condition, T a, T b) {
  using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
  static_assert(sizeof(T) == sizeof(Bits));
  const Bits mask = -static_cast<Bits>(condition);
  return std::bit_cast<T>((std::bit_cast<Bits>(a) & mask) | (std::bit_cast<Bits>(b) & ~mask));
}

// a * b + c, rounded once where the instruction set has that (kFuses).
#if CRESSET_ISA_HAS_FMA
constexpr bool kFuses = true;
inline float multiply_add(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
inline double multiply_add(double a, double b, double c) { return __builtin_fma(a, b, c); }
#else
constexpr bool kFuses = false;
inline float multiply_add(float a, float b, float c) { return a * b + c; }
inline double multiply_add(double a, double b, double c) { return a * b + c; }
#endif

constexpr float kRound = 0x1.8p23f;  // added, it leaves a rounded integer in the low bits

// Within 2 ulp: x + x P(x^2) below 0.95, and above 1 - 2^Q(|x|), the power as an exponent's bits and a polynomial.
inline float erf(float x) {
  constexpr float kNear = 0.95f, kOne = 3.93f;  // from kOne on, 1 - erf(x) is lost in rounding
  const float t = x * x;
  float p = 8.15381e-05f;
  p = multiply_add(p, t, -0.00080898264f);
  p = multiply_add(p, t, 0.0051962133f);
  p = multiply_add(p, t, -0.026857387f);
  p = multiply_add(p, t, 0.11283658f);
  p = multiply_add(p, t, -0.37612632f);
  p = multiply_add(p, t, 0.12837917f);
  const float near = multiply_add(p, x, x);
  const float size = __builtin_fabsf(x), a = size > kOne ? kOne : size;
  float q = 0.0002784232f;
  q = multiply_add(q, a, -0.004348461f);
  q = multiply_add(q, a, 0.03189831f);
  q = multiply_add(q, a, -0.14958999f);
  q = multiply_add(q, a, -0.9196632f);
  q = multiply_add(q, a, -1.6266506f);
  q = multiply_add(q, a, -0.0003412256f);
  const float shifted = q + kRound, f = q - (shifted - kRound);
  float e = 0.0013276011f;
  e = multiply_add(e, f, 0.009675998f);
  e = multiply_add(e, f, 0.055507183f);
  e = multiply_add(e, f, 0.24022111f);
  e = multiply_add(e, f, 0.69314694f);
  e = multiply_add(e, f, 1.0f);
  const float rest = std::bit_cast<float>(std::bit_cast<int32_t>(e) + (std::bit_cast<int32_t>(shifted) << 23));
  return select(!(size >= kNear), near, __builtin_copysignf(1.0f - rest, x));  // NaN is near
}

}  // namespace scalar_math
}  // namespace
}  // namespace cresset::cpu::CRESSET_ISA_NAMESPACE
