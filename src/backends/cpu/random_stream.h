// Distributions of the CPU generator over contiguous memory: for a seed, the numbers PyTorch's CPU generator
// gives.
//
// Every fill writes n elements in memory order and consumes the stream serially; callers hold the generator's
// mutex. A tensor that is not contiguous is filled element by element in the order of its strides (largest
// stride first), so fill a contiguous buffer with these functions and copy, with normal_serial_fill instead
// of normal_fill. A complex tensor is filled as the real tensor of its 2n parts, a normal one with std /
// sqrt(2).
//
// Arguments out of range raise Error before the stream is touched. Floating: float, double, Half, BFloat16.
// Real: these and uint8_t, int8_t, int16_t, int32_t, int64_t. Functions are instantiated for the types their
// comment names.
#pragma once

#include <cstdint>
#include <optional>

#include <cresset/base/half.h>
#include <cresset/core/generator.h>
#include <cresset/core/philox.h>
#include <cresset/core/scalar_type.h>

namespace cresset::cpu {

/// The given generator, or the CPU's default one. Raises for generators of other devices, and for those that extensions made for the CPU:
/// they have kernels of their own.
CPUGeneratorImpl& chosen_generator(const std::optional<Generator>& generator);

/// Uniform on [from, to). Floating. Requires from <= to, both within T, and a finite difference.
template <class T>
void uniform_fill(T* out, int64_t n, double from, double to, CPUGeneratorImpl& generator);

/// Normal; n >= 16 is drawn in blocks of sixteen, less as normal_serial_fill. Floating. Requires std >= 0.
template <class T>
void normal_fill(T* out, int64_t n, double mean, double std, CPUGeneratorImpl& generator);
/// Normal one by one in double precision; the second of a pair is kept in the generator. Floating.
template <class T>
void normal_serial_fill(T* out, int64_t n, double mean, double std, CPUGeneratorImpl& generator);
/// exp of a normal of mean and std. Floating. Requires std > 0.
template <class T>
void log_normal_fill(T* out, int64_t n, double mean, double std, CPUGeneratorImpl& generator);

/// 1 with probability p, else 0. Real and bool. Requires 0 <= p <= 1.
template <class T>
void bernoulli_fill(T* out, int64_t n, double p, CPUGeneratorImpl& generator);
/// The same with p[i] for element i. T Real and bool, P float or double (half probabilities are passed as
/// float).
template <class T, class P>
void bernoulli_tensor_fill(T* out, const P* p, int64_t n, CPUGeneratorImpl& generator);

/// Exponential with rate lambda. Floating. Requires lambda > 0.
template <class T>
void exponential_fill(T* out, int64_t n, double lambda, CPUGeneratorImpl& generator);
/// Number of trials up to the first success. Real. Requires 0 < p < 1.
template <class T>
void geometric_fill(T* out, int64_t n, double p, CPUGeneratorImpl& generator);
/// Cauchy. Floating. Requires sigma > 0.
template <class T>
void cauchy_fill(T* out, int64_t n, double median, double sigma, CPUGeneratorImpl& generator);

/// Integers base .. base + span - 1 (modulo 2^64); span 0 means all 2^64, as int64_t.
struct IntegerRange {
  int64_t base;
  uint64_t span;
};
/// The range that random_(from, to) draws from for elements of T. Without `to` it ends at T's largest value,
/// for floating T at 2^digits, and from the smallest int64_t it is all 2^64 integers. Bounds that floating T
/// cannot represent move inwards, with a warning. Raises when a bound is outside T or the range is empty.
/// Real and bool.
template <class T>
IntegerRange integer_range(int64_t from, std::optional<int64_t> to);
/// Raises when a bound of random_(from, to) is outside an unsigned type of 16 bits or more.
void check_wide_unsigned_range(ScalarType type, int64_t from, int64_t to);
/// Uniform integers of a range. Real and bool.
template <class T>
void random_range_fill(T* out, int64_t n, IntegerRange range, CPUGeneratorImpl& generator);
/// random_() without bounds: 0 .. T's largest value, for floating T 0 .. 2^digits. Real and bool.
template <class T>
void random_fill(T* out, int64_t n, CPUGeneratorImpl& generator);

/// A permutation of 0 .. n-1. Real. Requires that T can represent n - 1.
template <class T>
void randperm_fill(T* out, int64_t n, CPUGeneratorImpl& generator);
/// Number of elements from which randperm_fill uses the inside-out shuffle with 64-bit draws.
inline constexpr int64_t kLargeRandperm = 0xFFFFFFFFll / 20;
/// That shuffle, for any n.
template <class T>
void randperm_inside_out_fill(T* out, int64_t n, CPUGeneratorImpl& generator);

/// Draws `samples` categories of each row of probabilities p[rows][categories] (unnormalised) into
/// out[rows][samples]. Floating. A single sample is drawn as without replacement. Raises when a probability
/// is negative or not finite, or a row sums to 0. by_columns: what is drawn for each probability is drawn one column after the other.
template <class T>
void multinomial_with_replacement(int64_t* out, const T* p, int64_t rows, int64_t categories, int64_t samples, CPUGeneratorImpl& generator,
                                  bool by_columns = false);
/// The same without replacement; requires samples <= categories.
template <class T>
void multinomial_without_replacement(int64_t* out, const T* p, int64_t rows, int64_t categories, int64_t samples,
                                     CPUGeneratorImpl& generator, bool by_columns = false);

/// One Poisson or binomial number. Draws double uniforms until one is accepted; not finite or NaN gives NaN.
double sample_poisson(double rate, CPUGeneratorImpl& generator);
double sample_binomial(double count, double probability, CPUGeneratorImpl& generator);

/// Uniform on [from, to) and normal numbers of a counter-based stream, in parallel: element i depends on the
/// seed, the stream's position and i alone. Moves the position by the blocks used. Floating.
template <class T>
void philox_uniform_fill(T* out, int64_t n, double from, double to, PhiloxStream& stream);
template <class T>
void philox_normal_fill(T* out, int64_t n, double mean, double std, PhiloxStream& stream);

}  // namespace cresset::cpu
