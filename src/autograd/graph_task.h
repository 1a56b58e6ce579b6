// GraphTask: the state of one backward pass. Engine-private.
#pragma once

#include <condition_variable>
#include <exception>
#include <mutex>
#include <unordered_map>

#include <cresset/autograd/engine.h>

#include "base/thread_state.h"

namespace cresset::autograd::engine {

/// What a pass knows about one node.
struct NodeState {
  Node* node = nullptr;
  uint32_t dependencies = 0;  // gradients still to come
  uint32_t rank = 0;          // scratch of the needed search
  bool needed = false;        // partial passes: does it lead to a wanted output?
  bool is_output = false;
  variable_list buffer;  // gradients so far, by input number
};

struct GraphTask;

/// Something to run: node `slot` of a task. Deeper tasks first, then later nodes.
struct Ready {
  uint64_t sequence_nr;
  uint32_t slot;
};
inline bool runs_later(const Ready& a, const Ready& b) { return a.sequence_nr < b.sequence_nr; }

/// A queue that several threads share; one for each device thread, one for each caller whose graph touches a device.
struct SharedQueue {
  struct Item {
    std::shared_ptr<GraphTask> task;
    Ready ready;
    uint32_t depth;
  };
  void push(Item item);
  /// Waits for an item; false when `until` is complete.
  bool pop(Item& item, const GraphTask* until);
  void wake();
  /// Drops everything in it and everything still to come.
  void close();

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Item> heap_;
  bool closed_ = false;
};

struct Capture {
  uint32_t slot;
  uint32_t input_nr;
  uint32_t output;  // position in the caller's list
};

struct GraphTask {
  GraphTask(bool keep_graph, bool create_graph);
  ~GraphTask();
  GraphTask(const GraphTask&) = delete;

  /// The number of a node in this pass, made when missing.
  uint32_t claim(Node* node, bool& fresh);
  /// Its number, or kNone when the pass does not contain it.
  uint32_t find(const Node* node) const;
  static constexpr uint32_t kNone = UINT32_MAX;

  void compute_dependencies(const edge_list& roots, uint64_t min_topological_nr);
  void compute_needed(const edge_list& roots, const edge_list& outputs, bool accumulate_grad);
  /// Adds a gradient to a node's buffer; true when it was the last one.
  bool receive(uint32_t slot, uint32_t input_nr, Tensor&& grad);
  /// Runs a node and passes its results on; `push` is called for every node that became ready.
  template <class Push>
  void run(Ready ready, const Push& push);

  bool keep_graph, create_graph;
  bool partial = false;     // only some gradients are wanted
  bool has_device = false;  // some node runs on a device thread
  uint32_t id32;            // claims of nodes carry this
  int64_t id;
  uint32_t depth = 0;  // reentrancy
  std::vector<NodeState> states;
  std::unordered_map<const Node*, uint32_t> contested;  // nodes that another pass had claimed
  std::vector<Capture> captures;
  variable_list captured;
  std::vector<Ready> heap;
  std::vector<std::function<void()>> callbacks;
  edge_list roots;  // keeps the graph alive
  GraphTask* parent = nullptr;

  // Only for graphs that touch a device.
  std::mutex mutex;
  SharedQueue* owner_queue = nullptr;
  std::unique_ptr<SharedQueue> local_queue;  // when the owner is not a device thread
  uint32_t outstanding = 0;
  std::atomic<bool> complete{false};
  bool failed = false;
  std::exception_ptr error;  // until the owner rethrows it: device threads that end later must not be the last to hold it
  ThreadState thread_state;
};

/// The pass and node of this thread.
struct Current {
  GraphTask* task = nullptr;
  Node* node = nullptr;
};
extern thread_local constinit Current current;

/// Runs a task whose graph touches devices; the caller takes part.
void run_with_devices(const std::shared_ptr<GraphTask>& task, const std::vector<Ready>& ready);
/// Runs f on another thread with this thread's state, when the stack has become deep.
void run_on_fresh_stack(const std::function<void()>& f);

/// One step: hooks, the node, checks; gives the results that travel along the node's edges (empty when the node was not needed).
variable_list evaluate(GraphTask& task, uint32_t slot, variable_list&& inputs);
void accumulate(variable_list& buffer, uint32_t nr, Tensor&& grad);

template <class Push>
void GraphTask::run(Ready ready, const Push& push) {
  const auto locked = [this] { return has_device ? std::unique_lock<std::mutex>(mutex) : std::unique_lock<std::mutex>(); };
  variable_list inputs;
  Node* node;
  {
    const auto lock = locked();
    node = states[ready.slot].node;
    inputs = std::move(states[ready.slot].buffer);
  }
  if (inputs.size() < node->num_inputs()) inputs.resize(node->num_inputs());
  variable_list results = evaluate(*this, ready.slot, std::move(inputs));
  if (results.empty() && partial && !states[ready.slot].needed) return;
  const auto lock = locked();
  const edge_list& edges = node->next_edges();
  for (std::size_t i = 0; i < edges.size(); ++i) {
    const Edge& edge = edges[i];
    if (!edge.is_valid()) continue;
    const uint32_t slot = find(edge.function.get());
    if (slot == kNone) continue;
    NodeState& state = states[slot];
    if (results[i].defined()) {
      if (state.buffer.empty()) state.buffer.resize(edge.function->num_inputs());
      accumulate(state.buffer, edge.input_nr, std::move(results[i]));
    }
    if (--state.dependencies == 0 && (!partial || state.needed || state.is_output)) push(Ready{edge.function->sequence_nr(), slot});
  }
}

}  // namespace cresset::autograd::engine
