// Inner loops of the optimiser steps on lists, compiled for every instruction set. Each reads and writes every element once.
#pragma once

#include <cstdint>

#include "backends/cpu/isa.h"

namespace cresset::cpu {

/// How weight decay acts: not at all, through the gradient, or on the parameter itself.
enum class Decay : uint8_t { None, Gradient, Parameter };

struct FusedCommon {
  double grad_scale = 1;  // gradients are divided by it, and stored so, when `scaled`
  bool scaled = false;
  double sign = 1;  // -1 to maximise
  Decay decay = Decay::None;
  double weight_decay = 0;  // for Decay::Parameter already times the learning rate
};
struct FusedAdamStep : FusedCommon {
  double beta1 = 0, beta2 = 0, eps = 0;
  double step_size = 0;   // learning rate / (1 - beta1^step)
  double correction = 1;  // sqrt(1 - beta2^step)
};
struct FusedSgdStep : FusedCommon {
  double lr = 0, momentum = 0, dampening = 0;
  bool nesterov = false, first = false;
};
struct FusedAdagradStep : FusedCommon {
  double step_size = 0, eps = 0;
};

// n elements; `largest` is null without amsgrad, `buffer` without momentum. T is float or double.
template <class T>
struct FusedLoops {
  void (*adam)(T* param, T* grad, T* average, T* square, T* largest, int64_t n, const FusedAdamStep& step);
  void (*sgd)(T* param, T* grad, T* buffer, int64_t n, const FusedSgdStep& step);
  void (*adagrad)(T* param, T* grad, T* sum, int64_t n, const FusedAdagradStep& step);
};

CRESSET_IN_EACH_ISA(const FusedLoops<float>& fused_loops(float); const FusedLoops<double>& fused_loops(double);)

// The loops for this process.
template <class T>
const FusedLoops<T>& find_fused_loops() {
  return CRESSET_FOR_THIS_PROCESSOR(fused_loops(T()));
}

}  // namespace cresset::cpu
