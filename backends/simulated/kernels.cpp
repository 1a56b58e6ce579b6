#include "kernels.h"

#include <cresset/core/device_guard.h>
#include <cresset/core/grad_mode.h>
#include <cresset/ops/cpu_fallback.h>
#include <cresset/ops/from_blob.h>
#include <cresset/ops/functions_arith.h>
#include <cresset/ops/functions_copy.h>
#include <cresset/ops/functions_creation.h>

#include "faults.h"
#include "memory.h"
#include "queue.h"

namespace simulated {
namespace {

using namespace cresset;

// The tensor as the worker sees it: the same sizes and strides over the worker's address.
Tensor worker_view(const Tensor& t) {
  if (t.is_cpu() || t.numel() == 0) return t.is_cpu() ? t : cresset::empty(t.sizes(), TensorOptions(t.scalar_type()));
  const std::size_t span = detail::compute_storage_nbytes(t.sizes(), t.strides(), t.itemsize());
  const auto offset = static_cast<std::size_t>(t.storage_offset()) * t.itemsize();
  char* address = device_address(t.storage().data(), offset, span);
  CRESSET_CHECK(address, "simulated: a kernel was given memory outside of its block.");
  return from_blob(address, t.sizes(), t.strides(), TensorOptions(t.scalar_type()));
}

IValue mapped(const IValue& v, Tensor (*f)(const Tensor&)) {
  if (v.isTensor() && v.toTensor().defined()) return f(v.toTensor());
  return v;
}

Tensor on_meta(const Tensor& t) {
  Tensor m = cresset::empty_strided(t.sizes(), t.strides(), TensorOptions(t.scalar_type()).device(kMeta));
  m.unsafeGetTensorImpl()->set_wrapped_number(t.unsafeGetTensorImpl()->is_wrapped_number());
  return m;
}

// The argument that a result is, or none.
std::optional<std::size_t> written_argument(const FunctionSchema& schema, const Argument& result) {
  if (!result.alias || !result.alias->is_write) return std::nullopt;
  for (std::size_t i = 0; i < schema.arguments().size(); ++i)
    if (schema.arguments()[i].alias && schema.arguments()[i].alias->before == result.alias->before) return i;
  return std::nullopt;
}

}  // namespace

bool copy_elements(const cresset_strided_copy& c) {
  const IntArrayRef sizes(c.sizes, static_cast<std::size_t>(c.ndim)), to_strides(c.target_strides, sizes.size()),
      from_strides(c.source_strides, sizes.size());
  const auto to_type = static_cast<ScalarType>(c.target_dtype), from_type = static_cast<ScalarType>(c.source_dtype);
  char* to = device_address(c.target, c.target_offset, detail::compute_storage_nbytes(sizes, to_strides, element_size(to_type)));
  char* from = device_address(c.source, c.source_offset, detail::compute_storage_nbytes(sizes, from_strides, element_size(from_type)));
  CRESSET_CHECK(to && from, "simulated: a copy reaches outside of its block.");
  const Tensor target = from_blob(to, sizes, to_strides, TensorOptions(to_type));
  const Tensor source = from_blob(from, sizes, from_strides, TensorOptions(from_type));
  const auto task = [target, source] {
    const NoGradGuard no_grad;
    Tensor t = target;
    t.copy_(source);
  };
  submit(c.device, c.stream, task, "copy");
  return true;
}

void run_on_device(const OperatorHandle& op, Stack* stack) {
  const std::size_t n = op.schema().arguments().size();
  const Stack arguments(stack->end() - static_cast<std::ptrdiff_t>(n), stack->end());
  std::optional<Device> device;
  for (const IValue& v : arguments) {
    if (!v.isTensor() || !v.toTensor().defined()) continue;
    const Tensor& t = v.toTensor();
    // Mixed devices have an error text of the fallback; so has a tensor of the CPU that is not a number.
    if (t.is_cpu() ? t.dim() > 0 : device && t.device() != *device) return cpu_fallback(op, stack);
    if (!t.is_cpu()) device = t.device();
  }
  CRESSET_CHECK(device, "simulated: ", op.operator_name(), " was called without a tensor of the device.");

  Stack shapes;
  for (const IValue& v : arguments) shapes.push_back(mapped(v, &on_meta));
  op.callBoxed(&shapes);
  Stack results;
  const FunctionSchema& schema = op.schema();
  bool writes = false;
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    const Tensor& shape = shapes[i].toTensor();
    if (const auto argument = written_argument(schema, schema.returns()[i])) {
      Tensor given = arguments[*argument].toTensor();
      if (given.sizes() != shape.sizes()) given.resize_(shape.sizes());
      results.push_back(given);
      writes = true;
    } else {
      results.push_back(cresset::empty_strided(shape.sizes(), shape.strides(), TensorOptions(shape.scalar_type()).device(*device)));
    }
  }

  const auto* guard = impl::getDeviceGuardImpl(device->type());
  const auto queue = in_wrong_queue() ? 0 : static_cast<uint64_t>(guard->getStream(*device).id());
  // Places are those of now: a storage may be resized before the task runs, and its block goes later. The task owns the tensors, too, so
  // that nothing is freed before it has run; not so what is recorded, as the graph lets later steps use the memory of tensors that are
  // gone.
  Stack from = arguments, to = results, owned;
  for (Stack* values : {&from, &to})
    for (IValue& v : *values) v = mapped(v, &worker_view);
  if (!is_recording(device->index(), queue))
    for (const Stack& values : {arguments, results}) owned.insert(owned.end(), values.begin(), values.end());
  const auto task = [op, from, to, writes, owned] {
    const NoGradGuard no_grad;
    const AutoDispatchBelowADInplaceOrView below;
    maybe_fail_task();
    Stack inner = from;
    op.callBoxedForDispatchKey(DispatchKey::CPU, inner);
    for (std::size_t i = 0; i < to.size(); ++i) {
      Tensor result = to[i].toTensor();
      if (!writes) result.copy_(inner[i].toTensor());
      if (is_wrong(op.operator_name().str().c_str())) result.add_(1);
    }
  };
  submit(device->index(), queue, task, op.operator_name().str());
  stack->resize(stack->size() - n);
  for (IValue& v : results) stack->push_back(std::move(v));
}

}  // namespace simulated
