// Private functions behind cresset.UntypedStorage: the memory of a tensor, seen through any tensor that shares it.
#include <cresset/core/accelerator_hooks.h>
#include <cresset/ops/functions_creation.h>

#include <algorithm>

#include "core/kept_object.h"
#include "core/shared_memory.h"
#include "python/bind.h"
#include "python/dispatch_mode.h"
#include "python/tensor_new.h"

namespace cresset::python {

namespace {

Storage storage_of(const Tensor& t) {
  if (t.has_storage()) return t.storage();
  const auto bytes = wrapper_storage(t);
  CRESSET_CHECK(bytes, "Cannot access data pointer of Tensor that doesn't have storage");
  return *bytes;
}
bool is_nowhere(const Storage& s, Device device) { return !s.data() && s.nbytes() > 0 && !device.is_meta(); }

// The storage for something that looks at its memory; a wrapper's has a size only.
Storage real_storage_of(const Tensor& t, const char* what) {
  Storage s = storage_of(t);
  CRESSET_CHECK(!is_nowhere(s, t.device()), "Attempted to ", what, " on an invalid python storage.");
  return s;
}

Tensor bytes_of(const Storage& storage) {
  const auto nbytes = static_cast<int64_t>(storage.nbytes());
  const DispatchKeySet keys = cresset::empty({0}, kByte).key_set();
  return Tensor(make_intrusive<TensorImpl>(storage, keys, kByte, DimVector{nbytes}, DimVector{1}, 0));
}

// Weak references to storages: capsules.
using WeakStorage = weak_intrusive_ptr<StorageImpl>;
constexpr const char* kWeakName = "cresset.weak_storage";
void init_weak_storage(PyObject* module) {
  def(module, "_storage_weak", [](const Tensor& t) {
    auto* weak = new WeakStorage(intrusive_ptr<StorageImpl>::reclaim_copy(storage_of(t).unsafeGetStorageImpl()));
    return Object(
        PyCapsule_New(weak, kWeakName, [](PyObject* c) { delete static_cast<WeakStorage*>(PyCapsule_GetPointer(c, kWeakName)); }));
  });
  def(module, "_storage_expired", [](PyObject* o) {
    const auto* weak = static_cast<WeakStorage*>(PyCapsule_GetPointer(o, kWeakName));
    if (!weak) throw ErrorAlreadySet();
    return weak->expired();
  });
}

// Objects that storages keep: a storage's object in Python has attributes, a class or weak references that must outlive its last reference
// there while C++ holds the memory. Such an object has no tensor over the memory meanwhile, which would keep the memory in turn.
void release_kept(void* object) {
  if (!Py_IsInitialized()) return;
  const GilAcquire gil;
  auto* o = static_cast<PyObject*>(object);
  allow_finalizer_again(o);
  Py_DECREF(o);
}
void init_kept_objects(PyObject* module) {
  def(
      module, "_storage_keep",
      [](const Tensor& t, PyObject* o) { cresset::detail::keep_with_storage(storage_of(t), Py_NewRef(o), &release_kept); },
      "Gives an object to the storage of a tensor.");
  def(
      module, "_storage_take",
      [](const Tensor& t) {
        auto* o = static_cast<PyObject*>(cresset::detail::take_kept(*storage_of(t).unsafeGetStorageImpl()));
        if (!o) return;
        allow_finalizer_again(o);
        Py_DECREF(o);
      },
      "The storage lets go of the object it keeps, which the caller holds.");
  def(
      module, "_storage_keeper",
      [](PyObject* o) {
        const Storage storage(cresset::detail::keeper_of(o));
        if (!storage) return Object(Py_NewRef(Py_None));
        return Object(wrap(Tensor(
            make_intrusive<TensorImpl>(storage, key_set_for_device(storage.device().type()), kByte, DimVector{0}, DimVector{1}, 0))));
      },
      "An empty tensor over the memory of the storage that keeps an object, or None.");
}

void init_shared_memory(PyObject* module) {
  def(
      module, "_storage_share",
      [](const Tensor& t, bool named) { cresset::detail::share_storage(*storage_of(t).unsafeGetStorageImpl(), named); },
      "Moves the memory to where other processes can map it.");
  // (open file or -1, name) of shared memory, None for any other
  def(module, "_storage_shared", [](const Tensor& t) {
    const cresset::detail::SharedBlock* b = t.has_storage() ? cresset::detail::shared_block(*t.storage().unsafeGetStorageImpl()) : nullptr;
    return b ? Object(checked(Py_BuildValue("(is)", b->fd, b->name.c_str()))) : Object(Py_NewRef(Py_None));
  });
  def(module, "_storage_open_fd", [](int64_t fd, int64_t nbytes) {
    return bytes_of(cresset::detail::open_shared(static_cast<int>(fd), static_cast<std::size_t>(nbytes)));
  });
  def(module, "_storage_open_name", [](const std::string& name, int64_t nbytes) {
    return bytes_of(cresset::detail::open_shared(name, static_cast<std::size_t>(nbytes)));
  });
  def(module, "_storage_count_shared", [](const Tensor& t, int64_t change) {
    const cresset::detail::SharedBlock* b = cresset::detail::shared_block(*storage_of(t).unsafeGetStorageImpl());
    CRESSET_CHECK(b, "shared memory: a storage in shared memory was required.");
    cresset::detail::count_shared(*b, static_cast<int>(change));
  });
  def(module, "_release_shared_names", [] { cresset::detail::release_shared_names(); });
}

}  // namespace

void init_storage(PyObject* module) {
  init_shared_memory(module);
  init_weak_storage(module);
  init_kept_objects(module);
  def(
      module, "_storage_key",
      [](const Tensor& t) { return static_cast<uint64_t>(reinterpret_cast<std::uintptr_t>(storage_of(t).unsafeGetStorageImpl())); },
      "What two tensors have in common exactly when they share memory.");
  def(module, "_storage_data_ptr", [](const Tensor& t) {
    return static_cast<uint64_t>(reinterpret_cast<std::uintptr_t>(real_storage_of(t, "access the data pointer").data()));
  });
  def(module, "_storage_nbytes", [](const Tensor& t) { return static_cast<uint64_t>(storage_of(t).nbytes()); });
  def(module, "_storage_resizable", [](const Tensor& t) { return storage_of(t).resizable(); });
  def(module, "_storage_use_count", [](const Tensor& t) { return static_cast<int64_t>(storage_of(t).use_count()); });
  // Less memory is only a smaller number: tensors that reach further must not be left behind with freed memory.
  def(module, "_storage_resize", [](const Tensor& t, int64_t nbytes) {
    CRESSET_CHECK(nbytes >= 0, "UntypedStorage.resize_: a size of at least 0 was required; given: ", nbytes);
    const Storage storage = real_storage_of(t, "call resize_()");
    if (t.device().is_meta()) {
      storage.set_nbytes(static_cast<std::size_t>(nbytes));
      return;
    }
    StorageImpl* impl = storage.unsafeGetStorageImpl();
    if (const auto* hooks = dynamic_cast<PrivateUse1HooksInterface*>(getAcceleratorHooks(t.device().type()))) {
      without_lock(true, [&] { hooks->resizePrivateUse1Bytes(storage, static_cast<std::size_t>(nbytes)); });
      return;
    }
    without_lock(may_wait(t.device()), [&] {
      impl->resize_bytes(impl->nbytes());  // memory of an allocator becomes a block that keeps its size when it shrinks
      impl->resize_bytes(static_cast<std::size_t>(nbytes));
    });
  });
  def(
      module, "_storage_slice",
      [](const Tensor& t, int64_t start, int64_t nbytes) {
        const Storage whole = real_storage_of(t, "call __getitem__()");
        CRESSET_CHECK(start >= 0 && nbytes >= 0 && static_cast<std::size_t>(start + nbytes) <= whole.nbytes(),
                      "UntypedStorage: bytes within ", whole.nbytes(), " were required; ", start, " to ", start + nbytes, " were given.");
        const Device device = t.device();
        if (t.key_set().has(DispatchKey::Functionalize))  // no addresses: a copy
          return without_lock(true, [&] {
            return Tensor(make_intrusive<TensorImpl>(whole, t.key_set(), kByte, DimVector{nbytes}, DimVector{1}, start)).clone();
          });
        void* const data = device.is_meta() ? nullptr : static_cast<char*>(whole.mutable_data()) + start;
        DataPtr part(data, new Storage(whole), [](void* owner) { delete static_cast<Storage*>(owner); }, device);
        const Storage storage(make_storage_impl(StorageImpl::use_byte_size_t(), nbytes, std::move(part), nullptr, false, device));
        return Tensor(make_intrusive<TensorImpl>(storage, t.key_set(), kByte, DimVector{nbytes}, DimVector{1}, 0));
      },
      "A tensor whose storage is `nbytes` bytes of another's memory, which it keeps alive.");
  def(
      module, "_storage_view",
      [](const Tensor& t, ScalarType dtype, int64_t offset, const std::vector<int64_t>& sizes, const std::vector<int64_t>& strides) {
        CRESSET_CHECK(sizes.size() == strides.size(), "mismatch in length of strides and shape");
        CRESSET_CHECK(offset >= 0, "Tensor: invalid storage offset ", offset);
        for (const int64_t n : sizes)
          CRESSET_CHECK(n >= 0, "Trying to create tensor with negative dimension ", n, ": ", IntArrayRef(sizes));
        for (const int64_t n : strides) CRESSET_CHECK(n >= 0, "set_: negative strides are not supported; given: ", IntArrayRef(strides));
        const Storage storage = storage_of(t);
        const bool reads = std::find(sizes.begin(), sizes.end(), 0) == sizes.end();
        CRESSET_CHECK(!reads || !is_nowhere(storage, t.device()),
                      "The tensor has a non-zero number of elements, but its data is not allocated yet.");
        const std::size_t needed = cresset::detail::compute_storage_nbytes(sizes, strides, element_size(dtype), offset);
        CRESSET_CHECK(t.device().is_meta() || needed <= storage.nbytes(), "setStorage: sizes ", IntArrayRef(sizes), ", strides ",
                      IntArrayRef(strides), ", storage offset ", offset, ", and itemsize ", static_cast<int64_t>(element_size(dtype)),
                      " requiring a storage size of ", needed, " are out of bounds for storage of size ", storage.nbytes());
        const DispatchKeySet keys = t.has_storage() ? t.key_set() : key_set_for_device(t.device().type());
        return Tensor(make_intrusive<TensorImpl>(storage, keys, dtype, sizes, strides, offset));
      },
      "A tensor of its own over the memory of another.");
}

}  // namespace cresset::python
