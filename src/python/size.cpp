// Size: the tuple of ints that shape and size() give.
#include "python/convert.h"
#include "python/graph_part.h"
#include "python/printed_name.h"
#include "python/types.h"

namespace cresset::python {

PyTypeObject* size_type = nullptr;

namespace {

// A Size with the elements of any sequence of ints; steals the reference.
PyObject* as_size(PyObject* tuple) {
  if (!tuple || !PyTuple_Check(tuple)) return tuple;
  const Ref holder = Ref::steal(tuple);
  const Py_ssize_t n = PyTuple_GET_SIZE(tuple);
  PyObject* out = size_type->tp_alloc(size_type, n);
  if (!out) return nullptr;
  for (Py_ssize_t i = 0; i < n; ++i) PyTuple_SET_ITEM(out, i, Py_NewRef(PyTuple_GET_ITEM(tuple, i)));
  return out;
}

// While a trace records, sizes are tensors without dimensions, and stay that in new sizes.
bool is_traced_size(PyObject* o) { return is_tensor(o) && is_tracing() && is_int(o); }

PyObject* size_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  const Ref self = Ref::steal(PyTuple_Type.tp_new(type, args, kwargs));
  if (!self) return nullptr;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(self.get()); ++i) {
    PyObject* item = PyTuple_GET_ITEM(self.get(), i);
    if (PyLong_CheckExact(item) || is_traced_size(item)) continue;
    PyObject* number = PyBool_Check(item) ? PyLong_FromLong(item == Py_True) : PyNumber_Index(item);
    if (!number) {
      PyErr_Format(PyExc_TypeError, "torch.Size() takes an iterable of 'int' (item %zd is '%s')", i, Py_TYPE(item)->tp_name);
      return nullptr;
    }
    PyTuple_SET_ITEM(self.get(), i, number);
    Py_DECREF(item);
  }
  return Py_NewRef(self.get());
}

PyObject* size_repr(PyObject* self) {
  std::string text = printed_name + ".Size([";
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(self); ++i) {
    if (i) text += ", ";
    // While a trace records, sizes are tensors.
    PyObject* size = PyTuple_GET_ITEM(self, i);
    const Ref item = Ref::steal(PyObject_Repr(is_tensor(size) ? checked(item_of(unwrap(size))).get() : size));
    if (!item) return nullptr;
    text += PyUnicode_AsUTF8(item.get());
  }
  text += "])";
  return PyUnicode_FromString(text.c_str());
}

// Also of a tuple and a size: what is joined to sizes is sizes.
PyObject* size_add(PyObject* a, PyObject* b) {
  if (!PyTuple_Check(a)) Py_RETURN_NOTIMPLEMENTED;
  if (!PyTuple_Check(b)) {
    PyErr_Format(PyExc_TypeError, "can only concatenate tuple (not %s) to torch.Size", Py_TYPE(b)->tp_name);
    return nullptr;
  }
  const Ref joined = Ref::steal(PyTuple_Type.tp_as_sequence->sq_concat(a, b));
  const Ref args = joined ? Ref::steal(PyTuple_Pack(1, joined.get())) : Ref();
  return args ? size_new(size_type, args.get(), nullptr) : nullptr;
}
PyObject* size_repeat(PyObject* a, Py_ssize_t n) { return as_size(PyTuple_Type.tp_as_sequence->sq_repeat(a, n)); }
PyObject* size_subscript(PyObject* a, PyObject* index) {
  PyObject* r = PyTuple_Type.tp_as_mapping->mp_subscript(a, index);
  return PySlice_Check(index) ? as_size(r) : r;
}

PyObject* size_numel(PyObject* self, PyObject*) {
  int64_t n = 1;
  if (PyTuple_GET_SIZE(self) > 0 && is_tensor(PyTuple_GET_ITEM(self, 0))) {  // sizes of a trace: so is their product
    Ref product = Ref::borrow(PyTuple_GET_ITEM(self, 0));
    for (Py_ssize_t i = 1; product && i < PyTuple_GET_SIZE(self); ++i)
      product = Ref::steal(PyNumber_Multiply(product.get(), PyTuple_GET_ITEM(self, i)));
    return product.release();
  }
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(self); ++i) {
    const int64_t v = PyLong_AsLongLong(PyTuple_GET_ITEM(self, i));
    if (v == -1 && PyErr_Occurred()) return nullptr;
    n *= v;
  }
  return PyLong_FromLongLong(n);
}

PyObject* size_reduce(PyObject* self, PyObject*) {
  const Ref tuple = Ref::steal(PySequence_Tuple(self));
  const Ref plain = Ref::steal(PySequence_List(self));
  return tuple && plain ? Py_BuildValue("(O(O))", Py_TYPE(self), plain.get()) : nullptr;
}

PyMethodDef size_methods[] = {{"numel", size_numel, METH_NOARGS, "Number of elements of a tensor of this size."},
                              {"__reduce__", size_reduce, METH_NOARGS, nullptr},
                              {}};

}  // namespace

PyObject* wrap_size(IntArrayRef sizes) {
  PyObject* out = size_type->tp_alloc(size_type, static_cast<Py_ssize_t>(sizes.size()));
  if (!out) return nullptr;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    PyObject* v = PyLong_FromLongLong(sizes[i]);
    if (!v) {
      Py_DECREF(out);
      return nullptr;
    }
    PyTuple_SET_ITEM(out, static_cast<Py_ssize_t>(i), v);
  }
  return out;
}

void init_size(PyObject* module) {
  PyType_Slot slots[] = {{Py_tp_new, reinterpret_cast<void*>(&size_new)},
                         {Py_tp_repr, reinterpret_cast<void*>(&size_repr)},
                         {Py_nb_add, reinterpret_cast<void*>(&size_add)},
                         {Py_sq_concat, reinterpret_cast<void*>(&size_add)},
                         {Py_sq_repeat, reinterpret_cast<void*>(&size_repeat)},
                         {Py_mp_subscript, reinterpret_cast<void*>(&size_subscript)},
                         {Py_tp_methods, size_methods},
                         {Py_tp_doc, const_cast<char*>("Sizes of a tensor, a tuple of ints.")},
                         {0, nullptr}};
  PyType_Spec spec{"cresset.Size", 0, 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots};
  const Ref bases = checked(PyTuple_Pack(1, &PyTuple_Type));
  size_type = reinterpret_cast<PyTypeObject*>(checked(PyType_FromSpecWithBases(&spec, bases.get())).release());
  checked(PyModule_AddObjectRef(module, "Size", reinterpret_cast<PyObject*>(size_type)));
}

}  // namespace cresset::python
