// Early exits. In the form with Load and Store an exit is a few stores: "$returned" and "$return" of the function; "$on" (is there another
// iteration?) and "$skip" (is the rest of this one skipped?) of a loop. What follows an If that may have left goes into the arm that has
// not, or where that cannot be said while compiling, into an If on the flag. The values of variables at the end of each path then follow
// from the conversion to SSA alone.
#include "ir/frontend/emitter.h"

namespace cresset::jit {
namespace {

constexpr std::size_t kMaximumDepth = 4000;

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
  Way block(Block* b, Region& r) { return ways_[b] = nodes(b, b->param_node()->next(), r); }

  // From this node to the end of its block.
  Way nodes(Block* b, Node* n, Region& r) {
    if (++depth_ > kMaximumDepth)
      script_error(n->sourceRange(), "too many early exits in a row: they nest deeper than " + std::to_string(kMaximumDepth) + " blocks");
    const Way way = nodes_within(b, n, r);
    --depth_;
    return way;
  }

  Way nodes_within(Block* b, Node* n, Region& r) {
    for (Node* next; n != b->return_node(); n = next) {
      next = n->next();
      switch (n->kind()) {
        case prim::ReturnStmt:
        case prim::BreakStmt:
        case prim::ContinueStmt: return exit(b, n, r);
        case prim::RaiseException: remove_from(b, next); return Way::Raises;
        case prim::If: {
          const Way a = block(n->blocks()[0], r), c = block(n->blocks()[1], r);
          if (!exits(a) && !exits(c)) {
            if (falls(a) || falls(c)) continue;
            remove_from(b, next);
            return Way::Raises;
          }
          return behind_branch(b, n, a, c, r);
        }
        case prim::Loop:
          loop(n, r);
          next = n->next();
          break;
        default:
          if (n->kind() == with_kind()) return with(b, n, r);
      }
    }
    return Way::Falls;
  }

  // One of the arms has exits.
  Way behind_branch(Block* b, Node* n, Way a, Way c, Region& r) {
    if (!falls(a) && !falls(c)) {
      remove_from(b, n->next());
      return a == Way::Leaves || c == Way::Leaves ? Way::Leaves : Way::Returns;
    }
    if (n->next() == b->return_node()) return Way::Some;
    Block* into;
    if (!falls(a) && c == Way::Falls) {
      into = n->blocks()[1];
    } else if (!falls(c) && a == Way::Falls) {
      into = n->blocks()[0];
    } else {
      Node* guard = graph_.create(prim::If, {flag(r.skip, n->next())}, 0)->insertBefore(n->next())->setSourceRange(n->sourceRange());
      ways_[guard->addBlock()] = r.outer ? Way::Leaves : Way::Returns;
      into = guard->addBlock();
      n = guard;
    }
    Node* first = n->next();
    for (Node* moved = first; moved != b->return_node();) {
      Node* after = moved->next();
      moved->moveBefore(into->return_node());
      moved = after;
    }
    const Way rest = nodes(into, first, r);
    ways_[into] = rest;
    if (falls(rest)) return Way::Some;
    const Way left = ways_[n->blocks()[n->blocks()[0] == into ? 1 : 0]];
    return rest == Way::Leaves || left == Way::Leaves ? Way::Leaves : Way::Returns;
  }

  Way exit(Block* b, Node* n, Region& r) {
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
    Node* next = n->next();
    n->destroy();
    remove_from(b, next);
    return kind == prim::ReturnStmt ? Way::Returns : Way::Leaves;
  }

  void loop(Node* n, Region& outer) {
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
    if (returns_) {
      // The function may have returned in the loop: leave here too.
      Node* after = n->next();
      Node* again = graph_.create(prim::If, {flag("$returned", after)}, 0)->insertBefore(after)->setSourceRange(n->sourceRange());
      again->addBlock()->appendNode(graph_.create(prim::ReturnStmt, 0));
      again->addBlock();
    }
    returns_ = returns_ || outer_returns;
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
  Way with(Block* b, Node* n, Region& r) {
    const Way way = block(n->blocks()[0], r);
    for (std::size_t part = 0; part < (way == Way::Raises ? 1 : 2); ++part) {
      Block* inner = n->blocks()[part];
      while (inner->param_node()->next() != inner->return_node()) inner->param_node()->next()->moveBefore(n);
      ways_.erase(inner);
    }
    const SourceRange range = n->sourceRange();
    Node* rest = n->next();
    n->destroy();
    if (!falls(way)) {
      remove_from(b, rest);
      return way;
    }
    if (way == Way::Falls) return nodes(b, rest, r);
    if (rest == b->return_node()) return Way::Some;
    Node* guard = graph_.create(prim::If, {flag(r.skip, rest)}, 0)->insertBefore(rest)->setSourceRange(range);
    const Way left = r.outer ? Way::Leaves : Way::Returns;
    ways_[guard->addBlock()] = left;
    ways_[guard->addBlock()] = Way::Falls;
    return behind_branch(b, guard, left, Way::Falls, r);
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
  std::size_t depth_ = 0, loops_ = 0;
  bool returns_ = false;  // in the loop that is being looked at
};

}  // namespace

Ways transform_exits(Graph& g) { return Exits(g).run(); }

}  // namespace cresset::jit
