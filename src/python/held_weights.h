// What calls of compiled functions ask: weights that are held as constants, kinds of tensors, modes.
#pragma once

#include <cstdint>
#include <vector>

#include "python/object.h"

namespace cresset::python {

/// Are the tensors at these places of a list what _weights_held() made `held` of? Throws ErrorAlreadySet for another object.
CRESSET_PYTHON_API bool weights_unchanged(PyObject* held, PyObject* list, const std::vector<uint32_t>& places);

/// _weights_held, _weights_unchanged, _tensor_check, _call_state.
void init_held_weights(PyObject* module);

}  // namespace cresset::python
