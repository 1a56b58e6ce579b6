// The dispatcher in Python: queries, operators by schema name, libraries with kernels written in Python.
#pragma once

#include "python/object.h"

namespace cresset::python {

void init_dispatch(PyObject* module);
void init_ops(PyObject* module);
void init_library(PyObject* module);

}  // namespace cresset::python
