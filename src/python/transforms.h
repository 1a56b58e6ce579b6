// Levels of vmap and function transforms.
#pragma once

#include "python/object.h"

namespace cresset::python {

void init_transforms(PyObject* module);

}  // namespace cresset::python
