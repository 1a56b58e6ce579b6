// The Python class Tensor: one object a tensor for the tensor's life.
//
// Normally the object owns a reference of the tensor and the tensor knows its object. When the object dies while C++ still
// holds the tensor and the object carries state (a subclass, attributes, weak references, hooks), ownership flips: the
// tensor keeps the object until Python asks for it again. An object without state simply dies and is made anew.
#pragma once

#include "python/object.h"

#include <cresset/core/tensor.h>

namespace cresset::python {

struct PyTensor {
  PyObject_HEAD Tensor tensor;
  PyObject* dict;
  PyObject* weakrefs;
  PyObject* backward_hooks;  // dict of the hooks that register_hook made, or null
  PyObject* post_accumulate_hooks;
  bool owned_by_tensor;  // flipped: `tensor` is not counted
};

/// cresset.Tensor.
extern CRESSET_PYTHON_API PyTypeObject* tensor_type;

inline bool is_exact_tensor(PyObject* o) { return Py_TYPE(o) == tensor_type; }
inline bool is_tensor(PyObject* o) { return is_exact_tensor(o) || PyType_IsSubtype(Py_TYPE(o), tensor_type); }
/// The tensor of a Tensor object (unchecked).
inline const Tensor& unwrap(PyObject* o) { return reinterpret_cast<PyTensor*>(o)->tensor; }

/// Tensors of so many elements are worth the cost of giving the lock away.
inline constexpr int64_t kReleaseNumel = 1 << 14;
/// Is t worth the cost, or on a device? A device may wait for its queue, and what runs there may need the interpreter too.
inline bool may_wait(const Tensor& t) {
  if (!t.defined()) return false;
  if (!t.is_cpu()) return !t.is_meta();
  // Tensors without storage may be wrappers that would have to be asked for their size.
  return t.unsafeGetTensorImpl()->unsafe_storage() && t.numel() >= kReleaseNumel;
}
inline bool may_wait(const Device& d) { return !d.is_cpu() && !d.is_meta(); }

/// The object of a tensor, a new reference; None for an undefined tensor. Null with an error set when memory is short.
CRESSET_PYTHON_API PyObject* wrap(Tensor tensor);
/// Python runs a finalizer once in an object's life; of an object that lives on afterwards it must run again.
void allow_finalizer_again(PyObject* o);
/// A new object of a subclass for a tensor that has no object yet.
PyObject* wrap_as(PyTypeObject* type, Tensor tensor);
/// Lets the collector see an object that now carries Python state.
void note_state(PyObject* tensor);

/// Creates the class; methods, properties and operators come from the tables of the other files.
void init_tensor_type(PyObject* module);

// The tables that make up the class.
extern PyGetSetDef tensor_properties[];
PyMethodDef* all_tensor_methods();
extern PyType_Slot tensor_number_slots[];    // number protocol and comparison
extern PyType_Slot tensor_sequence_slots[];  // length, indexing, iteration
PyObject* tensor_new(PyTypeObject* type, PyObject* args, PyObject* kwargs);

}  // namespace cresset::python
