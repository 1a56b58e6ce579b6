// torch/script.h: scripts as C++ sees them.
#pragma once

#include <cresset_compat/torch.h>

#include <cresset/ir/archive.h>
#include <cresset/ir/module.h>

namespace torch {
namespace jit {
namespace script {
using cresset::jit::Method;
using cresset::jit::Module;
using cresset::jit::Object;
}  // namespace script
}  // namespace jit
}  // namespace torch
