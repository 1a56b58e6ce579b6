// Recording and replay of device work: which graphs are being recorded, and what may not be called meanwhile.
#include <cresset/core/device_graph.h>

#include <algorithm>
#include <mutex>
#include <optional>
#include <vector>

#include <cresset/base/fork.h>

#include "core/backend_device.h"

namespace cresset {
namespace {

// A graph that is being recorded. Threads take part by the pool that their allocations go to.
struct Recording {
  Stream stream;
  CaptureMode mode;
  const detail::DeviceMemoryPool* pool;
};
struct Recordings {
  ForkSafe<std::mutex> mutex;
  std::vector<Recording> all;
  std::atomic<int> count{0};
};
Recordings& recordings() {
  static auto* r = new Recordings;
  return *r;
}

std::vector<Recording> recordings_of(Device d) {
  Recordings& r = recordings();
  const std::lock_guard lock(r.mutex);
  std::vector<Recording> out;
  std::ranges::copy_if(r.all, std::back_inserter(out), [&](const Recording& one) { return one.stream.device() == d; });
  return out;
}
bool takes_part(const Recording& one) {
  const detail::DeviceMemory* m = detail::memory_of_device(one.stream.device());
  return m && detail::DeviceMemoryPool::current(*m).get() == one.pool;
}

bool is_being_recorded(const Stream& s) {
  const detail::Backend* b = detail::backend_of(s.device_type());
  if (!b || !b->table().stream_is_capturing) return false;
  int32_t capturing = 0;
  b->check(b->table().stream_is_capturing(b->table().self, s.device_index(), static_cast<cresset_stream>(s.id()), &capturing),
           s.device_index(), "asking whether a stream is being recorded");
  return capturing != 0;
}

[[noreturn]] void raise_waits(std::string_view what, const char* because) {
  CRESSET_THROW(Error, what, ": not possible while accelerator.Graph records, ", because,
                ".\nLeave it out of the recorded part; values come to the host after replay().");
}

}  // namespace

CaptureMode capture_mode_from_name(const std::string& name) {
  constexpr const char* kNames[] = {"default", "global", "thread_local", "relaxed"};
  for (int i = 0; i < 4; ++i)
    if (name == kNames[i]) return static_cast<CaptureMode>(i);
  CRESSET_THROW(ValueError, "Graph: capture_error_mode of default, global, thread_local or relaxed was required; '", name, "' was given.");
}

bool Stream::is_capturing() const { return recordings().count.load(std::memory_order_relaxed) > 0 && is_being_recorded(*this); }

namespace detail {

bool is_anything_recorded() { return recordings().count.load(std::memory_order_relaxed) > 0; }

bool is_capturing_in_this_thread(Device device) {
  if (CRESSET_LIKELY(recordings().count.load(std::memory_order_relaxed) == 0)) return false;
  return std::ranges::any_of(recordings_of(device), takes_part);
}

void check_may_wait(Device device, std::string_view what) {
  if (CRESSET_LIKELY(recordings().count.load(std::memory_order_relaxed) == 0)) return;
  for (const Recording& one : recordings_of(device)) {
    if (one.mode == CaptureMode::Global) raise_waits(what, "for every thread in the mode 'global'");
    if (one.mode != CaptureMode::Relaxed && takes_part(one)) raise_waits(what, "since it waits for the device");
  }
}

void check_may_wait(const Stream& stream, std::string_view what) {
  if (CRESSET_LIKELY(recordings().count.load(std::memory_order_relaxed) == 0)) return;
  if (is_being_recorded(stream)) raise_waits(what, "since what is recorded does not happen before replay()");
  check_may_wait(stream.device(), what);
}

}  // namespace detail

// ---- one graph

struct DeviceGraph::State {
  DeviceType type;
  MemoryPoolId wanted_pool;
  CaptureMode mode;
  MemoryPoolPtr pool;            // of what is recorded
  std::optional<Stream> stream;  // set: it is being recorded
  std::unique_ptr<MemoryPoolScope> scope;
  std::optional<Device> device;
  void* graph = nullptr;

  const detail::Backend& backend() const {
    const detail::Backend* b = detail::backend_of(type);
    CRESSET_CHECK_NOT_IMPLEMENTED(b && b->table().graph_begin, "Graph: the backend of ", DeviceTypeName(type),
                                  " does not record graphs. `cresset doctor ", DeviceTypeName(type), "` lists its parts.");
    return *b;
  }
  // Takes the recording out of the list of those that go on; gives its stream.
  Stream leave() {
    Recordings& r = recordings();
    const Stream s = *stream;
    {
      const std::lock_guard lock(r.mutex);
      std::erase_if(r.all, [&](const Recording& one) { return one.stream == s; });
      r.count = static_cast<int>(r.all.size());
    }
    scope.reset();
    stream.reset();
    return s;
  }
  cresset_status end(const Stream& s, void** made) const {
    const cresset_backend& t = backend().table();
    return t.graph_end(t.self, s.device_index(), static_cast<cresset_stream>(s.id()), made);
  }
  void drop() noexcept {
    if (graph && !detail::is_forked()) {
      const cresset_backend& t = detail::backend_of(type)->table();
      t.graph_destroy(t.self, device->index(), graph);
    }
    graph = nullptr;
    pool.reset();
  }
};

DeviceGraph::DeviceGraph(DeviceType type, MemoryPoolId pool, CaptureMode mode) : state_(std::make_unique<State>()) {
  state_->type = type;
  state_->wanted_pool = pool;
  state_->mode = mode;
  (void)state_->backend();  // raises where no graph can be recorded
}
DeviceGraph::~DeviceGraph() {
  try {
    reset();
  } catch (...) {  // the device is lost: there is nothing to go back to
  }
}

void DeviceGraph::capture_begin() {
  State& s = *state_;
  const detail::Backend& b = s.backend();
  CRESSET_CHECK(!s.stream, "Graph.capture_begin: this graph is being recorded already; end that recording with capture_end().");
  CRESSET_CHECK(!s.graph, "Graph.capture_begin: this graph holds a recording; call reset() before it records again.");
  b.enter();
  const Device device = b.guard()->getDevice();
  const Stream stream = b.guard()->getStream(device);
  CRESSET_CHECK(!stream.is_capturing(), "Graph.capture_begin: ", to_string(stream), " is being recorded by another graph.");
  s.pool = s.wanted_pool == MemoryPoolId{} ? make_memory_pool(device, true) : memory_pool_with_id(device, s.wanted_pool);
  const cresset_backend& t = b.table();
  b.check(t.graph_begin(t.self, device.index(), static_cast<cresset_stream>(stream.id()), static_cast<int32_t>(s.mode)), device.index(),
          "recording a graph");
  s.device = device;
  s.stream = stream;
  s.scope = std::make_unique<MemoryPoolScope>(s.pool);
  Recordings& r = recordings();
  const std::lock_guard lock(r.mutex);
  r.all.push_back({stream, s.mode, s.pool.get()});
  r.count = static_cast<int>(r.all.size());
}

void DeviceGraph::capture_end() {
  State& s = *state_;
  CRESSET_CHECK(s.stream, "Graph.capture_end: a graph that is being recorded was required; call capture_begin() first.");
  const Stream now = s.backend().guard()->getStream(*s.device);
  CRESSET_CHECK(now == *s.stream, "Graph.capture_end: the stream of capture_begin (", to_string(*s.stream),
                ") was required to be current; it is ", to_string(now), ".");
  const detail::DeviceMemory* m = detail::memory_of_device(*s.device);
  CRESSET_CHECK(detail::DeviceMemoryPool::current(*m) == s.pool,
                "Graph.capture_end: call it in the thread that called capture_begin, after the pools that were entered since.");
  const Stream stream = s.leave();
  const cresset_status status = s.end(stream, &s.graph);
  if (status != CRESSET_OK) s.pool.reset();
  s.backend().check(status, stream.device_index(), "recording a graph");
}

void DeviceGraph::replay() {
  State& s = *state_;
  CRESSET_CHECK(s.graph, "Graph.replay: a recorded graph was required; call capture_begin() and capture_end() first.");
  const detail::Backend& b = s.backend();
  b.enter();
  const Stream stream = b.guard()->getStream(*s.device);
  const cresset_backend& t = b.table();
  b.check(t.graph_replay(t.self, s.device->index(), s.graph, static_cast<cresset_stream>(stream.id())), s.device->index(),
          "replaying a graph");
}

void DeviceGraph::reset() {
  State& s = *state_;
  if (s.stream) (void)s.end(s.leave(), &s.graph);
  s.drop();
}

void DeviceGraph::dump(const std::string& path) const {
  const State& s = *state_;
  CRESSET_CHECK(s.graph, "Graph.debug_dump: a recorded graph was required.");
  const cresset_backend& t = s.backend().table();
  CRESSET_CHECK_NOT_IMPLEMENTED(t.graph_dump, "Graph.debug_dump: the backend '", s.backend().name(), "' does not draw its graphs.");
  s.backend().check(t.graph_dump(t.self, s.graph, path.c_str()), s.device->index(), "drawing a graph");
}

bool DeviceGraph::is_recorded() const { return state_->graph != nullptr; }
MemoryPoolId DeviceGraph::pool() const { return state_->pool ? id_of_memory_pool(state_->pool) : state_->wanted_pool; }
void DeviceGraph::set_pool(MemoryPoolId pool) { state_->wanted_pool = pool; }
void DeviceGraph::set_mode(CaptureMode mode) { state_->mode = mode; }

}  // namespace cresset
