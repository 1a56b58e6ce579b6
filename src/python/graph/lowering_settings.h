// What calls of the lowering phase from Python share.
#pragma once

#include <cresset/ir/lowering.h>

#include "python/bind.h"

namespace cresset::python {

/// {"options": ["name=value"], "inputs": [text or None], "input_devices": [device or None], "only": […], "stop_after": str, "dump_before":
/// […], "dump_after": […], "check_with": (…), "verify": bool}
jit::PipelineOptions pipeline_options(PyObject* dict);
/// The C++ module of a script module or its `_c`; TypeError for others.
jit::Module module_of(PyObject* o);

}  // namespace cresset::python
