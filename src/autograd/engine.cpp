// The engine: dependencies, the loop of a backward pass on the calling thread, hooks and checks around each node.
#include <cresset/autograd/engine.h>

#include <algorithm>

#include <cresset/autograd/anomaly_mode.h>
#include <cresset/base/interrupt.h>
#include <cresset/dispatch/profiler.h>
#include <cresset/ops/functions_arith.h>
#include <cresset/ops/functions_compare.h>
#include <cresset/ops/functions_copy.h>
#include <cresset/ops/functions_reduce.h>
#include <cresset/ops/functions_view.h>

#include "autograd/graph_task.h"
#include "autograd/kept_default_hooks.h"
#include "autograd/nodes.h"

namespace cresset::autograd {
namespace engine {

thread_local constinit Current current{};

namespace {
std::atomic<int64_t> tasks_made{0};
thread_local constinit bool multithreading = true;
constexpr uint32_t kMaxDepthOnOneStack = 60;
thread_local constinit uint32_t stack_depth = 0;

/// Vectors of finished passes, kept for the next one of this thread.
struct Scratch {
  std::vector<NodeState> states;
  std::vector<Ready> heap;
};
Scratch& scratch() {
  thread_local const auto s = std::make_unique<Scratch>();  // on the heap: thread-local storage is scarce
  return *s;
}
}  // namespace

GraphTask::GraphTask(bool keep, bool create)
    : keep_graph(keep), create_graph(create), id(tasks_made.fetch_add(1, std::memory_order_relaxed)) {
  id32 = static_cast<uint32_t>(id % 0xFFFFFFFEu) + 1;
  Scratch& kept = scratch();
  states.swap(kept.states);
  heap.swap(kept.heap);
}

GraphTask::~GraphTask() {
  for (const NodeState& s : states) {
    std::atomic<uint64_t>& slot = s.node->pass_slot();
    if (slot.load(std::memory_order_relaxed) >> 32 == id32) slot.store(0, std::memory_order_release);
  }
  states.clear();
  heap.clear();
  Scratch& kept = scratch();
  if (states.capacity() <= 4096) kept.states.swap(states);
  if (heap.capacity() <= 4096) kept.heap.swap(heap);
}

uint32_t GraphTask::claim(Node* node, bool& fresh) {
  std::atomic<uint64_t>& slot = node->pass_slot();
  uint64_t seen = slot.load(std::memory_order_relaxed);
  if (seen >> 32 == id32) {
    fresh = false;
    return static_cast<uint32_t>(seen);
  }
  const auto next = static_cast<uint32_t>(states.size());
  if (seen == 0 && contested.empty()) {
    if (slot.compare_exchange_strong(seen, uint64_t{id32} << 32 | next, std::memory_order_acq_rel)) {
      fresh = true;
      states.emplace_back().node = node;
      return next;
    }
  }
  // Another pass holds the node now, or did when this pass first met it.
  const auto [it, inserted] = contested.try_emplace(node, next);
  fresh = inserted;
  if (inserted) states.emplace_back().node = node;
  return it->second;
}

uint32_t GraphTask::find(const Node* node) const {
  const uint64_t seen = node->pass_slot().load(std::memory_order_relaxed);
  if (CRESSET_LIKELY(seen >> 32 == id32)) return static_cast<uint32_t>(seen);
  if (contested.empty()) return kNone;
  const auto it = contested.find(node);
  return it == contested.end() ? kNone : it->second;
}

void GraphTask::compute_dependencies(const edge_list& root_edges, uint64_t min_topological_nr) {
  std::vector<Node*> stack;
  const auto visit = [&](Node* node) {
    bool fresh;
    const uint32_t slot = claim(node, fresh);
    if (fresh) {
      stack.push_back(node);
      const Device d = node->device();
      if (CRESSET_UNLIKELY(!d.is_cpu())) has_device = true;
    }
    return slot;
  };
  for (const Edge& e : root_edges)
    if (e.is_valid()) visit(e.function.get());
  while (!stack.empty()) {
    Node* node = stack.back();
    stack.pop_back();
    for (const Edge& e : node->next_edges()) {
      if (!e.is_valid() || e.function->topological_nr() < min_topological_nr) continue;
      const uint32_t slot = visit(e.function.get());
      ++states[slot].dependencies;
    }
  }
}

void GraphTask::compute_needed(const edge_list& root_edges, const edge_list& outputs, bool accumulate_grad) {
  partial = true;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const uint32_t slot = find(outputs[i].function.get());
    if (slot == kNone) continue;
    states[slot].is_output = true;
    if (accumulate_grad)
      states[slot].needed = true;
    else
      captures.push_back({slot, outputs[i].input_nr, static_cast<uint32_t>(i)});
  }
  // Children before parents, without recursion. rank counts the edges already looked at, plus one.
  std::vector<uint32_t> stack;
  const auto enter = [&](uint32_t slot) {
    if (states[slot].rank == 0) {
      states[slot].rank = 1;
      stack.push_back(slot);
    }
  };
  for (const Edge& root : root_edges) {
    if (!root.is_valid()) continue;
    enter(find(root.function.get()));
    while (!stack.empty()) {
      const uint32_t slot = stack.back();
      const edge_list& edges = states[slot].node->next_edges();
      bool descended = false;
      while (states[slot].rank <= edges.size()) {
        const Edge& e = edges[states[slot].rank++ - 1];
        const uint32_t child = e.is_valid() ? find(e.function.get()) : kNone;
        if (child != kNone && states[child].rank == 0) {
          enter(child);
          descended = true;
          break;
        }
      }
      if (descended) continue;
      stack.pop_back();
      for (const Edge& e : edges) {
        const uint32_t child = e.is_valid() ? find(e.function.get()) : kNone;
        if (child != kNone && (states[child].needed || states[child].is_output)) states[slot].needed = true;
      }
    }
  }
}

void accumulate(variable_list& buffer, uint32_t nr, Tensor&& grad) {
  CRESSET_INTERNAL_ASSERT(nr < buffer.size(), "input ", nr, " of ", buffer.size(), ".");
  Tensor& sum = buffer[nr];
  if (!sum.defined()) {
    sum = std::move(grad);
    return;
  }
  // The first operand may be overwritten when nobody else can see it.
  const auto private_memory = [](const Tensor& t) {
    return t.use_count() == 1 && t.has_storage() && t.unsafeGetTensorImpl()->unsafe_storage().use_count() == 1 &&
           t.is_non_overlapping_and_dense();
  };
  // (Nor may a batched gradient go into one that is not: such tensors have no storage.)
  // Modes see a sum that changes nothing.
  if (!GradMode::is_enabled() && !cresset::impl::tls_is_dispatch_key_included(DispatchKey::Python) &&
      sum.has_storage() == grad.has_storage() && sum.sizes() == grad.sizes() && sum.scalar_type() == grad.scalar_type() &&
      sum.device() == grad.device()) {
    if (private_memory(sum)) {
      cresset::add_(sum, grad);
      return;
    }
    if (private_memory(grad)) {
      cresset::add_(grad, sum);
      sum = std::move(grad);
      return;
    }
  }
  // Dense and sparse are dense, in this order only.
  sum = sum.is_sparse() && !grad.is_sparse() ? cresset::add(grad, sum) : cresset::add(sum, grad);
}

namespace {
/// A list of hooks as it is now: hooks may remove themselves, and other threads may add some.
template <class List>
List hooks_now(NodeExtras& extras, List NodeExtras::*list) {
  const std::lock_guard<detail::SpinLock> lock(extras.lock);
  return extras.*list;
}

CRESSET_NOINLINE void run_tensor_hooks(Node& node, variable_list& inputs) {
  for (const auto& h : node.leaf_tensor_hooks()) inputs = (*h)(inputs);
  if (NodeExtras* extras = node.extras()) {
    for (const auto& [nr, h] : hooks_now(*extras, &NodeExtras::tensor_pre_hooks)) inputs = (*h)(inputs);
    for (const auto& [nr, h] : hooks_now(*extras, &NodeExtras::retains_grad_hooks)) inputs = (*h)(inputs);
  }
}

CRESSET_NOINLINE void check_nan(const Node& node, const variable_list& outputs) {
  AutoGradMode no_grad(false);
  for (std::size_t i = 0; i < outputs.size(); ++i)
    if (outputs[i].defined() && cresset::any(cresset::isnan(outputs[i])).item<bool>())
      CRESSET_THROW(Error, "Function '", node.name(), "' returned nan values in its ", i, "th output.");
}

struct CurrentNodeGuard {
  explicit CurrentNodeGuard(Node* node) : saved(std::exchange(current.node, node)) {}
  ~CurrentNodeGuard() { current.node = saved; }
  Node* saved;
};
}  // namespace

namespace {
/// The node's own function, as a range of the profiler when one listens.
CRESSET_NOINLINE variable_list call_recorded(Node& node, variable_list&& inputs) {
  profiler::RecordFunction range(profiler::Scope::BackwardFunction);
  std::vector<IValue> values;
  if (range.needsInputs()) values.assign(inputs.begin(), inputs.end());
  range.before(node.name(), values, static_cast<int64_t>(node.sequence_nr()), node.thread_id());
  values.clear();  // nothing but the node may hold its gradients
  return node(std::move(inputs));
}
CRESSET_ALWAYS_INLINE variable_list call(Node& node, variable_list&& inputs) {
  return CRESSET_UNLIKELY(profiler::recording()) ? call_recorded(node, std::move(inputs)) : node(std::move(inputs));
}

variable_list evaluate_node(GraphTask& task, uint32_t slot, variable_list&& inputs) {
  Node& node = *task.states[slot].node;
  const CurrentNodeGuard guard(&node);
  GradMode::set_enabled(task.create_graph);
  if (CRESSET_UNLIKELY(node.extras() != nullptr) || CRESSET_UNLIKELY(node.sequence_nr() == UINT64_MAX)) run_tensor_hooks(node, inputs);
  if (CRESSET_UNLIKELY(task.partial)) {
    for (const Capture& c : task.captures)
      if (c.slot == slot) {
        CRESSET_INTERNAL_ASSERT(c.input_nr < inputs.size());
        task.captured[c.output] = inputs[c.input_nr];
      }
    if (!task.states[slot].needed) return {};
  }
  try {
    variable_list outputs, given;
    if (CRESSET_UNLIKELY(node.extras() != nullptr)) {
      for (const auto& h : hooks_now(*node.extras(), &NodeExtras::pre_hooks)) inputs = (*h)(inputs);
      if (!hooks_now(*node.extras(), &NodeExtras::post_hooks).empty()) given = inputs;
    }
    outputs = call(node, std::move(inputs));
    if (CRESSET_LIKELY(!node.extras())) {
      inputs.clear();  // apply() took them by reference; nothing else may keep them alive
      if (!task.keep_graph) node.release_variables();
    } else {
      if (!task.keep_graph) node.release_variables();
      // The node itself may have got hooks while it ran, from the hooks of its saved tensors for example.
      if (given.empty()) given = std::move(inputs);
      for (const auto& h : hooks_now(*node.extras(), &NodeExtras::post_hooks)) outputs = (*h)(outputs, given);
    }
    const std::size_t expected = node.num_outputs();
    if (CRESSET_UNLIKELY(outputs.size() != expected)) {
      const bool only_undefined_extra =
          outputs.size() > expected &&
          std::none_of(outputs.begin() + static_cast<std::ptrdiff_t>(expected), outputs.end(), [](const Tensor& t) { return t.defined(); });
      CRESSET_CHECK(only_undefined_extra, "Function ", node.name(), " returned an invalid number of gradients - expected ", expected,
                    ", but got ", outputs.size());
      outputs.resize(expected);
    }
    validate_outputs(node.next_edges(), outputs, &node);
    if (CRESSET_UNLIKELY(AnomalyMode::is_enabled()) && AnomalyMode::should_check_nan()) check_nan(node, outputs);
    return outputs;
  } catch (...) {
    if (AnomalyMode::is_enabled()) detail::warn_forward_trace(node);
    throw;
  }
}

CRESSET_NOINLINE variable_list evaluate_recorded(GraphTask& task, uint32_t slot, variable_list&& inputs) {
  const Node& node = *task.states[slot].node;
  profiler::RecordFunction range;
  range.before("autograd::engine::evaluate_function: " + node.name(), {}, static_cast<int64_t>(node.sequence_nr()), node.thread_id());
  return evaluate_node(task, slot, std::move(inputs));
}
}  // namespace

variable_list evaluate(GraphTask& task, uint32_t slot, variable_list&& inputs) {
  if (CRESSET_UNLIKELY(profiler::recording())) return evaluate_recorded(task, slot, std::move(inputs));
  return evaluate_node(task, slot, std::move(inputs));
}

namespace {
void push_ready(std::vector<Ready>& heap, Ready r) {
  heap.push_back(r);
  if (heap.size() > 1) std::push_heap(heap.begin(), heap.end(), runs_later);
}

/// Everything on this thread, without locks.
void run_here(GraphTask& task) {
  const auto push = [&](Ready r) { push_ready(task.heap, r); };
  constexpr uint32_t kNodes = 16;  // between two looks for signals
  for (uint32_t nodes = 0; !task.heap.empty(); ++nodes) {
    nodes % kNodes == 0 ? check_signals() : check_interrupt();
    if (task.heap.size() > 1) std::pop_heap(task.heap.begin(), task.heap.end(), runs_later);
    const Ready r = task.heap.back();
    task.heap.pop_back();
    task.run(r, push);
  }
}

struct CurrentTaskGuard {
  explicit CurrentTaskGuard(GraphTask* task) : saved(current), partial(detail::partial_pass), grad(GradMode::is_enabled()) {
    task->parent = saved.task;
    task->depth = saved.task ? saved.task->depth + 1 : 0;
    current = {task, nullptr};
    detail::partial_pass = task->partial;
    ++stack_depth;
  }
  ~CurrentTaskGuard() {
    --stack_depth;
    current = saved;
    detail::partial_pass = partial;
    GradMode::set_enabled(grad);
  }
  Current saved;
  bool partial, grad;
};

variable_list run_task(const edge_list& roots, variable_list&& grads, const ExecuteOptions& options, const edge_list& outputs) {
  const auto task = std::make_shared<GraphTask>(options.keep_graph, options.create_graph);
  task->roots = roots;
  validate_outputs(roots, grads, nullptr);
  uint64_t min_topological_nr = outputs.empty() ? 0 : UINT64_MAX;
  for (const Edge& e : outputs) min_topological_nr = std::min(min_topological_nr, e.function->topological_nr());
  task->compute_dependencies(roots, min_topological_nr);
  if (!outputs.empty()) task->compute_needed(roots, outputs, options.accumulate_grad);
  task->captured.resize(task->partial && !options.accumulate_grad ? outputs.size() : 0);
  if (!multithreading) task->has_device = false;

  const CurrentTaskGuard guard(task.get());
  GradMode::set_enabled(options.create_graph);
  std::vector<Ready> ready;
  for (std::size_t i = 0; i < roots.size(); ++i) {
    if (!roots[i].is_valid()) continue;
    const uint32_t slot = task->find(roots[i].function.get());
    NodeState& state = task->states[slot];
    const bool first = state.buffer.empty();
    if (first) state.buffer.resize(std::max<std::size_t>(state.node->num_inputs(), roots[i].input_nr + 1));
    accumulate(state.buffer, roots[i].input_nr, std::move(grads[i]));
    if (first && state.dependencies == 0 && (!task->partial || state.needed || state.is_output))
      ready.push_back({state.node->sequence_nr(), slot});
  }
  if (CRESSET_LIKELY(!task->has_device)) {
    for (const Ready& r : ready) push_ready(task->heap, r);
    run_here(*task);
  } else {
    run_with_devices(task, ready);
  }
  for (std::size_t i = 0; i < task->callbacks.size(); ++i) {
    GradMode::set_enabled(options.create_graph);
    const auto f = std::move(task->callbacks[i]);
    f();
  }
  return std::move(task->captured);
}
}  // namespace
}  // namespace engine

void validate_outputs(const edge_list& edges, variable_list& grads, const Node* node) {
  const auto origin = [&](std::size_t i) {
    return node ? str("Function ", node->name(), " returned an invalid gradient at index ", i, " - ")
                : str("invalid gradient at index ", i, " - ");
  };
  for (std::size_t i = 0; i < grads.size() && i < edges.size(); ++i) {
    const Edge& edge = edges[i];
    Tensor& grad = grads[i];
    if (!edge.is_valid() || !grad.defined()) continue;
    if (CRESSET_UNLIKELY(edge.input_nr >= edge.function->num_inputs())) continue;
    const InputMetadata& m = edge.function->input_metadata(edge.input_nr);
    if (CRESSET_UNLIKELY(m.was_default_constructed())) continue;
    if (CRESSET_LIKELY(grad.sizes() == m.shape() && grad.scalar_type() == m.grad_dtype() && grad.device() == m.device())) continue;
    if (!(grad.sizes() == m.shape())) {
      const IntArrayRef from = m.shape(), to = grad.sizes();
      bool expandable = from.size() <= to.size();
      for (std::size_t d = 0; expandable && d < from.size(); ++d) {
        const int64_t a = from[from.size() - 1 - d];
        expandable = a == 1 || a == to[to.size() - 1 - d];
      }
      CRESSET_CHECK(expandable, origin(i), "got ", grad.sizes(), " but expected shape compatible with ", m.shape());
      grad = cresset::sum_to_size(grad, m.shape());
    }
    if (!(grad.device() == m.device())) {
      CRESSET_CHECK(grad.dim() == 0 && grad.device().type() != m.device().type(), origin(i), "expected device ", m.device(), " but got ",
                    grad.device());
      grad = cresset::to(grad, m.options().dtype(grad.scalar_type()));
    }
    const ScalarType wanted = m.grad_dtype();
    if (wanted != ScalarType::Undefined && grad.scalar_type() != wanted) {
      CRESSET_CHECK(isDifferentiableType(wanted), origin(i), "a grad_dtype of ", toString(wanted), " holds no gradients");
      if (grad.is_complex() && !isComplexType(wanted)) grad = cresset::real(grad);
      if (grad.scalar_type() != wanted) grad = cresset::to(grad, wanted);
    }
  }
}

Engine& Engine::get_default_engine() {
  static Engine engine;
  return engine;
}

variable_list Engine::execute(const edge_list& roots, variable_list&& grads, const ExecuteOptions& options, const edge_list& outputs) {
  const KeptDefaultHooks kept;
  if (CRESSET_LIKELY(engine::stack_depth < engine::kMaxDepthOnOneStack)) return engine::run_task(roots, std::move(grads), options, outputs);
  variable_list result;
  engine::run_on_fresh_stack([&] { result = engine::run_task(roots, std::move(grads), options, outputs); });
  return result;
}

void Engine::queue_callback(std::function<void()> f) {
  CRESSET_CHECK(engine::current.task, "Final callbacks can only be installed during backward pass.");
  engine::current.task->callbacks.push_back(std::move(f));
}

int64_t get_current_graph_task_id() { return engine::current.task ? engine::current.task->id : -1; }
bool get_current_graph_task_keep_graph() { return !engine::current.task || engine::current.task->keep_graph; }
std::shared_ptr<Node> current_node() { return engine::current.node ? engine::current.node->shared_from_this() : nullptr; }

std::vector<std::shared_ptr<Node>> get_current_graph_task_execution_order() {
  const engine::GraphTask* task = engine::current.task;
  CRESSET_CHECK(task, "_get_current_graph_task_execution_order: a running backward pass was required.");
  std::vector<uint32_t> left;
  left.reserve(task->states.size());
  for (const engine::NodeState& s : task->states) left.push_back(s.dependencies);
  std::vector<engine::Ready> heap;
  for (const Edge& e : task->roots)
    if (e.is_valid() && left[task->find(e.function.get())]++ == 0)
      heap.push_back({e.function->sequence_nr(), task->find(e.function.get())});
  std::make_heap(heap.begin(), heap.end(), engine::runs_later);
  std::vector<std::shared_ptr<Node>> order;
  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end(), engine::runs_later);
    const uint32_t slot = heap.back().slot;
    heap.pop_back();
    Node* node = task->states[slot].node;
    if (!task->partial || task->states[slot].needed || task->states[slot].is_output) order.push_back(node->shared_from_this());
    for (const Edge& e : node->next_edges()) {
      const uint32_t child = e.is_valid() ? task->find(e.function.get()) : engine::GraphTask::kNone;
      if (child == engine::GraphTask::kNone || --left[child] != 0) continue;
      heap.push_back({e.function->sequence_nr(), child});
      std::push_heap(heap.begin(), heap.end(), engine::runs_later);
    }
  }
  return order;
}

void set_multithreading_enabled(bool on) { engine::multithreading = on; }
bool is_multithreading_enabled() { return engine::multithreading; }

bool will_engine_execute_node(const Node* node) {
  const engine::GraphTask* task = engine::current.task;
  CRESSET_CHECK(task, "_will_engine_execute_node: no backward pass runs on this thread.");
  const uint32_t slot = task->find(node);
  if (slot == engine::GraphTask::kNone) return false;
  return !task->partial || task->states[slot].needed || task->states[slot].is_output;
}

namespace detail {
bool pass_needs(const Node* node) {
  const engine::GraphTask* task = engine::current.task;
  if (!task || !task->partial) return true;
  const uint32_t slot = task->find(node);
  return slot != engine::GraphTask::kNone && (task->states[slot].needed || task->states[slot].is_output);
}
}  // namespace detail

}  // namespace cresset::autograd
