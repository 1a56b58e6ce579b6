// Tuples that are made and taken apart again. The simple pass hands the members on and leaves tuples at the borders of blocks, in
// containers and in the graph's signature; the full one makes the graph free of tuples, its inputs and outputs included, or raises before
// it has changed anything. Members are handed on as they are, never copied, so writes to them do not matter. Nothing need run before.
#include <cresset/ir/pass.h>

#include "ir/rewrite/pass_tools.h"

namespace cresset::jit {
namespace {

// Where the index of a TupleIndex points, or nothing when it is unknown or out of range.
std::optional<std::size_t> member_index(const Node* n) {
  const auto index = constant_as<int64_t>(n->input(1));
  if (!index || n->input(0)->type()->kind != TypeKind::Tuple) return std::nullopt;
  const auto size = static_cast<int64_t>(n->input(0)->type()->contained.size());
  const int64_t at = *index < 0 ? *index + size : *index;
  return at >= 0 && at < size ? std::optional(static_cast<std::size_t>(at)) : std::nullopt;
}

// [begin, end) of a TupleSlice, as Python counts.
std::pair<std::size_t, std::size_t> slice_bounds(const Node* n, std::size_t size) {
  const auto clamp = [&](int64_t i) {
    const auto s = static_cast<int64_t>(size);
    return static_cast<std::size_t>(std::clamp(i < 0 ? i + s : i, int64_t{0}, s));
  };
  const std::size_t begin = clamp(n->i(attr::beg)), end = clamp(n->i(attr::end));
  return {begin, std::max(begin, end)};
}

// ---- simple

bool forward_members(Node* n) {
  if (is_marked(n) || n->inputs().empty()) return false;
  const Node* made = n->input(0)->node();
  if (made->kind() != prim::TupleConstruct) return false;
  switch (n->kind()) {
    case prim::TupleUnpack:
      if (n->outputs().size() != made->inputs().size()) return false;
      for (std::size_t i = 0; i < n->outputs().size(); ++i) n->output(i)->replaceAllUsesWith(made->input(i));
      break;
    case prim::TupleIndex: {
      const auto at = member_index(n);
      if (!at) return false;
      n->output()->replaceAllUsesWith(made->input(*at));
      break;
    }
    case prim::TupleSlice: {
      const auto [begin, end] = slice_bounds(n, made->inputs().size());
      Node* shorter = n->owningGraph()->createTuple(
          made->inputs().slice(static_cast<std::size_t>(begin), static_cast<std::size_t>(std::max(end, begin) - begin)));
      shorter->insertBefore(n)->copyMetadata(n);
      hand_on(n->output(), shorter->output());
      break;
    }
    default: return false;
  }
  n->destroy();
  return true;
}

bool forward_all(const std::shared_ptr<Graph>& graph) {
  bool changed = false;
  // In the order of the program, so that what a tuple in a tuple gives is known when it is taken apart.
  for (Node* n : nodes_where(*graph, [](const Node* m) {
         return m->kind() == prim::TupleUnpack || m->kind() == prim::TupleIndex || m->kind() == prim::TupleSlice;
       }))
    changed = forward_members(n) || changed;
  return in_subgraphs(*graph, forward_all) || changed;
}

}  // namespace

bool lower_simple_tuples(const std::shared_ptr<Graph>& graph) {
  const bool changed = forward_all(graph);
  return (changed && eliminate_dead_code(graph)) || changed;
}

namespace {

// ---- all

bool contains_tuple(const Type& t) {
  if (t.kind == TypeKind::Tuple || t.kind == TypeKind::AnyTuple) return true;
  for (const TypePtr& m : t.contained)
    if (contains_tuple(*m)) return true;
  return false;
}
bool is_tuple(const Value* v) { return v->type()->kind == TypeKind::Tuple; }

// The types that a tuple's leaves have, from left to right.
void append_leaves(const TypePtr& t, std::vector<TypePtr>& out) {
  if (t->kind != TypeKind::Tuple) {
    out.push_back(t);
    return;
  }
  for (const TypePtr& m : t->contained) append_leaves(m, out);
}
std::vector<TypePtr> leaves_of(const TypePtr& t) {
  std::vector<TypePtr> out;
  append_leaves(t, out);
  return out;
}

// Raises for whatever cannot be lowered, before anything is changed.
void check_lowerable(const Graph& graph) {
  const auto check_value = [](const Value* v, const Node* at) {
    for (const TypePtr& leaf : leaves_of(v->type()))
      CRESSET_CHECK(!contains_tuple(*leaf), "lower_all_tuples: not all tuples can be lowered: %", v->debugName(), " is of type '",
                    v->type()->str(), "'.\nin ", at->str(), at->sourceRange().known() ? "\n" + at->sourceRange().highlight() : "");
  };
  for (const Value* v : graph.inputs()) check_value(v, v->node());
  graph.block()->visit([&](const Node* n) {
    for (const Value* v : n->outputs()) check_value(v, n);
    for (const Block* b : n->blocks())
      for (const Value* v : b->inputs()) check_value(v, n);
    switch (n->kind()) {
      case prim::TupleConstruct:
      case prim::TupleUnpack:
      case prim::TupleSlice:
      case prim::If:
      case prim::Loop:
      case prim::Constant:
      case prim::Uninitialized: return;
      case prim::TupleIndex:
        CRESSET_CHECK(member_index(n), "lower_all_tuples: the index of a tuple must be a constant in its range.\nin ", n->str());
        return;
      default: break;
    }
    const auto tuple = [](const std::vector<Value*>& values) { return std::any_of(values.begin(), values.end(), is_tuple); };
    CRESSET_CHECK(!tuple(n->inputs()) && !tuple(n->outputs()), "lower_all_tuples: ", n->kind().toQualString(),
                  " does not forward tuples.\nin ", n->str(), n->sourceRange().known() ? "\n" + n->sourceRange().highlight() : "");
  });
}

class Flattening {
 public:
  explicit Flattening(Graph& graph) : graph_(graph) {}

  bool run() {
    open(graph_.block());
    while (!stack_.empty()) {
      Node* n = stack_.back();
      if (n->kind() == prim::Return) {
        stack_.pop_back();
        returns(n);
        continue;
      }
      stack_.back() = n->next();
      node(n);
      for (std::size_t i = n->blocks().size(); i-- > 0;) open(n->blocks()[i]);
    }
    // Users before what they use.
    for (auto n = dead_.rbegin(); n != dead_.rend(); ++n) (*n)->destroy();
    for (Block* b : flattened_inputs_)
      for (std::size_t i = b->inputs().size(); i-- > 0;)
        if (is_tuple(b->inputs()[i])) b->eraseInput(i);
    return changed_;
  }

 private:
  std::vector<Value*> leaves(Value* v) const {
    const auto found = leaves_.find(v);
    return found == leaves_.end() ? std::vector<Value*>{v} : found->second;
  }

  void open(Block* b) {
    bool any = false;
    for (std::size_t i = 0; i < b->inputs().size(); ++i) {
      Value* v = b->inputs()[i];
      if (!is_tuple(v)) continue;
      any = true;
      std::vector<Value*> fresh;
      for (const TypePtr& t : leaves_of(v->type())) fresh.push_back(b->insertInput(++i)->setType(t));
      leaves_[v] = std::move(fresh);
    }
    if (any) flattened_inputs_.push_back(b);
    changed_ = changed_ || any;
    stack_.push_back(b->param_node()->next());
  }

  // Operands that are tuples become their leaves, from place `first` on.
  void flatten_operands(Node* n, std::size_t first) {
    for (std::size_t i = n->inputs().size(); i-- > first;) {
      Value* v = n->input(i);
      if (!is_tuple(v)) continue;
      const std::vector<Value*> parts = leaves(v);
      n->removeInput(i);
      for (std::size_t k = 0; k < parts.size(); ++k) n->insertInput(i + k, parts[k]);
      changed_ = true;
    }
  }
  void returns(Node* n) {
    flatten_operands(n, 0);
    Node* owner = n->owningBlock()->owningNode();
    if (owner && owner->blocks().back() == n->owningBlock()) flatten_results(owner);
  }
  // Of If and Loop, once all blocks return leaves.
  void flatten_results(Node* n) {
    for (std::size_t i = 0; i < n->outputs().size(); ++i) {
      Value* v = n->output(i);
      if (!is_tuple(v)) continue;
      std::vector<Value*> fresh;
      std::size_t at = i;
      for (const TypePtr& t : leaves_of(v->type())) fresh.push_back(n->insertOutput(++at)->setType(t));
      leaves_[v] = std::move(fresh);
      pending_results_.push_back(v);
      i = at;
    }
  }

  void node(Node* n) {
    switch (n->kind()) {
      case prim::Loop: flatten_operands(n, 2); return;
      case prim::TupleConstruct: {
        std::vector<Value*> all;
        for (Value* v : n->inputs())
          for (Value* leaf : leaves(v)) all.push_back(leaf);
        define(n, std::move(all));
        return;
      }
      case prim::TupleUnpack: {
        const std::vector<Value*> all = leaves(n->input(0));
        std::size_t at = 0;
        for (Value* v : n->outputs()) at = take(v, all, at);
        remove(n);
        return;
      }
      case prim::TupleIndex: {
        take(n->output(), leaves(n->input(0)), offset_of(n->input(0)->type(), *member_index(n)));
        remove(n);
        return;
      }
      case prim::TupleSlice: {
        const TypePtr& t = n->input(0)->type();
        const auto [begin, end] = slice_bounds(n, t->contained.size());
        const std::vector<Value*> all = leaves(n->input(0));
        const auto first = all.begin();
        define(n, {first + static_cast<std::ptrdiff_t>(offset_of(t, begin)), first + static_cast<std::ptrdiff_t>(offset_of(t, end))});
        return;
      }
      case prim::Constant:
      case prim::Uninitialized:
        if (is_tuple(n->output())) split_constant(n);
        return;
      default: return;
    }
  }

  static std::size_t offset_of(const TypePtr& tuple, std::size_t member) {
    std::size_t at = 0;
    for (std::size_t i = 0; i < member; ++i) at += leaves_of(tuple->contained[i]).size();
    return at;
  }
  // The value is these leaves from `at` on; gives the place behind them.
  std::size_t take(Value* v, const std::vector<Value*>& all, std::size_t at) {
    const std::size_t count = leaves_of(v->type()).size();
    if (!is_tuple(v))
      v->replaceAllUsesWith(all.at(at));
    else
      leaves_[v] = {all.begin() + static_cast<std::ptrdiff_t>(at), all.begin() + static_cast<std::ptrdiff_t>(at + count)};
    return at + count;
  }
  void define(Node* n, std::vector<Value*> parts) {
    leaves_[n->output()] = std::move(parts);
    remove(n);
  }
  void remove(Node* n) {
    dead_.push_back(n);
    changed_ = true;
  }

  void split_constant(Node* n) {
    std::vector<Value*> parts;
    const std::vector<TypePtr> types = leaves_of(n->output()->type());
    const WithInsertPoint guard(n);
    if (n->kind() == prim::Uninitialized) {
      for (const TypePtr& t : types) parts.push_back(graph_.insertNode(graph_.createUninitialized(t))->output());
    } else {
      std::vector<IValue> values;
      collect(*toIValue(n->output()), values);
      CRESSET_CHECK(values.size() == types.size(), "lower_all_tuples: a constant has another shape than its type '",
                    n->output()->type()->str(), "'.");
      for (std::size_t i = 0; i < values.size(); ++i) {
        const auto part = tryInsertConstant(graph_, values[i], types[i]);
        CRESSET_CHECK(part, "lower_all_tuples: a member of a constant tuple cannot be a constant.\nin ", n->str());
        (*part)->node()->setSourceRange(n->sourceRange());
        parts.push_back(*part);
      }
    }
    define(n, std::move(parts));
  }
  static void collect(const IValue& v, std::vector<IValue>& out) {
    if (!v.isTuple()) {
      out.push_back(v);
      return;
    }
    for (const IValue& e : v.toTupleElements()) collect(e, out);
  }

 public:
  // Results that were tuples have no users any more once all operands are leaves.
  void erase_results() {
    for (auto v = pending_results_.rbegin(); v != pending_results_.rend(); ++v) (*v)->node()->eraseOutput((*v)->offset());
  }

 private:
  Graph& graph_;
  std::unordered_map<Value*, std::vector<Value*>> leaves_;
  std::vector<Node*> stack_, dead_;
  std::vector<Block*> flattened_inputs_;
  std::vector<Value*> pending_results_;
  bool changed_ = false;
};

std::string signature(const std::vector<Value*>& values) {
  std::string out;
  for (const Value* v : values) out += (out.empty() ? "" : ", ") + v->type()->str();
  return "(" + out + ")";
}

bool lower_all(PassContext& context) {
  const std::shared_ptr<Graph>& graph = context.graph;
  bool changed = lower_simple_tuples(graph);
  changed = eliminate_dead_code(graph) || changed;
  check_lowerable(*graph);
  const std::string before = signature(graph->inputs()) + " -> " + signature(graph->outputs());
  Flattening flattening(*graph);
  const bool flattened = flattening.run();
  flattening.erase_results();
  const std::string after = signature(graph->inputs()) + " -> " + signature(graph->outputs());
  if (before != after) context.note(NoteLevel::info, nullptr, "the signature " + before + " became " + after);
  if (flattened) eliminate_dead_code(graph);
  return flattened || changed;
}

const RegisterPass lower_tuples_simple_pass({
    .name = "lower_simple_tuples",
    .phase = "simplify",
    .summary = "hands members of tuples on where a tuple is made and taken apart",
    .needs = {},
    .keeps = {"marks", "aliasing"},
    .run = lower_simple_tuples,
});
const RegisterPass lower_tuples_all_pass({
    .name = "lower_all_tuples",
    .phase = "lower",
    .summary = "removes all tuples, also from the signature, or raises",
    .needs = {},
    .keeps = {"marks", "aliasing"},
    .run_in = lower_all,
});

}  // namespace
}  // namespace cresset::jit
