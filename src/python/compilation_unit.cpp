// Units of functions and classes from source text.
#include "ir/frontend/frontend.h"
#include "python/ir.h"

namespace cresset::python {

namespace {

struct PyUnit {
  PyObject_HEAD std::shared_ptr<jit::CompilationUnit> unit;
};
PyTypeObject* unit_type = nullptr;

const std::shared_ptr<jit::CompilationUnit>& unit_of(PyObject* o) { return reinterpret_cast<PyUnit*>(o)->unit; }

void define(PyObject* o, std::string text) {
  jit::define_source(unit_of(o), "", std::make_shared<jit::Source>(std::move(text), "<string>"));
}

PyObject* unit_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  CRESSET_PY_TRY
  const char* text = nullptr;
  static const char* names[] = {"lang", nullptr};
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|z", const_cast<char**>(names), &text)) return nullptr;
  Ref o(checked(type->tp_alloc(type, 0)));
  std::construct_at(&reinterpret_cast<PyUnit*>(o.get())->unit, std::make_shared<jit::CompilationUnit>());
  if (text) define(o.get(), text);
  return o.release();
  CRESSET_PY_CATCH(nullptr)
}

void unit_dealloc(PyObject* o) {
  std::destroy_at(&reinterpret_cast<PyUnit*>(o)->unit);
  PyTypeObject* type = Py_TYPE(o);
  type->tp_free(o);
  Py_DECREF(type);
}

PyObject* unit_getattro(PyObject* o, PyObject* name) {
  PyObject* own = PyObject_GenericGetAttr(o, name);
  if (own || !PyErr_ExceptionMatches(PyExc_AttributeError)) return own;
  CRESSET_PY_TRY
  const auto f = unit_of(o)->find_function(to_text(name));
  if (!f) return nullptr;
  PyErr_Clear();
  return wrap_function(f);
  CRESSET_PY_CATCH(nullptr)
}

}  // namespace

void init_compilation_unit(PyObject* module) {
  static PyMethodDef methods[] = {method(
                                      "define", [](PyObject* self, std::string text) { define(self, std::move(text)); },
                                      "Compiles the functions and classes of a text."),
                                  method("find_function",
                                         [](PyObject* self, std::string name) {
                                           const auto f = unit_of(self)->find_function(name);
                                           return Object(f ? wrap_function(f) : Py_NewRef(Py_None));
                                         }),
                                  method("get_functions",
                                         [](PyObject* self) {
                                           const Ref list = checked(PyList_New(0));
                                           for (const auto& f : unit_of(self)->functions())
                                             checked(PyList_Append(list.get(), checked(wrap_function(f)).get()));
                                           return Object(Ref::borrow(list.get()));
                                         }),
                                  {}};
  PyType_Slot slots[] = {{Py_tp_new, reinterpret_cast<void*>(&unit_new)},
                         {Py_tp_dealloc, reinterpret_cast<void*>(&unit_dealloc)},
                         {Py_tp_getattro, reinterpret_cast<void*>(&unit_getattro)},
                         {Py_tp_methods, methods},
                         {Py_tp_doc, const_cast<char*>("Functions and classes compiled from source text.")},
                         {0, nullptr}};
  PyType_Spec spec{"cresset._C.CompilationUnit", sizeof(PyUnit), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots};
  unit_type = reinterpret_cast<PyTypeObject*>(checked(PyType_FromSpec(&spec)).release());
  checked(PyModule_AddObjectRef(module, "CompilationUnit", reinterpret_cast<PyObject*>(unit_type)));
}

}  // namespace cresset::python
