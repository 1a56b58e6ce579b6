// Source text of scripts: units that compile it, and what the parser reads, for tests.
#include "ir/frontend/tree_text.h"
#include "python/graph/ir.h"
#include "python/graph/script_convert.h"
#include "python/graph/script_values.h"

namespace cresset::python {
namespace {

struct PyUnit {
  PyObject_HEAD std::shared_ptr<jit::CompilationUnit> unit;
};
PyTypeObject* unit_type = nullptr;

jit::CompilationUnit& unit_of(PyObject* o) { return *reinterpret_cast<PyUnit*>(o)->unit; }

PyObject* unit_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  CRESSET_PY_TRY
  static const char* names[] = {"source", "filename", nullptr};
  PyObject *source = nullptr, *filename = nullptr;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|OO", const_cast<char**>(names), &source, &filename)) return nullptr;
  Ref self = checked(type->tp_alloc(type, 0));
  new (&reinterpret_cast<PyUnit*>(self.get())->unit) std::shared_ptr<jit::CompilationUnit>(std::make_shared<jit::CompilationUnit>());
  if (source && source != Py_None)
    unit_of(self.get()).define(Convert<std::string>::from(source), filename ? Convert<std::string>::from(filename) : "<string>");
  return self.release();
  CRESSET_PY_CATCH(nullptr)
}

void unit_dealloc(PyObject* o) {
  std::destroy_at(&reinterpret_cast<PyUnit*>(o)->unit);
  PyTypeObject* type = Py_TYPE(o);
  type->tp_free(o);
  Py_DECREF(type);
}

// The functions of the unit are attributes.
PyObject* unit_getattr(PyObject* self, PyObject* name) {
  CRESSET_PY_TRY
  PyObject* found = PyObject_GenericGetAttr(self, name);
  if (found || !PyErr_ExceptionMatches(PyExc_AttributeError)) return found;
  auto f = unit_of(self).find_function(to_text(name));
  if (!f) return nullptr;
  PyErr_Clear();
  return wrap_function(std::move(f));
  CRESSET_PY_CATCH(nullptr)
}

void init_unit(PyObject* module) {
  static PyMethodDef methods[] = {
      method(
          "define",
          [](PyObject* u, std::string source, std::optional<std::string> filename, std::optional<PyObject*> resolver) {
            const auto text = std::make_shared<jit::Source>(std::move(source), filename.value_or("<string>"));
            jit::define_source(unit_of(u), "", text, resolver ? python_resolver(*resolver, unit_of(u)) : nullptr);
          },
          "Compiles all functions and classes of a source text; a resolver finds the names that it does not define."),
      method(
          "find_function",
          [](PyObject* u, std::string name) {
            auto f = unit_of(u).find_function(name);
            return f ? Object(wrap_function(std::move(f))) : Object(Ref::borrow(Py_None));
          },
          "The function of this name, or None."),
      method(
          "create_function",
          [](PyObject* u, std::string name, std::shared_ptr<Graph> graph, std::optional<bool> mangle) {
            return Object(wrap_function(unit_of(u).create_function(std::move(name), graph->copy(), mangle.value_or(false))));
          },
          "A function of this name with a copy of the graph."),
      method(
          "get_functions",
          [](PyObject* u) {
            const Ref list = checked(PyList_New(0));
            for (auto& f : unit_of(u).functions()) checked(PyList_Append(list.get(), checked(wrap_function(f)).get()));
            return Object(Ref::borrow(list.get()));
          },
          "All functions and methods."),
      method(
          "find_type",
          [](PyObject* u, std::string name) {
            const TypePtr t = unit_of(u).find_type(name);
            return t ? Object(wrap_type(t)) : Object(Ref::borrow(Py_None));
          },
          "The class, interface, enum or named tuple of this qualified name, or None."),
      {}};
  PyType_Slot slots[] = {{Py_tp_new, reinterpret_cast<void*>(&unit_new)},
                         {Py_tp_dealloc, reinterpret_cast<void*>(&unit_dealloc)},
                         {Py_tp_getattro, reinterpret_cast<void*>(&unit_getattr)},
                         {Py_tp_methods, methods},
                         {Py_tp_doc, const_cast<char*>("Functions and classes compiled from source text; functions are attributes.")},
                         {0, nullptr}};
  PyType_Spec spec{"cresset._C.CompilationUnit", sizeof(PyUnit), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots};
  unit_type = reinterpret_cast<PyTypeObject*>(checked(PyType_FromSpec(&spec)).release());
  checked(PyModule_AddObjectRef(module, "CompilationUnit", reinterpret_cast<PyObject*>(unit_type)));
}

}  // namespace

void init_script_source(PyObject* module) {
  init_unit(module);
  def(module, "_jit_get_python_unit", [] {
    PyObject* o = checked(unit_type->tp_alloc(unit_type, 0)).release();
    new (&reinterpret_cast<PyUnit*>(o)->unit) std::shared_ptr<jit::CompilationUnit>(python_unit());
    return Object(o);
  });
  def(module, "_script_parse", [](std::string text, std::optional<std::string> filename) {
    return jit::tree_text(*jit::parse_source(std::make_shared<jit::Source>(std::move(text), filename.value_or("<string>"))));
  });
}

}  // namespace cresset::python
