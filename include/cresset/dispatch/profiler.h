// The profiler: what ran, when, for how long, in which thread, and what memory it took.
//
//   profiler::start({.record_shapes = true});
//   {
//     CRESSET_RECORD_FUNCTION("my_step", {x});   // a named range, with its inputs
//     y = model(x);                              // every operator is recorded, those inside of others as their children
//   }
//   const profiler::Profile result = profiler::stop();
//
// A session records the thread that started it and the work that this thread hands on (parallel_for, device threads of a
// backward pass, tasks of the interpreter). Nothing is checked on the way of a call while no session runs: a recording
// thread includes the dispatch key PreDispatch, whose fallback records the call and goes on.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <cresset/core/dispatch_key_set.h>
#include <cresset/core/event.h>
#include <cresset/dispatch/ivalue.h>

namespace cresset {
class OperatorHandle;

namespace profiler {

/// What kind of work a record stands for.
enum class Scope : uint8_t {
  Function = 0,
  BackwardFunction = 1,
  TorchScriptFunction = 2,
  KernelFunctionDtype = 3,
  CustomClass = 4,
  BuildFeature = 5,
  LiteInterpreter = 6,
  UserScope = 7,
};

struct Options {
  bool record_shapes = false;             // inputs: sizes, strides, types and values
  bool profile_memory = false;            // storages that come and go
  bool with_stack = false;                // the Python frames that called an operator
  std::optional<DeviceType> device = {};  // also measure time on the devices of this kind
};

/// A tensor at the time of a call.
struct TensorInput {
  std::vector<int64_t> sizes, strides;  // no strides where it has none
  ScalarType dtype = ScalarType::Undefined;
  Layout layout = kStrided;
  Device device = Device(kCPU);
  weak_intrusive_ptr<TensorImpl> impl;  // no other tensor has its address while the record is here
  const void* impl_address = nullptr;
  std::optional<const void*> data;  // where its storage begins, if it has one
  const void* storage = nullptr;    // and that itself
  int64_t offset = 0, numel = 0;    // its first element in the storage, and how many it has
};

/// One input of a recorded call.
struct Input {
  std::vector<TensorInput> tensors;  // one, or the members of a TensorList, of which undefined ones have no address
  const char* type = "";             // "float", "long int", "TensorList", "Scalar", "ScalarList", or nothing
  IValue value;                      // what is neither tensor nor list of tensors

  /// Those of a tensor; none for lists and others.
  std::vector<int64_t> sizes() const { return is_tensor() ? tensors.front().sizes : std::vector<int64_t>(); }
  std::vector<int64_t> strides() const { return is_tensor() ? tensors.front().strides : std::vector<int64_t>(); }
  bool is_tensor() const { return !tensors.empty() && std::string_view(type) != "TensorList"; }
};

/// Anything that a call was given or gave out, as an observer sees it.
struct ObservedValue {
  std::string kind;                   // as IValue::tagKind names it; of a tensor also its type, "Tensor(float)"
  std::optional<TensorInput> tensor;  // one of these, or nothing for what has no plain form
  IValue value;
  std::vector<ObservedValue> elements;
};

/// What only some records have.
struct Details {
  std::vector<Input> inputs;
  std::vector<std::string> stack;  // Python frames, the innermost first: "file.py(12): function"
  std::string args;                // the text given to record_function
  std::optional<Event> device_begin, device_end;
  std::vector<ObservedValue> given, results;  // for an observer
};

/// One call or range. Times are nanoseconds since the session began.
struct Record {
  const std::string* name;
  uint64_t id = 0;                        // no other record of the process has it
  const std::string* overload = nullptr;  // of operators
  std::unique_ptr<Details> details;
  int64_t begin = 0, end = -1;      // -1: it has not ended
  int64_t sequence_nr = -1;         // of the node that this operator is going to make, or that this backward step runs
  uint64_t forward_thread = 0;      // backward steps: the thread of the forward operator, as autograd counts threads
  double device_milliseconds = -1;  // time on the device, where it was measured
  Device device = Device(kCPU);     // where it was measured
  int32_t parent = -1;              // position of the range around it
  Scope scope = Scope::Function;
};

/// Memory that came (bytes > 0) or went.
struct MemoryRecord {
  int64_t time, bytes;
  const void* data;
  Device device;
  int32_t parent;  // the record that was running, or -1
};

/// What one thread recorded, in the order of beginning.
struct ThreadProfile {
  uint32_t number = 0;  // counts from 1, in order of appearance
  int64_t os_thread = 0;
  uint64_t autograd_thread = 0;  // what forward_thread refers to
  std::vector<Record> records;
  std::vector<MemoryRecord> memory;
  std::shared_ptr<void> names;  // keeps the names alive
};

struct Profile {
  int64_t wall_clock = 0;  // nanoseconds since 1970 when the session began
  int64_t duration = 0;    // nanoseconds
  std::vector<ThreadProfile> threads;
};

/// Begins a session in this thread. Raises when one is running: there is one at a time in a process.
CRESSET_API void start(const Options& options);
/// Ends it and gives what was recorded; ranges that are open end now. Raises when none is running.
CRESSET_API Profile stop();

/// Begins to observe this thread: the same records, with all that calls are given and give out. Besides a session, or alone, and one at a
/// time; a session and an observer that are there together are so in one thread, otherwise the second raises.
CRESSET_API void start_observing();
/// Ends that and gives what was recorded since.
CRESSET_API Profile stop_observing();

/// Does this thread record?
inline bool recording() {
  constexpr uint64_t key = DispatchKeySet(DispatchKey::PreDispatch).raw_repr();
  return CRESSET_UNLIKELY((cresset::detail::local_keys.included & key) != 0);
}

/// Names an open range; 0 stands for none.
using Token = uint64_t;
/// What begin() needs to know.
struct Beginning {
  std::string_view name = {};
  const OperatorHandle* op = nullptr;  // gives name and overload
  bool makes_node = false;             // the number of autograd's next node is the sequence number
  Scope scope = Scope::Function;
  ArrayRef<IValue> inputs = {};
  std::optional<ArrayRef<IValue>> observed = {};  // what an observer sees in the place of these
  int64_t sequence_nr = -1;
  uint64_t forward_thread = 0;
  std::string_view args = {};
};
/// Opens a range in this thread; 0 when no session records it.
CRESSET_API Token begin(const Beginning& what);
/// Ends a range. Does nothing when its session has gone, and may be called from another thread.
CRESSET_API void end(Token token) noexcept;
/// Does the session of this thread want inputs?
CRESSET_API bool wants_inputs();

/// A range for the time of a scope, begun by before().
class CRESSET_API RecordFunction {
 public:
  explicit RecordFunction(Scope scope = Scope::Function) : scope_(scope), active_(recording()) {}
  /// Calls f(*this) when this thread records.
  template <class F>
  RecordFunction(Scope scope, const F& f) : RecordFunction(scope) {
    if (active_) f(*this);
  }
  ~RecordFunction() { end(); }
  RecordFunction(const RecordFunction&) = delete;
  RecordFunction& operator=(const RecordFunction&) = delete;
  bool isActive() const { return active_; }
  bool needsInputs() const { return active_ && wants_inputs(); }
  void before(std::string_view name, ArrayRef<IValue> inputs = {}, int64_t sequence_nr = -1, uint64_t forward_thread = 0) {
    token_ =
        profiler::begin({.name = name, .scope = scope_, .inputs = inputs, .sequence_nr = sequence_nr, .forward_thread = forward_thread});
  }
  void end() {
    if (token_ != 0) profiler::end(token_);
    token_ = 0;
  }

 private:
  Token token_ = 0;
  Scope scope_;
  bool active_;
};

/// Autograd tells the number that the next node of this thread will get, and which thread this is.
struct AutogradPosition {
  uint64_t sequence_nr, thread;
};
CRESSET_API void set_autograd_position(AutogradPosition (*ask)());
/// The Python layer tells the frames of this thread, the innermost first; nothing when it does not run Python.
CRESSET_API void set_stack_source(std::vector<std::string> (*ask)());
/// For allocators outside of the core: `bytes` more (or, negative, fewer) at `data`.
CRESSET_API void report_memory(const void* data, int64_t bytes, Device device);

}  // namespace profiler
}  // namespace cresset

/// A named range until the end of the scope. `inputs` is a list of values, `{}` or `{x, 3}`; the arguments are evaluated only while
/// this thread records.
#define CRESSET_RECORD_FUNCTION_IN_SCOPE(scope, name, ...)                     \
  const ::cresset::profiler::RecordFunction CRESSET_UNIQUE(cresset_recorded_)( \
      scope, [&](::cresset::profiler::RecordFunction& recorded) { recorded.before(name, __VA_ARGS__); })
#define CRESSET_RECORD_FUNCTION(name, ...) CRESSET_RECORD_FUNCTION_IN_SCOPE(::cresset::profiler::Scope::Function, name, __VA_ARGS__)
/// The same for a part of a program.
#define CRESSET_RECORD_USER_SCOPE(name) CRESSET_RECORD_FUNCTION_IN_SCOPE(::cresset::profiler::Scope::UserScope, name, {})
