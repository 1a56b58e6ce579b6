// The extension module cresset._C.
#include <cresset/base/denormals.h>
#include <cresset/base/interop.h>
#include <cresset/base/interrupt.h>
#include <cresset/base/parallel.h>
#include <cresset/core/host_cache.h>

#include "python/autograd.h"
#include "python/bind.h"
#include "python/custom_class.h"
#include "python/dispatch.h"
#include "python/dispatch_mode.h"
#include "python/graph_part.h"
#include "python/held_weights.h"
#include "python/op_function.h"
#include "python/overridable.h"
#include "python/override.h"
#include "python/tensor_new.h"
#include "python/transforms.h"

namespace cresset::python {

namespace {

void init_threads(PyObject* module) {
  def(module, "get_num_threads", [] { return static_cast<int64_t>(get_num_threads()); }, "Threads that operators may use.");
  def(module, "set_num_threads", [](int64_t n) {
    CRESSET_CHECK(n > 0, "set_num_threads expects a positive integer");
    set_num_threads(static_cast<int>(n));
  });
  def(module, "_set_flush_denormal", [](bool on) { return set_flush_denormal(on); });
  def(module, "_log_api_usage_once", [](std::string) {}, "Nothing is logged; libraries call it.");
  def(module, "_get_num_interop_threads", [] { return static_cast<int64_t>(get_num_interop_threads()); });
  def(module, "_set_num_interop_threads", [](int64_t n) { set_num_interop_threads(static_cast<int>(n)); });
  def(
      module, "_limits",
      [](double seconds, int64_t bytes) {
        constexpr const char* kName = "cresset.LimitScope";
        auto* scope = new LimitScope(seconds, bytes);
        return Object(PyCapsule_New(scope, kName, [](PyObject* c) { delete static_cast<LimitScope*>(PyCapsule_GetPointer(c, kName)); }));
      },
      "Limits of this thread's work until the result is released.");
  def(module, "_cpu_memory_stats", [] {
    const MemoryStats s = cpu_memory_stats();
    return std::vector<int64_t>{s.allocated_bytes, s.peak_bytes};
  });
  def(module, "_reset_peak_cpu_memory_stats", [] { reset_peak_cpu_memory_stats(); });
  def(module, "_host_cache_stats", [] {
    const HostCacheStats s = host_cache_stats();
    return std::vector<int64_t>{s.limit, s.idle_bytes, s.used_bytes, s.peak_bytes, s.reused, s.taken, s.given_back};
  });
  def(module, "_empty_host_cache", [] { empty_host_cache(); });
}

bool fill_module(PyObject* module) {
  CRESSET_PY_TRY
  init_errors(module);
  init_interrupts();
  init_constants(module);
  init_device(module);
  init_size(module);
  init_tensor_type(module);
  init_generator(module);
  init_accelerator(module);
  init_device_memory(module);
  init_python_backend(module);
  init_profiler(module);
  init_python_calls(module);
  init_files(module);
  init_override(module);
  init_overridable(module);
  init_tensor_new(module);
  init_numpy(module);
  init_dlpack(module);
  init_storage(module);
  init_held_weights(module);
  init_node(module);
  init_autograd(module);
  init_op_functions(module);
  init_function(module);
  init_saved_values(module);
  init_dispatch(module);
  init_ops(module);
  init_library(module);
  init_custom_class(module);
  init_extension_api();
  init_dispatch_mode(module);
  init_transforms(module);
  init_wrapper_subclass(module);
  init_autocast(module);
  init_graph_part(module);
  init_threads(module);
  return true;
  CRESSET_PY_CATCH(false)
}

}  // namespace

}  // namespace cresset::python

extern "C" __attribute__((visibility("default"))) PyObject* PyInit__C() {
  if (PyInterpreterState_Get() != PyInterpreterState_Main()) {
    PyErr_SetString(PyExc_ImportError, "cresset works in the main interpreter only: its classes and its lock belong to that one");
    return nullptr;
  }
  // Without a size of state the interpreter calls this function again, for other interpreters and for repeated imports.
  static PyModuleDef definition = {
      PyModuleDef_HEAD_INIT, "cresset._C", "Bindings of the Cresset library.", 0, nullptr, nullptr, nullptr, nullptr, nullptr};
  static PyObject* module = nullptr;
  if (module) return Py_NewRef(module);
  module = PyModule_Create(&definition);
  if (!module) return nullptr;
  if (!cresset::python::fill_module(module)) {
    Py_CLEAR(module);
    return nullptr;
  }
  return Py_NewRef(module);
}
