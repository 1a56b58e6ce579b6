// The registry of operators by kind: rows of built-in functions and the dispatcher's operators behind them.
#include <cresset/base/fork.h>
#include <cresset/ir/operator.h>
#include <cresset/ir/register_operators.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <mutex>
#include <set>

#include "dispatch/tags.h"
#include "ir/graph/kinds.h"
#include "ir/graph/loose_match.h"
#include "ir/operators/alias_kinds.h"
#include "ir/operators/builtins.h"

namespace cresset::jit {
namespace {

std::atomic<bool> contradiction{false};
void note_contradiction(AliasAnalysisKind kind, const FunctionSchema& schema) {
  if (contradict(kind, schema)) contradiction.store(true, std::memory_order_relaxed);
}

// Facts of the dispatcher's operators come from their rows: tags and the schema's marks.
OperatorFacts facts_of(const OperatorHandle& op) {
  OperatorFacts f;
  f.alias = op.schema().alias_analysis();
  note_contradiction(f.alias, op.schema());
  f.nondeterministic = has_tag(op, "nondeterministic_seeded");
  // Without results and without arguments that are written, an operator is there for what it does besides: an assertion raises.
  const bool only_acts =
      op.schema().returns().empty() && std::ranges::none_of(op.schema().arguments(), [](const Argument& a) { return a.is_mutable(); });
  f.side_effects = f.alias == AliasAnalysisKind::CONSERVATIVE || only_acts || has_tag(op, "side_effects");
  return f;
}

// prim::EnumValue's overloads differ in the result only.
bool gives_another_enum_value(const Node& n, const FunctionSchema& schema) {
  return n.kind() == prim::EnumValue && n.outputs().size() == 1 && !n.output()->type()->is_subtype_of(*schema.returns()[0].type);
}

// Nodes do not say which inputs were given by keyword: max(a, b) has the inputs of max(a, out=b).
bool writes_to_out(const FunctionSchema& schema) {
  const auto& arguments = schema.arguments();
  return std::any_of(arguments.begin(), arguments.end(), [](const Argument& a) { return a.is_out(); });
}

class Registry {
 public:
  static Registry& get() {
    static Registry* r = new Registry;
    return *r;
  }

  void add(const BuiltinRow* rows, std::size_t count) {
    const std::lock_guard lock(mutex_);
    for (std::size_t i = 0; i < count; ++i) {
      const std::string_view schema = rows[i].schema;
      rows_[std::string(schema.substr(0, std::min(schema.find('('), schema.find('.'))))].push_back(rows[i]);
    }
    found_.clear();
    ++generation_;
  }

  std::vector<const Operator*> of(Symbol kind) {
    const std::lock_guard lock(mutex_);
    return list(kind);
  }

  /// An operator of a program's, found in front of the dispatcher's until the pointer goes.
  std::shared_ptr<const Operator> add(Operator op) {
    const std::lock_guard lock(mutex_);
    return {&keep(std::move(op)), [this](const Operator* gone) {
              const std::lock_guard removing(mutex_);
              std::erase(registered_[std::string(gone->schema().name())], gone);
              ++generation_;
            }};
  }

  const Operator* fitting(const Node& n) {
    const std::vector<const Operator*>* overloads;
    {
      const std::lock_guard lock(mutex_);
      overloads = &list(n.kind());
    }
    const Operator* loose = nullptr;
    for (const Operator* op : *overloads) {
      if (!inputs_match_schema(n, op->schema())) continue;
      if (!takes_bool_as_number(op->schema(), n.inputs()) && !gives_another_enum_value(n, op->schema()) && !writes_to_out(op->schema()))
        return op;
      if (!loose) loose = op;
    }
    return loose;
  }

  std::vector<std::string> kinds() {
    std::set<std::string> names;
    {
      const std::lock_guard lock(mutex_);
      for (const auto& [name, rows] : rows_) names.insert(name);
      for (const auto& [name, operators] : registered_)
        if (!operators.empty()) names.insert(name);
    }
    for (const OperatorName& name : Dispatcher::singleton().getAllOpNames()) names.insert(name.name);
    return {names.begin(), names.end()};
  }

  uint64_t generation() const { return generation_.load(std::memory_order_acquire); }

 private:
  // Hears of definitions under the dispatcher's lock: only counts.
  struct Listener final : OpRegistrationListener {
    explicit Listener(Registry& r) : registry(r) {}
    void onOperatorRegistered(const OperatorHandle&) override { registry.generation_.fetch_add(1, std::memory_order_acq_rel); }
    void onOperatorDeregistered(const OperatorHandle&) override { registry.generation_.fetch_add(1, std::memory_order_acq_rel); }
    Registry& registry;
  };
  Registry() {
    register_all_builtins([this](const BuiltinRow* rows, std::size_t count) { add(rows, count); });
    for (Operator& op : node_operators()) keep(std::move(op));
    listening_ = Dispatcher::singleton().addRegistrationListener(std::make_unique<Listener>(*this));
  }

  // Under the lock. The objects stay for ever.
  const Operator& keep(Operator op) {
    const Operator& kept = of_nodes_.emplace_back(std::move(op));
    registered_[std::string(kept.schema().name())].push_back(&kept);
    ++generation_;
    return kept;
  }

  // Lists are kept for ever, since nodes point to operators; a new generation makes new lists.
  const std::vector<const Operator*>& list(Symbol kind) {
    const uint64_t now = generation();
    Entry& e = found_[kind];
    if (e.operators && e.generation == now) return *e.operators;
    std::vector<const Operator*> fresh;
    const std::string& name = kind.toQualString();
    if (const auto rows = rows_.find(name); rows != rows_.end())
      for (const BuiltinRow& row : rows->second) fresh.push_back(builtin(row));
    const auto registered = registered_.find(name);
    if (registered != registered_.end()) fresh.insert(fresh.end(), registered->second.begin(), registered->second.end());
    const auto is_there = [&](const OperatorHandle& handle) {
      return registered != registered_.end() &&
             std::ranges::any_of(registered->second, [&](const Operator* op) { return op->schema() == handle.schema(); });
    };
    for (const OperatorHandle& handle : Dispatcher::singleton().overloadsOf(name))
      if (!is_there(handle)) fresh.push_back(dispatched(handle));
    if (!e.operators || *e.operators != fresh) {
      lists_.push_back(std::move(fresh));
      e.operators = &lists_.back();
    }
    e.generation = now;
    return *e.operators;
  }
  const Operator* builtin(const BuiltinRow& row) {
    std::unique_ptr<Operator>& op = builtins_[row.schema];
    if (!op) op = std::make_unique<Operator>(parse_schema(row.schema), row.function, row.facts);
    return op.get();
  }
  static bool same(const FunctionSchema& a, const FunctionSchema& b) { return a == b && a.alias_analysis() == b.alias_analysis(); }
  // An operator that was defined anew with another schema is another object.
  const Operator* dispatched(const OperatorHandle& handle) {
    std::vector<std::unique_ptr<Operator>>& versions = dispatched_[handle.entry()];
    if (versions.empty() || !same(versions.back()->schema(), handle.schema())) versions.push_back(std::make_unique<Operator>(handle));
    return versions.back().get();
  }

  struct Entry {
    const std::vector<const Operator*>* operators = nullptr;
    uint64_t generation = 0;
  };
  ForkSafe<std::recursive_mutex> mutex_;
  std::atomic<uint64_t> generation_{1};
  std::unordered_map<std::string, std::vector<BuiltinRow>> rows_;
  std::unordered_map<Symbol, Entry> found_;
  std::deque<std::vector<const Operator*>> lists_;
  std::unordered_map<std::string, std::unique_ptr<Operator>> builtins_;
  std::unordered_map<const void*, std::vector<std::unique_ptr<Operator>>> dispatched_;
  std::deque<Operator> of_nodes_;
  std::unordered_map<std::string, std::vector<const Operator*>> registered_;  // of these, by kind
  RegistrationHandleRAII listening_;
};

}  // namespace

Operator::Operator(FunctionSchema schema, Builtin function, OperatorFacts facts)
    : schema_(std::move(schema)), function_(function.on_stack), facts_(facts), in_place_(function.in_place) {}
Operator::Operator(OperatorHandle handle) : schema_(handle.schema()), handle_(handle), facts_(facts_of(handle)) {}

Operator::Operator(FunctionSchema schema, Operation operation) : schema_(std::move(schema)), operation_(std::move(operation)) {
  facts_.alias = schema_.has_alias_analysis() ? schema_.alias_analysis() : AliasAnalysisKind::CONSERVATIVE;
  facts_.side_effects = facts_.alias == AliasAnalysisKind::CONSERVATIVE;
  note_contradiction(facts_.alias, schema_);
}
bool some_alias_kinds_contradict() { return contradiction.load(std::memory_order_relaxed); }
namespace {
FunctionSchema with_kind(FunctionSchema schema, AliasAnalysisKind alias) {
  schema.set_alias_analysis(alias);
  return schema;
}
Operation without_node(const OperationCreator& creator) {
  return [creator](Stack& stack) { creator(nullptr)(stack); };
}
OperatorPtr as_shared(const Operator* op) { return OperatorPtr(std::shared_ptr<void>(), const_cast<Operator*>(op)); }
}  // namespace
Operator::Operator(const std::string& schema, Operation operation, AliasAnalysisKind alias)
    : Operator(with_kind(parse_schema(schema), alias), std::move(operation)) {}
Operator::Operator(std::string name, std::string overload_name, std::vector<Argument> arguments, std::vector<Argument> returns,
                   Operation operation, AliasAnalysisKind alias)
    : Operator(with_kind(FunctionSchema(std::move(name), std::move(overload_name), std::move(arguments), std::move(returns)), alias),
               std::move(operation)) {}
Operator::Operator(const std::string& schema, OperationCreator creator, AliasAnalysisKind alias)
    : Operator(schema, without_node(creator), alias) {
  creator_ = std::move(creator);
}
Operator::Operator(std::string name, std::string overload_name, std::vector<Argument> arguments, std::vector<Argument> returns,
                   OperationCreator creator, AliasAnalysisKind alias)
    : Operator(std::move(name), std::move(overload_name), std::move(arguments), std::move(returns), without_node(creator), alias) {
  creator_ = std::move(creator);
}
Operator::Operator(Symbol name, OperationCreator creator, AliasAnalysisKind alias)
    : Operator(with_kind(FunctionSchema(name.toQualString(), "", {}, {}, /*is_vararg=*/true, /*is_varret=*/true), alias),
               without_node(creator)) {
  creator_ = std::move(creator);
}

namespace {
struct OperationKernel final : OperatorKernel {
  explicit OperationKernel(Operation o) : operation(std::move(o)) {}
  void operator()(const OperatorHandle&, DispatchKeySet, Stack* stack) { operation(*stack); }
  Operation operation;
};
}  // namespace
RegisterOperators::RegisterOperators(std::vector<Operator> operators) {
  for (Operator& op : operators) {
    const FunctionSchema& schema = op.schema();
    if (op.creates_operations()) of_nodes_.push_back(Registry::get().add(op));
    if (schema.is_vararg()) continue;
    Library& library =
        blocks_.emplace_back(Library::FRAGMENT, std::string(schema.operator_name().ns()), std::nullopt, "RegisterOperators", 0);
    library.def(schema);
    library.impl(schema.operator_name().str(),
                 CppFunction(KernelFunction::makeFromBoxedFunctor(make_intrusive<OperationKernel>(std::move(op.operation_)))));
  }
}

RegisterOperators::RegisterOperators(std::initializer_list<std::optional<Operator>> operators)
    : RegisterOperators([&] {
        std::vector<Operator> present;
        for (const auto& op : operators)
          if (op) present.push_back(*op);
        return present;
      }()) {}

const std::vector<OperatorPtr> getAllOperatorsFor(Symbol kind) {
  std::vector<OperatorPtr> out;
  for (const Operator* op : operators_of(kind)) out.push_back(as_shared(op));
  return out;
}
std::vector<OperatorPtr> getAllOperators() {
  std::vector<OperatorPtr> out;
  for (const std::string& kind : operator_kinds())
    for (const Operator* op : operators_of(Symbol::fromQualString(kind))) out.push_back(as_shared(op));
  return out;
}
OperatorPtr findOperatorFor(const OperatorName& name) {
  const Operator* op = find_operator(name.str());
  return op ? as_shared(op) : nullptr;
}
OperatorPtr getOperatorForLiteral(const char* schema) {
  const Operator* op = find_operator(parsed_schema(schema).operator_name().str());
  CRESSET_CHECK(op, "Couldn't find an operator for ", schema, ". Do you have to update a set of hardcoded JIT ops?");
  return as_shared(op);
}
std::string canonicalSchemaString(const FunctionSchema& schema) {
  std::vector<Argument> returns = schema.returns();
  for (Argument& r : returns) r.name = std::string();
  return schema.cloneWithReturns(std::move(returns)).str();
}
std::vector<Symbol> findSimilarOperators(Symbol kind) {
  const std::string_view wanted = kind.toUnqualString();
  const auto distance = [](std::string_view a, std::string_view b) {
    std::vector<std::size_t> row(b.size() + 1);
    for (std::size_t k = 0; k <= b.size(); ++k) row[k] = k;
    for (std::size_t i = 1; i <= a.size(); ++i) {
      std::size_t diagonal = std::exchange(row[0], i);
      for (std::size_t k = 1; k <= b.size(); ++k)
        diagonal = std::exchange(row[k], std::min({row[k] + 1, row[k - 1] + 1, diagonal + (a[i - 1] != b[k - 1])}));
    }
    return row[b.size()];
  };
  std::vector<std::pair<std::size_t, Symbol>> found;
  for (const std::string& name : operator_kinds()) {
    const Symbol other = Symbol::fromQualString(name);
    const std::size_t d = distance(wanted, other.toUnqualString());
    if (other != kind && d <= 2) found.emplace_back(d, other);
  }
  std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<Symbol> out;
  for (const auto& [d, other] : found) out.push_back(other);
  return out;
}
void OperatorSet::insert(std::initializer_list<const char*> schemas) {
  for (const char* schema : schemas) {
    const OperatorPtr op = getOperatorForLiteral(schema);
    operators_[Symbol::fromQualString(op->schema().name())].push_back(op.get());
  }
}
const Operator* OperatorSet::find(const Node& n) const {
  const auto overloads = operators_.find(n.kind());
  const FunctionSchema* schema = overloads == operators_.end() ? nullptr : n.maybeSchema();
  if (!schema) return nullptr;
  for (const Operator* op : overloads->second)
    if (op->schema().overload_name() == schema->overload_name()) return op;
  return nullptr;
}
std::vector<OperatorPtr> OperatorSet::getOps() const {
  std::vector<OperatorPtr> out;
  for (const auto& [kind, overloads] : operators_)
    for (const Operator* op : overloads) out.push_back(as_shared(op));
  return out;
}

std::vector<const Operator*> operators_of(Symbol kind) { return Registry::get().of(kind); }
const Operator* find_operator_for(const Node& n) { return is_structural(n.kind()) ? nullptr : Registry::get().fitting(n); }
std::vector<std::string> operator_kinds() { return Registry::get().kinds(); }
uint64_t operator_registry_generation() { return Registry::get().generation(); }
void register_builtins(const BuiltinRow* rows, std::size_t count) { Registry::get().add(rows, count); }

const Operator* find_operator(std::string_view name) {
  const std::size_t dot = name.find('.');
  const std::string_view overload = dot == std::string_view::npos ? std::string_view() : name.substr(dot + 1);
  for (const Operator* op : operators_of(Symbol::fromQualString(name.substr(0, dot))))
    if (op->schema().overload_name() == overload) return op;
  return nullptr;
}

const FunctionSchema& parsed_schema(std::string_view text) {
  static ForkSafe<std::mutex> mutex;
  static auto* cache = new std::unordered_map<std::string, std::unique_ptr<FunctionSchema>>;
  const std::lock_guard lock(mutex);
  std::unique_ptr<FunctionSchema>& s = (*cache)[std::string(text)];
  if (!s) s = std::make_unique<FunctionSchema>(parse_schema(text));
  return *s;
}

void raise_no_operator(const Node& n) {
  std::string types;
  for (const Value* v : n.inputs()) types += (types.empty() ? "" : ", ") + v->type()->str();
  const std::vector<const Operator*> candidates = operators_of(n.kind());
  std::string text;
  if (candidates.empty()) {
    text = "Unknown builtin op: " + n.kind().toQualString() +
           ".\nCould not find any operator of this name; register it before the graph is used.";
  } else {
    text = "No overload of " + n.kind().toQualString() + " fits the arguments (" + types + "); there are:";
    for (std::size_t i = 0; i < std::min<std::size_t>(candidates.size(), 8); ++i) text += "\n  " + candidates[i]->schema().str();
    if (candidates.size() > 8) text += "\n  and " + std::to_string(candidates.size() - 8) + " more";
  }
  text += "\nin " + n.str();
  if (n.sourceRange().known()) text += "\n" + n.sourceRange().highlight();
  throw Error(text);
}

bool is_structural(Symbol kind) { return kind_row(kind).needs == Needs::nothing; }

void check_operators(const Graph& g) {
  g.block()->visit([](Node* n) {
    if (!is_structural(n->kind())) n->getOperator();
    for (const Attribute& a : n->attributes())
      if (const auto* sub = std::get_if<std::shared_ptr<Graph>>(&a.value)) check_operators(**sub);
  });
}

}  // namespace cresset::jit
