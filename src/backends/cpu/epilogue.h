// What a packed product or convolution does with its result before it leaves the caches: pointwise steps, in order.
#pragma once

#include <dnnl.hpp>

#include <string>
#include <utility>
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
  /// For oneDNN.
  struct Pass {
    dnnl::post_ops steps;
    std::vector<int> operands;                   // the arguments of its operands, in order: DNNL_ARG_…
    std::vector<std::pair<int, float>> factors;  // arguments that are a number
  };
  /// The first `count` steps. `operands` describe the operands, which have y's sizes, and `scales` say what they stand for (stored *
  /// scale); the result is stored as y / scale.
  Pass onednn(std::size_t count, const std::vector<dnnl::memory::desc>& operands, const std::vector<float>& scales, float scale) const;
  /// Can oneDNN do all in one pass? Version 2.6 takes the numbers of the first of several steps of one kind for all of them.
  bool is_one_pass() const;
  /// A factor's description.
  static dnnl::memory::desc number();

 private:
  std::vector<EpilogueStep> steps_;
  std::size_t operands_ = 0;
};

}  // namespace cresset::cpu
