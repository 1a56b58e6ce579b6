// prim::Load and prim::Store to SSA. A backward look says which variables are needed behind each If and Loop; the way forward then gives
// those results and carried values, and replaces each load by the value that the variable has there.
#include <bit>

#include "ir/frontend/emitter.h"

namespace cresset::jit {
namespace {

/// A set of variables.
class Bits {
 public:
  explicit Bits(std::size_t n = 0) : words_((n + 63) / 64) {}
  void set(std::size_t i) { words_[i / 64] |= bit(i); }
  void reset(std::size_t i) { words_[i / 64] &= ~bit(i); }
  bool test(std::size_t i) const { return words_[i / 64] & bit(i); }
  Bits& operator|=(const Bits& o) {
    return combine(o, [](uint64_t a, uint64_t b) { return a | b; });
  }
  Bits& operator&=(const Bits& o) {
    return combine(o, [](uint64_t a, uint64_t b) { return a & b; });
  }
  Bits& operator-=(const Bits& o) {
    return combine(o, [](uint64_t a, uint64_t b) { return a & ~b; });
  }
  friend Bits operator|(Bits a, const Bits& b) { return a |= b; }
  friend Bits operator&(Bits a, const Bits& b) { return a &= b; }
  friend Bits operator-(Bits a, const Bits& b) { return a -= b; }
  template <class F>
  void each(const F& f) const {
    for (std::size_t w = 0; w < words_.size(); ++w)
      for (uint64_t rest = words_[w]; rest; rest &= rest - 1) f(w * 64 + static_cast<std::size_t>(std::countr_zero(rest)));
  }

 private:
  static uint64_t bit(std::size_t i) { return uint64_t{1} << (i % 64); }
  template <class F>
  Bits& combine(const Bits& o, const F& f) {
    for (std::size_t i = 0; i < words_.size(); ++i) words_[i] = f(words_[i], o.words_[i]);
    return *this;
  }
  std::vector<uint64_t> words_;
};

// What a piece of program does to variables.
struct Effect {
  Bits assigned;  // on some path
  Bits certain;   // on every path
  Bits needed;    // read before it is certainly assigned
};

bool is_load(const Node* n) { return n->kind() == prim::Load; }
bool is_store(const Node* n) { return n->kind() == prim::Store; }
bool is_control(const Node* n) { return n->kind() == prim::If || n->kind() == prim::Loop; }

class Ssa {
 public:
  Ssa(Graph& g, const Ways& ways) : graph_(g), ways_(ways) {}

  void run() {
    graph_.block()->visit([this](Node* n) {
      if (!is_load(n) && !is_store(n)) return;
      const std::size_t v = numbers_.emplace(n->s(attr::name), names_.size()).first->second;
      if (v == names_.size()) names_.push_back(n->s(attr::name)), types_.push_back(nullptr);
      if (!is_store(n)) return;
      const TypePtr type = unshaped(n->input(0)->type());
      types_[v] = types_[v] ? unify_types(types_[v], type, true) : type;
    });
    effect_of(graph_.block());
    find_live(graph_.block(), none());
    values_.resize(names_.size());
    block(graph_.block());
    for (auto n = removed_.rbegin(); n != removed_.rend(); ++n) (*n)->destroy();
  }

 private:
  Bits none() const { return Bits(names_.size()); }
  std::size_t variable(const Node* n) const { return numbers_.at(n->s(attr::name)); }

  Effect effect_of(const Block* b) {
    Effect e{none(), none(), none()};
    for (const Node* n : b->nodes()) {
      if (is_load(n)) {
        if (!e.certain.test(variable(n))) e.needed.set(variable(n));
      } else if (is_store(n)) {
        e.assigned.set(variable(n));
        e.certain.set(variable(n));
      } else if (is_control(n)) {
        Effect inner = effect_of(n->blocks()[0]);
        if (n->kind() == prim::If) {
          const Effect other = effect_of(n->blocks()[1]);
          inner.assigned |= other.assigned;
          inner.certain &= other.certain;
          inner.needed |= other.needed;
        } else {
          inner.certain = none();
        }
        e.needed |= inner.needed - e.certain;
        e.assigned |= inner.assigned;
        e.certain |= inner.certain;
        effects_.emplace(n, std::move(inner));
      }
    }
    return e;
  }

  // `live`: needed behind the block. Gives what is needed in front of it.
  Bits find_live(const Block* b, Bits live) {
    for (const Node* n : b->nodes().reverse()) {
      if (is_load(n)) {
        live.set(variable(n));
      } else if (is_store(n)) {
        live.reset(variable(n));
      } else if (n->kind() == prim::If) {
        results_.emplace(n, effects_.at(n).assigned & live);
        Bits other = find_live(n->blocks()[1], live);
        live = find_live(n->blocks()[0], std::move(live)) | other;
      } else if (n->kind() == prim::Loop) {
        const Effect& body = effects_.at(n);
        live |= body.needed;
        results_.emplace(n, body.assigned & live);
        live |= find_live(n->blocks()[0], live);
      }
    }
    return live;
  }

  void set(std::size_t variable, Value* v) {
    undo_.emplace_back(variable, values_[variable]);
    values_[variable] = v;
  }
  void undo_to(std::size_t mark) {
    for (; undo_.size() > mark; undo_.pop_back()) values_[undo_.back().first] = undo_.back().second;
  }

  void block(Block* b) {
    for (Node* n = b->param_node()->next(); n != b->return_node(); n = n->next()) {
      if (is_load(n)) {
        Value* v = values_[variable(n)];
        n->output()->replaceAllUsesWith(v ? v : uninitialized(n->output()->type()));
        removed_.push_back(n);
      } else if (is_store(n)) {
        set(variable(n), n->input(0));
        removed_.push_back(n);
      } else if (n->kind() == prim::If) {
        branch(n);
      } else if (n->kind() == prim::Loop) {
        loop(n);
      }
    }
  }

  // The end of the block is not reached with the variable's value: an exception, or the function has returned.
  bool is_dead(const Block* b, std::size_t variable) const {
    if (names_[variable][0] == '$') return false;
    const auto way = ways_.find(b);
    return way != ways_.end() && (way->second == Way::Returns || way->second == Way::Raises);
  }

  void branch(Node* n) {
    std::vector<std::size_t> results;
    results_.at(n).each([&](std::size_t v) { results.push_back(v); });
    std::vector<Value*> ends[2];
    for (std::size_t arm = 0; arm < 2; ++arm) {
      const std::size_t mark = undo_.size();
      Block* b = n->blocks()[arm];
      block(b);
      for (const std::size_t v : results) ends[arm].push_back(is_dead(b, v) || raises(b) ? nullptr : values_[v]);
      undo_to(mark);
    }
    for (std::size_t i = 0; i < results.size(); ++i) {
      Value *a = ends[0][i], *b = ends[1][i];
      if (!a && !b) continue;
      const TypePtr type = !a ? b->type() : !b ? a->type() : unify_types(a->type(), b->type(), true);
      n->blocks()[0]->registerOutput(a ? a : uninitialized(type));
      n->blocks()[1]->registerOutput(b ? b : uninitialized(type));
      set(results[i], named(n->addOutput()->setType(type), results[i]));
    }
  }
  bool raises(const Block* b) const {
    const auto way = ways_.find(b);
    return way != ways_.end() && way->second == Way::Raises;
  }

  void loop(Node* n) {
    Block* body = n->blocks()[0];
    std::vector<std::size_t> carried;
    results_.at(n).each([&](std::size_t v) {
      Value* initial = values_[v];
      if (!initial && names_[v][0] != '$') return;  // of one iteration only
      if (!initial) initial = uninitialized(types_[v]);
      n->addInput(initial);
      carried.push_back(v);
    });
    const std::size_t mark = undo_.size(), first = n->inputs().size() - carried.size();
    for (std::size_t i = 0; i < carried.size(); ++i)
      set(carried[i], named(body->addInput()->setType(unshaped(n->input(first + i)->type())), carried[i]));
    block(body);
    for (const std::size_t v : carried) {
      Value* end = is_dead(body, v) ? nullptr : values_[v];
      body->registerOutput(end ? end : uninitialized(types_[v]));
    }
    undo_to(mark);
    for (std::size_t i = 0; i < carried.size(); ++i)
      set(carried[i], named(n->addOutput()->setType(unshaped(n->input(first + i)->type())), carried[i]));
  }

  Value* named(Value* v, std::size_t variable) {
    return Value::isValidName(names_[variable]) && names_[variable][0] != '$' ? v->setDebugName(names_[variable]) : v;
  }

  Value* uninitialized(const TypePtr& type) {
    Value*& v = uninitialized_[type->str()];
    if (!v) v = graph_.prependNode(graph_.createUninitialized(type))->output();
    return v;
  }

  Graph& graph_;
  const Ways& ways_;
  std::unordered_map<std::string, std::size_t> numbers_;
  std::vector<std::string> names_;
  std::vector<TypePtr> types_;  // what all stores of a variable have in common
  std::unordered_map<const Node*, Effect> effects_;
  std::unordered_map<const Node*, Bits> results_;
  std::vector<Value*> values_;
  std::vector<std::pair<std::size_t, Value*>> undo_;
  std::vector<Node*> removed_;
  std::unordered_map<std::string, Value*> uninitialized_;
};

}  // namespace

void to_ssa(Graph& g, const Ways& ways) { Ssa(g, ways).run(); }

void canonicalize_loops(Graph& g) {
  std::vector<Node*> loops;
  g.block()->visit([&](Node* n) {
    if (n->kind() != prim::Loop) return;
    const auto is_true = [](const Value* v) { return constant_as<bool>(v).value_or(false); };
    const bool counts = constant_as<int64_t>(n->input(0)) != std::numeric_limits<int64_t>::max();
    if (counts && !(is_true(n->input(1)) && is_true(n->blocks()[0]->outputs()[0]))) loops.push_back(n);
  });
  for (Node* n : loops) {
    Block* body = n->blocks()[0];
    const TypePtr integer = basic_type(TypeKind::Int);
    Value *trips = n->input(0), *start = n->input(1), *zero, *one;
    {
      const WithInsertPoint here(n);
      zero = g.insertConstant(IValue(int64_t{0}), n->sourceRange());
      one = g.insertConstant(IValue(int64_t{1}), n->sourceRange());
      n->replaceInput(0, g.insertConstant(IValue(std::numeric_limits<int64_t>::max()), n->sourceRange()));
      const auto count = constant_as<int64_t>(trips);
      Value* some = count ? g.insertConstant(IValue(*count > 0)) : g.insert(Symbol::aten("gt"), {trips, zero}, {}, n->sourceRange());
      if (!constant_as<bool>(start).value_or(false)) some = g.insert(Symbol::aten("__and__"), {some, start}, {}, n->sourceRange());
      n->replaceInput(1, some);
    }
    n->addInput(zero);
    n->addOutput()->setType(integer);
    Value* index = body->addInput()->setType(integer);
    body->inputs()[0]->replaceAllUsesWith(index);
    const WithInsertPoint here(body);
    Value* next = g.insert(Symbol::aten("add"), {index, one}, {}, n->sourceRange());
    Value* more = g.insert(Symbol::aten("lt"), {next, trips}, {}, n->sourceRange());
    body->replaceOutput(0, g.insert(Symbol::aten("__and__"), {more, body->outputs()[0]}, {}, n->sourceRange()));
    body->registerOutput(next);
  }
}

}  // namespace cresset::jit
