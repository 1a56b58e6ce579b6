// What guards of compiled functions ask at every call, in one call for many questions: are weights that are held as constants still what
// they were (cresset/_capture/weights), is a tensor of the kind that a graph was made for (recorder)?
#include "python/held_weights.h"

#include <cstring>

#include <cresset/autograd/autocast.h>
#include <cresset/core/grad_mode.h>

#include "batching/batched_tensor.h"
#include "core/unseen_writes.h"
#include "python/bind.h"
#include "python/dispatch_mode.h"
#include "python/graph_part.h"
#include "python/override.h"

namespace cresset::python {
namespace {

// FNV-1a over whole words in four lanes, and the bytes that are left.
uint64_t sum_of(const void* data, std::size_t size) {
  constexpr uint64_t kPrime = 0x100000001b3;
  constexpr std::size_t kLanes = 4, kWord = sizeof(uint64_t);
  uint64_t lanes[kLanes] = {0xcbf29ce484222325, 1, 2, 3};
  const auto* p = static_cast<const unsigned char*>(data);
  std::size_t i = 0;
  for (; i + kLanes * kWord <= size; i += kLanes * kWord)
    for (std::size_t k = 0; k < kLanes; ++k) {
      uint64_t word;
      std::memcpy(&word, p + i + k * kWord, kWord);
      lanes[k] = (lanes[k] ^ word) * kPrime;
      lanes[k] ^= lanes[k] >> 29;
    }
  uint64_t out = 0;
  for (const uint64_t lane : lanes) out = (out ^ lane) * kPrime;
  for (; i < size; ++i) out = (out ^ p[i]) * kPrime;
  return out;
}

// Memory that NumPy, other processes or files see is not resizable: they may write to it without a trace.
bool can_be_held(const Tensor& t) {
  return t.is_cpu() && t.layout() == kStrided && t.has_storage() && t.storage().resizable() && !t.is_inference() &&
         t.is_non_overlapping_and_dense();
}

struct Weight {
  Tensor tensor;  // its own, so that the address stays its
  Storage storage;
  void* data;
  uint32_t version, storage_version;
  uint64_t sum;
  DimVector sizes, strides;
  ScalarType dtype;
};

uint64_t content(const Tensor& t) { return sum_of(t.const_data_ptr(), t.nbytes()); }

struct Weights {
  std::vector<Weight> all;
  uint64_t unseen;

  /// given(i): the object that may be the i-th weight.
  template <class F>
  bool unchanged(F given) {
    for (std::size_t i = 0; i < all.size(); ++i) {
      const Tensor& t = unwrap(given(i));
      const Weight& w = all[i];
      if (t.unsafeGetTensorImpl() != w.tensor.unsafeGetTensorImpl() || !t.storage().is_alias_of(w.storage) || t.data_ptr() != w.data)
        return false;
      if (t._version() != w.version || w.storage.unsafeGetStorageImpl()->version() != w.storage_version || !w.storage.resizable())
        return false;
      if (t.sizes() != IntArrayRef(w.sizes) || t.strides() != IntArrayRef(w.strides) || t.scalar_type() != w.dtype) return false;
    }
    // Somebody wrote to memory that several tensors have; it may be this.
    const uint64_t now = cresset::detail::unseen_writes();
    if (now == unseen) return true;
    for (const Weight& w : all)
      if (content(w.tensor) != w.sum) return false;
    unseen = now;
    return true;
  }
};

constexpr const char *kName = "cresset.held_weights", *kFacts = "cresset.tensor_facts";

// What guards of inputs say of a tensor, in one call.
struct Facts {
  Ref type;
  ScalarType dtype;
  Device device;
  Layout layout;
  bool requires_grad;
  int64_t dim;
  std::optional<DimVector> sizes;  // where they count
};

PyObject* is_like(PyObject* self, PyObject* o) {
  CRESSET_PY_TRY
  const auto* f = static_cast<const Facts*>(PyCapsule_GetPointer(self, kFacts));
  if (!f) throw ErrorAlreadySet();
  if (reinterpret_cast<PyObject*>(Py_TYPE(o)) != f->type.get()) return Py_NewRef(Py_False);
  const Tensor& t = unwrap(o);
  const bool same = t.scalar_type() == f->dtype && t.device() == f->device && t.layout() == f->layout && t.dim() == f->dim &&
                    t.requires_grad() == f->requires_grad && (!f->sizes || t.sizes() == IntArrayRef(*f->sizes));
  return Py_NewRef(same ? Py_True : Py_False);
  CRESSET_PY_CATCH(nullptr)
}
PyMethodDef is_like_method{"is_like", &is_like, METH_O, nullptr};

Weights& weights_of(PyObject* held) {
  auto* weights = static_cast<Weights*>(PyCapsule_GetPointer(held, kName));
  if (!weights) throw ErrorAlreadySet();
  return *weights;
}

Object call_state() {
  if (active_modes != 0 || any_dispatch_mode() || is_tracing() || autocast::is_any_autocast_enabled() || !batching::levels().empty())
    return Object(Py_NewRef(Py_None));
  return Object(PyLong_FromLong(static_cast<long>(get_default_dtype()) << 2 | InferenceMode::is_enabled() << 1 | GradMode::is_enabled()));
}

}  // namespace

bool weights_unchanged(PyObject* held, PyObject* list, const std::vector<uint32_t>& places) {
  Weights& weights = weights_of(held);
  return places.size() == weights.all.size() && weights.unchanged([&](std::size_t i) { return PyList_GET_ITEM(list, places[i]); });
}

void init_held_weights(PyObject* module) {
  // What _weights_unchanged compares with; None where some memory may be written to without a trace.
  def(module, "_weights_held", [](PyObject* tensors) {
    CRESSET_CHECK_TYPE(PyList_Check(tensors), "_weights_held: a list of tensors was required.");
    auto held = std::make_unique<Weights>();
    held->unseen = cresset::detail::unseen_writes();
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(tensors); ++i) {
      const Tensor& t = unwrap(PyList_GET_ITEM(tensors, i));
      if (!can_be_held(t)) return Object(Py_NewRef(Py_None));
      held->all.push_back({t, t.storage(), t.data_ptr(), static_cast<uint32_t>(t._version()), t.storage().unsafeGetStorageImpl()->version(),
                           content(t), DimVector(t.sizes()), DimVector(t.strides()), t.scalar_type()});
    }
    return Object(PyCapsule_New(held.release(), kName, [](PyObject* c) { delete static_cast<Weights*>(PyCapsule_GetPointer(c, kName)); }));
  });
  // A function of an object: is it a tensor of this class, dtype, device, layout and number of dimensions, with gradients as this one has,
  // and of the same sizes?
  def(module, "_tensor_check", [](PyObject* o, bool sizes) {
    const Tensor& t = unwrap(o);
    auto* facts = new Facts{
        Ref::borrow(reinterpret_cast<PyObject*>(Py_TYPE(o))),      t.scalar_type(), t.device(), t.layout(), t.requires_grad(), t.dim(),
        sizes ? std::optional(DimVector(t.sizes())) : std::nullopt};
    const Ref self =
        checked(PyCapsule_New(facts, kFacts, [](PyObject* c) { delete static_cast<Facts*>(PyCapsule_GetPointer(c, kFacts)); }));
    return Object(PyCFunction_New(&is_like_method, self.get()));
  });
  def(module, "_weights_unchanged", [](PyObject* held, PyObject* tensors) {
    Weights& weights = weights_of(held);
    CRESSET_CHECK_TYPE(PyList_Check(tensors), "_weights_unchanged: a list of tensors was required.");
    return static_cast<std::size_t>(PyList_GET_SIZE(tensors)) == weights.all.size() &&
           weights.unchanged([&](std::size_t i) { return PyList_GET_ITEM(tensors, static_cast<Py_ssize_t>(i)); });
  });
  // What a capture was made under, as a number; None while somebody sees or changes operators.
  def(module, "_call_state", [] { return call_state(); });
}

}  // namespace cresset::python
