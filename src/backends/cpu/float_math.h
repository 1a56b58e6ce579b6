// Functions of floats as arithmetic that inlines into vectorised loops. Part of scalar_math.h. Coefficients: minimax fits, of the relative
// error where nothing else is said, rounded to float.
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

// 2^f for f from -1/2 to 1/2.
inline float exp2_near_zero(float f) {
  float e = 0.0013276011f;
  e = multiply_add(e, f, 0.009675998f);
  e = multiply_add(e, f, 0.055507183f);
  e = multiply_add(e, f, 0.24022111f);
  e = multiply_add(e, f, 0.69314694f);
  e = multiply_add(e, f, 1.0f);
  return e;
}

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
  const float rest = std::bit_cast<float>(std::bit_cast<int32_t>(exp2_near_zero(f)) + (std::bit_cast<int32_t>(shifted) << 23));
  return select(!(size >= kNear), near, __builtin_copysignf(1.0f - rest, x));  // NaN is near
}

// 2^n exp(x - n ln 2), n being x / ln 2 rounded; `scale` makes the power of what n + bias lies in the low bits of.
template <int bias, class F>
inline float exp_scaled(float x, const F& scale) {
  constexpr float kShift = kRound + bias;
  const float shifted = multiply_add(x, 1.44269504f, kShift), n = shifted - kShift;
  const float r = multiply_add(n, -0x1.7f7d1cp-20f, multiply_add(n, -0x1.62e4p-1f, x));
  float p = 0.0013821662f;
  p = multiply_add(p, r, 0.008368697f);
  p = multiply_add(p, r, 0.041668262f);
  p = multiply_add(p, r, 0.16666521f);
  p = multiply_add(p, r, 0.49999994f);
  p = multiply_add(p, r, 1.0f);
  p = multiply_add(p, r, 1.0f);
  return scale(p, std::bit_cast<int32_t>(shifted));
}
// exp within 0.9 ulp (all floats were looked at; 1.2 where nothing fuses). With |x| < 87 the result is a normal number, and both are the
// same to the bit; otherwise two factors bring it to infinity, or to what is below the normal numbers with one rounding.
inline bool has_normal_exp(float x) { return __builtin_fabsf(x) < 87.0f; }
inline float normal_exp(float x) {
  return exp_scaled<0>(x, [](float p, int32_t n) { return std::bit_cast<float>(std::bit_cast<int32_t>(p) + (n << 23)); });
}
inline float any_exp(float x) {
  constexpr float kLow = -104.0f, kHigh = 89.0f;
  const float above = x < kLow ? kLow : x, within = above > kHigh ? kHigh : above;  // NaN stays
  return exp_scaled<254>(within, [](float p, int32_t n) {
    const int32_t half = n >> 1;
    return p * std::bit_cast<float>(half << 23) * std::bit_cast<float>((n - half) << 23);
  });
}

// log of positive normal numbers, within 2 ulp: the number is 2^e (1 + r) with 1 + r from 0.67 to 1.33.
inline float normal_log(float x) {
  const int32_t bits = std::bit_cast<int32_t>(x), e = (bits - 0x3f2aaaab) >> 23;
  const float r = std::bit_cast<float>(bits - (e << 23)) - 1.0f, power = static_cast<float>(e);
  float p = 0.14021303f;
  p = multiply_add(p, r, -0.15383218f);
  p = multiply_add(p, r, 0.13997002f);
  p = multiply_add(p, r, -0.16417098f);
  p = multiply_add(p, r, 0.2001108f);
  p = multiply_add(p, r, -0.25007746f);
  p = multiply_add(p, r, 0.333332f);
  p = multiply_add(p, r, -0.49999937f);
  return multiply_add(power, 0x1.62e4p-1f, r + multiply_add(power, 0x1.7f7d1cp-20f, p * r * r));
}

// x times the normal distribution function, the smaller side of which is 2^Q(|x|), a power as in erf. Errors of Q count by what they do to
// the larger side, as those of 1 + erf do. Beyond kEnd the smaller side is lost in rounding.
inline float gelu_erf(float x) {
  constexpr float kEnd = 5.6f;
  const float size = __builtin_fabsf(x), a = size > kEnd ? kEnd : size;
  float q = 1.4475884e-07f;
  q = multiply_add(q, a, -3.6690276e-06f);
  q = multiply_add(q, a, 3.6592322e-05f);
  q = multiply_add(q, a, -0.0001534622f);
  q = multiply_add(q, a, -0.00023572268f);
  q = multiply_add(q, a, 0.0072013773f);
  q = multiply_add(q, a, -0.05259075f);
  q = multiply_add(q, a, -0.4591787f);
  q = multiply_add(q, a, -1.1511085f);
  q = multiply_add(q, a, -0.99999994f);
  const float shifted = q + kRound, f = q - (shifted - kRound);
  const float smaller = std::bit_cast<float>(std::bit_cast<int32_t>(exp2_near_zero(f)) + (std::bit_cast<int32_t>(shifted) << 23));
  const float side = select(size < kEnd, smaller, 0.0f);  // NaN has none
  return x * select(x < 0, side, 1.0f - side);
}

}  // namespace scalar_math
}  // namespace
}  // namespace cresset::cpu::CRESSET_ISA_NAMESPACE
