// Broadcasting, promotion, output strides and the checks of pointwise operators.
#include "ops/pointwise.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include "ops/ordered_strides.h"
#include "ops/promotion.h"
#include "ops/structured.h"

namespace cresset::ops {
namespace {

uint8_t class_of(ScalarType type) {
  if (type == kBool) return kBoolClass;
  if (CRESSET_UNLIKELY(is_stored_type(type)))
    return isComplexType(type) ? kComplexHalfClass : isFloat8Type(type) ? kFloat8Class : kUnsignedClass;
  if (isIntegralType(type)) return kIntClass;
  return isComplexType(type) ? kComplexClass : kFloatClass;
}

// Operators whose refusal of a class has words of its own.
struct Refusal {
  const char* name;
  uint8_t classes;
  const char* text;
};
constexpr const char* kIntegerAddcdiv =
    "Integer division with addcdiv is no longer supported, and in a future  release addcdiv will perform a true division of tensor1 and "
    "tensor2. The historic addcdiv behavior can be implemented as (input + value * torch.trunc(tensor1 / tensor2)).to(input.dtype) for "
    "integer inputs and as (input + value * tensor1 / tensor2) for float inputs. The future addcdiv behavior is just the latter "
    "implementation: (input + value * tensor1 / tensor2), for all dtypes.";
constexpr Refusal kRefusals[] = {
    {"neg", kBoolClass,
     "Negation, the `-` operator, on a bool tensor is not supported. If you are trying to invert a mask, use the `~` or "
     "`logical_not()` operator instead."},
    {"relu", kBoolClass, "Boolean inputs not supported for relu"},
    {"addcdiv", kIntClass, kIntegerAddcdiv},
    {"maximum", kComplexClass, "maximum not implemented for complex tensors."},
    {"minimum", kComplexClass, "minimum not implemented for complex tensors."},
    {"fmax", kComplexClass, "fmax not implemented for complex tensors."},
    {"fmin", kComplexClass, "fmin not implemented for complex tensors."},
};

// Names that the refusal of a type shows instead of the operator's.
constexpr std::pair<const char*, const char*> kKernelNames[] = {
    {"floor_divide", "div_floor"},     {"trunc_divide", "div_trunc"}, {"bitwise_left_shift", "lshift"},
    {"bitwise_right_shift", "rshift"}, {"clamp_min", "maximum"},      {"clamp_max", "minimum"},
};

// "special_zeta" and "log_sigmoid_elements" are shown as "zeta" and "log_sigmoid".
std::string kernel_name(std::string_view name) {
  for (const auto& [op, shown] : kKernelNames)
    if (name == op) return shown;
  if (name.starts_with("special_")) name.remove_prefix(std::strlen("special_"));
  if (name.ends_with("_elements")) name.remove_suffix(std::strlen("_elements"));
  return std::string(name);
}

// Operators that do not promote their first two operands.
void check_equal_types(const PointwiseOp& op, const PointwiseCall& call) {
  const ScalarType a = call.inputs[0]->scalar_type(), b = call.inputs[1]->scalar_type();
  const std::string_view name = op.name;
  if (call.num_inputs == 3 && name == "lerp")
    CRESSET_CHECK(call.inputs[2]->scalar_type() == a || call.inputs[2]->dim() == 0, "expected dtype ", cpp_type_name(a),
                  " for `weight` but got dtype ", cpp_type_name(call.inputs[2]->scalar_type()));
  if (a == b) return;
  CRESSET_CHECK(name != "lerp", "expected dtype ", cpp_type_name(a), " for `end` but got dtype ", cpp_type_name(b));
  CRESSET_CHECK(name != "heaviside", "heaviside is not yet implemented for tensors with different dtypes.");
  CRESSET_CHECK(name != "isclose_values", a, " did not match ", b);
  CRESSET_CHECK(name != "_prelu_kernel", "Found dtype ", b, " but expected ", a);
}

bool takes_bool(const PointwiseCall& call) {
  for (int i = 0; i < call.num_inputs; ++i)
    if (call.inputs[i]->scalar_type() != kBool) return false;
  for (int i = 0; i < call.num_scalars; ++i)
    if (call.scalars[i] && !call.scalars[i]->isBoolean()) return false;
  return true;
}

[[noreturn]] CRESSET_COLD void raise_no_loop(const PointwiseOp& op, ScalarType common) {
  for (const Refusal& refusal : kRefusals)
    if (std::strcmp(op.name, refusal.name) == 0 && (refusal.classes & class_of(common))) CRESSET_THROW(Error, refusal.text);
  const std::string_view name = op.name;
  if (isComplexType(common) && (name == "floor" || name == "ceil" || name == "trunc"))
    CRESSET_THROW(NotImplementedError, name, " is not supported for complex inputs");
  if (isComplexType(common) && name == "clamp") CRESSET_THROW(NotImplementedError, "clamp is not supported for complex types");
  CRESSET_THROW(NotImplementedError, "\"", kernel_name(name), "_cpu\" not implemented for '", common, "'");
}

// Two integral factors are refused although self, and so the result, is floating.
CRESSET_COLD void check_addcdiv(const PointwiseCall& call) {
  const auto integral = [&](int i) { return isIntegralType(call.inputs[i]->scalar_type(), true); };
  CRESSET_CHECK(!integral(1) || !integral(2), kIntegerAddcdiv);
}

// sub and rsub refuse any bool operand, not only when all are bool.
bool is_subtraction(const PointwiseOp& op) { return std::strcmp(op.name, "sub") == 0 || std::strcmp(op.name, "rsub") == 0; }

CRESSET_COLD void check_subtraction(const PointwiseOp& op, const PointwiseCall& call) {
  if (!is_subtraction(op)) return;
  CRESSET_CHECK(!takes_bool(call),
                "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or `logical_xor()` operator instead.");
  bool any = false;
  for (int i = 0; i < call.num_inputs; ++i) any |= call.inputs[i]->scalar_type() == kBool;
  for (int i = 0; i < call.num_scalars; ++i) any |= call.scalars[i]->isBoolean();
  CRESSET_CHECK(!any,
                "Subtraction, the `-` operator, with a bool tensor is not supported. If you are trying to invert a mask, use the `~` or "
                "`logical_not()` operator instead.");
}

// Limits must be numbers of the tensor's type.
void check_limits(const PointwiseOp& op, const PointwiseCall& call, ScalarType common) {
  if (!isIntegralType(common) || !std::string_view(op.name).starts_with("clamp")) return;
  for (int i = 0; i < call.num_scalars; ++i) {
    if (!call.scalars[i]) continue;
    switch (common) {
      case kByte: call.scalars[i]->to<uint8_t>(); break;
      case kChar: call.scalars[i]->to<int8_t>(); break;
      case kShort: call.scalars[i]->to<int16_t>(); break;
      case kInt: call.scalars[i]->to<int32_t>(); break;
      case kUInt16: call.scalars[i]->to<uint16_t>(); break;
      case kUInt32: call.scalars[i]->to<uint32_t>(); break;
      case kUInt64: call.scalars[i]->to<uint64_t>(); break;
      default: break;
    }
  }
}

// alpha and beta of these are numbers of the formula, not factors of an operand.
bool is_activation(const PointwiseOp& op) {
  const std::string_view name = op.name;
  return name == "elu" || name.starts_with("softplus");
}

void check_scalars(const PointwiseOp& op, const PointwiseCall& call, ScalarType common) {
  for (int i = 0; i < call.num_checked; ++i) {
    const CheckedScalar& checked = call.checked[i];
    CRESSET_CHECK(common != kByte || (std::strcmp(checked.name, "min_val") != 0 && std::strcmp(checked.name, "max_val") != 0) ||
                      checked.value->toDouble() > -1,
                  "cannot do hardtanh on an unsigned type with negative limits");
    if (std::strcmp(checked.name, "alpha") != 0 && std::strcmp(checked.name, "beta") != 0) continue;
    CRESSET_CHECK(!checked.value->isBoolean() || common == kBool || is_activation(op), "Boolean ", checked.name,
                  " only supported for Boolean results.");
    CRESSET_CHECK(isFloatingType(common) || isComplexType(common) || checked.value->isIntegral(true),
                  "For integral input tensors, argument ", checked.name, " must not be a floating point number.");
    CRESSET_CHECK(isComplexType(common) || !checked.value->isComplex(), "For non-complex input tensors, argument ", checked.name,
                  " must not be a complex number.");
  }
}

void check_condition(const PointwiseOp& op, const Tensor& condition) {
  if (condition.scalar_type() == kByte) {
    CRESSET_WARN_ONCE("where received a uint8 condition tensor. This behavior is deprecated. Use a boolean condition instead.");
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
  if (op.rule == DtypeRule::First) {
    common = call.inputs[0]->scalar_type();
  } else {
    ResultType type;
    int i = 0;
    if (op.rule == DtypeRule::BoolFirst) check_condition(op, *call.inputs[i++]);
    for (; i < call.num_inputs; ++i) type.add(*call.inputs[i]);
    for (int k = 0; k < call.num_scalars; ++k)
      if (call.scalars[k]) type.add(*call.scalars[k]);
    common = type.get();
  }
  if (op.rule == DtypeRule::Float && isIntegralType(common, true)) common = get_default_dtype();
  CRESSET_CHECK(call.num_scalars < 2 || call.scalars[0] || call.scalars[1], "torch.", op.name,
                ": At least one of 'min' or 'max' must not be None");
  if (CRESSET_UNLIKELY(is_subtraction(op))) check_subtraction(op, call);
  if (CRESSET_UNLIKELY(call.num_inputs == 3 && std::strcmp(op.name, "addcdiv") == 0)) check_addcdiv(call);
  if (CRESSET_UNLIKELY(!(op.classes & class_of(common)))) raise_no_loop(op, common);
  if (call.num_checked) check_scalars(op, call, common);
  if (call.num_scalars) check_limits(op, call, common);
  if (call.num_inputs > 1) check_equal_types(op, call);
  PointwiseTypes types{common, common};
  if (op.rule == DtypeRule::Compare || op.rule == DtypeRule::ToBool) types.result = kBool;
  if (op.rule == DtypeRule::Abs) types.result = toRealValueType(common);
  return types;
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
  const Device device = common_device(op, call);
  const PointwiseTypes types = pointwise_types(op, call);
  bool scalars_only = true;
  for (int i = 0; i < call.num_inputs; ++i) scalars_only &= call.inputs[i]->dim() == 0 && call.inputs[i]->is_cpu();
  CRESSET_CHECK(out.device() == device || scalars_only, "Expected all tensors to be on the same device, but found at least two devices, ",
                out.device(), " and ", device, "! (", op.name, ": the operands and the result must be on one device)");
  const DimVector sizes = broadcast(call);
  const TensorSpec spec{sizes, types.result, device, pointwise_strides(call, sizes)};
  CRESSET_CHECK(!in_place || op.rule != DtypeRule::Abs || !isComplexType(types.common), "In-place ", op.name,
                " is not supported for complex tensors.");
  if (in_place) {
    check_self(op.name, spec, out);
  } else {
    // Magnitudes of complex numbers may be written to wider, narrower and complex tensors, those of real ones only to their own type.
    const bool of_complex = op.rule == DtypeRule::Abs && isComplexType(types.common);
    check_out(op.name, types.result, out, of_complex ? OutDtype::Castable : op.out_dtype);
    // An operand that becomes larger would lose what is read.
    if (out.sizes() != IntArrayRef(sizes))
      for (int i = 0; i < call.num_inputs; ++i)
        CRESSET_CHECK(!shares_storage(*call.inputs[i], out), "output with shape ", out.sizes(), " doesn't match the broadcast shape ",
                      sizes);
    prepare_out(spec, out);
  }
  for (int i = 0; i < call.num_inputs; ++i) check_no_partial_overlap(out, *call.inputs[i]);
}

}  // namespace cresset::ops
