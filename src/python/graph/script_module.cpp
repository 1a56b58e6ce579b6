// Objects of scripts' classes and their methods in Python: cresset._C.ScriptModule and ScriptMethod.
#include <cresset/ir/archive.h>
#include <cresset/ir/module.h>

#include <cresset/ir/pass.h>

#include "python/convert.h"
#include "python/graph/ir.h"
#include "python/graph/script_convert.h"

namespace cresset::python {

PyTypeObject* script_module_type = nullptr;

namespace {

struct PyScriptModule {
  PyObject_HEAD jit::Object object;
};
struct PyMethodOfObject {
  PyObject_HEAD jit::Object owner;
  intrusive_ptr<jit::Function> function;
  PyObject* dict;  // attributes that Python gave it; may be null
};
PyTypeObject* method_object_type = nullptr;

jit::Module module_of_handle(PyObject* o) { return jit::Module(reinterpret_cast<PyScriptModule*>(o)->object._ivalue()); }
PyMethodOfObject* method_of(PyObject* o) { return reinterpret_cast<PyMethodOfObject*>(o); }

template <class Py, class... Members>
void destroy_handle(PyObject* o, Members... members) {
  auto* self = reinterpret_cast<Py*>(o);
  (std::destroy_at(&(self->*members)), ...);
  PyTypeObject* type = Py_TYPE(o);
  type->tp_free(o);
  Py_DECREF(type);
}
void module_dealloc(PyObject* o) { destroy_handle<PyScriptModule>(o, &PyScriptModule::object); }
int method_traverse(PyObject* o, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(o));
  Py_VISIT(method_of(o)->dict);
  return 0;
}
int method_clear(PyObject* o) {
  Py_CLEAR(method_of(o)->dict);
  return 0;
}
void method_dealloc(PyObject* o) {
  PyObject_GC_UnTrack(o);
  Py_CLEAR(method_of(o)->dict);
  destroy_handle<PyMethodOfObject>(o, &PyMethodOfObject::owner, &PyMethodOfObject::function);
}

Object wrap_method(const jit::Object& owner, jit::Function* function) {
  PyObject* o = checked(method_object_type->tp_alloc(method_object_type, 0)).release();
  new (&method_of(o)->owner) jit::Object(owner);
  new (&method_of(o)->function) intrusive_ptr<jit::Function>(intrusive_ptr<jit::Function>::reclaim_copy(function));
  return Object(o);
}
PyObject* method_call(PyObject* self, PyObject* args, PyObject* kwargs) {
  const IValue owner(method_of(self)->owner._ivalue());
  return call_function(*method_of(self)->function, &owner, args, kwargs);
}

PyObject* method_graph_for(PyObject* self, PyObject* args, PyObject* kwargs) {
  return graph_for(*method_of(self)->function, self, args, kwargs);
}

// An object of another class than an attribute's is an error of the program's, not of the call.
void check_object(const std::string& name, const TypePtr& wanted, PyObject* value) {
  std::string why;
  const jit::Object given = wanted ? object_of(value) : jit::Object();
  if (!given.defined() || given.type()->is_subtype_of(*wanted, &why)) return;
  if (wanted->kind == TypeKind::Interface)
    CRESSET_THROW(Error, "attribute '", name, "': '", given.type()->name, "' is not compatible with interface '", wanted->name, "'. ", why);
  if (wanted->kind == TypeKind::Object)
    CRESSET_THROW(Error, "Expected a value of type '", wanted->annotation_str(), " (of Python)' for field '", name, "', but found '",
                  given.type()->name, " (of Python)'");
}

// Attributes and methods of the object under their names, behind what every handle has. Modules among them are handles, too.
PyObject* module_getattr(PyObject* self, PyObject* name) {
  PyObject* found = PyObject_GenericGetAttr(self, name);
  if (found || !PyErr_ExceptionMatches(PyExc_AttributeError)) return found;
  CRESSET_PY_TRY
  const jit::Module object = module_of_handle(self);
  const std::string field = to_text(name);
  const auto method = object.find_method(field);
  if (!method && !object.hasattr(field)) {
    PyErr_Format(PyExc_AttributeError, "%s (of Python compilation unit at: %p) does not have a field with name '%U'",
                 object.type()->name.c_str(), static_cast<const void*>(python_unit().get()), name);
    return nullptr;
  }
  PyErr_Clear();
  if (method) return wrap_method(object, &method->function()).ref.release();
  const IValue value = object.attr(field);
  if (value.isObject() && jit::Object(value.toObject()).type()->is_module()) return wrap_object(jit::Object(value.toObject()));
  return to_python(value, false);
  CRESSET_PY_CATCH(nullptr)
}

// [(path, value)] of a list of pairs.
template <class Items, class F>
Object pairs(const Items& items, F&& convert) {
  const Ref list = checked(PyList_New(0));
  for (const auto& [name, value] : items) {
    const Ref key = checked(Convert<std::string>::to(name)), object = checked(convert(value));
    checked(PyList_Append(list.get(), checked(PyTuple_Pack(2, key.get(), object.get())).get()));
  }
  return Object(Ref::borrow(list.get()));
}
Object tensors(const std::vector<jit::NameValue<Tensor>>& items) {
  return pairs(items, [](const Tensor& t) { return wrap(t); });
}
Object modules(const std::vector<jit::NameValue<jit::Module>>& items) {
  return pairs(items, [](const jit::Module& m) { return wrap_object(m); });
}

// [(name, type, is parameter, is buffer)] in the order of slots.
Object attributes_of(const jit::ClassType& type) {
  const Ref list = checked(PyList_New(0));
  for (const jit::ClassAttribute& a : type.attributes()) {
    const Ref kind = checked(wrap_type(a.type));
    checked(PyList_Append(list.get(), checked(Py_BuildValue("(sOOO)", a.name.c_str(), kind.get(), a.is_parameter ? Py_True : Py_False,
                                                            a.is_buffer ? Py_True : Py_False))
                                          .get()));
  }
  return Object(Ref::borrow(list.get()));
}

void init_methods(PyObject* module) {
  static PyMemberDef members[] = {{"__dictoffset__", T_PYSSIZET, offsetof(PyMethodOfObject, dict), READONLY, nullptr}, {}};
  static PyGetSetDef properties[] = {
      {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
      property("graph", [](PyObject* m) { return graph_of(*method_of(m)->function); }),
      property("inlined_graph",
               [](PyObject* m) {
                 auto g = method_of(m)->function->graph()->copy();
                 jit::inline_calls(g);
                 return g;
               }),
      property("code", [](PyObject* m) { return jit::code_of(*method_of(m)->function); }),
      property("schema", [](PyObject* m) { return schema_object(method_of(m)->function->getSchema()); }),
      property("name", [](PyObject* m) { return method_of(m)->function->name(); }),
      property("__name__", [](PyObject* m) { return method_of(m)->function->name(); }),
      property("qualified_name", [](PyObject* m) { return std::string(method_of(m)->function->qualname()); }),
      property("function", [](PyObject* m) { return Object(wrap_function(method_of(m)->function)); }),
      property("owner", [](PyObject* m) { return Object(wrap_object(method_of(m)->owner)); }),
      {}};
  static PyMethodDef methods[] = {
      {"graph_for", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(&method_graph_for)), METH_VARARGS | METH_KEYWORDS,
       "graph_for(*args, **kwargs)\n\nCalls the method and gives the graph that ran, with all calls inlined."},
      {}};
  PyType_Slot slots[] = {{Py_tp_dealloc, reinterpret_cast<void*>(&method_dealloc)},
                         {Py_tp_methods, methods},
                         {Py_tp_members, members},
                         {Py_tp_traverse, reinterpret_cast<void*>(&method_traverse)},
                         {Py_tp_clear, reinterpret_cast<void*>(&method_clear)},
                         {Py_tp_call, reinterpret_cast<void*>(&method_call)},
                         {Py_tp_getset, properties},
                         {Py_tp_doc, const_cast<char*>("A compiled method bound to its object.")},
                         {0, nullptr}};
  PyType_Spec spec{"cresset._C.ScriptMethod", sizeof(PyMethodOfObject), 0,
                   Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
  method_object_type = reinterpret_cast<PyTypeObject*>(checked(PyType_FromSpec(&spec)).release());
  checked(PyModule_AddObjectRef(module, "ScriptMethod", reinterpret_cast<PyObject*>(method_object_type)));
}

}  // namespace

PyObject* wrap_object(jit::Object object) {
  PyObject* o = checked(script_module_type->tp_alloc(script_module_type, 0)).release();
  new (&reinterpret_cast<PyScriptModule*>(o)->object) jit::Object(std::move(object));
  return o;
}

jit::Object object_of(PyObject* o) {
  if (PyObject_TypeCheck(o, script_module_type)) return reinterpret_cast<PyScriptModule*>(o)->object;
  if (PyType_Check(o)) return {};
  static PyObject* name = interned("_c");
  const Ref handle = Ref::steal(PyObject_GetAttr(o, name));
  if (!handle) PyErr_Clear();
  return handle && PyObject_TypeCheck(handle.get(), script_module_type) ? reinterpret_cast<PyScriptModule*>(handle.get())->object
                                                                        : jit::Object();
}

namespace {

PyMethodDef module_methods[] = {
    method("getattr", [](PyObject* m, std::string name) { return Object(to_python(module_of_handle(m).attr(name), false)); }),
    method("setattr",
           [](PyObject* m, std::string name, PyObject* value) {
             const jit::Module object = module_of_handle(m);
             const TypePtr type = object.type()->findAttribute(name);
             check_object(name, type, value);
             object.setattr(name, type ? to_ivalue(value, *type, "attribute '" + name + "'") : IValue());
           }),
    method("hasattr", [](PyObject* m, std::string name) { return module_of_handle(m).hasattr(name); }),
    method("_is_attribute", [](PyObject* m, std::string name) { return module_of_handle(m).type()->hasAttribute(name); }),
    method("_get_method",
           [](PyObject* m, std::string name) {
             const jit::Method found = module_of_handle(m).get_method(name);
             return wrap_method(module_of_handle(m), &found.function());
           }),
    method("_has_method", [](PyObject* m, std::string name) { return module_of_handle(m).find_method(name).has_value(); }),
    method("_method_names",
           [](PyObject* m) {
             std::vector<std::string> names;
             for (jit::Function* f : module_of_handle(m).type()->methods()) names.push_back(f->name());
             return names;
           }),
    method(
        "_hooks",
        [](PyObject* m, bool before) {
          const auto type = module_of_handle(m).type();
          const Ref list = checked(PyList_New(0));
          for (jit::Function* f : before ? type->getForwardPreHooks() : type->getForwardHooks())
            checked(PyList_Append(list.get(), checked(wrap_function(intrusive_ptr<jit::Function>::reclaim_copy(f))).get()));
          return Object(Ref::borrow(list.get()));
        },
        "Functions that run before (or after) forward when the module is called."),
    method("_type", [](PyObject* m) { return TypePtr(module_of_handle(m).type()); }),
    method("_attributes", [](PyObject* m) { return attributes_of(*module_of_handle(m).type()); }),
    method("_constants",
           [](PyObject* m) { return pairs(module_of_handle(m).type()->constants(), [](const IValue& v) { return to_python(v, false); }); }),
    method("named_parameters",
           [](PyObject* m, std::optional<bool> recurse) { return tensors(module_of_handle(m).named_parameters(recurse.value_or(true))); }),
    method("named_buffers",
           [](PyObject* m, std::optional<bool> recurse) { return tensors(module_of_handle(m).named_buffers(recurse.value_or(true))); }),
    method("named_modules", [](PyObject* m) { return modules(module_of_handle(m).named_modules()); }),
    method("named_children", [](PyObject* m) { return modules(module_of_handle(m).named_children()); }),
    method("_register_attribute",
           [](PyObject* m, std::string name, TypePtr type, PyObject* value, std::optional<bool> parameter, std::optional<bool> buffer) {
             IValue v = to_ivalue(value, *type, "attribute '" + name + "'");
             module_of_handle(m).register_attribute(name, std::move(type), std::move(v), parameter.value_or(false), buffer.value_or(false));
           }),
    method(
        "_remove_attribute",
        [](PyObject* m, std::string name, PyObject* others) {
          const auto type = module_of_handle(m).type();
          const auto slot = static_cast<std::ptrdiff_t>(type->getAttributeSlot(name));
          const auto erase = [&](PyObject* handle) {
            auto& slots = *module_of_handle(handle)._ivalue();
            if (slot < static_cast<std::ptrdiff_t>(slots.slots.size())) slots.slots.erase(slots.slots.begin() + slot);
          };
          erase(m);
          for (Py_ssize_t i = 0; i < PyList_Size(others); ++i) erase(PyList_GetItem(others, i));
          type->removeAttribute(name);
        },
        "Take an attribute out of the class and of its modules: this one and the list of all others."),
    method("_define", [](PyObject* m, std::string source) { module_of_handle(m).define(source); }),
    method(
        "_remove_method", [](PyObject* m, std::string name) { module_of_handle(m).type()->removeMethod(name); },
        "Take a method out of the class, which no other module may have."),
    method("copy", [](PyObject* m) { return Object(wrap_object(module_of_handle(m).copy())); }),
    method("deepcopy", [](PyObject* m) { return Object(wrap_object(module_of_handle(m).deepcopy())); }),
    method(
        "clone", [](PyObject* m) { return Object(wrap_object(module_of_handle(m).clone())); }, "A copy with classes of its own."),
    method(
        "_id", [](PyObject* m) { return reinterpret_cast<int64_t>(module_of_handle(m)._ivalue().get()); },
        "Equal for handles of one object."),
    {}};

}  // namespace

void init_script_module(PyObject* module) {
  init_methods(module);
  static PyGetSetDef properties[] = {property("qualified_name", [](PyObject* m) { return std::string(module_of_handle(m).type()->name); }),
                                     {}};
  PyType_Slot slots[] = {
      {Py_tp_dealloc, reinterpret_cast<void*>(&module_dealloc)},
      {Py_tp_richcompare, reinterpret_cast<void*>(+[](PyObject* a, PyObject* b, int op) -> PyObject* {
         if (Py_TYPE(a) != Py_TYPE(b) || (op != Py_EQ && op != Py_NE)) Py_RETURN_NOTIMPLEMENTED;
         return PyBool_FromLong((reinterpret_cast<PyScriptModule*>(a)->object == reinterpret_cast<PyScriptModule*>(b)->object) ==
                                (op == Py_EQ));
       })},
      {Py_tp_hash, reinterpret_cast<void*>(+[](PyObject* o) {
         return static_cast<Py_hash_t>(reinterpret_cast<uintptr_t>(reinterpret_cast<PyScriptModule*>(o)->object._ivalue().get()) >> 4);
       })},
      {Py_tp_getattro, reinterpret_cast<void*>(&module_getattr)},
      {Py_tp_getset, properties},
      {Py_tp_methods, module_methods},
      {Py_tp_doc, const_cast<char*>("An object of a script's class: attributes, module_methods, submodules.")},
      {0, nullptr}};
  PyType_Spec spec{"cresset._C.ScriptModule", sizeof(PyScriptModule), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
  script_module_type = reinterpret_cast<PyTypeObject*>(checked(PyType_FromSpec(&spec)).release());
  checked(PyModule_AddObjectRef(module, "ScriptModule", reinterpret_cast<PyObject*>(script_module_type)));
}

}  // namespace cresset::python
