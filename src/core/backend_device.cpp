// Devices described by tables: memory, current devices, streams, events, generators, pinned memory.
#include "core/backend_device.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <set>
#include <shared_mutex>

#include <cresset/base/fork.h>
#include <cresset/core/device_generator.h>

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

// ---- the thread's current devices and streams

// Snapshots are immutable and live for ever (there are as many as a program has combinations), so that the pointer to one
// can travel to worker threads with the rest of the thread's state.
struct Current {
  std::array<DeviceIndex, kDeviceTypeCount> device{};
  std::map<std::pair<DeviceType, DeviceIndex>, StreamId> streams;  // those that are not the default
  friend auto operator<=>(const Current&, const Current&) = default;
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

struct Block {
  const Backend* backend;
  void* data;
  std::size_t nbytes;
  int device;
  std::vector<cresset_stream> used_in;  // recorded streams, guarded by the device's mutex
};

// Puts an event behind the work of each stream that used the block. False when the backend cannot: then the streams were waited for.
bool lingers(const Block& block, BackendDevice& d) {
  if (block.used_in.empty()) return false;
  const cresset_backend& t = block.backend->table();
  LingeringBlock lingering{block.data, block.nbytes, {}};
  for (const cresset_stream s : block.used_in) {
    void* event = nullptr;
    if (t.event_create && t.event_create(t.self, block.device, 0, &event) == CRESSET_OK) {
      lingering.events.push_back(event);
      if (t.event_record(t.self, block.device, event, s) == CRESSET_OK) continue;
    }
    if (t.stream_synchronize) t.stream_synchronize(t.self, block.device, s);
  }
  if (lingering.events.empty()) return false;
  const std::lock_guard lock(d.mutex);
  d.lingering.push_back(std::move(lingering));
  d.has_lingering.store(true, std::memory_order_relaxed);
  return true;
}

void free_block(void* context) {
  const std::unique_ptr<Block> block(static_cast<Block*>(context));
  if (forked.load(std::memory_order_relaxed)) return;  // the parent's memory
  BackendDevice& d = block->backend->device(block->device);
  d.allocated.fetch_sub(static_cast<int64_t>(block->nbytes), std::memory_order_relaxed);
  d.live.fetch_sub(1, std::memory_order_relaxed);
  memory_changed(block->data, -static_cast<int64_t>(block->nbytes),
                 Device(block->backend->type(), static_cast<DeviceIndex>(block->device)));
  if (lingers(*block, d)) return;
  const cresset_backend& t = block->backend->table();
  t.deallocate(t.self, block->device, block->data, block->nbytes);
}

struct BackendAllocator final : Allocator {
  explicit BackendAllocator(const Backend& b) : backend(b) {}
  DataPtr allocate(std::size_t n) override { return backend.allocate(current_device_of(backend.type()), n); }
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
  if (forked.load(std::memory_order_relaxed)) return;
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
    if (t_.set_device && !forked.load(std::memory_order_relaxed)) t_.set_device(t_.self, d.index());
    set_current_device(type(), d.index());
  }

  Stream getStream(Device d) const override { return stream(index_of(d), current_stream_of(type(), index_of(d))); }
  Stream getDefaultStream(Device d) const override { return stream(index_of(d), 0); }
  Stream getStreamFromGlobalPool(Device d, bool high) const override {
    if (!t_.stream_create) return getDefaultStream(d);
    const DeviceIndex index = index_of(d);
    b_.enter();
    BackendDevice& device = b_.device(index);
    std::lock_guard lock(device.mutex);
    auto& pool = device.pool[high];
    const std::size_t at = device.next[high]++ % kStreamsInPool;
    if (at == pool.size()) {
      cresset_stream s = 0;
      b_.check(t_.stream_create(t_.self, index, high ? -1 : 0, &s), index, "making a stream");
      pool.push_back(s);
    }
    return stream(index, static_cast<StreamId>(pool[at]));
  }
  Stream getNewStream(Device d, int priority) const override { return getStreamFromGlobalPool(d, priority < 0); }
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
    else if (!forked.load(std::memory_order_relaxed))
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
      const int flags = flag == EventFlag::BACKEND_DEFAULT ? CRESSET_EVENT_TIMING : 0;
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
    b_.check(t_.stream_synchronize(t_.self, index_of(s.device()), static_cast<cresset_stream>(s.id())), s.device_index(),
             "waiting for a stream");
  }
  void synchronizeDevice(DeviceIndex index) const override {
    if (!t_.synchronize) return;
    const DeviceIndex where = index_of(Device(type(), index));
    b_.enter();
    b_.check(t_.synchronize(t_.self, where), where, "waiting for the device");
    b_.free_lingering(where, false);
  }

  // The stream of an allocation is not known, so every stream counts, the default one too.
  void recordDataPtrOnStream(const DataPtr& data, const Stream& s) const override {
    CRESSET_CHECK(s.device_type() == type() && s.device() == data.device(), "record_stream: a stream of ", data.device(), " was required; ",
                  s, " was given.");
    if (data.get_deleter() != &free_block || !t_.stream_create) return;  // no memory, somebody else's, or one queue for all
    auto* block = static_cast<Block*>(data.get_context());
    const std::lock_guard lock(b_.device(block->device).mutex);
    const auto id = static_cast<cresset_stream>(s.id());
    if (std::find(block->used_in.begin(), block->used_in.end(), id) == block->used_in.end()) block->used_in.push_back(id);
  }

 private:
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
  bool hasPrimaryContext(DeviceIndex index) const override { return backend.device(index).allocations.load() > 0; }
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
  for (auto& d : devices_) d = std::make_unique<BackendDevice>();
}

int Backend::device_count() const { return std::clamp(table_.device_count(table_.self), 0, kMaxDevices); }

void Backend::enter() const {
  note_use();
  CRESSET_CHECK(!forked.load(std::memory_order_relaxed), "Cannot re-initialize ", name_, " in forked subprocess. To use ", name_,
                " with multiprocessing, you must use the 'spawn' start method.");
  if (const std::string* reason = broken_.load(std::memory_order_acquire); CRESSET_UNLIKELY(reason))
    CRESSET_THROW(Error, "backend '", name_, "' is not used, since a part of it does not load: ", *reason);
}

void Backend::refuse(const std::string& reason) {
  const std::string* none = nullptr;
  auto text = std::make_unique<const std::string>(reason);
  if (broken_.compare_exchange_strong(none, text.get())) text.release();
}

void Backend::check(cresset_status status, int device, const std::string& what) const {
  if (CRESSET_LIKELY(status == CRESSET_OK)) return;
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

void Backend::free_lingering(int index, bool wait) const {
  BackendDevice& d = device(index);
  if (CRESSET_LIKELY(!d.has_lingering.load(std::memory_order_relaxed))) return;
  std::vector<LingeringBlock> done;
  {
    const std::lock_guard lock(d.mutex);
    const auto is_used = [&](const LingeringBlock& block) {
      return std::ranges::any_of(block.events, [&](void* event) {
        if (wait) return table_.event_synchronize(table_.self, event) != CRESSET_OK;
        int32_t happened = 0;
        return table_.event_query(table_.self, event, &happened) == CRESSET_OK && !happened;
      });
    };
    const auto first_done = std::stable_partition(d.lingering.begin(), d.lingering.end(), is_used);
    std::move(first_done, d.lingering.end(), std::back_inserter(done));
    d.lingering.erase(first_done, d.lingering.end());
    d.has_lingering.store(!d.lingering.empty(), std::memory_order_relaxed);
  }
  for (const LingeringBlock& block : done) {
    for (void* event : block.events) table_.event_destroy(table_.self, index, event);
    table_.deallocate(table_.self, index, block.data, block.nbytes);
  }
}

DataPtr Backend::allocate(int index, std::size_t nbytes) const {
  const Device where(type_, static_cast<DeviceIndex>(index));
  if (nbytes == 0) return DataPtr(nullptr, where);
  enter();
  free_lingering(index, false);
  void* data = nullptr;
  cresset_status status = table_.allocate(table_.self, index, nbytes, &data);
  if (CRESSET_UNLIKELY(status == CRESSET_OUT_OF_MEMORY || !data) && device(index).has_lingering.load()) {
    free_lingering(index, true);
    status = table_.allocate(table_.self, index, nbytes, &data);
  }
  if (CRESSET_UNLIKELY(status != CRESSET_OK || !data))
    check(status == CRESSET_OK ? CRESSET_OUT_OF_MEMORY : status, index, str("you tried to allocate ", nbytes, " bytes"));
  BackendDevice& d = device(index);
  const int64_t now = d.allocated.fetch_add(static_cast<int64_t>(nbytes), std::memory_order_relaxed) + static_cast<int64_t>(nbytes);
  int64_t peak = d.peak.load(std::memory_order_relaxed);
  while (now > peak && !d.peak.compare_exchange_weak(peak, now, std::memory_order_relaxed)) {
  }
  d.allocations.fetch_add(1, std::memory_order_relaxed);
  d.live.fetch_add(1, std::memory_order_relaxed);
  memory_changed(data, static_cast<int64_t>(nbytes), where);
  return DataPtr(data, new Block{this, data, nbytes, index, {}}, &free_block, where);
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
  const detail::Backend* b = detail::backend_of(d.type());
  if (!b) {
    const MemoryStats s = d.is_cpu() ? cpu_memory_stats() : MemoryStats();
    return {s.allocated_bytes, s.peak_bytes, 0, 0, s.allocated_bytes, s.peak_bytes};
  }
  const detail::BackendDevice& e = b->device(d.index());
  DeviceMemoryStats out{e.allocated.load(), e.peak.load(), e.allocations.load(), e.live.load(), e.allocated.load(), e.peak.load()};
  if (const cresset_backend& t = b->table(); t.memory_stats) {
    cresset_memory_stats own{sizeof own, 0, 0};
    b->check(t.memory_stats(t.self, d.index(), &own), d.index(), "memory_stats");
    out.reserved_bytes = static_cast<int64_t>(own.reserved_bytes);
    out.peak_reserved_bytes = static_cast<int64_t>(own.peak_reserved_bytes);
  }
  return out;
}

void reset_peak_device_memory_stats(Device device) {
  const Device d = resolved_device(device);
  if (const detail::Backend* b = detail::backend_of(d.type())) {
    b->device(d.index()).peak.store(b->device(d.index()).allocated.load());
    if (const cresset_backend& t = b->table(); t.reset_peak_memory_stats) t.reset_peak_memory_stats(t.self, d.index());
  } else if (d.is_cpu()) {
    reset_peak_cpu_memory_stats();
  }
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
  return b->allocate(d.index(), nbytes);
}

void check_backend(DeviceType t, cresset_status status, int device, const std::string& what) {
  if (CRESSET_LIKELY(status == CRESSET_OK)) return;
  backend_of(t)->check(status, device, what);
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
  // Between two devices the target's queue does the work, after everything in the source's queue.
  if (!to_host && !from_host && source_device != target_device) guard->synchronizeStream(guard->getStream(source_device));
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
  c.stream = static_cast<cresset_stream>(guard->getStream(where).id());
  // Memory that the host can move or free at any time cannot be waited for later.
  c.non_blocking = non_blocking && (!to_host || b->is_pinned(target)) && (!from_host || b->is_pinned(source));
  b->check(b->table().copy(b->table().self, &c), where.index(), str("a copy of ", nbytes, " bytes"));
}

}  // namespace detail
}  // namespace cresset
