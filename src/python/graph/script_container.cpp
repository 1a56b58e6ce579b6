// cresset._C._ScriptContainer: a list or dictionary of scripts that Python holds, shared with the scripts it is passed to. What it can do
// are the scripts' own operators; cresset.jit.ScriptList and ScriptDict give it Python's protocols.
#include <cresset/ir/operator.h>

#include "python/convert.h"
#include "python/graph/ir.h"
#include "python/graph/script_convert.h"

namespace cresset::python {

namespace {

struct PyContainer {
  PyObject_HEAD IValue value;
  TypePtr type;
};
PyTypeObject* container_type = nullptr;
PyContainer& container_of(PyObject* o) { return *reinterpret_cast<PyContainer*>(o); }

void container_dealloc(PyObject* o) {
  std::destroy_at(&container_of(o).value);
  std::destroy_at(&container_of(o).type);
  PyTypeObject* type = Py_TYPE(o);
  type->tp_free(o);
  Py_DECREF(type);
}

// _ScriptContainer(value, type)
PyObject* container_new(PyTypeObject* cls, PyObject* args, PyObject*) {
  CRESSET_PY_TRY
  PyObject *value, *type;
  if (!PyArg_ParseTuple(args, "OO", &value, &type)) throw ErrorAlreadySet();
  const TypePtr wanted = to_type(type);
  CRESSET_CHECK_TYPE(wanted->kind == TypeKind::List || wanted->kind == TypeKind::Dict, "a container of scripts is a list or a dict; '",
                     wanted->str(), "' is neither.");
  IValue held = to_ivalue(value, *wanted, wanted->annotation_str());
  PyObject* o = checked(cls->tp_alloc(cls, 0)).release();
  new (&container_of(o).value) IValue(std::move(held));
  new (&container_of(o).type) TypePtr(wanted);
  return o;
  CRESSET_PY_CATCH(nullptr)
}

// _run(operator, value, type, value, type): the operator on the container and these arguments.
PyObject* run_operator(PyObject* self, PyObject* const* args, Py_ssize_t n) {
  CRESSET_PY_TRY
  CRESSET_CHECK_TYPE(n % 2 == 1, "_run takes an operator and pairs of values and types.");
  const std::string name = Convert<std::string>::from(args[0]);
  const jit::Operator* op = jit::find_operator(name);
  CRESSET_CHECK(op, "there is no operator '", name, "'.");
  Stack stack{container_of(self).value};
  for (Py_ssize_t i = 1; i < n; i += 2) stack.push_back(to_ivalue(args[i], *to_type(args[i + 1]), name));
  CRESSET_CHECK_TYPE(stack.size() == op->schema().arguments().size(), name, " takes ", op->schema().arguments().size() - 1, " arguments.");
  op->call(stack);
  if (stack.empty()) Py_RETURN_NONE;
  return to_python(std::move(stack.back()), false);
  CRESSET_PY_CATCH(nullptr)
}

}  // namespace

std::optional<std::pair<IValue, TypePtr>> container_of_object(PyObject* o) {
  if (!PyObject_TypeCheck(o, container_type)) return std::nullopt;
  return std::pair(container_of(o).value, container_of(o).type);
}

void init_script_container(PyObject* module) {
  static PyMethodDef methods[] = {
      {"_run", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(&run_operator)), METH_FASTCALL,
       "An operator of scripts on this container."},
      method(
          "_value", [](PyObject* o) { return Object(to_python(container_of(o).value, false)); }, "A copy as a list or dict."),
      {}};
  static PyGetSetDef properties[] = {property("_script_type_", [](PyObject* o) { return Object(wrap_type(container_of(o).type)); }), {}};
  PyType_Slot slots[] = {{Py_tp_new, reinterpret_cast<void*>(&container_new)},
                         {Py_tp_dealloc, reinterpret_cast<void*>(&container_dealloc)},
                         {Py_tp_methods, methods},
                         {Py_tp_getset, properties},
                         {Py_tp_doc, const_cast<char*>("A list or dictionary that is shared with scripts.")},
                         {0, nullptr}};
  PyType_Spec spec{"cresset._C._ScriptContainer", sizeof(PyContainer), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots};
  container_type = reinterpret_cast<PyTypeObject*>(checked(PyType_FromSpec(&spec)).release());
  checked(PyModule_AddObjectRef(module, "_ScriptContainer", reinterpret_cast<PyObject*>(container_type)));
}

}  // namespace cresset::python
