// cresset._C.ScriptThing: a kind and the arguments that it was made from.
#include "python/graph/script_things.h"

namespace cresset::python {

PyTypeObject* thing_type = nullptr;

namespace {

PyThing* thing_of(PyObject* o) { return reinterpret_cast<PyThing*>(o); }

int traverse(PyObject* o, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(o));
  Py_VISIT(thing_of(o)->parts);
  return 0;
}
int clear(PyObject* o) {
  Py_CLEAR(thing_of(o)->parts);
  return 0;
}
void dealloc(PyObject* o) {
  PyObject_GC_UnTrack(o);
  Py_CLEAR(thing_of(o)->parts);
  PyTypeObject* type = Py_TYPE(o);
  type->tp_free(o);
  Py_DECREF(type);
}
PyObject* repr(PyObject* o) { return PyUnicode_FromFormat("ScriptThing.%s%R", thing_of(o)->kind->name, thing_of(o)->parts); }

}  // namespace

PyObject* make_thing(const ThingKind& kind, PyObject* parts) {
  CRESSET_CHECK_TYPE(PyTuple_GET_SIZE(parts) == kind.arity, "ScriptThing.", kind.name, "() takes ", kind.arity, " arguments; ",
                     PyTuple_GET_SIZE(parts), " were given.");
  kind.check(parts);
  PyObject* o = checked(thing_type->tp_alloc(thing_type, 0)).release();
  thing_of(o)->kind = &kind;
  thing_of(o)->parts = Py_NewRef(parts);
  return o;
}

jit::SugaredValuePtr to_sugared(PyObject* thing, const ThingUse& use) {
  if (thing == Py_None) return nullptr;
  const PyThing* t = Convert<PyThing*>::from(thing);
  return t->kind->value(t->parts, use);
}

void init_script_things(PyObject* module) {
  static PyGetSetDef properties[] = {property("kind", [](PyObject* o) { return std::string(thing_of(o)->kind->name); }),
                                     property("parts", [](PyObject* o) { return Object(Ref::borrow(thing_of(o)->parts)); }),
                                     {}};
  PyType_Slot slots[] = {{Py_tp_dealloc, reinterpret_cast<void*>(&dealloc)},
                         {Py_tp_traverse, reinterpret_cast<void*>(&traverse)},
                         {Py_tp_clear, reinterpret_cast<void*>(&clear)},
                         {Py_tp_repr, reinterpret_cast<void*>(&repr)},
                         {Py_tp_getset, properties},
                         {Py_tp_doc, const_cast<char*>("What the compiler makes of an object that a script names.")},
                         {0, nullptr}};
  PyType_Spec spec{"cresset._C.ScriptThing", sizeof(PyThing), 0,
                   Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
  thing_type = reinterpret_cast<PyTypeObject*>(checked(PyType_FromSpec(&spec)).release());
  checked(PyModule_AddObjectRef(module, "ScriptThing", reinterpret_cast<PyObject*>(thing_type)));
}

}  // namespace cresset::python
