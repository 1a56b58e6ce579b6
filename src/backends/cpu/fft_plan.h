// Complex Fourier transforms of one length, planned once and used from any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <cresset/core/allocator.h>

#include "backends/cpu/fft_loops.h"

namespace cresset::cpu {

/// Numbers of the processor's allocator, which keeps what comes back for the next one; not initialised.
template <class T>
class FftBuffer {
 public:
  /// At least this many, whatever they were before.
  T* numbers(int64_t count) {
    if (count > count_) {
      data_ = GetCPUAllocator()->allocate(static_cast<std::size_t>(count) * sizeof(T));
      count_ = count;
    }
    return static_cast<T*>(data_.get());
  }
  const T* get() const { return static_cast<const T*>(data_.get()); }

 private:
  DataPtr data_;
  int64_t count_ = 0;
};

/// Buffers of one thread for one plan.
template <class T>
struct FftWorkspace {
  FftBuffer<T> scratch, middle, block;
  std::unique_ptr<FftWorkspace> inner;  // of the plan inside of the plan
};

/// Is a transform of n points one that float alone makes less exact than others, so that it is to be computed in double? True of lengths
/// with large prime factors, which are convolutions.
bool fft_wants_double(int64_t n);

/// The transform X[k] = scale * sum_j x[j] exp(-2 pi i j k / n) or (not forward) that of exp(2 pi i j k / n).
template <class T>
class FftPlan {
 public:
  explicit FftPlan(int64_t n);
  int64_t size() const { return n_; }
  const FftLoops<T>& loops() const { return loops_; }
  int64_t width(bool wide) const { return wide ? loops_.lanes : 1; }
  /// Numbers in a block of `lanes` lines (wide) or of one.
  int64_t numbers(bool wide) const { return 2 * n_ * width(wide); }

  /// Are many lines quicker in blocks than one by one?
  bool takes_blocks() const;

  /// A block of fft_loops.h, changed on the way; not wide where takes_blocks() denies it. Returns where the result is: x, or in the
  /// workspace until its next use, with room for one element more.
  T* transform(T* x, bool wide, bool forward, T scale, FftWorkspace<T>& workspace) const;

  /// Is one line transformed in parts, so that it may lie in other memory than its result?
  bool in_parts() const { return down_ != nullptr; }
  /// One line in parts; from and to may be the same.
  void transform_in_parts(const T* from, T* to, bool forward, T scale, FftWorkspace<T>& workspace) const;

 private:
  void plan_stages();
  void plan_chirp();
  void plan_split(int64_t rows);
  T* chirp_transform(T* x, bool wide, bool forward, T scale, FftWorkspace<T>& workspace) const;
  void split_columns(const T* x, T* middle, bool forward, FftWorkspace<T>& workspace) const;
  void split_rows(const T* middle, T* out, bool forward, T scale, FftWorkspace<T>& workspace) const;

  const FftLoops<T>& loops_ = find_fft_loops<T>();
  int64_t n_;
  FftStages<T> stages_;
  // As a convolution with a chirp; its factors, and those with 1 / (its length):
  std::shared_ptr<const FftPlan> convolution_;
  std::vector<T> chirp_, chirp_spectrum_;
  // One line as a matrix of rows x columns, with a factor for each element, in blocks as the columns are:
  std::shared_ptr<const FftPlan> down_, along_;
  FftBuffer<T> factors_;
};

/// exp(-2 pi i k / n), pairs, for k < n/2: what makes a transform of n real numbers (n even) of one of n/2 complex ones.
template <class T>
struct RealFftFactors {
  explicit RealFftFactors(int64_t n);
  std::vector<T> pairs;
};

/// Plans of recent lengths are kept for the process.
template <class T>
std::shared_ptr<const FftPlan<T>> fft_plan(int64_t n);
template <class T>
std::shared_ptr<const RealFftFactors<T>> real_fft_factors(int64_t n);

extern template class FftPlan<float>;
extern template class FftPlan<double>;

}  // namespace cresset::cpu
