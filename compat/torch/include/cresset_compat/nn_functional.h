// torch::nn as far as it costs little to compile: Module, TORCH_MODULE, options, functional. nn.h has the rest.
#pragma once

#include <cresset_compat/torch.h>

#include <cresset/nn/functional.h>
#include <cresset/nn/module.h>

namespace torch {
using cresset::nn::ExpandingArray;
using cresset::nn::ExpandingArrayWithOptionalElem;
using cresset::nn::OrderedDict;
namespace enumtype {
using namespace cresset::nn::enumtype;
}
#define CRESSET_CHOICE(name) using cresset::nn::name;
CRESSET_FORALL_CHOICES(CRESSET_CHOICE)
#undef CRESSET_CHOICE
namespace nn {
using namespace cresset::nn;
}
namespace optim {
using namespace cresset::optim;
}
namespace serialize {
using namespace cresset::serialize;
}
}  // namespace torch

#define TORCH_ARG(T, name) CRESSET_ARG(T, name)
#define TORCH_MODULE(Name) CRESSET_MODULE(Name)
#define TORCH_MODULE_IMPL(Name, ImplType) CRESSET_MODULE_IMPL(Name, ImplType)
#define FORWARD_HAS_DEFAULT_ARGS(...) CRESSET_FORWARD_DEFAULTS(__VA_ARGS__)
