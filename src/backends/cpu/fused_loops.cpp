// The loops of fused_loops.h. Compiled once for each instruction set, with CRESSET_ISA_NAMESPACE defined as its name.
// The order of operations is that of the optimisers' one-tensor form, so that both give the same steps up to rounding.
#include "backends/cpu/fused_loops.h"

#include "backends/cpu/pointwise_loops.h"

namespace cresset::cpu::CRESSET_ISA_NAMESPACE {
namespace {

// Calls f with integral constants for what must not be asked again for every element: are gradients scaled, and how weights decay.
template <class F>
void with_constants(const FusedCommon& c, const F& f) {
  const auto decay = [&](auto scaled) {
    switch (c.decay) {
      case Decay::None: return f(scaled, std::integral_constant<Decay, Decay::None>());
      case Decay::Gradient: return f(scaled, std::integral_constant<Decay, Decay::Gradient>());
      case Decay::Parameter: return f(scaled, std::integral_constant<Decay, Decay::Parameter>());
    }
  };
  c.scaled ? decay(std::true_type()) : decay(std::false_type());
}

// The gradient of one element after scaling, sign and weight decay.
template <bool Scaled, Decay D, class T>
inline __attribute__((always_inline)) T gradient(T& param, T& grad, T scale, T sign, T weight_decay) {
  if constexpr (Scaled) grad = grad / scale;
  T g = grad * sign;
  if constexpr (D == Decay::Gradient) g = g + param * weight_decay;
  if constexpr (D == Decay::Parameter) param = param * (1 - weight_decay);
  return g;
}

template <bool Scaled, Decay D, bool Amsgrad, class T>
void adam_loop(T* param, T* grad, T* average, T* square, T* largest, int64_t n, const FusedAdamStep& s) {
  using namespace scalar_math;
  const T scale = static_cast<T>(s.grad_scale), sign = static_cast<T>(s.sign), decay = static_cast<T>(s.weight_decay);
  const T weight = static_cast<T>(1 - s.beta1), beta2 = static_cast<T>(s.beta2), one_beta2 = static_cast<T>(1 - s.beta2);
  const T step_size = static_cast<T>(s.step_size), correction = static_cast<T>(s.correction), eps = static_cast<T>(s.eps);
  CRESSET_POINTWISE_FOR(i, n) {
    T p = param[i], stored = grad[i];
    const T g = gradient<Scaled, D>(p, stored, scale, sign, decay);
    if constexpr (Scaled) grad[i] = stored;
    // lerp, from the nearer end
    const T m = weight < T(0.5) ? average[i] + weight * (g - average[i]) : g - (g - average[i]) * (1 - weight);
    T v = square[i] * beta2 + one_beta2 * g * g;
    average[i] = m;
    square[i] = v;
    if constexpr (Amsgrad) {
      v = largest[i] > v ? largest[i] : v;  // NaN of the new value stays
      largest[i] = v;
    }
    param[i] = p - step_size * (m / (sqrt(v) / correction + eps));
  }
}

template <class T>
void adam(T* param, T* grad, T* average, T* square, T* largest, int64_t n, const FusedAdamStep& s) {
  with_constants(s, [&](auto scaled, auto decay) {
    if (largest)
      adam_loop<decltype(scaled)::value, decltype(decay)::value, true>(param, grad, average, square, largest, n, s);
    else
      adam_loop<decltype(scaled)::value, decltype(decay)::value, false>(param, grad, average, square, largest, n, s);
  });
}

template <class T>
void sgd(T* param, T* grad, T* buffer, int64_t n, const FusedSgdStep& s) {
  const T scale = static_cast<T>(s.grad_scale), sign = static_cast<T>(s.sign), weight_decay = static_cast<T>(s.weight_decay);
  // The first step's buffer is the gradient.
  const T momentum = static_cast<T>(s.momentum), kept = s.first ? T(0) : momentum, taken = s.first ? T(1) : static_cast<T>(1 - s.dampening);
  const T lr = static_cast<T>(s.lr);
  with_constants(s, [&](auto scaled, auto decay) {
    constexpr bool kScaled = decltype(scaled)::value;
    constexpr Decay kDecay = decltype(decay)::value;
    if (!buffer) {
      CRESSET_POINTWISE_FOR(i, n) {
        T p = param[i], stored = grad[i];
        const T g = gradient<kScaled, kDecay>(p, stored, scale, sign, weight_decay);
        if constexpr (kScaled) grad[i] = stored;
        param[i] = p - lr * g;
      }
      return;
    }
    const T outer = s.nesterov ? T(1) : T(0), inner = s.nesterov ? momentum : T(1);
    const bool first = s.first;
    CRESSET_POINTWISE_FOR(i, n) {
      T p = param[i], stored = grad[i];
      const T g = gradient<kScaled, kDecay>(p, stored, scale, sign, weight_decay);
      if constexpr (kScaled) grad[i] = stored;
      const T b = first ? g : buffer[i] * kept + taken * g;
      buffer[i] = b;
      param[i] = p - lr * (outer * g + inner * b);
    }
  });
}

template <class T>
void adagrad(T* param, T* grad, T* sum, int64_t n, const FusedAdagradStep& s) {
  using namespace scalar_math;
  const T scale = static_cast<T>(s.grad_scale), sign = static_cast<T>(s.sign), weight_decay = static_cast<T>(s.weight_decay);
  const T step_size = static_cast<T>(s.step_size), eps = static_cast<T>(s.eps);
  with_constants(s, [&](auto scaled, auto decay) {
    constexpr bool kScaled = decltype(scaled)::value;
    CRESSET_POINTWISE_FOR(i, n) {
      T p = param[i], stored = grad[i];
      const T g = gradient<kScaled, decltype(decay)::value>(p, stored, scale, sign, weight_decay);
      if constexpr (kScaled) grad[i] = stored;
      const T total = sum[i] + g * g;
      sum[i] = total;
      param[i] = p - step_size * (g / (sqrt(total) + eps));
    }
  });
}

template <class T>
constexpr FusedLoops<T> loops = {adam<T>, sgd<T>, adagrad<T>};

}  // namespace

const FusedLoops<float>& fused_loops(float) { return loops<float>; }
const FusedLoops<double>& fused_loops(double) { return loops<double>; }

}  // namespace cresset::cpu::CRESSET_ISA_NAMESPACE
