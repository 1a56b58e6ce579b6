// torch::save and torch::load, torch::serialize.
#pragma once

#include <cresset_compat/nn.h>
#include <cresset_compat/script.h>

#include <cresset/serialize.h>

namespace torch {
using cresset::load;
using cresset::save;
using cresset::jit::pickle_load;
using cresset::jit::pickle_save;
}  // namespace torch
