// Script modules and objects of Python in C++.
#pragma once

#include <cresset_compat/python.h>
#include <cresset_compat/script.h>

namespace torch::jit {

/// The module of a ScriptModule, or of a function's owner; nothing for other objects.
inline std::optional<Module> as_module(py::handle object) {
  if (!py::isinstance(object, py::module_::import("cresset.jit").attr("ScriptModule"))) return std::nullopt;
  return Module(cresset::python_api().value(object.ptr()).toObject());
}
/// The object of a script class; nothing for others.
inline std::optional<Object> as_object(py::handle object) {
  if (!py::isinstance(object, py::module_::import("cresset").attr("ScriptObject"))) return std::nullopt;
  return Object(cresset::python_api().value(object.ptr()).toObject());
}

}  // namespace torch::jit
