// Loading the graph part: by the names that it adds to the module, or by a value that only it can convert.
#include "python/graph_part.h"

#include <string_view>

#include "python/bind.h"

namespace cresset::python {

const GraphPart* graph_part = nullptr;

namespace {

constexpr const char* kPart = "cresset._C_ir";
constexpr const char* kNotBuilt = "cresset: the graph part (scripts, traces, lowering) is not built: cmake --build build/release builds it";

// The current error is that there is no such module, and not one inside of it.
bool is_missing_part() {
  if (!PyErr_ExceptionMatches(PyExc_ModuleNotFoundError)) return false;
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  const Ref name = Ref::steal(PyObject_GetAttrString(value, "name"));
  const bool missing = name && PyUnicode_Check(name.get()) && PyUnicode_CompareWithASCIIString(name.get(), kPart) == 0;
  PyErr_Restore(type, value, traceback);
  return missing;
}

// False where the part is not built.
bool load() {
  if (graph_part) return true;
  if (const Ref part = Ref::steal(PyImport_ImportModule(kPart))) return true;
  if (!is_missing_part()) throw ErrorAlreadySet();
  PyErr_Clear();
  return false;
}

bool is_dunder(std::string_view name) { return name.size() > 4 && name.starts_with("__") && name.ends_with("__"); }

// Asked for names that the module does not have. Who looks whether there is one (hasattr) gets an answer without the part, too.
PyObject* missing_name(PyObject* module, PyObject* name) {
  CRESSET_PY_TRY
  const std::string text = to_text(name), no_such_name = "module 'cresset._C' has no attribute '" + text + "'";
  if (graph_part || is_dunder(text)) CRESSET_THROW(AttributeError, no_such_name);
  if (!load()) CRESSET_THROW(AttributeError, no_such_name, "; ", kNotBuilt);
  return PyObject_GetAttr(module, name);
  CRESSET_PY_CATCH(nullptr)
}

}  // namespace

const GraphPart& require_graph_part() {
  if (!load()) {
    PyErr_SetString(PyExc_ImportError, kNotBuilt);
    throw ErrorAlreadySet();
  }
  return *graph_part;
}

void init_graph_part(PyObject* module) {
  static PyMethodDef get_name = {"__getattr__", &missing_name, METH_O, "Names of the graph part load it."};
  checked(PyModule_AddObjectRef(module, "__getattr__", checked(PyCFunction_New(&get_name, module)).get()));
  def(module, "_load_graph_part", [] { require_graph_part(); }, "What the rest of the package calls before it needs scripts.");
  def(module, "_is_tracing", [] { return is_tracing(); });
  def(
      module, "_get_tracing_state",
      []() -> std::optional<Object> {
        if (!is_tracing()) return std::nullopt;
        const Ref package = checked(PyImport_ImportModule("cresset.jit._trace"));
        return Object(checked(PyObject_GetAttrString(package.get(), "TracingState")));
      },
      "None while no trace records; libraries ask this.");
  def(
      module, "_set_tracing_state",
      [](PyObject* state) {
        const bool traces = impl::tls_local_dispatch_key_set().included.has(DispatchKey::Tracer);
        impl::tls_set_dispatch_key_excluded(DispatchKey::Tracer, traces && state == Py_None);
      },
      "None pauses the trace of this thread, what _get_tracing_state gave goes on with it.");
}

}  // namespace cresset::python
