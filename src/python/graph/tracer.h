// What the bindings do differently while a trace records: sizes are tensors, and tensors that become Python values warn.
#pragma once

#include <cresset/ir/tracer.h>

#include "python/graph_part.h"
#include "python/types.h"

namespace cresset::python {

/// TracerWarning: the tensor becomes a Python `what` ("boolean", "integer", …), which the trace keeps as a constant.
void warn_conversion(const char* what);
/// TracerWarning with another text.
void warn_tracer(const char* text);
/// TracerWarning: what `function` gives is a constant of the trace.
void warn_constant(const char* function);
/// shape, size(dim) and numel() while a trace records.
PyObject* traced_sizes(const Tensor& t);
PyObject* traced_size_of(const Tensor& t, int64_t dim);
PyObject* traced_numel_of(const Tensor& t);
/// The number of a tensor that is an operator's argument, or an element of one: its value in the trace goes with it.
IValue traced_argument(const char* argument, int64_t element, PyObject* tensor, bool integer);
/// to_fitting_ivalue for such an argument, or a list of them.
IValue traced_ivalue(const std::string& argument, PyObject* o, const Type& type);
/// Forgets arguments and subscripts of operators before.
void forget_traced_arguments();
/// A slice (start, stop, step) or an index of a subscript.
void note_subscript(bool slice, std::initializer_list<PyObject*> parts);
/// Does an assignment to a subscript run now?
void note_assignment(bool runs);

/// Tensors in tuples, lists and dictionaries as a value of the graph. Raises for others.
IValue traced_result(PyObject* o);

// jit.fork (tracer_forks.cpp).
/// A future is waited for: what it gives is a value of the trace.
void note_traced_wait(const intrusive_ptr<ivalue::Future>& future);
/// The trace ends: forks get their graphs. Before modules get methods.
void finish_traced_forks();
/// A trace begins, or is given up.
void forget_traced_forks();

void init_tracer(PyObject* module);
void init_tracer_forks(PyObject* module);

}  // namespace cresset::python
