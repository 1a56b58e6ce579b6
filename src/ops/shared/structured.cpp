// Allocation from specs, out= and in-place binding.
#include "ops/shared/structured.h"

#include <cstring>
#include <string>
#include <utility>

#include <cresset/dispatch/dispatcher.h>
#include <cresset/ops/functions_creation.h>

#include "ops/shared/pointwise.h"

namespace cresset::ops {

namespace {

void check_castable(ScalarType from, ScalarType to) {
  CRESSET_CHECK(canCast(from, to), "result type ", from, " can't be cast to the desired output type ", to);
}

// Strides of dimensions with at most one element do not matter.
bool same_strides(const Tensor& t, const TensorSpec& spec) {
  if (t.numel() == 0) return true;
  if (!spec.strides) return t.is_contiguous();
  const auto sizes = t.sizes(), strides = t.strides();
  for (std::size_t i = 0; i < sizes.size(); ++i)
    if (sizes[i] > 1 && strides[i] != (*spec.strides)[i]) return false;
  return true;
}

void resize(const Tensor& t, IntArrayRef sizes) {
  static const auto handle =
      Dispatcher::singleton().findSchemaOrThrow("aten::resize_", "").typed<Tensor&(Tensor&, IntArrayRef, std::optional<MemoryFormat>)>();
  AutoDispatchBelowADInplaceOrView guard;
  handle.call(const_cast<Tensor&>(t), sizes, std::nullopt);
}

Tensor& overwrite(Tensor& to, const Tensor& from) {
  static const auto handle = Dispatcher::singleton().findSchemaOrThrow("aten::copy_", "").typed<Tensor&(Tensor&, const Tensor&, bool)>();
  return handle.call(to, from, false);
}

// Gives `out` the sizes of a result. Only a tensor with elements gets the warning.
void resize_out(const Tensor& out, IntArrayRef sizes, const std::optional<DimVector>& strides) {
  if (out.sizes() == sizes) return;
  if (out.numel() != 0)
    warn(str("An output with one or more elements was resized since it had shape ", out.sizes(),
             ", which does not match the required output shape ", sizes,
             ". This behavior is deprecated, and in a future release outputs will not be resized unless they have zero elements. "
             "You can explicitly reuse an out tensor t by resizing it, inplace, to zero elements with t.resize_(0)."));
  resize(out, sizes);
  if (strides && out.has_storage()) out.unsafeGetTensorImpl()->set_sizes_and_strides(sizes, *strides);
}

}  // namespace

Tensor allocate(const TensorSpec& spec, Device device) {
  if (device.is_cpu()) return allocate_cpu(spec);
  static const auto handle = Dispatcher::singleton()
                                 .findSchemaOrThrow("aten::empty_strided", "")
                                 .typed<Tensor(IntArrayRef, IntArrayRef, std::optional<ScalarType>, std::optional<Layout>,
                                               std::optional<Device>, std::optional<bool>)>();
  // A device may bring `empty` alone.
  if (!spec.strides && !handle.hasComputedKernelForDispatchKey(backendKey(device.type())))
    return cresset::empty(spec.sizes, TensorOptions().dtype(spec.dtype).device(device));
  const DimVector strides = spec.strides ? *spec.strides : contiguous_strides(spec.sizes);
  return handle.call(spec.sizes, strides, spec.dtype, std::nullopt, device, std::nullopt);
}

Tensor allocate_meta(const TensorSpec& spec) {
  const DimVector strides = spec.strides ? *spec.strides : contiguous_strides(spec.sizes);
  return cresset::detail::empty_meta(spec.sizes, strides, spec.dtype);
}

namespace {
// The words of a rule, with the types in them.
std::string filled(std::string words, ScalarType want, ScalarType have) {
  const std::pair<const char*, std::string> places[] = {
      {"{want}", to_string(want)}, {"{have}", to_string(have)}, {"{want_c}", cpp_type_name(want)}, {"{have_c}", cpp_type_name(have)}};
  for (const auto& [place, text] : places)
    if (const std::size_t at = words.find(place); at != std::string::npos) words.replace(at, std::strlen(place), text);
  return words;
}
}  // namespace

void check_out(const char* op, ScalarType result, const Tensor& out, OutRule rule) {
  CRESSET_CHECK_TYPE(out.defined(), op, ": a defined tensor is required as out; given: an undefined one.");
  check_no_internal_overlap(out);  // before a resize would hide it
  const ScalarType type = out.scalar_type();
  if (result == type) return;
  const bool exact = rule.dtype == OutDtype::Exact;
  CRESSET_CHECK(!rule.words || (!exact && canCast(result, type)), filled(rule.words, result, type));
  CRESSET_CHECK(rule.dtype != OutDtype::Flags || type == kByte, op, " only supports bool tensor for result, got: ", type);
  CRESSET_CHECK(!exact, "Expected out tensor to have dtype ", cpp_type_name(result), ", but got ", cpp_type_name(type), " instead");
  CRESSET_CHECK_TYPE(rule.dtype != OutDtype::Joined || canCast(result, type),
                     "torch.cat(): input types can't be cast to the desired output type ", type);
  check_castable(result, type);
}

void check_on_cpu(const Tensor& out) {
  CRESSET_CHECK(!out.defined() || out.device().is_cpu(),
                "Expected all tensors to be on the same device, but found at least two devices, cpu and ", out.device(), "!");
}

void keep_shape(TensorSpec& spec, const Tensor& out) {
  int64_t count = 1;
  for (int64_t size : spec.sizes) count *= size;
  if (out.numel() == count) spec.sizes = out.sizes();
}

Tensor shaped_as(const Tensor& result, const Tensor& out) {
  return out.defined() && out.numel() == result.numel() ? result.view(out.sizes()) : result;
}

void prepare_out(const TensorSpec& spec, const Tensor& out) {
  resize_out(out, spec.sizes, spec.strides);
  check_no_internal_overlap(out);
}

Tensor& sized(Tensor& out, IntArrayRef sizes) {
  cresset::detail::check_sizes_nonnegative(sizes);
  prepare_out({DimVector(sizes), out.scalar_type(), out.device(), {}}, out);
  return out;
}

void check_apart(const Tensor& input, const Tensor& out) {
  if (!shares_storage(input, out) || input.numel() == 0 || out.numel() == 0) return;
  if (!input.is_non_overlapping_and_dense() || !out.is_non_overlapping_and_dense()) return;  // too hard to tell, as in PyTorch
  const auto begin = [](const Tensor& t) { return t.storage_offset() * t.element_size(); };
  const auto end = [&](const Tensor& t) { return begin(t) + t.numel() * t.element_size(); };
  const bool apart = end(input) <= begin(out) || end(out) <= begin(input);
  CRESSET_CHECK(apart,
                "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory location. "
                "Please clone() the tensor before performing the operation.");
}
void check_apart(TensorList inputs, const Tensor& out) {
  for (const Tensor& input : inputs) check_apart(input, out);
}
void check_whole(const Tensor& input, const Tensor& out) {
  if (input.defined()) check_no_partial_overlap(out, input);
}
void check_whole(TensorList inputs, const Tensor& out) {
  for (const Tensor& input : inputs) check_whole(input, out);
}

void check_self(const char* op, const TensorSpec& spec, const Tensor& self) {
  CRESSET_CHECK(self.sizes() == IntArrayRef(spec.sizes), "output with shape ", self.sizes(), " doesn't match the broadcast shape ",
                spec.sizes);
  // Running totals of integers are kept in self's type; a type that was asked for must be self's.
  CRESSET_CHECK(!std::string_view(op).starts_with("cum") || isIntegralType(self.scalar_type(), true) || spec.dtype == self.scalar_type(),
                "Bad in-place call: input tensor dtype ", cpp_type_name(self.scalar_type()), " and output tensor dtype ",
                cpp_type_name(spec.dtype), " should match");
  check_castable(spec.dtype, self.scalar_type());
  check_no_internal_overlap(self);
}

void copy_data(const Tensor& from, const Tensor& to) {
  AutoDispatchBelowADInplaceOrView guard;
  overwrite(const_cast<Tensor&>(to), from);
}

void check_result_out(const char* op, const Tensor& result, const Tensor& out, OutRule rule) {
  if (!result.defined()) return;  // a gradient that was not asked for
  CRESSET_CHECK(!GradMode::is_enabled() || !(result.requires_grad() || out.requires_grad()), op,
                "(): functions with out=... arguments don't support automatic differentiation, but one of the arguments requires grad.");
  CRESSET_CHECK(!out.defined() || out.device() == result.device(),
                "Expected all tensors to be on the same device, but found at least two devices, ", result.device(), " and ", out.device(),
                "!");
  check_out(op, result.scalar_type(), out, rule);
  const bool grows =
      out.has_storage() && (out.storage_offset() + result.numel()) * out.element_size() > static_cast<int64_t>(out.storage().nbytes());
  CRESSET_CHECK(!grows || out.sizes() == result.sizes() || out.storage().resizable(), "Trying to resize storage that is not resizable");
}

void store_out(const Tensor& result, Tensor& out) {
  if (!result.defined()) return;
  resize_out(out, result.sizes(), std::nullopt);
  check_no_internal_overlap(out);
  overwrite(out, result);
}

void copy_to_out(const char* op, const Tensor& result, Tensor& out, OutRule rule) {
  check_result_out(op, result, out, rule);
  store_out(result, out);
}

void copy_to_out(const char* op, TensorList results, TensorList out, OutRule rule) {
  CRESSET_CHECK(results.size() == out.size(), op, "(): expected an out= argument of size ", results.size(), ", got size ", out.size());
  for (std::size_t i = 0; i < results.size(); ++i) check_result_out(op, results[i], out[i], rule);
  for (std::size_t i = 0; i < results.size(); ++i) store_out(results[i], const_cast<Tensor&>(out[i]));
}

CopiedApart copied_apart(const Tensor& t) { return {t, cresset::clone(t)}; }
void CopiedApart::store() const { Tensor(to).copy_(copy); }

void copy_to_self(const char* op, const Tensor& result, Tensor& self) {
  CRESSET_CHECK(self.sizes() == result.sizes(), "output with shape ", self.sizes(), " doesn't match the broadcast shape ", result.sizes());
  check_castable(result.scalar_type(), self.scalar_type());
  check_no_internal_overlap(self);
  overwrite(self, result);
  (void)op;
}

Tensor unwritten(Tensor t) {
  if (t.has_storage() && !t.is_inference()) t.storage().unsafeGetStorageImpl()->set_version(0);
  return t;
}

OutBinding::OutBinding(const TensorSpec& spec, const Tensor& out, bool overlaps_input) : out_(out) {
  // An input that shares memory with out must keep its sizes until the kernel has read it.
  if (overlaps_input && out.sizes() != IntArrayRef(spec.sizes)) {
    temporary_ = allocate_cpu(spec);
    return;
  }
  prepare_out(spec, out);
  if (overlaps_input || out.scalar_type() != spec.dtype || !same_strides(out, spec)) temporary_ = allocate_cpu(spec);
}

void OutBinding::copy_back() {
  resize_out(out_, temporary_.sizes(), std::nullopt);
  check_no_internal_overlap(out_);
  copy_data(temporary_, out_);
}

}  // namespace cresset::ops
