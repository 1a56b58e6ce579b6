// Objects of C++ classes that extensions register (cresset/dispatch/custom_class.h), as Python objects.
#pragma once

#include <cresset/dispatch/function_schema.h>
#include <cresset/dispatch/ivalue.h>

#include "python/object.h"

namespace cresset::python {

/// cresset.ScriptObject.
extern PyTypeObject* script_object_type;
bool is_script_object(PyObject* o);
/// A new reference.
PyObject* wrap_script_object(IValue object);
/// The value (unchecked).
const IValue& unwrap_script_object(PyObject* o);

/// The words for an argument that does not fit, as PyTorch's (ops.cpp).
std::string wrong_type(const FunctionSchema& schema, std::size_t at, PyObject* o);

void init_custom_class(PyObject* module);
void init_extension_api();

}  // namespace cresset::python
