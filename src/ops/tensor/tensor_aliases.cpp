// Methods of Tensor under their older or symbolic names.
#include <cresset/core/accelerator_hooks.h>
#include <cresset/ops/functions_copy.h>
#include <cresset/ops/functions_creation.h>
#include <cresset/ops/functions_view.h>

namespace cresset {

TensorBase TensorBase::contiguous(MemoryFormat memory_format) const { return Tensor(*this).contiguous(memory_format); }
TensorBase TensorBase::to(TensorOptions options, bool non_blocking, bool copy, std::optional<MemoryFormat> memory_format) const {
  return Tensor(*this).to(options, non_blocking, copy, memory_format);
}
const TensorBase& TensorBase::fill_(const Scalar& value) const {
  Tensor(*this).fill_(value);
  return *this;
}
const TensorBase& TensorBase::zero_() const {
  Tensor(*this).zero_();
  return *this;
}
Tensor Tensor::cpu() const { return to(Device(kCPU)); }
Tensor Tensor::cuda() const { return to(Device(kCUDA)); }

namespace {
// All elements of `type` that a storage has room for.
Tensor row_of(const Storage& storage, ScalarType type) {
  const auto elements = static_cast<int64_t>(storage.nbytes() / element_size(type));
  return Tensor(
      make_intrusive<TensorImpl>(storage, key_set_for_device(storage.device().type()), type, IntArrayRef{elements}, IntArrayRef{1}, 0));
}
}  // namespace
Tensor& Tensor::set_(const Storage& source) const { return set_(row_of(source, scalar_type())); }
Tensor& Tensor::set_(const Storage& source, int64_t storage_offset, IntArrayRef size, IntArrayRef stride) const {
  return set_(row_of(source, scalar_type()), storage_offset, size, stride);
}

Tensor Tensor::toType(ScalarType t) const { return to(t); }
bool Tensor::is_pinned(std::optional<Device> /*device*/) const { return is_cpu() && has_storage() && is_pinned_ptr(storage().data()); }
Tensor Tensor::view_symint(SymIntArrayRef size) const { return view(IntArrayRef(size)); }
Tensor Tensor::reshape_symint(SymIntArrayRef size) const { return reshape(size); }
Tensor Tensor::expand_symint(SymIntArrayRef size, bool implicit) const { return expand(size, implicit); }
Tensor Tensor::narrow_symint(int64_t d, SymInt start, SymInt length) const { return narrow(d, start.value, length); }
Tensor Tensor::select_symint(int64_t d, SymInt i) const { return select(d, i); }
Tensor Tensor::slice_symint(int64_t d, std::optional<SymInt> start, std::optional<SymInt> end, SymInt step) const {
  return slice(d, start ? std::optional<int64_t>(*start) : std::nullopt, end ? std::optional<int64_t>(*end) : std::nullopt, step);
}
Tensor Tensor::new_empty_symint(SymIntArrayRef size, const TensorOptions& options) const { return new_empty(size, options); }
Tensor Tensor::new_zeros_symint(SymIntArrayRef size, const TensorOptions& options) const { return new_zeros(size, options); }

}  // namespace cresset
