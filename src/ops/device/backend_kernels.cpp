// What every backend with a table gets: tensors, copies, single values, fills, and the CPU fallback.
#include <map>
#include <mutex>

#include <cresset/core/backend.h>
#include <cresset/core/device_guard.h>
#include <cresset/dispatch/library.h>
#include <cresset/ops/cpu_fallback.h>
#include <cresset/ops/functions_copy.h>

#include "dispatch/backend_default.h"
#include "ops/device/backend_c_kernels.h"
#include "ops/device/backend_copy.h"
#include "ops/shared/shape_util.h"
#include "ops/shared/structured.h"

namespace cresset::ops {
namespace {

DispatchKeySet keys_of(DeviceType t) {
  const DispatchKeySet ks = key_set_for_device(t);
  return backend_table(t)->flags & CRESSET_OPAQUE_MEMORY ? ks.add(DispatchKey::Functionalize) : ks;
}

Tensor make(DeviceType type, IntArrayRef sizes, IntArrayRef strides, std::optional<ScalarType> dtype, std::optional<Layout> layout,
            std::optional<Device> device, std::optional<bool> pin_memory) {
  CRESSET_CHECK_NOT_IMPLEMENTED(!layout || *layout == kStrided, "new tensors are strided here; given layout ", to_string(*layout), ".");
  CRESSET_CHECK(!pin_memory.value_or(false), "Only dense CPU tensors can be pinned; leave pin_memory out or device at \"cpu\".");
  cresset::detail::check_sizes_nonnegative(sizes);
  const ScalarType t = dtype.value_or(get_default_dtype());
  const std::size_t nbytes = cresset::detail::compute_storage_nbytes(sizes, strides, element_size(t));
  Storage storage(Storage::use_byte_size_t(), nbytes, cresset::detail::allocate_on(device.value_or(Device(type)), nbytes),
                  GetAllocator(type), true);
  auto impl = make_intrusive<TensorImpl>(std::move(storage), keys_of(type), t);
  impl->set_sizes_and_strides(sizes, strides);
  if (CRESSET_UNLIKELY(InferenceMode::is_enabled())) {
    impl->set_inference(true);
    impl->remove_autograd_key();
  }
  return Tensor(std::move(impl));
}

Scalar local_scalar(const Tensor& self) {
  const Tensor host = allocate_cpu({DimVector(self.sizes()), self.scalar_type(), Device(kCPU), std::nullopt});
  cresset::_copy_from(self, host, false);
  return cresset::_local_scalar_dense(host);
}

void install(DeviceType type) {
  static std::map<DeviceType, std::vector<std::unique_ptr<Library>>>* installed =
      new std::map<DeviceType, std::vector<std::unique_ptr<Library>>>;
  const cresset_backend& table = *backend_table(type);
  const DispatchKey key = backendKey(type);
  auto& libraries = (*installed)[type];
  libraries.clear();  // of an attempt that failed
  libraries.push_back(std::make_unique<Library>(Library::IMPL, "aten", key, __FILE__, __LINE__));
  Library& m = *libraries.back();
  const auto give = [&](const char* name, CppFunction f) {
    const auto op = Dispatcher::singleton().findOp(parse_operator_name(name));
    if (op && op->hasKernelForDispatchKey(key)) return;  // the plug-in came first, on a slot with a fixed key
    m.impl(name, std::move(f).debug(str(kBackendDefault, " for ", table.name)));
  };
  give("aten::empty.memory_format",
       [type](IntArrayRef size, std::optional<ScalarType> dtype, std::optional<Layout> layout, std::optional<Device> device,
              std::optional<bool> pin_memory, std::optional<MemoryFormat> format) {
         return make(type, size, strides_for(size, format.value_or(MemoryFormat::Contiguous)), dtype, layout, device, pin_memory);
       });
  give("aten::empty_strided", [type](IntArrayRef size, IntArrayRef stride, std::optional<ScalarType> dtype, std::optional<Layout> layout,
                                     std::optional<Device> device, std::optional<bool> pin_memory) {
    return make(type, size, stride, dtype, layout, device, pin_memory);
  });
  give("aten::_copy_from", &backend_copy_from);
  give("aten::_local_scalar_dense", &local_scalar);
  give("aten::zero_", &backend_zero);
  give("aten::fill_.Scalar", &backend_fill);
  if (table.kernel_count > 0) {
    libraries.push_back(std::make_unique<Library>(Library::IMPL, "_", key, __FILE__, __LINE__));
    register_c_kernels(*libraries.back(), type, table);
  }
  if (!Dispatcher::singleton().hasBackendFallbackForDispatchKey(key)) {
    libraries.push_back(std::make_unique<Library>(Library::IMPL, "_", key, __FILE__, __LINE__));
    libraries.back()->fallback(CppFunction::makeFromBoxedFunction<&cpu_fallback>().debug(str("CPU fallback of backend ", table.name)));
  }
}

const bool announced = (cresset::detail::set_backend_installer(&install), true);

}  // namespace
}  // namespace cresset::ops
