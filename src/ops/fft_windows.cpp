// Windows and frequencies: short vectors, computed in double precision on the host.
#include <algorithm>
#include <cmath>
#include <numbers>

#include <cresset/ops/functions_copy.h>
#include <cresset/ops/functions_creation.h>

#include "ops/ops_decl_fft.h"
#include "ops/shared/structured.h"

namespace cresset::ops {
namespace {

struct Options {
  std::optional<ScalarType> dtype;
  std::optional<Layout> layout;
  std::optional<Device> device;
  std::optional<bool> pin_memory;

  ScalarType type() const { return dtype.value_or(get_default_dtype()); }
  Tensor empty(int64_t length) const { return cresset::empty({length}, type(), layout, device, pin_memory, std::nullopt); }
};

// f(0), f(1), … in the type and on the device that options say.
template <class F>
Tensor sampled(int64_t length, const Options& options, const F& f) {
  const Tensor result = options.empty(length);
  CRESSET_CHECK_NOT_IMPLEMENTED(!result.is_complex() || length == 0, "\"arange_cpu\" not implemented for '", toString(options.type()), "'");
  if (result.device().is_meta()) return result;
  const Tensor values = cresset::detail::empty_cpu({length}, kDouble);
  auto* to = values.mutable_data_ptr<double>();
  for (int64_t i = 0; i < length; ++i) to[i] = f(i);
  copy_data(values.to(options.type()).to(result.device()), result);
  return result;
}

// f(x) for x from 0 to 1, the positions in a period (periodic) or between the ends.
template <class F>
Tensor window(const char* name, int64_t length, bool periodic, const Options& options, const F& f) {
  CRESSET_CHECK(!options.layout || *options.layout == kStrided, name,
                " is not implemented for sparse types, got: ", to_string(options.layout.value_or(kStrided)));
  CRESSET_CHECK(isFloatingType(options.type()) || isComplexType(options.type()), name,
                " expects floating point dtypes, got: ", toString(options.type()));
  CRESSET_CHECK(length >= 0, name, " requires non-negative window_length, got window_length=", length);
  if (length == 1) return cresset::ones({1}, options.type(), options.layout, options.device, options.pin_memory);
  const auto points = static_cast<double>(periodic ? length : length - 1);
  return sampled(length, options, [&](int64_t i) { return f(static_cast<double>(i) / points); });
}

Tensor general_hamming(const char* name, int64_t length, bool periodic, double alpha, double beta, const Options& options) {
  return window(name, length, periodic, options, [&](double x) { return alpha - beta * std::cos(2 * std::numbers::pi * x); });
}

Tensor hann(int64_t length, bool periodic, const Options& options) {
  return general_hamming("hann_window", length, periodic, 0.5, 0.5, options);
}
Tensor hamming(int64_t length, bool periodic, double alpha, double beta, const Options& options) {
  return general_hamming("hamming_window", length, periodic, alpha, beta, options);
}
Tensor blackman(int64_t length, bool periodic, const Options& options) {
  return window("blackman_window", length, periodic, options, [](double x) {
    const double angle = 2 * std::numbers::pi * x;
    return 0.42 - 0.5 * std::cos(angle) + 0.08 * std::cos(2 * angle);
  });
}
Tensor bartlett(int64_t length, bool periodic, const Options& options) {
  return window("bartlett_window", length, periodic, options, [](double x) { return 1 - std::abs(2 * x - 1); });
}

// The modified Bessel function of order 0 by its power series (DLMF 10.25.2), whose terms are all positive.
double bessel_i0(double x) {
  const double quarter = x * x / 4;
  double sum = 1, term = 1;
  for (double k = 1; term > sum * 1e-17 && std::isfinite(sum); ++k) {
    term *= quarter / (k * k);
    sum += term;
  }
  return sum;
}

// Kaiser and Schafer (1980).
Tensor kaiser(int64_t length, bool periodic, double beta, const Options& options) {
  return window("kaiser_window", length, periodic, options, [&](double x) {
    const double height = 2 * x - 1;
    return bessel_i0(beta * std::sqrt(std::max(0.0, 1 - height * height))) / bessel_i0(beta);
  });
}

constexpr double kHammingAlpha = 0.54, kHammingBeta = 0.46, kKaiserBeta = 12;

// Multiples of 1 / (n d): 0, 1, … and, from `negative` on, those that lie n lower.
Tensor frequencies(const char* name, int64_t n, double d, int64_t count, int64_t negative, const Options& options) {
  CRESSET_CHECK(isFloatingType(options.type()) || isComplexType(options.type()), name, " requires a floating point or complex dtype");
  const double step = 1.0 / (static_cast<double>(n) * d);
  return sampled(count, options, [&](int64_t i) { return static_cast<double>(i < negative ? i : i - n) * step; });
}
Tensor fftfreq(int64_t n, double d, const Options& options) { return frequencies("fftfreq", n, d, n, (n + 1) / 2, options); }
Tensor rfftfreq(int64_t n, double d, const Options& options) { return frequencies("rfftfreq", n, d, n / 2 + 1, n / 2 + 1, options); }

Tensor& store(const char* name, const Tensor& result, Tensor& out) {
  copy_to_out(name, result, out, OutDtype::Castable);
  return out;
}

Options options_of(const Tensor& out) { return {out.scalar_type(), out.layout(), out.device(), std::nullopt}; }

}  // namespace

using Type = std::optional<ScalarType>;
using MaybeLayout = std::optional<Layout>;
using MaybeDevice = std::optional<Device>;
using Pin = std::optional<bool>;

Tensor hann_window_default(int64_t n, Type t, MaybeLayout l, MaybeDevice d, Pin p) { return hann(n, true, {t, l, d, p}); }
Tensor hann_window_periodic(int64_t n, bool periodic, Type t, MaybeLayout l, MaybeDevice d, Pin p) {
  return hann(n, periodic, {t, l, d, p});
}
Tensor hamming_window_default(int64_t n, Type t, MaybeLayout l, MaybeDevice d, Pin p) {
  return hamming(n, true, kHammingAlpha, kHammingBeta, {t, l, d, p});
}
Tensor hamming_window_periodic(int64_t n, bool periodic, Type t, MaybeLayout l, MaybeDevice d, Pin p) {
  return hamming(n, periodic, kHammingAlpha, kHammingBeta, {t, l, d, p});
}
Tensor hamming_window_alpha(int64_t n, bool periodic, double alpha, Type t, MaybeLayout l, MaybeDevice d, Pin p) {
  return hamming(n, periodic, alpha, kHammingBeta, {t, l, d, p});
}
Tensor hamming_window_alpha_beta(int64_t n, bool periodic, double alpha, double beta, Type t, MaybeLayout l, MaybeDevice d, Pin p) {
  return hamming(n, periodic, alpha, beta, {t, l, d, p});
}
Tensor blackman_window_default(int64_t n, Type t, MaybeLayout l, MaybeDevice d, Pin p) { return blackman(n, true, {t, l, d, p}); }
Tensor blackman_window_periodic(int64_t n, bool periodic, Type t, MaybeLayout l, MaybeDevice d, Pin p) {
  return blackman(n, periodic, {t, l, d, p});
}
Tensor bartlett_window_default(int64_t n, Type t, MaybeLayout l, MaybeDevice d, Pin p) { return bartlett(n, true, {t, l, d, p}); }
Tensor bartlett_window_periodic(int64_t n, bool periodic, Type t, MaybeLayout l, MaybeDevice d, Pin p) {
  return bartlett(n, periodic, {t, l, d, p});
}
Tensor kaiser_window_default(int64_t n, Type t, MaybeLayout l, MaybeDevice d, Pin p) { return kaiser(n, true, kKaiserBeta, {t, l, d, p}); }
Tensor kaiser_window_periodic(int64_t n, bool periodic, Type t, MaybeLayout l, MaybeDevice d, Pin p) {
  return kaiser(n, periodic, kKaiserBeta, {t, l, d, p});
}
Tensor kaiser_window_beta(int64_t n, bool periodic, double beta, Type t, MaybeLayout l, MaybeDevice d, Pin p) {
  return kaiser(n, periodic, beta, {t, l, d, p});
}

Tensor fft_fftfreq_impl(int64_t n, double d, Type t, MaybeLayout l, MaybeDevice device, Pin p) { return fftfreq(n, d, {t, l, device, p}); }
Tensor fft_rfftfreq_impl(int64_t n, double d, Type t, MaybeLayout l, MaybeDevice device, Pin p) {
  return rfftfreq(n, d, {t, l, device, p});
}
Tensor& fft_fftfreq_into(int64_t n, double d, Tensor& out) { return store("fftfreq", shaped_as(fftfreq(n, d, options_of(out)), out), out); }
Tensor& fft_rfftfreq_into(int64_t n, double d, Tensor& out) {
  return store("rfftfreq", shaped_as(rfftfreq(n, d, options_of(out)), out), out);
}

}  // namespace cresset::ops
