// Pointwise execution: a short path for plain contiguous operands, a planned traversal for everything else.
#include "backends/cpu/pointwise.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include <cresset/base/parallel.h>

#include "backends/cpu/convert.h"
#include "backends/cpu/strided.h"
#include "ops/shared/promotion.h"

namespace cresset::cpu {
namespace {

PointwiseLoop loop_of(const PointwiseKernel& kernel, ComputeType type) {
  const PointwiseLoops* loops = kernel.loops[static_cast<int>(isa())];
  return (*loops)[static_cast<int>(type)];
}
PointwiseLoop repeating_loop_of(const PointwiseKernel& kernel, ComputeType type) {
  const PointwiseLoops* loops = kernel.repeating_loops[static_cast<int>(isa())];
  return loops ? (*loops)[static_cast<int>(type)] : nullptr;
}
PointwiseLoop reduced_loop_of(const PointwiseKernel& kernel, ScalarType type, bool repeating = false) {
  const ReducedLoops* loops = kernel.reduced_loops[static_cast<int>(isa())];
  return loops && (type == kHalf || type == kBFloat16) ? (*loops)[2 * repeating + (type == kBFloat16)] : nullptr;
}

ScalarType result_of(PointwiseRule rule, ScalarType common) {
  if (rule == PointwiseRule::Compare || rule == PointwiseRule::ToBool) return kBool;
  return rule == PointwiseRule::Abs ? toRealValueType(common) : common;
}

// A promoting scalar as one value of the compute type, through the common type.
void convert_scalar(const Scalar& value, ScalarType common, ComputeType compute, void* to) {
  alignas(16) char raw[16], middle[16];
  const ScalarType from = value.type();
  switch (from) {
    case kBool: *reinterpret_cast<bool*>(raw) = value.toBool(); break;
    case kLong: *reinterpret_cast<int64_t*>(raw) = value.toLong(); break;
    case kUInt64: *reinterpret_cast<uint64_t*>(raw) = value.toUInt64(); break;
    case kDouble: *reinterpret_cast<double*>(raw) = value.toDouble(); break;
    default: *reinterpret_cast<std::complex<double>*>(raw) = value.toComplexDouble(); break;
  }
  if (isIntegralType(common) && isIntegralType(from)) {
    load_function(from, ComputeType::Int64)(middle, {raw, 0, 0}, 1, 1);
    store_function(ComputeType::Int64, common)({raw, 0, 0}, middle, 1, 1);
    load_function(common, compute)(to, {raw, 0, 0}, 1, 1);
  } else {
    load_function(from, compute)(to, {raw, 0, 0}, 1, 1);
  }
}

constexpr double kGreatestHalf = 65504;

// bool < integral < floating < complex: a number or zero-dimensional operand up to the category of a tensor leaves its type
// alone. Bool operands take the planned way, where operators may refuse them.
constexpr int category(ScalarType type) {
  if (type == kBool) return 0;
  if (isIntegralType(type)) return 1;
  return isComplexType(type) ? 3 : 2;
}

// A call that needs no plan: contiguous CPU tensors of one size and one type that loops read as it is, and numbers.
struct Plain {
  PointwiseLoop loop;
  const Tensor* full;  // an operand of the result's sizes
  int64_t n;
  int count;  // result and operands
  int num_constants;
  bool repeated = false;     // some operand is one element for the whole call
  bool last_number = false;  // it is the last one, and the loop takes it as one float
  bool repeats[kMaxOperands];
  int64_t element[kMaxOperands];
  void* pointers[kMaxOperands + ops::kMaxPointwiseScalars];
  alignas(16) char constants[ops::kMaxPointwiseScalars][16];
  float last;

  bool prepare(const PointwiseKernel& kernel, const ops::PointwiseCall& call);
  void run(const Tensor& out, const ops::PointwiseCall& call, const void* params);

 private:
  ComputeType compute_;
  ScalarType common_;
  CRESSET_NOINLINE void run_repeated(const ops::PointwiseCall& call, const void* params);
};

inline bool Plain::prepare(const PointwiseKernel& kernel, const ops::PointwiseCall& call) {
  full = call.inputs[0];
  if (CRESSET_UNLIKELY(full->impl()->dim() == 0 && call.num_inputs > 1 && call.inputs[1]->dim() > 0)) full = call.inputs[1];
  const TensorImpl& first = *full->impl();
  common_ = first.dtype();
  compute_ = compute_type(common_);
  if (!first.is_contiguous() || first.device_type() != kCPU || first.is_wrapped_number()) return false;
  const bool reduced = scalar_type(compute_) != common_;
  if (reduced && !reduced_loop_of(kernel, common_)) return false;
  const PointwiseRule rule = kernel.op->rule;
  const int own = category(common_);
  if (rule == PointwiseRule::BoolFirst || (rule == PointwiseRule::Float && own < 2) ||
      (rule == PointwiseRule::First && full != call.inputs[0]))
    return false;
  for (int i = 0; i < call.num_inputs; ++i) {
    const TensorImpl& other = *call.inputs[i]->impl();
    repeats[i + 1] = false;
    if (&other == &first) continue;
    if (other.device_type() != kCPU) return false;
    if (other.dtype() == common_ && other.is_contiguous() && other.sizes() == first.sizes()) continue;
    if (kernel.op->compares_types() && other.dtype() != common_) return false;
    if (other.dim() != 0 || category(other.dtype()) > own || other.dtype() == kBool || (first.dim() == 0 && !other.is_wrapped_number()))
      return false;
    repeats[i + 1] = repeated = true;
  }
  int absent = 0;
  for (int i = 0; i < call.num_scalars; ++i) {
    if (!call.scalars[i]) {
      ++absent;
      continue;
    }
    const Scalar& number = *call.scalars[i];
    if (category(number.type()) > own || number.isBoolean() || number.isUnsigned()) return false;
    if (common_ == kInt && number.toLong() != static_cast<int32_t>(number.toLong())) return false;  // wraps or is refused
    if (common_ == kFloat && number.isFloatingPoint() && !cresset::detail::fits<float>(number.toDouble())) return false;  // may be refused
    if (reduced && !(std::abs(number.toDouble()) <= kGreatestHalf)) return false;                                         // the same
  }
  if (absent && absent == call.num_scalars) return false;
  for (int i = 0; i < call.num_checked; ++i)
    if (!call.checked[i].value->isIntegral(false) && !(own == 2 && call.checked[i].value->isFloatingPoint())) return false;
  if (own == 0 && call.num_checked) return false;
  if (reduced && repeated) {
    for (int i = 1; i < call.num_inputs; ++i)
      if (repeats[i]) return false;
    last_number = std::exchange(repeated, false);
  }
  for (int i = 0; reduced && i < call.num_checked; ++i)
    if (!(std::abs(call.checked[i].value->toDouble()) <= kGreatestHalf)) return false;  // may be refused
  loop = reduced ? reduced_loop_of(kernel, common_, last_number) : loop_of(kernel, compute_);
  if (!loop) return false;
  n = first.numel();
  count = call.num_inputs + 1;
  num_constants = call.num_scalars;
  return true;
}

inline void Plain::run(const Tensor& out, const ops::PointwiseCall& call, const void* params) {
  pointers[0] = out.data_ptr();
  for (int i = 0; i < call.num_inputs; ++i) pointers[i + 1] = call.inputs[i]->data_ptr();
  for (int i = 0; i < num_constants; ++i) {
    pointers[count + i] = call.scalars[i] ? constants[i] : nullptr;
    if (call.scalars[i]) convert_scalar(*call.scalars[i], common_, compute_, constants[i]);
  }
  if (last_number) {  // numbers are not rounded to the type of memory
    load_function(call.inputs[count - 2]->scalar_type(), compute_)(&last, {static_cast<char*>(pointers[count - 1]), 0, 0}, 1, 1);
    pointers[count - 1] = &last;
  }
  if (!repeated && n < 2 * kParallelGrain) {
    loop(pointers, n, params);
    return;
  }
  element[0] = out.element_size();
  for (int k = 1; k < count; ++k) element[k] = last_number && k == count - 1 ? 0 : call.inputs[k - 1]->element_size();
  if (repeated) {
    run_repeated(call, params);
    return;
  }
  parallel_for(0, (n + kBlock - 1) / kBlock, kParallelGrain / kBlock, [&](int64_t begin, int64_t end) {
    void* shifted[kMaxOperands + ops::kMaxPointwiseScalars];
    for (int k = 0; k < count; ++k) shifted[k] = static_cast<char*>(pointers[k]) + begin * kBlock * element[k];
    for (int k = count; k < count + num_constants; ++k) shifted[k] = pointers[k];
    loop(shifted, std::min(end * kBlock, n) - begin * kBlock, params);
  });
}

void Plain::run_repeated(const ops::PointwiseCall& call, const void* params) {
  alignas(64) char blocks[kMaxOperands][kBlock * 16];
  const int64_t width = std::min(n, kBlock);
  for (int k = 1; k < count; ++k) {
    if (!repeats[k]) continue;
    const ScalarType type = call.inputs[k - 1]->scalar_type();
    alignas(16) char rounded[16];
    char* source = static_cast<char*>(pointers[k]);
    if (type != common_ && category(common_) == 1 && category(type) == 1) {
      // An integer of another type wraps into the common one, which is the compute type here.
      load_function(type, compute_)(rounded, {source, 0, 0}, 1, 1);
      load_function(common_, compute_)(blocks[k], {rounded, 0, 0}, width, 1);
    } else {
      load_function(type, compute_)(blocks[k], {source, 0, 0}, width, 1);
    }
    pointers[k] = blocks[k];
    element[k] = 0;
  }
  const auto range = [&](int64_t begin, int64_t end) {
    void* shifted[kMaxOperands + ops::kMaxPointwiseScalars];
    for (int64_t at = begin * kBlock, last = std::min(end * kBlock, n); at < last; at += kBlock) {
      for (int k = 0; k < count; ++k) shifted[k] = static_cast<char*>(pointers[k]) + at * element[k];
      for (int k = count; k < count + num_constants; ++k) shifted[k] = pointers[k];
      loop(shifted, std::min(kBlock, last - at), params);
    }
  };
  parallel_for(0, (n + kBlock - 1) / kBlock, kParallelGrain / kBlock, range);
}

void run_planned(const PointwiseKernel& kernel, const ops::PointwiseCall& call, const PointwiseTypes& types, const void* params,
                 const Tensor& out) {
  // Loops see the bits of uint64 as int64; what is asked of a single number depends on whether it is zero alone.
  const bool only_zero_counts = types.common == kUInt64 && kernel.op->rule == PointwiseRule::ToBool;
  const ComputeType compute = only_zero_counts ? ComputeType::Bool : compute_type(types.common);
  const PointwiseLoop loop = loop_of(kernel, compute);
  const ScalarType loop_result = result_of(kernel.op->rule, scalar_type(compute));
  Traversal traversal;
  traversal.set_sizes(out.sizes());
  traversal.add(out, compute_type(loop_result));
  for (int i = 0; i < call.num_inputs; ++i) {
    const Tensor& input = *call.inputs[i];
    CRESSET_CHECK(input.is_cpu(), "Expected all tensors to be on the same device, but found at least two devices, cpu and ", input.device(),
                  "! (", kernel.op->name, ": move one of them with .to(device))");
    if (i == 0 && kernel.op->rule == PointwiseRule::BoolFirst) {
      traversal.add(input, ComputeType::Bool);
      continue;
    }
    // A zero-dimensional integer of another type wraps into the common type first.
    const bool narrows = isIntegralType(types.common) && isIntegralType(input.scalar_type()) && input.scalar_type() != types.common &&
                         element_size(input.scalar_type()) >= element_size(types.common);
    traversal.add(input, compute, narrows && input.numel() == 1 ? types.common : ScalarType::Undefined);
  }
  alignas(16) char scalars[ops::kMaxPointwiseScalars][16];
  traversal.num_constants = call.num_scalars;
  for (int i = 0; i < call.num_scalars; ++i) {
    traversal.constants[i] = call.scalars[i] ? scalars[i] : nullptr;
    if (call.scalars[i]) convert_scalar(*call.scalars[i], types.common, compute, scalars[i]);
  }
  traversal.coalesce();
  traversal.run(loop, params, repeating_loop_of(kernel, compute));
}

// The result type is stored as it is in out, or out is of the type loops write and nothing is rounded on the way.
bool stores_exactly(const PointwiseKernel& kernel, const PointwiseTypes& types, const Tensor& out) {
  return out.scalar_type() == types.result || result_of(kernel.op->rule, scalar_type(compute_type(types.common))) == types.result;
}

CRESSET_NOINLINE Tensor pointwise_planned(const PointwiseKernel& kernel, const ops::PointwiseCall& call, const void* params) {
  Tensor out = ops::pointwise_allocate(*kernel.op, call);
  CRESSET_CHECK(out.is_cpu(), "Expected all tensors to be on the same device, but found at least two devices, cpu and ", out.device(),
                "! (", kernel.op->name, ": move one of them with .to(device))");
  run_planned(kernel, call, ops::pointwise_types(*kernel.op, call), params, out);
  return out;
}

CRESSET_NOINLINE void write_planned(const PointwiseKernel& kernel, const ops::PointwiseCall& call, const void* params, const Tensor& out,
                                    bool in_place) {
  ops::pointwise_prepare_out(*kernel.op, call, out, in_place);
  CRESSET_CHECK(out.is_cpu(), "Expected all tensors to be on the same device, but found at least two devices, cpu and ", out.device(),
                "! (", kernel.op->name, ": the operands and the result must be on one device)");
  const PointwiseTypes types = ops::pointwise_types(*kernel.op, call);
  if (stores_exactly(kernel, types, out)) {
    run_planned(kernel, call, types, params, out);
    return;
  }
  const Tensor exact = detail::empty_cpu(out.sizes(), types.result);
  run_planned(kernel, call, types, params, exact);
  Traversal copy;
  copy.set_sizes(out.sizes());
  copy.add(out, compute_type(types.result));
  copy.add(exact, compute_type(types.result));
  copy.coalesce();
  copy.run(nullptr, nullptr);
}

// Writing into `out` without a plan: it looks like the plain operands and shares memory with none but as a whole.
bool plain_target(const PointwiseKernel& kernel, const ops::PointwiseCall& call, const Plain& plain, const Tensor& out) {
  const TensorImpl &target = *out.impl(), &full = *plain.full->impl();
  if (!target.is_contiguous() || target.device_type() != kCPU || target.sizes() != full.sizes() ||
      target.dtype() != result_of(kernel.op->rule, full.dtype()))
    return false;
  for (int i = 0; i < call.num_inputs; ++i)
    if (!out.is_same(*call.inputs[i]) && out.is_alias_of(*call.inputs[i])) return false;
  return true;
}

}  // namespace

Tensor pointwise(const PointwiseKernel& kernel, const ops::PointwiseCall& call, const void* params) {
  Plain plain;
  if (CRESSET_UNLIKELY(!plain.prepare(kernel, call))) return pointwise_planned(kernel, call, params);
  Tensor out = detail::empty_cpu(plain.full->sizes(), result_of(kernel.op->rule, plain.full->scalar_type()));
  plain.run(out, call, params);
  return out;
}

void pointwise_out(const PointwiseKernel& kernel, const ops::PointwiseCall& call, const void* params, const Tensor& out) {
  Plain plain;
  if (plain.prepare(kernel, call) && plain_target(kernel, call, plain, out))
    plain.run(out, call, params);
  else
    write_planned(kernel, call, params, out, false);
}

void pointwise_inplace(const PointwiseKernel& kernel, const ops::PointwiseCall& call, const void* params, const Tensor& self) {
  Plain plain;
  if (plain.prepare(kernel, call) && plain_target(kernel, call, plain, self))
    plain.run(self, call, params);
  else
    write_planned(kernel, call, params, self, true);
}

}  // namespace cresset::cpu
