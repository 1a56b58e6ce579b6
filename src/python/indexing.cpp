// Indexing: basic indices become views, tensors become index and index_put_.
#include <cresset/ops/functions_compare.h>
#include <cresset/ops/functions_creation.h>
#include <cresset/ops/functions_index.h>
#include <cresset/ops/functions_view.h>

#include <algorithm>

#include "python/override.h"
#include "python/tensor_new.h"

namespace cresset::python {

namespace {

bool is_sequence_index(PyObject* o) {
  return (PySequence_Check(o) || is_array(o)) && !PyUnicode_Check(o) && !PyBytes_Check(o) && !PyDict_Check(o);
}

Tensor index_tensor(PyObject* o) {
  Tensor t = tensor_from_data(o, std::nullopt, std::nullopt);
  // An empty list indexes nothing.
  return t.numel() == 0 && t.is_floating_point() ? t.to(kLong) : t;
}

// NumPy's arrays, which look like integers to PyIndex_Check.
bool is_index_array(PyObject* o) {
  if (is_tensor(o) || PyLong_Check(o) || PySlice_Check(o) || o == Py_None || o == Py_Ellipsis || PyUnicode_Check(o)) return false;
  return is_array(o) && !is_numpy_scalar(o);
}

// The elements of an index: a tuple's, those of a list that mixes kinds, or the object alone.
Ref split_index(PyObject* index) {
  if (PyTuple_CheckExact(index)) return Ref::borrow(index);
  if (PyTuple_Check(index)) return checked(PySequence_Tuple(index));
  // A short list that holds more than numbers means the tuple of its elements, an old rule of NumPy.
  if (PyList_Check(index) && PyList_GET_SIZE(index) < 32) {
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(index); ++i) {
      PyObject* e = PyList_GET_ITEM(index, i);
      if (PySlice_Check(e) || e == Py_None || e == Py_Ellipsis || is_tensor(e) || PySequence_Check(e))
        return checked(PySequence_Tuple(index));
    }
  }
  return checked(PyTuple_Pack(1, index));
}

// The same with tensors in place of arrays.
Ref index_items(PyObject* index) {
  Ref items = split_index(index);
  const Py_ssize_t n = PyTuple_GET_SIZE(items.get());
  bool any = false;
  for (Py_ssize_t i = 0; i < n; ++i) any |= is_index_array(PyTuple_GET_ITEM(items.get(), i));
  if (CRESSET_LIKELY(!any)) return items;
  const Ref out = checked(PyTuple_New(n));
  for (Py_ssize_t i = 0; i < n; ++i) {
    PyObject* o = PyTuple_GET_ITEM(items.get(), i);
    PyTuple_SET_ITEM(out.get(), i, is_index_array(o) ? checked(wrap(index_tensor(o))).release() : Py_NewRef(o));
  }
  return out;
}

bool is_mask(const Tensor& t) { return t.scalar_type() == kBool || t.scalar_type() == kByte; }

int64_t specified_dims(PyObject* items) {
  int64_t n = 0;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(items); ++i) {
    PyObject* o = PyTuple_GET_ITEM(items, i);
    if (is_tensor(o))
      n += is_mask(unwrap(o)) ? unwrap(o).dim() : 1;
    else if (o != Py_None && o != Py_Ellipsis && !PyBool_Check(o))
      ++n;
  }
  return n;
}

std::optional<int64_t> slice_bound(PyObject* o) {
  if (o == Py_None) return std::nullopt;
  Py_ssize_t v;
  if (!_PyEval_SliceIndex(o, &v)) throw ErrorAlreadySet();
  return v;
}

Tensor apply_slice(const Tensor& t, int64_t dim, PyObject* slice) {
  const auto* s = reinterpret_cast<PySliceObject*>(slice);
  const int64_t step = slice_bound(s->step).value_or(1);
  CRESSET_CHECK_VALUE(step > 0, "step must be greater than zero");
  const std::optional<int64_t> start = slice_bound(s->start), end = slice_bound(s->stop);
  if (!start && !end && step == 1) return t;
  return cresset::slice(t, dim, start, end, step);
}

Tensor apply_select(const Tensor& t, int64_t dim, int64_t i) {
  CRESSET_CHECK_INDEX(
      !(i == 0 && dim == 0 && t.dim() == 0) && t.dim() > 0,
      "invalid index of a 0-dim tensor. Use `tensor.item()` in Python or `tensor.item<T>()` in C++ to convert a 0-dim tensor to a number");
  const int64_t size = t.size(dim);
  CRESSET_CHECK_INDEX(i >= -size && i < size, "index ", i, " is out of bounds for dimension ", dim, " with size ", size);
  return cresset::select(t, dim, i);
}

struct Sliced {
  Tensor view;
  std::vector<std::optional<Tensor>> indices;  // empty: the index was basic
};

Sliced apply_items(const Tensor& self, PyObject* items) {
  const int64_t specified = specified_dims(items);
  CRESSET_CHECK_INDEX(specified <= self.dim(), self.dim() == 0 ? "invalid index of a 0-dim tensor. Use `tensor.item()` in Python or "
                                                                 "`tensor.item<T>()` in C++ to convert a 0-dim tensor to a number"
                                                               : "too many indices for tensor of dimension " + std::to_string(self.dim()));
  Sliced out{self, {}};
  Tensor& view = out.view;
  int64_t dim = 0;       // in view
  int64_t advanced = 0;  // dimensions of view that out.indices speaks of
  const auto record = [&](Tensor index, int64_t spans) {
    while (advanced < dim) {
      out.indices.emplace_back();
      ++advanced;
    }
    out.indices.emplace_back(std::move(index));
    dim += spans;
    advanced = dim;
  };
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(items); ++i) {
    PyObject* o = PyTuple_GET_ITEM(items, i);
    if (PyBool_Check(o)) {
      view = cresset::unsqueeze(view, dim);
      Tensor mask = cresset::detail::empty_cpu({1}, kBool);
      *static_cast<bool*>(mask.data_ptr()) = o == Py_True;
      record(std::move(mask), 1);
    } else if (is_tensor(o)) {
      const Tensor& t = unwrap(o);
      if (t.dim() == 0 && isIntegralType(t.scalar_type(), true)) {
        if (is_mask(t)) {
          view = cresset::unsqueeze(view, dim);
          record(cresset::unsqueeze(t, 0).to(kBool), 1);
        } else {
          view = apply_select(view, dim, to_int(checked(item_of(t)).get()));
        }
      } else {
        record(t, is_mask(t) ? t.dim() : 1);
      }
    } else if (PySlice_Check(o)) {
      view = apply_slice(view, dim, o);
      ++dim;
    } else if (o == Py_None) {
      view = cresset::unsqueeze(view, dim);
      ++dim;
    } else if (o == Py_Ellipsis) {
      dim += self.dim() - specified;
    } else if (PyIndex_Check(o)) {
      view = apply_select(view, dim, to_int(o));
    } else if (is_sequence_index(o)) {
      Tensor t = index_tensor(o);
      if (t.dim() == 0 && isIntegralType(t.scalar_type())) {
        view = apply_select(view, dim, to_int(checked(item_of(t)).get()));
      } else {
        const int64_t spans = is_mask(t) ? t.dim() : 1;
        record(std::move(t), spans);
      }
    } else {
      CRESSET_CHECK_TYPE(!PyUnicode_Check(o),
                         "new(): invalid data type 'str'. A tensor is indexed by integers, slices, None, ... and tensors.");
      CRESSET_THROW(IndexError, "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid indices (got ",
                    type_name(Py_TYPE(o)), ")");
    }
  }
  return out;
}

PyObject* override_index(PyObject* self, PyObject* index, const char* name, PyObject* value) {
  if (!may_override(self) && is_plain(index) && (!value || is_plain(value))) return nullptr;
  CRESSET_PY_TRY
  Overriders overriders;
  overriders.scan(self);
  overriders.scan(index);
  if (value) overriders.scan(value);
  if (overriders.empty()) return nullptr;
  const Ref function = checked(PyObject_GetAttrString(reinterpret_cast<PyObject*>(tensor_type), name));
  const Ref args = checked(value ? PyTuple_Pack(3, self, index, value) : PyTuple_Pack(2, self, index));
  return overriders.call(function.get(), args.get(), nullptr, (std::string("torch.Tensor.") + name).c_str());
  CRESSET_PY_CATCH(nullptr)
}

PyObject* subscript(PyObject* self, PyObject* index) {
  PyObject* overridden = override_index(self, index, "__getitem__", nullptr);
  if (overridden || PyErr_Occurred()) return overridden;
  CRESSET_PY_TRY
  const Tensor& t = unwrap(self);
  if (PyLong_Check(index) && !PyBool_Check(index)) return wrap(apply_select(t, 0, to_int(index)));
  const Ref items = index_items(index);
  Sliced s = apply_items(t, items.get());
  if (!s.indices.empty()) return wrap(cresset::index(s.view, s.indices));
  return wrap(s.view.is_same(t) ? cresset::alias(t) : std::move(s.view));
  CRESSET_PY_CATCH(nullptr)
}

// The value of an assignment: a tensor, or a number of the destination's dtype.
Tensor value_tensor(const Tensor& self, PyObject* value) {
  if (is_tensor(value)) return unwrap(value);
  if (is_number(value)) {
    Tensor t = cresset::empty({}, TensorOptions(self.scalar_type()).device(self.device()));
    t.fill_(to_scalar(value));
    return t;
  }
  CRESSET_THROW(TypeError, "can't assign a ", type_name(Py_TYPE(value)), " to a torch.", cresset::toString(self.scalar_type()), "Tensor");
}

// Leading dimensions of size 1 that the destination does not have are dropped.
Tensor drop_leading_ones(const Tensor& value, int64_t dim) {
  int64_t extra = 0;
  while (value.dim() - extra > dim && value.size(extra) == 1) ++extra;
  if (extra == 0) return value;
  return value.view(value.sizes().slice(static_cast<std::size_t>(extra)));
}

void copy_into(Tensor destination, const Tensor& self, PyObject* value) {
  if (is_number(value)) {
    destination.fill_(to_scalar(value));
    return;
  }
  const Tensor source = drop_leading_ones(value_tensor(self, value), destination.dim());
  destination.copy_(source.sizes() == destination.sizes() ? source : source.expand(destination.sizes()));
}

int assign_subscript(PyObject* self, PyObject* index, PyObject* value) {
  if (!value) {
    PyErr_SetString(PyExc_TypeError, "Tensor does not support deleting items");
    return -1;
  }
  const Ref overridden = Ref::steal(override_index(self, index, "__setitem__", value));
  if (overridden) return 0;
  if (PyErr_Occurred()) return -1;
  CRESSET_PY_TRY
  const Tensor& t = unwrap(self);
  if (index == Py_False) return 0;
  const Ref items = index_items(index);
  Sliced s = apply_items(t, items.get());
  if (s.indices.empty()) {
    copy_into(std::move(s.view), t, value);
    return 0;
  }
  Tensor source = value_tensor(t, value);
  int64_t dims = 0;
  if (source.dim() > 0) {
    // The result's dimensions: what is not indexed, plus the broadcast indices.
    int64_t indexed = 0, broadcast = 0;
    for (const std::optional<Tensor>& i : s.indices) {
      if (!i) continue;
      indexed += is_mask(*i) ? i->dim() : 1;
      broadcast = std::max<int64_t>(broadcast, is_mask(*i) ? 1 : i->dim());
    }
    dims = s.view.dim() - indexed + broadcast;
    source = drop_leading_ones(source, dims);
  }
  s.view.index_put_(s.indices, source);
  return 0;
  CRESSET_PY_CATCH(-1)
}

Py_ssize_t length(PyObject* self) {
  if (CRESSET_UNLIKELY(may_override(self))) {
    const Ref r = Ref::steal(override_method(self, "__len__"));
    if (r) return PyNumber_AsSsize_t(r.get(), PyExc_OverflowError);
    if (PyErr_Occurred()) return -1;
  }
  CRESSET_PY_TRY
  const Tensor& t = unwrap(self);
  CRESSET_CHECK_TYPE(t.dim() > 0, "len() of a 0-d tensor");
  return t.size(0);
  CRESSET_PY_CATCH(-1)
}

PyObject* iterate(PyObject* self) {
  CRESSET_PY_TRY
  const Tensor& t = unwrap(self);
  CRESSET_CHECK_TYPE(t.dim() > 0, "iteration over a 0-d tensor");
  // Who overrides sees the function behind it, whose results keep the class.
  if (CRESSET_UNLIKELY(may_override(self))) return PyObject_GetIter(checked(PyObject_CallMethod(self, "unbind", "i", 0)).get());
  std::vector<Tensor> parts = cresset::unbind(t, 0);
  const Ref list = checked(PyTuple_New(static_cast<Py_ssize_t>(parts.size())));
  for (std::size_t i = 0; i < parts.size(); ++i)
    PyTuple_SET_ITEM(list.get(), static_cast<Py_ssize_t>(i), checked(wrap(std::move(parts[i]))).release());
  return PyObject_GetIter(list.get());
  CRESSET_PY_CATCH(nullptr)
}

int contains(PyObject* self, PyObject* element) {
  if (CRESSET_UNLIKELY(may_override(self) || !is_plain(element))) {
    const Ref args = Ref::steal(PyTuple_Pack(1, element));
    if (!args) return -1;
    const Ref r = Ref::steal(override_method(self, "__contains__", args.get()));
    if (r) return PyObject_IsTrue(r.get());
    if (PyErr_Occurred()) return -1;
  }
  CRESSET_PY_TRY
  CRESSET_CHECK(is_tensor(element) || is_number(element), "Tensor.__contains__ only supports Tensor or scalar, but you passed in a ",
                to_text(checked(PyObject_Repr(reinterpret_cast<PyObject*>(Py_TYPE(element)))).get()), ".");
  const Tensor e = is_tensor(element) ? unwrap(element) : wrapped_number(to_scalar(element));
  return cresset::nonzero(cresset::eq(unwrap(self), e)).size(0) > 0;
  CRESSET_PY_CATCH(-1)
}

}  // namespace

PyType_Slot tensor_sequence_slots[] = {
    {Py_mp_subscript, reinterpret_cast<void*>(&subscript)}, {Py_mp_ass_subscript, reinterpret_cast<void*>(&assign_subscript)},
    {Py_mp_length, reinterpret_cast<void*>(&length)},       {Py_sq_contains, reinterpret_cast<void*>(&contains)},
    {Py_tp_iter, reinterpret_cast<void*>(&iterate)},        {0, nullptr}};

}  // namespace cresset::python
