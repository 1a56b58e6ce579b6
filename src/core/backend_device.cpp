// Devices described by tables: memory, current devices, streams, events, generators, pinned memory.
#include "core/backend_device.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <set>
#include <shared_mutex>
#include <tuple>

#include <cresset/base/fork.h>
#include <cresset/core/device_generator.h>
#include <cresset/core/event.h>

#include "base/thread_state.h"
#include "core/memory_watch.h"

namespace cresset::detail {
namespace {

// ---- fork: the memory and queues of a device belong to the process that made them.

std::atomic<bool> in_use{false};  // some device was reached
std::atomic<bool> forked{false};  // this process is a child of one that had

void note_use() {
  if (CRESSET_LIKELY(in_use.load(std::memory_order_relaxed))) return;
  static const bool watched = (call_in_forked_child([] { forked.store(in_use.load()); }), true);
  (void)watched;
  in_use.store(true);
}

}  // namespace

bool is_forked() { return forked.load(std::memory_order_relaxed); }

namespace {

// ---- the thread's current devices and streams

// Snapshots are immutable and live for ever (there are as many as a program has combinations), so that the pointer to one
// can travel to worker threads with the rest of the thread's state.
struct Current {
  std::array<DeviceIndex, kDeviceTypeCount> device{};
  std::map<std::pair<DeviceType, DeviceIndex>, StreamId> streams;  // those that are not the default
  // By hand: libc++ compares arrays and maps with <=> from 17 on only.
  friend bool operator<(const Current& a, const Current& b) { return std::tie(a.device, a.streams) < std::tie(b.device, b.streams); }
};
const Current no_changes;
thread_local const Current* current = &no_changes;

const Current* kept(Current changed) {
  static auto* all = new std::set<Current>;
  static ForkSafe<std::mutex> mutex;
  std::lock_guard lock(mutex);
  return &*all->insert(std::move(changed)).first;
}

DeviceIndex current_device_of(DeviceType t) { return current->device[static_cast<std::size_t>(t)]; }
void set_current_device(DeviceType t, DeviceIndex index) {
  Current changed = *current;
  changed.device[static_cast<std::size_t>(t)] = index;
  current = kept(std::move(changed));
}
StreamId current_stream_of(DeviceType t, DeviceIndex index) {
  if (CRESSET_LIKELY(current->streams.empty())) return 0;
  const auto at = current->streams.find({t, index});
  return at == current->streams.end() ? 0 : at->second;
}
void set_current_stream(DeviceType t, DeviceIndex index, StreamId id) {
  if (current_stream_of(t, index) == id) return;
  Current changed = *current;
  if (id == 0)
    changed.streams.erase({t, index});
  else
    changed.streams[{t, index}] = id;
  current = kept(std::move(changed));
}

// Backends that want to know which device a thread uses hear of it when the state arrives in another thread.
void tell_devices(const Current& from, const Current& to) {
  for (int i = 0; i < kDeviceTypeCount; ++i) {
    if (from.device[static_cast<std::size_t>(i)] == to.device[static_cast<std::size_t>(i)]) continue;
    const Backend* b = backend_of(static_cast<DeviceType>(i));
    if (b && b->table().set_device) b->table().set_device(b->table().self, to.device[static_cast<std::size_t>(i)]);
  }
}
const bool device_carried = [] {
  register_thread_state([] { return static_cast<uint64_t>(reinterpret_cast<uintptr_t>(current)); },
                        [](uint64_t word) {
                          const auto* to = reinterpret_cast<const Current*>(static_cast<uintptr_t>(word));
                          if (to == current) return;
                          tell_devices(*current, *to);
                          current = to;
                        });
  return true;
}();

// ---- memory

struct BackendAllocator final : Allocator {
  explicit BackendAllocator(const Backend& b) : backend(b) {}
  DataPtr allocate(std::size_t n) override { return backend.device(current_device_of(backend.type())).memory.allocate(n); }
  const Backend& backend;
};

// Ranges of pinned memory, so that any pointer can be asked about.
struct PinnedRanges {
  ForkSafe<std::shared_mutex> mutex;
  std::map<const char*, std::size_t> by_start;
};
PinnedRanges& pinned_ranges() {
  static auto* p = new PinnedRanges;
  return *p;
}
struct PinnedBlock {
  const Backend* backend;
  void* data;
  std::size_t nbytes;
};
void free_pinned(void* context) {
  const std::unique_ptr<PinnedBlock> block(static_cast<PinnedBlock*>(context));
  {
    std::lock_guard lock(pinned_ranges().mutex);
    pinned_ranges().by_start.erase(static_cast<const char*>(block->data));
  }
  if (is_forked()) return;
  const cresset_backend& t = block->backend->table();
  t.pinned_deallocate(t.self, block->data, block->nbytes);
}
struct PinnedAllocator final : Allocator {
  explicit PinnedAllocator(const Backend& b) : backend(b) {}
  DataPtr allocate(std::size_t n) override { return backend.allocate_pinned(n); }
  const Backend& backend;
};

// ---- guards

// The event of a backend without events: the stream has come to its end when it is recorded.
struct HostEvent {
  std::chrono::steady_clock::time_point time;
};

class BackendGuard final : public impl::DeviceGuardImplInterface {
 public:
  explicit BackendGuard(Backend& b) : b_(b), t_(b.table()) {}
  DeviceType type() const override { return b_.type(); }
  DeviceIndex deviceCount() const noexcept override { return static_cast<DeviceIndex>(b_.device_count()); }
  Device getDevice() const override { return Device(type(), slot()); }
  Device exchangeDevice(Device d) const override {
    const Device before = getDevice();
    if (d.index() != before.index()) setDevice(d);
    return before;
  }
  void setDevice(Device d) const override {
    CRESSET_CHECK(d.type() == type(), "set_device: a device of ", b_.name(), " was required; ", d, " was given.");
    if (!d.has_index() || d.index() == slot()) {
      if (d.has_index()) b_.check_index(d.index());
      return;
    }
    b_.check_index(d.index());
    b_.enter();
    if (t_.set_device) b_.check(t_.set_device(t_.self, d.index()), d.index(), "set_device");
    set_current_device(type(), d.index());
  }
  void uncheckedSetDevice(Device d) const noexcept override {
    if (!d.has_index() || d.index() == slot()) return;
    if (t_.set_device && !is_forked()) t_.set_device(t_.self, d.index());
    set_current_device(type(), d.index());
  }

  Stream getStream(Device d) const override { return stream(index_of(d), current_stream_of(type(), index_of(d))); }
  Stream getDefaultStream(Device d) const override { return stream(index_of(d), 0); }
  Stream getStreamFromGlobalPool(Device d, bool high) const override {
    return stream_from_pool(d, [&](std::pair<int, int> range) { return high ? range.second : std::clamp(0, range.second, range.first); });
  }
  Stream getNewStream(Device d, int priority) const override {
    return stream_from_pool(d, [&](std::pair<int, int> range) { return std::clamp(priority, range.second, range.first); });
  }
  Stream exchangeStream(Stream s) const override {
    CRESSET_CHECK(s.device_type() == type(), "set_stream: a stream of ", b_.name(), " was required; ", s, " was given.");
    const DeviceIndex index = index_of(s.device());
    const Stream before = stream(index, current_stream_of(type(), index));
    set_current_stream(type(), index, s.id());
    return before;
  }

  void destroyEvent(void* event, DeviceIndex index) const noexcept override {
    if (!t_.event_create)
      delete static_cast<HostEvent*>(event);
    else if (!is_forked())
      t_.event_destroy(t_.self, index, event);
  }
  void record(void** event, const Stream& s, DeviceIndex index, EventFlag flag) const override {
    b_.enter();
    const DeviceIndex where = index_of(s.device());
    CRESSET_CHECK(index == -1 || index == where, "Event device index ", static_cast<int>(index),
                  " does not match recording stream's device index ", static_cast<int>(where), ".");
    if (!t_.event_create) {
      synchronizeStream(s);
      if (!*event) *event = new HostEvent();
      static_cast<HostEvent*>(*event)->time = std::chrono::steady_clock::now();
      return;
    }
    if (!*event) {
      const int flags = flag == EventFlag::BACKEND_DEFAULT ? CRESSET_EVENT_TIMING
                        : flag == EventFlag::INTERPROCESS  ? CRESSET_EVENT_INTERPROCESS
                                                           : 0;
      b_.check(t_.event_create(t_.self, where, flags, event), where, "making an event");
    }
    b_.check(t_.event_record(t_.self, where, *event, static_cast<cresset_stream>(s.id())), where, "recording an event");
  }
  void block(void* event, const Stream& s) const override {
    if (!t_.event_create || !event) return;
    const DeviceIndex where = index_of(s.device());
    b_.check(t_.event_wait(t_.self, where, event, static_cast<cresset_stream>(s.id())), where, "waiting for an event");
  }
  bool queryEvent(void* event) const override {
    if (!t_.event_create || !event) return true;
    int32_t done = 0;
    b_.check(t_.event_query(t_.self, event, &done), -1, "asking an event");
    return done != 0;
  }
  void synchronizeEvent(void* event) const override {
    if (t_.event_create && event) b_.check(t_.event_synchronize(t_.self, event), -1, "waiting for an event");
  }
  double elapsedTime(void* begin, void* end, DeviceIndex index) const override {
    if (!t_.event_create)
      return std::chrono::duration<double, std::milli>(static_cast<HostEvent*>(end)->time - static_cast<HostEvent*>(begin)->time).count();
    CRESSET_CHECK_NOT_IMPLEMENTED(t_.event_elapsed, b_.name(), ": this backend does not measure time with events.");
    double ms = 0;
    b_.check(t_.event_elapsed(t_.self, begin, end, &ms), index, "measuring time");
    return ms;
  }

  bool sharesEvents() const override { return t_.event_export != nullptr; }
  std::string exportEvent(void** event, DeviceIndex index) const override {
    if (!t_.event_export) return DeviceGuardImplInterface::exportEvent(event, index);
    b_.enter();
    b_.check_index(index);
    if (!*event) b_.check(t_.event_create(t_.self, index, CRESSET_EVENT_INTERPROCESS, event), index, "making an event");
    std::string handle(CRESSET_EVENT_HANDLE_BYTES, '\0');
    b_.check(t_.event_export(t_.self, index, *event, reinterpret_cast<uint8_t*>(handle.data())), index, "sharing an event");
    return handle;
  }
  void* importEvent(std::string_view handle, DeviceIndex index) const override {
    if (!t_.event_import) return DeviceGuardImplInterface::importEvent(handle, index);
    CRESSET_CHECK_VALUE(handle.size() == CRESSET_EVENT_HANDLE_BYTES, "Event: a handle of ", CRESSET_EVENT_HANDLE_BYTES,
                        " bytes was required; ", handle.size(), " were given.");
    b_.enter();
    b_.check_index(index);
    void* event = nullptr;
    b_.check(t_.event_import(t_.self, index, reinterpret_cast<const uint8_t*>(handle.data()), &event), index,
             "taking an event of another process");
    return event;
  }

  bool queryStream(const Stream& s) const override {
    if (!t_.stream_query) return true;
    int32_t done = 0;
    b_.check(t_.stream_query(t_.self, index_of(s.device()), static_cast<cresset_stream>(s.id()), &done), s.device_index(),
             "asking a stream");
    return done != 0;
  }
  void synchronizeStream(const Stream& s) const override {
    if (!t_.stream_synchronize) return synchronizeDevice(s.device_index());
    b_.enter();
    check_may_wait(s, "Stream.synchronize");
    b_.check(t_.stream_synchronize(t_.self, index_of(s.device()), static_cast<cresset_stream>(s.id())), s.device_index(),
             "waiting for a stream");
  }
  void synchronizeDevice(DeviceIndex index) const override {
    if (!t_.synchronize) return;
    const DeviceIndex where = index_of(Device(type(), index));
    b_.enter();
    check_may_wait(Device(type(), where), "synchronize");
    b_.check(t_.synchronize(t_.self, where), where, "waiting for the device");
    b_.device(where).memory.free_lingering(false);
  }

  // The stream of an allocation is not known, so every stream counts, the default one too.
  void recordDataPtrOnStream(const DataPtr& data, const Stream& s) const override {
    CRESSET_CHECK(s.device_type() == type() && s.device() == data.device(), "record_stream: a stream of ", data.device(), " was required; ",
                  s, " was given.");
    if (data.get_deleter() != &DeviceMemory::free || !t_.stream_create) return;  // no memory, somebody else's, or one queue for all
    auto* block = static_cast<Block*>(data.get_context());
    block->memory->record_stream(*block, static_cast<cresset_stream>(s.id()));
  }

 private:
  template <class Choose>
  Stream stream_from_pool(Device d, Choose choose) const {
    if (!t_.stream_create) return getDefaultStream(d);
    const DeviceIndex index = index_of(d);
    b_.enter();
    const int priority = choose(b_.stream_priorities(index));
    BackendDevice& device = b_.device(index);
    std::lock_guard lock(device.mutex);
    auto& [made, next] = device.pool[priority];
    const std::size_t at = next++ % kStreamsInPool;
    if (at == made.size()) {
      cresset_stream s = 0;
      b_.check(t_.stream_create(t_.self, index, priority, &s), index, "making a stream");
      made.push_back(s);
    }
    return stream(index, static_cast<StreamId>(made[at]));
  }
  DeviceIndex slot() const { return current_device_of(type()); }
  DeviceIndex index_of(Device d) const {
    if (!d.has_index()) return slot();
    b_.check_index(d.index());
    return d.index();
  }
  Stream stream(DeviceIndex index, StreamId id) const { return Stream(Stream::UNSAFE, Device(type(), index), id); }
  Backend& b_;
  const cresset_backend& t_;
};

struct BackendHooks final : AcceleratorHooksInterface {
  explicit BackendHooks(Backend& b) : backend(b), guard(b.guard()), pinned(b) {}
  bool isBuilt() const override { return true; }
  bool hasPrimaryContext(DeviceIndex index) const override { return backend.device(index).memory.was_used(); }
  DeviceIndex deviceCount() const override { return static_cast<DeviceIndex>(backend.device_count()); }
  void setCurrentDevice(DeviceIndex index) const override { guard->setDevice(Device(backend.type(), index)); }
  DeviceIndex getCurrentDevice() const override { return guard->getDevice().index(); }
  DeviceIndex exchangeDevice(DeviceIndex index) const override { return guard->exchangeDevice(Device(backend.type(), index)).index(); }
  bool isPinnedPtr(const void* data) const override { return backend.is_pinned(data); }
  Allocator* getPinnedMemoryAllocator() const override {
    CRESSET_CHECK(backend.table().pinned_allocate, backend.name(), ": this backend has no pinned memory. `cresset doctor ", backend.name(),
                  "` lists its parts.");
    return &pinned;
  }
  const Generator& getDefaultGenerator(DeviceIndex index) const override { return default_generator_of(Device(backend.type(), index)); }
  Generator getNewGenerator(DeviceIndex index) const override { return make_generator_for(Device(backend.type(), index)); }

  Backend& backend;
  const impl::DeviceGuardImplInterface* guard;
  mutable PinnedAllocator pinned;
};

// Tells the backend of seeds, when it wants to know.
void tell_seed(Device device, uint64_t seed) {
  const Backend* b = backend_of(device.type());
  const cresset_backend& t = b->table();
  if (t.generator_seed) b->check(t.generator_seed(t.self, device.index(), seed), device.index(), "seeding");
}

template <int Slot>
Generator make_generator_of_slot(DeviceIndex index) {
  return make_generator<DeviceGeneratorImpl>(Device(static_cast<DeviceType>(Slot), index), kDefaultRandomSeed, &tell_seed);
}
template <int... Slot>
GeneratorMaker maker_of_slot(DeviceType t, std::integer_sequence<int, Slot...>) {
  static constexpr GeneratorMaker makers[] = {&make_generator_of_slot<Slot>...};
  return makers[static_cast<std::size_t>(t)];
}

}  // namespace

// ---- Backend

Backend::Backend(const cresset_backend& table, DeviceType type)
    : table_(table),
      type_(type),
      name_(table.name),
      file_tag_(table.file_tag ? table.file_tag : table.name),
      description_(table.description ? table.description : ""),
      allocator_(std::make_unique<BackendAllocator>(*this)),
      guard_(std::make_unique<BackendGuard>(*this)),
      hooks_(std::make_unique<BackendHooks>(*this)) {
  for (int i = 0; i < kMaxDevices; ++i) devices_[static_cast<std::size_t>(i)] = std::make_unique<BackendDevice>(*this, i);
}

int Backend::device_count() const { return std::clamp(table_.device_count(table_.self), 0, kMaxDevices); }

std::pair<int, int> Backend::stream_priorities(int index) const {
  int32_t lowest = 0, highest = -1;
  if (table_.stream_priorities) check(table_.stream_priorities(table_.self, index, &lowest, &highest), index, "asking for priorities");
  return {lowest, highest};
}

void Backend::enter() const {
  note_use();
  CRESSET_CHECK(!is_forked(), "Cannot re-initialize ", name_, " in forked subprocess. To use ", name_,
                " with multiprocessing, you must use the 'spawn' start method.");
  if (const std::string* reason = broken_.load(std::memory_order_acquire); CRESSET_UNLIKELY(reason))
    CRESSET_THROW(Error, "backend '", name_, "' is not used, since a part of it does not load: ", *reason);
}

void Backend::refuse(const std::string& reason) {
  const std::string* none = nullptr;
  auto text = std::make_unique<const std::string>(reason);
  if (broken_.compare_exchange_strong(none, text.get())) text.release();
}

void Backend::raise(cresset_status status, int device, std::string_view what) const {
  std::string text;
  if (table_.error_text)
    if (const char* t = table_.error_text(table_.self, status); t && *t) text = std::string(": ") + t;
  const std::string where = device >= 0 ? str(name_, ":", device) : name_;
  if (status == CRESSET_OUT_OF_MEMORY)
    CRESSET_THROW(OutOfMemoryError, where, ": out of memory: ", what, text, "\nFree tensors first, or use smaller ones.");
  if (status == CRESSET_NOT_SUPPORTED) CRESSET_THROW(NotImplementedError, where, ": ", what, " is not supported", text);
  CRESSET_THROW(DeviceError, where, ": ", what, " failed with code ", static_cast<int>(status), text);
}

void Backend::check_index(int index) const {
  const int n = device_count();
  CRESSET_CHECK(index >= 0 && index < n, name_, ": invalid device ordinal ", index, "; ", n,
                n == 1 ? " device is present." : " devices are present.", " `cresset doctor ", name_, "` lists them.");
}

DataPtr Backend::allocate_pinned(std::size_t nbytes) const {
  if (nbytes == 0) return DataPtr(nullptr, kCPU);
  enter();
  void* data = nullptr;
  cresset_status status = table_.pinned_allocate(table_.self, nbytes, &data);
  if (status == CRESSET_OK && !data) status = CRESSET_OUT_OF_MEMORY;
  check(status, -1, str("you tried to allocate ", nbytes, " bytes of pinned memory"));
  {
    std::lock_guard lock(pinned_ranges().mutex);
    pinned_ranges().by_start[static_cast<const char*>(data)] = nbytes;
  }
  return DataPtr(data, new PinnedBlock{this, data, nbytes}, &free_pinned, kCPU);
}

bool Backend::is_pinned(const void* data) const {
  if (!table_.pinned_allocate) return false;
  PinnedRanges& ranges = pinned_ranges();
  std::shared_lock lock(ranges.mutex);
  auto after = ranges.by_start.upper_bound(static_cast<const char*>(data));
  if (after == ranges.by_start.begin()) return false;
  const auto& [start, size] = *--after;
  return static_cast<const char*>(data) < start + size;
}

void install_device(Backend& b) {
  SetAllocator(b.type(), b.allocator());
  impl::registerDeviceGuardImpl(b.type(), b.guard());
  if (!getAcceleratorHooks(b.type())) registerAcceleratorHooks(b.type(), b.hooks());
  give_generator(b.type(), maker_of_slot(b.type(), std::make_integer_sequence<int, kDeviceTypeCount>()));
}

}  // namespace cresset::detail

namespace cresset {

DeviceMemoryStats device_memory_stats(Device device) {
  const Device d = resolved_device(device);
  if (d.is_cpu()) {
    const MemoryStats cpu = cpu_memory_stats();
    return {cpu.allocated_bytes, cpu.peak_bytes, 0, 0, cpu.allocated_bytes, cpu.peak_bytes};
  }
  const detail::Backend* b = detail::backend_of(d.type());
  const DeviceMemoryCounters c = device_memory_counters(d);
  const MemoryCounter &count = c.tensors.count[0], &bytes = c.tensors.bytes[0], &held = c.held.bytes[0];
  DeviceMemoryStats out{bytes.current, bytes.peak, count.allocated, count.current, held.current, held.peak};
  if (b && b->table().memory_stats) {
    const cresset_backend& t = b->table();
    cresset_memory_stats own{sizeof own, 0, 0};
    b->check(t.memory_stats(t.self, d.index(), &own), d.index(), "memory_stats");
    out.reserved_bytes = static_cast<int64_t>(own.reserved_bytes);
    out.peak_reserved_bytes = static_cast<int64_t>(own.peak_reserved_bytes);
  }
  return out;
}

void reset_peak_device_memory_stats(Device device) {
  const Device d = resolved_device(device);
  if (d.is_cpu()) return reset_peak_cpu_memory_stats();
  reset_device_memory_counters(d, false);
  const detail::Backend* b = detail::backend_of(d.type());
  if (b && b->table().reset_peak_memory_stats) b->table().reset_peak_memory_stats(b->table().self, d.index());
}

int device_count(DeviceType t) {
  if (t == kCPU || t == kMeta) return 1;
  if (const detail::Backend* b = detail::backend_of(t)) return b->device_count();
  if (const auto* hooks = getAcceleratorHooks(t); hooks && hooks->deviceCount() > 0) return hooks->deviceCount();
  return impl::hasDeviceGuardImpl(t) ? impl::getDeviceGuardImpl(t)->deviceCount() : 0;
}

Device resolved_device(Device d) {
  if (d.is_cpu() || d.is_meta()) return d;
  if (!d.has_index()) return impl::hasDeviceGuardImpl(d.type()) ? impl::getDeviceGuardImpl(d.type())->getDevice() : Device(d.type(), 0);
  if (const detail::Backend* b = detail::backend_of(d.type())) b->check_index(d.index());
  return d;
}

namespace detail {

DataPtr allocate_on(Device device, std::size_t nbytes) {
  const Device d = resolved_device(device);
  const Backend* b = backend_of(d.type());
  CRESSET_INTERNAL_ASSERT(b);
  return b->device(d.index()).memory.allocate(nbytes);
}

void check_backend(DeviceType t, cresset_status status, int device, std::string_view what) {
  if (CRESSET_LIKELY(status == CRESSET_OK)) return;
  backend_of(t)->check(status, device, what);
}

// Work that comes into a stream from now on waits for what is in another stream; the host does not, where there are events.
static void let_follow(const Stream& later, const Stream& earlier) {
  if (!backend_of(later.device_type())->table().event_create) return earlier.synchronize();
  Event event(earlier.device_type());
  event.record(earlier);
  event.block(later);
}

void copy_bytes(void* target, Device target_device, std::size_t target_offset, const void* source, Device source_device,
                std::size_t source_offset, std::size_t nbytes, bool non_blocking) {
  if (nbytes == 0) return;
  const bool to_host = target_device.is_cpu(), from_host = source_device.is_cpu();
  const Device where = to_host ? source_device : target_device;
  const Backend* b = backend_of(where.type());
  CRESSET_INTERNAL_ASSERT(b && (to_host || from_host || source_device.type() == target_device.type()));
  b->enter();
  const auto* guard = impl::getDeviceGuardImpl(where.type());
  const bool opaque = b->table().flags & CRESSET_OPAQUE_MEMORY;
  cresset_copy c{};
  c.struct_size = sizeof c;
  const auto place = [&](auto* base, bool host, std::size_t offset, std::size_t& kept) {
    kept = opaque && !host ? offset : 0;
    return base + (offset - kept);
  };
  c.target = place(static_cast<char*>(target), to_host, target_offset, c.target_offset);
  c.source = place(static_cast<const char*>(source), from_host, source_offset, c.source_offset);
  c.nbytes = nbytes;
  c.target_device = to_host ? -1 : target_device.index();
  c.source_device = from_host ? -1 : source_device.index();
  const Stream stream = guard->getStream(where);
  c.stream = static_cast<cresset_stream>(stream.id());
  // Memory that the host can move or free at any time cannot be waited for later.
  c.non_blocking = (!to_host && !from_host) || (non_blocking && (!to_host || b->is_pinned(target)) && (!from_host || b->is_pinned(source)));
  // Texts of errors are made where there is one: they cost more than a small copy.
  if (!c.non_blocking && (to_host || from_host) && CRESSET_UNLIKELY(is_anything_recorded()))
    check_may_wait(stream, str("a copy of ", nbytes, to_host ? " bytes to the host" : " bytes from pageable memory"));
  const bool between_devices = !to_host && !from_host && source_device != target_device;
  // The target's queue does the work, after what is in the source's queue; what comes later there, such as freeing the source, follows it.
  if (between_devices) let_follow(guard->getStream(target_device), guard->getStream(source_device));
  if (const cresset_status status = b->table().copy(b->table().self, &c); CRESSET_UNLIKELY(status != CRESSET_OK))
    b->raise(status, where.index(), str("a copy of ", nbytes, " bytes"));
  if (between_devices) let_follow(guard->getStream(source_device), guard->getStream(target_device));
}

bool can_access_peer(Device device, Device peer) {
  const Device a = resolved_device(device), b = resolved_device(peer);
  if (a.type() != b.type() || a == b) return false;
  const Backend* backend = backend_of(a.type());
  if (!backend || !backend->table().peer_access) return false;
  int32_t possible = 0;
  backend->check(backend->table().peer_access(backend->table().self, a.index(), b.index(), &possible), a.index(), "peer_access");
  return possible != 0;
}

std::pair<int, int> stream_priorities(Device device) {
  const Device d = resolved_device(device);
  const Backend* b = backend_of(d.type());
  return b ? b->stream_priorities(d.index()) : std::pair{0, 0};
}

void* native_stream(const Stream& s) {
  const Backend* b = backend_of(s.device_type());
  CRESSET_CHECK_NOT_IMPLEMENTED(b && b->table().stream_to_native, "Stream.native_handle: the backend of ", s.device(),
                                " does not show its queues.");
  void* handle = nullptr;
  b->check(b->table().stream_to_native(b->table().self, s.device_index(), static_cast<cresset_stream>(s.id()), &handle), s.device_index(),
           "native_handle");
  return handle;
}

Stream stream_of_native(Device device, void* handle) {
  const Device d = resolved_device(device);
  const Backend* b = backend_of(d.type());
  CRESSET_CHECK_NOT_IMPLEMENTED(b && b->table().stream_from_native, "ExternalStream: the backend of ", d,
                                " does not take queues that others made.");
  cresset_stream s = 0;
  b->check(b->table().stream_from_native(b->table().self, d.index(), handle, &s), d.index(), "ExternalStream");
  return Stream(Stream::UNSAFE, d, static_cast<StreamId>(s));
}

}  // namespace detail
}  // namespace cresset
