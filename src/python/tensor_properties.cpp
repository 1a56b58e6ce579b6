// Attributes of the class Tensor.
#include <cresset/ops/functions_view.h>

#include "batching/batched_tensor.h"
#include "python/autograd.h"
#include "python/dispatch_mode.h"
#include "python/graph_part.h"
#include "python/override.h"
#include "python/transforms.h"

namespace cresset::python {

namespace {

// Getter NAME: the expression sees the tensor as t.
#define CRESSET_GETTER(name, expression)             \
  PyObject* get_##name(PyObject* self, void*) {      \
    if (CRESSET_UNLIKELY(may_override(self))) {      \
      PyObject* r = override_property(self, #name);  \
      if (r || PyErr_Occurred()) return r;           \
    }                                                \
    CRESSET_PY_TRY                                   \
    [[maybe_unused]] const Tensor& t = unwrap(self); \
    return expression;                               \
    CRESSET_PY_CATCH(nullptr)                        \
  }
#define CRESSET_BOOL(name, expression) CRESSET_GETTER(name, PyBool_FromLong(expression))

// The tensor whose history t has: of a batched one inside of vmap(grad(f)) its value.
Tensor recorded_of(const Tensor& t) {
  return CRESSET_UNLIKELY(t.key_set().has(DispatchKey::FuncTorchBatched)) && derivatives_are_innermost() ? batching::physical(t) : t;
}

// Whoever asks for the node may give it hooks that refer to the tensor, so the collector must see the tensor from now on.
PyObject* node_of_tensor(PyObject* self, const Tensor& t) {
  const std::shared_ptr<autograd::Node>& node = t.grad_fn();
  if (node) note_state(self);
  return wrap_node(node);
}

CRESSET_GETTER(shape, is_tracing() ? graph_part->traced_sizes(t) : wrap_size(t.sizes()))
CRESSET_GETTER(dtype, wrap_dtype(t.scalar_type()))
CRESSET_GETTER(device, wrap_device(device_seen(t)))
CRESSET_GETTER(layout, wrap_layout(t.layout()))
CRESSET_GETTER(ndim, PyLong_FromLongLong(dim_seen(t)))
CRESSET_GETTER(itemsize, PyLong_FromLongLong(t.element_size()))
CRESSET_GETTER(nbytes, PyLong_FromSize_t(t.nbytes()))
CRESSET_GETTER(grad, wrap(t.grad()))
CRESSET_GETTER(_grad, wrap(t.grad()))
CRESSET_GETTER(grad_dtype, [&] {
  CRESSET_CHECK(t.is_leaf(), "grad_dtype can only be accessed on leaf tensors.");
  const std::optional<ScalarType> dtype = autograd::impl::grad_dtype(t);
  return dtype ? wrap_dtype(*dtype) : Py_NewRef(Py_None);
}())
CRESSET_GETTER(grad_fn, node_of_tensor(self, recorded_of(t)))
CRESSET_GETTER(_grad_fn, node_of_tensor(self, t))
CRESSET_BOOL(requires_grad, t.requires_grad() || recorded_of(t).requires_grad())
CRESSET_BOOL(is_leaf, recorded_of(t).is_leaf())
CRESSET_BOOL(retains_grad, t.retains_grad())
CRESSET_GETTER(output_nr, PyLong_FromLongLong(t.output_nr()))
CRESSET_GETTER(_version, PyLong_FromLongLong(t._version()))
CRESSET_GETTER(_base, t.is_view() ? wrap(t._base()) : Py_NewRef(Py_None))
CRESSET_GETTER(data, [&] {
  CRESSET_CHECK(!t.key_set().has(DispatchKey::FuncTorchBatched), "accessing `data` under vmap transform is not allowed");
  Tensor data = [&] {
    if (CRESSET_LIKELY(!t.key_set().has(DispatchKey::Python))) return t.variable_data();
    // A class that sees operators makes what its data are.
    const impl::ExcludeDispatchKeyGuard below(autograd_dispatch_keyset_with_ADInplaceOrView);
    Tensor made = cresset::detach(t);
    if (!made.is_inference()) made.unsafeGetTensorImpl()->new_version_counter();
    return made;
  }();
  if (is_tracing()) graph_part->same_value(t, data);
  return wrap(std::move(data));
}())
CRESSET_GETTER(T, wrap(without_lock(may_wait(t), [&] { return cresset::numpy_T(t); })))
CRESSET_GETTER(mT, wrap(without_lock(may_wait(t), [&] { return cresset::mT(t); })))
CRESSET_GETTER(H, wrap(without_lock(may_wait(t), [&] { return cresset::matrix_H(t); })))
CRESSET_GETTER(mH, wrap(without_lock(may_wait(t), [&] { return cresset::mH(t); })))
CRESSET_GETTER(real, wrap(without_lock(may_wait(t), [&] { return cresset::real(t); })))
CRESSET_GETTER(imag, wrap(without_lock(may_wait(t), [&] { return cresset::imag(t); })))
CRESSET_BOOL(is_cpu, device_seen(t).is_cpu())
CRESSET_BOOL(is_cuda, device_seen(t).is_cuda())
CRESSET_BOOL(is_meta, device_seen(t).is_meta())
CRESSET_BOOL(is_sparse, t.is_sparse())
CRESSET_BOOL(is_quantized, false)
CRESSET_BOOL(is_mkldnn, t.layout() == Layout::Mkldnn)
CRESSET_BOOL(is_nested, false)
CRESSET_BOOL(is_sparse_csr, t.layout() == Layout::SparseCsr)
CRESSET_BOOL(is_xla, device_seen(t).type() == kXLA)
CRESSET_BOOL(is_mps, false)
CRESSET_BOOL(is_xpu, false)

PyObject* get_names(PyObject*, void*) {
  PyErr_SetString(PyExc_AttributeError, "Tensor.names: named tensors are not supported. Keep the names beside the tensor.");
  return nullptr;
}
PyObject* get_cdata(PyObject* self, void*) { return PyLong_FromVoidPtr(unwrap(self).unsafeGetTensorImpl()); }

PyObject* get_backward_hooks(PyObject* self, void*) {
  PyObject* hooks = reinterpret_cast<PyTensor*>(self)->backward_hooks;
  return Py_NewRef(hooks ? hooks : Py_None);
}
PyObject* get_post_hooks(PyObject* self, void*) {
  PyObject* hooks = reinterpret_cast<PyTensor*>(self)->post_accumulate_hooks;
  return Py_NewRef(hooks ? hooks : Py_None);
}

int set_hooks(PyObject* self, PyObject*& slot, PyObject* value, const char* name) {
  if (!value) {
    PyErr_Format(PyExc_RuntimeError, "Deletion of %s not allowed!", name);
    return -1;
  }
  Py_XSETREF(slot, value == Py_None ? nullptr : Py_NewRef(value));
  note_state(self);
  return 0;
}
int set_backward_hooks(PyObject* self, PyObject* value, void*) {
  CRESSET_PY_TRY
  PyObject*& slot = reinterpret_cast<PyTensor*>(self)->backward_hooks;
  if (set_hooks(self, slot, value, "_backwards_hooks") < 0) return -1;
  const Tensor& t = unwrap(self);
  autograd::impl::clear_hooks(t);
  if (slot) {
    const Ref module = checked(PyImport_ImportModule("cresset._C"));
    checked(PyObject_CallMethod(module.get(), "_add_tensor_hooks", "OO", self, slot));
  }
  return 0;
  CRESSET_PY_CATCH(-1)
}
int set_post_hooks(PyObject* self, PyObject* value, void*) {
  return set_hooks(self, reinterpret_cast<PyTensor*>(self)->post_accumulate_hooks, value, "_post_accumulate_grad_hooks");
}

// Setters go through the protocol as Tensor.NAME.__set__.
int override_set(PyObject* self, const char* name, PyObject* value, bool& done) {
  CRESSET_PY_TRY
  done = false;
  if (!may_override(self)) return 0;
  Overriders overriders;
  overriders.scan(self);
  if (overriders.empty()) return 0;
  done = true;
  const Ref property = checked(PyObject_GetAttrString(reinterpret_cast<PyObject*>(tensor_type), name));
  const Ref setter = checked(PyObject_GetAttrString(property.get(), value ? "__set__" : "__delete__"));
  const Ref args = checked(value ? PyTuple_Pack(2, self, value) : PyTuple_Pack(1, self));
  const Ref r =
      checked(overriders.call(setter.get(), args.get(), nullptr, (std::string("torch.Tensor.") + name + ".__set__").c_str(), self));
  return 0;
  CRESSET_PY_CATCH(-1)
}

int set_requires_grad(PyObject* self, PyObject* value, void*) {
  bool done;
  if (override_set(self, "requires_grad", value, done) < 0) return -1;
  if (done) return 0;
  CRESSET_PY_TRY
  CRESSET_CHECK(value && PyBool_Check(value), "requires_grad must be a bool");
  const Tensor& t = unwrap(self);
  const bool wanted = value == Py_True;
  CRESSET_CHECK(t.is_leaf(), "you can only change requires_grad flags of leaf variables.",
                wanted ? ""
                       : " If you want to use a computed variable in a subgraph that doesn't require differentiation use var_no_grad = "
                         "var.detach().");
  CRESSET_CHECK(!wanted || t.requires_grad() || isDifferentiableType(t.scalar_type()),
                "only Tensors of floating point and complex dtype can require gradients");
  t.requires_grad_(wanted);
  return 0;
  CRESSET_PY_CATCH(-1)
}

int set_grad_dtype(PyObject* self, PyObject* value, void*) {
  bool done;
  if (override_set(self, "grad_dtype", value, done) < 0) return -1;
  if (done) return 0;
  CRESSET_PY_TRY
  const Tensor& t = unwrap(self);
  CRESSET_CHECK(t.is_leaf(), "grad_dtype can only be set on leaf tensors.");
  CRESSET_CHECK(value && (value == Py_None || is_dtype(value)), "grad_dtype must be a torch.dtype or None, but got ",
                value ? type_name(Py_TYPE(value)) : "nothing");
  std::optional<ScalarType> dtype;
  if (value != Py_None) dtype = static_cast<ScalarType>(constant_value(value));
  autograd::impl::set_grad_dtype(t, dtype);
  return 0;
  CRESSET_PY_CATCH(-1)
}

int set_grad(PyObject* self, PyObject* value, void*) {
  bool done;
  if (override_set(self, "grad", value, done) < 0) return -1;
  if (done) return 0;
  CRESSET_PY_TRY
  const Tensor& t = unwrap(self);
  if (!value || value == Py_None) {
    t.mutable_grad() = Tensor();
    return 0;
  }
  CRESSET_CHECK_TYPE(is_tensor(value), "assigned grad expected to be a Tensor or None but got grad of type ", type_name(Py_TYPE(value)));
  CRESSET_CHECK(value != self, "can't assign Variable as its own grad");
  const Tensor& grad = unwrap(value);
  CRESSET_CHECK(grad.device().type() == t.device().type(), "attempting to assign a gradient with device type '",
                DeviceTypeName(grad.device().type(), true), "' to a tensor with device type '", DeviceTypeName(t.device().type(), true),
                "'. Please ensure that the gradient and the tensor are on the same device");
  autograd::impl::check_grad_dtype(t, grad);
  CRESSET_CHECK(grad.sizes() == t.sizes(), "attempting to assign a gradient of size '", grad.sizes(), "' to a tensor of size '", t.sizes(),
                "'. Please ensure that the gradient and the tensor are the same size");
  t.mutable_grad() = grad;
  return 0;
  CRESSET_PY_CATCH(-1)
}

int set_data(PyObject* self, PyObject* value, void*) {
  bool done;
  if (override_set(self, "data", value, done) < 0) return -1;
  if (done) return 0;
  CRESSET_PY_TRY
  CRESSET_CHECK(value, "Deleting tensor data is not allowed. Delete tensor instead!");
  CRESSET_CHECK_TYPE(is_tensor(value), "Variable data has to be a tensor, but got ", type_name(Py_TYPE(value)));
  unwrap(self).set_data(unwrap(value));
  return 0;
  CRESSET_PY_CATCH(-1)
}

int set_grad_fn(PyObject* self, PyObject* value, void*) {
  CRESSET_PY_TRY
  CRESSET_CHECK(value, "Deletion of _grad_fn not allowed. Detach tensor instead!");
  CRESSET_CHECK(value == Py_None, "_grad_fn can be only set to None");
  unwrap(self).detach_();
  return 0;
  CRESSET_PY_CATCH(-1)
}

int set_real(PyObject* self, PyObject* value, void*) {
  CRESSET_PY_TRY
  CRESSET_CHECK(value, "Deleting the real part of a tensor is not allowed.");
  const Tensor& t = unwrap(self);
  Tensor part = without_lock(may_wait(t), [&] { return cresset::real(t); });
  const Ref whole = checked(wrap(std::move(part)));
  return PyObject_SetItem(whole.get(), Py_Ellipsis, value);
  CRESSET_PY_CATCH(-1)
}
int set_imag(PyObject* self, PyObject* value, void*) {
  CRESSET_PY_TRY
  CRESSET_CHECK(value, "Deleting the imaginary part of a tensor is not allowed.");
  const Tensor& t = unwrap(self);
  Tensor part = without_lock(may_wait(t), [&] { return cresset::imag(t); });
  const Ref whole = checked(wrap(std::move(part)));
  return PyObject_SetItem(whole.get(), Py_Ellipsis, value);
  CRESSET_PY_CATCH(-1)
}

}  // namespace

#define CRESSET_READ(name, doc) {#name, get_##name, nullptr, doc, nullptr}
PyGetSetDef tensor_properties[] = {
    CRESSET_READ(shape, "The sizes."),
    CRESSET_READ(dtype, "The element type."),
    CRESSET_READ(device, "Where the data is."),
    CRESSET_READ(layout, "How the data is laid out."),
    CRESSET_READ(ndim, "Number of dimensions."),
    CRESSET_READ(itemsize, "Bytes of an element."),
    CRESSET_READ(nbytes, "Bytes of all elements."),
    {"grad", get_grad, set_grad, "The accumulated gradient, or None.", nullptr},
    {"_grad", get__grad, set_grad, nullptr, nullptr},
    {"grad_dtype", get_grad_dtype, set_grad_dtype,
     "The dtype of a leaf's gradient, to which gradients are converted: the tensor's own unless set. None takes gradients of any dtype. "
     "RuntimeError for non-leaves, and when there is a gradient of another dtype.",
     nullptr},
    CRESSET_READ(grad_fn, "The node that made this tensor, or None."),
    {"_grad_fn", get__grad_fn, set_grad_fn, "The node that made the tensor; None takes it away.", nullptr},
    {"requires_grad", get_requires_grad, set_requires_grad, "Are gradients computed for this tensor?", nullptr},
    CRESSET_READ(is_leaf, "Was this tensor made by the user rather than by an operation?"),
    CRESSET_READ(retains_grad, "Does a non-leaf keep its gradient?"),
    CRESSET_READ(output_nr, "Which output of its node this tensor is."),
    CRESSET_READ(_version, "Counts changes in place."),
    CRESSET_READ(_base, "The tensor this one is a view of, or None."),
    {"data", get_data, set_data, "The same data without history.", nullptr},
    CRESSET_READ(T, "All dimensions reversed."),
    CRESSET_READ(mT, "The last two dimensions exchanged."),
    CRESSET_READ(H, "Conjugate transpose of a matrix."),
    CRESSET_READ(mH, "The last two dimensions exchanged, conjugated."),
    {"real", get_real, set_real, "The real part, a view.", nullptr},
    {"imag", get_imag, set_imag, "The imaginary part, a view.", nullptr},
    CRESSET_READ(is_cpu, nullptr),
    CRESSET_READ(is_cuda, nullptr),
    CRESSET_READ(is_meta, nullptr),
    CRESSET_READ(is_sparse, nullptr),
    CRESSET_READ(is_quantized, nullptr),
    CRESSET_READ(is_mkldnn, nullptr),
    CRESSET_READ(is_nested, nullptr),
    CRESSET_READ(is_sparse_csr, nullptr),
    CRESSET_READ(is_xla, nullptr),
    CRESSET_READ(is_mps, nullptr),
    CRESSET_READ(is_xpu, nullptr),
    CRESSET_READ(names, nullptr),
    {"_cdata", get_cdata, nullptr, nullptr, nullptr},
    {"_backward_hooks", get_backward_hooks, set_backward_hooks, nullptr, nullptr},
    {"_post_accumulate_grad_hooks", get_post_hooks, set_post_hooks, nullptr, nullptr},
    {}};

}  // namespace cresset::python
