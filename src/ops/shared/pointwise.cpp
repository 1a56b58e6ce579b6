// Broadcasting, promotion, output strides and the checks of pointwise operators.
#include "ops/shared/pointwise.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include <cresset/base/warn_always.h>

#include "ops/shared/number_range.h"
#include "ops/shared/ordered_strides.h"
#include "ops/shared/promotion.h"
#include "ops/shared/structured.h"

namespace cresset::ops {
namespace {

uint8_t class_of(ScalarType type) {
  if (type == kBool) return kBoolClass;
  if (CRESSET_UNLIKELY(is_stored_type(type)))
    return isComplexType(type) ? kComplexHalfClass : isFloat8Type(type) ? kFloat8Class : kUnsignedClass;
  if (isIntegralType(type)) return kIntClass;
  return isComplexType(type) ? kComplexClass : kFloatClass;
}

// "special_zeta" and "log_sigmoid_elements" are shown as "zeta" and "log_sigmoid".
std::string kernel_name(const PointwiseOp& op) {
  if (op.facts && op.facts->shown) return op.facts->shown;
  std::string_view name = op.name;
  if (name.starts_with("special_")) name.remove_prefix(std::strlen("special_"));
  if (name.ends_with("_elements")) name.remove_suffix(std::strlen("_elements"));
  return std::string(name);
}

// Rows that do not promote their first two operands.
[[noreturn]] CRESSET_COLD void raise_types(std::string text, ScalarType a, ScalarType b) {
  for (const auto& [place, type] : {std::pair("{0}", a), std::pair("{1}", b)})
    if (const std::size_t at = text.find(place); at != std::string::npos) text.replace(at, 3, toString(type));
  CRESSET_THROW(Error, text);
}

bool has_bool(const PointwiseCall& call) {
  for (int i = 0; i < call.num_inputs; ++i)
    if (call.inputs[i]->scalar_type() == kBool) return true;
  for (int i = 0; i < call.num_scalars; ++i)
    if (call.scalars[i] && call.scalars[i]->isBoolean()) return true;
  return false;
}

[[noreturn]] CRESSET_COLD void raise_no_loop(const PointwiseOp& op, ScalarType common) {
  if (op.facts)
    for (const Refusal& refusal : op.facts->refusals) {
      if (!(refusal.classes & class_of(common))) continue;
      if (refusal.unimplemented) CRESSET_THROW(NotImplementedError, refusal.text);
      CRESSET_THROW(Error, refusal.text);
    }
  CRESSET_THROW(NotImplementedError, "\"", kernel_name(op), "_cpu\" not implemented for '", common, "'");
}

void check_scalars(const PointwiseCall& call, ScalarType common) {
  for (int i = 0; i < call.num_checked; ++i) {
    const CheckedScalar& checked = call.checked[i];
    if (!checked.follows) continue;
    CRESSET_CHECK(!checked.value->isBoolean() || common == kBool, "Boolean ", checked.name, " only supported for Boolean results.");
    CRESSET_CHECK(isFloatingType(common) || isComplexType(common) || checked.value->isIntegral(true),
                  "For integral input tensors, argument ", checked.name, " must not be a floating point number.");
    CRESSET_CHECK(isComplexType(common) || !checked.value->isComplex(), "For non-complex input tensors, argument ", checked.name,
                  " must not be a complex number.");
    const bool narrow = isIntegralType(common) || common == kComplexFloat || (common == kHalf && std::string_view(checked.name) == "alpha");
    if (narrow) check_number(*checked.value, common);
  }
}

void check_condition(const PointwiseOp& op, const Tensor& condition) {
  if (condition.scalar_type() == kByte) {
    CRESSET_WARN_FIRST(
        "where received a uint8 condition tensor. This behavior is deprecated and will be removed in a future version of PyTorch. Use a "
        "boolean condition instead.");
    return;
  }
  CRESSET_CHECK(condition.scalar_type() == kBool, op.name, " expected condition to be a boolean tensor, but got a tensor with dtype ",
                condition.scalar_type());
}

[[noreturn]] CRESSET_COLD void raise_broadcast(int64_t a, int64_t b, int64_t dim) {
  CRESSET_THROW(Error, "The size of tensor a (", a, ") must match the size of tensor b (", b, ") at non-singleton dimension ", dim);
}

DimVector broadcast(const PointwiseCall& call) {
  int64_t sizes[kMaxDims];
  const int ndim = broadcast_sizes(call.inputs, call.num_inputs, sizes);
  return DimVector(IntArrayRef(sizes, static_cast<std::size_t>(ndim)));
}

void check_defined(const PointwiseOp& op, const PointwiseCall& call) {
  for (int i = 0; i < call.num_inputs; ++i)
    CRESSET_CHECK(call.inputs[i]->defined(), op.name, ": a tensor was required; operand ", i, " is undefined.");
}

// The device of the result. Zero-dimensional CPU tensors go with any device.
Device common_device(const PointwiseOp& op, const PointwiseCall& call) {
  check_defined(op, call);
  const Tensor* chosen = call.inputs[0];
  for (int i = 0; i < call.num_inputs; ++i) {
    const Tensor& input = *call.inputs[i];
    if (chosen->device() == input.device()) continue;
    const bool input_free = input.dim() == 0 && input.is_cpu(), chosen_free = chosen->dim() == 0 && chosen->is_cpu();
    if (chosen_free)
      chosen = &input;
    else
      CRESSET_CHECK(input_free, "Expected all tensors to be on the same device, but found at least two devices, ", chosen->device(),
                    " and ", input.device(), "! (", op.name, ": move one of them with .to(device))");
  }
  return chosen->device();
}

}  // namespace

const char* cpp_type_name(ScalarType type) {
  switch (type) {
    case kByte: return "unsigned char";
    case kChar: return "signed char";
    case kShort: return "short int";
    case kInt: return "int";
    case kLong: return "long int";
    case kFloat: return "float";
    case kDouble: return "double";
    case kBool: return "bool";
    case kUInt16: return "short unsigned int";
    case kUInt32: return "unsigned int";
    case kUInt64: return "long unsigned int";
    case kHalf: return "c10::Half";
    case kBFloat16: return "c10::BFloat16";
    case kComplexHalf: return "c10::complex<c10::Half>";
    case kComplexFloat: return "c10::complex<float>";
    case kComplexDouble: return "c10::complex<double>";
    default: return toString(type);
  }
}

int broadcast_sizes(const Tensor* const* inputs, int num_inputs, int64_t* sizes) {
  const IntArrayRef first = inputs[0]->sizes();
  int ndim = static_cast<int>(first.size());
  std::copy(first.begin(), first.end(), sizes);
  for (int k = 1; k < num_inputs; ++k) {
    const IntArrayRef other = inputs[k]->sizes();
    const int n = static_cast<int>(other.size());
    if (n > ndim) {
      std::copy_backward(sizes, sizes + ndim, sizes + n);
      std::fill(sizes, sizes + (n - ndim), int64_t{1});
      ndim = n;
    }
    int64_t* aligned = sizes + (ndim - n);
    for (int d = n; d-- > 0;) {
      if (aligned[d] == other[static_cast<std::size_t>(d)] || other[static_cast<std::size_t>(d)] == 1) continue;
      if (aligned[d] != 1) raise_broadcast(aligned[d], other[static_cast<std::size_t>(d)], ndim - n + d);
      aligned[d] = other[static_cast<std::size_t>(d)];
    }
  }
  return ndim;
}

PointwiseTypes pointwise_types(const PointwiseOp& op, const PointwiseCall& call) {
  ScalarType common;
  if (op.rule == PointwiseRule::First) {
    common = call.inputs[0]->scalar_type();
  } else {
    ResultType type;
    int i = 0;
    if (op.rule == PointwiseRule::BoolFirst) check_condition(op, *call.inputs[i++]);
    for (; i < call.num_inputs; ++i) type.add(*call.inputs[i]);
    for (int k = 0; k < call.num_scalars; ++k)
      if (call.scalars[k]) type.add(*call.scalars[k]);
    common = type.get();
  }
  if (op.rule == PointwiseRule::Float && isIntegralType(common, true)) common = get_default_dtype();
  const PointwiseFacts* facts = op.facts;
  const bool fits = op.classes & class_of(common);
  if (CRESSET_UNLIKELY(facts && facts->no_bool && fits && has_bool(call))) CRESSET_THROW(Error, facts->no_bool);
  if (CRESSET_UNLIKELY(!fits)) raise_no_loop(op, common);
  if (call.num_checked) check_scalars(call, common);
  if (facts) {
    if (facts->check) facts->check(op, call, common);
    const ScalarType first = call.inputs[0]->scalar_type();
    if (facts->equal_types && first != call.inputs[1]->scalar_type()) raise_types(facts->equal_types, first, call.inputs[1]->scalar_type());
  }
  PointwiseTypes types{common, common};
  if (op.rule == PointwiseRule::Compare || op.rule == PointwiseRule::ToBool) types.result = kBool;
  if (op.rule == PointwiseRule::Abs) types.result = toRealValueType(common);
  return types;
}

void check_numbers_fit(const PointwiseOp&, const PointwiseCall& call, ScalarType common) {
  for (int i = 0; i < call.num_scalars; ++i)
    if (call.scalars[i]) check_number(*call.scalars[i], common);
  for (int i = 0; i < call.num_checked; ++i) check_number(*call.checked[i].value, common);
}

void order_dimensions(const int64_t* sizes, int ndim, const int64_t* const* strides, int num_operands, int* order) {
  for (int i = 0; i < ndim; ++i) order[i] = i;
  // > 0: dimension a must be outside of b; < 0: they are in the right order; 0: no operand tells.
  const auto compare = [&](int inner, int outer) {
    for (int k = 0; k < num_operands; ++k) {
      const int64_t s_inner = strides[k][inner], s_outer = strides[k][outer];
      if (s_inner == 0 || s_outer == 0) continue;
      if (s_inner != s_outer) return s_inner < s_outer ? -1 : 1;
      if (sizes[inner] > sizes[outer]) return 1;
    }
    return 0;
  };
  // Insertion from the innermost dimension outwards; ties keep row-major order.
  for (int i = ndim - 2; i >= 0; --i) {
    int at = i;
    for (int j = i + 1; j < ndim; ++j) {
      const int c = compare(order[j], order[at]);
      if (c > 0) {
        std::swap(order[j], order[at]);
        at = j;
      } else if (c < 0) {
        break;
      }
    }
  }
}

void aligned_strides(const Tensor& tensor, const int64_t* sizes, int ndim, int64_t* strides) {
  const IntArrayRef own_sizes = tensor.sizes(), own = tensor.strides();
  const int lead = ndim - static_cast<int>(own.size());
  for (int d = 0; d < ndim; ++d) {
    const std::size_t at = static_cast<std::size_t>(d - lead);
    strides[d] = d < lead || (own_sizes[at] == 1 && sizes[d] != 1) ? 0 : own[at];
  }
}

std::optional<DimVector> ordered_strides(IntArrayRef sizes, const int64_t* const* strides, int num_operands) {
  const int ndim = static_cast<int>(sizes.size());
  int order[kMaxDims];
  order_dimensions(sizes.data(), ndim, strides, num_operands, order);
  DimVector result(sizes.size());
  int64_t next = 1;
  bool row_major = true;
  for (int i = ndim; i-- > 0;) {
    row_major &= order[i] == i;
    result[static_cast<std::size_t>(order[i])] = next;
    next *= std::max<int64_t>(sizes[static_cast<std::size_t>(order[i])], 1);
  }
  if (row_major) return std::nullopt;
  return result;
}

std::optional<DimVector> pointwise_strides(const PointwiseCall& call, IntArrayRef sizes) {
  const int n = call.num_inputs;
  bool same = true;
  for (int i = 0; i < n && same; ++i) same = call.inputs[i]->sizes() == sizes;
  if (same) {
    const auto all = [&](MemoryFormat format) {
      for (int i = 0; i < n; ++i)
        if (!call.inputs[i]->is_contiguous(format)) return false;
      return true;
    };
    if (all(MemoryFormat::Contiguous)) return std::nullopt;
    if (sizes.size() == 4 && all(MemoryFormat::ChannelsLast)) return strides_for(sizes, MemoryFormat::ChannelsLast);
    const IntArrayRef first = call.inputs[0]->strides();
    bool equal = call.inputs[0]->is_non_overlapping_and_dense();
    for (int i = 1; i < n && equal; ++i) equal = call.inputs[i]->strides() == first;
    if (equal) return DimVector(first);
  }
  const int ndim = static_cast<int>(sizes.size());
  if (ndim < 2) return std::nullopt;
  int64_t buffers[kMaxPointwiseInputs][kMaxDims];
  const int64_t* strides[kMaxPointwiseInputs];
  for (int i = 0; i < n; ++i) {
    aligned_strides(*call.inputs[i], sizes.data(), ndim, buffers[i]);
    strides[i] = buffers[i];
  }
  return ordered_strides(sizes, strides, n);
}

std::optional<DimVector> preserved_strides(const Tensor& self) {
  if (self.has_storage() && self.is_non_overlapping_and_dense()) {
    DimVector strides(self.strides());
    if (self.is_contiguous() && strides == contiguous_strides(self.sizes())) return std::nullopt;
    return strides;
  }
  const Tensor* const inputs[] = {&self};
  return pointwise_strides({.inputs = inputs, .num_inputs = 1}, self.sizes());
}

Tensor pointwise_allocate(const PointwiseOp& op, const PointwiseCall& call) {
  const Device device = common_device(op, call);
  const PointwiseTypes types = pointwise_types(op, call);
  const DimVector sizes = broadcast(call);
  return allocate({sizes, types.result, device, pointwise_strides(call, sizes)}, device);
}

bool has_internal_overlap(const Tensor& tensor) {
  if (tensor.is_non_overlapping_and_dense()) return false;
  const IntArrayRef sizes = tensor.sizes(), strides = tensor.strides();
  for (std::size_t d = 0; d < sizes.size(); ++d)
    if (sizes[d] > 1 && strides[d] == 0) return true;
  return false;
}

bool partially_overlaps(const Tensor& a, const Tensor& b) {
  if (a.is_same(b) || !a.is_alias_of(b) || a.numel() == 0 || b.numel() == 0) return false;
  if (!a.is_non_overlapping_and_dense() || !b.is_non_overlapping_and_dense()) return false;
  const auto begin = [](const Tensor& t) { return t.storage_offset() * t.element_size(); };
  const auto end = [&](const Tensor& t) { return begin(t) + t.numel() * t.element_size(); };
  if (begin(a) == begin(b) && end(a) == end(b)) return a.strides() != b.strides();
  return begin(a) < end(b) && begin(b) < end(a);
}

void check_no_internal_overlap(const Tensor& tensor) {
  CRESSET_CHECK(!has_internal_overlap(tensor),
                "unsupported operation: more than one element of the written-to tensor refers to a single memory location. Please clone() "
                "the tensor before performing the operation.");
}

void check_no_partial_overlap(const Tensor& written, const Tensor& input) {
  CRESSET_CHECK(!partially_overlaps(written, input),
                "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory location. "
                "Please clone() the tensor before performing the operation.");
}

void pointwise_prepare_out(const PointwiseOp& op, const PointwiseCall& call, const Tensor& out, bool in_place) {
  check_no_internal_overlap(out);  // before shapes and types, in PyTorch's order
  for (int i = 0; i < call.num_inputs; ++i) check_no_partial_overlap(out, *call.inputs[i]);
  const Device device = common_device(op, call);
  const PointwiseTypes types = pointwise_types(op, call);
  bool scalars_only = true;
  for (int i = 0; i < call.num_inputs; ++i) scalars_only &= call.inputs[i]->dim() == 0 && call.inputs[i]->is_cpu();
  CRESSET_CHECK(out.device() == device || scalars_only, "Expected all tensors to be on the same device, but found at least two devices, ",
                out.device(), " and ", device, "! (", op.name, ": the operands and the result must be on one device)");
  const DimVector sizes = broadcast(call);
  const TensorSpec spec{sizes, types.result, device, pointwise_strides(call, sizes)};
  CRESSET_CHECK(!in_place || op.rule != PointwiseRule::Abs || !isComplexType(types.common), "In-place ", op.name,
                " is not supported for complex tensors.");
  if (in_place) {
    check_self(op.name, spec, out);
  } else {
    // Magnitudes of complex numbers may be written to wider, narrower and complex tensors, those of real ones only to their own type.
    const bool of_complex = op.rule == PointwiseRule::Abs && isComplexType(types.common);
    check_out(op.name, types.result, out, of_complex ? OutRule(OutDtype::Castable) : op.out_dtype);
    // An operand that becomes larger would lose what is read.
    if (out.sizes() != IntArrayRef(sizes))
      for (int i = 0; i < call.num_inputs; ++i)
        CRESSET_CHECK(!shares_storage(*call.inputs[i], out), "output with shape ", out.sizes(), " doesn't match the broadcast shape ",
                      sizes);
    prepare_out(spec, out);
  }
}

}  // namespace cresset::ops
