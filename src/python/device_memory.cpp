// Private functions behind cresset.accelerator.memory and cresset.accelerator.graphs: counters, pools, snapshots, recorded work.
#include <cresset/core/device_graph.h>
#include <cresset/core/device_guard.h>
#include <cresset/core/device_memory.h>

#include "python/bind.h"
#include "python/frames.h"

namespace cresset::python {
namespace {

// Objects of C++ that Python holds as capsules.
template <class T>
struct Held {
  static PyObject* make(std::unique_ptr<T> value, const char* name) {
    PyObject* capsule = PyCapsule_New(value.get(), name, [](PyObject* c) {
      auto* dying = static_cast<T*>(PyCapsule_GetPointer(c, PyCapsule_GetName(c)));
      without_lock(true, [&] { delete dying; });
    });
    if (capsule) (void)value.release();
    return capsule;
  }
  static T& of(PyObject* o, const char* name) {
    auto* value = static_cast<T*>(PyCapsule_GetPointer(o, name));
    if (!value) throw ErrorAlreadySet();
    return *value;
  }
};
constexpr const char *kPool = "cresset.memory_pool", *kScope = "cresset.memory_pool_scope", *kGraph = "cresset.device_graph";
MemoryPoolPtr& pool_of(PyObject* o) { return Held<MemoryPoolPtr>::of(o, kPool); }
DeviceGraph& graph_of(PyObject* o) { return Held<DeviceGraph>::of(o, kGraph); }

MemoryPoolId pool_id(PyObject* o) {
  unsigned long long first = 0, second = 0;
  if (o == Py_None) return {};
  CRESSET_CHECK_TYPE(PyTuple_Check(o) && PyArg_ParseTuple(o, "KK", &first, &second), "pool: a pair of numbers was required.");
  return {first, second};
}
Object id_object(MemoryPoolId id) {
  return Object(Py_BuildValue("(KK)", static_cast<unsigned long long>(id.first), static_cast<unsigned long long>(id.second)));
}

// The numbers of each group, kind and size in turn: current, peak, allocated, freed; then retries, out of memory, waits, calls of the
// driver.
std::vector<int64_t> flat(const DeviceMemoryCounters& all) {
  std::vector<int64_t> out;
  for (const MemoryCounters* group : {&all.tensors, &all.active, &all.held})
    for (const auto* kind : {&group->count, &group->bytes})
      for (const MemoryCounter& c : *kind) out.insert(out.end(), {c.current, c.peak, c.allocated, c.freed});
  out.insert(out.end(), {all.retries, all.out_of_memory, all.waits, all.from_driver, all.to_driver});
  return out;
}

std::string stack_text() {
  std::string out;
  for (const std::string& frame : python_stack()) out += (out.empty() ? "" : "\n") + frame;
  return out;
}

void init_memory(PyObject* m) {
  def(m, "_device_memory_counters", [](Device d) { return flat(device_memory_counters(d)); });
  def(m, "_device_supports", [](Device d, ScalarType t) -> std::optional<bool> {
    const DeviceCapability c = cresset::impl::getDeviceGuardImpl(d.type())->getDeviceCapability(resolved_device(d));
    return c.is_known ? std::optional(c.dtypes.test(static_cast<std::size_t>(t))) : std::nullopt;
  });
  def(m, "_device_reset_memory", [](Device d, bool accumulated) { reset_device_memory_counters(d, accumulated); });
  def(m, "_device_set_memory_fraction", [](Device d, double fraction) { without_lock(true, [&] { set_memory_fraction(d, fraction); }); });
  def(m, "_device_memory_fraction", [](Device d) { return memory_fraction(d); });
  def(m, "_memory_blocks", [](Device d) {
    Ref list = checked(PyList_New(0));
    for (const MemoryBlockInfo& b : device_memory_blocks(d)) {
      const Ref row =
          checked(Py_BuildValue("(KLiL(KK)s)", static_cast<unsigned long long>(b.address), static_cast<long long>(b.nbytes),
                                static_cast<int>(b.state), static_cast<long long>(b.stream), static_cast<unsigned long long>(b.pool.first),
                                static_cast<unsigned long long>(b.pool.second), b.stack.c_str()));
      checked(PyList_Append(list.get(), row.get()));
    }
    return Object(std::move(list));
  });
  def(m, "_memory_record", [](Device d, int64_t most, bool stacks) {
    set_memory_stack_source(stacks ? &stack_text : nullptr);
    record_memory_history(d.type(), static_cast<std::size_t>(most));
  });
  def(m, "_memory_history", [](Device d) {
    Ref list = checked(PyList_New(0));
    for (const MemoryEvent& e : memory_history(d)) {
      const Ref row = checked(Py_BuildValue("(iKLLLs)", static_cast<int>(e.action), static_cast<unsigned long long>(e.address),
                                            static_cast<long long>(e.nbytes), static_cast<long long>(e.stream),
                                            static_cast<long long>(e.time_us), e.stack.c_str()));
      checked(PyList_Append(list.get(), row.get()));
    }
    return Object(std::move(list));
  });
}

void init_pools(PyObject* m) {
  def(m, "_memory_pool_new",
      [](Device d) { return Object(Held<MemoryPoolPtr>::make(std::make_unique<MemoryPoolPtr>(make_memory_pool(d)), kPool)); });
  def(m, "_memory_pool_new_id", [] { return id_object(new_memory_pool_id(true)); });
  def(m, "_memory_pool_id", [](PyObject* o) { return id_object(id_of_memory_pool(pool_of(o))); });
  def(m, "_memory_pool_use_count", [](PyObject* o) { return static_cast<int64_t>(pool_of(o).use_count()); });
  def(m, "_memory_pool_enter",
      [](PyObject* o) { return Object(Held<MemoryPoolScope>::make(std::make_unique<MemoryPoolScope>(pool_of(o)), kScope)); });
  def(m, "_memory_pool_leave", [](PyObject* o) { Held<MemoryPoolScope>::of(o, kScope).end(); });
}

void init_graphs(PyObject* m) {
  def(m, "_graph_new", [](Device d, PyObject* pool, std::string mode) {
    return Object(Held<DeviceGraph>::make(std::make_unique<DeviceGraph>(d.type(), pool_id(pool), capture_mode_from_name(mode)), kGraph));
  });
  def(m, "_graph_begin", [](PyObject* o, PyObject* pool, std::string mode) {
    DeviceGraph& g = graph_of(o);
    g.set_pool(pool_id(pool));
    g.set_mode(capture_mode_from_name(mode));
    without_lock(true, [&] { g.capture_begin(); });
  });
  def(m, "_graph_end", [](PyObject* o) {
    DeviceGraph& g = graph_of(o);
    without_lock(true, [&] { g.capture_end(); });
  });
  def(m, "_graph_replay", [](PyObject* o) {
    DeviceGraph& g = graph_of(o);
    without_lock(true, [&] { g.replay(); });
  });
  def(m, "_graph_reset", [](PyObject* o) {
    DeviceGraph& g = graph_of(o);
    without_lock(true, [&] { g.reset(); });
  });
  def(m, "_graph_dump", [](PyObject* o, std::string path) {
    DeviceGraph& g = graph_of(o);
    without_lock(true, [&] { g.dump(path); });
  });
  def(m, "_graph_is_recorded", [](PyObject* o) { return graph_of(o).is_recorded(); });
  def(m, "_graph_pool", [](PyObject* o) { return id_object(graph_of(o).pool()); });
}

void init_queues(PyObject* m) {
  def(m, "_stream_is_capturing", [](Device d, int64_t id) {
    return without_lock(true, [&] { return Stream(Stream::UNSAFE, resolved_device(d), id).is_capturing(); });
  });
  def(m, "_stream_priorities", [](Device d) {
    const auto [lowest, highest] = without_lock(true, [&] { return cresset::detail::stream_priorities(d); });
    return std::vector<int64_t>{lowest, highest};
  });
  def(m, "_stream_native", [](Device d, int64_t id) {
    const void* handle = without_lock(true, [&] { return cresset::detail::native_stream(Stream(Stream::UNSAFE, resolved_device(d), id)); });
    return static_cast<uint64_t>(reinterpret_cast<uintptr_t>(handle));
  });
  def(m, "_stream_of_native", [](Device d, uint64_t handle) {
    return without_lock(true,
                        [&] { return cresset::detail::stream_of_native(d, reinterpret_cast<void*>(static_cast<uintptr_t>(handle))).id(); });
  });
  def(m, "_can_access_peer",
      [](Device d, Device peer) { return without_lock(true, [&] { return cresset::detail::can_access_peer(d, peer); }); });
}

}  // namespace

void init_device_memory(PyObject* module) {
  init_memory(module);
  init_pools(module);
  init_graphs(module);
  init_queues(module);
}

}  // namespace cresset::python
