// torch::data: datasets, samplers, transforms, data loaders.
#pragma once

#include <cresset_compat/nn.h>

#include <cresset/nn/data_loader.h>

namespace torch::data {
using namespace cresset::data;
}
