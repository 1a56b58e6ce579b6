// Folds: the inner loops of reductions, compiled for every instruction set, and the driver that runs them over
// strided tensors.
#pragma once

#include <cresset/core/tensor.h>

#include <cstdint>

#include "backends/cpu/isa.h"

namespace cresset::cpu {

enum class FoldKind : uint8_t {
  Sum,           // double; int64_t for integers
  NanSum,        // the same without NaNs
  Prod,          // double; int64_t for integers
  CountNonzero,  // int64_t; NaN is not zero
  Max,           // element type (float for half types); NaN wins
  Min,
  SumAbs,      // double
  SumSquares,  // double
  MaxAbs,      // double; NaN wins
  MinAbs,      // double; NaN wins
  Moments,     // FoldMoments
  ArgMax,      // FoldIndexed; NaN wins, the first of equals
  ArgMin,
};
inline constexpr int kFoldKinds = 13;
inline constexpr int kFoldTypes = 16;  // by numeric value of ScalarType; complex types have no folds

struct FoldMoments {
  double n, mean, m2;  // count, mean, sum of squared distances from the mean
};
struct FoldIndexed {
  double value;   // for floating types
  int64_t exact;  // for integers
  int64_t index;  // -1: nothing yet
};

// One fold. Accumulators are arrays; rows and columns combine what they read into them. Strides count elements.
struct Fold {
  uint8_t acc_size;
  void (*init)(void* acc, int64_t n);
  // acc[i] takes in `n` elements, `stride` apart, from data + i * row_stride; the first has index first_index.
  void (*rows)(const void* data, int64_t count, int64_t row_stride, int64_t n, int64_t stride, int64_t first_index, void* acc);
  // acc[c] takes in `count` elements, row_stride apart, from data + c, for c < n <= kFoldTile.
  void (*columns)(const void* data, int64_t count, int64_t row_stride, int64_t n, int64_t first_index, void* acc);
  // acc[i] takes in other[i], which stands for elements behind those of acc[i].
  void (*combine)(void* acc, const void* other, int64_t n);
};
inline constexpr int64_t kFoldTile = 1024;

using FoldTable = Fold[kFoldKinds][kFoldTypes];
CRESSET_IN_EACH_ISA(const FoldTable& folds();)

// The fold for this process; raises `"op" not implemented for 'ComplexFloat'` when there is none for the type.
const Fold& find_fold(FoldKind kind, ScalarType type, const char* op);

// Receives finished accumulators: n of them, for out elements at offset, offset + stride, … .
class FoldSink {
 public:
  virtual void store(const void* acc, int64_t n, int64_t offset, int64_t stride) const = 0;

 protected:
  ~FoldSink() = default;
};

// Reduces the dimensions in `mask` of self. `out_sizes_strides` describes where results go: out has the kept dimensions
// in order (with or without the reduced ones as size 1). The order of additions depends on sizes and strides only.
void run_fold(const Fold& fold, const Tensor& self, uint64_t mask, const Tensor& out, const FoldSink& sink);

// run_fold with a lambda (const Acc* acc, int64_t n, int64_t offset, int64_t stride).
template <class Acc, class F>
void reduce_with(const Fold& fold, const Tensor& self, uint64_t mask, const Tensor& out, const F& f) {
  struct Sink final : FoldSink {
    explicit Sink(const F& f) : f_(f) {}
    void store(const void* acc, int64_t n, int64_t offset, int64_t stride) const override {
      f_(static_cast<const Acc*>(acc), n, offset, stride);
    }
    const F& f_;
  };
  run_fold(fold, self, mask, out, Sink(f));
}

}  // namespace cresset::cpu
