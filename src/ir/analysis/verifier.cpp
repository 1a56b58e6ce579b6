// Graph::lint: the rules of well-formed IR. Walks the program once with the set of visible values.
#include <algorithm>
#include <set>
#include <unordered_map>

#include <cresset/ir/ir.h>

#include "ir/graph/fetch_ahead.h"
#include "ir/graph/kinds.h"

namespace cresset::jit {
namespace {

class Verifier {
 public:
  explicit Verifier(const Graph& g) : g_(g) { values_.resize(2 * g.node_count() + 64); }

  void run() {
    if (g_.block()->owningNode()) broken("the graph's own block has an owning node");
    open(g_.block());
    while (!stack_.empty()) {
      Frame& f = stack_.back();
      if (f.node->kind() == prim::Return) {
        sentinel(f.node, f.block);
        operands(*f.node);
        for (const Value* v : f.defined) at(v).visible = false;
        stack_.pop_back();
        continue;
      }
      Node* n = f.node;
      f.node = n->next();
      fetch_later_node(n);
      node(*n, f.block);
      for (const Value* v : n->outputs()) {
        define(v, n);
        f.defined.push_back(v);
      }
      for (std::size_t i = n->blocks().size(); i-- > 0;) open(n->blocks()[i]);
    }
    // Each input is exactly one use of its value: as many uses as inputs, and there is no use but these.
    if (uses_ != inputs_) foreign_use();
  }

  std::vector<std::shared_ptr<Graph>> subgraphs;

 private:
  struct Frame {
    const Block* block;
    Node* node;
    std::vector<const Value*> defined;
  };

  [[noreturn]] void broken(const std::string& what, const Node* n = nullptr) const {
    std::string text = "lint: " + what + ".";
    if (n && n->kind() != prim::Param && n->kind() != prim::Return) text += "\nin " + n->str();
    if (n && n->sourceRange().known()) text += "\n" + n->sourceRange().highlight();
    throw Error(text);
  }

  void open(const Block* b) {
    if (b->owningGraph() != &g_) broken("a block belongs to another graph", b->owningNode());
    const Node* p = b->param_node();
    sentinel(p, b);
    if (!p->inputs().empty()) broken("a parameter node has inputs", b->owningNode());
    if (!b->return_node()->outputs().empty()) broken("a return node has outputs", b->owningNode());
    if (p->prev() != b->return_node() || b->return_node()->next() != p) broken("a block's list is not closed", b->owningNode());
    stack_.push_back({b, p->next(), {}});
    for (const Value* v : b->inputs()) {
      define(v, p);
      stack_.back().defined.push_back(v);
    }
  }

  void sentinel(const Node* n, const Block* b) {
    if (n->owningBlock() != b || n->owningGraph() != &g_) broken("a sentinel belongs to another block", b->owningNode());
    if (!n->blocks().empty() || n->hasAttributes()) broken("a sentinel has blocks or attributes", b->owningNode());
  }

  void define(const Value* v, const Node* n) {
    if (v->node() != n) broken("%" + v->debugName() + " has another defining node than the one that holds it", n);
    if (n->outputs().at(v->offset()) != v) broken("%" + v->debugName() + " has a wrong offset", n);
    if (!v->type()) broken("%" + v->debugName() + " has no type", n);
    Known& known = at(v);
    if (known.value) broken("the number " + std::to_string(v->unique()) + " belongs to two values", n);
    known = {v, true};
    uses_ += v->use_count();
  }

  void operands(const Node& n) {
    for (std::size_t i = 0; i < n.inputs().size(); ++i) {
      const Value* v = n.inputs()[i];
      if (!is_visible(v)) broken("%" + v->debugName() + " is not in scope where it is used", &n);
      if (!n.knowsUse(i)) broken("input " + std::to_string(i) + " is not in the use list of %" + v->debugName(), &n);
    }
    inputs_ += n.inputs().size();
  }

  using UsePlace = std::pair<const Node*, std::size_t>;
  static UsePlace place_of(const Use& u) { return {u.user, u.offset}; }

  [[noreturn]] void foreign_use() const {
    std::set<UsePlace> known;
    std::vector<const Value*> all;
    const auto add = [&](const Node* n) {
      for (std::size_t i = 0; i < n->inputs().size(); ++i) known.insert({n, i});
      all.insert(all.end(), n->outputs().begin(), n->outputs().end());
    };
    const auto add_ends = [&](const Block* b) {
      add(b->param_node());
      add(b->return_node());
    };
    add_ends(g_.block());
    g_.block()->visit([&](const Node* n) {
      add(n);
      for (const Block* b : n->blocks()) add_ends(b);
    });
    for (const Value* v : all)
      for (const Use& u : v->uses())
        if (!known.count(place_of(u))) broken("%" + v->debugName() + " has a use by a node that is not in the graph");
    broken("the lists of uses and inputs disagree");
  }

  void node(const Node& n, const Block* b) {
    if (n.kind() == prim::Param || n.kind() == prim::Return) broken("a sentinel stands in the middle of a block", b->owningNode());
    if (n.owningBlock() != b || n.owningGraph() != &g_) broken("a node belongs to another block", &n);
    if (n.next()->prev() != &n || n.prev()->next() != &n) broken("a block's list is torn", &n);
    if (n.prev()->kind() != prim::Param && !n.prev()->isBefore(&n)) broken("the order numbers of a block do not grow", &n);
    operands(n);
    for (const Block* inner : n.blocks())
      if (inner->owningNode() != &n) broken("a block belongs to another node", &n);
    for (const Attribute& a : n.attributes()) {
      if (const auto* g = std::get_if<std::shared_ptr<Graph>>(&a.value)) {
        if (!*g) broken("the graph of attribute '" + std::string(a.name.toUnqualString()) + "' is missing", &n);
        subgraphs.push_back(*g);
      }
      if (const auto* gs = std::get_if<std::vector<std::shared_ptr<Graph>>>(&a.value))
        subgraphs.insert(subgraphs.end(), gs->begin(), gs->end());
    }
    arity(n);
    switch (n.kind()) {
      case prim::If: conditional(n); break;
      case prim::Loop: loop(n); break;
      default: break;
    }
  }

  // As the table of kinds says.
  void arity(const Node& n) {
    const KindRow& row = kind_row(n.kind());
    const auto check = [&](int wanted, std::size_t found, const char* what) {
      if (wanted != kAnyNumber && static_cast<std::size_t>(wanted) != found)
        broken("a node of kind " + n.kind().toQualString() + " has " + std::to_string(wanted) + " " + what + (wanted == 1 ? "" : "s") +
                   "; this one has " + std::to_string(found),
               &n);
    };
    check(row.inputs, n.inputs().size(), "input");
    check(row.outputs, n.outputs().size(), "output");
    check(row.blocks, n.blocks().size(), "block");
  }

  void conditional(const Node& n) {
    if (n.input()->type()->kind != TypeKind::Bool) broken("the condition of an If is a bool", &n);
    for (const Block* b : n.blocks()) {
      if (!b->inputs().empty()) broken("the blocks of an If have no inputs", &n);
      if (b->outputs().size() != n.outputs().size())
        broken(
            "an If has " + std::to_string(n.outputs().size()) + " outputs and a block that returns " + std::to_string(b->outputs().size()),
            &n);
    }
  }

  void loop(const Node& n) {
    const Block* b = n.blocks()[0];
    if (n.inputs().size() < 2) broken("a Loop has a trip count and a condition", &n);
    if (n.input(0)->type()->kind != TypeKind::Int) broken("the trip count of a Loop is an int", &n);
    if (n.input(1)->type()->kind != TypeKind::Bool) broken("the condition of a Loop is a bool", &n);
    const std::size_t carried = n.inputs().size() - 2;
    if (n.outputs().size() != carried || b->inputs().size() != carried + 1 || b->outputs().size() != carried + 1)
      broken("a Loop carries " + std::to_string(carried) + " values; it has " + std::to_string(n.outputs().size()) +
                 " outputs, and its block takes " + std::to_string(b->inputs().size()) + " and returns " +
                 std::to_string(b->outputs().size()),
             &n);
    if (b->inputs()[0]->type()->kind != TypeKind::Int) broken("the counter of a Loop is an int", &n);
    if (b->outputs()[0]->type()->kind != TypeKind::Bool) broken("the first result of a Loop's block is a bool", &n);
  }

  const Graph& g_;
  std::vector<Frame> stack_;
  // By number.
  struct Known {
    const Value* value = nullptr;
    bool visible = false;
  };
  // Texts may give any number: only those near the count of values have a place in the table.
  Known& at(const Value* v) { return v->unique() < values_.size() ? values_[v->unique()] : far_[v->unique()]; }
  bool is_visible(const Value* v) {
    const Known& known = at(v);
    return known.value == v && known.visible;
  }
  std::vector<Known> values_;
  std::unordered_map<std::size_t, Known> far_;
  std::size_t inputs_ = 0, uses_ = 0;  // of all nodes, of all values
};

}  // namespace

void Graph::lint() const {
  Verifier own(*this);
  own.run();
  std::vector<std::shared_ptr<Graph>> pending = std::move(own.subgraphs);
  while (!pending.empty()) {
    const std::shared_ptr<Graph> g = std::move(pending.back());
    pending.pop_back();
    Verifier v(*g);
    v.run();
    pending.insert(pending.end(), v.subgraphs.begin(), v.subgraphs.end());
  }
}

}  // namespace cresset::jit
