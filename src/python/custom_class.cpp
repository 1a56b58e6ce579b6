// ScriptObject: an object of a registered C++ class. Its methods and properties are looked up in the registry of classes.
#include "python/custom_class.h"

#include <cresset/dispatch/custom_class.h>

#include "python/bind.h"
#include "python/convert.h"

namespace cresset::python {

PyTypeObject* script_object_type = nullptr;

namespace {

struct PyScriptObject {
  PyObject_HEAD IValue value;
  PyObject* weakrefs;
};

const CustomClassInfo& class_of(PyObject* o) {
  const IValue& v = unwrap_script_object(o);
  const CustomClassInfo* info = find_custom_class(v.type()->name);
  CRESSET_CHECK(info, "the C++ class of this object is not registered any more.");
  return *info;
}

// A method as PyTorch declares it: a constructor has the object in front, a result of nothing is None.
FunctionSchema declared(const CustomMethod& method, const std::string& name) {
  std::vector<Argument> arguments = method.schema.arguments(), returns = method.schema.returns();
  const auto unnamed = [](TypePtr type) {
    Argument a;
    a.name = "_0";
    a.type = std::move(type);
    return a;
  };
  if (name == "__init__") {
    arguments.insert(arguments.begin(), unnamed(returns.at(0).type));
    returns.clear();
  }
  if (!method.is_static || name == "__init__") arguments.at(0).name = "_0";
  if (returns.empty()) returns.push_back(unnamed(basic_type(TypeKind::None)));
  return FunctionSchema(OperatorName{name, ""}, std::move(arguments), std::move(returns));
}

// Positional and keyword arguments by the method's schema, behind `self` when the method has one.
Stack bind_arguments(const CustomMethod& method, const std::string& name, const IValue* self, PyObject* args, PyObject* kwargs) {
  const auto& parameters = method.schema.arguments();
  const std::size_t first = method.is_static ? 0 : 1, shown_first = name == "__init__" ? 1 : first;
  const auto n = static_cast<std::size_t>(PyTuple_GET_SIZE(args));
  CRESSET_CHECK(n <= parameters.size() - first, name, "() expected at most ", parameters.size() - first + shown_first,
                " argument(s) but received ", n + shown_first, " argument(s). Declaration: ", declared(method, name));
  Stack stack;
  stack.reserve(parameters.size());
  if (first) stack.push_back(*self);
  std::size_t used = 0;
  for (std::size_t i = first; i < parameters.size(); ++i) {
    const Argument& p = parameters[i];
    PyObject* value = i - first < n ? PyTuple_GET_ITEM(args, static_cast<Py_ssize_t>(i - first)) : nullptr;
    if (PyObject* keyword = kwargs ? PyDict_GetItemString(kwargs, p.name.c_str()) : nullptr) {
      CRESSET_CHECK(!value, "Argument '", p.name, "' specified both as positional and keyword argument. Schema: ", declared(method, name));
      value = keyword;
      ++used;
    }
    if (!value) {
      CRESSET_CHECK(p.default_value, name, "() is missing value for argument '", p.name, "'. Declaration: ", declared(method, name));
      stack.push_back(*p.default_value);
    } else {
      CRESSET_CHECK(fits(value, *p.type), wrong_type(declared(method, name), i - first + shown_first, value));
      stack.push_back(to_ivalue(value, *p.type, name + "(): argument '" + p.name + "'"));
    }
  }
  if (kwargs && used != static_cast<std::size_t>(PyDict_GET_SIZE(kwargs))) {
    PyObject *key, *value;
    for (Py_ssize_t at = 0; PyDict_Next(kwargs, &at, &key, &value);) {
      const std::string word = to_text(key);
      CRESSET_CHECK(std::any_of(parameters.begin() + static_cast<std::ptrdiff_t>(first), parameters.end(),
                                [&](const Argument& p) { return p.name == word; }),
                    "Unknown keyword argument '", word, "' for operator '", name, "'. Schema: ", declared(method, name));
    }
  }
  return stack;
}

PyObject* call_with_self(const CustomMethod& method, const std::string& name, const IValue* self, PyObject* args, PyObject* kwargs) {
  Stack stack = bind_arguments(method, name, self, args, kwargs);
  {
    const GilRelease release;
    method.run(stack);
  }
  if (stack.empty()) Py_RETURN_NONE;
  return to_python(pop(stack), false);
}

// A method bound to its object, or a static method of a class.
struct PyScriptMethod {
  PyObject_HEAD PyObject* self;
  const CustomClassInfo* info;
  const CustomMethod* method;
  const std::string* name;
};
PyTypeObject* script_method_type = nullptr;

void dealloc_method(PyObject* o) {
  PyTypeObject* type = Py_TYPE(o);
  Py_XDECREF(reinterpret_cast<PyScriptMethod*>(o)->self);
  type->tp_free(o);
  Py_DECREF(type);
}
PyObject* call_method(PyObject* o, PyObject* args, PyObject* kwargs) {
  CRESSET_PY_TRY
  auto* m = reinterpret_cast<PyScriptMethod*>(o);
  return call_with_self(*m->method, *m->name, m->self ? &unwrap_script_object(m->self) : nullptr, args, kwargs);
  CRESSET_PY_CATCH(nullptr)
}
PyObject* method_doc(PyObject* o, void*) {
  const std::string& doc = reinterpret_cast<PyScriptMethod*>(o)->method->doc;
  return PyUnicode_FromStringAndSize(doc.data(), static_cast<Py_ssize_t>(doc.size()));
}
PyObject* method_name(PyObject* o, void*) { return PyUnicode_FromString(reinterpret_cast<PyScriptMethod*>(o)->name->c_str()); }
PyObject* get_schema(PyObject* o, void*) {
  const auto* m = reinterpret_cast<PyScriptMethod*>(o);
  return PyUnicode_FromString(declared(*m->method, *m->name).str().c_str());
}

PyObject* make_method(const CustomClassInfo& info, const std::string& name, const CustomMethod& method, PyObject* self) {
  auto* m = PyObject_New(PyScriptMethod, script_method_type);
  if (!m) return nullptr;
  m->self = Py_XNewRef(method.is_static ? nullptr : self);
  m->info = &info;
  m->method = &method;
  m->name = &name;
  return reinterpret_cast<PyObject*>(m);
}

void object_dealloc(PyObject* o) {
  PyTypeObject* type = Py_TYPE(o);
  if (reinterpret_cast<PyScriptObject*>(o)->weakrefs) PyObject_ClearWeakRefs(o);
  reinterpret_cast<PyScriptObject*>(o)->value.~IValue();
  type->tp_free(o);
  Py_DECREF(type);
}

PyObject* get_attribute(PyObject* o, PyObject* attribute) {
  CRESSET_PY_TRY
  const CustomClassInfo& info = class_of(o);
  const std::string name = to_text(attribute);
  if (const auto it = info.properties.find(name); it != info.properties.end()) {
    const Ref none = checked(PyTuple_New(0));
    return call_with_self(it->second.getter, name, &unwrap_script_object(o), none.get(), nullptr);
  }
  // The methods of pickling are the object's own (reduce), so that a class without them says so.
  if (const auto it = info.methods.find(name); it != info.methods.end() && name != "__init__")
    return make_method(info, it->first, it->second, o);
  if (PyObject* found = PyObject_GenericGetAttr(o, attribute)) return found;
  if (PyErr_ExceptionMatches(PyExc_AttributeError))
    PyErr_Format(PyExc_AttributeError, "%s (of Python compilation unit at: 0) does not have a field with name '%U'",
                 info.qualified_name.c_str(), attribute);
  return nullptr;
  CRESSET_PY_CATCH(nullptr)
}

int set_attribute(PyObject* o, PyObject* attribute, PyObject* value) {
  CRESSET_PY_TRY
  const CustomClassInfo& info = class_of(o);
  const std::string name = to_text(attribute);
  const auto it = info.properties.find(name);
  CRESSET_CHECK(it != info.properties.end(), info.qualified_name,
                " (of Python compilation unit at: 0) does not have an attribute with name '", name, "'");
  CRESSET_CHECK(it->second.setter && value, "can't set attribute");
  const Ref args = checked(PyTuple_Pack(1, value));
  checked(call_with_self(*it->second.setter, name + "_setter", &unwrap_script_object(o), args.get(), nullptr));
  return 0;
  CRESSET_PY_CATCH(-1)
}

PyObject* object_repr(PyObject* o) {
  CRESSET_PY_TRY
  const CustomClassInfo& info = class_of(o);
  const Ref none = checked(PyTuple_New(0));
  for (const char* name : {"__repr__", "__str__"})
    if (const auto it = info.methods.find(name); it != info.methods.end())
      return call_with_self(it->second, name, &unwrap_script_object(o), none.get(), nullptr);
  return PyUnicode_FromFormat("<cresset.ScriptObject of %s at %p>", info.qualified_name.c_str(), o);
  CRESSET_PY_CATCH(nullptr)
}

// (restore, (class name, state)): objects are saved through the class's def_pickle.
PyObject* object_reduce(PyObject* o, PyObject*) {
  CRESSET_PY_TRY
  const CustomClassInfo& info = class_of(o);
  CRESSET_CHECK(info.has_state(), "Tried to serialize object ", info.qualified_name,
                " which does not have a __getstate__ method defined! Give the class a def_pickle.");
  const Ref state = checked(to_python(without_lock(true, [&] { return info.get_state(unwrap_script_object(o)); }), false));
  const Ref module = checked(PyImport_ImportModule("cresset._C"));
  const Ref restore = checked(PyObject_GetAttrString(module.get(), "_restore_custom_object"));
  return Py_BuildValue("(O(sO))", restore.get(), info.qualified_name.c_str(), state.get());
  CRESSET_PY_CATCH(nullptr)
}
PyObject* class_name_of(PyObject* o, PyObject*) {
  CRESSET_PY_TRY
  return PyUnicode_FromString(class_of(o).qualified_name.c_str());
  CRESSET_PY_CATCH(nullptr)
}
PyObject* has_method(PyObject* o, PyObject* name) {
  CRESSET_PY_TRY
  return PyBool_FromLong(class_of(o).methods.count(to_text(name)) != 0);
  CRESSET_PY_CATCH(nullptr)
}

const CustomClassInfo& find(PyObject* qualified_name) {
  const std::string name = to_text(qualified_name);
  const CustomClassInfo* info = find_custom_class(name);
  CRESSET_CHECK(info, "Tried to instantiate class '", name, "', but it does not exist! Ensure that it is registered via torch::class_");
  return *info;
}

// _make_custom_object(qualified name, args, kwargs)
PyObject* make_object(PyObject*, PyObject* const* args, Py_ssize_t) {
  CRESSET_PY_TRY
  const CustomClassInfo& info = find(args[0]);
  const auto constructor = info.methods.find("__init__");
  CRESSET_CHECK(constructor != info.methods.end(), "Custom C++ class: '", info.qualified_name,
                " (of Python compilation unit at: 0)' does not have an '__init__' method bound. Did you forget to add "
                "'.def(torch::init<...>)' to its registration?");
  return call_with_self(constructor->second, "__init__", nullptr, args[1], args[2]);
  CRESSET_PY_CATCH(nullptr)
}
// _restore_custom_object(qualified name, state)
PyObject* restore_object(PyObject*, PyObject* const* args, Py_ssize_t) {
  CRESSET_PY_TRY
  const CustomClassInfo& info = find(args[0]);
  const auto set_state = info.methods.find("__setstate__");
  CRESSET_CHECK(set_state != info.methods.end(), info.qualified_name, ": this class has no __setstate__. Give it a def_pickle.");
  const Ref state = checked(PyTuple_Pack(1, args[1]));
  return call_with_self(set_state->second, "__setstate__", nullptr, state.get(), nullptr);
  CRESSET_PY_CATCH(nullptr)
}
// _custom_static_method(qualified name, name): None when there is none.
PyObject* static_method(PyObject*, PyObject* const* args, Py_ssize_t) {
  CRESSET_PY_TRY
  const CustomClassInfo& info = find(args[0]);
  const auto it = info.methods.find(to_text(args[1]));
  if (it == info.methods.end() || !it->second.is_static || it->first.starts_with("__")) Py_RETURN_NONE;
  return make_method(info, it->first, it->second, nullptr);
  CRESSET_PY_CATCH(nullptr)
}

}  // namespace

bool is_script_object(PyObject* o) { return Py_TYPE(o) == script_object_type; }
const IValue& unwrap_script_object(PyObject* o) { return reinterpret_cast<PyScriptObject*>(o)->value; }
PyObject* wrap_script_object(IValue object) {
  auto* o = PyObject_New(PyScriptObject, script_object_type);
  if (!o) return nullptr;
  new (&o->value) IValue(std::move(object));
  o->weakrefs = nullptr;
  return reinterpret_cast<PyObject*>(o);
}

void init_custom_class(PyObject* module) {
  static PyMemberDef members[] = {{"__weaklistoffset__", T_PYSSIZET, offsetof(PyScriptObject, weakrefs), READONLY, nullptr},
                                  {nullptr, 0, 0, 0, nullptr}};
  static PyMethodDef methods[] = {{"__reduce__", object_reduce, METH_NOARGS, "For pickle, through the class's def_pickle."},
                                  {"_type", class_name_of, METH_NOARGS, "The qualified name of the class."},
                                  {"_has_method", has_method, METH_O, "Does the class have a method of this name?"},
                                  {nullptr, nullptr, 0, nullptr}};
  static PyType_Slot slots[] = {{Py_tp_dealloc, reinterpret_cast<void*>(object_dealloc)},
                                {Py_tp_getattro, reinterpret_cast<void*>(get_attribute)},
                                {Py_tp_setattro, reinterpret_cast<void*>(set_attribute)},
                                {Py_tp_repr, reinterpret_cast<void*>(object_repr)},
                                {Py_tp_methods, methods},
                                {Py_tp_members, members},
                                {Py_tp_doc, const_cast<char*>("An object of a C++ class that an extension registered.")},
                                {0, nullptr}};
  static PyType_Spec spec = {"cresset.ScriptObject", sizeof(PyScriptObject), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                             slots};
  script_object_type = reinterpret_cast<PyTypeObject*>(checked(PyType_FromSpec(&spec)).release());
  checked(PyModule_AddObjectRef(module, "ScriptObject", reinterpret_cast<PyObject*>(script_object_type)));

  static PyGetSetDef method_properties[] = {{"__doc__", method_doc, nullptr, nullptr, nullptr},
                                            {"__name__", method_name, nullptr, nullptr, nullptr},
                                            {"schema", get_schema, nullptr, nullptr, nullptr},
                                            {nullptr, nullptr, nullptr, nullptr, nullptr}};
  static PyType_Slot method_slots[] = {{Py_tp_dealloc, reinterpret_cast<void*>(dealloc_method)},
                                       {Py_tp_call, reinterpret_cast<void*>(call_method)},
                                       {Py_tp_getset, method_properties},
                                       {0, nullptr}};
  static PyType_Spec method_spec = {"cresset._C._ScriptMethod", sizeof(PyScriptMethod), 0,
                                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, method_slots};
  script_method_type = reinterpret_cast<PyTypeObject*>(checked(PyType_FromSpec(&method_spec)).release());

  static PyMethodDef functions[] = {
      {"_make_custom_object", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(make_object)), METH_FASTCALL, nullptr},
      {"_restore_custom_object", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(restore_object)), METH_FASTCALL, nullptr},
      {"_custom_static_method", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(static_method)), METH_FASTCALL, nullptr},
      {nullptr, nullptr, 0, nullptr}};
  checked(PyModule_AddFunctions(module, functions));
  def(module, "_custom_class_names", [] { return custom_class_names(); }, "Qualified names of the registered C++ classes.");
  def(module, "_custom_class_doc", [](std::string name) -> std::string {
    const CustomClassInfo* info = find_custom_class(name);
    return info ? info->doc : std::string();
  });
}

}  // namespace cresset::python
