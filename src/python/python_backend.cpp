// A device kind that is written in Python: its hooks and its guard are Python objects, its kernels come from cresset.library.
#include <cresset/core/accelerator_hooks.h>
#include <cresset/core/device_guard.h>
#include <cresset/core/tensor_impl.h>

#include "python/bind.h"

namespace cresset::python {
namespace {

constexpr DeviceType kKind = DeviceType::PrivateUse1;

// A question to a Python object that is answered with yes or no.
class PythonAnswers {
 public:
  explicit PythonAnswers(PyObject* object) : object_(Py_NewRef(object)) {}  // for the life of the process
  bool ask(const char* method, std::optional<int> argument = std::nullopt) const {
    if (!Py_IsInitialized()) return false;
    const GilAcquire gil;
    const Ref answer =
        Ref::steal(argument ? PyObject_CallMethod(object_, method, "i", *argument) : PyObject_CallMethod(object_, method, nullptr));
    const int yes = answer ? PyObject_IsTrue(answer.get()) : -1;
    if (yes < 0) throw PythonException::fetch();
    return yes == 1;
  }

 private:
  PyObject* object_;
};

struct PythonHooks final : PrivateUse1HooksInterface {
  explicit PythonHooks(PyObject* o) : answers(o) {}
  bool isBuilt() const override { return answers.ask("is_built"); }
  bool isAvailable() const override { return answers.ask("is_available"); }
  bool hasPrimaryContext(DeviceIndex index) const override { return answers.ask("has_primary_context", index); }
  DeviceIndex deviceCount() const override { return isAvailable() ? 1 : 0; }
  PythonAnswers answers;
};

// One device, on which everything has happened when a call returns.
struct PythonGuard final : impl::DeviceGuardImplInterface {
  DeviceType type() const override { return kKind; }
  Device exchangeDevice(Device) const override { return getDevice(); }
  Device getDevice() const override { return Device(kKind, 0); }
  void setDevice(Device d) const override { check(d); }
  void uncheckedSetDevice(Device) const noexcept override {}
  Stream getStream(Device) const override { return Stream(Stream::DEFAULT, getDevice()); }
  DeviceIndex deviceCount() const noexcept override { return 1; }
  static void check(Device d) {
    CRESSET_CHECK(d.index() <= 0, DeviceTypeName(kKind), ": invalid device ordinal ", static_cast<int>(d.index()),
                  "; a kind that is written in ", "Python has one device.");
  }
};

// A tensor of the kind without memory: what its elements are, its subclass keeps in Python. The core makes copies that share
// elements (results that are saved for backward, `data`) without an operator; here they come from the kind's kernel of aten::detach,
// as only that knows the elements.
struct MemorylessTensorImpl final : TensorImpl {
  using TensorImpl::TensorImpl;

  intrusive_ptr<TensorImpl> shallow_copy_and_detach(bool share_version) const override {
    static thread_local bool inside = false;  // the kernel that is there by default asks for such a copy itself
    if (!pyobject() || inside) return plain_copy(share_version);
    inside = true;
    Tensor made;
    {
      const AutoDispatchBelowADInplaceOrView below;
      const Restore restore{inside};
      made = Tensor(intrusive_ptr<TensorImpl>::reclaim_copy(const_cast<MemorylessTensorImpl*>(this))).detach();
    }
    TensorImpl* impl = made.unsafeGetTensorImpl();
    if (impl == this || impl->autograd_meta()) return plain_copy(share_version);
    set_version_of_copy(*impl, share_version);
    return intrusive_ptr<TensorImpl>::reclaim_copy(impl);
  }

 private:
  struct Restore {
    bool& flag;
    ~Restore() { flag = false; }
  };
  intrusive_ptr<TensorImpl> plain_copy(bool share_version) const {
    auto copy = make_intrusive<MemorylessTensorImpl>(storage_, key_set_, dtype_, IntArrayRef(sizes_), IntArrayRef(strides_), offset_);
    set_version_of_copy(*copy, share_version);
    return copy;
  }
};

Tensor tensor_without_memory(const std::vector<int64_t>& sizes, ScalarType dtype) {
  for (const int64_t n : sizes) CRESSET_CHECK(n >= 0, "Trying to create tensor with negative dimension ", n, ": ", IntArrayRef(sizes));
  const Device device(kKind, 0);
  const Storage storage(
      make_intrusive<StorageImpl>(StorageImpl::use_byte_size_t(), std::size_t{0}, DataPtr(nullptr, device), nullptr, false));
  auto tensor = make_intrusive<MemorylessTensorImpl>(storage, key_set_for_device(kKind), dtype, DimVector{0}, DimVector{1}, 0);
  tensor->set_sizes_contiguous(sizes);
  return Tensor(std::move(tensor));
}

}  // namespace

void init_python_backend(PyObject* m) {
  def(m, "_register_python_hooks", [](PyObject* o) { registerAcceleratorHooks(kKind, new PythonHooks(o)); });
  def(m, "_register_python_guard", [] { impl::registerDeviceGuardImpl(kKind, new PythonGuard()); });
  def(m, "_tensor_without_memory", [](const std::vector<int64_t>& sizes, ScalarType dtype) { return tensor_without_memory(sizes, dtype); });
}

}  // namespace cresset::python
