// Hooks that run before and after a node, and after a gradient has been accumulated.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <cresset/autograd/edge.h>

namespace cresset::autograd {

/// Sees the gradients a node is about to get; gives back the ones it shall get.
struct CRESSET_API FunctionPreHook {
  virtual ~FunctionPreHook() = default;
  virtual variable_list operator()(const variable_list& grads) = 0;
};

/// Sees what a node gave (outputs) and got (inputs); gives back the ones that travel on.
struct CRESSET_API FunctionPostHook {
  virtual ~FunctionPostHook() = default;
  virtual variable_list operator()(const variable_list& outputs, const variable_list& inputs) = 0;
};

/// Runs after a leaf's .grad was set by backward.
struct CRESSET_API PostAccumulateGradHook {
  virtual ~PostAccumulateGradHook() = default;
  virtual void operator()(const Tensor& variable) = 0;
};

}  // namespace cresset::autograd
