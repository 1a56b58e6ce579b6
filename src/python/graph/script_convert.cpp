// Values of scripts between Python and the stack.
#include "python/graph/script_convert.h"

#include <deque>

#include <cresset/dispatch/tuple_type.h>
#include <cresset/ir/class_type.h>

#include "python/convert.h"
#include "python/graph/ir.h"

namespace cresset::python {

namespace {
// The last one is in use; what was made in others lives on.
std::deque<std::shared_ptr<jit::CompilationUnit>>& python_units() {
  static auto& units = *new std::deque<std::shared_ptr<jit::CompilationUnit>>{std::make_shared<jit::CompilationUnit>()};
  return units;
}
}  // namespace

const std::shared_ptr<jit::CompilationUnit>& python_unit() { return python_units().back(); }
void begin_python_unit() { python_units().push_back(std::make_shared<jit::CompilationUnit>()); }

namespace {

// {qualified name: Python class}, for the life of the process.
PyObject* classes() {
  static PyObject* dict = checked(PyDict_New()).release();
  return dict;
}
PyObject* class_named(const std::string& name) { return PyDict_GetItemString(classes(), name.c_str()); }
// The other way.
PyObject* names_of_classes() {
  static PyObject* dict = checked(PyDict_New()).release();
  return dict;
}

PyObject* named_tuple_to_python(const ivalue::TupleImpl& tuple, const NamedTupleType& type) {
  Ref cls = Ref::borrow(class_named(type.name));
  if (!cls) {
    const Ref module = checked(PyImport_ImportModule("collections"));
    const Ref fields = checked(Convert<std::vector<std::string>>::to(type.fields));
    cls = checked(PyObject_CallMethod(module.get(), "namedtuple", "sO", type.name.substr(type.name.rfind('.') + 1).c_str(), fields.get()));
    remember_class(type.name, cls.get());
  }
  const Ref args = checked(PyTuple_New(static_cast<Py_ssize_t>(tuple.elements.size())));
  for (std::size_t i = 0; i < tuple.elements.size(); ++i)
    PyTuple_SET_ITEM(args.get(), static_cast<Py_ssize_t>(i), checked(to_python(tuple.elements[i], false)).release());
  return PyObject_CallObject(cls.get(), args.get());
}

// An instance of the Python class with the same attributes, made without its __init__.
PyObject* instance_of(PyObject* cls, const jit::Object& object) {
  const Ref instance = checked(PyObject_CallMethod(cls, "__new__", "O", cls));
  for (const jit::ClassAttribute& a : object.type()->attributes())
    checked(PyObject_SetAttrString(instance.get(), a.name.c_str(), checked(to_python(object.attr(a.name), false)).get()));
  return Py_NewRef(instance.get());
}

PyObject* object_to_python(const IValue& v) {
  const jit::Object object(v.toObject());
  if (PyObject* cls = class_named(object.type()->name)) return instance_of(cls, object);
  const Ref handle = checked(wrap_object(object));
  if (!object.type()->is_module()) return Py_NewRef(handle.get());
  // Not imported here: objects of modules' classes only come from that package.
  const Ref package = checked(PyImport_ImportModule("cresset.jit._recursive"));
  return PyObject_CallMethod(package.get(), "wrap_module", "O", handle.get());
}

// The attributes that an object of a class needs, from an instance of the Python class.
IValue object_from_instance(PyObject* o, const jit::ClassTypePtr& type) {
  auto object = jit::new_object(type);
  for (std::size_t i = 0; i < type->numAttributes(); ++i) {
    const jit::ClassAttribute& a = type->attributes()[i];
    const Ref value = checked(PyObject_GetAttrString(o, a.name.c_str()));
    object->set_slot(i, to_ivalue(value.get(), *a.type, "Could not cast attribute '" + a.name + "' to type " + a.type->annotation_str()));
  }
  return object;
}

bool is_instance_of(PyObject* o, const std::string& class_name) {
  PyObject* cls = class_named(class_name);
  return cls && PyObject_IsInstance(o, cls) == 1;
}

}  // namespace

void remember_class(const std::string& qualified_name, PyObject* cls) {
  checked(PyDict_SetItemString(classes(), qualified_name.c_str(), cls));
  checked(PyDict_SetItem(names_of_classes(), cls, checked(Convert<std::string>::to(qualified_name)).get()));
}

PyObject* script_value_to_python(const IValue& v) {
  switch (v.tag()) {
    case IValue::Tag::ScriptObject: return object_to_python(v);
    case IValue::Tag::Enum: {
      const auto holder = v.toEnumHolder();
      PyObject* cls = class_named(holder->type->name);
      CRESSET_CHECK(cls, "enum '", holder->type->name, "' has no Python class in this process.");
      return PyObject_GetAttrString(cls, holder->name.c_str());
    }
    case IValue::Tag::Future: return wrap_future(v.toFuture());
    case IValue::Tag::Function:
      return wrap_function(intrusive_ptr<jit::Function>::reclaim_copy(static_cast<jit::Function*>(v.toFunction().get())));
    case IValue::Tag::Tuple: {
      const auto* named = dynamic_cast<const NamedTupleType*>(v.toTupleRef().type.get());
      return named ? named_tuple_to_python(v.toTupleRef(), *named) : nullptr;
    }
    default: return nullptr;
  }
}

// Of an instance of a class that was compiled, or an enumerator; null for others.
static TypePtr type_of_instance(PyObject* o) {
  PyObject* name = PyDict_GetItem(names_of_classes(), reinterpret_cast<PyObject*>(Py_TYPE(o)));
  return name ? python_unit()->find_type(to_text(name)) : nullptr;
}

bool fits_script_type(PyObject* o, const Type& type) {
  switch (type.kind) {
    case TypeKind::Object:
    case TypeKind::Interface: {
      if (const jit::Object object = object_of(o); object.defined()) return object.type()->is_subtype_of(type);
      if (is_instance_of(o, type.name)) return true;
      const TypePtr own = type.kind == TypeKind::Interface ? type_of_instance(o) : nullptr;
      return own && own->is_subtype_of(type);
    }
    case TypeKind::Enum: return is_instance_of(o, type.name);
    case TypeKind::List:
    case TypeKind::Dict: {
      const auto container = container_of_object(o);
      return container && *container->second == type;
    }
    case TypeKind::Future: return future_of_object(o).get() != nullptr;
    case TypeKind::Function: return PyObject_TypeCheck(o, script_function_type);
    case TypeKind::AnyEnum:
    case TypeKind::AnyClass: return infer_script_value(o).has_value();
    default: return false;
  }
}

// Of objects that hold a value of scripts; nothing for all others.
static std::optional<IValue> held_value(PyObject* o) {
  if (const jit::Object object = object_of(o); object.defined()) return IValue(object._ivalue());
  if (PyObject_TypeCheck(o, script_function_type))
    return IValue(intrusive_ptr<ivalue::FunctionBase>(reinterpret_cast<PyFunction*>(o)->function));
  if (const auto future = future_of_object(o)) return IValue(future);
  if (auto container = container_of_object(o)) return std::move(container->first);
  return std::nullopt;
}

IValue to_script_value(PyObject* o, const Type& type) {
  if (type.kind == TypeKind::Enum) {
    const Ref name = checked(PyObject_GetAttrString(o, "name"));
    const auto holder = type.cast<jit::EnumType>()->find(to_text(name.get()));
    CRESSET_CHECK(holder, "enum '", type.name, "' has no enumerator '", to_text(name.get()), "'.");
    return holder;
  }
  if (auto value = held_value(o)) return std::move(*value);
  const TypePtr own = type.kind == TypeKind::Interface ? type_of_instance(o) : nullptr;
  const auto cls = own ? own->cast<jit::ClassType>() : type.cast<jit::ClassType>();
  CRESSET_CHECK_TYPE(cls, "a value of type '", type, "' was required; a ", type_name(Py_TYPE(o)), " was given.");
  return object_from_instance(o, cls);
}

std::optional<IValue> infer_script_value(PyObject* o) {
  if (auto value = held_value(o)) return value;
  const TypePtr type = type_of_instance(o);
  if (!type) return std::nullopt;
  return to_script_value(o, *type);
}

}  // namespace cresset::python
