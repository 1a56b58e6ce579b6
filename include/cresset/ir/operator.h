// Operators as graphs see them: the dispatcher's, and built-in functions on scalars, strings and containers (builtins_*.cpp).
#pragma once

#include <cresset/dispatch/dispatcher.h>
#include <cresset/ir/ir.h>

namespace cresset::jit {

/// A built-in function: takes its arguments off the stack and leaves its results.
using BuiltinFunction = void (*)(Stack&);
/// The same with the arguments where they are, and one result or none: what the interpreter calls when there is one.
using InPlaceFunction = void (*)(const IValue* const* arguments, IValue& result);
struct Builtin {
  constexpr Builtin(BuiltinFunction stack_function, InPlaceFunction in_place_function = nullptr)
      : on_stack(stack_function), in_place(in_place_function) {}
  BuiltinFunction on_stack;
  InPlaceFunction in_place;
};

/// What analyses may assume of an operator.
struct OperatorFacts {
  bool side_effects = false;      // never removed, duplicated or reordered with others of this kind
  bool nondeterministic = false;  // two calls with the same arguments may differ
  AliasAnalysisKind alias = AliasAnalysisKind::FROM_SCHEMA;
};

/// What runs an operator: takes its arguments off the stack and leaves its results.
class Operation : public std::function<void(Stack&)> {
 public:
  Operation() = default;
  /// None.
  Operation(std::nullptr_t) {}
  /// From what is called with a stack, by reference or pointer. What it gives is not looked at.
  template <class F>
    requires(!std::is_same_v<std::decay_t<F>, Operation> && (std::is_invocable_v<F&, Stack&> || std::is_invocable_v<F&, Stack*>))
  Operation(F f) : std::function<void(Stack&)>(as_function(std::move(f))) {}
  using std::function<void(Stack&)>::operator();
  void operator()(Stack* stack) const { (*this)(*stack); }

 private:
  template <class F>
  static std::function<void(Stack&)> as_function(F f) {
    if constexpr (std::is_invocable_v<F&, Stack&>)
      return [f = std::move(f)](Stack& stack) mutable { f(stack); };
    else
      return [f = std::move(f)](Stack& stack) mutable { f(&stack); };
  }
};

/// Makes what runs one node, when the graph that it stands in is compiled. Asked for what runs the operator without a node, it is given
/// null.
using OperationCreator = std::function<Operation(const Node*)>;

class RegisterOperators;

struct CRESSET_API Operator {
  Operator(FunctionSchema schema, Builtin function, OperatorFacts facts);
  explicit Operator(OperatorHandle handle);
  /// For RegisterOperators: an operator of a program.
  Operator(FunctionSchema schema, Operation operation);
  Operator(const std::string& schema, Operation operation, AliasAnalysisKind alias = AliasAnalysisKind::FROM_SCHEMA);
  Operator(std::string name, std::string overload_name, std::vector<Argument> arguments, std::vector<Argument> returns, Operation operation,
           AliasAnalysisKind alias = AliasAnalysisKind::FROM_SCHEMA);
  Operator(const std::string& schema, OperationCreator creator, AliasAnalysisKind alias = AliasAnalysisKind::FROM_SCHEMA);
  Operator(std::string name, std::string overload_name, std::vector<Argument> arguments, std::vector<Argument> returns,
           OperationCreator creator, AliasAnalysisKind alias = AliasAnalysisKind::FROM_SCHEMA);
  /// For nodes of a kind whatever they are given: those of a fuser, which know by an attribute what they do. Graphs alone have it.
  Operator(Symbol name, OperationCreator creator, AliasAnalysisKind alias = AliasAnalysisKind::CONSERVATIVE);
  const FunctionSchema& schema() const { return schema_; }
  const OperatorFacts& facts() const { return facts_; }
  /// Null for operators of the dispatcher.
  BuiltinFunction function() const { return function_; }
  InPlaceFunction in_place() const { return in_place_; }
  const std::optional<OperatorHandle>& handle() const { return handle_; }
  void call(Stack& stack) const {
    if (function_)
      function_(stack);
    else if (handle_)
      handle_->callBoxed(stack);
    else
      operation_(stack);
  }
  Operation getOperation(const Node* node = nullptr) const {
    if (creator_) return creator_(node);
    return [this](Stack& stack) { call(stack); };
  }
  /// Is what runs a node made for that node?
  bool creates_operations() const { return creator_ != nullptr; }
  AliasAnalysisKind aliasAnalysisKind() const { return facts_.alias; }
  bool isC10Op() const { return handle_.has_value(); }
  bool hasOperation() const { return true; }

 private:
  friend class RegisterOperators;
  FunctionSchema schema_;
  BuiltinFunction function_ = nullptr;
  std::optional<OperatorHandle> handle_;
  OperatorFacts facts_;
  InPlaceFunction in_place_ = nullptr;
  Operation operation_;
  OperationCreator creator_;
};

/// All overloads of a kind, in the order they are tried. The objects live for ever.
CRESSET_API std::vector<const Operator*> operators_of(Symbol kind);
/// The overload with this schema name ("aten::add.Tensor"), or null.
CRESSET_API const Operator* find_operator(std::string_view name);
/// Names of all kinds that have operators, sorted.
CRESSET_API std::vector<std::string> operator_kinds();
/// Grows with every registration: what was looked up before may have changed.
CRESSET_API uint64_t operator_registry_generation();
/// The first overload that fits the node's inputs, or null.
CRESSET_API const Operator* find_operator_for(const Node& n);
/// Raises: the node, where it comes from, and the overloads there are.
[[noreturn]] CRESSET_API void raise_no_operator(const Node& n);
/// A schema's text, parsed once.
CRESSET_API const FunctionSchema& parsed_schema(std::string_view text);

/// Registers built-in functions for as long as it lives: {schema, function}. For operators of extensions use CRESSET_LIBRARY.
struct BuiltinRow {
  const char* schema;
  Builtin function;
  OperatorFacts facts = {};
};
CRESSET_API void register_builtins(const BuiltinRow* rows, std::size_t count);

// ---- under PyTorch's names --------------------------------------------------------------------------------------------

// As shared pointers, which own nothing.
using OperatorPtr = std::shared_ptr<Operator>;
/// Const, so that programs' `auto& all = getAllOperatorsFor(kind)` keeps the list.
CRESSET_API const std::vector<OperatorPtr> getAllOperatorsFor(Symbol kind);
CRESSET_API std::vector<OperatorPtr> getAllOperators();
/// Null for none.
CRESSET_API OperatorPtr findOperatorFor(const OperatorName& name);
/// The operator of a schema's text; raises when there is none.
CRESSET_API OperatorPtr getOperatorForLiteral(const char* schema);
/// The kinds of the same name in other namespaces, and those whose names differ in a letter or two.
CRESSET_API std::vector<Symbol> findSimilarOperators(Symbol kind);
/// The schema's text without names of returns.
CRESSET_API std::string canonicalSchemaString(const FunctionSchema& schema);

/// Some operators, given by their schemas.
class CRESSET_API OperatorSet {
 public:
  OperatorSet() = default;
  OperatorSet(std::initializer_list<const char*> schemas) { insert(schemas); }
  void insert(std::initializer_list<const char*> schemas);
  /// The one that the node calls; null when it calls none.
  const Operator* find(const Node& n) const;
  std::vector<OperatorPtr> getOps() const;

 private:
  std::unordered_map<Symbol, std::vector<const Operator*>> operators_;
};

/// Values by operator.
template <class T>
class OperatorMap {
 public:
  using OpMapType = std::pair<OperatorPtr, T>;
  OperatorMap() = default;
  OperatorMap(std::initializer_list<std::pair<OperatorPtr, T>> entries) { insert(entries); }
  /// By schema: "aten::add.Tensor(…) -> …".
  OperatorMap(std::initializer_list<std::pair<const char*, T>> entries) {
    for (const auto& [schema, value] : entries) insert(getOperatorForLiteral(schema), value);
  }
  void insert(const OperatorPtr& op, T value) { values_.insert_or_assign(op.get(), Entry{op, std::move(value)}); }
  void insert(std::initializer_list<std::pair<OperatorPtr, T>> entries) {
    for (const auto& [op, value] : entries) insert(op, value);
  }
  void erase(const OperatorPtr& op) { values_.erase(op.get()); }
  bool contains(const Operator& op) const { return values_.count(&op) > 0; }
  bool contains(const Node* n) const { return n->maybeOperator() && contains(*n->maybeOperator()); }
  std::optional<T> find(const Operator& op) const {
    const auto found = values_.find(&op);
    return found == values_.end() ? std::nullopt : std::optional<T>(found->second.value);
  }
  std::optional<T> find(const Node* n) const { return n->maybeOperator() ? find(*n->maybeOperator()) : std::nullopt; }
  std::vector<OpMapType> getAllKeysAndValues() const {
    std::vector<OpMapType> out;
    for (const auto& [key, entry] : values_) out.emplace_back(entry.op, entry.value);
    return out;
  }

 private:
  struct Entry {
    OperatorPtr op;
    T value;
  };
  std::unordered_map<const Operator*, Entry> values_;
};

// ---- matching of types and calls --------------------------------------------------------------------------------------

using TypeVariables = std::unordered_map<std::string, TypePtr>;
/// Can a value of type `actual` be passed for `formal`? Binds type variables; says why not when asked.
CRESSET_API bool match_type(const TypePtr& formal, const TypePtr& actual, TypeVariables& variables, std::string* why_not = nullptr);
/// A schema's type as a type of values: variables replaced, named integers (ScalarType, Layout, SymInt) as int. Null when a variable is
/// unbound.
CRESSET_API TypePtr value_type_of(const TypePtr& formal, const TypeVariables& variables);
CRESSET_API bool inputs_match_schema(const Node& n, const FunctionSchema& schema);
/// Types of the outputs that the schema gives for these inputs; empty when they do not match.
CRESSET_API std::vector<TypePtr> output_types(const FunctionSchema& schema, const std::vector<Value*>& inputs);
/// A call node in front of the insertion point (Graph::insert).
CRESSET_API Value* emit_operator_call(Graph& g, Symbol op, const std::vector<Value*>& args,
                                      const std::vector<std::pair<std::string, Value*>>& kwargs, SourceRange range);

/// Strict resolution: raises for the first node, in the order of the program, whose kind has no operator or no overload that fits
/// (structural nodes have none and pass). Permissive users treat such nodes as conservative.
CRESSET_API void check_operators(const Graph& g);
/// Kinds that are part of the IR itself and need no operator.
CRESSET_API bool is_structural(Symbol kind);

}  // namespace cresset::jit
