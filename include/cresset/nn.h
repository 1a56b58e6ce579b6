// C++ modules, optimisers and weight files.
#pragma once

#include <cresset/nn/module.h>
#include <cresset/nn/modules.h>
#include <cresset/nn/optim.h>
#include <cresset/nn/safetensors.h>
