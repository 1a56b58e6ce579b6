// Special functions that the pointwise expressions of src/ops/special.toml call, one double at a time. They branch and
// loop, so nothing is gained by a copy for each instruction set: they are compiled once, and this header only declares them.
// `float` elements are computed in double and rounded. A NaN argument gives NaN. DLMF is https://dlmf.nist.gov.
#pragma once

#include <complex>
#include <cstdint>

namespace cresset::cpu::special_math {

// special_bessel.cpp
double bessel_j0(double x);
double bessel_j1(double x);
double bessel_y0(double x);
double bessel_y1(double x);
double modified_bessel_i0(double x);
double modified_bessel_i1(double x);
double scaled_modified_bessel_i0(double x);  // exp(-|x|) I0(x)
double scaled_modified_bessel_i1(double x);
double modified_bessel_k0(double x);
double modified_bessel_k1(double x);
double scaled_modified_bessel_k0(double x);  // exp(x) K0(x)
double scaled_modified_bessel_k1(double x);
double spherical_bessel_j0(double x);
double airy_ai(double x);

// special_normal.cpp
double erfcx(double x);
double ndtr(double x);
double log_ndtr(double x);
double ndtri(double p);

// special_gamma.cpp
double digamma(double x);
double zeta(double s, double q);
double polygamma(int64_t n, double x);
double gammainc(double a, double x);
double gammaincc(double a, double x);

// special_polynomial.cpp. The degree n is truncated; a negative one gives 0.
double chebyshev_polynomial_t(double x, double n);
double chebyshev_polynomial_u(double x, double n);
double chebyshev_polynomial_v(double x, double n);
double chebyshev_polynomial_w(double x, double n);
double laguerre_polynomial_l(double x, double n);
double legendre_polynomial_p(double x, double n);
double hermite_polynomial_h(double x, double n);
double hermite_polynomial_he(double x, double n);

// special_number.cpp
int64_t gcd(int64_t a, int64_t b);
int64_t lcm(int64_t a, int64_t b);
double ldexp(double x, double exponent);
std::complex<double> ldexp(std::complex<double> x, std::complex<double> exponent);
// nextafter for a 16-bit format: sign, then magnitude, in the lower half of the words; `infinity` is the magnitude of inf.
int64_t nextafter_bits(int64_t from, int64_t to, int64_t infinity);

}  // namespace cresset::cpu::special_math
