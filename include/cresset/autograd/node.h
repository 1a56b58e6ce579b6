// Node: one step of the backward graph. It receives the gradients of a forward operation's outputs and gives the
// gradients of its inputs, which travel along the node's edges.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <cresset/autograd/edge.h>
#include <cresset/autograd/function_hook.h>
#include <cresset/autograd/input_metadata.h>

namespace cresset::autograd {

struct SavedValueVisitor;  // saved_values.h

/// A number for each node of a thread, increasing; the engine runs later nodes first.
namespace detail {
extern CRESSET_API thread_local constinit uint64_t sequence_number __attribute__((tls_model("initial-exec")));
/// True while the running backward pass computes only some of the gradients (`inputs=` or grad()).
extern CRESSET_API thread_local constinit bool partial_pass __attribute__((tls_model("initial-exec")));
CRESSET_API bool pass_needs(const Node* node);
/// Drops a reference to a node; long chains are taken apart without recursion.
CRESSET_API void release_node(std::shared_ptr<Node>&& node) noexcept;
/// Drops all edges that way.
CRESSET_API void release_edges(edge_list& edges) noexcept;

/// One byte of mutual exclusion for very short sections.
class SpinLock {
 public:
  void lock() noexcept {
    if (CRESSET_UNLIKELY(flag_.exchange(true, std::memory_order_acquire))) wait();
  }
  void unlock() noexcept { flag_.store(false, std::memory_order_release); }

 private:
  CRESSET_API void wait() noexcept;
  std::atomic<bool> flag_{false};
};

/// A part that most objects never need, made by whichever thread needs it first.
template <class T>
class OnDemand {
 public:
  OnDemand() = default;
  OnDemand(const OnDemand&) = delete;
  ~OnDemand() { delete get(); }
  /// Null until somebody needed it.
  T* get() const noexcept { return value_.load(std::memory_order_acquire); }
  T& make() {
    if (T* made = get()) return *made;
    auto fresh = std::make_unique<T>();
    T* first = nullptr;
    return value_.compare_exchange_strong(first, fresh.get(), std::memory_order_acq_rel) ? *fresh.release() : *first;
  }

 private:
  std::atomic<T*> value_{nullptr};
};
}  // namespace detail

/// Half-open range of edge numbers that belong to one forward input (several for a list of tensors).
using IndexRange = std::pair<std::size_t, std::size_t>;

/// Hands out consecutive ranges.
struct IndexRangeGenerator {
  IndexRange range(std::size_t n) {
    next_ += n;
    return {next_ - n, next_};
  }
  std::size_t size() const { return next_; }

 private:
  std::size_t next_ = 0;
};

/// The rarely used parts of a node.
struct NodeExtras {
  detail::SpinLock lock;  // guards the lists of hooks: they may change while another thread runs the node
  std::vector<std::pair<uint32_t, std::shared_ptr<FunctionPreHook>>> tensor_pre_hooks;  // by input number
  std::map<uint32_t, std::shared_ptr<FunctionPreHook>> retains_grad_hooks;              // by input number, after the others
  std::vector<std::shared_ptr<FunctionPreHook>> pre_hooks;
  std::vector<std::shared_ptr<FunctionPostHook>> post_hooks;
  std::shared_ptr<void> metadata;  // anything the user hangs on the node
  std::string forward_trace;       // where the forward operation ran (anomaly mode)
  std::shared_ptr<Node> parent;    // the node whose backward made this one (anomaly mode)
};

/// A function of gradients. Derived classes implement apply(); nodes live in std::shared_ptr (make_node is the quick way).
struct CRESSET_API Node : std::enable_shared_from_this<Node> {
  explicit Node(edge_list&& next_edges = {}) : Node(detail::sequence_number++, std::move(next_edges)) {}
  /// With a fixed priority; UINT64_MAX runs as early as possible.
  explicit Node(uint64_t sequence_nr, edge_list&& next_edges = {});
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;
  virtual ~Node();

  /// Runs the node with its gradients (undefined tensors stand for zero), recording when grad mode is on.
  variable_list operator()(variable_list&& inputs) { return apply(std::move(inputs)); }
  std::shared_ptr<Node> getptr() { return shared_from_this(); }

  /// The name users see: "MulBackward0".
  virtual std::string name() const;
  /// Drops saved tensors; a later run that needs them raises.
  virtual void release_variables() {}
  /// Shows each saved value under the name of its argument or result.
  virtual void visit_saved(SavedValueVisitor&) {}
  /// Called before the node runs in a pass that keeps the graph.
  virtual void will_release_variables() {}
  virtual bool is_traceable() { return false; }

  // Inputs: the gradients that come in.
  /// Describes the next forward output; gives its number.
  uint32_t add_input_metadata(const Tensor& t) {
    const auto nr = static_cast<uint32_t>(input_metadata_.size());
    const InputMetadata& m = input_metadata_.emplace_back(t);
    if (CRESSET_UNLIKELY(!m.device().is_cpu())) on_device_ = true;
    return nr;
  }
  uint32_t add_input_metadata(const InputMetadata& m) {
    input_metadata_.push_back(m);
    if (!m.device().is_cpu()) on_device_ = true;
    return static_cast<uint32_t>(input_metadata_.size() - 1);
  }
  uint32_t num_inputs() const noexcept { return static_cast<uint32_t>(input_metadata_.size()); }
  const InputMetadata& input_metadata(std::size_t i) const { return input_metadata_[i]; }
  InputMetadata& mutable_input_metadata(std::size_t i) { return input_metadata_[i]; }
  void clear_input_metadata() { input_metadata_.clear(); }
  /// The device the node runs for: the first of its inputs' devices that is neither CPU nor meta, otherwise the CPU.
  Device device() const {
    if (CRESSET_LIKELY(!on_device_)) return Device(kCPU);
    return device_slow();
  }

  // Outputs: the edges along which results travel.
  const edge_list& next_edges() const noexcept { return next_edges_; }
  edge_list& next_edges() noexcept { return next_edges_; }
  const Edge& next_edge(std::size_t i) const noexcept { return next_edges_[i]; }
  uint32_t num_outputs() const noexcept { return static_cast<uint32_t>(next_edges_.size()); }
  void set_next_edge(std::size_t i, Edge edge) {
    raise_topological_nr(edge);
    next_edges_[i] = std::move(edge);
  }
  void add_next_edge(Edge edge) {
    raise_topological_nr(edge);
    next_edges_.push_back(std::move(edge));
  }
  void set_next_edges(edge_list&& edges) {
    next_edges_ = std::move(edges);
    for (const Edge& e : next_edges_) raise_topological_nr(e);
  }

  /// Is the i-th result wanted by anyone?
  bool should_compute_output(std::size_t i) const { return next_edges_[i].is_valid(); }
  bool should_compute_output(std::initializer_list<IndexRange> ranges) const {
    for (const IndexRange& r : ranges)
      for (std::size_t i = r.first; i < r.second; ++i)
        if (should_compute_output(i)) return true;
    return false;
  }
  /// Is it wanted in the backward pass that runs on this thread now?
  bool task_should_compute_output(std::size_t i) const {
    if (!next_edges_[i].is_valid()) return false;
    return CRESSET_LIKELY(!detail::partial_pass) || detail::pass_needs(next_edges_[i].function.get());
  }
  bool task_should_compute_output(std::initializer_list<IndexRange> ranges) const {
    for (const IndexRange& r : ranges)
      for (std::size_t i = r.first; i < r.second; ++i)
        if (task_should_compute_output(i)) return true;
    return false;
  }

  uint64_t sequence_nr() const noexcept { return sequence_nr_; }
  void set_sequence_nr(uint64_t nr) { sequence_nr_ = nr; }
  /// Length of the longest path to a leaf.
  uint64_t topological_nr() const noexcept { return topological_nr_; }
  /// Number of the thread that ran the forward operation.
  uint64_t thread_id() const noexcept { return thread_id_; }

  // Hooks and user data.
  /// Null until something was added.
  NodeExtras* extras() const noexcept { return extras_.get(); }
  NodeExtras& mutable_extras() { return extras_.make(); }
  /// Runs on the gradient of forward output `nr`, before retain_grad and pre-hooks.
  void add_tensor_pre_hook(uint32_t nr, std::shared_ptr<FunctionPreHook> hook);
  void add_retains_grad_hook(uint32_t nr, std::shared_ptr<FunctionPreHook> hook);
  std::shared_ptr<FunctionPreHook> pop_retains_grad_hook(uint32_t nr);
  void add_pre_hook(std::shared_ptr<FunctionPreHook> hook);
  void add_post_hook(std::shared_ptr<FunctionPostHook> hook);
  /// Tensor hooks that live outside of the node: a leaf's own.
  virtual std::vector<std::shared_ptr<FunctionPreHook>> leaf_tensor_hooks() { return {}; }

  /// Python object of this node, managed by the Python layer.
  void* pyobj() const noexcept { return pyobj_; }
  void set_pyobj(void* p) noexcept { pyobj_ = p; }

  /// Which running pass has claimed this node (high half) and under which number (low half); 0 when none. Engine only.
  std::atomic<uint64_t>& pass_slot() const noexcept { return pass_slot_; }

  /// Held while saved values are read or dropped, so that threads that share a graph get an error and no crash.
  detail::SpinLock& saved_lock() noexcept { return saved_lock_; }

 protected:
  virtual variable_list apply(variable_list&& inputs) = 0;

 private:
  Device device_slow() const;
  void raise_topological_nr(const Edge& e) noexcept {
    if (e.function && e.function->topological_nr_ >= topological_nr_) topological_nr_ = e.function->topological_nr_ + 1;
  }

  mutable std::atomic<uint64_t> pass_slot_{0};
  uint64_t sequence_nr_;
  uint64_t topological_nr_ = 0;
  edge_list next_edges_;
  InlineVector<InputMetadata, 1> input_metadata_;
  detail::OnDemand<NodeExtras> extras_;
  void* pyobj_ = nullptr;
  uint32_t thread_id_;
  detail::SpinLock saved_lock_;
  bool on_device_ = false;
};

/// Holds a node's lock for a scope.
class SavedLock {
 public:
  explicit SavedLock(Node& node) : lock_(node.saved_lock()) { lock_.lock(); }
  ~SavedLock() { lock_.unlock(); }
  SavedLock(const SavedLock&) = delete;

 private:
  detail::SpinLock& lock_;
};

namespace detail {
/// Node memory comes from the free list of small CPU blocks.
template <class T>
struct NodeAllocator {
  using value_type = T;
  NodeAllocator() = default;
  template <class U>
  NodeAllocator(const NodeAllocator<U>&) {}
  T* allocate(std::size_t n) { return static_cast<T*>(alloc_cpu(n * sizeof(T))); }
  void deallocate(T* p, std::size_t n) noexcept { free_cpu_sized(p, n * sizeof(T)); }
  template <class U>
  friend bool operator==(const NodeAllocator&, const NodeAllocator<U>&) {
    return true;
  }
};
}  // namespace detail

/// A new node in a shared_ptr.
template <class T, class... Args>
std::shared_ptr<T> make_node(Args&&... args) {
  return std::allocate_shared<T>(detail::NodeAllocator<T>(), std::forward<Args>(args)...);
}

}  // namespace cresset::autograd
