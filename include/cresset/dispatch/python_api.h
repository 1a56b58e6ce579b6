// What cresset._C lends to extension modules that bind with another library: Python objects of tensors and value types.
//
//   const cresset::PythonApi& api = cresset::python_api();   // needs the interpreter lock
// Nothing here needs Python.h, and an extension links with libcresset only.
#pragma once

#include <cresset/dispatch/ivalue.h>

struct _object;  // PyObject

namespace cresset {

/// Functions of cresset._C. Those that give an object give a new reference, or null with a Python error set; those that take
/// one raise TypeError when it is of another type.
struct PythonApi {
  static constexpr uint32_t kVersion = 1;
  uint32_t version;
  bool (*is_tensor)(_object*);
  const Tensor& (*tensor)(_object*);  // unchecked
  _object* (*from_tensor)(Tensor);    // None for an undefined tensor
  bool (*is_dtype)(_object*);
  ScalarType (*dtype)(_object*);
  _object* (*from_dtype)(ScalarType);
  bool (*is_device)(_object*);
  Device (*device)(_object*);  // also from strings
  _object* (*from_device)(Device);
  bool (*is_layout)(_object*);
  Layout (*layout)(_object*);
  _object* (*from_layout)(Layout);
  bool (*is_memory_format)(_object*);
  MemoryFormat (*memory_format)(_object*);
  _object* (*from_memory_format)(MemoryFormat);
  bool (*is_generator)(_object*);
  const Generator& (*generator)(_object*);  // unchecked
  _object* (*from_generator)(Generator);
  bool (*is_number)(_object*);
  Scalar (*scalar)(_object*);
  _object* (*from_scalar)(const Scalar&);
  IValue (*value)(_object*);  // by what the object is
  _object* (*from_value)(IValue);
  _object* tensor_type;  // cresset.Tensor
  /// Sets the Python error of the C++ exception being handled.
  void (*set_error)() noexcept;
};

/// The table of the loaded cresset._C. Raises when it is not loaded.
CRESSET_API const PythonApi& python_api();
namespace detail {
/// Called by cresset._C.
CRESSET_API void set_python_api(const PythonApi* api);
}

}  // namespace cresset
