// Canonical form: order of If and Loop outputs, numbers, names, places.
#include <cresset/ir/canonicalize.h>

#include <algorithm>
#include <numeric>

#include <cresset/dispatch/script_values.h>

namespace cresset::jit {
namespace {

// Where a value is used first, as the number of its user in the order of the program; unused ones last.
std::vector<std::size_t> order_by_first_use(const Node* n, const std::unordered_map<const Node*, std::size_t>& number) {
  std::vector<std::pair<std::size_t, std::size_t>> first;
  for (const Value* v : n->outputs()) {
    std::pair<std::size_t, std::size_t> best{SIZE_MAX, SIZE_MAX};
    for (const Use& u : v->uses()) best = std::min(best, {number.at(u.user), u.offset});
    first.push_back(best);
  }
  std::vector<std::size_t> order(n->outputs().size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return first[a] < first[b]; });
  return order;
}

std::vector<std::size_t> shifted(const std::vector<std::size_t>& order, std::size_t fixed) {
  std::vector<std::size_t> out(fixed);
  std::iota(out.begin(), out.end(), 0);
  for (std::size_t i : order) out.push_back(i + fixed);
  return out;
}

void order_outputs(Graph& g) {
  // Numbers by the end of each node's region: sentinels of inner blocks count where they stand.
  std::unordered_map<const Node*, std::size_t> number;
  std::size_t next = 0;
  std::vector<std::pair<const Block*, Node*>> stack{{g.block(), g.block()->param_node()->next()}};
  while (!stack.empty()) {
    auto& [block, n] = stack.back();
    number[n] = next++;
    if (n->kind() == prim::Return) {
      stack.pop_back();
      continue;
    }
    const Node* current = n;
    n = n->next();
    for (std::size_t i = current->blocks().size(); i-- > 0;)
      stack.emplace_back(current->blocks()[i], current->blocks()[i]->param_node()->next());
  }
  // Backwards, because operands of later nodes decide the order of earlier results; a node before what is nested in it, because what it
  // returns decides there.
  std::vector<Node*> order_of_work, pending{g.block()->return_node()->prev()};
  while (!pending.empty()) {
    Node* n = pending.back();
    if (n->kind() == prim::Param) {
      pending.pop_back();
      continue;
    }
    pending.back() = n->prev();
    if (n->kind() == prim::If || n->kind() == prim::Loop) order_of_work.push_back(n);
    for (Block* b : n->blocks()) pending.push_back(b->return_node()->prev());
  }
  for (Node* n : order_of_work) {
    const std::vector<std::size_t> order = order_by_first_use(n, number);
    if (std::is_sorted(order.begin(), order.end())) continue;
    n->permuteOutputs(order);
    if (n->kind() == prim::If) {
      for (Block* b : n->blocks()) b->permuteOutputs(order);
    } else {
      n->permuteInputs(shifted(order, 2));
      n->blocks()[0]->permuteInputs(shifted(order, 1));
      n->blocks()[0]->permuteOutputs(shifted(order, 1));
    }
  }
}

}  // namespace

std::shared_ptr<Graph> canonicalize(const std::shared_ptr<Graph>& g, bool keep_names) {
  std::shared_ptr<Graph> out = g->copy();
  order_outputs(*out);
  std::size_t next = 0;
  const auto renumber = [&](Value* v) {
    if (!keep_names) v->setDebugName("");
    out->renumberValue(v, next++);
  };
  for (Value* v : out->inputs()) renumber(v);
  out->block()->visit([&](Node* n) {
    n->setSourceRange({});
    for (Value* v : n->outputs()) renumber(v);
    for (const Block* b : n->blocks())
      for (Value* v : b->inputs()) renumber(v);
    for (const Symbol name : n->attributeNames())
      if (n->kindOf(name) == AttributeKind::g) n->g_(name, canonicalize(n->g(name), keep_names));
  });
  return out;
}

namespace {

class Comparison {
 public:
  std::string difference;

  bool graphs(const Graph& a, const Graph& b) {
    if (a.inputs().size() != b.inputs().size())
      return differ("the graphs have " + std::to_string(a.inputs().size()) + " and " + std::to_string(b.inputs().size()) + " inputs");
    struct Frame {
      const Block *a, *b;
      const Node *x, *y;
    };
    std::vector<Frame> stack;
    const auto open = [&](const Block* p, const Block* q) {
      if (p->inputs().size() != q->inputs().size())
        return differ("blocks have different numbers of inputs", p->owningNode(), q->owningNode());
      for (std::size_t i = 0; i < p->inputs().size(); ++i)
        if (!define(p->inputs()[i], q->inputs()[i])) return false;
      stack.push_back({p, q, p->param_node()->next(), q->param_node()->next()});
      return true;
    };
    if (!open(a.block(), b.block())) return false;
    while (!stack.empty()) {
      Frame& f = stack.back();
      const Node *x = f.x, *y = f.y;
      const bool end_a = x->kind() == prim::Return, end_b = y->kind() == prim::Return;
      if (end_a != end_b)
        return differ(end_a ? "the second graph has one node more" : "the first graph has one node more", end_a ? nullptr : x,
                      end_b ? nullptr : y);
      if (!operands(x, y)) return false;
      if (end_a) {
        stack.pop_back();
        continue;
      }
      f.x = x->next();
      f.y = y->next();
      if (!nodes(x, y)) return false;
      for (std::size_t i = x->blocks().size(); i-- > 0;)
        if (!open(x->blocks()[i], y->blocks()[i])) return false;
    }
    return true;
  }

 private:
  bool differ(std::string what, const Node* a = nullptr, const Node* b = nullptr) {
    difference = std::move(what);
    if (a) difference += "\n  first:  " + a->str();
    if (b) difference += "\n  second: " + b->str();
    return false;
  }
  bool define(const Value* a, const Value* b) {
    map_[a] = b;
    if (!(*a->type() == *b->type()))
      return differ("%" + a->debugName() + " and %" + b->debugName() + " have types '" + a->type()->str() + "' and '" + b->type()->str() +
                    "'");
    return true;
  }
  bool operands(const Node* a, const Node* b) {
    if (a->inputs().size() != b->inputs().size()) return differ("different numbers of operands", a, b);
    for (std::size_t i = 0; i < a->inputs().size(); ++i) {
      const auto found = map_.find(a->inputs()[i]);
      if (found == map_.end() || found->second != b->inputs()[i]) return differ("operand " + std::to_string(i) + " is another value", a, b);
    }
    return true;
  }
  bool nodes(const Node* a, const Node* b) {
    if (a->kind() != b->kind()) return differ("different operators", a, b);
    if (a->outputs().size() != b->outputs().size()) return differ("different numbers of results", a, b);
    if (a->blocks().size() != b->blocks().size()) return differ("different numbers of blocks", a, b);
    if (a->attributes().size() != b->attributes().size()) return differ("different numbers of attributes", a, b);
    for (const Attribute& x : a->attributes()) {
      if (!b->hasAttribute(x.name)) return differ("attribute '" + std::string(x.name.toUnqualString()) + "' is missing", a, b);
      if (!attributes(x.value, b->attribute(x.name)))
        return differ("attribute '" + std::string(x.name.toUnqualString()) + "' differs", a, b);
    }
    for (std::size_t i = 0; i < a->outputs().size(); ++i)
      if (!define(a->outputs()[i], b->outputs()[i])) return false;
    return true;
  }

  // Lists of constants are generic values or lists of one kind; both hold the same.
  static IValue generic(const AttributeValue& v) {
    return std::visit(
        [](const auto& x) -> IValue {
          using T = std::decay_t<decltype(x)>;
          if constexpr (std::is_same_v<T, std::shared_ptr<Graph>> || std::is_same_v<T, std::vector<std::shared_ptr<Graph>>> ||
                        std::is_same_v<T, TypePtr> || std::is_same_v<T, std::vector<TypePtr>>)
            return IValue();
          else
            return IValue(x);
        },
        v);
  }
  static bool attributes(const AttributeValue& a, const AttributeValue& b) {
    if (const auto* g = std::get_if<std::shared_ptr<Graph>>(&a)) {
      const auto* h = std::get_if<std::shared_ptr<Graph>>(&b);
      return h && graph_equal(**g, **h);
    }
    if (const auto* gs = std::get_if<std::vector<std::shared_ptr<Graph>>>(&a)) {
      const auto* hs = std::get_if<std::vector<std::shared_ptr<Graph>>>(&b);
      return hs &&
             std::equal(gs->begin(), gs->end(), hs->begin(), hs->end(), [](const auto& x, const auto& y) { return graph_equal(*x, *y); });
    }
    if (const auto* t = std::get_if<TypePtr>(&a)) {
      const auto* u = std::get_if<TypePtr>(&b);
      return u && **t == **u;
    }
    if (const auto* ts = std::get_if<std::vector<TypePtr>>(&a)) {
      const auto* us = std::get_if<std::vector<TypePtr>>(&b);
      return us && std::equal(ts->begin(), ts->end(), us->begin(), us->end(), [](const auto& x, const auto& y) { return *x == *y; });
    }
    const IValue x = generic(a), y = generic(b);
    if (a.index() != b.index() && !(x.isList() && y.isList())) return false;
    if (x.isList() && y.isList() && x.toListRef().empty() && y.toListRef().empty()) return true;
    if (x.isTensor() && y.isTensor() && !x.toTensor().defined() && !y.toTensor().defined()) return true;
    if (x.isScriptObject() && y.isScriptObject()) return same_objects(x, y);
    return sameConstant(x, y);
  }
  static bool same_objects(const IValue& x, const IValue& y) {
    const auto &a = x.toObjectRef(), &b = y.toObjectRef();
    return *a.type == *b.type &&
           std::equal(a.slots.begin(), a.slots.end(), b.slots.begin(), b.slots.end(), [](const IValue& p, const IValue& q) {
             return p.isScriptObject() && q.isScriptObject() ? same_objects(p, q) : sameConstant(p, q);
           });
  }

  std::unordered_map<const Value*, const Value*> map_;
};

}  // namespace

bool graph_equal(const Graph& a, const Graph& b, std::string* why) {
  Comparison c;
  const bool same = c.graphs(a, b);
  if (why) *why = c.difference;
  return same;
}

}  // namespace cresset::jit
