// What a packed product or convolution does with its result before it leaves the caches: pointwise steps, in order.
#pragma once

#include <dnnl.hpp>

#include <string>
#include <vector>

#include <cresset/core/tensor.h>

namespace cresset::cpu {

/// One step: y becomes f(y; a, b), or y combined with the next operand ("add", "mul").
struct EpilogueStep {
  std::string name;
  double a = 0, b = 0;
  bool takes_operand() const { return name == "add" || name == "mul"; }
};

class Epilogue {
 public:
  /// numbers: a and b of each step. Raises ValueError for names that there are not.
  Epilogue(const std::vector<std::string>& names, const std::vector<double>& numbers);
  const std::vector<EpilogueStep>& steps() const { return steps_; }
  std::size_t num_operands() const { return operands_; }
  /// The names of steps.
  static std::vector<std::string> known();

  /// The same by operators, one after the other.
  Tensor apply(Tensor y, TensorList operands) const;
  /// For oneDNN; `operand` describes each operand, which has y's sizes.
  dnnl::post_ops onednn(const dnnl::memory::desc& operand) const;
  /// The arguments of its operands, in order: DNNL_ARG_….
  std::vector<int> onednn_arguments() const;

 private:
  std::vector<EpilogueStep> steps_;
  std::size_t operands_ = 0;
};

}  // namespace cresset::cpu
