// Reading of literals: numbers, strings, containers, types, references to graphs and to the constants section.
#include "ir/text/literal_reader.h"

#include <bit>
#include <cctype>
#include <charconv>
#include <cstdlib>
#include <limits>

#include "base/parse_number.h"
#include "ir/text/text.h"

namespace cresset::jit {
namespace {
constexpr int kDeepestLiteral = 256;
}

void Cursor::skip_blanks() {
  while (at < text.size() && (text[at] == ' ' || text[at] == '\t')) ++at;
}
void Cursor::skip() {
  for (;;) {
    while (at < text.size() && std::isspace(static_cast<unsigned char>(text[at]))) ++at;
    if (peek() != '#') return;
    at = std::min(text.find('\n', at), text.size());
  }
}
bool Cursor::accept(std::string_view token) {
  skip();
  if (!starts_with(token)) return false;
  at += token.size();
  return true;
}
std::string Cursor::found() const {
  if (at >= text.size()) return "the end";
  if (word_char(text[at])) {
    std::size_t end = at;
    while (end < text.size() && word_char(text[end]) && end - at < 40) ++end;
    return "'" + std::string(text.substr(at, end - at)) + "'";
  }
  return "'" + std::string(1, text[at]) + "'";
}
void Cursor::expect(std::string_view token) {
  if (!accept(token)) fail("expected " + std::string(token) + " but found " + found() + " here");
}
std::string_view Cursor::word() {
  const std::size_t start = at;
  while (at < text.size() && word_char(text[at])) ++at;
  return text.substr(start, at - start);
}

std::string Cursor::string() {
  const std::size_t start = at;
  const char quote = text[at++];
  std::string out;
  for (;;) {
    if (at >= text.size()) fail_at(start, "a string without an end");
    const char c = text[at++];
    if (c == quote) return out;
    if (c != '\\') {
      out += c;
      continue;
    }
    if (at >= text.size()) fail_at(start, "a string without an end");
    const char e = text[at++];
    switch (e) {
      case 'n': out += '\n'; break;
      case 't': out += '\t'; break;
      case 'r': out += '\r'; break;
      case 'a': out += '\a'; break;
      case 'b': out += '\b'; break;
      case 'f': out += '\f'; break;
      case 'v': out += '\v'; break;
      case 'x': {
        int v = 0;
        const auto [end, error] = std::from_chars(text.data() + at, text.data() + std::min(at + 2, text.size()), v, 16);
        if (error != std::errc()) fail("expected two hexadecimal digits here");
        at = static_cast<std::size_t>(end - text.data());
        out += static_cast<char>(v);
        break;
      }
      default:
        if (e >= '0' && e <= '7') {
          int v = e - '0';
          for (int i = 0; i < 2 && peek() >= '0' && peek() <= '7'; ++i) v = v * 8 + (text[at++] - '0');
          out += static_cast<char>(v);
        } else {
          out += e;
        }
    }
  }
}

bool Cursor::at_number() const {
  const std::size_t sign = peek() == '-' || peek() == '+' ? 1 : 0;
  if (std::isdigit(static_cast<unsigned char>(peek(sign)))) return true;
  if (peek(sign) == '.' && std::isdigit(static_cast<unsigned char>(peek(sign + 1)))) return true;
  const std::string_view word = text.substr(std::min(at + sign, text.size()), 3);
  return (word == "inf" || word == "nan") && (!word_char(peek(sign + 3)) || peek(sign + 3) == 'j');
}

namespace {

class LiteralReader {
 public:
  LiteralReader(Cursor& cursor, const TypeResolver& resolver, bool constant) : c_(cursor), resolver_(resolver), constant_(constant) {}

  Literal literal(int depth) {
    c_.skip();
    if (depth > kDeepestLiteral) c_.fail("constants nested more than " + std::to_string(kDeepestLiteral) + " deep are not supported");
    Literal l = make(Literal::Kind::None);
    const char first = c_.peek();
    if (c_.at_number()) return number();
    if (first == '"' || first == '\'') {
      l.kind = Literal::Kind::String;
      l.s = c_.string();
      return l;
    }
    if (first == '[') return list(depth);
    if (first == '(') return constant_ ? tuple(depth) : type_or_tuple(depth);
    if (first == '{') return braces(depth);
    if (first == '<') return reference();
    const std::size_t start = c_.at;
    const std::string_view word = c_.word();
    if (word == "None" && (constant_ || c_.peek() != '?')) return l;
    if (word == "True" || word == "False") {
      l.kind = Literal::Kind::Bool;
      l.i = word == "True";
      return l;
    }
    if (word == "annotate") {
      c_.expect("(");
      l.kind = Literal::Kind::Annotated;
      l.type = type();
      c_.expect(",");
      l.items.push_back(LiteralReader(c_, resolver_, true).literal(depth + 1));
      c_.expect(")");
      return l;
    }
    if (const auto kind = list_kind_of_word(word); kind && c_.starts_with("[]")) {
      c_.at += 2;
      l.kind = Literal::Kind::EmptyList;
      l.list_kind = *kind;
      return l;
    }
    c_.at = start;
    if (word.empty()) c_.fail("expected a value but found " + c_.found() + " here");
    if (constant_) {  // an enumerator
      l.kind = Literal::Kind::Name;
      while (c_.at < c_.text.size() && (Cursor::word_char(c_.peek()) || c_.peek() == '.')) l.s += c_.text[c_.at++];
      return l;
    }
    l.kind = Literal::Kind::Type;
    l.type = type();
    return l;
  }

 private:
  Literal make(Literal::Kind kind) const {
    Literal l;
    l.kind = kind;
    l.at = c_.at;
    return l;
  }
  TypePtr type() { return read_type(c_.text, c_.at, resolver_); }

  // A float or an integer, without the j of an imaginary number.
  Literal plain_number() {
    Literal l = make(Literal::Kind::Int);
    const std::size_t start = c_.at;
    const bool negative = c_.peek() == '-';
    if (negative || c_.peek() == '+') ++c_.at;
    if (c_.starts_with("inf")) {
      c_.at += 3;
      l.kind = Literal::Kind::Float;
      l.f = negative ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity();
      return l;
    }
    if (c_.starts_with("nan")) {
      c_.at += 3;
      l.kind = Literal::Kind::Float;
      uint64_t bits = 0x7ff8000000000000ull;
      if (c_.starts_with("(0x")) {
        c_.at += 3;
        const auto [end, error] = std::from_chars(c_.text.data() + c_.at, c_.text.data() + c_.text.size(), bits, 16);
        c_.at = static_cast<std::size_t>(end - c_.text.data());
        if (error != std::errc() || !c_.starts_with(")")) c_.fail("expected the bits of a NaN here");
        ++c_.at;
      }
      l.f = std::bit_cast<double>(bits);
      return l;
    }
    const std::size_t digits = c_.at;
    while (std::isdigit(static_cast<unsigned char>(c_.peek()))) ++c_.at;
    bool floating = false;
    if (c_.peek() == '.') {
      floating = true;
      ++c_.at;
      while (std::isdigit(static_cast<unsigned char>(c_.peek()))) ++c_.at;
    }
    if (c_.peek() == 'e' || c_.peek() == 'E') {
      const std::size_t sign = c_.peek(1) == '-' || c_.peek(1) == '+' ? 2 : 1;
      if (std::isdigit(static_cast<unsigned char>(c_.peek(sign)))) {
        floating = true;
        c_.at += sign;
        while (std::isdigit(static_cast<unsigned char>(c_.peek()))) ++c_.at;
      }
    }
    const char *first = c_.text.data() + digits, *last = c_.text.data() + c_.at;
    if (floating) {
      l.kind = Literal::Kind::Float;
      const auto [end, error] = parse_double(first, last, l.f);
      if (error == std::errc::result_out_of_range) {
        // Too large or too small for a double: what strtod gives.
        l.f = std::strtod(std::string(first, last).c_str(), nullptr);
      } else if (error != std::errc() || end != last) {
        c_.fail_at(start, "expected a number here");
      }
      if (negative) l.f = -l.f;
      return l;
    }
    const auto [end, error] = std::from_chars(negative ? first - 1 : first, last, l.i);
    if (error != std::errc() || end != last) c_.fail_at(start, "the number does not fit 64 bits");
    return l;
  }

  static double as_double(const Literal& l) { return l.kind == Literal::Kind::Float ? l.f : static_cast<double>(l.i); }

  Literal number() {
    Literal l = plain_number();
    if (c_.peek() == 'j') {
      ++c_.at;
      l.c = {0, as_double(l)};
      l.kind = Literal::Kind::Complex;
      return l;
    }
    if ((c_.peek() == '+' || c_.peek() == '-') && c_.at_number()) {
      const std::size_t before = c_.at;
      const Literal imaginary = plain_number();
      if (c_.peek() == 'j') {
        ++c_.at;
        l.c = {as_double(l), as_double(imaginary)};
        l.kind = Literal::Kind::Complex;
        return l;
      }
      c_.at = before;
    }
    return l;
  }

  Literal list(int depth) {
    Literal l = make(Literal::Kind::List);
    c_.expect("[");
    if (c_.accept("]")) return l;
    do {
      if (c_.skip(), c_.peek() == ']') break;
      l.items.push_back(literal(depth + 1));
    } while (c_.accept(","));
    c_.expect("]");
    return l;
  }
  Literal tuple(int depth) {
    Literal l = make(Literal::Kind::Tuple);
    c_.expect("(");
    if (c_.accept(")")) return l;
    do {
      if (c_.skip(), c_.peek() == ')') break;
      l.items.push_back(literal(depth + 1));
    } while (c_.accept(","));
    c_.expect(")");
    return l;
  }
  Literal type_or_tuple(int depth) {
    const std::size_t start = c_.at;
    try {
      Literal l = make(Literal::Kind::Type);
      l.type = type();
      return l;
    } catch (const SyntaxError&) {
      c_.at = start;
      return tuple(depth);
    }
  }

  // "{8}" is a tensor with one element, "{k: v}" a dict.
  Literal braces(int depth) {
    Literal l = make(Literal::Kind::Dict);
    c_.expect("{");
    if (c_.accept("}")) return l;
    c_.skip();
    const std::size_t start = c_.at;
    const Literal first = literal(depth + 1);
    const std::size_t end = c_.at;
    if (c_.accept("}")) {
      l.kind = Literal::Kind::Display;
      l.s = c_.text.substr(start, end - start);
      if (first.kind == Literal::Kind::Bool) l.s = first.i ? "1" : "0";
      return l;
    }
    l.items.push_back(first);
    for (;;) {
      c_.expect(":");
      l.items.push_back(literal(depth + 1));
      if (!c_.accept(",")) break;
      l.items.push_back(literal(depth + 1));
    }
    c_.expect("}");
    return l;
  }

  // "<Tensor>", "<Tensor c3>", "<Object c4>", "<graph_2>", "<Function f>", "<Undefined>".
  Literal reference() {
    Literal l = make(Literal::Kind::Tensor);
    c_.expect("<");
    const std::size_t end = c_.text.find('>', c_.at);
    if (end == std::string_view::npos) c_.fail("expected > here");
    const std::string_view inside = c_.text.substr(c_.at, end - c_.at);
    c_.at = end + 1;
    const std::size_t blank = inside.find(' ');
    const std::string_view what = inside.substr(0, blank);
    if (blank != std::string_view::npos) l.s = inside.substr(blank + 1);
    if (what == "Tensor" || what == "Tensors") return l;
    if (what == "Object") {
      l.kind = Literal::Kind::Object;
    } else if (what == "Function") {
      l.kind = Literal::Kind::Function;
    } else if (what == "Undefined") {
      l.kind = Literal::Kind::Undefined;
    } else if (what.rfind("graph_", 0) == 0) {
      l.kind = Literal::Kind::Graph;
      l.s = what;
    } else {
      c_.fail_at(l.at, "'" + std::string(inside) + "' cannot be read back");
    }
    return l;
  }

  Cursor& c_;
  const TypeResolver& resolver_;
  bool constant_;
};

}  // namespace

Literal read_literal(Cursor& cursor, const TypeResolver& resolver, bool constant) {
  return LiteralReader(cursor, resolver, constant).literal(0);
}

}  // namespace cresset::jit
