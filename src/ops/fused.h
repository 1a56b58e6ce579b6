// Checks that the optimiser steps on lists share.
#pragma once

#include <initializer_list>
#include <optional>

#include <cresset/core/tensor.h>

namespace cresset::ops {

struct NamedList {
  const char* name;
  TensorList list;
};

/// Every list has as many tensors as `params`; those of `like` also have the parameter's size, type and device.
void check_fused(const char* op, TensorList params, std::initializer_list<NamedList> like, std::initializer_list<NamedList> others = {});

/// Whether a gradient scaler says that the step must not happen.
CRESSET_API bool found_infinity(const std::optional<Tensor>& found_inf);

}  // namespace cresset::ops
