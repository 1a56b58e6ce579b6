// torch::data: datasets, samplers, transforms, data loaders.
#pragma once

#include <cresset_compat/nn.h>

#include <cresset/nn/chunk_dataset.h>

namespace torch::data {
using namespace cresset::data;
}
