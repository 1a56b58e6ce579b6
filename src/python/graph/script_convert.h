// Objects of scripts' classes, enumerators, named tuples, futures and functions between Python and the stack.
#pragma once

#include <cresset/dispatch/script_values.h>
#include <cresset/ir/module.h>

#include "python/object.h"

namespace cresset::python {

/// The unit of what Python scripts define; lives as long as the process.
const std::shared_ptr<jit::CompilationUnit>& python_unit();
/// Another one, in which all names are free.
void begin_python_unit();

/// cresset._C.ScriptModule: a handle of an object (a module's, or one of a class without Python form).
extern PyTypeObject* script_module_type;
/// A new handle.
PyObject* wrap_object(jit::Object object);
/// The object of a handle, or of a Python object that has one as `_c`; empty for others.
jit::Object object_of(PyObject* o);

/// A new reference; null without an error for values that are none of a script's.
PyObject* script_value_to_python(const IValue& v);
/// Could `o` be passed for a type of scripts (object, interface, enum, named tuple, future, function)?
bool fits_script_type(PyObject* o, const Type& type);
/// The value for such a type.
IValue to_script_value(PyObject* o, const Type& type);
/// The value of an object whose kind says what it is; nothing for others.
std::optional<IValue> infer_script_value(PyObject* o);
/// The Python class behind a qualified name: objects, enumerators and named tuples of scripts become its instances.
void remember_class(const std::string& qualified_name, PyObject* cls);

void init_script_module(PyObject* module);
void init_script_container(PyObject* module);
void init_script_future(PyObject* module);
void init_export(PyObject* module);
void init_backends(PyObject* module);

/// The list or dictionary that a jit.ScriptList or ScriptDict holds, and its type.
std::optional<std::pair<IValue, TypePtr>> container_of_object(PyObject* o);
/// cresset._C.Future.
PyObject* wrap_future(intrusive_ptr<ivalue::Future> future);
intrusive_ptr<ivalue::Future> future_of_object(PyObject* o);

}  // namespace cresset::python
