// torch/torch.h: the whole C++ front end.
#pragma once

#include <cresset_compat/archive.h>
#include <cresset_compat/data.h>

// Builds of extensions get torch/extension.h with it, as the macro asks.
#if defined(TORCH_API_INCLUDE_EXTENSION_H) && __has_include(<pybind11/pybind11.h>) && __has_include(<Python.h>)
#include <cresset_compat/python_modules.h>
#endif
