// Special functions and activations for pointwise expressions; continues scalar_math.h.
#pragma once

#include "backends/cpu/scalar_math.h"

namespace cresset::cpu::CRESSET_ISA_NAMESPACE {
namespace {
namespace scalar_math {

// Coefficients by rising power, from `first` on, whose power then counts as x^0. No loop: one inside of a kernel's keeps that from being
// vectorised.
template <int first = 0, class T, int n>
inline __attribute__((always_inline)) T polynomial(const T (&c)[n], T x) {
  if constexpr (first + 1 == n)
    return c[first];
  else
    return multiply_add(polynomial<first + 1>(c, x), x, c[first]);
}

// The C library's, without its global sign.
inline float lgamma(float x) {
  int sign;
  return ::lgammaf_r(x, &sign);
}
inline double lgamma(double x) {
  int sign;
  return ::lgamma_r(x, &sign);
}
// Can positive_lgamma tell what lgamma does?
inline bool has_positive_lgamma(float x) { return x > 0 && x < kInf<float>; }
// In double, which is exact enough for floats near the zeros at one and two: (x - 1)(x - 2) times an interpolation at Chebyshev's points of
// [1, 3] (relative error 1e-10; below one, log(gamma(x + 1)) - log(x)), from three on Stirling's series (NIST DLMF 5.11.1; relative error
// 4e-9).
inline float positive_lgamma(float given) {
  constexpr double kNear[] = {0.42278433506504504,    -0.10031730165840978,    0.032965004891564564,  -0.012384194230569828,
                              0.004998552300004513,   -0.002108088442672437,   0.0009160753652910803, -0.0004060405522927123,
                              0.0001798884008053009,  -8.182445119199867e-05,  4.358498803212707e-05, -2.0244296438057547e-05,
                              2.3377832871042997e-06, -1.0423813294330275e-06, 4.848753396804804e-06, -2.301277182486616e-06};
  constexpr double kSeries[] = {1. / 12, -1. / 360, 1. / 1260, -1. / 1680, 1. / 1188, -691. / 360360};
  constexpr double kHalfLogTwoPi = 0.91893853320467274178;
  const double x = static_cast<double>(given), l = log(x);
  const double t = select(x < 1, x - 1, x - 2), near = polynomial(kNear, t) * (t * (t + 1)) - select(x < 1, l, 0.0);
  const double r = 1 / x, far = multiply_add(x - 0.5, l, polynomial(kSeries, r * r) * r + (kHalfLogTwoPi - x));
  return static_cast<float>(select(x < 3, near, far) + 0.0);  // no -0 at one
}

// Inverse error function as y times a polynomial of w = -log(1 - y^2) for w < 5, and one of sqrt(w) above (M. Giles (2010), "Approximating
// the erfinv function"): interpolated at Chebyshev's points, relative error 4e-9 up to the last float below one.
template <class T>
constexpr T kErfinvCentre[] = {T(1.5014093517481764),    T(0.24664027674858424),     T(-0.004177325080457763),  T(-0.0012527079573557702),
                               T(0.0002182641252155226), T(-4.996000110143956e-06),  T(-3.426266209734268e-06), T(4.786897084558858e-07),
                               T(1.650364404121373e-08), T(-1.0861761271594343e-08), T(4.340626803853993e-10),  T(1.2346577114502573e-10)};
template <class T>
constexpr T kErfinvTail[] = {T(2.8329768011588836),     T(1.0016752853175022),     T(0.009445322998191417),  T(-0.0076437457320701185),
                             T(0.005687687558257992),   T(-0.0035616784594681124), T(0.0014737455981858327), T(-0.00013131994271710926),
                             T(-0.0002722671058703768), T(0.00016854158453274745), T(-3.457579213452002e-05)};
inline double erfinv_estimated(double y) {
  const double w = -log((1 - y) * (1 + y));
  return select(w < 5, polynomial(kErfinvCentre<double>, w - 2.5), polynomial(kErfinvTail<double>, sqrt(w) - 3)) * y;
}
// The same for doubles that are nearer to one than floats are: 4 < sqrt(w) < 6.1.
inline double erfinv_estimated_far(double y) {
  constexpr double kFar[] = {4.849906398423313,    1.010300456747294,      -0.0001386296320075487, -0.00021497747605614406,
                             7.55802706492408e-05, -1.972328799136079e-05, 5.120169045807351e-06,  -1.0789893647295428e-06};
  return polynomial(kFar, sqrt(-log((1 - y) * (1 + y))) - 5) * y;
}
template <class T>
inline T erfinv_ends(T y, T x) {
  const T a = abs(y);
  return select(a < 1, x, select(a == 1, y * kInf<T>, kNan<T>));
}
// A Newton step makes it a double's. Near one what is left over is taken of erfc, which is exact there.
inline double erfinv(double y) {
  constexpr double kTwoOverSqrtPi = 1.12837916709551257390;
  const double a = abs(y), x = select(a <= 1 - 0x1p-24, erfinv_estimated(a), erfinv_estimated_far(a));
  const double over = select(a < 0.5, erf(x) - a, (1 - a) - erfc(x));
  return erfinv_ends(y, copysign(x - over / (kTwoOverSqrtPi * exp(-x * x)), y));
}
// Within 2.5 ulp: the largest term of the centre is added last, and so rounded once with the result.
inline float erfinv_w(float y) { return -normal_log((1 - y) * (1 + y)); }
inline float erfinv_centre(float y, float w) {
  constexpr float kLow = static_cast<float>(kErfinvCentre<double>[0] - static_cast<double>(kErfinvCentre<float>[0]));
  const float u = w - 2.5f;
  return multiply_add(kErfinvCentre<float>[0], y, multiply_add(polynomial<1>(kErfinvCentre<float>, u), u, kLow) * y);
}
inline float erfinv(float y) {
  const float inside = select(abs(y) < 1, y, 0.0f), w = erfinv_w(inside);
  return erfinv_ends(y, copysign(select(w < 5, erfinv_centre(y, w), polynomial(kErfinvTail<float>, sqrt(w) - 3) * y), y));
}
// The same to the bit where the centre is all.
inline bool has_central_erfinv(float y) { return abs(y) < 0.99f; }
inline float central_erfinv(float y) { return erfinv_centre(y, erfinv_w(y)); }

// Rectifiers. A NaN stays NaN.
template <class T>
inline T relu(T x) {
  return x < T(0) ? T(0) : x;
}
template <class T>
inline T threshold(T x, T limit, T value) {
  return x <= limit ? value : x;
}
template <class T>
inline T threshold_backward(T grad, T x, T limit) {
  return x <= limit ? T(0) : grad;
}
template <class T>
inline T leaky_relu(T x, T slope) {
  return x > T(0) ? x : x * slope;
}
template <class T>
inline T leaky_relu_backward(T grad, T x, T slope) {
  return x > T(0) ? grad : grad * slope;
}
template <class T>
inline T hardtanh(T x, T low, T high) {
  const T raised = x < low || low != low ? low : x;
  return raised > high || high != high ? high : raised;
}
template <class T>
inline T hardtanh_backward(T grad, T x, T low, T high) {
  return x <= low || x >= high ? T(0) : grad;
}
template <class T>
inline T hardsigmoid(T x) {
  return hardtanh(x + T(3), T(0), T(6)) / T(6);
}
template <class T>
inline T hardsigmoid_backward(T grad, T x) {
  return (x > T(-3) && x < T(3)) ? grad / T(6) : T(0);
}
template <class T>
inline T hardswish(T x) {
  return x * hardtanh(x + T(3), T(0), T(6)) / T(6);
}
template <class T>
inline T hardswish_backward(T grad, T x) {
  const T inner = grad * (x / T(3) + T(0.5));
  return x <= T(-3) ? T(0) : x < T(3) ? inner : grad;
}
template <class T>
inline T hardshrink(T x, T lambd) {
  return (x >= -lambd && x <= lambd) ? T(0) : x;
}
template <class T>
inline T shrink_backward(T grad, T x, T lambd) {
  return (x >= -lambd && x <= lambd) ? T(0) : grad;
}
template <class T>
inline T softshrink(T x, T lambd) {
  return x > lambd ? x - lambd : x < -lambd ? x + lambd : x * T(0);
}

// Smooth activations.
template <class T>
inline T elu(T x, T alpha, T scale, T input_scale) {
  return select(x < T(0), expm1(x * input_scale) * (alpha * scale), x * scale);
}
template <class T>
inline T elu_backward(T grad, T alpha, T scale, T input_scale, bool is_result, T self_or_result) {
  const T x = self_or_result;
  const T from_result = grad * input_scale * (x + alpha * scale);
  const T from_self = grad * input_scale * alpha * scale * exp(x * input_scale);
  return x <= T(0) ? (is_result ? from_result : from_self) : grad * scale;
}
template <class T>
inline T silu(T x) {
  return x / (T(1) + exp(-x));
}
template <class T>
inline T silu_backward(T grad, T x) {
  const T s = T(1) / (T(1) + exp(-x));
  return grad * conj(s * (T(1) + x * (T(1) - s)));
}
template <class T>
inline T softplus(T x, T beta, T limit) {
  const T z = x * beta;
  return select(z > limit, x, log1p(exp(z)) / beta);
}
template <class T>
inline T softplus_backward(T grad, T x, T beta, T limit) {
  const T z = x * beta;
  return select(z > limit, grad, grad / (T(1) + exp(-z)));
}
template <class T>
inline T log_sigmoid(T x) {
  return minimum(x, T(0)) - log1p(exp(-abs(x)));
}
template <class T>
inline T log_sigmoid_backward(T grad, T x) {
  return grad / (T(1) + exp(x));
}
template <class T>
inline T mish(T x) {
  return x * tanh(softplus(x, T(1), T(20)));
}
template <class T>
inline T mish_backward(T grad, T x) {
  const T s = T(1) / (T(1) + exp(-x)), t = tanh(softplus(x, T(1), T(20)));
  return grad * (t + x * s * (T(1) - t * t));
}
inline double gelu_erf(double x) { return x * 0.5 * (1 + erf(x * 0.70710678118654752440)); }  // of floats: float_math.h
template <class T>
inline T gelu_tanh(T x) {
  const T inner = T(0.79788456080286535588) * (x + T(0.044715) * x * x * x);
  return T(0.5) * x * (T(1) + tanh(inner));
}
template <class T>
inline T gelu_erf_backward(T grad, T x) {
  const T cdf = T(0.5) * (T(1) + erf(x * T(0.70710678118654752440)));
  const T pdf = exp(x * x * T(-0.5)) * T(0.39894228040143267794);
  return grad * (cdf + x * pdf);
}
template <class T>
inline T gelu_tanh_backward(T grad, T x) {
  const T inner = T(0.79788456080286535588) * (x + T(0.044715) * x * x * x), t = tanh(inner);
  const T slope = T(0.79788456080286535588) * (T(1) + T(3 * 0.044715) * x * x);
  return grad * (T(0.5) * (T(1) + t) + T(0.5) * x * (T(1) - t * t) * slope);
}

}  // namespace scalar_math
}  // namespace
}  // namespace cresset::cpu::CRESSET_ISA_NAMESPACE
