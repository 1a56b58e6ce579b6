#include <cresset/engine/partition.h>

#include <algorithm>
#include <sstream>
#include <unordered_map>
#include <utility>

#include <cresset/ir/alias_analysis.h>

namespace cresset::engine {
namespace {

using jit::Block;
using jit::Node;
using jit::Value;
using NodeSet = std::unordered_set<const Node*>;

bool is_tensor(const Value* v) { return v->type()->kind == TypeKind::Tensor; }
bool holds_tensors(const Type& type) {
  if (type.kind == TypeKind::Tensor || type.kind == TypeKind::Any || type.kind == TypeKind::Object) return true;
  return std::any_of(type.contained.begin(), type.contained.end(), [](const TypePtr& t) { return holds_tensors(*t); });
}
bool is_constant(const Node* n) { return n->kind() == jit::prim::Constant; }
bool is_control_flow(const Node* n) { return n->kind() == jit::prim::If || n->kind() == jit::prim::Loop; }
bool has_graph(const Node* n) {
  for (const jit::Attribute& a : n->attributes())
    if (a.kind() == jit::AttributeKind::g || a.kind() == jit::AttributeKind::gs) return true;
  return !n->blocks().empty();
}

class Partitioner {
 public:
  Partitioner(const std::shared_ptr<jit::Graph>& graph, const PartitionOptions& options) : options_(options), aliases_(graph) {
    find_copied(graph->block());
    shared_ = std::make_shared<const NodeSet>(copied_);
  }

  Partition run(Block* block) {
    for (Node* n : block->nodes())
      if (!copied_.count(n)) reasons_[n] = explicit_reason(n);
    Partition out;
    do {
      settle(block);
      out.segments = segments(block);
    } while (demote_small(out.segments) || demote_split(out.segments));
    for (Node* n : block->nodes())
      if (!is_constant(n)) out.decisions.push_back({n, target(n), copied_.count(n) ? Reason::helper : reasons_.at(n)});
    out.copied = shared_;
    for (Segment& s : out.segments)
      if (is_control_flow(s.nodes[0]))
        for (Block* b : s.nodes[0]->blocks()) s.blocks.push_back(run(b));
    return out;
  }

 private:
  // ---- what is copied

  // Blocks in order, so that what a node is computed of is known before it.
  void find_copied(Block* block) {
    for (Node* n : block->nodes()) {
      if (is_constant(n) || is_helper(n)) copied_.insert(n);
      if (!is_constant(n) && copied_.count(n) &&
          std::any_of(n->inputs().begin(), n->inputs().end(), [&](const Value* v) { return is_bound(v); }))
        bound_.insert(n);
      for (Block* b : n->blocks()) find_copied(b);
    }
  }
  bool is_helper(const Node* n) const {
    if (has_graph(n) || n->hasSideEffects() || n->isNondeterministic() || aliases_.isMutable(n) || aliases_.hasWriters(n)) return false;
    if (n->kind() == jit::prim::ListConstruct || n->kind() == jit::prim::TupleConstruct) return true;
    return !n->outputs().empty() &&
           std::none_of(n->outputs().begin(), n->outputs().end(), [](const Value* v) { return holds_tensors(*v->type()); });
  }
  // Is it a value that only the interpreter has: no tensor, and not computed of tensors and constants alone?
  bool is_bound(const Value* v) const { return !is_tensor(v) && (!copied_.count(v->node()) || bound_.count(v->node())); }

  // ---- reasons

  Reason explicit_reason(const Node* n) const {
    if (is_control_flow(n) || has_graph(n)) return Reason::control_flow;
    if (n->hasAttribute(jit::attr::to_compile)) return Reason::forced_by_module;
    const auto& forced = options_.torch_executed_ops;
    if (std::find(forced.begin(), forced.end(), n->kind().toQualString()) != forced.end()) return Reason::forced_by_operator;
    if (n->hasSideEffects() || n->isNondeterministic() || aliases_.isMutable(n) || aliases_.hasWriters(n)) return Reason::effect;
    return options_.supports(n) ? Reason::convert : Reason::unsupported;
  }
  bool converts(const Node* n) const {
    const auto found = reasons_.find(n);
    return found != reasons_.end() && found->second == Reason::convert;
  }
  Target target(const Node* n) const { return converts(n) ? Target::engine : Target::eager; }

  // Until no value but tensors crosses between the interpreter and an engine.
  void settle(Block* block) {
    for (bool changed = true; changed;) {
      changed = false;
      for (Node* n : block->nodes())
        if (converts(n) && is_coupled(n)) {
          reasons_[n] = Reason::coupled;
          changed = true;
        }
    }
  }
  bool is_coupled(const Node* n) const {
    for (const Value* v : n->inputs()) {
      const bool beside = converts(v->node()) && v->node()->owningBlock() == n->owningBlock();
      if (is_bound(v) && !beside) return true;
    }
    for (const Value* v : n->outputs())
      if (!is_tensor(v))
        for (const jit::Use& u : v->uses())
          if (!converts(u.user) || u.user->owningBlock() != n->owningBlock()) return true;
    return false;
  }

  // ---- segments

  // One segment of each side is open. A node joins its side's; if it needs something of the other one, that one closes and comes first. The
  // open ones never need each other, so independent chains are grouped although they are interleaved.
  std::vector<Segment> segments(Block* block) {
    std::vector<Segment> out;
    std::vector<Segment> open;  // at most two, the older one first
    const auto close = [&] {
      std::move(open.begin(), open.end(), std::back_inserter(out));
      open.clear();
    };
    for (Node* n : block->nodes()) {
      if (copied_.count(n)) continue;
      if (is_control_flow(n)) {
        close();
        out.push_back({Target::eager, {n}, {}});
        continue;
      }
      const Target side = target(n);
      const auto is_side = [&](const Segment& s) { return s.target == side; };
      const auto other = std::find_if_not(open.begin(), open.end(), is_side);
      if (other != open.end() && needs(n, NodeSet(other->nodes.begin(), other->nodes.end()))) {
        out.push_back(std::move(*other));
        open.erase(other);
      }
      const auto own = std::find_if(open.begin(), open.end(), is_side);
      if (own == open.end())
        open.push_back({side, {n}, {}});
      else
        own->nodes.push_back(n);
    }
    close();
    // Neighbours of one side, which a closed pair leaves behind.
    std::vector<Segment> merged;
    for (Segment& s : out) {
      const bool joins =
          !merged.empty() && merged.back().target == s.target && !is_control_flow(s.nodes[0]) && !is_control_flow(merged.back().nodes[0]);
      if (joins)
        merged.back().nodes.insert(merged.back().nodes.end(), s.nodes.begin(), s.nodes.end());
      else
        merged.push_back(std::move(s));
    }
    return merged;
  }
  // Through what is copied, too.
  bool needs(const Node* n, const NodeSet& nodes) const {
    return std::any_of(n->inputs().begin(), n->inputs().end(),
                       [&](const Value* v) { return nodes.count(v->node()) || (copied_.count(v->node()) && needs(v->node(), nodes)); });
  }

  bool demote_small(const std::vector<Segment>& segments) {
    bool changed = false;
    for (const Segment& s : segments) {
      if (s.target != Target::engine || static_cast<int64_t>(s.nodes.size()) >= options_.min_block_size) continue;
      for (const Node* n : s.nodes) reasons_[n] = Reason::small_block;
      changed = true;
    }
    return changed;
  }
  // Lists between two segments of the engine.
  bool demote_split(const std::vector<Segment>& segments) {
    std::unordered_map<const Node*, const Segment*> of;
    for (const Segment& s : segments)
      for (const Node* n : s.nodes) of[n] = &s;
    bool changed = false;
    for (const Segment& s : segments) {
      if (s.target != Target::engine) continue;
      for (const Node* n : s.nodes)
        for (const Value* v : n->inputs())
          if (is_bound(v) && of.count(v->node()) && of.at(v->node()) != &s) {
            reasons_[n] = reasons_[v->node()] = Reason::coupled;
            changed = true;
          }
    }
    return changed;
  }

  const PartitionOptions& options_;
  jit::AliasDb aliases_;
  NodeSet copied_, bound_;  // constants and helpers; helpers that need a value which only the interpreter has
  std::shared_ptr<const NodeSet> shared_;
  std::unordered_map<const Node*, Reason> reasons_;
};

// All nodes of the segment, with those of nested blocks.
template <class F>
void visit(const Segment& s, F&& f) {
  for (Node* n : s.nodes) {
    f(n);
    for (Block* b : n->blocks()) b->visit(f);
  }
}

void describe(std::ostream& out, const Partition& p, bool nodes, const std::string& indent) {
  const auto names = [](const std::vector<Value*>& values) {
    std::string text;
    for (const Value* v : values) text += (text.empty() ? "%" : ", %") + v->debugName();
    return text.empty() ? "nothing" : text;
  };
  std::unordered_map<const Node*, Reason> reasons;
  for (const Decision& d : p.decisions) reasons[d.node] = d.reason;
  for (std::size_t i = 0; i < p.segments.size(); ++i) {
    const Segment& s = p.segments[i];
    out << indent << "segment " << i << ": " << (s.target == Target::engine ? "engine" : "interpreter") << ", " << s.nodes.size()
        << (s.nodes.size() == 1 ? " node" : " nodes") << ", of " << names(p.inputs(s)) << " gives " << names(p.outputs(s)) << "\n";
    for (const Node* n : s.nodes) {
      if (nodes) out << indent << "  " << n->kind().toQualString() << ": " << to_string(reasons.at(n));
      if (const std::string where = n->sourceRange().str(); nodes) out << (where.empty() ? "" : " (" + where + ")") << "\n";
    }
    for (std::size_t b = 0; b < s.blocks.size(); ++b) {
      out << indent << "  block " << b << ":\n";
      describe(out, s.blocks[b], nodes, indent + "    ");
    }
  }
}

}  // namespace

const char* to_string(Reason reason) {
  switch (reason) {
    case Reason::convert: return "convert";
    case Reason::helper: return "helper";
    case Reason::unsupported: return "unsupported";
    case Reason::forced_by_operator: return "forced by operator";
    case Reason::forced_by_module: return "forced by module";
    case Reason::control_flow: return "control flow";
    case Reason::effect: return "has an effect";
    case Reason::coupled: return "non-tensor coupling";
    case Reason::small_block: return "too small block";
  }
  return "";
}

std::size_t Partition::engines() const {
  std::size_t out = 0;
  for (const Segment& s : segments) {
    out += s.target == Target::engine;
    for (const Partition& p : s.blocks) out += p.engines();
  }
  return out;
}

std::vector<Value*> Partition::inputs(const Segment& segment) const {
  NodeSet inside;
  visit(segment, [&](const Node* n) { inside.insert(n); });
  std::unordered_set<const Block*> blocks;
  visit(segment, [&](Node* n) { blocks.insert(n->blocks().begin(), n->blocks().end()); });
  std::vector<Value*> out;
  const auto add = [&](auto& self, Value* v) -> void {
    const Node* from = v->node();
    if (copied->count(from)) {
      for (Value* of : from->inputs()) self(self, of);
    } else if (!inside.count(from) && !(from->kind() == jit::prim::Param && blocks.count(from->owningBlock())) &&
               std::find(out.begin(), out.end(), v) == out.end()) {
      out.push_back(v);
    }
  };
  visit(segment, [&](const Node* n) {
    for (Value* v : n->inputs()) add(add, v);
  });
  for (const Block* b : blocks)
    for (Value* v : b->return_node()->inputs()) add(add, v);
  return out;
}

std::vector<Value*> Partition::outputs(const Segment& segment) const {
  NodeSet inside;
  visit(segment, [&](const Node* n) { inside.insert(n); });
  // Somebody outside uses it, or something copied that somebody outside uses.
  const auto used = [&](auto& self, const Value* v) -> bool {
    for (const jit::Use& u : v->uses()) {
      if (copied->count(u.user)) {
        for (const Value* made : u.user->outputs())
          if (self(self, made)) return true;
      } else if (!inside.count(u.user)) {
        return true;
      }
    }
    return false;
  };
  std::vector<Value*> out;
  for (Node* n : segment.nodes)
    for (Value* v : n->outputs())
      if (used(used, v)) out.push_back(v);
  return out;
}

Partition partition(const std::shared_ptr<jit::Graph>& graph, const PartitionOptions& options) {
  CRESSET_CHECK_VALUE(options.supports, "partition: options.supports, which says what the engine has, was required.");
  for (const std::string& name : options.torch_executed_ops)
    CRESSET_CHECK_VALUE(name.find("::") != std::string::npos && name.find("::") != 0 && !name.ends_with("::"),
                        "partition: torch_executed_ops: a name like aten::relu was required; got '", name, "'.");
  return Partitioner(graph, options).run(graph->block());
}

std::string report(const Partition& partition, bool nodes) {
  std::ostringstream out;
  describe(out, partition, nodes, "");
  return std::move(out).str();
}

}  // namespace cresset::engine
