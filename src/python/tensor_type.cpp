// Life of Tensor objects: creation, ownership, collection.
#include "python/tensor_type.h"

#include <new>

#include <cresset/core/tensor_impl.h>

#include "python/autograd.h"
#include "python/bind.h"
#include "python/dispatch_mode.h"
#include "python/tensor_new.h"

namespace cresset::python {

PyTypeObject* tensor_type = nullptr;

namespace {

// Dead objects of the exact class, for reuse; untracked, and each still counts as an instance of the type.
constexpr int kFreeListSize = 64;
PyTensor* free_list[kFreeListSize];
int free_count = 0;

PyTensor* as_tensor_object(PyObject* o) { return reinterpret_cast<PyTensor*>(o); }

bool has_state(const PyTensor* self) {
  return Py_TYPE(self) != tensor_type || self->dict || self->weakrefs || self->backward_hooks || self->post_accumulate_hooks;
}

// Does C++ hold the tensor besides this object?
bool held_elsewhere(const PyTensor* self) { return self->tensor.defined() && !self->owned_by_tensor && self->tensor.use_count() > 1; }

// The tensor takes over the object's reference; the object's own count of the tensor goes.
void give_to_tensor(PyTensor* self) {
  TensorImpl* impl = self->tensor.unsafeGetTensorImpl();
  self->owned_by_tensor = true;
  impl->set_pyobject(self, true);
  intrusive_ops::decref(impl);
}

PyTensor* allocate_exact() {
  if (CRESSET_LIKELY(free_count > 0)) {
    PyTensor* self = free_list[--free_count];
    Py_SET_REFCNT(reinterpret_cast<PyObject*>(self), 1);
    return self;
  }
  return PyObject_GC_New(PyTensor, tensor_type);
}

// Runs when the last owner in C++ of a tensor that owns its object is gone.
void release_object(void* object) {
  if (!object) return;
  auto* self = static_cast<PyTensor*>(object);
  if (!Py_IsInitialized()) {
    // At the end of the interpreter its collector still walks over the object, which stays; it must not follow the tensor.
    self->tensor.unsafeReleaseTensorImpl();
    self->owned_by_tensor = false;
    return;
  }
  GilAcquire gil;
  self->tensor.unsafeReleaseTensorImpl();
  self->owned_by_tensor = false;
  Py_DECREF(reinterpret_cast<PyObject*>(self));
}

int tensor_traverse(PyObject* o, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(o));
  PyTensor* self = as_tensor_object(o);
  // While C++ holds the tensor too, what the object refers to must survive: references that are not shown do. (An object that its tensor
  // owns is itself one whose reference is not shown, unless the tensor's only holder shows it.)
  if (held_elsewhere(self) || (self->owned_by_tensor && self->tensor.use_count() > 1)) return 0;
  Py_VISIT(self->dict);
  Py_VISIT(self->backward_hooks);
  Py_VISIT(self->post_accumulate_hooks);
  return self->tensor.defined() ? visit_autograd(self->tensor, visit, arg) : 0;
}

int tensor_clear(PyObject* o) {
  PyTensor* self = as_tensor_object(o);
  if (held_elsewhere(self) || (self->owned_by_tensor && self->tensor.use_count() > 1)) return 0;
  Py_CLEAR(self->dict);
  Py_CLEAR(self->backward_hooks);
  Py_CLEAR(self->post_accumulate_hooks);
  return 0;
}

// Called before an instance of a subclass dies (and by the collector): the moment to change owners.
void tensor_finalize(PyObject* o) {
  PyTensor* self = as_tensor_object(o);
  if (!held_elsewhere(self) || !has_state(self)) return;
  Py_INCREF(o);
  give_to_tensor(self);
}

void tensor_dealloc(PyObject* o) {
  PyTensor* self = as_tensor_object(o);
  PyTypeObject* type = Py_TYPE(o);
  if (type == tensor_type && CRESSET_UNLIKELY(has_state(self)) && held_elsewhere(self)) {
    Py_SET_REFCNT(o, 1);
    give_to_tensor(self);
    return;
  }
  if (CRESSET_UNLIKELY(PyObject_GC_IsTracked(o))) PyObject_GC_UnTrack(o);
  if (CRESSET_UNLIKELY(self->weakrefs != nullptr)) PyObject_ClearWeakRefs(o);
  Py_CLEAR(self->dict);
  Py_CLEAR(self->backward_hooks);
  Py_CLEAR(self->post_accumulate_hooks);
  if (self->owned_by_tensor) {
    self->tensor.unsafeReleaseTensorImpl();
  } else if (self->tensor.defined()) {
    TensorImpl* impl = self->tensor.unsafeGetTensorImpl();
    if (impl->pyobject() == self) impl->set_pyobject(nullptr, false);
  }
  self->tensor.~Tensor();
  if (type == tensor_type && free_count < kFreeListSize) {
    free_list[free_count++] = self;
    return;
  }
  type->tp_free(o);
  Py_DECREF(type);
}

void fill_object(PyTensor* self, Tensor&& tensor) {
  self->dict = self->weakrefs = self->backward_hooks = self->post_accumulate_hooks = nullptr;
  self->owned_by_tensor = false;
  tensor.unsafeGetTensorImpl()->set_pyobject(self, false);
  new (&self->tensor) Tensor(std::move(tensor));
}

int tensor_setattro(PyObject* o, PyObject* name, PyObject* value) {
  const int status = PyObject_GenericSetAttr(o, name, value);
  if (status == 0 && as_tensor_object(o)->dict) note_state(o);
  return status;
}

PyObject* get_dict(PyObject* o, void*) {
  PyTensor* self = as_tensor_object(o);
  if (!self->dict) {
    self->dict = PyDict_New();
    if (!self->dict) return nullptr;
    note_state(o);
  }
  return Py_NewRef(self->dict);
}

int set_dict(PyObject* o, PyObject* value, void*) {
  if (!value || !PyDict_Check(value)) {
    PyErr_SetString(PyExc_TypeError, "__dict__ must be set to a dictionary");
    return -1;
  }
  Py_INCREF(value);
  Py_XSETREF(as_tensor_object(o)->dict, value);
  note_state(o);
  return 0;
}

PyGetSetDef dict_property[] = {{"__dict__", get_dict, set_dict, nullptr, nullptr}, {}};

PyMemberDef tensor_members[] = {{"__dictoffset__", T_PYSSIZET, offsetof(PyTensor, dict), READONLY, nullptr},
                                {"__weaklistoffset__", T_PYSSIZET, offsetof(PyTensor, weakrefs), READONLY, nullptr},
                                {}};

}  // namespace

void allow_finalizer_again(PyObject* o) {
  constexpr std::size_t kHeader = 2 * sizeof(uintptr_t);
  if (!PyObject_GC_IsFinalized(o)) return;
  auto* bits = reinterpret_cast<uintptr_t*>(reinterpret_cast<char*>(o) - kHeader) + 1;
  *bits &= ~uintptr_t{1};
}

PyObject* wrap(Tensor tensor) {
  TensorImpl* impl = tensor.unsafeGetTensorImpl();
  if (CRESSET_UNLIKELY(!tensor.defined())) Py_RETURN_NONE;
  if (void* existing = impl->pyobject()) {
    auto* self = static_cast<PyTensor*>(existing);
    auto* object = reinterpret_cast<PyObject*>(self);
    if (CRESSET_UNLIKELY(self->owned_by_tensor)) {
      // The count that `tensor` holds becomes the object's, the object's reference becomes the caller's.
      tensor.unsafeReleaseTensorImpl();
      self->owned_by_tensor = false;
      impl->set_pyobject(self, false);
      allow_finalizer_again(object);
      return object;
    }
    return Py_NewRef(object);
  }
  PyTensor* self = allocate_exact();
  if (CRESSET_UNLIKELY(!self)) return nullptr;
  fill_object(self, std::move(tensor));
  return reinterpret_cast<PyObject*>(self);
}

PyObject* wrap_as(PyTypeObject* type, Tensor tensor) {
  if (type == tensor_type) return wrap(std::move(tensor));
  if (const auto* known = static_cast<PyObject*>(tensor.unsafeGetTensorImpl()->pyobject()); CRESSET_UNLIKELY(known))
    CRESSET_THROW(Error, "Creating a new Tensor subclass ", type->tp_name,
                  " but the raw Tensor object is already associated to a python object of type ", Py_TYPE(known)->tp_name);
  PyObject* o = type->tp_alloc(type, 0);
  if (!o) return nullptr;
  TensorImpl* impl = tensor.unsafeGetTensorImpl();
  if (const DispatchKeySet keys = keys_of_type(type); !keys.empty()) impl->set_key_set(impl->key_set() | keys);
  fill_object(as_tensor_object(o), std::move(tensor));
  return o;
}

namespace {

// Two objects exchange the tensors they stand for, with attributes and hooks; their classes are exchanged already. A node that
// accumulates gradients may hold a tensor, too.
void swap_tensor_impl(PyObject* a, PyObject* b) {
  CRESSET_CHECK_TYPE(is_tensor(a) && is_tensor(b), "_swap_tensor_impl: two tensors were required.");
  PyTensor *one = as_tensor_object(a), *two = as_tensor_object(b);
  if (one == two) return;
  for (const PyTensor* self : {one, two})
    CRESSET_CHECK(self->tensor.use_count() <= 2, "Expected use_count of ", self == one ? "t1" : "t2",
                  " to be 1 or 2 with an AccumulateGrad node but got ", self->tensor.use_count(),
                  " make sure you are not holding references to the tensor in other places.");
  std::swap(one->tensor, two->tensor);
  std::swap(one->dict, two->dict);
  std::swap(one->backward_hooks, two->backward_hooks);
  std::swap(one->post_accumulate_hooks, two->post_accumulate_hooks);
  for (PyTensor* self : {one, two}) {
    self->tensor.unsafeGetTensorImpl()->set_pyobject(self, false);
    if (has_state(self)) note_state(reinterpret_cast<PyObject*>(self));
  }
}

// A weak reference has given the object while its tensor owns it: from now on the object owns the tensor again.
void own_tensor(PyObject* o) {
  CRESSET_CHECK_TYPE(is_tensor(o), "_own_tensor: a tensor was required.");
  PyTensor* self = as_tensor_object(o);
  if (!self->owned_by_tensor) return;
  TensorImpl* impl = self->tensor.unsafeGetTensorImpl();
  intrusive_ops::incref(impl);
  self->owned_by_tensor = false;
  impl->set_pyobject(self, false);
  allow_finalizer_again(o);
  Py_DECREF(o);
}

}  // namespace

void note_state(PyObject* o) {
  if (!PyObject_GC_IsTracked(o)) PyObject_GC_Track(o);
}

void init_tensor_type(PyObject* module) {
  std::vector<PyType_Slot> slots = {
      {Py_tp_new, reinterpret_cast<void*>(&tensor_new)},
      {Py_tp_dealloc, reinterpret_cast<void*>(&tensor_dealloc)},
      {Py_tp_finalize, reinterpret_cast<void*>(&tensor_finalize)},
      {Py_tp_traverse, reinterpret_cast<void*>(&tensor_traverse)},
      {Py_tp_clear, reinterpret_cast<void*>(&tensor_clear)},
      {Py_tp_setattro, reinterpret_cast<void*>(&tensor_setattro)},
      {Py_tp_getset, tensor_properties},
      {Py_tp_methods, all_tensor_methods()},
      {Py_tp_members, tensor_members},
      {Py_tp_doc, const_cast<char*>("A multi-dimensional array of one element type.")},
  };
  for (const PyType_Slot* table : {tensor_number_slots, tensor_sequence_slots, tensor_buffer_slots})
    for (const PyType_Slot* s = table; s->slot; ++s) slots.push_back(*s);
  slots.push_back({0, nullptr});
  PyType_Spec spec{"cresset.Tensor", sizeof(PyTensor), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, slots.data()};
  tensor_type = reinterpret_cast<PyTypeObject*>(checked(PyType_FromSpec(&spec)).release());
  tensor_type->tp_name = "Tensor";  // messages of the interpreter name it so
  for (PyGetSetDef* d = dict_property; d->name; ++d) {
    const Ref descriptor = checked(PyDescr_NewGetSet(tensor_type, d));
    checked(PyDict_SetItemString(tensor_type->tp_dict, d->name, descriptor.get()));
  }
  checked(PyModule_AddObjectRef(module, "Tensor", reinterpret_cast<PyObject*>(tensor_type)));
  // TensorBase is where the methods live in PyTorch; here both are one class.
  checked(PyModule_AddObjectRef(module, "TensorBase", reinterpret_cast<PyObject*>(tensor_type)));
  def(module, "_swap_tensor_impl", [](PyObject* a, PyObject* b) { swap_tensor_impl(a, b); });
  def(module, "_own_tensor", [](PyObject* o) { own_tensor(o); });
  pyobject_hooks.release = &release_object;
}

}  // namespace cresset::python
