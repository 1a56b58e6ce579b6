// torch/extension.h with Python. Layers, optimisers, data loaders and archives take a third of the time it would need to compile, and
// few sources want them: they come with torch/torch.h, or with the macro that utils.cpp_extension defines for sources that name them.
#pragma once

#ifdef CRESSET_WHOLE_FRONT_END
#include <cresset_compat/api.h>
#include <cresset_compat/python_modules.h>
#else
#include <cresset_compat/nn_functional.h>
#include <cresset_compat/python.h>
#endif
