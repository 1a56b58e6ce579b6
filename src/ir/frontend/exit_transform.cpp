// Early exits. In the form with Load and Store an exit is a few stores: "$returned" and "$return" of the function; "$on" (is there another
// iteration?) and "$skip" (is the rest of this one skipped?) of a loop. What follows an If that may have left goes into the arm that has
// not, or where that cannot be said while compiling, into an If on the flag. The values of variables at the end of each path then follow
// from the conversion to SSA alone.
#include "ir/frontend/emitter.h"

namespace cresset::jit {
namespace {

constexpr std::size_t kDeepestExits = 4000;

// The innermost thing that an exit leaves.
struct Region {
  Region* outer = nullptr;  // null: the function itself
  std::string on, skip;     // of loops
  bool leaves = false;      // a break or return was seen: "$on" decides about the next iteration
};

bool falls(Way w) { return w == Way::Falls || w == Way::Some; }
bool exits(Way w) { return w == Way::Some || w == Way::Leaves || w == Way::Returns; }

class Exits {
 public:
  explicit Exits(Graph& g) : graph_(g) {}

  Ways run() {
    Region function;
    function.skip = "$returned";
    set_flag("$returned", false,
             graph_.block()->nodes().begin() == graph_.block()->nodes().end() ? graph_.return_node() : *graph_.block()->nodes().begin());
    block(graph_.block(), function);
    return std::move(ways_);
  }

 private:
  Way block(Block* b, Region& r) { return ways_[b] = nodes(b, r); }

  // First the ends of the paths, from front to back; then, from back to front, what follows a branch that may have left goes into it, so
  // that each node moves once.
  Way nodes(Block* b, Region& r) {
    Way way = Way::Falls;
    std::vector<Node*> leaving;           // branches that some paths leave
    std::vector<std::size_t> heights{0};  // of what stands in front of the first one, behind it, behind the second, …
    for (Node *n = b->param_node()->next(), *next; n != b->return_node(); n = next) {
      next = n->next();
      Node* branch = nullptr;
      switch (n->kind()) {
        case prim::ReturnStmt:
        case prim::BreakStmt:
        case prim::ContinueStmt: way = exit(n, r); break;
        case prim::RaiseException: way = Way::Raises; break;
        case prim::If: {
          const Way arms = joined(block(n->blocks()[0], r), block(n->blocks()[1], r));
          if (arms == Way::Some) branch = n;
          if (!falls(arms)) way = arms;
          heights.back() = std::max(heights.back(), height_of(n));
          break;
        }
        case prim::Loop:
          branch = loop(n, r);
          heights.back() = std::max(heights.back(), height_of(n));
          break;
        default:
          if (n->kind() != with_kind()) break;
          const Way inner = with(n, r, heights.back());
          if (inner == Way::Some) branch = guard(next, r);
          if (!falls(inner)) way = inner;
      }
      if (branch) {
        leaving.push_back(branch);
        heights.push_back(0);
      }
      if (!falls(way)) {
        remove_from(b, next);
        break;
      }
    }
    std::size_t height = heights.back();
    for (std::size_t i = leaving.size(); i-- > 0;) {
      way = behind_branch(b, leaving[i], way, r);
      height = std::max(height + 1, heights[i]);
      if (height > kDeepestExits)
        script_error(leaving[i]->sourceRange(),
                     "too many early exits in a row: they nest deeper than " + std::to_string(kDeepestExits) + " blocks");
    }
    heights_[b] = height;
    return way;
  }

  // How deep blocks nest in the node.
  std::size_t height_of(const Node* n) const {
    std::size_t height = 0;
    for (const Block* b : n->blocks())
      if (const auto found = heights_.find(b); found != heights_.end()) height = std::max(height, found->second);
    return height + 1;
  }

  // Of two arms.
  static Way joined(Way a, Way c) {
    if (!exits(a) && !exits(c)) return falls(a) || falls(c) ? Way::Falls : Way::Raises;
    if (falls(a) || falls(c)) return Way::Some;
    return a == Way::Leaves || c == Way::Leaves ? Way::Leaves : Way::Returns;
  }

  // An If on whether the rest is skipped, in front of a node.
  Node* guard(Node* before, const Region& r) {
    Node* n = graph_.create(prim::If, {flag(r.skip, before)}, 0)->insertBefore(before)->setSourceRange(before->sourceRange());
    ways_[n->addBlock()] = r.outer ? Way::Leaves : Way::Returns;
    ways_[n->addBlock()] = Way::Falls;
    return n;
  }

  // Some paths leave in the arms of this If; `rest` is the way of what follows it. Gives the way of both.
  Way behind_branch(Block* b, Node* n, Way rest, Region& r) {
    if (n->next() == b->return_node()) return Way::Some;
    const Way a = ways_.at(n->blocks()[0]), c = ways_.at(n->blocks()[1]);
    if (!(!falls(a) && c == Way::Falls) && !(!falls(c) && a == Way::Falls)) n = guard(n->next(), r);
    Block* into = n->blocks()[falls(ways_.at(n->blocks()[0])) ? 0 : 1];
    while (n->next() != b->return_node()) n->next()->moveBefore(into->return_node());
    ways_[into] = rest;
    return joined(ways_.at(n->blocks()[0]), ways_.at(n->blocks()[1]));
  }

  Way exit(Node* n, Region& r) {
    const Symbol kind = n->kind();
    if (kind == prim::ReturnStmt) {
      if (!n->inputs().empty()) {
        graph_.createStore("$return", n->input(0))->insertBefore(n)->setSourceRange(n->sourceRange());
        set_flag("$returned", true, n);
      }
    }
    if (r.outer) {
      if (kind != prim::ContinueStmt) {
        set_flag(r.on, false, n);
        r.leaves = true;
      }
      set_flag(r.skip, true, n);
      if (kind == prim::ReturnStmt) returns_ = true;
    }
    n->destroy();
    return kind == prim::ReturnStmt ? Way::Returns : Way::Leaves;
  }

  // Gives the If behind the loop that leaves when the function has returned in it; null when it cannot.
  Node* loop(Node* n, Region& outer) {
    const std::string number = std::to_string(loops_++);
    Region r;
    r.outer = &outer;
    r.on = "$on" + number;
    r.skip = "$skip" + number;
    Block* body = n->blocks()[0];
    Node* first = body->param_node()->next();
    const bool outer_returns = std::exchange(returns_, false);
    // The condition of a while stands at the end of the body. A break or return must not run it, a continue must.
    Node* condition = body->return_node()->prev();
    if (condition->kind() != prim::LoopContinuation) condition = nullptr;
    const bool continues = n->hasAttribute(Symbol::attr("continues"));
    if (continues) n->removeAttribute(Symbol::attr("continues"));
    set_flag(r.on, true, first);
    set_flag(r.skip, false, first);
    set_flag("$returned", false, first);  // a return leaves the loop
    if (condition && continues) {
      condition->removeFromList();
    } else if (condition) {
      splice(condition, r.on);
      condition = nullptr;
    }
    block(body, r);
    if (condition) {
      Node* guard = graph_.create(prim::If, {flag(r.on, body->return_node())}, 0)->insertBefore(body->return_node());
      guard->setSourceRange(condition->sourceRange());
      Block* then_block = guard->addBlock();
      guard->addBlock();
      condition->insertBefore(then_block->return_node());
      splice(condition, r.on);
    }
    if (r.leaves || body->outputs().empty()) {
      Value* on = flag(r.on, body->return_node());
      if (body->outputs().empty())
        body->registerOutput(on);
      else
        body->replaceOutput(0, on);
    }
    const bool returns = std::exchange(returns_, returns_ || outer_returns);
    if (!returns) return nullptr;
    Node* after = n->next();
    Node* again = graph_.create(prim::If, {flag("$returned", after)}, 0)->insertBefore(after)->setSourceRange(n->sourceRange());
    Node* leave = again->addBlock()->appendNode(graph_.create(prim::ReturnStmt, 0));
    ways_[again->blocks()[0]] = exit(leave, outer);
    ways_[again->addBlock()] = Way::Falls;
    return again;
  }

  // The nodes of the condition take its place, and its value becomes the flag.
  void splice(Node* condition, const std::string& name) {
    Block* inner = condition->blocks()[0];
    Value* on = inner->outputs()[0];
    while (inner->param_node()->next() != inner->return_node()) inner->param_node()->next()->moveBefore(condition);
    inner->eraseOutput(0);
    graph_.createStore(name, on)->insertBefore(condition);
    condition->destroy();
  }

  // The second block, which leaves the context, runs behind the body whichever way the body is left; an exception goes past it.
  Way with(Node* n, Region& r, std::size_t& height) {
    const Way way = block(n->blocks()[0], r);
    height = std::max(height, height_of(n));
    for (std::size_t part = 0; part < (way == Way::Raises ? 1 : 2); ++part) {
      Block* inner = n->blocks()[part];
      while (inner->param_node()->next() != inner->return_node()) inner->param_node()->next()->moveBefore(n);
      ways_.erase(inner);
    }
    n->destroy();
    return way;
  }

  static Symbol with_kind() {
    static const Symbol kind = Symbol::prim("With");
    return kind;
  }

  void remove_from(Block* b, Node* first) {
    while (first != b->return_node() && b->return_node()->prev() != first) b->return_node()->prev()->destroy();
    if (first != b->return_node()) first->destroy();
  }

  void set_flag(const std::string& name, bool v, Node* before) {
    WithInsertPoint here(before);
    graph_.insertNode(graph_.createStore(name, graph_.insertConstant(IValue(v))));
  }
  Value* flag(const std::string& name, Node* before) {
    return graph_.createLoad(name, basic_type(TypeKind::Bool))->insertBefore(before)->output();
  }

  Graph& graph_;
  Ways ways_;
  std::unordered_map<const Block*, std::size_t> heights_;
  std::size_t loops_ = 0;
  bool returns_ = false;  // in the loop that is being looked at
};

}  // namespace

Ways transform_exits(Graph& g) { return Exits(g).run(); }

}  // namespace cresset::jit
