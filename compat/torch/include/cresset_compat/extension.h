// torch/extension.h: everything, with Python.
#pragma once

#include <cresset_compat/nn.h>
#include <cresset_compat/python.h>
