// If, loops, comprehensions and with.
#include "ir/frontend/emitter.h"

namespace cresset::jit {
namespace {

constexpr std::size_t kDeepestBlocks = 1000;

void names_of_target(const Expr& e, std::set<std::string>& names) {
  if (e.kind == ExprKind::Name) names.insert(e.text);
  if (e.kind == ExprKind::Tuple || e.kind == ExprKind::List || e.kind == ExprKind::Starred)
    for (const ExprPtr& part : e.parts) names_of_target(*part, names);
}

void collect(const std::vector<StmtPtr>& body, std::set<std::string>& names) {
  for (const StmtPtr& s : body) {
    if (s->kind == StmtKind::Assign || s->kind == StmtKind::AugAssign || s->kind == StmtKind::For)
      for (const ExprPtr& t : s->targets) names_of_target(*t, names);
    for (const WithItem& item : s->items)
      if (item.target) names_of_target(*item.target, names);
    collect(s->body, names);
    collect(s->orelse, names);
  }
}

// Counts blocks while it lives.
class DeeperBlock {
 public:
  DeeperBlock(std::size_t& depth, const SourceRange& range) : depth_(depth) {
    if (++depth_ > kDeepestBlocks) {
      --depth_;
      script_error(range, "blocks are nested deeper than " + std::to_string(kDeepestBlocks));
    }
  }
  ~DeeperBlock() { --depth_; }
  DeeperBlock(const DeeperBlock&) = delete;

 private:
  std::size_t& depth_;
};

}  // namespace

std::set<std::string> assigned_names(const std::vector<StmtPtr>& body) {
  std::set<std::string> names;
  collect(body, names);
  return names;
}

void Emitter::branch(const SourceRange& range, const Condition& c, const Arm& then_arm, const Arm& else_arm) {
  const DeeperBlock deeper(depth_, range);
  if (c.known) {
    names_.refine(range, *c.known ? c.when_true : c.when_false);
    (*c.known ? then_arm : else_arm)();
    return;
  }
  Node* n = insert(prim::If, {c.value}, 0, range);
  std::unique_ptr<BlockNames> frames[2];
  for (std::size_t arm = 0; arm < 2; ++arm) {
    Block* b = n->addBlock();
    const WithInsertPoint here(b);
    names_.push(b);
    names_.refine(range, arm == 0 ? c.when_true : c.when_false);
    (arm == 0 ? then_arm : else_arm)();
    frames[arm] = names_.pop();
  }
  names_.merge_arms(range, *frames[0], *frames[1]);
}

Value* Emitter::choose(const SourceRange& range, const Condition& c, const std::function<Value*()>& then_value,
                       const std::function<Value*()>& else_value, const std::function<std::string(const Type&, const Type&)>& mismatch) {
  const DeeperBlock deeper(depth_, range);
  Node* n = insert(prim::If, {c.value}, 0, range);
  Value* results[2];
  std::unique_ptr<BlockNames> frames[2];
  for (std::size_t arm = 0; arm < 2; ++arm) {
    Block* b = n->addBlock();
    const WithInsertPoint here(b);
    names_.push(b);
    names_.refine(range, arm == 0 ? c.when_true : c.when_false);
    results[arm] = arm == 0 ? then_value() : else_value();
    b->registerOutput(results[arm]);
    frames[arm] = names_.pop();
  }
  names_.merge_arms(range, *frames[0], *frames[1]);
  const TypePtr a = unshaped(results[0]->type()), b = unshaped(results[1]->type());
  const TypePtr type = unify_types(a, b);
  if (!type) script_error(range, mismatch ? mismatch(*a, *b) : "the arms have different types");
  return n->addOutput()->setType(type);
}

void Emitter::while_loop(const Stmt& s) {
  if (!s.orelse.empty()) throw NotSupportedError(s.range, "else branches of while loops aren't supported");
  const DeeperBlock deeper(depth_, s.range);
  const std::set<std::string> assigned = assigned_names(s.body);
  names_.widen(s.range, assigned);
  const Condition first = condition(s.value);
  Value* trips = constant(IValue(std::numeric_limits<int64_t>::max()), s.range);
  Node* n = insert(prim::Loop, {trips, as_value(s.range, first)}, 0, s.range);
  Block* body = n->addBlock();
  body->addInput()->setType(basic_type(TypeKind::Int));
  const Loop outer = std::exchange(loop_, Loop{LoopKind::Real, n});
  {
    const WithInsertPoint here(body);
    names_.push(body);
    names_.hold(assigned);
    names_.refine(s.range, first.when_true);
    statements(s.body);
    BlockNames& frame = names_.top();
    frame.exits = false;
    Node* again = insert(prim::LoopContinuation, {}, 0, s.range);
    Block* b = again->addBlock();
    {
      const WithInsertPoint inside(b);
      names_.push(b);
      b->registerOutput(as_value(s.range, condition(s.value)));
      names_.pop();
    }
    names_.pop();
  }
  loop_ = outer;
}

void Emitter::iterate(const SourceRange& range, const SourceRange& iterable_range, const SugaredValuePtr& things,
                      const std::set<std::string>& assigned, const std::function<void(const SugaredValuePtr&)>& body) {
  const DeeperBlock deeper(depth_, range);
  const SugaredValuePtr iterable = things->iter(range, m_);
  if (const auto count = iterable->staticLen()) {
    const Loop outer = std::exchange(loop_, Loop{LoopKind::Unrolled, nullptr});
    for (std::size_t i = 0; i < *count; ++i) body(iterable->getitem(iterable_range, m_, constant_value(IValue(static_cast<int64_t>(i)))));
    loop_ = outer;
    return;
  }
  names_.widen(range, assigned);
  Value* trips = iterable->len(range, m_);
  Node* n = insert(prim::Loop, {trips, constant(IValue(true), range)}, 0, range);
  Block* b = n->addBlock();
  Value* index = b->addInput()->setType(basic_type(TypeKind::Int));
  const Loop outer = std::exchange(loop_, Loop{LoopKind::Real, n});
  {
    const WithInsertPoint here(b);
    b->registerOutput(constant(IValue(true), range));
    names_.push(b);
    names_.hold(assigned);
    body(iterable->getitem(iterable_range, m_, simple_value(index)));
    names_.pop();
  }
  loop_ = outer;
}

void Emitter::for_loop(const Stmt& s) {
  if (!s.orelse.empty()) throw NotSupportedError(s.range, "else branches of for loops aren't supported");
  if (s.targets[0]->kind == ExprKind::Starred)
    script_error(s.targets[0]->range,
                 "A Starred expression may only appear on the lhs within the presence of another non-starred expression");
  const SourceRange& iterables = s.value->range;
  if (s.value->kind == ExprKind::Tuple && iterables.filename() == "<string>" && iterables.source()->text()[iterables.start()] != '(')
    script_error(iterables, "List of iterables is not supported currently");  // in programs that are given as text, as in PyTorch
  std::set<std::string> assigned = assigned_names(s.body);
  names_of_target(*s.targets[0], assigned);
  iterate(s.range, s.value->range, sugared(s.value), assigned, [&](const SugaredValuePtr& element) {
    assign(s.targets[0], element, s.value);
    statements(s.body);
  });
}

void Emitter::with(const Stmt& s, std::size_t item) {
  if (item == s.items.size()) {
    statements(s.body);
    return;
  }
  const DeeperBlock deeper(depth_, s.range);
  const WithItem& w = s.items[item];
  const SugaredValuePtr manager = sugared(w.value);
  const SugaredValuePtr entered = manager->enter(w.value->range, m_);
  // What exit() emits stands behind the body, whichever way the body is left (exit_transform.cpp).
  Node* n = insert(Symbol::prim("With"), {}, 0, s.range);
  Block *body = n->addBlock(), *leave = n->addBlock();
  {
    const WithInsertPoint here(body);
    if (w.target) assign(w.target, entered, w.value);
    with(s, item + 1);
  }
  const WithInsertPoint here(leave);
  manager->exit(w.value->range, m_);
}

// ---- comprehensions

SugaredValuePtr Emitter::comprehension(const Expr& e, const TypePtr& hint) {
  const bool is_list = e.kind != ExprKind::DictComp;
  Node* made =
      is_list ? graph().createList(TensorType::get(), {}) : graph().createDict(basic_type(TypeKind::String), TensorType::get(), {}, {});
  insert_node(m_, made, e.range);
  Value* container = made->output();
  TypePtr type = only_hint_of(is_list ? TypeKind::List : TypeKind::Dict, hint);
  comprehension_loop(e, 0, [&] {
    Value* first = value(e.parts[0], type ? type->contained[0] : nullptr);
    Value* second = is_list ? nullptr : value(e.parts[1], type ? type->contained[1] : nullptr);
    if (type) {
      first = converted(e.range, first, type->contained[0]);
      if (second) second = converted(e.range, second, type->contained[1]);
    }
    const TypePtr here = is_list ? list_of(unshaped(first->type())) : dict_of(unshaped(first->type()), unshaped(second->type()));
    if (!type) type = here;
    container->setType(type);
    if (!first->type()->is_subtype_of(*type->contained[0]) || (second && !second->type()->is_subtype_of(*type->contained[1])))
      script_error(e.range, is_list ? "List type annotation `" + type->annotation_str() +
                                          "` did not match the types of the given list elements, which were unified to " +
                                          here->element()->annotation_str()
                                    : dict_mismatch(*type, *here));
    if (is_list)
      graph().insert(aten::append, {container, first}, {}, e.range);
    else
      builtin_function(Symbol::aten("_set_item"))
          ->call(e.range, m_,
                 {{e.range, simple_value(container), {}}, {e.range, simple_value(first), {}}, {e.range, simple_value(second), {}}}, {}, 0);
  });
  if (type) container->setType(type);
  return simple_value(container);
}

void Emitter::comprehension_loop(const Expr& e, std::size_t generator, const std::function<void()>& innermost) {
  if (generator == e.generators.size()) {
    innermost();
    return;
  }
  const Comprehension& g = e.generators[generator];
  iterate(e.range, g.iterable->range, sugared(g.iterable), {}, [&](const SugaredValuePtr& element) {
    names_.push(graph().insertPoint()->owningBlock());
    std::set<std::string> own;
    names_of_target(*g.target, own);
    for (const std::string& name : own) names_.hide(name);
    assign(g.target, element, g.iterable);
    const std::function<void(std::size_t)> filtered = [&](std::size_t i) {
      if (i == g.conditions.size()) {
        comprehension_loop(e, generator + 1, innermost);
        return;
      }
      branch(g.conditions[i]->range, condition(g.conditions[i]), [&] { filtered(i + 1); }, [] {});
    };
    filtered(0);
    names_.pop();
  });
}

}  // namespace cresset::jit
