// The table of functions for extension modules that bind with another library (cresset/dispatch/python_api.h).
#include <cresset/dispatch/python_api.h>

#include "python/bind.h"
#include "python/convert.h"
#include "python/custom_class.h"

namespace cresset::python {

void init_extension_api() {
  static PythonApi api = {};
  api.version = PythonApi::kVersion;
  api.is_tensor = &is_tensor;
  api.tensor = &unwrap;
  api.from_tensor = &wrap;
  api.is_dtype = &is_dtype_like;
  api.dtype = &to_scalar_type;
  api.from_dtype = &wrap_dtype;
  api.is_device = [](PyObject* o) { return is_device(o) || PyUnicode_Check(o); };
  api.device = &to_device;
  api.from_device = &wrap_device;
  api.is_layout = &is_layout;
  api.layout = [](PyObject* o) { return static_cast<Layout>(constant_value(o)); };
  api.from_layout = &wrap_layout;
  api.is_memory_format = &is_memory_format;
  api.memory_format = [](PyObject* o) { return static_cast<MemoryFormat>(constant_value(o)); };
  api.from_memory_format = &wrap_memory_format;
  api.is_generator = &is_generator;
  api.generator = &to_generator;
  api.from_generator = &wrap_generator;
  api.is_number = &is_number;
  api.scalar = &to_scalar;
  api.from_scalar = &from_scalar;
  api.value = [](PyObject* o) { return to_ivalue(o, *basic_type(TypeKind::Any), "value"); };
  api.from_value = [](IValue v) { return to_python(std::move(v), false); };
  api.tensor_type = reinterpret_cast<PyObject*>(tensor_type);
  api.set_error = &translate_exception;
  cresset::detail::set_python_api(&api);
}

}  // namespace cresset::python
