// Tensors from Python data and from foreign memory.
#pragma once

#include <optional>

#include "python/convert.h"

namespace cresset::python {

/// Says that a tensor made of a tensor is better made by clone(); `call` is what was written.
void warn_of_copy(const char* call);

/// A tensor with a copy of nested sequences, numbers, tensors, arrays or buffers; the dtype is inferred when not given.
Tensor tensor_from_data(PyObject* data, std::optional<ScalarType> dtype, std::optional<Device> device);
/// For the argument requires_grad of what makes tensors.
void require_grad_of_new(Tensor t);
/// Does o expose NumPy's array interface (an array, not a scalar)?
bool is_array(PyObject* o);
/// The memory of an array as a tensor, shared.
Tensor tensor_from_array(PyObject* array);
/// A tensor over memory that belongs to `owner`.
Tensor tensor_over(void* data, PyObject* owner, IntArrayRef sizes, IntArrayRef strides, ScalarType dtype);

PyObject* tensor_to_numpy(const Tensor& t, bool force);
extern PyType_Slot tensor_buffer_slots[];
extern PyMethodDef tensor_exchange_methods[];  // numpy, __array__, __dlpack__, …

void init_tensor_new(PyObject* module);
void init_numpy(PyObject* module);
void init_dlpack(PyObject* module);
void init_storage(PyObject* module);

}  // namespace cresset::python
