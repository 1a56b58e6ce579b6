// The engine: runs the backward graph. A graph on the CPU runs on the calling thread; nodes of another device run on
// that device's engine thread.
#pragma once

#include <functional>
#include <memory>

#include <cresset/autograd/node.h>

namespace cresset::autograd {

/// What execute() shall do.
struct ExecuteOptions {
  bool keep_graph = false;
  bool create_graph = false;
  /// With outputs: write .grad of them instead of returning gradients.
  bool accumulate_grad = true;
};

struct CRESSET_API Engine {
  static Engine& get_default_engine();

  /// Sends grads[i] along roots[i] through the graph. Without outputs everything reachable runs. With outputs only the
  /// paths to them, and unless accumulate_grad is set the gradients that arrive there are returned (undefined where none came).
  variable_list execute(const edge_list& roots, variable_list&& grads, const ExecuteOptions& options, const edge_list& outputs = {});

  /// Runs f when the backward pass of this thread is complete; raises outside of one.
  void queue_callback(std::function<void()> f);
};

/// Number of the backward pass that runs on this thread, -1 outside.
CRESSET_API int64_t get_current_graph_task_id();
/// Does that pass keep the graph?
CRESSET_API bool get_current_graph_task_keep_graph();
/// Does the backward pass that runs on this thread run this node (or has it)?
CRESSET_API bool will_engine_execute_node(const Node* node);
/// The node that runs on this thread now, or null.
CRESSET_API std::shared_ptr<Node> current_node();
/// Nodes of the current pass in the order in which they are going to run (only before anything ran).
CRESSET_API std::vector<std::shared_ptr<Node>> get_current_graph_task_execution_order();

/// Allows or forbids device threads for passes that this thread starts; forbidden, everything runs on the calling thread.
CRESSET_API void set_multithreading_enabled(bool on);
CRESSET_API bool is_multithreading_enabled();

/// Sums gradients down to the shapes that the edges expect, casts them, and raises when they cannot fit. `node` gave them
/// (null: the caller of backward).
CRESSET_API void validate_outputs(const edge_list& edges, variable_list& grads, const Node* node);

/// What the Python layer installs: around waiting for another thread, and at the start and end of engine threads.
struct EngineThreadHooks {
  void* (*before_wait)() = nullptr;  // releases the interpreter lock when this thread has it
  void (*after_wait)(void*) = nullptr;
};
CRESSET_API void set_engine_thread_hooks(EngineThreadHooks hooks);

}  // namespace cresset::autograd
