// Convolutions and linear layers with constant weights, packed, together with the pointwise operators that follow.
#include "engine/cpu/program.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "ir/passes/rewrite.h"

namespace cresset::engine::cpu {
namespace {

using jit::Node;
using jit::Value;
using jit::rewrite::calls;

struct Convolution {
  Tensor weight;
  std::optional<Tensor> bias;
  std::vector<int64_t> stride, padding, dilation;
  int64_t groups = 1;
  bool linear = false;
};

bool is_float_on_cpu(const Tensor& t, int64_t dim) {
  return t.defined() && t.dim() == dim && t.scalar_type() == kFloat && t.device().is_cpu();
}
// None, or a vector of floats; nothing for others.
std::optional<std::optional<Tensor>> bias_of(const PackedGraph& g, const Value* v) {
  const auto bias = g.known(v);
  if (!bias) return std::nullopt;
  if (bias->isNone()) return std::optional<Tensor>();
  return bias->isTensor() && is_float_on_cpu(bias->toTensor(), 1) ? std::optional(std::optional(bias->toTensor())) : std::nullopt;
}

// What packing would refuse stays: the operator has its own words for it when it runs.
bool can_be_packed(const Convolution& c) {
  const auto pair = [](const std::vector<int64_t>& list, int64_t least) {
    return list.size() == 2 && std::min(list[0], list[1]) >= least && std::max(list[0], list[1]) <= INT32_MAX;
  };
  const int64_t outputs = c.weight.size(0);
  return c.weight.numel() > 0 && (!c.bias || c.bias->size(0) == outputs) && c.groups > 0 && outputs % c.groups == 0 && pair(c.stride, 1) &&
         pair(c.padding, 0) && pair(c.dilation, 1);
}

// A convolution of 1 x 1.
std::optional<Convolution> linear_of(const PackedGraph& g, const Node* n) {
  if (!calls(n, "aten::linear")) return std::nullopt;
  const Tensor weight = g.tensor(n->input(1));
  const auto bias = bias_of(g, n->input(2));
  if (!is_float_on_cpu(weight, 2) || !bias) return std::nullopt;
  Convolution c{weight.unsqueeze(2).unsqueeze(3), *bias, {1, 1}, {0, 0}, {1, 1}, 1, true};
  return can_be_packed(c) ? std::optional(std::move(c)) : std::nullopt;
}

std::optional<Convolution> convolution_of(const PackedGraph& g, const Node* n) {
  const bool general = calls(n, "aten::_convolution") || calls(n, "aten::convolution");
  if (!general && !calls(n, "aten::conv2d")) return std::nullopt;
  // Stride, padding and dilation stand at 3, 4, 5 in all forms; `transposed` at 6 in the general ones, where groups are at 8.
  const auto list = [&](std::size_t i) {
    const auto v = g.known(n->input(i));
    std::vector<int64_t> out = v && v->isIntList() ? v->toIntVector() : std::vector<int64_t>();
    if (out.size() == 1) out.push_back(out[0]);
    return out;
  };
  Convolution c{g.tensor(n->input(1)), std::nullopt, list(3), list(4), list(5)};
  const auto groups = jit::constant_as<int64_t>(n->input(general ? 8 : 6));
  const auto bias = bias_of(g, n->input(2));
  if (!is_float_on_cpu(c.weight, 4) || !groups || !bias) return std::nullopt;
  if (general && jit::constant_as<bool>(n->input(6)) != false) return std::nullopt;
  c.groups = *groups;
  c.bias = *bias;
  return can_be_packed(c) ? std::optional(std::move(c)) : std::nullopt;
}

// What follows, in order (src/backends/cpu/epilogue.h).
struct Steps {
  std::vector<std::string> names;
  std::vector<double> numbers;
  std::vector<Value*> operands;

  bool lose_nan() const {
    return std::any_of(names.begin(), names.end(), [](const std::string& n) { return n == "relu" || n == "clamp" || n == "hardsigmoid"; });
  }
  bool push(const char* name, double a = 0, double b = 0) {
    names.emplace_back(name);
    numbers.insert(numbers.end(), {a, b});
    return true;
  }
};

std::optional<double> number(const Value* v) {
  const auto value = jit::toIValue(v);
  if (value && value->isInt()) return static_cast<double>(value->toInt());
  return value && value->isDouble() ? std::optional(value->toDouble()) : std::nullopt;
}
// None is no limit.
std::optional<double> limit(const Value* v, double without) {
  const auto value = jit::toIValue(v);
  return value && value->isNone() ? std::optional(without) : number(v);
}

bool push_activation(Steps& s, const Node* n) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (const char* name : {"relu", "sigmoid", "tanh", "silu", "hardswish", "hardsigmoid"})
    if (calls(n, "aten::" + std::string(name))) return s.push(name);
  if (calls(n, "aten::relu6")) return s.push("clamp", 0, 6);
  if (calls(n, "aten::gelu")) {
    const auto form = jit::constant_as<std::string>(n->input(1));
    return form && s.push(*form == "tanh" ? "gelu_tanh" : "gelu");
  }
  if (calls(n, "aten::leaky_relu")) {
    const auto slope = number(n->input(1));
    return slope && s.push("leaky_relu", *slope);
  }
  if (calls(n, "aten::hardtanh") || calls(n, "aten::clamp")) {
    const auto least = limit(n->input(1), -kInfinity), most = limit(n->input(2), kInfinity);
    return least && most && *least <= *most && s.push("clamp", *least, *most);
  }
  return false;
}

// Takes the node, which reads `v`, into the steps.
bool push(Steps& s, const Node* n, const Value* v) {
  const bool sum = calls(n, "aten::add.Tensor");
  if (!sum && !calls(n, "aten::mul.Tensor")) return n->input(0) == v && push_activation(s, n);
  Value *a = n->input(0), *b = n->input(1), *other = a == v ? b : a;
  if (other == v || (sum && number(n->input(2)) != 1.0)) return false;
  s.operands.push_back(other);
  return s.push(sum ? "add" : "mul");
}

// A node that is packed, with what follows it.
struct Layer {
  Node* node;
  Convolution convolution;
  Steps steps;
  Node* last;
  // What it takes and gives, as pack_convolution has it.
  const char *input = "float32", *output = "float32";
  double in_scale = 1, out_scale = 1;

  // Is the node one of the steps?
  bool has(const Node* step) const {
    for (const Node* n = node; n != last;) {
      n = n->output()->uses()[0].user;
      if (n == step) return true;
    }
    return false;
  }
};

std::vector<std::pair<Node*, Convolution>> found_in(const PackedGraph& packed) {
  std::vector<std::pair<Node*, Convolution>> found;
  for (Node* n : packed.graph().nodes())
    if (auto c = n->kind() == jit::aten::linear ? linear_of(packed, n) : convolution_of(packed, n)) found.emplace_back(n, std::move(*c));
  return found;
}

// `taken`: what is a step already. Of two layers that are added, the first one has the sum.
Layer with_steps(const jit::Graph& graph, Node* n, Convolution c, std::unordered_set<const Node*>& taken) {
  constexpr std::size_t kMostSteps = 8;
  Layer out{n, std::move(c), {}, n};
  while (out.steps.names.size() < kMostSteps && out.last->output()->uses().size() == 1) {
    Node* next = out.last->output()->uses()[0].user;
    if (next == graph.return_node() || taken.count(next) || !push(out.steps, next, out.last->output())) break;
    taken.insert(next);
    out.last = next;
  }
  return out;
}

// What the products are of, and the scale of the input.
void set_input(Layer& layer, const Precisions& p, std::size_t i) {
  constexpr double kUnsigned = 255, kSigned = 127;
  if (p.bfloat16) layer.input = "bfloat16";
  if (!p.int8 || i >= p.ranges.size()) return;
  const Range& r = p.ranges[i];
  if (!(r.most > 0) || !std::isfinite(r.most)) return;
  layer.input = r.least < 0 ? "int8" : "uint8";
  layer.in_scale = r.most / (r.least < 0 ? kSigned : kUnsigned);
}

// A result that only packed layers use leaves in the type in which they take it.
void set_output(Layer& layer, const std::vector<Layer>& all, const jit::Graph& graph) {
  const Value* v = layer.last->output();
  const Layer* reader = nullptr;
  for (const jit::Use& u : v->uses()) {
    if (u.user == graph.return_node()) return;
    const auto reads = [&](const Layer& l) { return l.node == u.user && u.offset == 0; };
    const auto joins = [&](const Layer& l) {
      return std::string_view(l.input) != "float32" &&
             std::find(l.steps.operands.begin(), l.steps.operands.end(), v) != l.steps.operands.end() && l.has(u.user);
    };
    if (const auto found = std::find_if(all.begin(), all.end(), reads); found != all.end()) {
      if (reader && std::string_view(reader->input) != found->input) return;
      reader = &*found;
    } else if (std::none_of(all.begin(), all.end(), joins)) {
      return;
    }
  }
  if (!reader) return;
  layer.output = reader->input;
  layer.out_scale = reader->in_scale;
}

}  // namespace

std::vector<Node*> layers_of(const PackedGraph& packed) {
  std::vector<Node*> out;
  for (auto& [n, c] : found_in(packed)) out.push_back(n);
  return out;
}

Packing pack_convolutions(PackedGraph& packed, const Precisions& precisions) {
  jit::Graph& graph = packed.graph();
  std::vector<Layer> layers;
  std::unordered_set<const Node*> taken;
  for (auto& [n, c] : found_in(packed)) {
    layers.push_back(with_steps(graph, n, std::move(c), taken));
    set_input(layers.back(), precisions, layers.size() - 1);
  }
  std::unordered_map<const Value*, double> scales;  // of results with 8 bits
  for (Layer& l : layers) {
    set_output(l, layers, graph);
    if (std::string_view(l.output).ends_with("int8")) scales[l.last->output()] = l.out_scale;
  }
  Packing result;
  std::unordered_map<const Value*, Value*> replaced;
  std::vector<std::vector<double>> all_scales;  // read before values are replaced
  for (const Layer& l : layers) {
    all_scales.push_back({l.in_scale, l.out_scale});
    for (const Value* v : l.steps.operands) all_scales.back().push_back(scales.count(v) ? scales.at(v) : 0);
  }
  for (std::size_t i = 0; i < layers.size(); ++i) {
    auto& [n, c, steps, last, input, output, in_scale, out_scale] = layers[i];
    Value* held =
        packed.add("cresset::pack_convolution", {c.weight, c.bias ? IValue(*c.bias) : IValue(), c.stride, c.padding, c.dilation, c.groups,
                                                 steps.names, steps.numbers, std::string(input), std::string(output), all_scales[i]});
    const jit::WithInsertPoint guard(last);
    // Operands may have been replaced by packed results since.
    for (Value*& v : steps.operands)
      if (const auto now = replaced.find(v); now != replaced.end()) v = now->second;
    Value* operands = graph.insertNode(graph.createList(basic_type(TypeKind::Tensor), steps.operands))->output();
    const char* op = c.linear ? "cresset::linear_packed" : "cresset::convolution_packed";
    Value* out = graph.insert(jit::Symbol::fromQualString(op), {n->input(0), operands, held});
    out->node()->copyMetadata(n);
    last->output()->replaceAllUsesWith(out);
    replaced[last->output()] = out;
    ++(c.linear ? result.linears : result.convolutions);
    result.narrow = result.narrow || std::string_view(input) != "float32";
    result.loses_nan = result.loses_nan || result.narrow || steps.lose_nan();
  }
  // Results have other strides than the graph's convolutions would give.
  if (result.convolutions > 0)
    for (Node* n : graph.nodes())
      if (calls(n, "aten::view")) {
        const jit::WithInsertPoint guard(n);
        n->output()->replaceAllUsesWith(graph.insert(jit::aten::reshape, {n->input(0), n->input(1)}));
      }
  return result;
}

}  // namespace cresset::engine::cpu
