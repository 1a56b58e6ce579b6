// Values between Python and the stack.
#pragma once

#include <cresset/dispatch/function_schema.h>
#include <cresset/dispatch/ivalue.h>

#include "python/tensor_type.h"
#include "python/types.h"

namespace cresset::python {

/// A scalar object of NumPy (numpy.float32(1)), not an array. Does not import NumPy.
bool is_numpy_scalar(PyObject* o);
/// int, float, complex, bool or a scalar of NumPy.
inline bool is_number(PyObject* o) { return PyLong_Check(o) || PyFloat_Check(o) || PyComplex_Check(o) || is_numpy_scalar(o); }
/// int (not bool) or anything with __index__, zero-dimensional integral tensors included.
bool is_int(PyObject* o);
/// is_int, or an integral tensor of one element whatever its dimensions: what lists of ints, and ints that may be symbolic, take.
bool is_size(PyObject* o);
/// A tuple or list whose first element is an int.
bool is_int_sequence(PyObject* o);

/// The value of a number or of a one-element tensor; TypeError otherwise. OverflowError for ints beyond 64 bits.
CRESSET_PYTHON_API Scalar to_scalar(PyObject* o);
CRESSET_PYTHON_API int64_t to_int(PyObject* o);
CRESSET_PYTHON_API double to_double(PyObject* o);
PyObject* from_scalar(const Scalar& s);
/// The Python number of a tensor with one element; RuntimeError for others.
CRESSET_PYTHON_API PyObject* item_of(const Tensor& t);
/// The same where the program asks for it: modes that see operators see that.
PyObject* item_seen(const Tensor& t);

/// A new reference. Lists become tuples for the operators of the public API and lists for `ops`.
CRESSET_PYTHON_API PyObject* to_python(IValue value, bool lists_as_tuples);
/// Converts by type, for `ops`, kernels written in Python and schema defaults; `what` names the place in the TypeError.
CRESSET_PYTHON_API IValue to_ivalue(PyObject* o, const Type& type, const std::string& what);
/// The same for a value that is known to fit.
CRESSET_PYTHON_API IValue to_fitting_ivalue(PyObject* o, const Type& type);
/// Could o be passed for this type?
CRESSET_PYTHON_API bool fits(PyObject* o, const Type& type);

}  // namespace cresset::python
