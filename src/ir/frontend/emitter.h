// The emitter: the tree of one function to a graph. Statements become nodes in order; variables are read and written by pseudo nodes, exits
// are pseudo nodes too. Behind the last statement exit_transform.cpp and ssa.cpp turn both into plain SSA.
#pragma once

#include <functional>

#include "ir/frontend/environment.h"
#include "ir/frontend/tree.h"

namespace cresset::jit {

/// What a condition is and what it says of variables.
struct Condition {
  Value* value = nullptr;     // bool; null when the condition is known while compiling
  std::optional<bool> known;  // then only one arm is compiled
  Refinements when_true, when_false;
};

class Emitter {
 public:
  /// `m` has an empty graph.
  Emitter(const Definition& definition, GraphFunction& m, const SelfFactory& self, const ClassTypePtr& owner);
  /// Fills the graph and gives the schema.
  FunctionSchema run();

 private:
  // Functions (define_functions.cpp).
  void parameters();
  void finish();
  TypePtr annotation(const ExprPtr& e);
  std::optional<IValue> default_of(const Parameter& p, const TypePtr& type);

  // Statements (emit_statement.cpp). `exits` of the innermost frame says that the rest cannot be reached.
  void statements(const std::vector<StmtPtr>& list);
  void statement(const Stmt& s);
  void assignment(const Stmt& s);
  void annotated_assignment(const Stmt& s);
  void assign(const ExprPtr& target, const SugaredValuePtr& value, const ExprPtr& source);
  void unpack(const ExprPtr& target, const SugaredValuePtr& value, const ExprPtr& source);
  void assign_subscript(const Expr& target, Value* value, const SourceRange& range);
  void augmented_assignment(const Stmt& s);
  Value* augmented(const std::string& op, const SourceRange& range, const SugaredValuePtr& left, Value* right, bool& in_place);
  void augmented_subscript(const Stmt& s);
  void remove(const Expr& target);
  void raise(const Stmt& s);
  void assertion(const Stmt& s);
  void raise_exception(const SourceRange& range, Value* message, const std::string& class_name);
  void return_statement(const Stmt& s);
  void leave_loop(const Stmt& s, Symbol kind);

  // Control flow (emit_control_flow.cpp).
  using Arm = std::function<void()>;
  /// An If with statements in its arms.
  void branch(const SourceRange& range, const Condition& c, const Arm& then_arm, const Arm& else_arm);
  /// An If whose arms give values.
  Value* choose(const SourceRange& range, const Condition& c, const std::function<Value*()>& then_value,
                const std::function<Value*()>& else_value, const std::function<std::string(const Type&, const Type&)>& mismatch);
  void while_loop(const Stmt& s);
  void for_loop(const Stmt& s);
  /// Goes over an iterable; `body` gets each element.
  void iterate(const SourceRange& range, const SourceRange& iterable_range, const SugaredValuePtr& iterable,
               const std::set<std::string>& assigned, const std::function<void(const SugaredValuePtr&)>& body);
  void with(const Stmt& s, std::size_t item);
  SugaredValuePtr comprehension(const Expr& e, const TypePtr& hint);
  void comprehension_loop(const Expr& e, std::size_t generator, const std::function<void()>& innermost);

  // Conditions (refinement.cpp).
  Condition condition(const ExprPtr& e);
  Condition condition_of(const SourceRange& range, const SugaredValuePtr& v);
  Condition identity(const Expr& e);
  Condition isinstance(const Expr& call);
  Condition junction(const std::string& word, const SourceRange& range, const std::vector<ExprPtr>& parts, std::size_t begin);
  Value* as_value(const SourceRange& range, const Condition& c);
  Value* to_bool(const SourceRange& range, const SugaredValuePtr& v);

  // Expressions (emit_expression.cpp, emit_subscript.cpp).
  SugaredValuePtr sugared(const ExprPtr& e, const TypePtr& hint = nullptr);
  Value* value(const ExprPtr& e, const TypePtr& hint = nullptr) { return sugared(e, hint)->asValue(e->range, m_); }
  SugaredValuePtr name(const Expr& e);
  SugaredValuePtr unary(const ExprPtr& e);
  SugaredValuePtr binary(const SourceRange& range, const std::string& op, const SugaredValuePtr& a, const SourceRange& ra,
                         const SugaredValuePtr& b, const SourceRange& rb);
  SugaredValuePtr compare(const SourceRange& range, const std::string& op, const ExprPtr& a, const SugaredValuePtr& left, const ExprPtr& b,
                          const SugaredValuePtr& right);
  SugaredValuePtr comparison(const Expr& e);
  SugaredValuePtr conditional(const Expr& e, const TypePtr& hint);
  SugaredValuePtr list(const Expr& e, const TypePtr& hint, bool may_differ = false);
  SugaredValuePtr dict(const Expr& e, const TypePtr& hint);
  SugaredValuePtr tuple(const Expr& e, const TypePtr& hint);
  SugaredValuePtr format_string(const Expr& e);
  SugaredValuePtr call(const Expr& e, const TypePtr& hint);
  bool is_isinstance(const Expr& e) const;
  std::vector<CallArgument> arguments(const std::vector<ExprPtr>& parts, std::size_t begin);
  /// An operator or a method of a class by its magic name.
  SugaredValuePtr operation(const SourceRange& range, Symbol op, const char* magic, const SugaredValuePtr& a, const SourceRange& ra,
                            const SugaredValuePtr& b, const SourceRange& rb);
  SugaredValuePtr builtin(const SourceRange& range, Symbol op, const std::vector<Value*>& args);
  SugaredValuePtr subscript(const Expr& e, const TypePtr& hint);
  SugaredValuePtr tuple_index(const Expr& e, Value* tuple, Value* index);
  SugaredValuePtr tuple_slice(const Expr& e, Value* tuple, const Expr& slice);
  std::vector<ExprPtr> indices_of(const Expr& subscript);
  ExprPtr slice_of(const Expr& name, const std::vector<SugaredValuePtr>& bounds);
  SugaredValuePtr tuple_of_indices(const Expr& subscript);
  std::vector<SugaredValuePtr> static_slice(const SourceRange& range, const std::vector<SugaredValuePtr>& parts, const Expr& slice);
  std::vector<std::size_t> positions(const SourceRange& range, std::size_t size, const Expr& slice);
  /// What indices of a tensor that need no copy give, and the tensors among the indices with the dimensions they stand at.
  std::pair<Value*, std::vector<Value*>> view_of_tensor(const Expr& subscript, Value* tensor);
  Value* index_list(const SourceRange& range, const std::vector<Value*>& tensors);
  Value* tensor_like(const SourceRange& range, Value* v, Value* tensor);
  Value* sliced(const SourceRange& range, Value* v, Value* dim, const Expr& slice);

  Value* constant(const IValue& v, const SourceRange& range);
  /// The value as this type, where the language converts on its own; otherwise the value as it is.
  Value* converted(const SourceRange& range, Value* v, const TypePtr& type);
  /// The value when the thing is a value of the graph or a constant, else null.
  Value* graph_value(const SourceRange& range, const SugaredValuePtr& v);
  Graph& graph() { return *m_.graph(); }
  Node* insert(Symbol kind, const std::vector<Value*>& inputs, std::size_t outputs, const SourceRange& range);
  void set_exits() { names_.top().exits = true; }

  enum class LoopKind { None, Real, Unrolled };
  struct Loop {
    LoopKind kind = LoopKind::None;
    Node* node = nullptr;
  };

  const Definition& definition_;
  const FunctionDefinition& tree_;
  GraphFunction& m_;
  const SelfFactory& self_;
  ClassTypePtr owner_;
  Environment names_;
  Loop loop_;
  std::vector<Argument> arguments_;
  TypePtr declared_result_, result_;  // result_: of the return statements so far; null before the first
  std::size_t depth_ = 0;             // of blocks
};

bool is_python_exception(const std::string& name);
/// The one type of this kind that a hint says, for what is to be of it; null where it says none, or several.
TypePtr only_hint_of(TypeKind kind, const TypePtr& hint);
/// What an error says of a dict whose keys or values do not fit an annotation; "" where both do.
std::string dict_mismatch(const Type& wanted, const Type& found);
/// Names that statements assign, nested ones included.
std::set<std::string> assigned_names(const std::vector<StmtPtr>& body);

/// What way out of a block its end is.
enum class Way : uint8_t { Falls, Some, Leaves, Returns, Raises };
using Ways = std::unordered_map<const Block*, Way>;

/// Removes break, continue and return: what follows one of them is guarded by variables whose names begin with '$'. Gives the blocks whose
/// ends are never reached. The value of the function is the variable "$return" behind it.
Ways transform_exits(Graph& g);
/// Removes prim::Load and prim::Store.
void to_ssa(Graph& g, const Ways& ways);
/// Loops that have both a trip count and a condition become loops with a condition only, which is all that source text can say.
void canonicalize_loops(Graph& g);
/// Constants once and at the front; tuples that are only taken apart, and code without use, go.
void tidy(const std::shared_ptr<Graph>& g);

}  // namespace cresset::jit
