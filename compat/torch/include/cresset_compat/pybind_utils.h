// torch/csrc/jit/python: values and graphs between C++ and Python.
#pragma once

#include <cresset_compat/jit.h>
#include <cresset_compat/python.h>
