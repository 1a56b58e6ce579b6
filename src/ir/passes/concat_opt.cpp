// Concatenations that share work: with each other, with the ones they are made of, and with what makes their parts.
#include <cresset/ir/pass_functions.h>

#include "ir/passes/rewrite.h"

namespace cresset::jit {
namespace {

using Values = std::vector<Value*>;

bool same_dimension(const Value* a, const Value* b) {
  if (a == b) return true;
  const auto x = constant_as<int64_t>(a), y = constant_as<int64_t>(b);
  return x && y && *x == *y;
}

// ---- common inputs of prim::VarConcat

struct Concat {
  Node* node;
  Values parts;
  Value* dimension;
};

bool begins_with(const Values& parts, const Values& head) {
  return head.size() < parts.size() && std::equal(head.begin(), head.end(), parts.begin());
}
bool ends_with(const Values& parts, const Values& tail) {
  return tail.size() < parts.size() && std::equal(tail.rbegin(), tail.rend(), parts.rbegin());
}

class CommonInputs {
 public:
  explicit CommonInputs(const std::shared_ptr<Graph>& graph) : aliases_(graph) {
    for (Node* n : rewrite::nodes_of(*graph, {"prim::VarConcat"})) {
      if (n->inputs().size() < 3 || aliases_->hasWriters(n)) continue;
      concats_.push_back({n, Values(n->inputs().begin(), n->inputs().end() - 1), n->input(n->inputs().size() - 1)});
    }
  }
  bool run() {
    bool changed = false;
    for (std::size_t i = 0; i < concats_.size(); ++i) changed = shorten(i) || changed;
    return changed;
  }

 private:
  bool shorten(std::size_t i) {
    Concat& current = concats_[i];
    const Concat* best = nullptr;
    bool front = true;
    for (const bool at_front : {true, false}) {
      for (std::size_t k = 0; k < i; ++k) {
        const Concat& earlier = concats_[k];
        if (!(at_front ? begins_with : ends_with)(current.parts, earlier.parts) || !same_dimension(current.dimension, earlier.dimension))
          continue;
        if (!current.node->isDominatedBy(earlier.node) || (best && best->parts.size() >= earlier.parts.size())) continue;
        best = &earlier;
        front = at_front;
      }
      if (best) break;
    }
    if (!best) return false;
    Values inputs;
    const auto count = static_cast<std::ptrdiff_t>(best->parts.size());
    if (front) {
      inputs.push_back(best->node->output());
      inputs.insert(inputs.end(), current.parts.begin() + count, current.parts.end());
    } else {
      inputs.assign(current.parts.begin(), current.parts.end() - count);
      inputs.push_back(best->node->output());
    }
    inputs.push_back(current.dimension);
    Node* fresh = current.node->owningGraph()->create(prim::VarConcat, inputs)->insertBefore(current.node)->copyMetadata(current.node);
    fresh->output()->setType(current.node->output()->type());
    rewrite::replace_value(current.node->output(), fresh->output());
    aliases_.bury(current.node);
    current.node = fresh;
    return true;
  }

  rewrite::Aliases aliases_;
  std::vector<Concat> concats_;  // in the order of the program; the parts stay the original ones
};

// ---- aten::cat of lists

// The members of the list that a concatenation gets, where nothing else changes it.
const Node* list_of(const Node* cat, AliasDb& aliases) {
  const Node* list = cat->input(0)->node();
  return list->kind() == prim::ListConstruct && !aliases.hasWriters(list->output()) ? list : nullptr;
}

class Combining {
 public:
  explicit Combining(const std::shared_ptr<Graph>& graph) : graph_(graph), aliases_(graph) {}
  bool run() {
    bool changed = false;
    for (Node* n : rewrite::nodes_of(*graph_, {"aten::cat"})) changed = combine(n) || changed;
    return changed;
  }

 private:
  // The parts of a member that is a concatenation along the same dimension and is needed nowhere else.
  const Node* inner_list(const Value* member, const Node* outer) {
    const Node* inner = member->node();
    if (inner->kind() != aten::cat || member->use_count() != 1 || !same_dimension(inner->input(1), outer->input(1))) return nullptr;
    if (inner->owningBlock() != outer->owningBlock()) return nullptr;
    const Node* list = list_of(inner, *aliases_);
    if (!list) return nullptr;
    // Between the two nobody may write what would now be read later.
    const ValueSet parts(list->inputs().begin(), list->inputs().end());
    return rewrite::written_between(inner, outer, parts, *aliases_) || aliases_->hasWriters(member) ? nullptr : list;
  }
  bool combine(Node* n) {
    const Node* list = list_of(n, *aliases_);
    if (!list) return false;
    Values parts;
    bool found = false;
    for (Value* member : list->inputs()) {
      const Node* inner = inner_list(member, n);
      found = found || inner;
      if (inner)
        parts.insert(parts.end(), inner->inputs().begin(), inner->inputs().end());
      else
        parts.push_back(member);
    }
    if (!found) return false;
    const rewrite::Emitter emit(n);
    Value* fresh_list = emit.list(TensorType::get(), parts);
    Value* fresh = emit("aten::cat", {fresh_list, n->input(1)});
    fresh->setType(n->output()->type());
    aliases_.moved(n->input(0), fresh_list);
    aliases_.moved(n->output(), fresh);
    rewrite::replace_value(n->output(), fresh);
    rewrite::destroy_with_operands(n, aliases_);
    return true;
  }

  std::shared_ptr<Graph> graph_;
  rewrite::Aliases aliases_;
};

// cat(parts) as writes of the parts into one buffer; null where a shape or type is not known.
Value* expand(Node* n, rewrite::Aliases& aliases, const LoweringOptions& options) {
  const Node* list = list_of(n, *aliases);
  const auto dimension = constant_as<int64_t>(n->input(1));
  const auto sizes = rewrite::sizes_of(n->output(), options);
  const auto dtype = rewrite::dtype_of(n->output(), options);
  const auto device = rewrite::device_of(n->output(), options);
  if (!list || !dimension || !sizes || !dtype || !device || sizes->empty()) return nullptr;
  const auto rank = static_cast<int64_t>(sizes->size());
  const int64_t d = *dimension < 0 ? *dimension + rank : *dimension;
  if (d < 0 || d >= rank) return nullptr;
  std::vector<int64_t> lengths;
  for (const Value* part : list->inputs()) {
    const auto part_sizes = rewrite::sizes_of(part, options);
    if (!part_sizes || part_sizes->size() != sizes->size()) return nullptr;
    lengths.push_back((*part_sizes)[static_cast<std::size_t>(d)]);
  }
  const rewrite::Emitter emit(n);
  Value* buffer = emit("aten::empty", {emit.integers(*sizes), emit.integer(static_cast<int64_t>(*dtype)), emit.none(),
                                       emit.constant(IValue(*device)), emit.none(), emit.none()});
  buffer->setType(n->output()->type());
  int64_t begin = 0;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    const int64_t end = begin + lengths[i];
    Value* place = emit("aten::slice", {buffer, emit.integer(d), emit.integer(begin), emit.integer(end), emit.integer(1)});
    emit("aten::copy_", {place, list->inputs()[i], emit.flag(false)});
    begin = end;
  }
  return buffer;
}

}  // namespace

bool EliminateConcatCommonInputs(const std::shared_ptr<Graph>& graph) { return CommonInputs(graph).run(); }
bool CombineConcats(const std::shared_ptr<Graph>& graph) { return Combining(graph).run(); }
void ExpandConcatAndEliminateRedundancy(const std::shared_ptr<Graph>& graph) {
  {
    rewrite::Aliases aliases(graph);
    for (Node* n : rewrite::nodes_of(*graph, {"aten::cat"})) {
      Value* buffer = expand(n, aliases, LoweringOptions());
      if (!buffer) continue;
      rewrite::replace_value(n->output(), buffer);
      aliases.bury(n);
    }
  }
  ConstantPooling(graph);
  EliminateCommonSubexpression(graph);
  EliminateDeadCode(graph);
}

}  // namespace cresset::jit
