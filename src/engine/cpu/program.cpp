#include "engine/cpu/program.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <string_view>
#include <unordered_set>
#include <utility>

#include <cresset/base/parallel.h>
#include <cresset/core/forward_levels.h>
#include <cresset/core/grad_mode.h>
#include <cresset/dispatch/dispatcher.h>
#include <cresset/ir/interpreter.h>
#include <cresset/ir/pass.h>
#include <cresset/ops/functions_creation.h>

#include "core/memory_plan.h"

namespace cresset::engine::cpu {

using jit::Node;
using jit::Value;

PackedGraph::PackedGraph(const EngineSource& source)
    : graph_(source.graph->copy()),
      given_(source.graph->inputs().size() - source.weights.size()),
      constants_(source.weights.begin(), source.weights.end()) {}

Tensor PackedGraph::tensor(const Value* v) const {
  const std::optional<IValue> value = known(v);
  return value && value->isTensor() ? value->toTensor() : Tensor();
}

std::optional<IValue> PackedGraph::known(const Value* v) const {
  if (v->node() == graph_->param_node()) {
    const std::size_t i = v->offset();
    return i < given_ ? std::nullopt : std::optional(constants_[i - given_]);
  }
  if (v->node()->kind() != jit::prim::ListConstruct) return jit::toIValue(v);
  std::vector<int64_t> members;
  for (const Value* m : v->node()->inputs()) {
    const auto member = jit::toIValue(m);
    if (!member || !member->isInt()) return std::nullopt;
    members.push_back(member->toInt());
  }
  return IValue(std::move(members));
}

Value* PackedGraph::add(const char* op, std::vector<IValue> arguments) {
  Stack stack(std::make_move_iterator(arguments.begin()), std::make_move_iterator(arguments.end()));
  Dispatcher::singleton().findSchemaOrThrow(op, "").callBoxed(stack);
  constants_.push_back(std::move(stack.back()));
  return graph_->addInput()->setType(constants_.back().type());
}

void PackedGraph::tidy() {
  jit::eliminate_dead_code(graph_);
  for (std::size_t i = constants_.size(); i-- > 0;)
    if (!graph_->inputs()[given_ + i]->hasUses()) {
      graph_->eraseInput(given_ + i);
      constants_.erase(constants_.begin() + static_cast<std::ptrdiff_t>(i));
    }
  graph_->lint();
}

namespace {

// Are these tensors of the CPU, with nothing around the call that wants to see its operators (gradients, vmap, autocast, modes)?
bool is_plain_call(const std::vector<Tensor>& inputs) {
  constexpr DispatchKeySet unseen{DispatchKey::CPU, DispatchKey::ADInplaceOrView, DispatchKey::AutogradCPU, DispatchKey::BackendSelect,
                                  DispatchKey::PreDispatch};
  const auto [included, excluded] = impl::tls_local_dispatch_key_set();
  const auto is_unseen = [&](DispatchKeySet keys) { return ((keys | included) - excluded - unseen).raw_repr() >> kBackendCount == 0; };
  if (!is_unseen({}) || detail::forward_levels.load(std::memory_order_relaxed) > 0) return false;
  return std::all_of(inputs.begin(), inputs.end(), [&](const Tensor& t) {
    return t.device().is_cpu() && is_unseen(t.key_set()) && !(GradMode::is_enabled() && t.requires_grad());
  });
}

// No NaN and no infinity among floats; other types are not looked at.
bool is_finite(const Tensor& t) {
  if (t.scalar_type() != kFloat) return true;
  const Tensor dense = t.is_non_overlapping_and_dense() ? t : t.contiguous();
  const auto* p = static_cast<const uint32_t*>(dense.const_data_ptr());
  // Counted to a constant, the inner loop becomes vectors at -O2 too; those of every instruction set compare for equality.
  constexpr int64_t kLanes = 16;
  const auto is_not = [](uint32_t bits) { return (bits & 0x7f800000U) == 0x7f800000U ? 1U : 0U; };
  uint32_t found[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= dense.numel(); i += kLanes)
    for (int64_t j = 0; j < kLanes; ++j) found[j] |= is_not(p[i + j]);
  for (; i < dense.numel(); ++i) found[0] |= is_not(p[i]);
  return std::all_of(found, found + kLanes, [](uint32_t one) { return one == 0; });
}

// A graph ready to run: its last inputs are the constants.
struct Runnable {
  std::shared_ptr<const jit::Code> code;
  std::vector<IValue> constants;

  std::vector<Tensor> run(const std::vector<Tensor>& inputs) const {
    Stack stack(inputs.begin(), inputs.end());
    stack.insert(stack.end(), constants.begin(), constants.end());
    code->run(stack);
    std::vector<Tensor> out;
    for (IValue& v : stack) out.push_back(std::move(v).toTensor());
    return out;
  }
};

// What was found out for inputs of one kind, the last 64 of them.
template <class T>
class Remembered {
 public:
  using Key = std::vector<int64_t>;
  static Key key_of(const std::vector<Tensor>& inputs) {
    Key key;
    for (const Tensor& t : inputs) {
      key.push_back(t.dim());
      key.push_back(static_cast<int64_t>(t.scalar_type()));
      key.insert(key.end(), t.sizes().begin(), t.sizes().end());
      key.insert(key.end(), t.strides().begin(), t.strides().end());
    }
    return key;
  }

  /// make() gives what is not known; it may run more than once where threads meet.
  template <class Make>
  std::shared_ptr<T> find(Key key, const Make& make) {
    if (auto known = find_known(key)) return known;
    std::shared_ptr<T> made = make();
    const std::lock_guard lock(mutex_);
    if (kept_.size() == kMost) kept_.pop_back();
    kept_.insert(kept_.begin(), {std::move(key), made});
    return made;
  }

 private:
  static constexpr std::size_t kMost = 64;
  std::shared_ptr<T> find_known(const Key& key) {
    const std::lock_guard lock(mutex_);
    for (const auto& [known, value] : kept_)
      if (known == key) return value;
    return nullptr;
  }

  std::mutex mutex_;
  std::vector<std::pair<Key, std::shared_ptr<T>>> kept_;  // the last new one first
};

// The strides of a graph's results, by the inputs' sizes and strides: packed convolutions give others than those of the graph. They come of
// a run on the Meta device, which computes nothing else.
class ResultStrides {
 public:
  explicit ResultStrides(const Runnable& graph) : graph_(graph) {
    for (IValue& v : graph_.constants)
      if (v.isTensor()) v = on_meta(v.toTensor());
  }

  /// The results with the strides of the graph; as they are where those are not known (values decide, or memory would be shared).
  std::vector<Tensor> restore(std::vector<Tensor> results, const std::vector<Tensor>& inputs) const {
    const Results expected = known_.find(known_.key_of(inputs), [&] { return run(inputs); });
    for (std::size_t i = 0; i < results.size() && i < expected->size(); ++i) {
      const Tensor &t = results[i], &like = (*expected)[i];
      const bool same = t.sizes() != like.sizes() || t.strides() == like.strides();
      if (same || t.scalar_type() != like.scalar_type() || !like.is_non_overlapping_and_dense()) continue;
      results[i] = empty_strided(like.sizes(), like.strides(), TensorOptions(t.scalar_type()).device(t.device())).copy_(t);
    }
    return results;
  }

 private:
  using Results = std::shared_ptr<const std::vector<Tensor>>;  // of the Meta device

  static Tensor on_meta(const Tensor& t) {
    return empty_strided(t.sizes(), t.strides(), TensorOptions(t.scalar_type()).device(Device(DeviceType::Meta)));
  }
  Results run(const std::vector<Tensor>& inputs) const {
    std::vector<Tensor> stand_ins;
    for (const Tensor& t : inputs) stand_ins.push_back(on_meta(t));
    try {
      return std::make_shared<const std::vector<Tensor>>(graph_.run(stand_ins));
    } catch (const Error&) {
      return std::make_shared<const std::vector<Tensor>>();
    }
  }

  Runnable graph_;
  mutable Remembered<const std::vector<Tensor>> known_;
};

// May a result have other strides than the source's, in a packed graph?
bool has_own_strides(const jit::Graph& graph) {
  std::unordered_set<const Value*> own;
  const auto is_own = [&](const Value* v) { return own.count(v) > 0; };
  for (const Node* n : graph.nodes()) {
    const std::string_view kind = n->kind().toQualString();
    const auto inputs = n->inputs();
    if (kind == "cresset::recurrent_packed") continue;
    // A linear layer's rows are dense; a sum with another tensor has the strides of the first one.
    const bool dense = kind == "cresset::linear_packed" && inputs[1]->node()->inputs().empty();
    const bool first = kind == "cresset::convolution_packed" || (kind == "cresset::linear_packed" && !dense);
    if (dense || !(first || std::any_of(inputs.begin(), inputs.end(), is_own))) continue;
    own.insert(n->outputs().begin(), n->outputs().end());
  }
  return std::any_of(graph.outputs().begin(), graph.outputs().end(), is_own);
}

bool has_products_of(ScalarType dtype) {
  Stack stack{IValue(std::string(dtype_name(dtype)))};
  Dispatcher::singleton().findSchemaOrThrow("cresset::has_packed_products", "").callBoxed(stack);
  return stack.back().toBool();
}

Precisions precisions_of(const EngineSource& source) {
  const auto wants = [&](ScalarType dtype) {
    const auto& all = source.precisions;
    if (std::find(all.begin(), all.end(), dtype) == all.end()) return false;
    const bool has = has_products_of(dtype);
    if (!has)  // a file or archive of another machine
      warn("engine '" + source.name + "': this processor has no products of " + dtype_name(dtype) + "; it computes without.");
    return has;
  };
  return {wants(ScalarType::BFloat16), wants(ScalarType::Char), source.ranges};
}

class CpuProgram : public Program {
 public:
  explicit CpuProgram(const EngineSource& source)
      : plain_{jit::Code::compile(source.graph, source.name), {source.weights.begin(), source.weights.end()}} {
    PackedGraph packed(source);
    const Precisions precisions = precisions_of(source);
    if (precisions.int8 && precisions.ranges.empty()) observed_ = observing(source);
    packing_ = pack_convolutions(packed, precisions);
    packing_.recurrent = pack_recurrent(packed, precisions);
    if (packing_.loses_nan && !std::all_of(source.weights.begin(), source.weights.end(), is_finite)) {
      packing_ = {};
      packed_ = plain_;
      text_ = source.graph->toString(false);
      return;
    }
    packed.tidy();
    text_ = packed.graph().toString(false);
    packed_ = {jit::Code::compile(packed.shared(), source.name), packed.constants()};
    if (has_own_strides(packed.graph())) strides_ = std::make_unique<ResultStrides>(plain_);
  }

  std::vector<Tensor> run(const std::vector<Tensor>& inputs) const override {
    if (!is_plain_call(inputs) || (packing_.loses_nan && !std::all_of(inputs.begin(), inputs.end(), is_finite))) return plain_.run(inputs);
    const auto plan = plan_of(inputs);
    const detail::PlannedRun run(plan);
    last_plan_.store(plan, std::memory_order_relaxed);
    std::vector<Tensor> out = packed_.run(inputs);
    return strides_ ? strides_->restore(std::move(out), inputs) : out;
  }
  std::string describe() const override { return text_; }
  RunMemory memory() const override {
    const auto plan = last_plan_.load();
    return plan ? RunMemory{plan->arena_bytes(), plan->block_bytes()} : RunMemory();
  }
  std::vector<Tensor> observe(const std::vector<Tensor>& inputs) const override {
    return observed_.code ? observed_.run(inputs) : std::vector<Tensor>();
  }

 private:
  // The graph that gives the inputs of its layers.
  static Runnable observing(const EngineSource& source) {
    PackedGraph watched(source);
    jit::Graph& graph = watched.graph();
    for (std::size_t i = graph.outputs().size(); i-- > 0;) graph.eraseOutput(i);
    for (Node* n : layers_of(watched)) graph.registerOutput(n->input(0));
    return {jit::Code::compile(watched.shared(), source.name), watched.constants()};
  }

  // Kernels take other blocks for other numbers of threads.
  std::shared_ptr<detail::MemoryPlan> plan_of(const std::vector<Tensor>& inputs) const {
    auto key = plans_.key_of(inputs);
    key.push_back(in_parallel_region() ? 1 : get_num_threads());
    return plans_.find(std::move(key), [] { return std::make_shared<detail::MemoryPlan>(); });
  }

  Runnable plain_, packed_, observed_;
  mutable Remembered<detail::MemoryPlan> plans_;
  mutable std::atomic<std::shared_ptr<detail::MemoryPlan>> last_plan_;
  std::unique_ptr<ResultStrides> strides_;  // where they may differ
  Packing packing_;
  std::string text_;
};

}  // namespace

std::unique_ptr<Program> build(const EngineSource& source) { return std::make_unique<CpuProgram>(source); }

bool supports(const Node* n) { return (n->kind().is_aten() && n->maybeSchema() != nullptr) || n->kind() == jit::prim::ListUnpack; }

std::vector<ScalarType> precisions() {
  std::vector<ScalarType> out{ScalarType::Float};
  for (const ScalarType t : {ScalarType::BFloat16, ScalarType::Char})
    if (has_products_of(t)) out.push_back(t);
  return out;
}

std::vector<std::string> without_passes() {
  return {"linear_to_addmm",   "reduce_gelu",        "unpack_addmm", "unpack_hard_sigmoid",
          "unpack_hard_swish", "unpack_log_softmax", "unpack_rsqrt", "unpack_scaled_dot_product_attention",
          "unpack_silu",       "unpack_std",         "unpack_var"};
}

}  // namespace cresset::engine::cpu
