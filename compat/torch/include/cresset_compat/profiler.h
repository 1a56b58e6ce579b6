// torch/csrc/autograd/profiler.h: a profile of a scope as a file.
#pragma once

#include <cresset_compat/namespaces.h>

#include <cresset/autograd/profiler.h>

namespace torch::autograd::profiler {
using cresset::autograd::profiler::RecordProfile;
}  // namespace torch::autograd::profiler
