// The dispatcher in Python: queries, operators by schema name, libraries with kernels written in Python, autocast.
#pragma once

#include <cresset/dispatch/dispatcher.h>

#include "python/object.h"

namespace cresset::python {

/// The object of an overload, one for each: torch.ops.aten.add.Tensor (a new reference).
PyObject* wrap_overload(const OperatorHandle& op);

/// (name, overload, [(name, type, default or None, has default, keyword only, is mutated, alias set)], [(name, type, is mutated, alias
/// set)]), from which cresset._ops.FunctionSchema is made.
CRESSET_PYTHON_API Ref schema_parts(const FunctionSchema& schema);

/// A DispatchKey object or its name.
DispatchKey to_dispatch_key(PyObject* o);
/// A DispatchKeySet object.
DispatchKeySet to_key_set(PyObject* o);
/// Of a DispatchKeySet object, its keys of devices and layouts that cannot exist here: one bit each.
uint64_t foreign_keys_of(PyObject* o);

void init_dispatch(PyObject* module);
void init_ops(PyObject* module);
void init_library(PyObject* module);
void init_autocast(PyObject* module);

}  // namespace cresset::python
