// Complex Fourier transforms of one length, planned once and used from any thread.
#pragma once

#include <kissfft/kissfft.hh>

#include <complex>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace cresset::cpu {

using FftNumber = std::complex<double>;

/// Buffers of one thread for one plan.
struct FftWorkspace {
  std::vector<FftNumber> first, second;
  std::optional<kissfft<double>> own;
  std::unique_ptr<FftWorkspace> inner;  // of the plan inside of the plan
};

/// The unnormalised forward transform X[k] = sum_j x[j] exp(-2 pi i j k / n). Single precision is computed in double precision
/// too: kissfft's scalar code is equally fast in both, and its twiddle factors in float lose three bits at 10^6 points.
class FftPlan {
 public:
  explicit FftPlan(int64_t n);
  int64_t size() const { return n_; }
  /// in and out have n elements each and do not overlap.
  void forward(const FftNumber* in, FftNumber* out, FftWorkspace& workspace) const;

 private:
  void plan_chirp();
  void plan_split(int64_t rows);
  void chirp_transform(const FftNumber* in, FftNumber* out, FftWorkspace& workspace) const;
  void split_transform(const FftNumber* in, FftNumber* out, FftWorkspace& workspace) const;

  int64_t n_;
  // One of three ways. Directly:
  std::optional<kissfft<double>> direct_;
  bool private_scratch_ = false;  // kissfft has a scratch buffer inside of the plan for factors above 5
  // As a convolution with a chirp:
  std::shared_ptr<const FftPlan> convolution_;
  std::vector<FftNumber> chirp_, chirp_spectrum_;
  // As a matrix of rows x columns, and exp(-2 pi i m / n) as coarse[m / kFine] * fine[m % kFine]:
  std::shared_ptr<const FftPlan> down_, along_;
  std::vector<FftNumber> coarse_, fine_;
};

/// Transforms between n real numbers (n even) and n/2 complex ones seen as pairs.
struct RealFftPlan {
  explicit RealFftPlan(int64_t n);
  std::shared_ptr<const FftPlan> half;
  std::vector<FftNumber> twiddles;  // exp(-2 pi i k / n) for k < n/2
};

/// Plans of recent lengths are kept for the process.
std::shared_ptr<const FftPlan> fft_plan(int64_t n);
std::shared_ptr<const RealFftPlan> real_fft_plan(int64_t n);

}  // namespace cresset::cpu
