// torch::data: datasets, samplers, transforms, data loaders.
#pragma once

#include <cresset_compat/nn.h>

#include <cresset/nn/chunk_dataset.h>

// Each namespace by itself: programs open them to add their own.
namespace torch::data {
using namespace cresset::data;
namespace datasets {
using namespace cresset::data::datasets;
}
namespace transforms {
using namespace cresset::data::transforms;
}
using datasets::BatchDataset;
using datasets::Dataset;
}  // namespace torch::data
