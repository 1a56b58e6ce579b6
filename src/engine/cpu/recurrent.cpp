// Recurrent layers with constant weights, packed.
#include "engine/cpu/program.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "ir/passes/rewrite.h"

namespace cresset::engine::cpu {
namespace {

using jit::Node;
using jit::Value;

constexpr std::array<std::string_view, 4> kKinds{"lstm", "gru", "rnn_tanh", "rnn_relu"};

struct Recurrent {
  std::string kind;
  std::vector<Tensor> params;
  bool has_biases = false, bidirectional = false, batch_first = false;
  int64_t layers = 0;

  // What packing would refuse stays: projections, and what the operator has its own words for.
  bool can_be_packed() const {
    const int64_t each = has_biases ? 4 : 2, directions = bidirectional ? 2 : 1, given = static_cast<int64_t>(params.size());
    if (layers <= 0 || given % (each * directions) != 0 || given / (each * directions) != layers) return false;
    const auto matrix = [](const Tensor& t) { return t.dim() == 2 && t.numel() > 0; };
    if (!matrix(params[0]) || !matrix(params[1])) return false;
    const int64_t hidden = params[1].size(1), rows = hidden * (kind == "lstm" ? 4 : kind == "gru" ? 3 : 1);
    for (int64_t i = 0; i < given; ++i) {
      const int64_t inputs = i % each == 1 ? hidden : i < each * directions ? params[0].size(1) : hidden * directions;
      const Tensor& t = params[static_cast<std::size_t>(i)];
      if (i % each < 2 ? t.sizes() != IntArrayRef({rows, inputs}) : t.sizes() != IntArrayRef({rows})) return false;
    }
    return true;
  }
};

// (input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first)
std::optional<Recurrent> recurrent_of(const PackedGraph& g, const Node* n) {
  const FunctionSchema* const schema = n->maybeSchema();
  const auto* const kind = std::find_if(kKinds.begin(), kKinds.end(), [&](std::string_view k) {
    return schema && schema->overload_name() == "input" && schema->name() == "aten::" + std::string(k);
  });
  if (kind == kKinds.end() || n->input(2)->node()->kind() != jit::prim::ListConstruct) return std::nullopt;
  const auto flag = [&](std::size_t i) { return jit::constant_as<bool>(n->input(i)); };
  const auto biases = flag(3), train = flag(6), bidirectional = flag(7), batch_first = flag(8);
  const auto layers = jit::constant_as<int64_t>(n->input(4));
  if (!biases || train != false || !bidirectional || !batch_first || !layers) return std::nullopt;
  Recurrent out{std::string(*kind), {}, *biases, *bidirectional, *batch_first, *layers};
  for (const Value* v : n->input(2)->node()->inputs()) {
    Tensor t = g.tensor(v);
    if (!t.defined() || t.scalar_type() != kFloat || !t.device().is_cpu()) return std::nullopt;
    out.params.push_back(std::move(t));
  }
  return out.can_be_packed() ? std::optional(std::move(out)) : std::nullopt;
}

}  // namespace

std::size_t pack_recurrent(PackedGraph& packed, const Precisions& precisions) {
  jit::Graph& graph = packed.graph();
  std::vector<std::pair<Node*, Recurrent>> found;
  for (Node* n : graph.nodes())
    if (auto r = recurrent_of(packed, n)) found.emplace_back(n, std::move(*r));
  for (auto& [n, r] : found) {
    Value* held = packed.add("cresset::pack_recurrent", {r.kind, std::move(r.params), r.has_biases, r.layers, r.bidirectional,
                                                         r.batch_first, std::string(precisions.bfloat16 ? "bfloat16" : "float32")});
    const jit::WithInsertPoint guard(n);
    Value* hx = n->input(1);
    if (r.kind != "lstm") hx = graph.insertNode(graph.createList(basic_type(TypeKind::Tensor), {hx}))->output();
    Value* list = graph.insert(jit::Symbol::fromQualString("cresset::recurrent_packed"), {n->input(0), hx, held});
    list->node()->copyMetadata(n);
    Node* results = graph.insertNode(graph.createListUnpack(list, n->outputs().size()));
    for (std::size_t i = 0; i < n->outputs().size(); ++i) {
      results->output(i)->setType(n->output(i)->type());
      n->output(i)->replaceAllUsesWith(results->output(i));
    }
  }
  return found.size();
}

}  // namespace cresset::engine::cpu
