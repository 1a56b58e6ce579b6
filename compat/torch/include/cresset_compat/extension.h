// torch/extension.h: everything but the layers, optimisers and data loaders of torch/torch.h, with Python.
#pragma once

#include <cresset_compat/nn_functional.h>
#include <cresset_compat/python.h>
