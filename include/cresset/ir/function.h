// Functions: a graph with a name and a schema, compiled when first called. CompilationUnit: functions and classes by name.
#pragma once

#include <memory>
#include <mutex>
#include <shared_mutex>

#include <cresset/base/fork.h>
#include <cresset/ir/class_type.h>
#include <cresset/ir/ir.h>

namespace cresset::jit {

class Code;
class CompilationUnit;
class Resolver;
/// What free names of a source text mean. Null: torch and cresset, math, and what the unit defines.
using ResolverPtr = std::shared_ptr<Resolver>;
inline ResolverPtr nativeResolver() { return nullptr; }

/// Whose methods a source text's functions are.
struct Self {
  virtual ~Self() = default;
  virtual ClassTypePtr getClassType() const = 0;
};
struct SimpleSelf final : Self {
  explicit SimpleSelf(ClassTypePtr type) : type_(std::move(type)) {}
  ClassTypePtr getClassType() const override { return type_; }

 private:
  ClassTypePtr type_;
};

/// Something callable. Most are GraphFunctions; extensions may add functions written in C++.
class CRESSET_API Function : public ivalue::FunctionBase {
 public:
  explicit Function(std::string qualified_name) : name_(std::move(qualified_name)) {}
  const FunctionName& qualname() const final { return name_; }
  /// The part behind the last dot.
  std::string name() const { return name_.substr(name_.rfind('.') + 1); }
  virtual const FunctionSchema& getSchema() const = 0;
  /// Raises for functions whose schema is part of them.
  virtual void setSchema(FunctionSchema schema);
  const std::string& doc_string() const { return doc_; }
  /// Takes the arguments off the stack and leaves the result.
  virtual void run(Stack& stack) = 0;
  /// Null for functions that have no graph.
  virtual std::shared_ptr<Graph> graph() const { return nullptr; }
  /// Compiled code of a graph; null for functions that have none.
  virtual std::shared_ptr<const Code> code() { return nullptr; }
  IValue operator()(Stack arguments);
  IValue operator()(Stack arguments, const std::unordered_map<std::string, IValue>& kwargs);
  void run(Stack&& stack) { run(stack); }
  std::size_t num_inputs() const { return getSchema().arguments().size(); }
  bool isGraphFunction() const { return graph() != nullptr; }
  /// Arguments in the schema's order with defaults filled in; raises for missing and superfluous ones.
  void checkAndNormalize(Stack& arguments, const std::vector<std::pair<std::string, IValue>>& kwargs) const;
  /// The unit that it is registered in, which owns the classes and functions that it mentions; may be null.
  std::shared_ptr<CompilationUnit> unit() const { return unit_.lock(); }

 protected:
  std::string doc_;

 private:
  friend class CompilationUnit;
  FunctionName name_;
  std::weak_ptr<CompilationUnit> unit_;
};

/// A function with a graph. The graph may be given at once or by a creator that runs at the first look (lazy compilation, recursion).
class CRESSET_API GraphFunction final : public Function {
 public:
  GraphFunction(std::string qualified_name, std::shared_ptr<Graph> graph, std::function<void(GraphFunction&)> creator = nullptr);
  const FunctionSchema& getSchema() const override;
  /// By default the graph's inputs and outputs give the schema.
  void setSchema(FunctionSchema schema) override;
  std::shared_ptr<Graph> graph() const override;
  void setGraph(std::shared_ptr<Graph> graph);
  void ensure_defined() const;
  void run(Stack& stack) override;
  std::shared_ptr<const Code> code() override;
  /// Forgets compiled code; needed after the graph was changed.
  void invalidate();
  /// The graph that runs: with calls inlined and cleaned up. A copy.
  std::shared_ptr<Graph> optimized_graph() const;
  void clear_optimized_graphs() { invalidate(); }

 private:
  friend class CompilationUnit;
  /// The unit, and with it what the creator needs, is gone.
  void leave_unit();
  mutable ForkSafe<std::recursive_mutex> mutex_;
  mutable std::shared_ptr<Graph> graph_;
  mutable std::function<void(GraphFunction&)> creator_;
  mutable bool creating_ = false;
  mutable std::optional<FunctionSchema> schema_;
  struct Compiled;
  std::shared_ptr<const Compiled> compiled_;
};

/// A function written in C++, with a schema of its own: methods of C++ classes, for example.
class CRESSET_API BuiltinOpFunction final : public Function {
 public:
  /// `function` takes its arguments off the stack and leaves the result.
  BuiltinOpFunction(QualifiedName name, FunctionSchema schema, std::function<void(Stack&)> function, std::string doc = {});
  const FunctionSchema& getSchema() const override { return schema_; }
  void setSchema(FunctionSchema schema) override { schema_ = std::move(schema); }
  void run(Stack& stack) override { function_(stack); }
  using Function::run;

 private:
  FunctionSchema schema_;
  std::function<void(Stack&)> function_;
};

/// A C++ class of an extension by "__torch__.torch.classes.ns.Name", with its methods as functions, which take the object first; null when
/// none is registered. It belongs to a unit of its own.
CRESSET_API ClassTypePtr getCustomClass(const std::string& name);

/// The function as one with a graph; raises for others.
CRESSET_API GraphFunction& toGraphFunction(Function& f);
CRESSET_API const GraphFunction& toGraphFunction(const Function& f);
/// Null for functions without a graph.
CRESSET_API GraphFunction* tryToGraphFunction(Function& f);

/// The schema of a graph: its inputs' names and types, its outputs' types.
CRESSET_API FunctionSchema schema_of_graph(const Graph& g, const std::string& name);

/// Functions and classes by name, which it owns. Whoever keeps a function or a type beyond the unit keeps only what needs no other one
/// of the unit: objects, and Python's handles, own it. It has to be made by std::make_shared when it is to have classes.
class CRESSET_API CompilationUnit : public std::enable_shared_from_this<CompilationUnit> {
 public:
  CompilationUnit() = default;
  /// With the functions of a source text.
  explicit CompilationUnit(const std::string& source) { define(source); }
  ~CompilationUnit();
  CompilationUnit(const CompilationUnit&) = delete;
  intrusive_ptr<Function> find_function(std::string_view qualified_name) const;
  Function& get_function(std::string_view qualified_name) const;
  intrusive_ptr<GraphFunction> create_function(std::string qualified_name, std::shared_ptr<Graph> graph, bool mangle = false,
                                               std::function<void(GraphFunction&)> creator = nullptr);
  void register_function(intrusive_ptr<Function> f);
  void drop_function(std::string_view qualified_name);
  /// The same; raises when there is none. The class, where it is one's method, has to forget it first (ClassType::unsafeRemoveMethod).
  void unsafeRemoveMethod(const QualifiedName& name);
  std::vector<intrusive_ptr<Function>> functions() const;
  void register_type(TypePtr named);
  void drop_type(std::string_view qualified_name);
  /// Class, interface, enum or named tuple; null when unknown.
  TypePtr find_type(std::string_view qualified_name) const;
  std::shared_ptr<ClassType> find_class(std::string_view qualified_name) const;
  TypePtr get_type(std::string_view qualified_name) const { return find_type(qualified_name); }
  std::shared_ptr<ClassType> get_class(std::string_view qualified_name) const { return find_class(qualified_name); }
  std::shared_ptr<InterfaceType> get_interface(std::string_view qualified_name) const;
  /// The functions, as long as the unit lives.
  std::vector<Function*> get_functions() const;
  /// The same name, or a mangled one when it is taken.
  std::string mangle(const std::string& qualified_name) const;
  TypeResolver resolver() const;
  /// Compiles all functions and classes of a source text; names that it does not define are those of torch, cresset, math and this unit.
  /// When something is wrong, an error shows the place and the unit stays as it was.
  void define(const std::string& source, const std::string& filename = "<string>");
  /// Compiles the functions of a text as "<prefix>.<name>", as methods of the class of `self` where there is one. Gives them in order.
  std::vector<Function*> define(const std::optional<QualifiedName>& prefix, const std::string& source, const ResolverPtr& resolver,
                                const Self* self);
  /// Calls a function: run_method("f", tensor, 3).
  template <class... A>
  IValue run_method(std::string_view name, A&&... arguments) {
    return get_function(name)(Stack{IValue(std::forward<A>(arguments))...});
  }

 private:
  /// Breaks the cycles that a type of this unit is part of.
  static void take_apart(const TypePtr& type);
  mutable ForkSafe<std::shared_mutex> mutex_;
  std::vector<intrusive_ptr<Function>> functions_;
  std::unordered_map<std::string, std::size_t> function_index_;
  std::unordered_map<std::string, TypePtr> types_;
};

/// A unit with the functions and classes of a source text.
CRESSET_API std::shared_ptr<CompilationUnit> compile(const std::string& source);

/// Calls on objects of scripts' classes: `object.method(arguments...)`.
CRESSET_API IValue call_method(const intrusive_ptr<ivalue::Object>& object, const std::string& method, Stack arguments);

}  // namespace cresset::jit
