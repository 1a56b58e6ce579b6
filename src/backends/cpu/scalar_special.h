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

// Inverse error function: Giles' approximation refined by Newton steps, in double. Two make it a double's, one a float's.
template <int steps>
inline double erfinv_refined(double y) {
  const double a = abs(y);
  const double w0 = -log((1 - y) * (1 + y));
  const double w = w0 - 2.5, v = sqrt(w0) - 3;
  double p = 2.81022636e-08, t = -0.000200214257;
  p = 3.43273939e-07 + p * w, t = 0.000100950558 + t * v;
  p = -3.5233877e-06 + p * w, t = 0.00134934322 + t * v;
  p = -4.39150654e-06 + p * w, t = -0.00367342844 + t * v;
  p = 0.00021858087 + p * w, t = 0.00573950773 + t * v;
  p = -0.00125372503 + p * w, t = -0.0076224613 + t * v;
  p = -0.00417768164 + p * w, t = 0.00943887047 + t * v;
  p = 0.246640727 + p * w, t = 1.00167406 + t * v;
  p = 1.50140941 + p * w, t = 2.83297682 + t * v;
  double x = select(w0 < 5, p, t) * y;
  constexpr double kTwoOverSqrtPi = 1.12837916709551257390;
  for (int i = 0; i < steps; ++i) x -= (erf(x) - y) / (kTwoOverSqrtPi * exp(-x * x));
  return select(a < 1, x, select(a == 1, y * kInf<double>, kNan<double>));
}
inline double erfinv(double y) { return erfinv_refined<2>(y); }
inline float erfinv(float y) { return static_cast<float>(erfinv_refined<1>(static_cast<double>(y))); }

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
