// What nodes keep for backward, as Python sees it: _saved_NAME, _raw_saved_NAME, and pack and unpack hooks written in Python.
#include <cresset/autograd/saved_values.h>

#include <cstring>
#include <string_view>

#include "python/autograd.h"
#include "python/bind.h"

namespace cresset::python {

namespace {

using autograd::Node;
using autograd::SavedValueVisitor;
using autograd::SavedVariable;

PyTypeObject* saved_tensor_type = nullptr;

// Hooks of saved tensors that are written in Python: pack gives any object, unpack the tensor again.
struct PythonSavedHooks final : autograd::SavedVariableHooks {
  PythonSavedHooks(std::shared_ptr<PyObject> pack, std::shared_ptr<PyObject> unpack) : pack_(std::move(pack)), unpack_(std::move(unpack)) {}
  void call_pack_hook(const Tensor& tensor) override {
    GilAcquire gil;
    const Ref t = Ref::steal(wrap(tensor));
    const Ref packed = t ? Ref::steal(PyObject_CallOneArg(pack_.get(), t.get())) : Ref();
    if (!packed) throw_python_error();
    packed_ = share(packed.get());
  }
  Tensor call_unpack_hook() override {
    GilAcquire gil;
    const Ref t = Ref::steal(PyObject_CallOneArg(unpack_.get(), packed_.get()));
    if (!t) throw_python_error();
    CRESSET_CHECK_TYPE(is_tensor(t.get()), "Output of saved tensor unpack_hook expected to be a Tensor but got result of type ",
                       type_name(Py_TYPE(t.get())));
    return unwrap(t.get());
  }

 private:
  std::shared_ptr<PyObject> pack_, unpack_, packed_;
};

// One saved tensor of a node, by name and place: the node may drop it at any time.
struct PySavedTensor {
  PyObject_HEAD std::shared_ptr<Node> node;
  std::string name;
  std::size_t index;  // in a list of tensors
};
PySavedTensor* saved_tensor_of(PyObject* o) { return reinterpret_cast<PySavedTensor*>(o); }

PyObject* new_saved_tensor(std::shared_ptr<Node> node, std::string_view name, std::size_t index) {
  PyObject* o = checked(saved_tensor_type->tp_alloc(saved_tensor_type, 0)).release();
  new (&saved_tensor_of(o)->node) std::shared_ptr<Node>(std::move(node));
  new (&saved_tensor_of(o)->name) std::string(name);
  saved_tensor_of(o)->index = index;
  return o;
}

void saved_tensor_dealloc(PyObject* o) {
  PySavedTensor* self = saved_tensor_of(o);
  std::shared_ptr<Node> node = std::move(self->node);
  self->node.~shared_ptr();
  self->name.~basic_string();
  PyTypeObject* type = Py_TYPE(o);
  type->tp_free(o);
  Py_DECREF(type);
  autograd::detail::release_node(std::move(node));
}

// Hooks and other threads may want the interpreter while a node's lock is held: it is given away first.
Tensor unpack(Node& node, const SavedVariable& saved) {
  const GilRelease release;
  return saved.unpack(node.shared_from_this());
}

// Gives the value of one name as a Python object.
struct Reader final : SavedValueVisitor {
  Reader(Node& node, std::string_view name, bool raw) : node(node), wanted(name), raw(raw) {}
  void tensor(const char* name, SavedVariable& saved) override {
    if (name != wanted) return;
    result = checked(raw ? new_saved_tensor(node.shared_from_this(), name, 0) : wrap(unpack(node, saved)));
  }
  void tensors(const char* name, std::vector<SavedVariable>& saved, bool released) override {
    if (name != wanted) return;
    if (released) autograd::raise_backward_twice();
    result = checked(PyTuple_New(static_cast<Py_ssize_t>(saved.size())));
    for (std::size_t i = 0; i < saved.size(); ++i)
      PyTuple_SET_ITEM(result.get(), static_cast<Py_ssize_t>(i),
                       checked(raw ? new_saved_tensor(node.shared_from_this(), name, i) : wrap(unpack(node, saved[i]))).release());
  }
  void value(const char* name, IValue value) override {
    if (name == wanted && !raw) result = checked(to_python(std::move(value), true));
  }

  Node& node;
  std::string_view wanted;
  bool raw;
  Ref result;
};

// Puts hooks on one saved tensor.
struct Registrar final : SavedValueVisitor {
  Registrar(const PySavedTensor& target, std::unique_ptr<autograd::SavedVariableHooks> hooks) : target(target), hooks(std::move(hooks)) {}
  void tensor(const char* name, SavedVariable& saved) override {
    if (name == target.name) saved.register_hooks(std::move(hooks));
  }
  void tensors(const char* name, std::vector<SavedVariable>& saved, bool) override {
    if (name == target.name && target.index < saved.size()) saved[target.index].register_hooks(std::move(hooks));
  }
  void value(const char*, IValue) override {}

  const PySavedTensor& target;
  std::unique_ptr<autograd::SavedVariableHooks> hooks;
};

PyObject* register_hooks(PyObject* o, PyObject* args) {
  CRESSET_PY_TRY
  PyObject *pack = nullptr, *unpack_hook = nullptr;
  const auto callable = [&](Py_ssize_t i) { return PyCallable_Check(PyTuple_GET_ITEM(args, i)) != 0; };
  if (PyTuple_GET_SIZE(args) != 2 || !callable(0) || !callable(1)) {
    const auto shown = [](PyObject* x) { return to_text(checked(PyObject_Repr(x)).get()); };
    std::string given = shown(o);
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); ++i) given += ", " + shown(PyTuple_GET_ITEM(args, i));
    CRESSET_THROW(TypeError,
                  "register_hooks(): incompatible function arguments. The following argument types are supported:\n"
                  "    1. (self: torch._C._autograd.SavedTensor, arg0: collections.abc.Callable, arg1: collections.abc.Callable) -> None\n"
                  "\nInvoked with: ",
                  given);
  }
  pack = PyTuple_GET_ITEM(args, 0), unpack_hook = PyTuple_GET_ITEM(args, 1);
  Registrar registrar(*saved_tensor_of(o), std::make_unique<PythonSavedHooks>(share(pack), share(unpack_hook)));
  saved_tensor_of(o)->node->visit_saved(registrar);
  CRESSET_CHECK(!registrar.hooks, autograd::kBackwardTwice);
  Py_RETURN_NONE;
  CRESSET_PY_CATCH(nullptr)
}

// The value of one saved tensor, as the node will see it.
struct Unpacker final : SavedValueVisitor {
  explicit Unpacker(const PySavedTensor& target) : target(target) {}
  void tensor(const char* name, SavedVariable& saved) override {
    if (name == target.name) value_ = saved.unpack(target.node);
  }
  void tensors(const char* name, std::vector<SavedVariable>& saved, bool) override {
    if (name == target.name && target.index < saved.size()) value_ = saved[target.index].unpack(target.node);
  }
  void value(const char*, IValue) override {}

  const PySavedTensor& target;
  Tensor value_;
};

PyObject* saved_data(PyObject* o, void*) {
  CRESSET_PY_TRY
  Unpacker unpacker(*saved_tensor_of(o));
  saved_tensor_of(o)->node->visit_saved(unpacker);
  return wrap(std::move(unpacker.value_));
  CRESSET_PY_CATCH(nullptr)
}

// The names of all attributes of one node.
struct Names final : SavedValueVisitor {
  void add(const char* prefix, const char* name) {
    const Ref text = checked(PyUnicode_FromFormat("%s%s", prefix, name));
    checked(PyList_Append(list.get(), text.get()));
  }
  void tensor(const char* name, SavedVariable&) override {
    add("_saved_", name);
    add("_raw_saved_", name);
  }
  void tensors(const char* name, std::vector<SavedVariable>&, bool) override {
    add("_saved_", name);
    add("_raw_saved_", name);
  }
  void value(const char* name, IValue) override { add("_saved_", name); }

  Ref list = checked(PyList_New(0));
};

constexpr std::string_view kSaved = "_saved_", kRawSaved = "_raw_saved_";

}  // namespace

PyObject* saved_attribute(Node& node, PyObject* name) {
  CRESSET_PY_TRY
  std::string_view text = PyUnicode_AsUTF8(name);
  const bool raw = text.starts_with(kRawSaved);
  Reader reader(node, text.substr(raw ? kRawSaved.size() : kSaved.size()), raw);
  node.visit_saved(reader);
  return reader.result.release();
  CRESSET_PY_CATCH(nullptr)
}

bool is_saved_attribute(PyObject* name) {
  const char* utf8 = PyUnicode_Check(name) ? PyUnicode_AsUTF8(name) : nullptr;
  if (!utf8) {
    PyErr_Clear();
    return false;
  }
  const std::string_view text = utf8;
  return text.starts_with(kSaved) || text.starts_with(kRawSaved);
}

PyObject* saved_attribute_names(Node& node) {
  CRESSET_PY_TRY
  Names names;
  node.visit_saved(names);
  return names.list.release();
  CRESSET_PY_CATCH(nullptr)
}

void init_saved_values(PyObject* module) {
  static PyMethodDef methods[] = {{"register_hooks", register_hooks, METH_VARARGS,
                                   "register_hooks(pack_hook, unpack_hook)\n\nKeeps pack_hook(tensor) in place of the tensor; "
                                   "unpack_hook gives a tensor back from that. Once only."},
                                  {}};
  static PyGetSetDef attributes[] = {{"data", saved_data, nullptr, "The tensor, unpacked.", nullptr}, {}};
  PyType_Slot slots[] = {{Py_tp_dealloc, reinterpret_cast<void*>(&saved_tensor_dealloc)},
                         {Py_tp_methods, methods},
                         {Py_tp_getset, attributes},
                         {Py_tp_doc, const_cast<char*>("A tensor that a node keeps for backward, not unpacked.")},
                         {0, nullptr}};
  PyType_Spec spec{"cresset._C._autograd.SavedTensor", sizeof(PySavedTensor), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                   slots};
  saved_tensor_type = reinterpret_cast<PyTypeObject*>(checked(PyType_FromSpec(&spec)).release());
  checked(PyModule_AddObjectRef(module, "SavedTensor", reinterpret_cast<PyObject*>(saved_tensor_type)));
  def(module, "_push_saved_tensors_default_hooks", [](PyObject* pack, PyObject* unpack) {
    autograd::SavedTensorDefaultHooks::push_hooks(
        [pack = share(pack), unpack = share(unpack)] { return std::make_unique<PythonSavedHooks>(pack, unpack); });
  });
  def(module, "_pop_saved_tensors_default_hooks", [] { autograd::SavedTensorDefaultHooks::pop_hooks(); });
  def(module, "_disable_saved_tensors_hooks",
      [](std::optional<std::string> message) { return autograd::SavedTensorDefaultHooks::set_disabled_message(std::move(message)); });
}

}  // namespace cresset::python
