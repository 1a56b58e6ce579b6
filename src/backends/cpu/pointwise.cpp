// Pointwise execution: a short path for plain contiguous operands, a planned traversal for everything else.
#include "backends/cpu/pointwise.h"

#include <algorithm>
#include <cstring>

#include <cresset/base/parallel.h>

#include "backends/cpu/convert.h"
#include "backends/cpu/strided.h"
#include "ops/promotion.h"

namespace cresset::cpu {
namespace {

using ops::DtypeRule;

PointwiseLoop loop_of(const PointwiseKernel& kernel, ComputeType type) {
  const PointwiseLoops* loops = kernel.loops[static_cast<int>(isa())];
  return (*loops)[static_cast<int>(type)];
}

ScalarType result_of(DtypeRule rule, ScalarType common) {
  if (rule == DtypeRule::Compare || rule == DtypeRule::ToBool) return kBool;
  return rule == DtypeRule::Abs ? toRealValueType(common) : common;
}

// Operands that need no plan: contiguous CPU tensors of one size and one type that loops read as it is. Gives the loop, or null.
PointwiseLoop plain_loop(const PointwiseKernel& kernel, const ops::PointwiseCall& call) {
  const TensorImpl& first = *call.inputs[0]->impl();
  const ScalarType type = first.dtype();
  const ComputeType compute = compute_type(type);
  if (!first.is_contiguous() || first.device_type() != kCPU || scalar_type(compute) != type || call.num_scalars) return nullptr;
  for (int i = 1; i < call.num_inputs; ++i) {
    const TensorImpl& other = *call.inputs[i]->impl();
    if (other.dtype() != type || !other.is_contiguous() || other.device_type() != kCPU || other.sizes() != first.sizes()) return nullptr;
  }
  const bool floating = isFloatingType(type);
  for (int i = 0; i < call.num_checked; ++i)
    if (!call.checked[i].value->isIntegral(false) && !(floating && call.checked[i].value->isFloatingPoint())) return nullptr;
  const DtypeRule rule = kernel.op->rule;
  if (rule == DtypeRule::BoolFirst || (rule == DtypeRule::Float && !floating && !isComplexType(type))) return nullptr;
  return loop_of(kernel, compute);
}

void run_plain(PointwiseLoop loop, const Tensor& out, const ops::PointwiseCall& call, const void* params) {
  void* pointers[kMaxOperands];
  pointers[0] = out.data_ptr();
  for (int i = 0; i < call.num_inputs; ++i) pointers[i + 1] = call.inputs[i]->data_ptr();
  const int64_t n = out.numel();
  if (n < 2 * kParallelGrain) {
    loop(pointers, n, params);
    return;
  }
  const int count = call.num_inputs + 1;
  int64_t sizes[kMaxOperands];
  sizes[0] = out.element_size();
  for (int k = 1; k < count; ++k) sizes[k] = call.inputs[k - 1]->element_size();
  parallel_for(0, (n + kBlock - 1) / kBlock, kParallelGrain / kBlock, [&](int64_t begin, int64_t end) {
    void* shifted[kMaxOperands];
    for (int k = 0; k < count; ++k) shifted[k] = static_cast<char*>(pointers[k]) + begin * kBlock * sizes[k];
    loop(shifted, std::min(end * kBlock, n) - begin * kBlock, params);
  });
}

// A promoting scalar as one value of the compute type, through the common type.
void convert_scalar(const Scalar& value, ScalarType common, ComputeType compute, void* to) {
  alignas(16) char raw[16], middle[16];
  const ScalarType from = value.type();
  switch (from) {
    case kBool: *reinterpret_cast<bool*>(raw) = value.toBool(); break;
    case kLong: *reinterpret_cast<int64_t*>(raw) = value.toLong(); break;
    case kDouble: *reinterpret_cast<double*>(raw) = value.toDouble(); break;
    default: *reinterpret_cast<std::complex<double>*>(raw) = value.toComplexDouble(); break;
  }
  if (isIntegralType(common) && from == kLong) {
    load_function(from, ComputeType::Int64)(middle, {raw, 0, 0}, 1, 1);
    store_function(ComputeType::Int64, common)({raw, 0, 0}, middle, 1, 1);
    load_function(common, compute)(to, {raw, 0, 0}, 1, 1);
  } else {
    load_function(from, compute)(to, {raw, 0, 0}, 1, 1);
  }
}

void run_planned(const PointwiseKernel& kernel, const ops::PointwiseCall& call, const ops::PointwiseTypes& types, const void* params,
                 const Tensor& out) {
  const ComputeType compute = compute_type(types.common);
  const PointwiseLoop loop = loop_of(kernel, compute);
  const ScalarType loop_result = result_of(kernel.op->rule, scalar_type(compute));
  Traversal traversal;
  traversal.set_sizes(out.sizes());
  traversal.add(out, compute_type(loop_result));
  for (int i = 0; i < call.num_inputs; ++i) {
    const Tensor& input = *call.inputs[i];
    CRESSET_CHECK(input.is_cpu(), "Expected all tensors to be on the same device, but found at least two devices, cpu and ", input.device(),
                  "! (", kernel.op->name, ": move one of them with .to(device))");
    if (i == 0 && kernel.op->rule == DtypeRule::BoolFirst) {
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
  traversal.run(loop, params);
}

// The result type is stored as it is in out, or out is of the type loops write and nothing is rounded on the way.
bool stores_exactly(const PointwiseKernel& kernel, const ops::PointwiseTypes& types, const Tensor& out) {
  return out.scalar_type() == types.result || result_of(kernel.op->rule, scalar_type(compute_type(types.common))) == types.result;
}

CRESSET_NOINLINE Tensor pointwise_planned(const PointwiseKernel& kernel, const ops::PointwiseCall& call, const void* params) {
  Tensor out = ops::pointwise_allocate(*kernel.op, call);
  CRESSET_CHECK(out.is_cpu(), "Expected all tensors to be on the same device, but found at least two devices, cpu and ", out.device(), "! (",
                kernel.op->name, ": move one of them with .to(device))");
  run_planned(kernel, call, ops::pointwise_types(*kernel.op, call), params, out);
  return out;
}

CRESSET_NOINLINE void write_planned(const PointwiseKernel& kernel, const ops::PointwiseCall& call, const void* params, const Tensor& out,
                                    bool in_place) {
  ops::pointwise_prepare_out(*kernel.op, call, out, in_place);
  CRESSET_CHECK(out.is_cpu(), "Expected all tensors to be on the same device, but found at least two devices, cpu and ", out.device(), "! (",
                kernel.op->name, ": the operands and the result must be on one device)");
  const ops::PointwiseTypes types = ops::pointwise_types(*kernel.op, call);
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
bool plain_target(const PointwiseKernel& kernel, const ops::PointwiseCall& call, const Tensor& out) {
  const TensorImpl& target = *out.impl();
  if (!target.is_contiguous() || target.device_type() != kCPU || target.sizes() != call.inputs[0]->sizes() ||
      target.dtype() != result_of(kernel.op->rule, call.inputs[0]->scalar_type()))
    return false;
  for (int i = 0; i < call.num_inputs; ++i)
    if (!out.is_same(*call.inputs[i]) && out.is_alias_of(*call.inputs[i])) return false;
  return true;
}

}  // namespace

Tensor pointwise(const PointwiseKernel& kernel, const ops::PointwiseCall& call, const void* params) {
  const PointwiseLoop loop = plain_loop(kernel, call);
  if (CRESSET_UNLIKELY(!loop)) return pointwise_planned(kernel, call, params);
  const Tensor& first = *call.inputs[0];
  Tensor out = detail::empty_cpu(first.sizes(), result_of(kernel.op->rule, first.scalar_type()));
  run_plain(loop, out, call, params);
  return out;
}

void pointwise_out(const PointwiseKernel& kernel, const ops::PointwiseCall& call, const void* params, const Tensor& out) {
  const PointwiseLoop loop = plain_loop(kernel, call);
  if (loop && plain_target(kernel, call, out))
    run_plain(loop, out, call, params);
  else
    write_planned(kernel, call, params, out, false);
}

void pointwise_inplace(const PointwiseKernel& kernel, const ops::PointwiseCall& call, const void* params, const Tensor& self) {
  const PointwiseLoop loop = plain_loop(kernel, call);
  if (loop && plain_target(kernel, call, self))
    run_plain(loop, self, call, params);
  else
    write_planned(kernel, call, params, self, true);
}

}  // namespace cresset::cpu
