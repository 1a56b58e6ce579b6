// Private functions behind cresset.accelerator, cresset.Stream, cresset.Event and the modules of devices.
#include <cresset/base/interrupt.h>
#include <cresset/core/accelerator_hooks.h>
#include <cresset/core/backend.h>
#include <cresset/core/backend_meta.h>
#include <cresset/core/device_allocator.h>
#include <cresset/core/event.h>
#include <cresset/dispatch/profiler_stubs.h>
#include <cresset/ops/cpu_fallback.h>
#include <cresset/ops/functions_copy.h>
#include <cresset/ops/pinned_memory.h>

#include "python/bind.h"

namespace cresset::python {
namespace {

// Every function of a device is called like this: it may wait for a queue, which may run Python code.
template <class F>
auto unlocked(F f) {
  return without_lock(true, std::move(f));
}

const cresset::impl::DeviceGuardImplInterface& guard_of(Device d) { return *cresset::impl::getDeviceGuardImpl(d.type()); }
Stream stream_of(Device d, int64_t id) { return Stream(Stream::UNSAFE, resolved_device(d), id); }

// ---- events: capsules that own an Event

constexpr const char* kEventName = "cresset.Event";
Event& event_of(PyObject* o) {
  auto* e = static_cast<Event*>(PyCapsule_GetPointer(o, kEventName));
  if (!e) throw ErrorAlreadySet();
  return *e;
}
Object wrap_event(Event&& made) {
  auto* event = new Event(std::move(made));
  return Object(PyCapsule_New(event, kEventName, [](PyObject* c) { delete static_cast<Event*>(PyCapsule_GetPointer(c, kEventName)); }));
}

// ---- device names that Python can resolve

void add_python_resolver(PyObject* function) {
  Py_INCREF(function);  // for the life of the process
  add_device_resolver([function](const std::string& name) {
    if (!Py_IsInitialized()) return false;
    GilAcquire gil;
    const Ref answer = Ref::steal(PyObject_CallFunction(function, "s", name.c_str()));
    const int found = answer ? PyObject_IsTrue(answer.get()) : -1;
    if (found >= 0) return found == 1;
    // Not of the plug-in: the core keeps neither.
    if (PyErr_ExceptionMatches(PyExc_MemoryError)) {
      PyErr_Clear();
      throw std::bad_alloc();
    }
    if (PyErr_ExceptionMatches(PyExc_KeyboardInterrupt)) {
      PyErr_Clear();
      throw Interrupted("interrupted");
    }
    throw PythonException::fetch();  // its text becomes the reason
  });
}

void set_python_listener(PyObject* function) {
  Py_INCREF(function);
  add_backend_listener([function](DeviceType t) {
    if (!Py_IsInitialized()) return;
    GilAcquire gil;
    const Ref answer = Ref::steal(PyObject_CallFunction(function, "s", DeviceTypeName(t).c_str()));
    if (!answer) PyErr_WriteUnraisable(function);  // a library that is being loaded must not be interrupted
  });
}

Object report_of(const BackendReport& r) {
  Ref parts = checked(PyList_New(0));
  for (const BackendPart& p : r.parts) {
    const Ref row = checked(
        Py_BuildValue("(sOOs)", p.name.c_str(), p.required ? Py_True : Py_False, p.present ? Py_True : Py_False, p.without.c_str()));
    checked(PyList_Append(parts.get(), row.get()));
  }
  return Object(Py_BuildValue("{s:s,s:s,s:s,s:I,s:O,s:O}", "name", r.name.c_str(), "problem", r.problem.c_str(), "library",
                              r.library.c_str(), "table_version", r.table_version, "registered", r.type ? Py_True : Py_False, "parts",
                              parts.get()));
}

Object properties_of(Device device) {
  const Device d = resolved_device(device);
  cresset_device_properties p{};
  p.struct_size = sizeof p;
  const cresset_backend* t = backend_table(d.type());
  if (t && t->get_properties)
    unlocked(
        [&] { cresset::detail::check_backend(d.type(), t->get_properties(t->self, d.index(), &p), d.index(), "get_device_properties"); });
  p.name[sizeof p.name - 1] = '\0';
  const std::string name = p.name[0] ? std::string(p.name) : DeviceTypeName(d.type());
  return Object(Py_BuildValue("{s:s,s:K,s:K,s:i,s:i,s:i}", "name", name.c_str(), "total_memory",
                              static_cast<unsigned long long>(p.total_memory), "free_memory",
                              static_cast<unsigned long long>(p.free_memory), "major", static_cast<int>(p.major), "minor",
                              static_cast<int>(p.minor), "multi_processor_count", static_cast<int>(p.compute_units)));
}

// ---- what files keep beside tensors

Object facts_of(const Tensor& t) {
  Object facts(PyDict_New());
  for (const auto& [name, value] : backend_meta_facts(t)) {
    if (PyDict_SetItemString(facts.ref.get(), name.c_str(), value ? Py_True : Py_False)) throw ErrorAlreadySet();
  }
  return facts;
}
void restore_facts(const Tensor& t, PyObject* facts) {
  CRESSET_CHECK_TYPE(PyDict_Check(facts), "_restore_backend_meta: a dict was required.");
  BackendMetaFacts values;
  Py_ssize_t at = 0;
  PyObject *name, *value;
  while (PyDict_Next(facts, &at, &name, &value)) values[to_text(name)] = PyObject_IsTrue(value) == 1;
  restore_backend_meta(t, std::move(values));
}

void init_devices(PyObject* m) {
  def(m, "_load_backend", [](std::string path) { return DeviceTypeName(load_backend(path)); });
  def(m, "_registered_backends", [] {
    std::vector<std::string> names;
    for (DeviceType t : registered_backends()) names.push_back(DeviceTypeName(t));
    return names;
  });
  def(m, "_backend_report", [](std::string name) { return report_of(inspect_backend(name)); });
  def(m, "_add_device_resolver", [](PyObject* f) { add_python_resolver(f); });
  def(m, "_set_backend_listener", [](PyObject* f) { set_python_listener(f); });
  def(m, "_known_device_names", [] { return known_device_names(); });
  def(m, "_accelerator_type", []() -> std::optional<std::string> {
    const auto t = getAccelerator();
    return t ? std::optional(DeviceTypeName(*t)) : std::nullopt;
  });
  def(m, "_device_key", [](Device d) { return backendKey(d.type()); });
  def(m, "_device_count", [](Device d) { return unlocked([&] { return static_cast<int64_t>(device_count(d.type())); }); });
  def(m, "_device_current", [](Device d) { return unlocked([&] { return guard_of(d).getDevice(); }); });
  def(m, "_device_set", [](Device d) { unlocked([&] { guard_of(d).setDevice(resolved_device(d)); }); });
  def(m, "_device_exchange", [](Device d) { return unlocked([&] { return guard_of(d).exchangeDevice(resolved_device(d)); }); });
  def(m, "_device_restore", [](Device d) { unlocked([&] { guard_of(d).uncheckedSetDevice(d); }); });
  def(m, "_device_synchronize", [](Device d) { unlocked([&] { guard_of(d).synchronizeDevice(resolved_device(d).index()); }); });
  def(m, "_device_properties", [](Device d) { return properties_of(d); });
  def(m, "_device_memory", [](Device d) {
    const DeviceMemoryStats s = device_memory_stats(d);
    return std::vector<int64_t>{s.allocated_bytes, s.peak_bytes, s.allocations, s.live_blocks, s.reserved_bytes, s.peak_reserved_bytes};
  });
  def(m, "_device_reset_peak_memory", [](Device d) { reset_peak_device_memory_stats(d); });
  def(m, "_device_empty_cache", [](Device d) {
    const cresset_backend* t = backend_table(d.type());
    if (t && t->empty_cache) unlocked([&] { t->empty_cache(t->self); });
    if (DeviceAllocator* const a = t ? nullptr : find_device_allocator(d.type())) unlocked([&] { a->emptyCache(); });
  });
  def(m, "_device_file_tag", [](Device d) {
    const cresset_backend* t = backend_table(d.type());
    return t && t->file_tag ? std::string(t->file_tag) : DeviceTypeName(d.type());
  });
}

void init_streams(PyObject* m) {
  def(m, "_stream_new", [](Device d, int64_t priority) {
    return unlocked([&] { return guard_of(d).getNewStream(resolved_device(d), static_cast<int>(priority)).id(); });
  });
  def(m, "_stream_current", [](Device d) { return unlocked([&] { return guard_of(d).getStream(resolved_device(d)).id(); }); });
  def(m, "_stream_exchange",
      [](Device d, int64_t id) { return unlocked([&] { return guard_of(d).exchangeStream(stream_of(d, id)).id(); }); });
  def(m, "_stream_query", [](Device d, int64_t id) { return unlocked([&] { return stream_of(d, id).query(); }); });
  def(m, "_stream_synchronize", [](Device d, int64_t id) { unlocked([&] { stream_of(d, id).synchronize(); }); });
  def(m, "_event_new", [](Device d, bool timing, bool interprocess) {
    CRESSET_CHECK_NOT_IMPLEMENTED(guard_of(d).sharesEvents() || !interprocess, DeviceTypeName(d.type()),
                                  ": this backend has no events of several processes; leave interprocess out.");
    CRESSET_CHECK(!(timing && interprocess), "Event: enable_timing=True and interprocess=True exclude each other.");
    return wrap_event(Event(d.type(), interprocess ? EventFlag::INTERPROCESS
                                      : timing     ? EventFlag::BACKEND_DEFAULT
                                                   : EventFlag::PYTORCH_DEFAULT));
  });
  def(m, "_event_handle", [](PyObject* o) {
    Event& e = event_of(o);
    const std::string handle = unlocked([&] { return e.handle(); });
    return Object(PyBytes_FromStringAndSize(handle.data(), static_cast<Py_ssize_t>(handle.size())));
  });
  def(m, "_event_from_handle", [](Device d, PyObject* bytes) {
    CRESSET_CHECK_TYPE(PyBytes_Check(bytes), "Event.from_ipc_handle: bytes were required; a ", type_name(Py_TYPE(bytes)), " was given.");
    const std::string_view handle(PyBytes_AS_STRING(bytes), static_cast<std::size_t>(PyBytes_GET_SIZE(bytes)));
    (void)guard_of(d);
    return wrap_event(unlocked([&] { return Event::from_handle(resolved_device(d), handle); }));
  });
  def(m, "_event_record", [](PyObject* o, Device d, int64_t id) {
    Event& e = event_of(o);
    unlocked([&] { e.record(stream_of(d, id)); });
  });
  def(m, "_event_block", [](PyObject* o, Device d, int64_t id) {
    Event& e = event_of(o);
    unlocked([&] { e.block(stream_of(d, id)); });
  });
  def(m, "_event_query", [](PyObject* o) {
    Event& e = event_of(o);
    return unlocked([&] { return e.query(); });
  });
  def(m, "_event_synchronize", [](PyObject* o) {
    Event& e = event_of(o);
    unlocked([&] { e.synchronize(); });
  });
  def(m, "_event_elapsed", [](PyObject* a, PyObject* b) {
    Event &begin = event_of(a), &end = event_of(b);
    return unlocked([&] { return begin.elapsedTime(end); });
  });
  def(m, "_event_id", [](PyObject* e) { return static_cast<uint64_t>(reinterpret_cast<uintptr_t>(event_of(e).eventId())); });
}

void init_fallback(PyObject* m) {
  def(m, "_fallback_set_mode", [](std::string mode, std::optional<int64_t> calls, std::optional<int64_t> bytes) {
    const CpuFallbackBudget budget{calls.value_or(-1), bytes.value_or(-1)};
    if (mode == "allow") return set_cpu_fallback_mode(CpuFallbackMode::Allow);
    if (mode == "warn") return set_cpu_fallback_mode(CpuFallbackMode::WarnOnce);
    if (mode == "forbid") return set_cpu_fallback_mode(CpuFallbackMode::Forbid);
    CRESSET_CHECK_VALUE(mode == "budget", "fallback mode: allow, warn, forbid or budget was required; '", mode, "' was given.");
    set_cpu_fallback_mode(CpuFallbackMode::Budget, budget);
  });
  def(m, "_fallback_mode", [] {
    static constexpr const char* names[] = {"allow", "warn", "forbid", "budget"};
    return std::string(names[static_cast<int>(cpu_fallback_mode())]);
  });
  def(m, "_fallback_counts", [] {
    Ref list = checked(PyList_New(0));
    for (const CpuFallbackCount& c : cpu_fallback_counts()) {
      const Ref row = checked(Py_BuildValue("(sLLL)", c.op.c_str(), static_cast<long long>(c.calls), static_cast<long long>(c.bytes),
                                            static_cast<long long>(c.nanoseconds)));
      checked(PyList_Append(list.get(), row.get()));
    }
    return Object(std::move(list));
  });
  def(m, "_fallback_report", [](int64_t lines) { return cpu_fallback_report(static_cast<std::size_t>(std::max<int64_t>(lines, 0))); });
  def(m, "_fallback_reset", [] { reset_cpu_fallback_counts(); });
}

void init_extras(PyObject* m) {
  def(m, "_has_generator", [](Device d) { return has_generator(d.type()); });
  def(m, "_backend_meta", [](Tensor t) { return facts_of(t); });
  def(m, "_restore_backend_meta", [](Tensor t, PyObject* facts) { restore_facts(t, facts); });
  def(m, "_pin_memory", [](Tensor t, std::optional<Device> d) { return unlocked([&] { return pin_memory(t, d); }); });
  def(m, "_is_pinned", [](Tensor t) { return t.is_pinned(); });
  def(m, "_has_pinned_memory", [](Device d) {
    const cresset_backend* t = backend_table(d.type());
    return t ? t->pinned_allocate != nullptr : getAcceleratorHooks(d.type()) != nullptr;
  });
  def(m, "_optimizer_step", [](Device device, int64_t phase) {
    const Device d = resolved_device(device);
    const cresset_backend* t = backend_table(d.type());
    if (t && t->optimizer_step)
      unlocked([&] {
        cresset::detail::check_backend(d.type(), t->optimizer_step(t->self, d.index(), static_cast<int32_t>(phase)), d.index(),
                                       "optimizer_step");
      });
  });
  def(m, "_hears_ranges", [] { return !registered_backends().empty() || profiler::profiler_stubs(kPrivateUse1); });
  def(m, "_profile_push", [](std::string name) {
    for (DeviceType k : registered_backends())
      if (const cresset_backend* t = backend_table(k); t->profile_push) t->profile_push(t->self, name.c_str());
    if (const auto* stubs = profiler::profiler_stubs(kPrivateUse1); stubs && stubs->enabled()) stubs->rangePush(name.c_str());
  });
  def(m, "_profile_pop", [] {
    for (DeviceType k : registered_backends())
      if (const cresset_backend* t = backend_table(k); t->profile_pop) t->profile_pop(t->self);
    if (const auto* stubs = profiler::profiler_stubs(kPrivateUse1); stubs && stubs->enabled()) stubs->rangePop();
  });
  def(m, "_autocast_dtypes", [](Device d) {
    std::vector<ScalarType> types{kHalf, kBFloat16};
    if (const cresset_backend* t = backend_table(d.type()); t && t->autocast) {
      types.clear();
      for (std::size_t i = 0; i < t->autocast->supported_dtype_count; ++i)
        types.push_back(static_cast<ScalarType>(t->autocast->supported_dtypes[i]));
    }
    return types;
  });
}

}  // namespace

void init_accelerator(PyObject* module) {
  init_devices(module);
  init_streams(module);
  init_fallback(module);
  init_extras(module);
}

}  // namespace cresset::python
