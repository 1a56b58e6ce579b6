// Node: construction, deletion without recursion, hooks and names.
#include <cresset/autograd/node.h>

#include <cxxabi.h>
#include <sched.h>

#include <cstdlib>
#include <mutex>

#include <cresset/autograd/anomaly_mode.h>
#include <cresset/dispatch/profiler.h>

namespace cresset::autograd {
namespace detail {

thread_local constinit uint64_t sequence_number = 0;
thread_local constinit bool partial_pass = false;

void SpinLock::wait() noexcept {
  int tries = 0;
  do {
    while (flag_.load(std::memory_order_relaxed))
      if (++tries > 64) sched_yield();
  } while (flag_.exchange(true, std::memory_order_acquire));
}

namespace {
// Nodes whose last owner went while another node of this thread was being deleted. Plain data, so that it may be used
// while the thread's other locals are being destroyed.
struct Graveyard {
  std::vector<std::shared_ptr<Node>>* waiting;
  bool active;
};
thread_local constinit Graveyard graveyard{};

struct GraveyardOwner {
  ~GraveyardOwner() {
    delete graveyard.waiting;
    graveyard.waiting = nullptr;
  }
};

std::atomic<uint32_t> threads_seen{0};
thread_local constinit uint32_t this_thread_id = 0;

CRESSET_NOINLINE void number_this_thread() { this_thread_id = ++threads_seen; }

const bool position_told = [] {
  profiler::set_autograd_position([] {
    if (this_thread_id == 0) number_this_thread();
    return profiler::AutogradPosition{sequence_number, this_thread_id};
  });
  return true;
}();
}  // namespace

void release_node(std::shared_ptr<Node>&& node) noexcept {
  if (!node) return;
  if (node.use_count() > 1) return node.reset();
  Graveyard& g = graveyard;
  if (g.active) {
    try {
      if (!g.waiting) {
        static thread_local GraveyardOwner owner;
        (void)owner;
        g.waiting = new std::vector<std::shared_ptr<Node>>();
      }
      g.waiting->push_back(std::move(node));
    } catch (const std::bad_alloc&) {
      node.reset();  // inside of another's destructor, then
    }
    return;
  }
  g.active = true;
  node.reset();
  while (g.waiting && !g.waiting->empty()) {
    std::shared_ptr<Node> next = std::move(g.waiting->back());
    g.waiting->pop_back();
    next.reset();
  }
  g.active = false;
}

void release_edges(edge_list& edges) noexcept {
  for (Edge& e : edges) release_node(std::move(e.function));
}

}  // namespace detail

Node::Node(uint64_t sequence_nr, edge_list&& next_edges) : sequence_nr_(sequence_nr), next_edges_(std::move(next_edges)) {
  for (const Edge& e : next_edges_) raise_topological_nr(e);
  if (CRESSET_UNLIKELY(detail::this_thread_id == 0)) detail::number_this_thread();
  thread_id_ = detail::this_thread_id;
  if (CRESSET_UNLIKELY(AnomalyMode::is_enabled())) detail::store_forward_trace(*this);
}

Node::~Node() {
  detail::release_edges(next_edges_);
  if (NodeExtras* extras = extras_.get(); extras && extras->parent) detail::release_node(std::move(extras->parent));
}

std::string Node::name() const {
  int status = 0;
  char* text = abi::__cxa_demangle(typeid(*this).name(), nullptr, nullptr, &status);
  std::string result = status == 0 ? text : typeid(*this).name();
  std::free(text);
  return result;
}

Device Node::device_slow() const {
  for (const InputMetadata& m : input_metadata_)
    if (!m.was_default_constructed() && !m.device().is_cpu() && !m.device().is_meta()) return m.device();
  return Device(kCPU);
}

namespace {
using HookLock = std::lock_guard<detail::SpinLock>;
}

void Node::add_tensor_pre_hook(uint32_t nr, std::shared_ptr<FunctionPreHook> hook) {
  NodeExtras& extras = mutable_extras();
  const HookLock lock(extras.lock);
  extras.tensor_pre_hooks.emplace_back(nr, std::move(hook));
}
void Node::add_retains_grad_hook(uint32_t nr, std::shared_ptr<FunctionPreHook> hook) {
  NodeExtras& extras = mutable_extras();
  const HookLock lock(extras.lock);
  extras.retains_grad_hooks[nr].swap(hook);  // what was there goes when the lock has been given back
}
std::shared_ptr<FunctionPreHook> Node::pop_retains_grad_hook(uint32_t nr) {
  NodeExtras* extras = this->extras();
  if (!extras) return nullptr;
  const HookLock lock(extras->lock);
  const auto found = extras->retains_grad_hooks.extract(nr);
  return found ? found.mapped() : nullptr;
}
void Node::add_pre_hook(std::shared_ptr<FunctionPreHook> hook) {
  NodeExtras& extras = mutable_extras();
  const HookLock lock(extras.lock);
  extras.pre_hooks.push_back(std::move(hook));
}
void Node::add_post_hook(std::shared_ptr<FunctionPostHook> hook) {
  NodeExtras& extras = mutable_extras();
  const HookLock lock(extras.lock);
  extras.post_hooks.push_back(std::move(hook));
}

}  // namespace cresset::autograd
