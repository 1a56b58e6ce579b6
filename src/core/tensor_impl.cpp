// Metadata of tensors: sizes, strides, contiguity, versions, shallow copies.
#include <cresset/core/tensor_impl.h>

#include <algorithm>

#include <cresset/core/grad_mode.h>
#include <cresset/core/limits.h>

#include "core/unseen_writes.h"

namespace cresset {

PyObjectHooks pyobject_hooks;

namespace {
// Tensors of a backend also carry its autograd keys, whether their maker names them or not.
DispatchKeySet with_autograd_keys(DispatchKeySet ks) {
  constexpr DispatchKeySet carried({DispatchKey::ADInplaceOrView, DispatchKey::AutogradFunctionality});
  if (CRESSET_LIKELY(ks.has_all(carried))) return ks;  // every tensor the library makes itself
  return ks.has_backend() && ks.has(DispatchKey::Dense) ? ks | key_set_for_device(static_cast<DeviceType>(ks.highestBackendIndex())) : ks;
}

inline void check_dims(std::size_t n) {
  CRESSET_CHECK(n <= kMaxDims, "only tensors with up to ", kMaxDims, " dims are supported; ", n, " were asked for.");
}

int64_t numel_of(IntArrayRef sizes) {
  int64_t n = 1;
  for (const int64_t s : sizes) CRESSET_CHECK(!__builtin_mul_overflow(n, s, &n), "numel: integer multiplication overflow");
  return n;
}
}  // namespace

TensorImpl::TensorImpl(Storage&& storage, DispatchKeySet key_set, TypeMeta data_type)
    : storage_(std::move(storage)),
      key_set_(with_autograd_keys(key_set)),
      dtype_(data_type),
      device_(storage_ ? storage_.device() : Device(kCPU)) {
  inference_ = InferenceMode::is_enabled();
  if (inference_) remove_autograd_key();
}

TensorImpl::TensorImpl(DispatchKeySet key_set, TypeMeta data_type, std::optional<Device> device)
    : key_set_(with_autograd_keys(key_set)), dtype_(data_type), device_(device.value_or(Device(kCPU))) {
  inference_ = InferenceMode::is_enabled();
  if (inference_) remove_autograd_key();
  version_ = make_intrusive<VersionHolder>();
}

TensorImpl::TensorImpl(const Storage& storage, DispatchKeySet key_set, TypeMeta data_type, IntArrayRef sizes, IntArrayRef strides,
                       int64_t offset)
    : storage_(storage),
      sizes_(sizes),
      strides_(strides),
      offset_(offset),
      key_set_(key_set),
      dtype_(data_type),
      device_(storage.device()) {
  check_dims(sizes.size());
  numel_ = numel_of(sizes_);
  refresh_contiguous();
}

TensorImpl::~TensorImpl() {
  if (owns_pyobject_ && pyobject_hooks.release) pyobject_hooks.release(pyobject());
}

void TensorImpl::release_resources() {
  autograd_meta_.reset();
  storage_ = Storage();
  if (owns_pyobject_ && pyobject_hooks.release) {
    owns_pyobject_ = false;
    pyobject_hooks.release(pyobject_.exchange(nullptr));
  }
}

const Storage& TensorImpl::storage() const {
  CRESSET_CHECK_NOT_IMPLEMENTED(storage_, "Cannot access storage of ", tensorimpl_type_name());
  return storage_;
}

bool TensorImpl::is_non_overlapping_and_dense() const {
  if (contiguous_ && !custom_) return true;
  const IntArrayRef size = sizes(), stride = strides();
  if (numel() == 0) return true;
  SmallVector<int64_t, 8> order;
  for (std::size_t d = 0; d < size.size(); ++d)
    if (size[d] != 1) order.push_back(static_cast<int64_t>(d));
  std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return stride[a] < stride[b]; });
  int64_t expected = 1;
  for (int64_t d : order) {
    if (stride[d] != expected) return false;
    expected *= size[d];
  }
  return true;
}

bool TensorImpl::has_strides_of(MemoryFormat format) const {
  if (format == MemoryFormat::Contiguous || format == MemoryFormat::Preserve) return contiguous_;
  const std::size_t n = format == MemoryFormat::ChannelsLast ? 4 : 5;
  if (sizes_.size() != n) return false;
  int64_t expected = 1;
  const auto matches = [&](std::size_t d) {
    if (sizes_[d] != 1) {
      if (strides_[d] != expected) return false;
      expected *= sizes_[d];
    }
    return true;
  };
  if (!matches(1)) return false;
  for (std::size_t d = n; d-- > 2;)
    if (!matches(d)) return false;
  return matches(0);
}

void TensorImpl::refresh_contiguous() {
  contiguous_ = true;
  if (numel_ == 0) return;
  int64_t expected = 1;
  for (std::size_t d = sizes_.size(); d-- > 0;) {
    if (sizes_[d] == 1) continue;
    if (strides_[d] != expected) {
      contiguous_ = false;
      return;
    }
    expected *= sizes_[d];
  }
}

void TensorImpl::set_sizes_contiguous(IntArrayRef sizes) {
  // contiguous_strides and numel_of in one pass: this is on the path of every new tensor.
  check_dims(sizes.size());
  sizes_ = sizes;
  const std::size_t n = sizes_.size();
  strides_.resize(n);
  int64_t *const stride = strides_.data(), expected = 1, count = 1;
  const int64_t* const size = sizes_.data();
  for (std::size_t d = n; d-- > 0;) {
    stride[d] = expected;
    expected = stride_before(expected, size[d]);
    count = static_cast<int64_t>(static_cast<uint64_t>(count) * static_cast<uint64_t>(size[d]));  // as strides wrap
  }
  numel_ = count;
  contiguous_ = true;
}

void TensorImpl::set_sizes_and_strides(IntArrayRef sizes, IntArrayRef strides, std::optional<int64_t> offset) {
  CRESSET_INTERNAL_ASSERT(sizes.size() == strides.size(), "sizes ", sizes, ", strides ", strides, ".");
  check_dims(sizes.size());
  numel_ = numel_of(sizes);  // raises before anything is changed
  // The arguments may be views of our own vectors.
  const DimVector new_strides(strides);
  sizes_ = DimVector(sizes);
  strides_ = new_strides;
  if (offset) offset_ = *offset;
  refresh_contiguous();
}

void TensorImpl::set_storage_keep_dtype(Storage storage) {
  if (!inference_ && !version_ && storage_) {
    const uint32_t v = version();
    version_ = make_intrusive<VersionHolder>();
    version_->set_version(v);
  }
  storage_ = std::move(storage);
  if (storage_) device_ = storage_.device();
}

void TensorImpl::set_storage_and_dtype(Storage storage, TypeMeta type) {
  set_storage_keep_dtype(std::move(storage));
  dtype_ = type;
}

uint32_t TensorImpl::version() const {
  CRESSET_CHECK(!inference_ || version_, "Inference tensors do not track version counter.");
  return version_ ? version_->version() : storage_ ? storage_.unsafeGetStorageImpl()->version() : 0;
}

VariableVersion TensorImpl::version_counter() const {
  if (inference_ && !version_) return {};
  if (version_) return VariableVersion(version_);
  if (storage_) return VariableVersion(intrusive_ptr<VersionHolder>(storage_.getIntrusivePtr()));
  return VariableVersion(make_intrusive<VersionHolder>());
}

static std::atomic<uint64_t> unseen_count{0};
uint64_t detail::unseen_writes() { return unseen_count.load(std::memory_order_relaxed); }

void TensorImpl::check_inference_mode() {
  CRESSET_CHECK(InferenceMode::is_enabled(),
                "Inplace update to inference tensor outside InferenceMode is not allowed. You can make a clone to get a normal "
                "tensor before doing inplace update.");
}

void TensorImpl::bump_version() {
  if (inference_ && !version_) return check_inference_mode();
  if (version_) {
    if (storage_ && !storage_.unique()) unseen_count.fetch_add(1, std::memory_order_relaxed);
    version_->bump();
  } else if (storage_) {
    storage_.unsafeGetStorageImpl()->bump();
  }
}

void TensorImpl::share_version_with(const TensorImpl& other) {
  if (other.version_)
    version_ = other.version_;
  else if (other.storage_)
    version_ = storage_.is_alias_of(other.storage_) ? nullptr : intrusive_ptr<VersionHolder>(other.storage_.getIntrusivePtr());
}

void TensorImpl::set_version_counter(const VariableVersion& counter) {
  version_ = storage_ && counter.counter_ == storage_.getIntrusivePtr() ? nullptr : counter.counter_;
}

void TensorImpl::new_version_counter(uint32_t start) {
  version_ = make_intrusive<VersionHolder>();
  version_->set_version(start);
}

void TensorImpl::copy_metadata_from(const TensorImpl& other) {
  if (other.storage_ && storage_ && !storage_.is_alias_of(other.storage_))
    set_storage_keep_dtype(other.storage_);
  else
    storage_ = other.storage_;
  sizes_ = other.sizes_;
  strides_ = other.strides_;
  offset_ = other.offset_;
  numel_ = other.numel_;
  key_set_ = other.key_set_;
  dtype_ = other.dtype_;
  device_ = other.device_;
  contiguous_ = other.contiguous_;
  custom_ = other.custom_;
  wrapped_number_ = other.wrapped_number_;
  backend_meta_ = other.backend_meta_ ? other.backend_meta_->clone(other.backend_meta_) : nullptr;
}

intrusive_ptr<TensorImpl> TensorImpl::shallow_copy_and_detach(bool share_version) const {
  auto r = storage_ ? make_intrusive<TensorImpl>(storage_, key_set_, dtype_, sizes_, strides_, offset_)
                    : make_intrusive<TensorImpl>(key_set_, dtype_, std::optional<Device>(device_));
  if (!storage_) r->set_sizes_and_strides(sizes_, strides_, offset_);
  r->device_ = device_;
  r->wrapped_number_ = wrapped_number_;
  r->backend_meta_ = backend_meta_ ? backend_meta_->clone(backend_meta_) : nullptr;
  set_version_of_copy(*r, share_version);
  return r;
}

intrusive_ptr<TensorImpl> TensorImpl::shallow_copy_and_detach(const VariableVersion& counter, bool) const {
  auto copy = shallow_copy_and_detach(true);
  copy->set_version_counter(counter);
  return copy;
}

void TensorImpl::set_version_of_copy(TensorImpl& copy, bool share_version) const {
  copy.inference_ = inference_;
  if (inference_ ? !InferenceMode::is_enabled() : !share_version)
    copy.new_version_counter();
  else if (!inference_)
    copy.share_version_with(*this);
}

void TensorImpl::shallow_copy_from(const intrusive_ptr<TensorImpl>& other) {
  // Whose Python class dispatches does not come with the data.
  constexpr DispatchKeySet python{DispatchKey::Python, DispatchKey::PythonTLSSnapshot};
  const DispatchKeySet own = key_set_ & python;
  copy_metadata_from(*other);
  key_set_ = (key_set_ - python) | own;
}

void* TensorImpl::operator new(std::size_t n) { return alloc_cpu(n); }
void TensorImpl::operator delete(void* p, std::size_t n) noexcept { free_cpu_sized(p, n); }

UndefinedTensorImpl::UndefinedTensorImpl() : TensorImpl(DispatchKeySet(), ScalarType::Undefined, std::nullopt) {
  intrusive_ops::init(this);
  sizes_ = DimVector{0};
}
UndefinedTensorImpl UndefinedTensorImpl::instance_;

}  // namespace cresset
