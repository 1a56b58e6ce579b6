// Memory of devices with a table: allocation, pools, limits, counters, history.
#include "core/backend_memory.h"

#include <algorithm>
#include <chrono>

#include <cresset/core/device_allocator.h>

#include "base/thread_state.h"
#include "core/backend_device.h"
#include "core/memory_watch.h"

namespace cresset {

void MemoryCounters::add(int64_t n) {
  for (const int i : {0, n >= kLarge ? 1 : 2}) {
    count[static_cast<std::size_t>(i)].add(1);
    bytes[static_cast<std::size_t>(i)].add(n);
  }
}
void MemoryCounters::remove(int64_t n) {
  for (const int i : {0, n >= kLarge ? 1 : 2}) {
    count[static_cast<std::size_t>(i)].remove(1);
    bytes[static_cast<std::size_t>(i)].remove(n);
  }
}

namespace detail {
namespace {

// The innermost scope of the thread. A scope outlives the backward passes that carry it to other threads, for their callers wait.
thread_local MemoryPoolScope* scope = nullptr;
const bool scope_carried = [] {
  register_thread_state([] { return static_cast<uint64_t>(reinterpret_cast<uintptr_t>(scope)); },
                        [](uint64_t word) { scope = reinterpret_cast<MemoryPoolScope*>(static_cast<uintptr_t>(word)); });
  return true;
}();

std::atomic<std::string (*)()> stack_source{nullptr};
std::atomic<int> histories{0};  // devices that keep one

StackText stack_here() {
  if (CRESSET_LIKELY(histories.load(std::memory_order_relaxed) == 0)) return nullptr;
  const auto source = stack_source.load();
  return source ? std::make_shared<const std::string>(source()) : nullptr;
}
int64_t signed_size(std::size_t n) { return static_cast<int64_t>(n); }

}  // namespace

// ---- pools

MemoryPoolPtr DeviceMemoryPool::current(const DeviceMemory& memory) {
  for (MemoryPoolScope* s = scope; s; s = s->outer_)
    if (s->open_ && &s->pool_->memory_ == &memory) return s->pool_;
  return nullptr;
}

DeviceMemoryPool::~DeviceMemoryPool() {
  for (const auto& [nbytes, block] : idle) memory_.give_to_backend(block.data, nbytes, block.stream);
}

// ---- one device

Device DeviceMemory::device() const { return Device(backend_.type(), static_cast<DeviceIndex>(index_)); }

void DeviceMemory::note(MemoryEvent::Action action, const void* address, std::size_t nbytes, cresset_stream stream,
                        const StackText& stack) {
  if (CRESSET_LIKELY(history_most_ == 0)) return;
  const int64_t now = std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::system_clock::now().time_since_epoch()).count();
  history_.push_back({action, reinterpret_cast<uintptr_t>(address), signed_size(nbytes), static_cast<int64_t>(stream), now, stack});
  if (history_.size() > history_most_) history_.pop_front();
}

void DeviceMemory::link(Block& block) {
  block.after = first_;
  if (first_) first_->before = &block;
  first_ = &block;
}
void DeviceMemory::unlink(Block& block) {
  (block.before ? block.before->after : first_) = block.after;
  if (block.after) block.after->before = block.before;
}

void DeviceMemory::raise_limit(std::size_t nbytes) {
  int64_t used, limit;
  double fraction;
  {
    const std::lock_guard lock(mutex_);
    ++counters_.out_of_memory;
    used = counters_.held.bytes[0].current;
    limit = limit_;
    fraction = fraction_;
    note(MemoryEvent::OutOfMemory, reinterpret_cast<void*>(static_cast<uintptr_t>(limit - used)), nbytes, 0, nullptr);
  }
  CRESSET_THROW(OutOfMemoryError, device(), ": out of memory: you tried to allocate ", nbytes, " bytes, and ", used, " of the ", limit,
                " bytes are in use that set_per_process_memory_fraction(", fraction, ") allows.\nFree tensors first, or allow more.");
}

void* DeviceMemory::take_from_backend(std::size_t nbytes, cresset_stream stream, const StackText& stack) {
  const cresset_backend& t = backend_.table();
  const auto is_over = [&] {
    const int64_t limit = limit_.load(std::memory_order_relaxed);
    if (CRESSET_LIKELY(limit < 0)) return false;
    const std::lock_guard lock(mutex_);
    return counters_.held.bytes[0].current + signed_size(nbytes) > limit;
  };
  if (CRESSET_UNLIKELY(is_over())) {
    free_lingering(true);
    if (is_over()) raise_limit(nbytes);
  }
  void* data = nullptr;
  cresset_status status = t.allocate(t.self, index_, nbytes, &data);
  if (CRESSET_UNLIKELY(status == CRESSET_OUT_OF_MEMORY || !data) && has_lingering_.load()) {
    free_lingering(true);
    {
      const std::lock_guard lock(mutex_);
      ++counters_.retries;
    }
    status = t.allocate(t.self, index_, nbytes, &data);
  }
  if (CRESSET_UNLIKELY(status != CRESSET_OK || !data)) {
    {
      const std::lock_guard lock(mutex_);
      ++counters_.out_of_memory;
      note(MemoryEvent::OutOfMemory, nullptr, nbytes, stream, stack);
    }
    backend_.check(status == CRESSET_OK ? CRESSET_OUT_OF_MEMORY : status, index_, str("you tried to allocate ", nbytes, " bytes"));
  }
  return data;
}

void* DeviceMemory::take_from_pool(DeviceMemoryPool& pool, std::size_t nbytes, cresset_stream stream) {
  const std::lock_guard lock(mutex_);
  const auto [first, last] = pool.idle.equal_range(nbytes);
  for (auto at = first; at != last; ++at) {
    if (at->second.stream != stream || !at->second.reusable) continue;
    void* const data = at->second.data;
    pool.idle.erase(at);
    return data;
  }
  return nullptr;
}

DataPtr DeviceMemory::allocate(std::size_t nbytes) {
  const Device where = device();
  if (nbytes == 0) return DataPtr(nullptr, where);
  backend_.enter();
  free_lingering(false);
  const auto stream = static_cast<cresset_stream>(backend_.guard()->getStream(where).id());
  auto block = std::make_unique<Block>(this, nullptr, nbytes, stream, scope ? DeviceMemoryPool::current(*this) : nullptr);
  block->stack = stack_here();
  if (block->pool) block->data = take_from_pool(*block->pool, nbytes, stream);
  const bool is_new = !block->data;
  if (is_new) block->data = take_from_backend(nbytes, stream, block->stack);
  {
    const std::lock_guard lock(mutex_);
    if (is_new) {
      counters_.held.add(signed_size(nbytes));
      note(MemoryEvent::SegmentAllocate, block->data, nbytes, stream, block->stack);
    }
    counters_.tensors.add(signed_size(nbytes));
    counters_.active.add(signed_size(nbytes));
    note(MemoryEvent::Allocate, block->data, nbytes, stream, block->stack);
    link(*block);
  }
  memory_changed(block->data, signed_size(nbytes), where);
  void* const data = block->data;
  return DataPtr(data, block.release(), &DeviceMemory::free, where);
}

void DeviceMemory::free(void* context) {
  const std::unique_ptr<Block> block(static_cast<Block*>(context));
  if (is_forked()) return;  // the parent's memory
  DeviceMemory& m = *block->memory;
  const bool drops_recorded_memory = !block->pool && scope && is_capturing_in_this_thread(m.device());
  // What a graph being recorded has used stays with the graph.
  if (CRESSET_UNLIKELY(drops_recorded_memory)) block->pool = DeviceMemoryPool::current(m);
  bool pending, returns;  // waits for streams; goes back to the backend at once
  {
    const std::lock_guard lock(m.mutex_);
    m.unlink(*block);
    m.counters_.tensors.remove(signed_size(block->nbytes));
    m.note(MemoryEvent::Free, block->data, block->nbytes, block->stream, block->stack);
    pending = !block->used_in.empty();
    returns = !pending && !block->pool;
    if (!pending) m.counters_.active.remove(signed_size(block->nbytes));
    if (returns) m.note_return(block->data, block->nbytes, block->stream);
  }
  memory_changed(block->data, -signed_size(block->nbytes), m.device());
  if (returns) return m.deallocate(block->data, block->nbytes);
  if (pending && m.lingers(*block)) return;
  if (pending) {
    const std::lock_guard lock(m.mutex_);
    m.counters_.active.remove(signed_size(block->nbytes));
  }
  m.give_back(block->data, block->nbytes, block->stream, block->pool, !drops_recorded_memory);
}

void DeviceMemory::give_back(void* data, std::size_t nbytes, cresset_stream stream, const MemoryPoolPtr& pool, bool reusable) {
  if (CRESSET_LIKELY(!pool)) return give_to_backend(data, nbytes, stream);
  const std::lock_guard lock(mutex_);
  pool->idle.insert({nbytes, {data, stream, reusable}});
}

void DeviceMemory::give_to_backend(void* data, std::size_t nbytes, cresset_stream stream) {
  if (is_forked()) return;
  {
    const std::lock_guard lock(mutex_);
    note_return(data, nbytes, stream);
  }
  deallocate(data, nbytes);
}

void DeviceMemory::note_return(const void* data, std::size_t nbytes, cresset_stream stream) {
  counters_.held.remove(signed_size(nbytes));
  note(MemoryEvent::SegmentFree, data, nbytes, stream, nullptr);
}

void DeviceMemory::deallocate(void* data, std::size_t nbytes) {
  const cresset_backend& t = backend_.table();
  t.deallocate(t.self, index_, data, nbytes);
}

// ---- streams

void DeviceMemory::record_stream(Block& block, cresset_stream stream) {
  const std::lock_guard lock(mutex_);
  if (std::ranges::find(block.used_in, stream) == block.used_in.end()) block.used_in.push_back(stream);
}

// Puts an event behind the work of each stream that used the block. False when the backend cannot: then the streams were waited for.
bool DeviceMemory::lingers(Block& block) {
  const cresset_backend& t = backend_.table();
  LingeringBlock lingering{block.data, block.nbytes, block.stream, block.pool, {}};
  for (const cresset_stream s : block.used_in) {
    void* event = nullptr;
    if (t.event_create && t.event_create(t.self, index_, 0, &event) == CRESSET_OK) {
      lingering.events.push_back(event);
      if (t.event_record(t.self, index_, event, s) == CRESSET_OK) continue;
    }
    if (t.stream_synchronize) t.stream_synchronize(t.self, index_, s);
  }
  if (lingering.events.empty()) return false;
  const std::lock_guard lock(mutex_);
  lingering_.push_back(std::move(lingering));
  has_lingering_.store(true, std::memory_order_relaxed);
  return true;
}

void DeviceMemory::free_lingering(bool wait) {
  if (CRESSET_LIKELY(!has_lingering_.load(std::memory_order_relaxed))) return;
  const cresset_backend& t = backend_.table();
  std::vector<LingeringBlock> done;
  {
    const std::lock_guard lock(mutex_);
    const auto is_used = [&](const LingeringBlock& block) {
      return std::ranges::any_of(block.events, [&](void* event) {
        if (wait) return t.event_synchronize(t.self, event) != CRESSET_OK;
        int32_t happened = 0;
        return t.event_query(t.self, event, &happened) == CRESSET_OK && !happened;
      });
    };
    const auto first_done = std::stable_partition(lingering_.begin(), lingering_.end(), is_used);
    std::move(first_done, lingering_.end(), std::back_inserter(done));
    lingering_.erase(first_done, lingering_.end());
    has_lingering_.store(!lingering_.empty(), std::memory_order_relaxed);
    for (const LingeringBlock& block : done) counters_.active.remove(signed_size(block.nbytes));
    counters_.waits += wait;
  }
  for (const LingeringBlock& block : done) {
    for (void* event : block.events) t.event_destroy(t.self, index_, event);
    give_back(block.data, block.nbytes, block.stream, block.pool, true);
  }
}

// ---- counters, limits, history

DeviceMemoryCounters DeviceMemory::counters() const {
  const std::lock_guard lock(mutex_);
  DeviceMemoryCounters out = counters_;
  out.from_driver = out.held.count[0].allocated;
  out.to_driver = out.held.count[0].freed;
  return out;
}
bool DeviceMemory::was_used() const {
  const std::lock_guard lock(mutex_);
  return counters_.tensors.count[0].peak > 0;
}

void DeviceMemory::reset_counters(bool accumulated) {
  const std::lock_guard lock(mutex_);
  for (MemoryCounters* group : {&counters_.tensors, &counters_.active, &counters_.held})
    for (auto* counters : {&group->count, &group->bytes})
      for (MemoryCounter& c : *counters) {
        if (accumulated)
          c.allocated = c.freed = 0;
        else
          c.peak = c.current;
      }
  if (accumulated) counters_.retries = counters_.out_of_memory = counters_.waits = 0;
}

void DeviceMemory::set_limit(double fraction, int64_t bytes) {
  const std::lock_guard lock(mutex_);
  fraction_ = fraction;
  limit_ = bytes;
}
double DeviceMemory::fraction() const {
  const std::lock_guard lock(mutex_);
  return fraction_;
}

std::vector<MemoryBlockInfo> DeviceMemory::blocks() const {
  std::vector<MemoryBlockInfo> out;
  std::vector<MemoryPoolPtr> alive;  // ended behind the lock: pools take it
  {
    const std::lock_guard lock(mutex_);
    const auto add = [&](void* data, std::size_t n, MemoryBlockInfo::State state, cresset_stream s, MemoryPoolId id,
                         const StackText& stack) {
      out.push_back(
          {reinterpret_cast<uintptr_t>(data), signed_size(n), state, static_cast<int64_t>(s), id, stack ? *stack : std::string()});
    };
    const auto id_of = [](const MemoryPoolPtr& pool) { return pool ? pool->id() : MemoryPoolId{}; };
    for (const Block* b = first_; b; b = b->after) add(b->data, b->nbytes, MemoryBlockInfo::Allocated, b->stream, id_of(b->pool), b->stack);
    for (const LingeringBlock& b : lingering_) add(b.data, b.nbytes, MemoryBlockInfo::AwaitingStreams, b.stream, id_of(b.pool), nullptr);
    for (const auto& weak : pools_)
      if (MemoryPoolPtr pool = weak.lock()) {
        for (const auto& [nbytes, idle] : pool->idle) add(idle.data, nbytes, MemoryBlockInfo::InPool, idle.stream, pool->id(), nullptr);
        alive.push_back(std::move(pool));
      }
  }
  std::ranges::sort(out, {}, &MemoryBlockInfo::address);
  return out;
}

void DeviceMemory::keep_history(std::size_t most) {
  const std::lock_guard lock(mutex_);
  histories += (most > 0) - (history_most_ > 0);
  history_most_ = most;
  if (most == 0) history_.clear();
  while (history_.size() > most) history_.pop_front();
}

std::vector<MemoryEvent> DeviceMemory::history() const {
  const std::lock_guard lock(mutex_);
  std::vector<MemoryEvent> out;
  out.reserve(history_.size());
  for (const Event& e : history_) out.push_back({e.action, e.address, e.nbytes, e.stream, e.time_us, e.stack ? *e.stack : std::string()});
  return out;
}

DeviceMemory* memory_of_device(Device device) {
  const Device d = resolved_device(device);
  const Backend* b = backend_of(d.type());
  return b ? &b->device(d.index()).memory : nullptr;
}

}  // namespace detail

// ---- the public functions

namespace {
detail::DeviceMemory& memory_for(Device d, const char* what) {
  detail::DeviceMemory* m = detail::memory_of_device(d);
  CRESSET_CHECK(m, what, ": a device of a backend was required; ", d, " was given.");
  return *m;
}
std::atomic<uint64_t> next_pool{1};

// What an allocator with PyTorch's interface tells; its sizes come in the order all, small, large.
DeviceMemoryCounters counters_from(const device_stats::DeviceStats& s) {
  const auto counters = [](const device_stats::StatArray& count, const device_stats::StatArray& bytes) {
    MemoryCounters out;
    for (const auto& [mine, theirs] : {std::pair{0, 0}, std::pair{1, 2}, std::pair{2, 1}}) {
      const auto copy = [](const device_stats::Stat& from) { return MemoryCounter{from.current, from.peak, from.allocated, from.freed}; };
      out.count[static_cast<std::size_t>(mine)] = copy(count[static_cast<std::size_t>(theirs)]);
      out.bytes[static_cast<std::size_t>(mine)] = copy(bytes[static_cast<std::size_t>(theirs)]);
    }
    return out;
  };
  return {counters(s.allocation, s.allocated_bytes),
          counters(s.active, s.active_bytes),
          counters(s.segment, s.reserved_bytes),
          s.num_alloc_retries,
          s.num_ooms,
          s.num_sync_all_streams,
          s.num_device_alloc,
          s.num_device_free};
}
}  // namespace

DeviceMemoryCounters device_memory_counters(Device d) {
  if (const detail::DeviceMemory* m = detail::memory_of_device(d)) return m->counters();
  DeviceAllocator* const a = find_device_allocator(d.type());
  return a ? counters_from(a->getDeviceStats(resolved_device(d).index())) : DeviceMemoryCounters();
}
void reset_device_memory_counters(Device d, bool accumulated) {
  if (detail::DeviceMemory* m = detail::memory_of_device(d)) return m->reset_counters(accumulated);
  DeviceAllocator* const a = find_device_allocator(d.type());
  if (a && accumulated) a->resetAccumulatedStats(resolved_device(d).index());
  if (a && !accumulated) a->resetPeakStats(resolved_device(d).index());
}

void set_memory_fraction(Device d, double fraction) {
  CRESSET_CHECK_VALUE(fraction >= 0 && fraction <= 1, "Invalid fraction value: ", fraction, ". Allowed range: 0 to 1.");
  detail::DeviceMemory& m = memory_for(d, "set_per_process_memory_fraction");
  const cresset_backend& t = m.backend().table();
  cresset_device_properties properties{};
  properties.struct_size = sizeof properties;
  if (t.get_properties) m.backend().check(t.get_properties(t.self, m.device().index(), &properties), m.device().index(), "get_properties");
  CRESSET_CHECK_NOT_IMPLEMENTED(properties.total_memory > 0, "set_per_process_memory_fraction: the backend '", m.backend().name(),
                                "' does not tell how much memory its devices have (get_properties).");
  m.set_limit(fraction, fraction == 1 ? -1 : static_cast<int64_t>(fraction * static_cast<double>(properties.total_memory)));
}
double memory_fraction(Device d) { return memory_for(d, "get_per_process_memory_fraction").fraction(); }

MemoryPoolId new_memory_pool_id(bool of_graph) {
  const uint64_t n = next_pool++;
  return of_graph ? MemoryPoolId{n, 0} : MemoryPoolId{0, n};
}
MemoryPoolPtr make_memory_pool(Device d, bool of_graph) { return memory_pool_with_id(d, new_memory_pool_id(of_graph)); }
MemoryPoolPtr memory_pool_with_id(Device d, MemoryPoolId id) {
  detail::DeviceMemory& m = memory_for(d, "MemPool");
  CRESSET_CHECK_VALUE(id != MemoryPoolId{}, "MemPool: the number of a pool was required; (0, 0) is none.");
  std::vector<MemoryPoolPtr> alive;  // ended behind the lock
  const std::lock_guard lock(m.mutex_);
  std::erase_if(m.pools_, [](const auto& weak) { return weak.expired(); });
  for (const auto& weak : m.pools_) {
    alive.push_back(weak.lock());
    if (alive.back() && alive.back()->id() == id) return alive.back();
  }
  auto made = std::make_shared<detail::DeviceMemoryPool>(m, id);
  m.pools_.push_back(made);
  return made;
}
MemoryPoolId id_of_memory_pool(const MemoryPoolPtr& pool) { return pool->id(); }
Device device_of_memory_pool(const MemoryPoolPtr& pool) { return pool->memory().device(); }

MemoryPoolScope::MemoryPoolScope(MemoryPoolPtr pool) : pool_(std::move(pool)), outer_(detail::scope) { detail::scope = this; }
void MemoryPoolScope::end() noexcept {
  if (!open_) return;
  open_ = false;
  if (detail::scope == this) {
    detail::scope = outer_;
    return;
  }
  for (MemoryPoolScope* s = detail::scope; s; s = s->outer_)
    if (s->outer_ == this) s->outer_ = outer_;
}

std::vector<MemoryBlockInfo> device_memory_blocks(Device d) { return memory_for(d, "memory_snapshot").blocks(); }
std::vector<MemoryEvent> memory_history(Device d) { return memory_for(d, "memory_snapshot").history(); }
void record_memory_history(DeviceType t, std::size_t most) {
  for (int i = 0; i < device_count(t); ++i) memory_for(Device(t, static_cast<DeviceIndex>(i)), "record_memory_history").keep_history(most);
}
void set_memory_stack_source(std::string (*source)()) { detail::stack_source = source; }

}  // namespace cresset
