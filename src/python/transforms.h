// Levels of vmap and function transforms.
#pragma once

#include "python/object.h"

namespace cresset::python {

void init_transforms(PyObject* module);

/// Is the innermost transform of this thread one that takes derivatives, entered inside of all vmaps? Then a batched tensor has the history
/// of its value: there `requires_grad` is what the function of vmap(grad(f)) sees.
bool derivatives_are_innermost();

}  // namespace cresset::python
