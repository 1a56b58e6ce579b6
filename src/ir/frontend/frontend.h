// The script compiler as its users see it: Python's jit.script, source text given to CompilationUnit, and archives.
//
// One parser reads source text (a subset of Python); the emitter turns trees into graphs, driven by SugaredValues
// (sugared_value.h): things that exist while compiling. Free names are looked up by a Resolver.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include <cresset/ir/function.h>

namespace cresset::jit {

class SugaredValue;
using SugaredValuePtr = std::shared_ptr<SugaredValue>;
struct FunctionDefinition;

/// Finds what a free name means. Null: unknown to this resolver.
class CRESSET_API Resolver {
 public:
  virtual ~Resolver() = default;
  virtual SugaredValuePtr resolveValue(const std::string& name, GraphFunction& m, const SourceRange& range) = 0;
  /// A name in an annotation ("MyClass", "pkg.MyClass", an alias of List[int]).
  virtual TypePtr resolveType(const std::string& name, const SourceRange& range) = 0;
};
using ResolverPtr = std::shared_ptr<Resolver>;

/// The names of a program without Python: torch and cresset (operators, dtypes, constants), ops, math, inf, nan; classes and functions
/// of the unit by their names. The unit is not owned: its functions hold their resolvers.
CRESSET_API ResolverPtr native_resolver(const CompilationUnit& unit);

/// Gives what `self` means in a method from the value of its first argument. Empty: a plain value of the class.
using SelfFactory = std::function<SugaredValuePtr(Value* self)>;

/// One function or method to compile.
struct Definition {
  std::shared_ptr<const FunctionDefinition> tree;  // from parse_function
  ResolverPtr resolver;
  /// Evaluated defaults of parameters, by name; a default without one here is evaluated as a constant expression of the text.
  std::unordered_map<std::string, IValue> defaults;
  /// Types that take the place of annotations (monkeytype-style inference, overloads), by parameter name; "return" for the result.
  std::unordered_map<std::string, TypePtr> types;
  /// Name to define it under; the def's own name when empty.
  std::string name;
};

/// The first `def` of a text, its decorators skipped; the text may be indented. Raises SyntaxError-like errors with line and caret.
CRESSET_API std::shared_ptr<const FunctionDefinition> parse_function(const std::shared_ptr<const Source>& source);
CRESSET_API const std::string& function_name(const FunctionDefinition& f);
CRESSET_API std::vector<std::string> parameter_names(const FunctionDefinition& f);

/// Declares the functions as "<prefix>.<name>" (names stay when prefix is empty) and compiles them; they may call one another and
/// themselves where PyTorch allows it. Methods: `owner` is their class, which gets them. A failed compilation leaves unit and class as they
/// were.
CRESSET_API std::vector<intrusive_ptr<GraphFunction>> define_functions(CompilationUnit& unit, const std::string& prefix,
                                                                       const std::vector<Definition>& definitions,
                                                                       const ClassTypePtr& owner = nullptr,
                                                                       const SelfFactory& self = nullptr);
/// The same without compiling: each is compiled when its schema or graph is first asked for.
CRESSET_API std::vector<intrusive_ptr<GraphFunction>> declare_functions(CompilationUnit& unit, const std::string& prefix,
                                                                        const std::vector<Definition>& definitions,
                                                                        const ClassTypePtr& owner = nullptr,
                                                                        const SelfFactory& self = nullptr);

/// All functions and classes (also NamedTuple, Enum, interfaces) of a source text, under a prefix. What archives and
/// CompilationUnit::define use: classes state their attributes as annotations, `__parameters__`, `__buffers__`, and constants with `Final`.
CRESSET_API void define_source(CompilationUnit& unit, const std::string& prefix, const std::shared_ptr<const Source>& source,
                               const ResolverPtr& resolver = nullptr);

/// The type of an annotation's text ("Optional[List[int]]", "'Foo'").
CRESSET_API TypePtr parse_annotation(const std::string& text, const ResolverPtr& resolver, const SourceRange& range = {});

/// An error of a script: message, the user's line with a mark below, and the calls that led to compiling it.
class CRESSET_API ScriptError : public Error {
 public:
  ScriptError(const SourceRange& range, const std::string& message);
  ~ScriptError() override;
  ScriptError(const ScriptError&) = default;
};
/// A part of Python that scripts do not have; Python's cresset.jit.frontend has classes of these names.
class CRESSET_API NotSupportedError : public ScriptError {
 public:
  using ScriptError::ScriptError;
  ~NotSupportedError() override;
  NotSupportedError(const NotSupportedError&) = default;
};
/// A whole kind of statement or expression.
class CRESSET_API UnsupportedNodeError final : public NotSupportedError {
 public:
  using NotSupportedError::NotSupportedError;
  ~UnsupportedNodeError() override;
  UnsupportedNodeError(const UnsupportedNodeError&) = default;
};

}  // namespace cresset::jit
