// The devices `simulated` (memory the host cannot reach, work that happens later) and `opaque` (the same, with handles
// instead of addresses): the table's functions on top of memory.h, queue.h and kernels.h.
#include <cresset/backend.h>
#include <cresset/ops/cpu_fallback.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>
#include <thread>

#include "faults.h"
#include "kernels.h"
#include "memory.h"
#include "queue.h"
#include "shared_mark.h"

namespace {

std::atomic<int64_t> set_device_calls{0}, optimizer_steps{0}, profile_ranges{0}, kernel_calls{0};

constexpr int32_t kSupported[] = {CRESSET_FLOAT16, CRESSET_BFLOAT16};
constexpr const char* kLower[] = {"aten::mm", "aten::addmm", "aten::matmul", "aten::linear", nullptr};
constexpr const char* kFull[] = {"aten::exp", "aten::log", "aten::sum", "aten::softmax", nullptr};
constexpr const char* kWidest[] = {"aten::cat", "aten::stack", nullptr};

struct Simulated {
#ifdef SIMULATED_OPAQUE
  static constexpr const char* kName = "opaque";
  static constexpr uint32_t kFlags = CRESSET_OPAQUE_MEMORY;
#else
  static constexpr const char* kName = "simulated";
#endif
  static constexpr const char* kDescription = "a device in software, with memory and queues of its own";
  static constexpr const char* kFileTag = kName;
  static constexpr cresset_autocast kAutocast{sizeof(cresset_autocast), CRESSET_BFLOAT16, kSupported, 2, kLower, kFull, kWidest};

  int device_count() { return simulated::kDevices; }
  void set_device(int) { ++set_device_calls; }
  void synchronize(int device) {
    simulated::enter();
    simulated::wait_for_device(device);
  }
  void get_properties(int, cresset_device_properties& out) {
    std::snprintf(out.name, sizeof out.name, "Simulated device");
    out.total_memory = uint64_t{1} << 30;
    out.free_memory = out.total_memory;
    out.compute_units = 1;
  }

  void* allocate(int, std::size_t nbytes) {
    simulated::enter();
    if (simulated::next_allocation_fails()) return nullptr;
    void* handle = simulated::allocate_block(nbytes);
    if (handle && simulated::poisons()) std::memset(simulated::device_address(handle, 0, nbytes), 0xFF, nbytes);
    return handle;
  }
  // Queues may still be using the block: it goes when each of them has come as far as it is now.
  void deallocate(int device, void* data, std::size_t) {
    struct Last {
      void* data;
      ~Last() { simulated::free_block(data); }
    };
    const auto last = std::make_shared<Last>(data);
    simulated::after_all(device, [last] {});
  }
  void copy(const cresset_copy& c) {
    simulated::enter();
    char* to = address(c.target, c.target_device, c.target_offset, c.nbytes);
    const char* from = address(c.source, c.source_device, c.source_offset, c.nbytes);
    CRESSET_CHECK(to && from, kName, ": a copy reaches outside of its block.");
    const int device = c.target_device >= 0 ? c.target_device : c.source_device;
    simulated::submit(device, c.stream, [to, from, n = c.nbytes] { std::memcpy(to, from, n); }, "copy");
    if (!c.non_blocking) simulated::wait_for(device, c.stream);
  }
  void fill(int device, void* data, std::size_t nbytes, uint8_t value, cresset_stream stream) {
    simulated::enter();
    char* to = simulated::device_address(data, 0, nbytes);
    CRESSET_CHECK(to, kName, ": a fill reaches outside of its block.");
    simulated::submit(device, stream, [to, nbytes, value] { std::memset(to, value, nbytes); }, "fill");
  }
  void fill_pattern(int device, void* data, std::size_t offset, std::size_t count, const void* pattern, std::size_t size,
                    cresset_stream stream) {
    simulated::enter();
    char* to = simulated::device_address(data, offset, count * size);
    CRESSET_CHECK(to, kName, ": a fill reaches outside of its block.");
    std::array<char, 16> element{};
    std::memcpy(element.data(), pattern, size);
    const auto task = [to, count, element, size] {
      for (std::size_t i = 0; i < count; ++i) std::memcpy(to + i * size, element.data(), size);
    };
    simulated::submit(device, stream, task, "fill");
  }
  bool copy_strided(const cresset_strided_copy& c) { return simulated::copy_elements(c); }
  bool copy_cast(const cresset_strided_copy& c) { return simulated::copy_elements(c); }
  void* pinned_allocate(std::size_t nbytes) {
    simulated::enter();
    void* const data = std::malloc(nbytes);
    CRESSET_CHECK(data || nbytes == 0, kName, ": out of memory.");
    return data;
  }
  void pinned_deallocate(void* data, std::size_t) {
    for (int d = 0; d < simulated::kDevices; ++d) simulated::wait_for_device(d);
    std::free(data);
  }

  cresset_stream stream_create(int device, int priority) {
    simulated::enter();
    return simulated::make_queue(device, priority);
  }
  std::pair<int, int> stream_priorities(int) { return {simulated::kLowestPriority, simulated::kHighestPriority}; }
  void* stream_to_native(int device, cresset_stream s) { return simulated::handle_of_queue(device, s); }
  cresset_stream stream_from_native(int device, void* handle) { return simulated::queue_of_handle(device, handle); }
  bool peer_access(int, int) { return true; }
  bool stream_query(int device, cresset_stream s) {
    simulated::enter();
    return simulated::is_idle(device, s);
  }
  void stream_synchronize(int device, cresset_stream s) {
    simulated::enter();
    simulated::wait_for(device, s);
  }

  // An event of several processes has a shared mark, any other a mark of this one.
  struct Event {
    std::shared_ptr<simulated::Mark> mark;
    std::shared_ptr<simulated::SharedMark> shared;
  };
  static Event& event_at(void* event) { return *static_cast<Event*>(event); }
  void* event_create(int, int flags) {
    simulated::enter();
    if (flags & CRESSET_EVENT_INTERPROCESS) return new Event{nullptr, std::make_shared<simulated::SharedMark>()};
    return new Event{simulated::make_mark(), nullptr};
  }
  void event_destroy(int, void* event) { delete &event_at(event); }
  void event_record(int device, void* event, cresset_stream s) {
    simulated::enter();
    const Event& e = event_at(event);
    if (!e.shared) return simulated::record(device, s, e.mark);
    simulated::submit(device, s, [shared = e.shared, recording = e.shared->record()] { shared->reach(recording); }, "shared mark");
  }
  void event_wait(int device, void* event, cresset_stream s) {
    simulated::enter();
    const Event& e = event_at(event);
    if (!e.shared) return simulated::let_wait(device, s, e.mark);
    const auto work = std::make_shared<simulated::External>();
    simulated::submit_external(device, s, work, [work, shared = e.shared, recording = e.shared->recorded()] {
      std::thread([work, shared, recording] {
        shared->wait_for(recording);
        simulated::finish_external(*work, "");
      }).detach();
    });
  }
  bool event_query(void* event) {
    simulated::enter();
    const Event& e = event_at(event);
    return e.shared ? e.shared->has_reached(e.shared->recorded()) : simulated::has_happened(*e.mark);
  }
  void event_synchronize(void* event) {
    simulated::enter();
    const Event& e = event_at(event);
    e.shared ? e.shared->wait_for(e.shared->recorded()) : simulated::wait_for_mark(*e.mark);
  }
  void event_export(int, void* event, uint8_t* handle) {
    const std::string& name = event_at(event).shared->name();
    std::memcpy(handle, name.c_str(), name.size() + 1);  // CRESSET_EVENT_HANDLE_BYTES are more than two numbers need
  }
  void* event_import(int, const uint8_t* handle) {
    simulated::enter();
    const char* const name = reinterpret_cast<const char*>(handle);
    return new Event{nullptr, std::make_shared<simulated::SharedMark>(std::string(name, strnlen(name, CRESSET_EVENT_HANDLE_BYTES)))};
  }
  double event_elapsed(void* begin, void* end) {
    simulated::enter();
    return std::chrono::duration<double, std::milli>(event_at(end).mark->time - event_at(begin).mark->time).count();
  }

  using Graph = std::shared_ptr<simulated::Graph>;
  void graph_begin(int device, cresset_stream s, int) {
    simulated::enter();
    simulated::begin_recording(device, s);
  }
  void* graph_end(int device, cresset_stream s) {
    simulated::enter();
    return new Graph(simulated::end_recording(device, s));
  }
  void graph_replay(int device, void* graph, cresset_stream s) {
    simulated::enter();
    simulated::replay(device, s, *static_cast<Graph*>(graph));
  }
  void graph_destroy(int, void* graph) { delete static_cast<Graph*>(graph); }
  bool stream_is_capturing(int device, cresset_stream s) { return simulated::is_recording(device, s); }
  void graph_dump(void* graph, const char* path) {
    std::ofstream out(path);
    CRESSET_CHECK(out, kName, ": ", path, " cannot be written.");
    out << "digraph recorded {\n  node [shape=box]\n";
    const auto& steps = (*static_cast<Graph*>(graph))->steps;
    for (std::size_t i = 0; i < steps.size(); ++i) {
      out << "  s" << i << " [label=\"" << steps[i].first << "\"]\n";
      if (i > 0) out << "  s" << i - 1 << " -> s" << i << "\n";
    }
    out << "}\n";
  }

  void optimizer_step(int, int phase) {
    simulated::enter();
    optimizer_steps += phase == CRESSET_STEP_END;
  }
  void profile_push(const char*) { ++profile_ranges; }
  void profile_pop() {}

 private:
  static char* address(const void* p, int device, std::size_t offset, std::size_t nbytes) {
    return device < 0 ? static_cast<char*>(const_cast<void*>(p)) + offset : simulated::device_address(p, offset, nbytes);
  }
};

void kernel(const cresset::OperatorHandle& op, cresset::Stack* stack) {
  ++kernel_calls;
  simulated::enter();
  simulated::run_on_device(op, stack);
}

// What a training step of the example models calls, so that one can run without the CPU.
constexpr const char* kKernels[] = {"add.Tensor",
                                    "sub.Tensor",
                                    "mul.Tensor",
                                    "div.Tensor",
                                    "neg",
                                    "exp",
                                    "log",
                                    "tanh",
                                    "sigmoid",
                                    "mm",
                                    "sum.dim_IntList",
                                    "add.out",
                                    "sub.out",
                                    "mul.out",
                                    "div.out",
                                    "neg.out",
                                    "exp.out",
                                    "log.out",
                                    "tanh.out",
                                    "sigmoid.out",
                                    "mm.out",
                                    "sum.IntList_out",
                                    "relu.out",
                                    "threshold_backward.grad_input",
                                    "gelu.out",
                                    "gelu_backward.grad_input",
                                    "addmm.out",
                                    "bmm.out",
                                    "mean.out",
                                    "sqrt.out",
                                    "pow.Tensor_Scalar_out",
                                    "addcmul.out",
                                    "addcdiv.out",
                                    "lerp.Scalar_out",
                                    "maximum.out",
                                    "tanh_backward.grad_input",
                                    "sigmoid_backward.grad_input",
                                    "mse_loss.out",
                                    "mse_loss_backward.grad_input",
                                    "_log_softmax.out",
                                    "_log_softmax_backward_data.out",
                                    "_softmax.out",
                                    "_softmax_backward_data.out",
                                    "nll_loss_forward.output",
                                    "nll_loss_backward.grad_input",
                                    "reciprocal.out",
                                    "rsqrt.out",
                                    "add.Scalar_out",
                                    "sub.Scalar_out",
                                    "mul.Scalar_out",
                                    "div.Scalar_out",
                                    "remainder.Scalar_out",
                                    "index_select.out",
                                    "logical_not.out",
                                    "tril.out"};

}  // namespace

CRESSET_BACKEND(Simulated);
CRESSET_BACKEND_IMPL(Simulated, aten, m) {
  for (const char* op : kKernels) m.impl(op, cresset::CppFunction::makeFromBoxedFunction<&kernel>());
}

extern "C" int64_t simulated_calls(const char* hook) {
  const std::string_view name = hook;
  if (name == "set_device") return set_device_calls;
  if (name == "optimizer_step") return optimizer_steps;
  if (name == "profile_push") return profile_ranges;
  if (name == "host_wait") return simulated::host_waits();
  if (name == "with_lock") return simulated::calls_with_lock();
  return name == "kernel" ? kernel_calls.load() : -1;
}
