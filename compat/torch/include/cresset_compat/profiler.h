// torch/csrc/autograd/profiler.h: a profile of a scope, or between two calls, as a file or as events.
#pragma once

#include <algorithm>
#include <fstream>
#include <memory>
#include <set>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include <cresset_compat/aten.h>

#include <cresset/autograd/profiler.h>

namespace torch::profiler::impl {

enum class ActivityType { CPU = 0, XPU, CUDA, HPU, MTIA, PrivateUse1, NUM_KINETO_ACTIVITIES };
/// What a session records with. One profiler serves all of them; CUDA, NVTX and ITT also measure time on the accelerator, where there is
/// one.
enum class ProfilerState {
  Disabled = 0,
  CPU,
  CUDA,
  NVTX,
  ITT,
  PRIVATEUSE1,
  KINETO,
  KINETO_GPU_FALLBACK,
  KINETO_PRIVATEUSE1_FALLBACK,
  KINETO_ONDEMAND,
  NUM_PROFILER_STATES,
};
enum class ActiveProfilerType { NONE = 0, LEGACY, KINETO, NVTX, ITT, PRIVATEUSE1 };

/// Settings of PyTorch's own back ends, which nothing here reads.
struct ExperimentalConfig {
  std::vector<std::string> profiler_metrics;
  bool profiler_measure_per_kernel = false;
  bool verbose = false;
};

struct ProfilerConfig {
  explicit ProfilerConfig(ProfilerState state, bool report_input_shapes = false, bool profile_memory = false, bool with_stack = false,
                          bool with_flops = false, bool with_modules = false, ExperimentalConfig experimental_config = {},
                          std::string trace_id = "")
      : state(state),
        experimental_config(std::move(experimental_config)),
        report_input_shapes(report_input_shapes),
        profile_memory(profile_memory),
        with_stack(with_stack),
        with_flops(with_flops),
        with_modules(with_modules),
        trace_id(std::move(trace_id)) {}
  bool disabled() const { return state == ProfilerState::Disabled; }

  ProfilerState state;
  ExperimentalConfig experimental_config;
  bool report_input_shapes, profile_memory, with_stack, with_flops, with_modules;
  std::string trace_id;
};

inline bool profilerEnabled() { return cresset::profiler::recording(); }

}  // namespace torch::profiler::impl

namespace torch::autograd::profiler {
using cresset::autograd::profiler::RecordProfile;
using torch::profiler::impl::ActivityType;
using torch::profiler::impl::ExperimentalConfig;
using torch::profiler::impl::ProfilerConfig;
using torch::profiler::impl::profilerEnabled;
using torch::profiler::impl::ProfilerState;

namespace detail {
inline void start(const ProfilerConfig& config) {
  using enum ProfilerState;
  cresset::profiler::Options options{.record_shapes = config.report_input_shapes, .profile_memory = config.profile_memory};
  options.with_stack = config.with_stack;
  const bool devices = config.state == CUDA || config.state == PRIVATEUSE1 || config.state == KINETO_GPU_FALLBACK ||
                       config.state == KINETO_PRIVATEUSE1_FALLBACK;
  if (devices) options.device = at::getAccelerator();
  cresset::profiler::start(options);
}
}  // namespace detail

/// One call or range of a profile. Times are nanoseconds.
class KinetoEvent {
 public:
  KinetoEvent(const cresset::profiler::Record& record, uint64_t thread, int64_t wall_clock)
      : name_(*record.name),
        start_(wall_clock + record.begin),
        duration_(record.end - record.begin),
        thread_(thread),
        sequence_(record.sequence_nr),
        forward_thread_(record.forward_thread),
        scope_(static_cast<uint8_t>(record.scope)) {
    if (!record.details) return;
    for (const cresset::profiler::Input& input : record.details->inputs) shapes_.push_back(input.sizes());
    stack_ = record.details->stack;
  }
  const std::string& name() const { return name_; }
  uint64_t startNs() const { return static_cast<uint64_t>(start_); }
  uint64_t endNs() const { return static_cast<uint64_t>(start_ + duration_); }
  uint64_t durationNs() const { return static_cast<uint64_t>(duration_); }
  uint64_t startThreadId() const { return thread_; }
  uint64_t endThreadId() const { return thread_; }
  uint64_t fwdThreadId() const { return forward_thread_; }
  int64_t sequenceNr() const { return sequence_; }
  uint8_t scope() const { return scope_; }
  c10::DeviceType deviceType() const { return c10::kCPU; }
  bool hasShapes() const { return !shapes_.empty(); }
  const std::vector<std::vector<int64_t>>& shapes() const { return shapes_; }
  bool hasStack() const { return !stack_.empty(); }
  const std::vector<std::string>& stack() const { return stack_; }

 private:
  std::string name_;
  int64_t start_, duration_;
  uint64_t thread_;
  int64_t sequence_;
  uint64_t forward_thread_;
  uint8_t scope_;
  std::vector<std::vector<int64_t>> shapes_;
  std::vector<std::string> stack_;
};

/// What a session recorded.
class ProfilerResult {
 public:
  explicit ProfilerResult(cresset::profiler::Profile profile) : profile_(std::move(profile)) {
    for (const auto& thread : profile_.threads)
      for (const auto& record : thread.records) events_.emplace_back(record, thread.number, profile_.wall_clock);
  }
  uint64_t trace_start_ns() const { return static_cast<uint64_t>(profile_.wall_clock); }
  const std::vector<KinetoEvent>& events() const { return events_; }
  /// Chrome's trace format. Raises when the file cannot be written.
  void save(const std::string& path) const {
    std::ofstream out(path);
    cresset::autograd::profiler::write_chrome_trace(out, profile_);
    out.flush();
    TORCH_CHECK(out, "ProfilerResult.save: '", path, "' cannot be written.");
  }

 private:
  cresset::profiler::Profile profile_;
  std::vector<KinetoEvent> events_;
};

/// Nothing needs preparation.
inline void prepareProfiler(const ProfilerConfig& /*config*/, const std::set<ActivityType>& /*activities*/) {}
/// Begins a session in this thread. Raises when one is running.
inline void enableProfiler(const ProfilerConfig& config, const std::set<ActivityType>& /*activities*/,
                           const std::unordered_set<at::RecordScope>& /*scopes*/ = {}) {
  detail::start(config);
}
/// Ends it. Raises when none is running.
inline std::unique_ptr<ProfilerResult> disableProfiler() { return std::make_unique<ProfilerResult>(cresset::profiler::stop()); }

/// One moment of the older profile: a range begins (push) or ends (pop), memory comes or goes (memory_alloc), or a mark.
class LegacyEvent {
 public:
  LegacyEvent(const char* kind, std::string name, int64_t time, uint64_t thread, uint64_t handle)
      : kind_(kind), name_(std::move(name)), time_(time), thread_(thread), handle_(handle) {}
  std::string kindStr() const { return kind_; }
  const char* name() const { return name_.c_str(); }
  uint64_t threadId() const { return thread_; }
  /// The same for the push and the pop of a range.
  at::RecordFunctionHandle handle() const { return handle_; }
  int nodeId() const { return 0; }
  const std::vector<std::vector<int64_t>>& shapes() const { return shapes_; }
  int64_t sequenceNr() const { return sequence_; }
  double cpuUs() const { return static_cast<double>(time_) / 1e3; }
  double cpuElapsedUs(const LegacyEvent& end) const { return static_cast<double>(end.time_ - time_) / 1e3; }
  int64_t cpuMemoryUsage() const { return bytes_; }

  static LegacyEvent begin_of(const cresset::profiler::Record& record, uint64_t thread, uint64_t handle) {
    LegacyEvent event("push", *record.name, record.begin, thread, handle);
    event.sequence_ = record.sequence_nr;
    if (record.details)
      for (const cresset::profiler::Input& input : record.details->inputs) event.shapes_.push_back(input.sizes());
    return event;
  }
  static LegacyEvent memory_of(const cresset::profiler::MemoryRecord& record, uint64_t thread) {
    LegacyEvent event("memory_alloc", "", record.time, thread, 0);
    event.bytes_ = record.bytes;
    return event;
  }
  static bool earlier(const LegacyEvent& a, const LegacyEvent& b) { return a.time_ < b.time_; }

 private:
  const char* kind_;
  std::string name_;
  int64_t time_;
  uint64_t thread_, handle_;
  int64_t sequence_ = -1, bytes_ = 0;
  std::vector<std::vector<int64_t>> shapes_;
};

using thread_event_lists = std::vector<std::vector<LegacyEvent>>;

namespace detail {
inline std::vector<LegacyEvent> legacy_events(const cresset::profiler::ThreadProfile& thread, uint64_t first_handle) {
  std::vector<LegacyEvent> ranges, memory;
  std::vector<std::size_t> open;
  const auto close_until = [&](int32_t parent) {
    while (!open.empty() && static_cast<int64_t>(open.back()) != parent) {
      const auto& record = thread.records[open.back()];
      ranges.emplace_back("pop", "", record.end, thread.number, first_handle + open.back());
      open.pop_back();
    }
  };
  for (std::size_t i = 0; i < thread.records.size(); ++i) {
    close_until(thread.records[i].parent);
    ranges.push_back(LegacyEvent::begin_of(thread.records[i], thread.number, first_handle + i));
    open.push_back(i);
  }
  close_until(-1);
  for (const auto& record : thread.memory) memory.push_back(LegacyEvent::memory_of(record, thread.number));
  std::vector<LegacyEvent> merged;
  std::merge(ranges.begin(), ranges.end(), memory.begin(), memory.end(), std::back_inserter(merged), &LegacyEvent::earlier);
  return merged;
}
}  // namespace detail

inline void enableProfilerLegacy(const ProfilerConfig& config) { detail::start(config); }
/// The events of each thread in their order, between the marks __start_profile and __stop_profile of this one.
inline thread_event_lists disableProfilerLegacy() {
  const cresset::profiler::Profile profile = cresset::profiler::stop();
  thread_event_lists lists;
  uint64_t handle = 1;
  for (const auto& thread : profile.threads) {
    lists.push_back(detail::legacy_events(thread, handle));
    handle += thread.records.size();
  }
  if (lists.empty()) lists.emplace_back();
  lists[0].insert(lists[0].begin(), LegacyEvent("mark", "__start_profile", 0, 1, 0));
  lists[0].emplace_back("mark", "__stop_profile", profile.duration, 1, 0);
  return lists;
}

}  // namespace torch::autograd::profiler
