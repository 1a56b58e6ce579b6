// cresset._C.FileCheck, which is cresset.testing.FileCheck.
#include <cresset/ir/file_check.h>

#include "python/graph/ir.h"

namespace cresset::python {

namespace {

using jit::testing::FileCheck;

struct PyFileCheck {
  PyObject_HEAD FileCheck checks;
};
FileCheck& checks_of(PyObject* o) { return reinterpret_cast<PyFileCheck*>(o)->checks; }
Object itself(PyObject* o) { return Object(Ref::borrow(o)); }

PyObject* file_check_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  CRESSET_PY_TRY
  static const char* names[] = {nullptr};
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, ":FileCheck", const_cast<char**>(names))) return nullptr;
  Ref o = checked(type->tp_alloc(type, 0));
  new (&checks_of(o.get())) FileCheck();
  return o.release();
  CRESSET_PY_CATCH(nullptr)
}
void file_check_dealloc(PyObject* o) {
  std::destroy_at(&checks_of(o));
  PyTypeObject* type = Py_TYPE(o);
  type->tp_free(o);
  Py_DECREF(type);
}

PyObject* check_count(PyObject* o, PyObject* args, PyObject* kwargs) {
  CRESSET_PY_TRY
  static const char* names[] = {"str", "count", "exactly", nullptr};
  const char* text = nullptr;
  Py_ssize_t count = 0;
  int exactly = 0;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "sn|p:check_count", const_cast<char**>(names), &text, &count, &exactly)) return nullptr;
  CRESSET_CHECK(count >= 0, "FileCheck: a count of at least 0 was required; ", count, " was given.");
  checks_of(o).check_count(text, static_cast<std::size_t>(count), exactly);
  return Py_NewRef(o);
  CRESSET_PY_CATCH(nullptr)
}

PyObject* run(PyObject* o, PyObject* args, PyObject* kwargs) {
  CRESSET_PY_TRY
  static const char* names[] = {"checks_file", "test_file", "graph", nullptr};
  PyObject *first = nullptr, *text = nullptr, *graph = nullptr;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|O$O:run", const_cast<char**>(names), &first, &text, &graph)) return nullptr;
  const auto shown = [](PyObject* any) {
    if (PyBytes_Check(any))
      return std::string(PyBytes_AS_STRING(any), static_cast<std::size_t>(PyBytes_GET_SIZE(any)));  // what a process wrote
    return Convert<std::string>::from(checked(PyObject_Str(any)).get());
  };
  if (graph) text = graph;
  if (text)
    checks_of(o).run(shown(first), shown(text));
  else
    checks_of(o).run(shown(first));
  Py_RETURN_NONE;
  CRESSET_PY_CATCH(nullptr)
}

PyCFunction with_keywords(PyCFunctionWithKeywords f) { return reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(f)); }

}  // namespace

void init_file_check(PyObject* module) {
  static PyMethodDef methods[] = {
      method(
          "check", [](PyObject* o, std::string text) { return checks_of(o).check(text), itself(o); },
          "The text occurs behind the last match."),
      method(
          "check_not", [](PyObject* o, std::string text) { return checks_of(o).check_not(text), itself(o); },
          "The text does not occur between the matches before and behind this check."),
      method(
          "check_same", [](PyObject* o, std::string text) { return checks_of(o).check_same(text), itself(o); },
          "The text occurs behind the last match in the same line."),
      method(
          "check_next", [](PyObject* o, std::string text) { return checks_of(o).check_next(text), itself(o); },
          "The text occurs in the line behind the last match."),
      {"check_count", with_keywords(&check_count), METH_VARARGS | METH_KEYWORDS,
       "check_count(str, count, exactly=False): the text occurs so often behind the last match; exactly: not once more."},
      method(
          "check_dag", [](PyObject* o, std::string text) { return checks_of(o).check_dag(text), itself(o); },
          "Neighbouring checks of this kind match in any order."),
      method(
          "check_source_highlighted", [](PyObject* o, std::string text) { return checks_of(o).check_source_highlighted(text), itself(o); },
          "The text occurs and is marked with ~ in the line below."),
      method(
          "check_regex", [](PyObject* o, std::string pattern) { return checks_of(o).check_regex(pattern), itself(o); },
          "A match of the regular expression (ECMAScript's, without back references) occurs behind the last match."),
      {"run", with_keywords(&run), METH_VARARGS | METH_KEYWORDS,
       "run(text) or run(checks_file, test_file), run(checks_file, graph=...)\n\nChecks a text (bytes, or anything with a str, such as a "
       "graph).\n"
       "With two arguments the first holds the checks as comments: `# CHECK: ...`, `# CHECK-NEXT: ...`."},
      {}};
  constexpr const char* kDoc =
      "Checks that are run over a text, each behind the match of the one before.\n\nAdd checks in order, then call `run`; every method\n"
      "that adds returns the object. A check that fails raises RuntimeError with the text and the place. One that never ran says so when "
      "it "
      "goes.";
  PyType_Slot slots[] = {{Py_tp_new, reinterpret_cast<void*>(&file_check_new)},
                         {Py_tp_dealloc, reinterpret_cast<void*>(&file_check_dealloc)},
                         {Py_tp_repr, reinterpret_cast<void*>(+[](PyObject* o) -> PyObject* {
                            CRESSET_PY_TRY
                            return Convert<std::string>::to(checks_of(o).str());
                            CRESSET_PY_CATCH(nullptr)
                          })},
                         {Py_tp_methods, methods},
                         {Py_tp_doc, const_cast<char*>(kDoc)},
                         {0, nullptr}};
  PyType_Spec spec{"cresset._C.FileCheck", sizeof(PyFileCheck), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots};
  checked(PyModule_AddObjectRef(module, "FileCheck", checked(PyType_FromSpec(&spec)).get()));
}

}  // namespace cresset::python
