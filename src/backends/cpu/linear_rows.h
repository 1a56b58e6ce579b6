// Linear layers of floats by products of our own (panel_loops.h), which read a large weight where it is, with what follows them.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include <cresset/core/tensor.h>

#include "backends/cpu/activation_loops.h"
#include "backends/cpu/epilogue.h"

namespace cresset::cpu {

/// Any number of threads may call it.
class LinearRows {
 public:
  /// weight: (outputs, inputs), bias: (outputs), floats on the CPU. Null where oneDNN is as quick on this processor for any number of rows,
  /// or a step is oneDNN's only.
  static std::unique_ptr<const LinearRows> make(const Tensor& weight, const std::optional<Tensor>& bias, const Epilogue& epilogue);

  /// Is it quicker than oneDNN for so many rows of so many inputs?
  static bool takes(int64_t rows, int64_t inputs);

  /// x: (..., inputs) of float32, with elements. Operands: float32 of the result's sizes.
  Tensor run(const Tensor& x, TensorList operands) const;
  /// The layer over `rows` rows that lie one after the other, as those of the operands and of y.
  void run(const float* x, int64_t rows, const std::vector<const float*>& operands, float* y) const;

 private:
  struct Step {
    ActivationLoops::Loop loop;  // null: a join
    float a, b;
    ActivationLoops::Join join;
  };

  int64_t outputs_ = 0, inputs_ = 0;
  Tensor weight_, turned_;  // the latter: a copy of a small weight, or undefined
  std::optional<Tensor> bias_;
  std::vector<Step> steps_;
};

}  // namespace cresset::cpu
