// Weights that compiled functions hold as constants.
#pragma once

#include <Python.h>

namespace cresset::python {

/// _weights_held, _weights_unchanged.
void init_held_weights(PyObject* module);

}  // namespace cresset::python
