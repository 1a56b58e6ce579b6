// torch::nn and torch::optim: modules, their options and functions, optimisers.
#pragma once

#include <cresset_compat/nn_functional.h>

#include <cresset/nn.h>
