// Layers that do nothing for an operator unless someone registers a kernel for it: they are skipped.
// Python is not here: the Python module brings its fallback, and no tensor has the key without it.
// Functionalize is not here: src/ops/device/opaque_memory.cpp has its fallback, and only tensors of opaque devices have the key.
// Tracer is not here: src/ir/frontend/tracer.cpp has its fallback, and only threads that trace include the key.
// PreDispatch is not here: only threads that record for the profiler have it (profiler.cpp).
// FuncTorchDynamicLayerFrontMode is not here: src/autograd/captured_tensors.cpp has its fallback, for functions of transforms.
// The Autograd keys are not here: src/autograd installs a fallback that never loses a gradient silently.
#include <cresset/dispatch/library.h>

namespace cresset {
namespace {

const std::vector<RegistrationHandleRAII> registrations = [] {
  std::vector<RegistrationHandleRAII> out;
  const auto skip = [&](DispatchKey k) {
    out.push_back(
        Dispatcher::singleton().registerFallback(k, KernelFunction::makeFallthrough(), str("registered at ", __FILE__, ":", __LINE__)));
  };
  for (DispatchKey k : {DispatchKey::BackendSelect, DispatchKey::Fake, DispatchKey::FuncTorchDynamicLayerBackMode, DispatchKey::Named,
                        DispatchKey::Conjugate, DispatchKey::Negative, DispatchKey::ZeroTensor, DispatchKey::ADInplaceOrView,
                        DispatchKey::PythonTLSSnapshot, DispatchKey::PythonDispatcher})
    skip(k);
  for (int b = 0; b < kBackendCount; ++b) skip(autocastKey(static_cast<DeviceType>(b)));
  return out;
}();

}  // namespace
}  // namespace cresset
