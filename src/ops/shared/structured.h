// What generated code does around shape functions and kernels: allocates results, binds out= and in-place arguments.
#pragma once

#include <optional>

#include <cresset/core/tensor.h>
#include <cresset/ops/functions_copy.h>

#include "ops/shared/out_rules.h"

namespace cresset::ops {

/// A new uninitialised tensor on a device, through `aten::empty_strided` of that device, or its `empty` where there is no other; CPU has a
/// short path.
CRESSET_API Tensor allocate(const TensorSpec& spec, Device device);
/// A new CPU tensor; strides must describe a layout without holes.
inline Tensor allocate_cpu(const TensorSpec& spec) {
  return spec.strides ? cresset::detail::empty_strided_cpu(spec.sizes, *spec.strides, spec.dtype)
                      : cresset::detail::empty_cpu(spec.sizes, spec.dtype);
}
/// A new meta tensor.
CRESSET_API Tensor allocate_meta(const TensorSpec& spec);

inline std::optional<Device> device_in(const Tensor& t) { return t.defined() ? std::optional<Device>(t.device()) : std::nullopt; }
inline std::optional<Device> device_in(const std::optional<Tensor>& t) { return t ? device_in(*t) : std::nullopt; }
template <class T>
std::optional<Device> device_in(ArrayRef<T> list) {
  for (const T& t : list)
    if (auto device = device_in(t)) return device;
  return std::nullopt;
}

/// Device of the first defined tensor among the arguments (tensors, optional tensors, lists); CPU when there is none.
template <class... Args>
Device device_of(const Args&... args) {
  std::optional<Device> device;
  (void)((device = device_in(args)) || ...);
  return device.value_or(Device(kCPU));
}

/// Do two tensors use the same storage?
inline bool shares_storage(const Tensor& a, const Tensor& b) {
  return a.defined() && a.unsafeGetTensorImpl()->unsafe_storage() && a.is_alias_of(b);
}
inline bool shares_storage(const std::optional<Tensor>& a, const Tensor& b) { return a && shares_storage(*a, b); }
template <class T>
bool shares_storage(ArrayRef<T> list, const Tensor& b) {
  for (const T& t : list)
    if (shares_storage(t, b)) return true;
  return false;
}

/// Out tensors of a CPU kernel must be on the CPU.
CRESSET_API void check_on_cpu(const Tensor& out);
template <class... Outs>
void check_cpu(const Outs&... outs) {
  (check_on_cpu(outs), ...);
}

/// For operators that fill an `out` of any shape with as many elements as the result has (the key `out_shape`): makes the spec that of
/// `out`, or the result.
CRESSET_API void keep_shape(TensorSpec& spec, const Tensor& out);
CRESSET_API Tensor shaped_as(const Tensor& result, const Tensor& out);

/// Makes a checked `out` fit a result: another shape is resized (with a warning unless out was empty).
CRESSET_API void prepare_out(const TensorSpec& spec, const Tensor& out);

/// `out` with these sizes, to be filled.
CRESSET_API Tensor& sized(Tensor& out, IntArrayRef sizes);

/// For operators that read an input while they write (the key `out_memory`): raise `unsupported operation: some elements of the
/// input tensor and the written-to tensor refer to a single memory location. …` for views that share elements. For `check_whole`
/// one tensor may be both.
CRESSET_API void check_apart(const Tensor& input, const Tensor& out);
CRESSET_API void check_apart(TensorList inputs, const Tensor& out);
CRESSET_API void check_whole(const Tensor& input, const Tensor& out);
CRESSET_API void check_whole(TensorList inputs, const Tensor& out);
template <class T>
void check_whole(const std::optional<T>& input, const Tensor& out) {
  if (input) check_whole(*input, out);
}

/// Checks that a result can be stored in `self` in place: equal sizes (`output with shape [3] doesn't match the broadcast
/// shape [2, 3]`), castable dtype, no element twice.
CRESSET_API void check_self(const char* op, const TensorSpec& spec, const Tensor& self);

/// A result that its operator wrote to: in-place operators that made it do not count.
CRESSET_API Tensor unwritten(Tensor t);

/// Copies values between tensors of equal sizes, with conversion; records nothing and bumps no version.
CRESSET_API void copy_data(const Tensor& from, const Tensor& to);

/// Ends an operator that computed `result` itself: out= and in-place forms of operators without kernels of their own.
/// Differentiable: the copy is recorded when autograd is active. Several results are all checked before one is stored.
CRESSET_API void check_result_out(const char* op, const Tensor& result, const Tensor& out, OutRule rule);
CRESSET_API void store_out(const Tensor& result, Tensor& out);
CRESSET_API void copy_to_out(const char* op, const Tensor& result, Tensor& out, OutRule rule);
CRESSET_API void copy_to_out(const char* op, TensorList results, TensorList out, OutRule rule);
/// A copy of an argument that the functional form writes, for its out form: the argument itself changes when all outputs are stored.
struct CRESSET_API CopiedApart {
  Tensor to, copy;
  void store() const;
};
struct OptionalCopiedApart {
  std::optional<Tensor> to, copy;
  void store() const {
    if (to && to->defined()) CopiedApart{*to, *copy}.store();
  }
};
CRESSET_API CopiedApart copied_apart(const Tensor& t);
inline OptionalCopiedApart copied_apart(const std::optional<Tensor>& t) {
  return {t, t && t->defined() ? std::optional(copied_apart(*t).copy) : t};
}
CRESSET_API void copy_to_self(const char* op, const Tensor& result, Tensor& self);

/// self for the parts of an in-place composite: a copy when autograd may keep it, because self changes afterwards.
template <class... Others>
Tensor before_change(const Tensor& self, const Others&... others) {
  return GradMode::is_enabled() && (self.requires_grad() || ... || others.requires_grad()) ? cresset::clone(self) : self;
}

/// A checked out= argument during one kernel call. `target()` has exactly the sizes, strides and dtype of the spec and overlaps no
/// input: it is `out` itself where possible, otherwise a temporary that `finish()` copies.
class CRESSET_API OutBinding {
 public:
  OutBinding(const TensorSpec& spec, const Tensor& out, bool overlaps_input);
  const Tensor& target() const { return temporary_.defined() ? temporary_ : out_; }
  void finish() {
    if (temporary_.defined()) copy_back();
  }

 private:
  void copy_back();
  const Tensor& out_;
  Tensor temporary_;
};

}  // namespace cresset::ops
