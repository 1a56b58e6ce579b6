// Special functions and activations for pointwise expressions; continues scalar_math.h.
#pragma once

#include "backends/cpu/scalar_math.h"

namespace cresset::cpu::CRESSET_ISA_NAMESPACE {
namespace {
namespace scalar_math {

// The C library's, without its global sign.
inline float lgamma(float x) {
  int sign;
  return ::lgammaf_r(x, &sign);
}
inline double lgamma(double x) {
  int sign;
  return ::lgamma_r(x, &sign);
}

// Coefficients by rising power.
template <int n>
inline double polynomial(const double (&c)[n], double x) {
  double y = c[n - 1];
  for (int i = n - 2; i >= 0; --i) y = c[i] + y * x;
  return y;
}

// Inverse error function as y times a polynomial of w = -log(1 - y^2) for w < 5, and one of sqrt(w) above (M. Giles (2010), "Approximating
// the erfinv function"), computed in double: interpolated at Chebyshev's points, relative error 4e-9 up to the last float below one.
inline double erfinv_estimated(double y) {
  constexpr double kCentre[] = {1.5014093517481764,    0.24664027674858424,     -0.004177325080457763,  -0.0012527079573557702,
                                0.0002182641252155226, -4.996000110143956e-06,  -3.426266209734268e-06, 4.786897084558858e-07,
                                1.650364404121373e-08, -1.0861761271594343e-08, 4.340626803853993e-10,  1.2346577114502573e-10};
  constexpr double kTail[] = {2.8329768011588836,     1.0016752853175022,     0.009445322998191417,  -0.0076437457320701185,
                              0.005687687558257992,   -0.0035616784594681124, 0.0014737455981858327, -0.00013131994271710926,
                              -0.0002722671058703768, 0.00016854158453274745, -3.457579213452002e-05};
  const double w = -log((1 - y) * (1 + y));
  return select(w < 5, polynomial(kCentre, w - 2.5), polynomial(kTail, sqrt(w) - 3)) * y;
}
// The same for doubles that are nearer to one than floats are: 4 < sqrt(w) < 6.1.
inline double erfinv_estimated_far(double y) {
  constexpr double kFar[] = {4.849906398423313,    1.010300456747294,      -0.0001386296320075487, -0.00021497747605614406,
                             7.55802706492408e-05, -1.972328799136079e-05, 5.120169045807351e-06,  -1.0789893647295428e-06};
  return polynomial(kFar, sqrt(-log((1 - y) * (1 + y))) - 5) * y;
}
inline double erfinv_ends(double y, double x) {
  const double a = abs(y);
  return select(a < 1, x, select(a == 1, y * kInf<double>, kNan<double>));
}
// A Newton step makes it a double's. Near one what is left over is taken of erfc, which is exact there.
inline double erfinv(double y) {
  constexpr double kTwoOverSqrtPi = 1.12837916709551257390;
  const double a = abs(y), x = select(a < 1 - 0x1p-23, erfinv_estimated(a), erfinv_estimated_far(a));
  const double over = select(a < 0.5, erf(x) - a, (1 - a) - erfc(x));
  return erfinv_ends(y, copysign(x - over / (kTwoOverSqrtPi * exp(-x * x)), y));
}
inline float erfinv(float y) {
  const double d = static_cast<double>(y);
  return static_cast<float>(erfinv_ends(d, erfinv_estimated(d)));
}

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
template <class T>
inline T gelu_erf(T x) {
  return x * T(0.5) * (T(1) + erf(x * T(0.70710678118654752440)));
}
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
