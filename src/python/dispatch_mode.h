// The __torch_dispatch__ protocol: subclasses and modes that see operators below autograd.
#pragma once

#include <cresset/dispatch/dispatcher.h>

#include "python/tensor_type.h"

namespace cresset::python {

/// Does instances' class define __torch_dispatch__?
bool type_dispatches(PyTypeObject* type);

/// Asks the innermost mode, then the arguments' classes; null when there is nobody to ask. The lock must be held.
Ref ask_torch_dispatch(const OperatorHandle& op, const IValue* values, std::size_t n, bool question = false);

/// Is a mode of this thread on?
bool any_dispatch_mode();

/// The keys a tensor gets on top of its own when its object is of this type.
DispatchKeySet keys_of_type(PyTypeObject* type);

/// A tensor on the same memory whose copies are made by __torch_dispatch__ (aten.detach) of its object.
Tensor dispatching_alias(const Tensor& t);

/// What Python sees of a tensor whose class answers for itself (_make_wrapper_subclass: dispatch_device, dispatch_sizes_strides_policy);
/// C++ sees what the tensor was made with, and asks only for sizes and strides.
Device device_seen(const Tensor& t);
int64_t dim_seen(const Tensor& t);
int64_t storage_offset_seen(const Tensor& t);
/// The storage that a wrapper without memory shows in Python: bytes and a device, no address. Nothing for other tensors.
std::optional<Storage> wrapper_storage(const Tensor& t);

/// What foreign_keys_of() was of a wrapper's _extra_dispatch_keys; 0 for other tensors.
uint64_t foreign_keys(const Tensor& t);

/// Lets the class answer in __torch_dispatch__ for sizes and strides (None, "strides" or "sizes"), device and layout of a
/// dispatching_alias.
void let_class_answer(const Tensor& t, PyObject* sizes_strides_policy, bool device, bool layout);

/// Lets a wrapper show the storage that another shows; nothing for other tensors.
void share_shown_storage(const Tensor& view, const Tensor& base);

extern PyMethodDef wrapper_subclass_methods[];  // Tensor._make_wrapper_subclass
void init_wrapper_subclass(PyObject* module);
void init_dispatch_mode(PyObject* module);

}  // namespace cresset::python
