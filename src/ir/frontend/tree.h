// The tree of a script: what the parser makes and the emitter reads. Immutable once parsed.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <cresset/dispatch/ivalue.h>
#include <cresset/ir/source_range.h>

namespace cresset::jit {

enum class ExprKind : uint8_t {
  Name,          // text
  Constant,      // value: int, float, complex (imaginary literal), bool, None, str (adjacent literals joined)
  Ellipsis,      // ...
  FormatString,  // f"…": parts are the pieces in order: Constants (str) and FormatPieces
  FormatPiece,   // {expr!r:spec}: parts[0]; text is "!r:spec" as written, usually empty
  Unary,         // text "-", "+", "~", "not"; parts[0]
  Binary,        // text "+", "-", "*", "/", "//", "%", "**", "@", "<<", ">>", "&", "|", "^"; parts[0], parts[1]
  BoolOp,        // text "and", "or"; two or more parts
  Compare,       // operators "<", "==", "is", "is not", "in", "not in", …; one part more than operators
  Conditional,   // parts: condition, then, otherwise
  Attribute,     // parts[0] . text
  Subscript,     // parts[0] [ parts[1..] ]: one part for each index; trailing_comma says that x[i,] was written
  Slice,         // parts: begin, end, step; null where left out
  Call,          // parts[0] ( parts[1..], keywords )
  Starred,       // * parts[0]
  List,
  Tuple,     // parts
  Dict,      // parts: key, value, key, value, …
  ListComp,  // parts: element; generators
  DictComp,  // parts: key, value; generators
  Lambda,
  Set,
  Await,
  Yield,
  Walrus,
  GeneratorExp,
  SetComp  // read, so that the emitter can refuse them at their place
};

struct Expr;
using ExprPtr = std::shared_ptr<const Expr>;

struct Keyword {
  SourceRange range;
  std::string name;  // empty: **value
  ExprPtr value;
};
struct Comprehension {
  ExprPtr target, iterable;
  std::vector<ExprPtr> conditions;
};
struct Expr {
  ExprKind kind;
  SourceRange range;
  std::string text;
  IValue value;
  std::vector<ExprPtr> parts;
  std::vector<std::string> operators;
  std::vector<Keyword> keywords;
  std::vector<Comprehension> generators;
  bool trailing_comma = false;
  uint32_t height = 1;  // of the tree below; bounded, so that trees may be walked by recursion
};

enum class StmtKind : uint8_t {
  Expression,  // value
  Assign,      // targets (several for a = b = v) = value; annotation for x: T = v (value may be null: x: T)
  AugAssign,   // targets[0] text= value ("+", "//", …)
  Return,      // value, null for a bare return
  If,          // value; body; orelse (elif is a nested If)
  While,       // value; body; orelse
  For,         // targets[0] in value; body; orelse
  Assert,      // value, message (may be null)
  Raise,       // value (may be null), message: the `from` part
  Pass,
  Break,
  Continue,
  Delete,       // targets
  With,         // items; body
  FunctionDef,  // function
  Import,
  Global,
  Nonlocal,
  Try,
  ClassDef,
  Async  // read as far as their place is known, so that the emitter can refuse them
};

struct Stmt;
using StmtPtr = std::shared_ptr<const Stmt>;

struct WithItem {
  ExprPtr value, target;  // target may be null
};
struct Stmt {
  StmtKind kind;
  SourceRange range;
  std::string text;
  std::vector<ExprPtr> targets;
  ExprPtr annotation, value, message;
  std::vector<StmtPtr> body, orelse;
  std::vector<WithItem> items;
  std::shared_ptr<const struct FunctionDefinition> function;
};

struct Parameter {
  SourceRange range;
  std::string name;
  ExprPtr annotation, default_value;  // may be null
  enum Kind : uint8_t { Positional, KeywordOnly, VarPositional, VarKeyword } kind = Positional;
};

/// A def. The result of `# type: (int, Tensor) -> Tensor` comments (behind the header or by parameter) is written into the annotations.
struct FunctionDefinition {
  SourceRange range, header;  // the whole, and "def f(…) -> T"
  std::string name;
  std::vector<Parameter> parameters;
  ExprPtr returns;  // may be null
  std::vector<ExprPtr> decorators;
  std::vector<StmtPtr> body;
};

/// A class of a source text (archives; CompilationUnit::define).
struct ClassDefinition {
  SourceRange range;
  std::string name;
  std::vector<ExprPtr> bases, decorators;
  std::vector<StmtPtr> assignments;  // x: T, x: T = v, x = v in order; also `__annotations__["0"] = T`
  std::vector<std::shared_ptr<const FunctionDefinition>> methods;
};

/// A whole source text: definitions in order, and `import` lines and assignments as statements.
struct SourceFile {
  struct Item {
    std::shared_ptr<const FunctionDefinition> function;  // exactly one of the three is set
    std::shared_ptr<const ClassDefinition> type;
    StmtPtr statement;
  };
  std::vector<Item> items;
};

CRESSET_API std::shared_ptr<const SourceFile> parse_source(const std::shared_ptr<const Source>& source);
/// One expression (annotations given as strings, defaults).
CRESSET_API ExprPtr parse_expression(const std::shared_ptr<const Source>& source);

/// Annotations as types (annotations.cpp). Null annotation: Tensor.
class Resolver;
CRESSET_API TypePtr type_of_annotation(const ExprPtr& annotation, Resolver* resolver);

}  // namespace cresset::jit
