// Sessions of the profiler: a log for each thread, filled by that thread and taken apart when the session ends.
#include <cresset/base/fork.h>
#include <cresset/dispatch/profiler.h>

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <deque>
#include <mutex>
#include <utility>

#include <cresset/core/backend.h>
#include <cresset/core/device_guard.h>
#include <cresset/core/grad_mode.h>
#include <cresset/dispatch/library.h>

#include "core/memory_watch.h"
#include "dispatch/profiler_clock.h"
#include "dispatch/profiler_inputs.h"

namespace cresset::profiler {
namespace {

int64_t now() { return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

std::atomic<AutogradPosition (*)()> autograd_position{nullptr};
std::atomic<std::vector<std::string> (*)()> stack_source{nullptr};

/// Whom a session is for: a profile, an observer, or both.
enum User : uint8_t { kProfile, kObserver, kUsers };

/// What one thread records. The lock is for stop(), which may come while the thread works.
struct Log {
  ForkSafe<std::mutex> mutex;
  bool open = true;
  uint32_t number = 0;
  int64_t os_thread = gettid();
  uint64_t autograd_thread = 0;
  std::vector<Record> records;
  std::vector<MemoryRecord> memory;
  struct {
    std::size_t records = 0, memory = 0;
  } first[kUsers];                                                                               // where what each user gets begins
  int32_t current = -1;                                                                          // the innermost open range
  std::shared_ptr<std::deque<std::string>> names = std::make_shared<std::deque<std::string>>();  // of ranges that are no operators

  /// Closes a range, and takes the thread back to what is around it.
  void end(std::size_t i, int64_t time) {
    Record& r = records[i];
    if (r.end < 0) r.end = time;
    for (int32_t at = current; at >= 0; at = records[static_cast<std::size_t>(at)].parent)
      if (static_cast<std::size_t>(at) == i) {
        current = r.parent;
        break;
      }
  }
};

struct Session {
  // What is recorded. Both users may come and go while other threads work.
  std::atomic<bool> inputs{false}, memory{false}, stack{false}, values{false};
  std::atomic<std::optional<DeviceType>> device{std::nullopt};
  uint32_t id = 0;
  int64_t started = 0;
  struct {
    bool active = false;
    int64_t started = 0, wall_clock = 0;
  } uses[kUsers];  // guarded by session_mutex
  ForkSafe<std::mutex> mutex;
  std::vector<std::shared_ptr<Log>> logs;
};

ForkSafe<std::mutex> session_mutex;
std::shared_ptr<Session> session;    // guarded by session_mutex
std::atomic<uint32_t> active_id{0};  // its id; 0: none
uint32_t sessions_made = 0;
std::atomic<uint64_t> records_made{0};

/// The log of this thread and the session it belongs to.
struct Own {
  uint32_t id = 0;
  std::shared_ptr<Session> session;
  std::shared_ptr<Log> log;
  bool watches = false;  // small storages
};
// A pointer, because memory may still go while the thread's locals are being destroyed: a thread that ends gets no new log.
thread_local constinit Own* own = nullptr;
thread_local constinit bool thread_ended = false;
struct OwnOwner {
  ~OwnOwner() {
    thread_ended = true;
    delete std::exchange(own, nullptr);
  }
};

/// This thread's log in the session that runs, or null.
Own* own_log() {
  const uint32_t id = active_id.load(std::memory_order_acquire);
  if (id == 0 || thread_ended) return nullptr;
  if (CRESSET_LIKELY(own && own->id == id)) return own;
  static thread_local const OwnOwner owner;
  (void)owner;
  std::lock_guard lock(session_mutex);
  if (!session) return nullptr;
  auto log = std::make_shared<Log>();
  if (const auto ask = autograd_position.load()) log->autograd_thread = ask().thread;
  {
    std::lock_guard inner(session->mutex);
    session->logs.push_back(log);
    log->number = static_cast<uint32_t>(session->logs.size());
  }
  if (!own) own = new Own();
  const bool watches = session->memory;
  if (watches) cresset::detail::watch_small_storages();
  *own = {session->id, session, std::move(log), watches};
  return own;
}

// A token: session (16 bits), thread (16 bits), position + 1 (32 bits).
constexpr uint32_t kIdBits = 0xFFFF;
Token make_token(uint32_t id, uint32_t thread, std::size_t position) {
  return uint64_t{id & kIdBits} << 48 | uint64_t{thread & kIdBits} << 32 | static_cast<uint32_t>(position + 1);
}

void watch_memory(const void* data, int64_t bytes, Device device) noexcept {
  if (!recording()) return;
  try {
    Own* mine = own_log();
    if (!mine) return;
    std::lock_guard lock(mine->log->mutex);
    if (mine->log->open) mine->log->memory.push_back({now() - mine->session->started, bytes, data, device, mine->log->current});
  } catch (...) {  // out of memory: the record is lost, the work goes on
  }
}

/// The device of this kind that a call works on.
std::optional<Device> device_among(ArrayRef<IValue> inputs, DeviceType kind) {
  for (const IValue& v : inputs) {
    if (v.isTensor() && v.toTensor().defined() && v.toTensor().device().type() == kind) return v.toTensor().device();
    if (v.isDevice() && v.toDevice().type() == kind) return resolved_device(v.toDevice());
    if (v.isList())
      for (const IValue& e : v.toListRef())
        if (e.isTensor() && e.toTensor().defined() && e.toTensor().device().type() == kind) return e.toTensor().device();
  }
  return std::nullopt;
}

/// A mark in the current stream of a device; nothing when the device has no events.
std::optional<Event> mark(Device device) {
  try {
    Event event(device.type(), EventFlag::BACKEND_DEFAULT);
    event.record(impl::getDeviceGuardImpl(device.type())->getStream(device));
    return event;
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

double milliseconds_between(const Event& begin, const Event& end) {
  try {
    end.synchronize();
    return begin.elapsedTime(end);
  } catch (const std::exception&) {
    return -1;
  }
}

void push_name(DeviceType kind, const std::string& name) {
  if (const cresset_backend* t = backend_table(kind); t && t->profile_push) t->profile_push(t->self, name.c_str());
}
void pop_name(DeviceType kind) {
  if (const cresset_backend* t = backend_table(kind); t && t->profile_pop) t->profile_pop(t->self);
}

// A session of a thread that the child does not have: what belongs to it is left as it is.
void forget_session_of_another_thread() {
  if (!session || recording()) return;
  new std::shared_ptr<Session>(std::move(session));
  active_id.store(0, std::memory_order_release);
  cresset::detail::profiler_memory_watcher = nullptr;
}

}  // namespace

void set_autograd_position(AutogradPosition (*ask)()) { autograd_position = ask; }
void set_stack_source(std::vector<std::string> (*ask)()) { stack_source = ask; }
void report_memory(const void* data, int64_t bytes, Device device) { cresset::detail::memory_changed(data, bytes, device); }

namespace {

int64_t wall_clock() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

/// Makes `user` one of the session, which is new when none runs. With the session's lock held.
Session& join(User user, const char* what) {
  static const bool registered = (call_in_forked_child(&forget_session_of_another_thread), true);
  (void)registered;
  if (session) {
    CRESSET_CHECK(recording(), what, " is already enabled on another thread; there is one session at a time.");
    CRESSET_CHECK(!session->uses[user].active, what, " is already enabled on this thread.");
    std::lock_guard lock(session->mutex);
    for (const std::shared_ptr<Log>& log : session->logs) {
      std::lock_guard inner(log->mutex);
      log->first[user] = {log->records.size(), log->memory.size()};
    }
  } else {
    session = std::make_shared<Session>();
    do ++sessions_made;
    while ((sessions_made & kIdBits) == 0);
    session->id = sessions_made;
    session->started = now();
  }
  session->uses[user] = {true, now(), wall_clock()};
  return *session;
}
void begin_recording() {
  active_id.store(session->id, std::memory_order_release);
  impl::tls_set_dispatch_key_included(DispatchKey::PreDispatch, true);
}

/// A record of which another user gets the rest.
Record part_of(Record& r, User user) {
  Record out;
  out.name = r.name, out.id = r.id, out.overload = r.overload;
  out.begin = r.begin, out.end = r.end, out.sequence_nr = r.sequence_nr, out.forward_thread = r.forward_thread;
  out.parent = r.parent, out.scope = r.scope;
  if (!r.details) return out;
  out.details = std::make_unique<Details>();
  out.details->args = r.details->args;
  if (user == kObserver) {
    out.details->given = std::move(r.details->given);
    out.details->results = std::move(r.details->results);
    return out;
  }
  out.device = r.device;
  out.details->inputs = std::move(r.details->inputs);
  out.details->stack = std::move(r.details->stack);
  out.details->device_begin = std::move(r.details->device_begin);
  out.details->device_end = std::move(r.details->device_end);
  r.device = Device(kCPU);  // nobody waits for it now
  return out;
}

/// What belongs to a user. Times and positions count from where it came.
ThreadProfile take(Log& log, User user, bool is_last, int64_t later) {
  ThreadProfile out{log.number, log.os_thread, log.autograd_thread, {}, {}, log.names};
  const auto first = log.first[user];
  const auto skipped = static_cast<int32_t>(first.records);
  const auto place = [&](int32_t parent) { return parent < skipped ? -1 : parent - skipped; };
  for (std::size_t i = first.records; i < log.records.size(); ++i) {
    Record r = is_last ? std::move(log.records[i]) : part_of(log.records[i], user);
    r.begin -= later;
    if (r.end >= 0) r.end -= later;
    r.parent = place(r.parent);
    out.records.push_back(std::move(r));
  }
  for (std::size_t i = first.memory; i < log.memory.size(); ++i) {
    MemoryRecord m = log.memory[i];
    m.time -= later;
    m.parent = place(m.parent);
    out.memory.push_back(m);
  }
  if (is_last) log.open = false;
  return out;
}

Profile leave(User user) {
  std::shared_ptr<Session> left;
  bool is_last = false;
  int64_t started = 0;
  Profile out;
  {
    std::lock_guard lock(session_mutex);
    CRESSET_CHECK(session && session->uses[user].active, user == kProfile ? "Profiler" : "Observer", ": no session is running.");
    left = session;
    left->uses[user].active = false;
    started = left->uses[user].started;
    out.wall_clock = left->uses[user].wall_clock;
    is_last = !left->uses[user == kProfile ? kObserver : kProfile].active;
    if (is_last) {
      session.reset();
      active_id.store(0, std::memory_order_release);
    }
    if (user == kProfile) {
      cresset::detail::profiler_memory_watcher = nullptr;
      left->inputs = left->memory = left->stack = false;
      left->device = std::nullopt;
    } else {
      left->values = false;
    }
  }
  if (is_last) impl::tls_set_dispatch_key_included(DispatchKey::PreDispatch, false);
  out.duration = now() - started;
  {
    std::lock_guard lock(left->mutex);
    for (const std::shared_ptr<Log>& log : left->logs) {
      std::lock_guard inner(log->mutex);
      out.threads.push_back(take(*log, user, is_last, started - left->started));
    }
  }
  // Without locks: this waits for devices, whose threads may be among those that record.
  for (ThreadProfile& thread : out.threads)
    for (Record& r : thread.records) {
      if (r.end < 0) r.end = out.duration;
      if (r.details && r.details->device_begin && r.details->device_end)
        r.device_milliseconds = milliseconds_between(*r.details->device_begin, *r.details->device_end);
    }
  return out;
}

}  // namespace

void start(const Options& options) {
  std::lock_guard lock(session_mutex);
  Session& joined = join(kProfile, "Profiler");
  joined.inputs = options.record_shapes;
  joined.memory = options.profile_memory;
  joined.stack = options.with_stack;
  joined.device = options.device;
  if (options.profile_memory) {
    cresset::detail::profiler_memory_watcher = &watch_memory;
    cresset::detail::watch_small_storages();
  }
  begin_recording();
}
Profile stop() { return leave(kProfile); }

void start_observing() {
  std::lock_guard lock(session_mutex);
  join(kObserver, "Observer").values = true;
  begin_recording();
}
Profile stop_observing() { return leave(kObserver); }

int64_t session_started() {
  std::lock_guard lock(session_mutex);
  return session ? session->uses[kProfile].started : 0;
}

bool wants_inputs() {
  const Own* mine = own_log();
  return mine && (mine->session->inputs || mine->session->values);
}

Token begin(const Beginning& what) {
  Own* mine = own_log();
  if (!mine) {
    // A scope that put back its key set after the session had ended.
    if (active_id.load() == 0) impl::tls_set_dispatch_key_included(DispatchKey::PreDispatch, false);
    return 0;
  }
  const Session& wants = *mine->session;
  if (wants.memory && !mine->watches) {
    cresset::detail::watch_small_storages();
    mine->watches = true;
  }
  Record r;
  r.scope = what.scope;
  r.sequence_nr = what.sequence_nr;
  r.forward_thread = what.forward_thread;
  const auto details = [&]() -> Details& {
    if (!r.details) r.details = std::make_unique<Details>();
    return *r.details;
  };
  if (wants.inputs) details().inputs = describe_inputs(what.inputs);
  if (wants.values) details().given = describe_values(what.observed.value_or(what.inputs));
  if (!what.args.empty()) details().args = what.args;
  if (wants.stack)
    if (const auto ask = stack_source.load()) details().stack = ask();
  if (what.op) {
    r.name = &what.op->operator_name().name;
    r.overload = &what.op->operator_name().overload_name;
    if (const auto ask = autograd_position.load(); ask && what.makes_node) r.sequence_nr = static_cast<int64_t>(ask().sequence_nr);
    if (const std::optional<DeviceType> kind = wants.device)
      if (const auto device = device_among(what.inputs, *kind)) {
        r.device = *device;
        push_name(*kind, *r.name);
        details().device_begin = mark(*device);
      }
  }
  Log& log = *mine->log;
  std::lock_guard lock(log.mutex);
  if (!log.open) return 0;
  if (!what.op) r.name = &log.names->emplace_back(what.name);
  r.parent = log.current;
  r.id = ++records_made;
  r.begin = now() - mine->session->started;
  log.records.push_back(std::move(r));  // may find no memory: then nothing has begun
  log.current = static_cast<int32_t>(log.records.size()) - 1;
  return make_token(mine->id, log.number, log.records.size() - 1);
}

void end(Token token) noexcept {
  if (token == 0) return;
  const int64_t time = now();
  const uint32_t id = active_id.load(std::memory_order_acquire);
  if (id == 0 || (id & kIdBits) != token >> 48) return;
  try {
    Own* mine = own_log();
    if (!mine) return;
    const auto thread = static_cast<uint32_t>(token >> 32 & kIdBits);
    std::shared_ptr<Log> log = mine->log;
    if (log->number != thread) {
      std::lock_guard lock(mine->session->mutex);
      log = mine->session->logs.at(thread - 1);
    }
    const std::size_t i = static_cast<uint32_t>(token) - 1;
    Device device(kCPU);
    {
      std::lock_guard lock(log->mutex);
      if (!log->open || i >= log->records.size()) return;
      log->end(i, time - mine->session->started);
      device = log->records[i].device;
    }
    if (device.is_cpu()) return;
    std::optional<Event> last = mark(device);
    pop_name(device.type());
    std::lock_guard lock(log->mutex);
    if (log->open && log->records[i].device == device) log->records[i].details->device_end = std::move(last);
  } catch (...) {  // the record stays without its end
  }
}

namespace {

/// Adds to a record of this thread what its call gave out.
void note_results(Token token, ArrayRef<IValue> results) {
  Own* mine = own_log();
  if (!mine || !mine->session->values || (mine->id & kIdBits) != token >> 48) return;
  std::vector<ObservedValue> described = describe_values(results);
  std::lock_guard lock(mine->log->mutex);
  const std::size_t i = static_cast<uint32_t>(token) - 1;
  if (!mine->log->open || i >= mine->log->records.size()) return;
  Record& r = mine->log->records[i];
  if (!r.details) r.details = std::make_unique<Details>();
  r.details->results = std::move(described);
}

/// At the key PreDispatch, which only threads that record include.
void record_operator(const OperatorHandle& op, DispatchKeySet ks, Stack* stack) {
  struct Range {
    Token token;
    ~Range() { end(token); }
  };
  const bool makes_node = GradMode::is_enabled() && ks.has_any(autograd_dispatch_keyset);
  const std::size_t n = op.hasSchema() ? op.schema().arguments().size() : 0;
  const Range range{begin({.op = &op, .makes_node = makes_node, .inputs = last(*stack, n)})};
  op.redispatchBoxed(ks & DispatchKeySet(DispatchKeySet::FULL_AFTER, DispatchKey::PreDispatch), stack);
  if (range.token != 0 && op.hasSchema()) note_results(range.token, last(*stack, op.schema().returns().size()));
}

}  // namespace

CRESSET_LIBRARY_IMPL(_, PreDispatch, m) { m.fallback(CppFunction::makeFromBoxedFunction<&record_operator>()); }

}  // namespace cresset::profiler
