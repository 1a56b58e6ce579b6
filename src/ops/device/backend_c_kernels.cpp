// Kernels in C: the functions a kernel may ask, and the boxed entry that calls it.
#include "ops/device/backend_c_kernels.h"

#include <algorithm>
#include <cstring>

#include <cresset/core/backend.h>
#include <cresset/core/device_guard.h>
#include <cresset/core/limits.h>
#include <cresset/ops/cpu_fallback.h>

#include "ops/shared/structured.h"

struct cresset_call {
  cresset::Stack* stack;
  std::size_t first, count;  // the arguments on the stack
  cresset::Device device;
  std::vector<cresset::IValue> results;

  const cresset::IValue* argument(int32_t i) const {
    return i >= 0 && static_cast<std::size_t>(i) < count ? stack->data() + first + i : nullptr;
  }
};

namespace cresset::ops {
namespace {

// The C interface must not let exceptions through.
template <class F>
cresset_status quietly(F f) noexcept {
  try {
    return f() ? CRESSET_OK : CRESSET_INVALID_ARGUMENT;
  } catch (const OutOfMemoryError&) {
    return CRESSET_OUT_OF_MEMORY;
  } catch (const std::exception&) {
    return CRESSET_INVALID_ARGUMENT;
  }
}

// The caller says how much of the struct it knows.
void describe(const Tensor& t, cresset_tensor* out) {
  cresset_tensor d{};
  d.struct_size = out->struct_size;
  d.defined = t.defined();
  if (t.defined()) {
    d.data = t.data_ptr();
    d.sizes = t.sizes().data();
    d.strides = t.strides().data();
    d.numel = t.numel();
    d.ndim = static_cast<int32_t>(t.dim());
    d.dtype = static_cast<int32_t>(t.scalar_type());
    d.device = t.is_cpu() ? -1 : t.device().index();
    d.contiguous = t.is_contiguous();
  }
  std::memcpy(out, &d, std::min(out->struct_size, sizeof d));
}

const Tensor* tensor_at(const cresset_call* call, int32_t i) {
  const IValue* v = call->argument(i);
  return v && v->isTensor() ? &v->toTensor() : nullptr;
}
const IValue* element_at(const cresset_call* call, int32_t i, int64_t k) {
  const IValue* v = call->argument(i);
  if (!v || !v->isList()) return nullptr;
  const std::vector<IValue>& list = v->toListRef();
  return k >= 0 && k < static_cast<int64_t>(list.size()) ? &list[static_cast<std::size_t>(k)] : nullptr;
}
bool element_type_of(int32_t number) {
  const auto t = static_cast<ScalarType>(number);
  return number >= 0 && element_size(t) > 0;
}

int32_t kind_of(const cresset_call* call, int32_t i) {
  const IValue* v = call->argument(i);
  if (!v || v->isNone()) return CRESSET_KIND_NONE;
  if (v->isTensor()) return v->toTensor().defined() ? CRESSET_KIND_TENSOR : CRESSET_KIND_NONE;
  if (v->isDouble()) return CRESSET_KIND_DOUBLE;
  if (v->isInt()) return CRESSET_KIND_INT;
  if (v->isBool()) return CRESSET_KIND_BOOL;
  if (v->isString()) return CRESSET_KIND_STRING;
  return v->isList() ? CRESSET_KIND_LIST : CRESSET_KIND_OTHER;
}

cresset_status get_tensor(const cresset_call* call, int32_t i, cresset_tensor* out) {
  return quietly([&] {
    const Tensor* t = tensor_at(call, i);
    const IValue* v = call->argument(i);
    if (!t && !(v && v->isNone())) return false;
    describe(t ? *t : Tensor(), out);
    return true;
  });
}
cresset_status get_int(const cresset_call* call, int32_t i, int64_t* out) {
  return quietly([&] {
    const IValue* v = call->argument(i);
    if (!v || !(v->isInt() || v->isBool())) return false;
    *out = v->isInt() ? v->toInt() : v->toBool();
    return true;
  });
}
cresset_status get_double(const cresset_call* call, int32_t i, double* out) {
  return quietly([&] {
    const IValue* v = call->argument(i);
    if (!v || !(v->isDouble() || v->isInt() || v->isBool())) return false;
    *out = v->isBool() ? v->toBool() : v->toDouble();
    return true;
  });
}
cresset_status list_size(const cresset_call* call, int32_t i, int64_t* out) {
  return quietly([&] {
    const IValue* v = call->argument(i);
    if (!v || !v->isList()) return false;
    *out = static_cast<int64_t>(v->toListRef().size());
    return true;
  });
}
cresset_status list_tensor(const cresset_call* call, int32_t i, int64_t k, cresset_tensor* out) {
  return quietly([&] {
    const IValue* v = element_at(call, i, k);
    if (!v || !(v->isTensor() || v->isNone())) return false;
    describe(v->isTensor() ? v->toTensor() : Tensor(), out);
    return true;
  });
}
cresset_status list_int(const cresset_call* call, int32_t i, int64_t k, int64_t* out) {
  return quietly([&] {
    const IValue* v = element_at(call, i, k);
    if (!v || !v->isInt()) return false;
    *out = v->toInt();
    return true;
  });
}
cresset_status new_result(cresset_call* call, int32_t ndim, const int64_t* sizes, int32_t dtype, cresset_tensor* out) {
  return quietly([&] {
    if (ndim < 0 || ndim > kMaxDims || !element_type_of(dtype)) return false;
    const IntArrayRef shape(sizes, static_cast<std::size_t>(ndim));
    const Tensor t = allocate({DimVector(shape), static_cast<ScalarType>(dtype), call->device, std::nullopt}, call->device);
    describe(t, out);
    call->results.emplace_back(t);
    return true;
  });
}
cresset_status return_argument(cresset_call* call, int32_t i) {
  return quietly([&] {
    const IValue* v = call->argument(i);
    if (!v) return false;
    call->results.push_back(*v);
    return true;
  });
}
cresset_status resize(cresset_call* call, int32_t i, int32_t ndim, const int64_t* sizes, cresset_tensor* out) {
  return quietly([&] {
    const Tensor* t = tensor_at(call, i);
    if (!t || ndim < 0 || ndim > kMaxDims) return false;
    Tensor target = *t;
    target.resize_(IntArrayRef(sizes, static_cast<std::size_t>(ndim)));
    describe(target, out);
    return true;
  });
}
cresset_stream stream_of(const cresset_call* call) {
  const auto* guard = cresset::impl::getDeviceGuardImpl(call->device.type());
  return static_cast<cresset_stream>(guard->getStream(call->device).id());
}

constexpr cresset_call_api kApi{sizeof(cresset_call_api),
                                CRESSET_BACKEND_TABLE_VERSION,
                                [](const cresset_call* call) { return static_cast<int32_t>(call->count); },
                                &kind_of,
                                &get_tensor,
                                &get_int,
                                &get_double,
                                &list_size,
                                &list_tensor,
                                &list_int,
                                &new_result,
                                &return_argument,
                                &resize,
                                &stream_of};

// The device of a call: of its first tensor on this kind of device, or the one that is asked for.
Device device_of_call(const Stack& stack, std::size_t first, DeviceType type) {
  for (std::size_t i = first; i < stack.size(); ++i) {
    const IValue& v = stack[i];
    if (v.isTensor() && v.toTensor().device().type() == type) return v.toTensor().device();
    if (v.isDevice() && v.toDevice().type() == type) return resolved_device(v.toDevice());
    if (v.isList())
      for (const IValue& e : v.toListRef())
        if (e.isTensor() && e.toTensor().device().type() == type) return e.toTensor().device();
  }
  return resolved_device(Device(type));
}

struct CKernel final : OperatorKernel {
  CKernel(DeviceType t, cresset_status (*f)(void*, const cresset_call_api*, cresset_call*), void* s) : type(t), run(f), self(s) {}
  void operator()(const OperatorHandle& op, DispatchKeySet, Stack* stack) {
    AutoDispatchBelowADInplaceOrView below;
    const std::size_t n = op.schema().arguments().size(), first = stack->size() - n;
    cresset_call call{stack, first, n, device_of_call(*stack, first, type), {}};
    const DeviceGuard guard(call.device);
    const cresset_status status = run(self, &kApi, &call);
    if (status == CRESSET_USE_FALLBACK) return cpu_fallback(op, stack);
    if (status != CRESSET_OK) cresset::detail::check_backend(type, status, call.device.index(), op.operator_name().str());
    CRESSET_CHECK(call.results.size() == op.schema().returns().size(), op.operator_name(), ": the kernel of ", DeviceTypeName(type),
                  " left ", call.results.size(), " results; ", op.schema().returns().size(), " were due.");
    stack->resize(first);
    for (IValue& v : call.results) stack->push_back(std::move(v));
  }
  DeviceType type;
  cresset_status (*run)(void*, const cresset_call_api*, cresset_call*);
  void* self;
};

}  // namespace

void register_c_kernels(Library& library, DeviceType type, const cresset_backend& table) {
  const char* at = reinterpret_cast<const char*>(table.kernels);
  for (std::size_t i = 0; i < table.kernel_count; ++i) {
    cresset_kernel k{};
    std::memcpy(&k, at, std::min(reinterpret_cast<const cresset_kernel*>(at)->struct_size, sizeof k));
    CRESSET_CHECK(k.op && k.run, "backend '", table.name, "': kernel ", i, " has no operator name or no function.");
    CRESSET_CHECK(k.version <= CRESSET_BACKEND_TABLE_VERSION, "backend '", table.name, "': the kernel of ", k.op, " needs version ",
                  k.version, " of the backend table, and this library has version ", CRESSET_BACKEND_TABLE_VERSION,
                  "; install a newer Cresset.");
    CRESSET_CHECK(Dispatcher::singleton().findSchema(parse_operator_name(k.op)), "backend '", table.name, "': there is no operator ", k.op,
                  ". `cresset ops` lists the names.");
    library.impl(k.op, CppFunction::makeFromBoxedFunctor(make_intrusive<CKernel>(type, k.run, table.self))
                           .debug(str("kernel in C of backend ", table.name)));
    at += k.struct_size;
  }
}

}  // namespace cresset::ops
