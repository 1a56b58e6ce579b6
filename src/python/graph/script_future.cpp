// cresset._C.Future: a value that another thread of a script will deliver.
#include <cresset/dispatch/script_values.h>
#include <cresset/ir/interpreter.h>

#include "python/convert.h"
#include "python/graph/ir.h"
#include "python/graph/script_convert.h"
#include "python/graph/tracer.h"

namespace cresset::python {

namespace {

struct PyFuture {
  PyObject_HEAD intrusive_ptr<ivalue::Future> future;
};
PyTypeObject* future_type = nullptr;

void future_dealloc(PyObject* o) {
  std::destroy_at(&reinterpret_cast<PyFuture*>(o)->future);
  PyTypeObject* type = Py_TYPE(o);
  type->tp_free(o);
  Py_DECREF(type);
}
const intrusive_ptr<ivalue::Future>& future_of(PyObject* o) { return reinterpret_cast<PyFuture*>(o)->future; }

PyObject* future_new(PyTypeObject*, PyObject*, PyObject*) {
  CRESSET_PY_TRY
  return wrap_future(make_intrusive<ivalue::Future>());
  CRESSET_PY_CATCH(nullptr)
}
Object wait(PyObject* o) {
  const intrusive_ptr<ivalue::Future> future = future_of(o);
  IValue value;
  {
    const GilRelease release;
    value = jit::wait(future);
  }
  note_traced_wait(future);
  return Object(to_python(std::move(value), false));
}

}  // namespace

PyObject* wrap_future(intrusive_ptr<ivalue::Future> future) {
  PyObject* o = checked(future_type->tp_alloc(future_type, 0)).release();
  new (&reinterpret_cast<PyFuture*>(o)->future) intrusive_ptr<ivalue::Future>(std::move(future));
  return o;
}
intrusive_ptr<ivalue::Future> future_of_object(PyObject* o) {
  return PyObject_TypeCheck(o, future_type) ? future_of(o) : intrusive_ptr<ivalue::Future>();
}

void init_script_future(PyObject* module) {
  static PyMethodDef methods[] = {
      method(
          "wait", [](PyObject* f) { return wait(f); }, "Blocks until the value is there; raises the error it came with."),
      method("value", [](PyObject* f) { return Object(to_python(future_of(f)->value(), false)); }),
      method("done", [](PyObject* f) { return future_of(f)->completed(); }),
      method(
          "set_result",
          [](PyObject* f, PyObject* value) { future_of(f)->mark_completed(to_ivalue(value, *basic_type(TypeKind::Any), "set_result")); }),
      {"__class_getitem__", &Py_GenericAlias, METH_O | METH_CLASS, "Future[int] in annotations."},
      {}};
  PyType_Slot slots[] = {{Py_tp_new, reinterpret_cast<void*>(&future_new)},
                         {Py_tp_dealloc, reinterpret_cast<void*>(&future_dealloc)},
                         {Py_tp_methods, methods},
                         {Py_tp_doc, const_cast<char*>("A value that another thread will deliver.")},
                         {0, nullptr}};
  PyType_Spec spec{"cresset._C.Future", sizeof(PyFuture), 0, Py_TPFLAGS_DEFAULT, slots};
  future_type = reinterpret_cast<PyTypeObject*>(checked(PyType_FromSpec(&spec)).release());
  checked(PyModule_AddObjectRef(module, "Future", reinterpret_cast<PyObject*>(future_type)));
}

}  // namespace cresset::python
