// The __torch_dispatch__ protocol: subclasses and modes that see operators below autograd.
#pragma once

#include "python/tensor_type.h"

namespace cresset::python {

/// Does instances' class define __torch_dispatch__?
bool type_dispatches(PyTypeObject* type);

/// The keys a tensor gets on top of its own when its object is of this type.
DispatchKeySet keys_of_type(PyTypeObject* type);

/// A tensor on the same memory whose copies are made by __torch_dispatch__ (aten.detach) of its object.
Tensor dispatching_alias(const Tensor& t);

extern PyMethodDef dispatch_mode_methods[];  // Tensor._make_wrapper_subclass
void init_dispatch_mode(PyObject* module);

}  // namespace cresset::python
