// Sparse tensors are written in Python; gradients of tables and factories ask for one from C++, and programs for their operators.
#include <cresset/dispatch/library.h>
#include <cresset/ops/python_operators.h>

#include "python/bind.h"
#include "python/convert.h"
#include "python/types.h"

namespace cresset::python {
namespace {

// What `cresset.sparse.<name>(*arguments)` gives; the arguments are made with the interpreter's lock held.
template <class Arguments>
Tensor made_in_python(const char* name, Arguments arguments) {
  GilAcquire gil;
  try {
    const Ref module = checked(PyImport_ImportModule("cresset.sparse")), function = checked(PyObject_GetAttrString(module.get(), name));
    const Ref args = checked(arguments());
    return unwrap(checked(PyObject_CallObject(function.get(), args.get())).get());
  } catch (const ErrorAlreadySet&) {
    throw_python_error();
  }
}

Tensor sparse_rows(const Tensor& values, const Tensor& rows, int64_t count) {
  return made_in_python("_rows", [&] { return Py_BuildValue("NNL", wrap(values), wrap(rows), static_cast<long long>(count)); });
}

Tensor new_sparse(IntArrayRef size, ScalarType dtype, Layout layout, std::optional<Device> device) {
  return made_in_python("_new", [&] {
    PyObject* where = device ? wrap_device(*device) : Py_NewRef(Py_None);
    return Py_BuildValue("NNNN", to_python(IValue(size.vec()), true), wrap_dtype(dtype), wrap_layout(layout), where);
  });
}

// The modules that register them, which nothing else may have needed yet.
void define_python_operators() {
  GilAcquire gil;
  try {
    for (const char* module : {"cresset.sparse._operators", "cresset._rare_operators"}) checked(PyImport_ImportModule(module));
  } catch (const ErrorAlreadySet&) {
    throw_python_error();
  }
}
const bool operators_are_known = [] {
  cresset::detail::define_python_operators = &define_python_operators;
  return true;
}();

CRESSET_LIBRARY_FRAGMENT(aten, m) {
  m.def("_sparse_rows(Tensor values, Tensor rows, SymInt count) -> Tensor");
  m.def("_new_sparse(SymInt[] size, ScalarType dtype, Layout layout, Device? device=None) -> Tensor");
  m.impl("_new_sparse", dispatch(DispatchKey::CompositeExplicitAutograd, new_sparse));
  m.impl("_sparse_rows", dispatch(DispatchKey::CompositeExplicitAutograd, sparse_rows));
}

}  // namespace
}  // namespace cresset::python
