#include "ir/passes/rewrite.h"

#include <cresset/dispatch/dispatcher.h>
#include <cresset/ir/operator.h>

#include "ir/rewrite/type_facts.h"

namespace cresset::jit::rewrite {

// ---- emitting

Value* Emitter::adopt(Value* v, const Node* before) const {
  // Everything that was put in since: constants for left-out arguments too.
  for (Node* n = before->next(); n != at_; n = n->next()) {
    n->setSourceRange(at_->sourceRange())->setScope(at_->scope());
    n->setCallStack(at_->callstack());
  }
  return v;
}

// Arguments behind the star of a schema are given by name.
Value* Emitter::operator()(const char* op, const std::vector<Value*>& args) const {
  const Symbol kind = Symbol::fromQualString(op);
  const Node* before = at_->prev();
  for (const Operator* candidate : operators_of(kind)) {
    const std::vector<Argument>& formals = candidate->schema().arguments();
    if (formals.size() < args.size()) continue;
    TypeVariables variables;
    std::vector<Value*> positional;
    std::vector<std::pair<std::string, Value*>> named;
    bool fits = true;
    for (std::size_t i = 0; i < formals.size() && fits; ++i) {
      if (i >= args.size()) {
        fits = formals[i].default_value.has_value();
      } else {
        fits = match_type(formals[i].type, args[i]->type(), variables);
        if (formals[i].kwarg_only)
          named.emplace_back(formals[i].name, args[i]);
        else
          positional.push_back(args[i]);
      }
    }
    if (fits) return adopt(graph_.insert(kind, positional, named), before);
  }
  return adopt(graph_.insert(kind, args), before);  // raises with the overloads there are
}

Value* Emitter::constant(const IValue& v, const TypePtr& type) const {
  const Node* before = at_->prev();
  const auto made = tryInsertConstant(graph_, v, type);
  CRESSET_CHECK(made, "rewriting ", at_->str(), ": a value that can be a constant was required.");
  return adopt(*made, before);
}

Value* Emitter::integers(const std::vector<int64_t>& v) const { return constant(IValue(v), list_of(basic_type(TypeKind::Int))); }

Value* Emitter::list(const TypePtr& element, const std::vector<Value*>& members) const {
  const Node* before = at_->prev();
  return adopt(graph_.insertNode(graph_.createList(element, members))->output(), before);
}

// ---- nodes

std::vector<Node*> nodes_of(Graph& graph, const std::vector<std::string>& kinds) {
  std::vector<Symbol> wanted;
  for (const std::string& k : kinds) wanted.push_back(Symbol::fromQualString(k));
  std::vector<Node*> out;
  graph.block()->visit([&](Node* n) {
    if (std::find(wanted.begin(), wanted.end(), n->kind()) != wanted.end() && !is_marked(n)) out.push_back(n);
  });
  return out;
}

void replace_value(Value* old, Value* fresh, Aliases* aliases) {
  const bool is_new = fresh->node()->kind() != prim::Param && !fresh->hasDebugName() && !fresh->hasUses();
  if (is_new) {
    if (is_tensor(old) && is_tensor(fresh)) fresh->setType(old->type());
    if (old->hasDebugName()) {
      const std::string name = old->debugName();
      old->setDebugName("");
      fresh->setDebugName(name);
    }
  }
  if (aliases && is_new) aliases->moved(old, fresh);
  old->replaceAllUsesWith(fresh);
}

// One that somebody uses after all stays where it is, in no block; the graph frees it.
Aliases::~Aliases() {
  for (Node* n : buried_)
    if (!n->hasUses()) n->destroy();
}

void Aliases::bury(Node* n) {
  n->removeAllInputs();
  n->removeFromList();
  buried_.push_back(n);
}

bool rewrite_nodes(PassContext& context, const std::vector<std::string>& kinds, const Rule& rule) {
  Aliases aliases(context.graph);
  bool changed = false;
  for (Node* n : nodes_of(*context.graph, kinds)) {
    Value* fresh = rule({n, context, aliases});
    if (!fresh) continue;
    replace_value(n->outputs().at(0), fresh, &aliases);
    aliases.bury(n);
    changed = true;
  }
  return changed;
}

// ---- what is known about values

bool is_tensor(const Value* v) { return v->type()->kind == TypeKind::Tensor; }

bool is_list_of(const Value* v, TypeKind element) { return v->type()->kind == TypeKind::List && v->type()->element()->kind == element; }

namespace {
std::optional<Tensor> constant_tensor(const Value* v) {
  auto constant = toIValue(v);
  if (!constant || !constant->isTensor() || !constant->toTensor().defined()) return std::nullopt;
  return constant->toTensor();
}
}  // namespace

std::optional<ScalarType> dtype_of(const Value* v, const LoweringOptions& options) {
  if (const auto t = constant_tensor(v)) return t->scalar_type();
  const TensorType* type = tensor_facts(v, options);
  return type ? type->dtype : std::nullopt;
}
std::optional<Device> device_of(const Value* v, const LoweringOptions& options) {
  if (const auto t = constant_tensor(v)) return t->device();
  const TensorType* type = tensor_facts(v, options);
  return type ? std::optional<Device>(type->device) : std::nullopt;
}
std::optional<std::size_t> rank_of(const Value* v, const LoweringOptions& options) {
  if (const auto t = constant_tensor(v)) return static_cast<std::size_t>(t->dim());
  const TensorType* type = tensor_facts(v, options);
  return type ? type->dim() : std::nullopt;
}
std::optional<std::vector<int64_t>> sizes_of(const Value* v, const LoweringOptions& options) {
  if (const auto t = constant_tensor(v)) return t->sizes().vec();
  const TensorType* type = tensor_facts(v, options);
  return type ? type->concrete_sizes() : std::nullopt;
}
std::optional<ScalarType> rumoured_dtype(const Value* v) {
  if (const auto t = constant_tensor(v)) return t->scalar_type();
  const TensorType* type = tensor_rumours(v);
  return type ? type->dtype : std::nullopt;
}
std::optional<std::size_t> rumoured_rank(const Value* v) {
  if (const auto t = constant_tensor(v)) return static_cast<std::size_t>(t->dim());
  const TensorType* type = tensor_rumours(v);
  return type ? type->dim() : std::nullopt;
}

namespace {
std::optional<double> number_of(const Value* v) {
  const auto constant = toIValue(v);
  if (!constant) return std::nullopt;
  if (constant->isInt()) return static_cast<double>(constant->toInt());
  if (constant->isDouble()) return constant->toDouble();
  return std::nullopt;
}
}  // namespace

bool is_number(const Value* v, double value) {
  const auto number = number_of(v);
  return number && *number == value;
}
bool same_number(const Value* a, const Value* b) {
  if (a == b) return true;
  const auto x = number_of(a), y = number_of(b);
  return x && y && *x == *y;
}
std::optional<bool> flag_of(const Value* v) { return constant_as<bool>(v); }
std::optional<std::string> string_of(const Value* v) {
  const auto constant = toIValue(v);
  return constant && constant->isString() ? std::optional(constant->toStringRef()) : std::nullopt;
}

std::optional<std::vector<int64_t>> integers_of(const Value* v, Aliases& aliases) {
  if (const auto constant = toIValue(v)) {
    if (!constant->isIntList()) return std::nullopt;
    return constant->toIntVector();
  }
  if (v->node()->kind() != prim::ListConstruct || aliases->hasWriters(v)) return std::nullopt;
  std::vector<int64_t> out;
  for (const Value* member : v->node()->inputs()) {
    const auto i = constant_as<int64_t>(member);
    if (!i) return std::nullopt;
    out.push_back(*i);
  }
  return out;
}

std::optional<std::size_t> length_of(const Value* list, Aliases& aliases) {
  if (const auto constant = toIValue(list)) return constant->isList() ? std::optional(constant->toListRef().size()) : std::nullopt;
  if (list->node()->kind() != prim::ListConstruct || aliases->hasWriters(list)) return std::nullopt;
  return list->node()->inputs().size();
}

bool calls(const Node* n, std::string_view schema_name) {
  const FunctionSchema* s = n->maybeSchema();
  if (!s) return false;
  return s->operator_name().str() == schema_name;
}

// ---- legality

bool write_is_private(const Node* n, AliasDb& aliases) {
  const Value *x = n->input(0), *result = n->output(0);
  const Node* origin = x->node();
  // New memory, made in this block: not an input, a constant, a view, or something a block returned.
  if (origin->kind() == prim::Param || origin->kind() == prim::Constant || origin->owningBlock() != n->owningBlock() ||
      !origin->blocks().empty() || aliases.mayAliasWildcard(x))
    return false;
  for (const Value* operand : origin->inputs())
    if (aliases.mayContainAlias(x, operand)) return false;
  // And nobody else looks at it afterwards or keeps it.
  for (const Use& u : x->uses()) {
    if (u.user == n) {
      if (u.offset != 0) return false;
      continue;
    }
    const Node* place = u.user;
    while (place->owningBlock() != n->owningBlock()) place = place->owningBlock()->owningNode();
    if (!place->isBefore(n) || u.user->kind() == prim::Return || !u.user->blocks().empty() || aliases.isMutable(u.user)) return false;
    for (const Value* out : u.user->outputs())
      if (out != result && aliases.mayContainAlias(out, x)) return false;
  }
  return true;
}

namespace {
struct Reach {
  ValueSet values;      // that may hold the value's memory because they were made from it
  bool caller = false;  // does it get out of the graph?
};
Reach reach_of(const Value* v, AliasDb& aliases) {
  Reach out{{v}};
  std::vector<const Value*> pending{v};
  const auto follow = [&](const Value* next) {
    if (out.values.insert(next).second) pending.push_back(next);
  };
  while (!pending.empty()) {
    const Value* at = pending.back();
    pending.pop_back();
    for (const Use& u : at->uses()) {
      if (u.user->kind() == prim::Return) {
        const Node* owner = u.user->owningBlock()->owningNode();
        if (!owner) {
          out.caller = true;
          continue;
        }
        for (const Value* result : owner->outputs()) follow(result);
        if (owner->kind() == prim::Loop)
          for (const Value* carried : u.user->owningBlock()->inputs()) follow(carried);
        continue;
      }
      for (const Block* b : u.user->blocks())
        for (const Value* carried : b->inputs()) follow(carried);
      for (const Value* result : u.user->outputs())
        if (aliases.mayContainAlias(result, at)) follow(result);
      // Kept in a container or an object that is elsewhere.
      if (u.user->blocks().empty() && aliases.isMutable(u.user)) out.caller = true;
    }
  }
  return out;
}
}  // namespace

bool may_forward(const Value* operand, const Value* result, const PassContext& context, AliasDb& aliases) {
  if (aliases.hasWriters(operand) || aliases.hasWriters(result)) return false;
  if (context.options.outputs_may_alias_inputs) return true;
  const Reach reach = reach_of(result, aliases);
  if (!reach.caller) return true;
  // Then nobody else may give the caller the operand's memory.
  if (aliases.mayAliasWildcard(operand)) return false;
  for (const Value* o : context.graph->outputs())
    if (!reach.values.count(o) && aliases.mayContainAlias(o, operand)) return false;
  return true;
}

bool written_between(const Node* first, const Node* last, const ValueSet& values, AliasDb& aliases) {
  bool written = false;
  for (const Value* v : values) written = written || aliases.hasWriters(v);
  if (!written) return false;
  for (const Node* n = first->next(); n != last; n = n->next())
    if (aliases.writesToAlias(n, values)) return true;
  return false;
}

void destroy_with_operands(Node* n, Aliases& aliases) {
  std::vector<Node*> pending{n};
  while (!pending.empty()) {
    Node* dead = pending.back();
    pending.pop_back();
    if (!dead->inBlockList() || dead->hasUses()) continue;
    std::vector<Node*> operands;
    for (const Value* v : dead->inputs()) {
      Node* o = v->node();
      if (o->kind() == prim::Param || !o->blocks().empty() || o->hasSideEffects() || o->isInplaceOrWrites() || is_marked(o)) continue;
      operands.push_back(o);
    }
    aliases.bury(dead);
    pending.insert(pending.end(), operands.begin(), operands.end());
  }
}

}  // namespace cresset::jit::rewrite
