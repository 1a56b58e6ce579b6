// Sparse tensors are written in Python; gradients of tables ask for one from C++.
#include <cresset/dispatch/library.h>

#include "python/bind.h"
#include "python/convert.h"

namespace cresset::python {
namespace {

Tensor sparse_rows(const Tensor& values, const Tensor& rows, int64_t count) {
  GilAcquire gil;
  try {
    const Ref module = checked(PyImport_ImportModule("cresset.sparse"));
    const Ref v = checked(wrap(values)), r = checked(wrap(rows)), n = checked(PyLong_FromLongLong(count));
    const Ref made = checked(PyObject_CallMethod(module.get(), "_rows", "OOO", v.get(), r.get(), n.get()));
    return unwrap(made.get());
  } catch (const ErrorAlreadySet&) {
    throw_python_error();
  }
}

CRESSET_LIBRARY_FRAGMENT(aten, m) {
  m.def("_sparse_rows(Tensor values, Tensor rows, SymInt count) -> Tensor");
  m.impl("_sparse_rows", dispatch(DispatchKey::CompositeExplicitAutograd, sparse_rows));
}

}  // namespace
}  // namespace cresset::python
