// The types of the IR in Python: Type and a class for each kind, with PyTorch's names.
#include <array>

#include <cresset/dispatch/tuple_type.h>
#include <cresset/ir/class_type.h>

#include "python/graph/ir.h"

namespace cresset::python {

PyTypeObject* ir_type_type = nullptr;

namespace {

std::array<PyTypeObject*, static_cast<std::size_t>(TypeKind::Enum) + 1> kind_types{};

void type_dealloc(PyObject* o) {
  std::destroy_at(&reinterpret_cast<PyIrType*>(o)->type);
  std::destroy_at(&reinterpret_cast<PyIrType*>(o)->unit);
  PyTypeObject* type = Py_TYPE(o);
  type->tp_free(o);
  Py_DECREF(type);
}

PyObject* type_compare(PyObject* a, PyObject* b, int op) {
  if (!PyObject_TypeCheck(a, ir_type_type) || !PyObject_TypeCheck(b, ir_type_type) || (op != Py_EQ && op != Py_NE))
    Py_RETURN_NOTIMPLEMENTED;
  return PyBool_FromLong((*reinterpret_cast<PyIrType*>(a)->type == *reinterpret_cast<PyIrType*>(b)->type) == (op == Py_EQ));
}
Py_hash_t type_hash(PyObject* o) {
  CRESSET_PY_TRY
  const Type& t = *reinterpret_cast<PyIrType*>(o)->type;
  return static_cast<Py_hash_t>(std::hash<std::string>()(t.annotation_str()) >> 1);
  CRESSET_PY_CATCH(-1)
}
PyObject* type_repr(PyObject* o) {
  CRESSET_PY_TRY
  return Convert<std::string>::to(reinterpret_cast<PyIrType*>(o)->type->annotation_str());
  CRESSET_PY_CATCH(nullptr)
}

const char* class_name(TypeKind kind) {
  switch (kind) {
    case TypeKind::Any: return "AnyType";
    case TypeKind::Tensor: return "TensorType";
    case TypeKind::Number: return "NumberType";
    case TypeKind::Int: return "IntType";
    case TypeKind::SymInt: return "SymIntType";
    case TypeKind::Float: return "FloatType";
    case TypeKind::Complex: return "ComplexType";
    case TypeKind::Bool: return "BoolType";
    case TypeKind::String: return "StringType";
    case TypeKind::None: return "NoneType";
    case TypeKind::Device: return "DeviceObjType";
    case TypeKind::ScalarType: return "ScalarTypeType";
    case TypeKind::Layout: return "LayoutType";
    case TypeKind::MemoryFormat: return "MemoryFormatType";
    case TypeKind::Generator: return "_GeneratorType";
    case TypeKind::Storage: return "StorageType";
    case TypeKind::Stream: return "StreamObjType";
    case TypeKind::Capsule: return "CapsuleType";
    case TypeKind::List: return "ListType";
    case TypeKind::Optional: return "OptionalType";
    case TypeKind::Tuple: return "TupleType";
    case TypeKind::Dict: return "DictType";
    case TypeKind::Future: return "FutureType";
    case TypeKind::Var: return "VarType";
    case TypeKind::Object: return "ClassType";
    case TypeKind::AnyList: return "AnyListType";
    case TypeKind::AnyTuple: return "AnyTupleType";
    case TypeKind::AnyClass: return "AnyClassType";
    case TypeKind::AnyEnum: return "AnyEnumType";
    case TypeKind::Union: return "UnionType";
    case TypeKind::RRef: return "RRefType";
    case TypeKind::Await: return "AwaitType";
    case TypeKind::Function: return "FunctionType";
    case TypeKind::Interface: return "InterfaceType";
    case TypeKind::Enum: return "EnumType";
  }
  return "Type";
}

const TensorType& tensor_type_of(const TypePtr& t) {
  const auto* r = dynamic_cast<const TensorType*>(t.get());
  CRESSET_CHECK_TYPE(r, "a tensor type was required; '", t->str(), "' was given.");
  return *r;
}

PyObject* dims_to_python(const std::optional<TensorType::Dims>& dims) {
  if (!dims) Py_RETURN_NONE;
  const Ref list = checked(PyList_New(0));
  for (const auto& d : *dims) {
    const Ref item = d ? checked(PyLong_FromLongLong(*d)) : Ref::borrow(Py_None);
    checked(PyList_Append(list.get(), item.get()));
  }
  return Py_NewRef(list.get());
}
// Sizes, and in the place of each that is not known a negative number that no other has.
PyObject* symbolic_to_python(const std::optional<TensorType::Dims>& dims) {
  static int64_t last = -1;  // under the GIL
  if (!dims) Py_RETURN_NONE;
  std::vector<int64_t> out;
  for (const auto& d : *dims) out.push_back(d ? *d : --last);
  return Convert<std::vector<int64_t>>::to(out);
}
// Sizes when all are known, None otherwise.
PyObject* concrete_to_python(const std::optional<std::vector<int64_t>>& dims) {
  if (!dims) Py_RETURN_NONE;
  return Convert<std::vector<int64_t>>::to(*dims);
}
TensorType::Dims dims_from(PyObject* o) {
  const Ref items = checked(PySequence_Fast(o, "a sequence of sizes was required"));
  TensorType::Dims out;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items.get()); ++i) {
    PyObject* e = PySequence_Fast_GET_ITEM(items.get(), i);
    out.push_back(e == Py_None ? std::nullopt : std::optional<int64_t>(Convert<int64_t>::from(e)));
  }
  return out;
}

// The constructors: ListType(element), DictType(key, value), TupleType([...]), ClassType("name"), kinds without contents by get().
PyObject* type_new(PyTypeObject* type, PyObject* args, PyObject*) {
  CRESSET_PY_TRY
  const auto argument = [&](Py_ssize_t i) -> PyObject* {
    CRESSET_CHECK_TYPE(i < PyTuple_GET_SIZE(args), type_name(type), ": an argument is missing.");
    return PyTuple_GET_ITEM(args, i);
  };
  for (std::size_t k = 0; k < kind_types.size(); ++k) {
    if (kind_types[k] != type) continue;
    switch (const auto kind = static_cast<TypeKind>(k)) {
      case TypeKind::List:
        CRESSET_CHECK(argument(0) != Py_None, "Can not create ListType with None type");
        return wrap_type(list_of(to_type(argument(0))));
      case TypeKind::Optional: return wrap_type(optional_of(to_type(argument(0))));
      case TypeKind::Dict: return wrap_type(dict_of(to_type(argument(0)), to_type(argument(1))));
      case TypeKind::Future: return wrap_type(future_of(to_type(argument(0))));
      case TypeKind::RRef: return wrap_type(rref_of(to_type(argument(0))));
      case TypeKind::Await: return wrap_type(await_of(to_type(argument(0))));
      case TypeKind::Tuple: return wrap_type(tuple_of(Convert<std::vector<TypePtr>>::from(argument(0))));
      case TypeKind::Union: return wrap_type(union_of(Convert<std::vector<TypePtr>>::from(argument(0))));
      case TypeKind::Object: return wrap_type(jit::ClassType::opaque(Convert<std::string>::from(argument(0))));
      case TypeKind::Var: return wrap_type(var_type(Convert<std::string>::from(argument(0))));
      case TypeKind::Function: return wrap_type(function_type(Convert<std::string>::from(argument(0))));
      default:
        CRESSET_CHECK_TYPE(kind != TypeKind::Interface && kind != TypeKind::Enum, type_name(type), " cannot be made from Python.");
        return wrap_type(basic_type(kind));
    }
  }
  CRESSET_THROW(TypeError, "Type has no constructor; use one of its classes.");
  CRESSET_PY_CATCH(nullptr)
}

PyObject* type_get(PyObject* cls, PyObject*) { return type_new(reinterpret_cast<PyTypeObject*>(cls), Py_BuildValue("()"), nullptr); }
PyObject* list_of_kind(PyObject*, TypeKind kind) {
  CRESSET_PY_TRY
  return wrap_type(list_of(basic_type(kind)));
  CRESSET_PY_CATCH(nullptr)
}
PyObject* tensor_type_from(PyObject*, PyObject* t) {
  CRESSET_PY_TRY
  return wrap_type(TensorType::create(Convert<Tensor>::from(t)));
  CRESSET_PY_CATCH(nullptr)
}

TypePtr changed(const TypePtr& t, const std::function<void(TensorType&)>& change) {
  auto copy = tensor_type_of(t).copy();
  change(*copy);
  return copy;
}

}  // namespace

PyObject* wrap_type(const TypePtr& t) {
  if (!t) Py_RETURN_NONE;
  PyTypeObject* cls = kind_types[static_cast<std::size_t>(t->kind())];
  PyObject* o = checked(cls->tp_alloc(cls, 0)).release();
  const auto script_class = t->cast<jit::ClassType>();
  new (&reinterpret_cast<PyIrType*>(o)->type) TypePtr(t);
  new (&reinterpret_cast<PyIrType*>(o)->unit) std::shared_ptr<void>(script_class ? script_class->unit() : nullptr);
  return o;
}
TypePtr to_type(PyObject* o) {
  if (PyUnicode_Check(o)) return jit::parse_type_expression(to_text(o));
  CRESSET_CHECK_TYPE(PyObject_TypeCheck(o, ir_type_type), "a Type was required; a ", type_name(Py_TYPE(o)), " was given.");
  return reinterpret_cast<PyIrType*>(o)->type;
}

namespace {

PyMethodDef type_methods[] = {
    method(
        "str", [](TypePtr t) { return t->str(); }, "The spelling of IR text."),
    method("kind", [](TypePtr t) { return std::string(class_name(t->kind)); }),
    method("isSubtypeOf", [](TypePtr t, TypePtr o) { return t->is_subtype_of(*o); }),
    method("containedTypes", [](TypePtr t) { return t->contained; }),
    method("is_interface_type", [](TypePtr t) { return t->kind == TypeKind::Interface; }),
    method("getElementType", [](TypePtr t) { return t->element(); }),
    method("getKeyType", [](TypePtr t) { return t->contained.at(0); }),
    method("getValueType", [](TypePtr t) { return t->contained.at(1); }),
    method("elements", [](TypePtr t) { return t->contained; }),
    method("name", [](TypePtr t) { return t->name.substr(t->name.rfind('.') + 1); }),
    method("qualified_name", [](TypePtr t) { return std::string(t->name); }),
    method("field_names",
           [](TypePtr t) {
             const auto* named = dynamic_cast<const NamedTupleType*>(t.get());
             return named ? named->fields : std::vector<std::string>();
           }),
    method("sizes", [](TypePtr t) { return Object(concrete_to_python(tensor_type_of(t).concrete_sizes())); }),
    method(
        "symbolic_sizes", [](TypePtr t) { return Object(symbolic_to_python(tensor_type_of(t).sizes)); },
        "Sizes; where one is not known, a negative number that no other has. None without a rank."),
    method("varyingSizes", [](TypePtr t) { return Object(dims_to_python(tensor_type_of(t).sizes)); }),
    method("strides", [](TypePtr t) { return Object(concrete_to_python(tensor_type_of(t).concrete_strides())); }),
    method("dim",
           [](TypePtr t) -> std::optional<int64_t> {
             const auto& tensor = tensor_type_of(t);
             return tensor.sizes ? std::optional(static_cast<int64_t>(tensor.sizes->size())) : std::nullopt;
           }),
    method("dtype", [](TypePtr t) { return tensor_type_of(t).dtype; }),
    method("scalarType",
           [](TypePtr t) -> std::optional<std::string> {
             const auto& tensor = tensor_type_of(t);
             return tensor.dtype ? std::optional(std::string(dtype_word(*tensor.dtype))) : std::nullopt;
           }),
    method("device", [](TypePtr t) { return tensor_type_of(t).device(); }),
    method("requires_grad", [](TypePtr t) { return t->kind == TypeKind::Tensor && tensor_type_of(t).requires_grad.value_or(true); }),
    method("requiresGrad", [](TypePtr t) { return tensor_type_of(t).requiresGrad(); }),
    method("with_dtype", [](TypePtr t, ScalarType d) { return changed(t, [&](TensorType& x) { x.dtype = d; }); }),
    method("with_device", [](TypePtr t, Device d) { return changed(t, [&](TensorType& x) { x.device = d; }); }),
    method("with_sizes",
           [](TypePtr t, PyObject* sizes) {
             return changed(t, [&](TensorType& x) {
               x.sizes = sizes == Py_None ? std::nullopt : std::optional(dims_from(sizes));
               if (x.strides && (!x.sizes || x.strides->size() != x.sizes->size())) x.strides.reset();
               if (x.sizes && x.sizes->empty()) x.strides = TensorType::Dims();  // rank 0 has no other ones
             });
           }),
    method("contiguous",
           [](TypePtr t) {
             return changed(t, [&](TensorType& x) {
               if (!x.sizes) return;
               TensorType::Dims strides(x.sizes->size());
               std::optional<int64_t> next = 1;
               for (std::size_t d = strides.size(); d-- > 0;) {
                 strides[d] = next;
                 next = next && (*x.sizes)[d] ? std::optional(*next * std::max<int64_t>(*(*x.sizes)[d], 1)) : std::nullopt;
               }
               x.strides = std::move(strides);
             });
           }),
    {}};

// The classes of the kinds: IntType, ListType, …
void init_kinds_of_types(PyObject* module) {
  static PyMethodDef class_methods[] = {{"get", type_get, METH_CLASS | METH_NOARGS, "The type of this kind that has no contents."}, {}};
  static PyMethodDef tensor_methods[] = {{"get", type_get, METH_CLASS | METH_NOARGS, "The plain tensor type."},
                                         {"getInferred", type_get, METH_CLASS | METH_NOARGS, nullptr},
                                         {"create_from_tensor", tensor_type_from, METH_STATIC | METH_O, "Everything about a tensor."},
                                         {}};
  static PyMethodDef list_methods[] = {
      {"ofInts", +[](PyObject* c, PyObject*) { return list_of_kind(c, TypeKind::Int); }, METH_STATIC | METH_NOARGS, nullptr},
      {"ofFloats", +[](PyObject* c, PyObject*) { return list_of_kind(c, TypeKind::Float); }, METH_STATIC | METH_NOARGS, nullptr},
      {"ofBools", +[](PyObject* c, PyObject*) { return list_of_kind(c, TypeKind::Bool); }, METH_STATIC | METH_NOARGS, nullptr},
      {"ofTensors", +[](PyObject* c, PyObject*) { return list_of_kind(c, TypeKind::Tensor); }, METH_STATIC | METH_NOARGS, nullptr},
      {"ofStrings", +[](PyObject* c, PyObject*) { return list_of_kind(c, TypeKind::String); }, METH_STATIC | METH_NOARGS, nullptr},
      {"ofComplexDoubles", +[](PyObject* c, PyObject*) { return list_of_kind(c, TypeKind::Complex); }, METH_STATIC | METH_NOARGS, nullptr},
      {}};
  static PyMethodDef optional_methods[] = {
      {"ofTensor", +[](PyObject*, PyObject*) -> PyObject* { return wrap_type(optional_of(basic_type(TypeKind::Tensor))); },
       METH_STATIC | METH_NOARGS, nullptr},
      {}};
  static std::array<std::string, static_cast<std::size_t>(TypeKind::Enum) + 1> names;
  for (std::size_t k = 0; k < kind_types.size(); ++k) {
    const auto kind = static_cast<TypeKind>(k);
    names[k] = std::string("cresset._C.") + class_name(kind);
    PyMethodDef* own = kind == TypeKind::Tensor     ? tensor_methods
                       : kind == TypeKind::List     ? list_methods
                       : kind == TypeKind::Optional ? optional_methods
                                                    : class_methods;
    PyType_Slot kind_slots[] = {{Py_tp_base, ir_type_type}, {Py_tp_methods, own}, {0, nullptr}};
    PyType_Spec kind_spec{names[k].c_str(), sizeof(PyIrType), 0, Py_TPFLAGS_DEFAULT, kind_slots};
    kind_types[k] = reinterpret_cast<PyTypeObject*>(checked(PyType_FromSpec(&kind_spec)).release());
    checked(PyModule_AddObjectRef(module, class_name(kind), reinterpret_cast<PyObject*>(kind_types[k])));
  }
}

}  // namespace

void init_ir_types(PyObject* module) {
  static PyGetSetDef properties[] = {
      property("annotation_str", [](TypePtr t) { return t->annotation_str(); }, "The spelling of Python annotations."), {}};
  PyType_Slot slots[] = {{Py_tp_dealloc, reinterpret_cast<void*>(&type_dealloc)},
                         {Py_tp_new, reinterpret_cast<void*>(&type_new)},
                         {Py_tp_repr, reinterpret_cast<void*>(&type_repr)},
                         {Py_tp_richcompare, reinterpret_cast<void*>(&type_compare)},
                         {Py_tp_hash, reinterpret_cast<void*>(&type_hash)},
                         {Py_tp_methods, type_methods},
                         {Py_tp_getset, properties},
                         {Py_tp_doc, const_cast<char*>("A type of values in graphs.")},
                         {0, nullptr}};
  PyType_Spec spec{"cresset._C.Type", sizeof(PyIrType), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots};
  ir_type_type = reinterpret_cast<PyTypeObject*>(checked(PyType_FromSpec(&spec)).release());
  checked(PyModule_AddObjectRef(module, "Type", reinterpret_cast<PyObject*>(ir_type_type)));

  init_kinds_of_types(module);
  def(module, "_jit_parse_type", [](std::string text) { return jit::parse_type_expression(text); });
  def(module, "_jit_unify_types", [](TypePtr a, TypePtr b, std::optional<bool> default_to_union) {
    return Object(wrap_type(unify_types(a, b, default_to_union.value_or(false))));
  });
  def(module, "_jit_union", [](std::vector<TypePtr> members) { return union_of(std::move(members)); });
  def(module, "_jit_mangle", [](std::string name) { return jit::mangle_name(name, [](const std::string&) { return false; }); });
  def(module, "_jit_unmangle", [](std::string name) { return jit::unmangled_name(name); });
}

}  // namespace cresset::python
