// Literals of attributes: read first, given a meaning when the attribute's type is known.
#pragma once

#include <cctype>
#include <string>
#include <string_view>
#include <vector>

#include <cresset/ir/ir.h>

#include "ir/text/type_reader.h"

namespace cresset::jit {

struct Literal {
  enum class Kind {
    Int,
    Float,
    Complex,
    String,
    Bool,
    None,
    List,
    Tuple,
    Dict,
    Type,
    Graph,
    Tensor,
    Object,
    Function,
    Display,
    Undefined,
    Annotated,
    EmptyList,
    Name
  };
  Kind kind;
  std::size_t at = 0;
  int64_t i = 0;
  double f = 0;
  std::complex<double> c;
  std::string s;               // text; name of a graph, constant, function or enumerator
  TypePtr type;                // Type, Annotated
  std::vector<Literal> items;  // elements; keys and values in turn; the annotated literal
  AttributeKind list_kind = AttributeKind::is;
};

/// Characters of the text with a position: whitespace, comments, words, numbers.
class Cursor {
 public:
  explicit Cursor(std::string_view text) : text(text) {}
  [[noreturn]] void fail(std::string message) const { throw SyntaxError{at, std::move(message)}; }
  [[noreturn]] void fail_at(std::size_t place, std::string message) const { throw SyntaxError{place, std::move(message)}; }
  char peek(std::size_t ahead = 0) const { return at + ahead < text.size() ? text[at + ahead] : '\0'; }
  bool starts_with(std::string_view s) const { return text.substr(at, s.size()) == s; }
  /// Blanks, newlines and comments.
  void skip();
  void skip_blanks();
  bool accept(std::string_view token);
  void expect(std::string_view token);
  /// What stands here, for messages.
  std::string found() const;
  static bool word_char(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }
  /// Letters, digits and underscores; empty when none stands here.
  std::string_view word();
  std::string string();
  /// Does a number start here ("-3", "1.5", "inf", "nan")?
  bool at_number() const;

  std::string_view text;
  std::size_t at = 0;
};

/// Reads one literal. In a constant parentheses and words are values, elsewhere they may be types.
Literal read_literal(Cursor& cursor, const TypeResolver& resolver, bool constant);

}  // namespace cresset::jit
