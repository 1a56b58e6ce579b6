// Inner loops of Fourier transforms, compiled for every instruction set: as many lines at once as a register has numbers.
//
// A block of lines is an array [n][2][width]: element i of all lines, real parts first. `width` is the number of numbers in a register
// ("lanes"), or 1: a single line, which is then n pairs.
#pragma once

#include <cstdint>
#include <vector>

#include "backends/cpu/isa.h"

namespace cresset::cpu {

/// A length as a product of radices, with the factors between their stages.
template <class T>
struct FftStages {
  int64_t n = 1;
  std::vector<int> radices;
  /// For each stage of radix p on subsequences of p * m elements: exp(-2 pi i j k / (p m)), pairs, for k < m and 0 < j < p.
  std::vector<T> twiddles;
  /// For each stage of a radix without a formula of its own: exp(-2 pi i j / p), pairs, for j < p.
  std::vector<T> roots;
};

/// Radices that have formulas; others take p steps for each element.
inline constexpr int kFftRadices[] = {8, 4, 2, 3, 5};

/// Where the lines of a block are in memory: that of line l begins at first + l * between; numbers of type S.
template <class S>
struct FftLines {
  S* first;
  int64_t between;
  int64_t stride;  // between the elements of a line, in elements
  int64_t count;   // at most lanes
};

template <class T>
struct FftLoops {
  int64_t lanes;

  /// The unnormalised transform of x times `scale`, in x or in `scratch`, which is as large: where it says. `wide`: `lanes` lines, else
  /// one.
  T* (*transform)(const FftStages<T>& stages, T* x, T* scratch, bool wide, bool forward, T scale);
  /// x = x * factors, element by element; the same factor (a pair) for all lines.
  void (*multiply)(T* x, const T* factors, int64_t n, bool wide);
  /// to = x * factors for a factor of each line's own: factors are a block too. With `conjugate` by the conjugates of them. May be in
  /// place.
  void (*multiply_each)(const T* x, const T* factors, int64_t n, bool conjugate, T* to);
  /// Columns of a matrix that are the lines of blocks, one behind the other, of `rows` elements each: the block of the matrix's rows from
  /// `first` on, `count` of them.
  void (*turn)(const T* blocks, int64_t rows, int64_t columns, int64_t first, int64_t count, T* to);

  /// Complex lines into a block and back; `n` elements. Lines that are not there are zero.
  void (*read)(const FftLines<const T>& lines, int64_t n, T* block);
  void (*write)(const T* block, int64_t n, const FftLines<T>& lines);
  /// Real lines of 2n numbers, two neighbours of which are one element.
  void (*read_pairs)(const FftLines<const T>& lines, int64_t n, T* block);
  void (*write_pairs)(const T* block, int64_t n, const FftLines<T>& lines);

  /// Half a spectrum of 2m real numbers (m + 1 elements, in place) from the transform of its m pairs. With E and O the transforms of the
  /// even and the odd elements, z = E + iO, E[k] = conj(E[m-k]), O likewise, and X[k] = E[k] + exp(-2 pi i k / 2m) O[k].
  void (*unpack_pairs)(T* z, const T* twiddles, int64_t m, bool wide);
  /// The reverse, for an unnormalised inverse transform. Imaginary parts of x[0] and x[m], which real signals do not have, are ignored.
  void (*pack_pairs)(T* x, const T* twiddles, int64_t m, bool wide);
};

CRESSET_IN_EACH_ISA(extern const FftLoops<float> fft_loops_float; extern const FftLoops<double> fft_loops_double;)

template <class T>
const FftLoops<T>& find_fft_loops();
template <>
inline const FftLoops<float>& find_fft_loops<float>() {
  return CRESSET_FOR_THIS_PROCESSOR(fft_loops_float);
}
template <>
inline const FftLoops<double>& find_fft_loops<double>() {
  return CRESSET_FOR_THIS_PROCESSOR(fft_loops_double);
}

}  // namespace cresset::cpu
