// torch/torch.h, torch/script.h, torch/all.h: modules, optimisers, data and files.
#pragma once

#include <cresset_compat/serialize.h>
#include <cresset_compat/torch.h>

#include <cresset/nn.h>

namespace torch {
namespace nn {
using namespace cresset::nn;
}
namespace optim {
using namespace cresset::optim;
}
}  // namespace torch

#define TORCH_MODULE(Name) CRESSET_MODULE(Name)
