// Subscripts: Python's indices as those of <cresset/ops/tensor_index.h>; length, iteration, membership.
#include <cresset/ops/functions_compare.h>
#include <cresset/ops/functions_index.h>
#include <cresset/ops/functions_reduce.h>
#include <cresset/ops/functions_view.h>
#include <cresset/ops/tensor_index.h>

#include <algorithm>
#include <vector>

#include "ops/shared/promotion.h"
#include "python/graph_part.h"
#include "python/override.h"
#include "python/tensor_new.h"

namespace cresset::python {

namespace {

bool is_sequence_index(PyObject* o) {
  return (PySequence_Check(o) || is_array(o)) && !PyUnicode_Check(o) && !PyBytes_Check(o) && !PyDict_Check(o);
}

Tensor index_tensor(PyObject* o) {
  Tensor t = tensor_from_data(o, std::nullopt, std::nullopt);
  // An empty list indexes nothing; numbers of a list are taken for integers.
  const bool is_list = PyList_Check(o) || PyTuple_Check(o);
  return t.is_floating_point() && (is_list || t.numel() == 0) ? t.to(kLong) : t;
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

std::optional<int64_t> slice_bound(PyObject* o) {
  if (o == Py_None) return std::nullopt;
  if (CRESSET_UNLIKELY(is_tensor(o) && is_tracing())) return to_int(checked(item_of(unwrap(o))).get());
  Py_ssize_t v;
  if (!_PyEval_SliceIndex(o, &v)) throw ErrorAlreadySet();
  return v;
}

indexing::TensorIndex index_of(PyObject* o) {
  if (PyBool_Check(o)) return o == Py_True;
  if (is_tensor(o)) {
    const Tensor& t = unwrap(o);
    if (CRESSET_UNLIKELY(is_tracing()) && t.dim() == 0 && (t.scalar_type() == kLong || t.scalar_type() == kInt)) {
      graph_part->note_subscript(false, {o});
      return to_int(checked(item_of(t)).get());
    }
    return t;
  }
  if (PySlice_Check(o)) {
    const auto* s = reinterpret_cast<PySliceObject*>(o);
    if (CRESSET_UNLIKELY(is_tracing())) graph_part->note_subscript(true, {s->start, s->stop, s->step});
    const std::optional<int64_t> step = slice_bound(s->step);
    return indexing::Slice(slice_bound(s->start), slice_bound(s->stop), step);
  }
  if (o == Py_None) return indexing::None;
  if (o == Py_Ellipsis) return indexing::Ellipsis;
  if (PyIndex_Check(o)) {
    if (CRESSET_UNLIKELY(is_tracing())) graph_part->note_subscript(false, {o});
    return to_int(o);
  }
  if (is_sequence_index(o)) return index_tensor(o);
  CRESSET_CHECK_TYPE(!PyUnicode_Check(o),
                     "new(): invalid data type 'str'. A tensor is indexed by integers, slices, None, ... and tensors.");
  CRESSET_THROW(IndexError, "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid indices (got ",
                type_name(Py_TYPE(o)), ")");
}

std::vector<indexing::TensorIndex> indices_of(PyObject* index) {
  const Ref items = index_items(index);
  if (CRESSET_UNLIKELY(is_tracing())) graph_part->forget_traced_arguments();
  std::vector<indexing::TensorIndex> indices;
  indices.reserve(static_cast<std::size_t>(PyTuple_GET_SIZE(items.get())));
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(items.get()); ++i) indices.push_back(index_of(PyTuple_GET_ITEM(items.get(), i)));
  return indices;
}

bool any_index_waits(const std::vector<indexing::TensorIndex>& indices) {
  return std::any_of(indices.begin(), indices.end(), [](const indexing::TensorIndex& i) { return i.is_tensor() && may_wait(i.tensor()); });
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
  if (PyLong_Check(index) && !PyBool_Check(index)) {
    const int64_t i = to_int(index);
    if (CRESSET_UNLIKELY(is_tracing())) graph_part->forget_traced_arguments();
    if (t.dim() > 0 && i >= -t.size(0) && i < t.size(0)) return wrap(without_lock(may_wait(t), [&] { return cresset::select(t, 0, i); }));
  }
  const std::vector<indexing::TensorIndex> indices = indices_of(index);
  return wrap(without_lock(may_wait(t) || any_index_waits(indices), [&] { return indexing::get_item(t, indices); }));
  CRESSET_PY_CATCH(nullptr)
}

// While a trace records: what runs now is an assignment.
class TracedAssignment {
 public:
  TracedAssignment() : on_(is_tracing()) {
    if (CRESSET_UNLIKELY(on_)) graph_part->note_assignment(true);
  }
  ~TracedAssignment() {
    if (CRESSET_UNLIKELY(on_)) graph_part->note_assignment(false);
  }
  TracedAssignment(const TracedAssignment&) = delete;

 private:
  bool on_;
};

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
  const std::vector<indexing::TensorIndex> indices = indices_of(index);
  const TracedAssignment assignment;
  if (is_tensor(value)) {
    const Tensor& source = unwrap(value);
    without_lock(may_wait(t) || may_wait(source) || any_index_waits(indices), [&] { indexing::set_item(t, indices, source); });
  } else {
    CRESSET_CHECK_TYPE(is_number(value), "can't assign a ", type_name(Py_TYPE(value)), " to a torch.", cresset::toString(t.scalar_type()),
                       "Tensor");
    int overflow = 0;
    if (PyLong_Check(value)) PyLong_AsLongLongAndOverflow(value, &overflow);
    CRESSET_CHECK_VALUE(overflow == 0, "Overflow when unpacking long long");
    const Scalar number = to_scalar(value);
    without_lock(may_wait(t) || any_index_waits(indices), [&] { indexing::set_item(t, indices, number); });
  }
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
  if (CRESSET_UNLIKELY(is_tracing()))
    graph_part->warn_tracer(
        "Using len to get tensor shape might cause the trace to be incorrect. Recommended usage would be tensor.shape[0]. Passing a tensor "
        "of different shape might lead to errors or silently give incorrect results.");
  return t.size(0);
  CRESSET_PY_CATCH(-1)
}

PyObject* iterate(PyObject* self) {
  CRESSET_PY_TRY
  const Tensor& t = unwrap(self);
  CRESSET_CHECK_TYPE(t.dim() > 0, "iteration over a 0-d tensor");
  // Who overrides sees the function behind it, whose results keep the class.
  if (CRESSET_UNLIKELY(may_override(self))) return PyObject_GetIter(checked(PyObject_CallMethod(self, "unbind", "i", 0)).get());
  if (CRESSET_UNLIKELY(is_tracing()))
    graph_part->warn_tracer(
        "Iterating over a tensor might cause the trace to be incorrect. Passing a tensor of different shape won't change the number of "
        "iterations executed (and might lead to errors or silently give incorrect results).");
  std::vector<Tensor> parts = without_lock(may_wait(t), [&] { return cresset::unbind(t, 0); });
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
  const Tensor& t = unwrap(self);
  const bool tensor = is_tensor(element);
  const Scalar number = tensor ? Scalar(0) : to_scalar(element);
  return without_lock(may_wait(t) || (tensor && may_wait(unwrap(element))),
                      [&] { return cresset::any(tensor ? cresset::eq(t, unwrap(element)) : cresset::eq(t, number)).item().toBool(); });
  CRESSET_PY_CATCH(-1)
}

}  // namespace

PyType_Slot tensor_sequence_slots[] = {
    {Py_mp_subscript, reinterpret_cast<void*>(&subscript)}, {Py_mp_ass_subscript, reinterpret_cast<void*>(&assign_subscript)},
    {Py_mp_length, reinterpret_cast<void*>(&length)},       {Py_sq_contains, reinterpret_cast<void*>(&contains)},
    {Py_tp_iter, reinterpret_cast<void*>(&iterate)},        {0, nullptr}};

}  // namespace cresset::python
