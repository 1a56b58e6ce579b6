// Linear layers of floats whose weights are packed in panels (panel_loops.h), with what follows them.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include <cresset/core/tensor.h>

#include "backends/cpu/activation_loops.h"
#include "backends/cpu/epilogue.h"

namespace cresset::cpu {

/// Any number of threads may call it.
class PackedRows {
 public:
  /// weight: (outputs, inputs), bias: (outputs), floats on the CPU. Null where oneDNN is as quick on this processor, or a step is oneDNN's
  /// only.
  static std::unique_ptr<const PackedRows> make(const Tensor& weight, const std::optional<Tensor>& bias, const Epilogue& epilogue);

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
  Tensor packed_;
  std::optional<Tensor> bias_;
  std::vector<Step> steps_;
};

}  // namespace cresset::cpu
