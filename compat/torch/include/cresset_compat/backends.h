// torch/csrc/jit/backends/: backends that take whole modules.
#pragma once

#include <cresset_compat/script.h>

#include <cresset/ir/backend.h>

namespace torch::jit {
using PyTorchBackendInterface = cresset::jit::BackendInterface;
using cresset::jit::backend;
using cresset::jit::backend_preprocess_register;
using cresset::jit::BackendDebugHandleGenerator;
using cresset::jit::BackendPreprocessFunction;
using cresset::jit::BackendRuntimeException;
using cresset::jit::NodeToDebugHandle;
using DebugHandleType = int64_t;
}  // namespace torch::jit

#define TORCH_DELEGATED_BACKEND_THROW(condition, message, debug_handle) \
  if (!(condition)) throw ::torch::jit::BackendRuntimeException(message, debug_handle)
