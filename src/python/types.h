// The small value types: dtype, layout, memory_format, device, Size, Generator.
#pragma once

#include "python/object.h"

#include <cresset/core/tensor.h>

namespace cresset::python {

// dtype, layout and memory_format are named constants: one object for each value.
struct PyConstant {
  PyObject_HEAD int value;
  const char* name;
};
extern PyTypeObject* dtype_type;
extern PyTypeObject* layout_type;
extern PyTypeObject* memory_format_type;

inline bool is_dtype(PyObject* o) { return Py_TYPE(o) == dtype_type; }
inline bool is_layout(PyObject* o) { return Py_TYPE(o) == layout_type; }
inline bool is_memory_format(PyObject* o) { return Py_TYPE(o) == memory_format_type; }
inline int constant_value(PyObject* o) { return reinterpret_cast<PyConstant*>(o)->value; }
/// Is o a dtype or one of the Python types float, int, bool, complex that stand for one?
bool is_dtype_like(PyObject* o);
CRESSET_PYTHON_API ScalarType to_scalar_type(PyObject* o);
/// New references.
CRESSET_PYTHON_API PyObject* wrap_dtype(ScalarType t);
/// What operators take beside these objects, as schemas of PyTorch call all of them int: their numbers, and the types of quantized
/// elements.
std::optional<ScalarType> operator_dtype(PyObject* o);
std::optional<Layout> operator_layout(PyObject* o);
std::optional<MemoryFormat> operator_memory_format(PyObject* o);
PyObject* wrap_layout(Layout l);
PyObject* wrap_memory_format(MemoryFormat f);

struct PyDevice {
  PyObject_HEAD Device device;
};
extern PyTypeObject* device_type_object;
inline bool is_device(PyObject* o) { return Py_TYPE(o) == device_type_object; }
CRESSET_PYTHON_API PyObject* wrap_device(Device d);
/// From a device, a string or an index, which counts the devices of the current accelerator (raises when there is none).
CRESSET_PYTHON_API Device to_device(PyObject* o);
/// Where a call from Python puts a tensor; AssertionError for CUDA and XPU, NotImplementedError for others where no such backend is mounted
/// and no mode that pretends is on.
Device to_present_device(PyObject* o);

extern CRESSET_PYTHON_API PyTypeObject* size_type;
/// A new Size.
PyObject* wrap_size(IntArrayRef sizes);

struct PyGenerator {
  PyObject_HEAD Generator generator;
};
extern PyTypeObject* generator_type;
inline bool is_generator(PyObject* o) { return Py_TYPE(o) == generator_type; }
PyObject* wrap_generator(Generator g);
inline const Generator& to_generator(PyObject* o) { return reinterpret_cast<PyGenerator*>(o)->generator; }

void init_constants(PyObject* module);
void init_device(PyObject* module);
void init_size(PyObject* module);
void init_generator(PyObject* module);
void init_accelerator(PyObject* module);
void init_device_memory(PyObject* module);
void init_python_backend(PyObject* module);
void init_profiler(PyObject* module);
void init_python_calls(PyObject* module);
void init_files(PyObject* module);

}  // namespace cresset::python
