// Arguments and results between an operator's stack and functions written in Python.
#pragma once

#include <cresset/dispatch/function_schema.h>
#include <cresset/dispatch/ivalue.h>

#include "python/object.h"

namespace cresset::python {

/// An argument as Python has it. Enums travel as ints on the stack: the schema's type says which. Zero-dimensional tensors
/// that stand for Python numbers become those numbers again.
Ref argument_to_python(const IValue& v, const Type& type);

/// Drops the schema's arguments from the stack and pushes a Python function's result in their place.
void replace_by_results(const FunctionSchema& schema, PyObject* result, Stack& stack);

}  // namespace cresset::python
