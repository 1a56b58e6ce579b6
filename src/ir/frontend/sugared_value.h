// Things that exist while a script is compiled: modules, functions, types, namespaces, iterables. The emitter asks them; what they cannot
// do raises ScriptError with the place. Derive from SugaredValue to give the compiler new things (the bindings do for Python objects).
#pragma once

#include <optional>

#include "ir/frontend/frontend.h"

namespace cresset::jit {

/// An argument of a call: a value of the graph or a thing of the compiler, and where it stands.
struct CallArgument {
  SourceRange range;
  SugaredValuePtr value;
  std::string name;  // of a keyword argument
};

/// Tensor as the type of a parameter that is not annotated: equal to the plain type; messages tell it apart by its identity.
CRESSET_API const TypePtr& inferred_tensor();
/// The spelling of annotations; "Tensor (inferred)".
CRESSET_API std::string type_words(const TypePtr& t);
/// "Inferred … to be of type 'Tensor' because it was not annotated with an explicit type."
CRESSET_API std::string inferred_words(const std::string& what);

class CRESSET_API SugaredValue : public std::enable_shared_from_this<SugaredValue> {
 public:
  virtual ~SugaredValue() = default;
  /// For messages: "module", "built-in function", "value of type 'int'".
  virtual std::string kind() const = 0;
  /// A value of the graph, where one is needed; raises when there is none.
  virtual Value* asValue(const SourceRange& range, GraphFunction& m);
  /// The value, when this is nothing but a value of the graph: such things can be variables that branches and loops change.
  virtual Value* plainValue() const { return nullptr; }
  /// A type, where one is needed (isinstance, annotate, List[...]); null when it is none.
  virtual TypePtr asType() const { return nullptr; }
  /// The types of the objects that a script can have of this class, where isinstance asks: a class of modules has one for each kind of
  /// module that was compiled. Nothing when this is no such class.
  virtual std::optional<std::vector<TypePtr>> asTypes() const { return std::nullopt; }
  /// A constant known while compiling, when it is one (also modules' constants, None).
  virtual std::optional<IValue> asConstant() const { return std::nullopt; }
  virtual SugaredValuePtr attr(const SourceRange& range, GraphFunction& m, const std::string& field);
  virtual bool hasAttr(const SourceRange& range, GraphFunction& m, const std::string& field);
  virtual void setAttr(const SourceRange& range, GraphFunction& m, const std::string& field, Value* v);
  virtual SugaredValuePtr call(const SourceRange& range, GraphFunction& m, const std::vector<CallArgument>& args,
                               const std::vector<CallArgument>& kwargs, std::size_t results);
  virtual SugaredValuePtr getitem(const SourceRange& range, GraphFunction& m, const SugaredValuePtr& index, const TypePtr& hint = nullptr);
  /// Its parts, when their number is known while compiling (tuples, module lists).
  virtual std::vector<SugaredValuePtr> asTuple(const SourceRange& range, GraphFunction& m, std::optional<std::size_t> size = std::nullopt);
  /// What `for` goes over: itself, or another thing with len and getitem.
  virtual SugaredValuePtr iter(const SourceRange& range, GraphFunction& m);
  /// The number of elements, when it is known while compiling: loops over it are unrolled.
  virtual std::optional<std::size_t> staticLen() const { return std::nullopt; }
  virtual Value* len(const SourceRange& range, GraphFunction& m);
  /// `with`: methods __enter__ and __exit__ by default through attr().
  virtual SugaredValuePtr enter(const SourceRange& range, GraphFunction& m);
  virtual void exit(const SourceRange& range, GraphFunction& m);
};

/// The common ones.
CRESSET_API SugaredValuePtr simple_value(Value* v);
/// A constant; emitted where it is used as a value. Raises when asked for a value that cannot be a constant.
CRESSET_API SugaredValuePtr constant_value(IValue v);
/// An operator by kind ("aten::relu"), optionally with its first argument bound.
CRESSET_API SugaredValuePtr builtin_function(Symbol kind, Value* self = nullptr);
/// A compiled (or declared) function: a CallFunction node on it.
CRESSET_API SugaredValuePtr function_value(intrusive_ptr<Function> f);
/// A method: a CallMethod node.
CRESSET_API SugaredValuePtr method_value(Value* self, std::string name);
/// A class, enum or named tuple: calling makes an object, attr gives enumerators and static things.
CRESSET_API SugaredValuePtr class_value(TypePtr type);
/// A type of the language: int, float, List, Optional[...].
CRESSET_API SugaredValuePtr type_value(TypePtr type);
/// FloatTensor and its kin.
CRESSET_API SugaredValuePtr legacy_constructor(ScalarType dtype);
/// Parts that are things of the compiler; asValue makes a tuple.
CRESSET_API SugaredValuePtr tuple_value(std::vector<SugaredValuePtr> parts);
/// A special form of the language by name: print, len, range, enumerate, zip, isinstance, annotate, getattr, hasattr, fork, wait, ... Null
/// for other names.
CRESSET_API SugaredValuePtr special_form(const std::string& name);
/// A namespace of operators: attr("relu") is builtin_function("<ns>::relu").
CRESSET_API SugaredValuePtr operator_namespace(std::string ns);

/// What the program that a class comes from knows of its objects beside attributes and methods (static methods), or why scripts cannot
/// have it; null for nothing. `self` is the object.
using ObjectMembers = std::function<SugaredValuePtr(Value* self, const std::string& field, const SourceRange& range, GraphFunction& m)>;
/// Python's, set once when its bindings are loaded.
CRESSET_API void set_object_members(ObjectMembers members);

[[noreturn]] CRESSET_API void script_error(const SourceRange& range, const std::string& message);

}  // namespace cresset::jit
