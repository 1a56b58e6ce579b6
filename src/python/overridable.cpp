// `_C.overridable(function)`: a function written in Python under the __torch_function__ protocol. A type of its own, because a wrapper
// in Python would cost as much as a small operator.
#include "python/overridable.h"

#include <cstddef>

#include "python/override.h"

namespace cresset::python {

namespace {

struct Overridable {
  PyObject_HEAD vectorcallfunc vectorcall;
  PyObject* function;
  PyObject* dict;
  PyObject* weak_references;
};

Overridable* overridable_of(PyObject* o) { return reinterpret_cast<Overridable*>(o); }

// _overridable.ask(public, function, args, kwargs)
PyObject* ask_overriders(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* names) {
  const Ref module = checked(PyImport_ImportModule("cresset._overridable"));
  const Ref positional = checked(PyTuple_New(n)), keywords = checked(PyDict_New());
  for (Py_ssize_t i = 0; i < n; ++i) PyTuple_SET_ITEM(positional.get(), i, Py_NewRef(args[i]));
  for (Py_ssize_t i = 0; names && i < PyTuple_GET_SIZE(names); ++i)
    checked(PyDict_SetItem(keywords.get(), PyTuple_GET_ITEM(names, i), args[n + i]));
  return PyObject_CallMethod(module.get(), "ask", "OOOO", self, overridable_of(self)->function, positional.get(), keywords.get());
}

PyObject* call_overridable(PyObject* self, PyObject* const* args, std::size_t nargsf, PyObject* names) {
  CRESSET_PY_TRY
  const Py_ssize_t n = PyVectorcall_NARGS(nargsf), all = n + (names ? PyTuple_GET_SIZE(names) : 0);
  Overriders overriders;
  for (Py_ssize_t i = 0; i < all; ++i) overriders.scan(args[i]);
  if (CRESSET_UNLIKELY(!overriders.empty())) return ask_overriders(self, args, n, names);
  return PyObject_Vectorcall(overridable_of(self)->function, args, nargsf, names);
  CRESSET_PY_CATCH(nullptr)
}

PyObject* make(PyTypeObject* type, PyObject* args, PyObject*) {
  PyObject* function;
  if (!PyArg_ParseTuple(args, "O:overridable", &function)) return nullptr;
  auto* o = reinterpret_cast<Overridable*>(type->tp_alloc(type, 0));
  if (!o) return nullptr;
  o->vectorcall = &call_overridable;
  o->function = Py_NewRef(function);
  return reinterpret_cast<PyObject*>(o);
}
int traverse(PyObject* o, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(o));
  Py_VISIT(overridable_of(o)->function);
  Py_VISIT(overridable_of(o)->dict);
  return 0;
}
int clear(PyObject* o) {
  Py_CLEAR(overridable_of(o)->function);
  Py_CLEAR(overridable_of(o)->dict);
  return 0;
}
void overridable_dealloc(PyObject* o) {
  PyObject_GC_UnTrack(o);
  if (overridable_of(o)->weak_references) PyObject_ClearWeakRefs(o);
  clear(o);
  PyTypeObject* type = Py_TYPE(o);
  type->tp_free(o);
  Py_DECREF(type);
}

PyObject* bind(PyObject* o, PyObject* instance, PyObject*) {
  if (!instance || instance == Py_None) return Py_NewRef(o);
  return PyMethod_New(o, instance);
}
PyObject* overridable_repr(PyObject* o) {
  const Ref name = Ref::steal(PyObject_GetAttrString(o, "__qualname__"));
  return name ? PyUnicode_FromFormat("<function %U at %p>", name.get(), o) : nullptr;
}
// Files and copies name the function.
PyObject* overridable_reduce(PyObject* o, PyObject*) { return PyObject_GetAttrString(o, "__qualname__"); }

}  // namespace

void init_overridable(PyObject* module) {
  static PyMethodDef methods[] = {{"__reduce__", overridable_reduce, METH_NOARGS, nullptr}, {}};
  static PyGetSetDef properties[] = {{"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr}, {}};
  static PyMemberDef members[] = {{"__vectorcalloffset__", T_PYSSIZET, offsetof(Overridable, vectorcall), READONLY, nullptr},
                                  {"__dictoffset__", T_PYSSIZET, offsetof(Overridable, dict), READONLY, nullptr},
                                  {"__weaklistoffset__", T_PYSSIZET, offsetof(Overridable, weak_references), READONLY, nullptr},
                                  {}};
  PyType_Slot slots[] = {{Py_tp_new, reinterpret_cast<void*>(&make)},
                         {Py_tp_dealloc, reinterpret_cast<void*>(&overridable_dealloc)},
                         {Py_tp_traverse, reinterpret_cast<void*>(&traverse)},
                         {Py_tp_clear, reinterpret_cast<void*>(&clear)},
                         {Py_tp_call, reinterpret_cast<void*>(&PyVectorcall_Call)},
                         {Py_tp_descr_get, reinterpret_cast<void*>(&bind)},
                         {Py_tp_repr, reinterpret_cast<void*>(&overridable_repr)},
                         {Py_tp_methods, methods},
                         {Py_tp_getset, properties},
                         {Py_tp_members, members},
                         {0, nullptr}};
  PyType_Spec spec{"cresset._C.overridable", sizeof(Overridable), 0,
                   Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR, slots};
  checked(PyModule_AddObjectRef(module, "overridable", checked(PyType_FromSpec(&spec)).get()));
}

}  // namespace cresset::python
