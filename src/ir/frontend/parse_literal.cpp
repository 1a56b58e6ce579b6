// Numbers and strings.
#include <charconv>
#include <cstdlib>

#include "base/parse_number.h"
#include "ir/frontend/parser.h"

namespace cresset::jit {
namespace {

void append_utf8(std::string& out, uint32_t c) {
  if (c < 0x80) {
    out += static_cast<char>(c);
  } else if (c < 0x800) {
    out += static_cast<char>(0xC0 | c >> 6);
    out += static_cast<char>(0x80 | (c & 0x3F));
  } else if (c < 0x10000) {
    out += static_cast<char>(0xE0 | c >> 12);
    out += static_cast<char>(0x80 | (c >> 6 & 0x3F));
    out += static_cast<char>(0x80 | (c & 0x3F));
  } else {
    out += static_cast<char>(0xF0 | c >> 18);
    out += static_cast<char>(0x80 | (c >> 12 & 0x3F));
    out += static_cast<char>(0x80 | (c >> 6 & 0x3F));
    out += static_cast<char>(0x80 | (c & 0x3F));
  }
}

bool contains(std::string_view text, char lower) {
  return text.find(lower) != std::string_view::npos || text.find(static_cast<char>(lower - 'a' + 'A')) != std::string_view::npos;
}

double float_of(const std::string& digits) {
  double v = 0;
  const auto r = parse_double(digits.data(), digits.data() + digits.size(), v);
  // Out of range: infinity or zero, which strtod tells apart.
  return r.ec == std::errc::result_out_of_range ? std::strtod(digits.c_str(), nullptr) : v;
}

}  // namespace

ExprPtr Parser::number() {
  const Token t = token();
  std::string digits;
  for (const char c : text(t))
    if (c != '_') digits += c;
  IValue value;
  const char letter = digits.size() > 1 && digits[0] == '0' ? static_cast<char>(digits[1] | 0x20) : '\0';
  const int base = letter == 'x' ? 16 : letter == 'o' ? 8 : letter == 'b' ? 2 : 10;
  if (base == 10 && (digits.back() == 'j' || digits.back() == 'J')) {
    digits.pop_back();
    value = IValue(std::complex<double>(0, float_of(digits)));
  } else if (base == 10 && digits.find_first_of(".eE") != std::string::npos) {
    value = IValue(float_of(digits));
  } else {
    const char* first = digits.data() + (base == 10 ? 0 : 2);
    const char* last = digits.data() + digits.size();
    int64_t v = 0;
    const auto r = std::from_chars(first, last, v, base);
    if (r.ec == std::errc::result_out_of_range) fail("Integral constant out of range (must fit in a signed 64 bit integer)");
    if (r.ec != std::errc() || r.ptr != last) fail("invalid number");
    value = IValue(v);
  }
  advance();
  auto e = make(ExprKind::Constant, t.begin);
  e->value = std::move(value);
  return e;
}

// Octal escapes from \200 up are bytes: this is how archives write text that is not ASCII.
std::string Parser::unescaped(std::size_t begin, std::size_t end, bool raw, bool format) const {
  const std::string& s = source_->text();
  std::string out;
  const auto refuse = [&](std::size_t at, const char* message) { fail_at(SourceRange(source_, at, at + 2), message); };
  for (std::size_t i = begin; i < end; ++i) {
    const char c = s[i];
    if (c == '\r' && i + 1 < end && s[i + 1] == '\n') continue;
    if (format && (c == '{' || c == '}')) {
      if (i + 1 >= end || s[i + 1] != c) refuse(i, "f-string: single '}' is not allowed");
      ++i;
    }
    if (c != '\\' || raw || i + 1 >= end) {
      out += c;
      continue;
    }
    const std::size_t start = i;
    const char kind = s[++i];
    static constexpr std::string_view kFrom = "\\'\"abfnrtv", kTo = "\\'\"\a\b\f\n\r\t\v";
    if (const std::size_t simple = kFrom.find(kind); simple != std::string_view::npos) {
      out += kTo[simple];
    } else if (kind == '\n') {
      continue;
    } else if (kind == '\r') {
      if (i + 1 < end && s[i + 1] == '\n') ++i;
    } else if (kind >= '0' && kind <= '7') {
      uint32_t v = 0;
      std::size_t n = 0;
      for (; n < 3 && i + n < end && s[i + n] >= '0' && s[i + n] <= '7'; ++n) v = v * 8 + static_cast<uint32_t>(s[i + n] - '0');
      i += n - 1;
      out += static_cast<char>(v);
    } else if (kind == 'x' || kind == 'u' || kind == 'U') {
      const std::size_t n = kind == 'x' ? 2 : kind == 'u' ? 4 : 8;
      uint32_t v = 0;
      const char* first = s.data() + i + 1;
      const auto r = std::from_chars(first, first + std::min(n, end - i - 1), v, 16);
      if (r.ec != std::errc() || r.ptr != first + n || v > 0x10FFFF) refuse(start, "malformed escape in a string");
      append_utf8(out, v);
      i += n;
    } else if (kind == 'N') {
      refuse(start, "named characters in strings are not supported");
    } else {
      out += c;
      out += kind;
    }
  }
  return out;
}

ExprPtr Parser::strings() {
  const std::size_t begin = token().begin;
  std::vector<ExprPtr> pieces;
  bool format = false;
  while (at(Token::String)) {
    const Token t = token();
    advance();
    string_pieces(t, pieces, format);
  }
  if (format) return done(make(ExprKind::FormatString, begin, std::move(pieces)));
  auto e = make(ExprKind::Constant, begin);
  if (!is_text_program())
    e->range = SourceRange(source_, begin, e->range.end() - 1);  // without the quote, as PyTorch marks texts of Python
  e->value = pieces.empty() ? IValue("") : pieces[0]->value;
  return e;
}

// Adds the pieces of one literal; text goes on in the text before it.
void Parser::string_pieces(const Token& t, std::vector<ExprPtr>& pieces, bool& format) {
  const std::string& s = source_->text();
  const std::string_view prefix = text(t).substr(0, t.prefix);
  const auto range = SourceRange(source_, t.begin, t.end);
  if (contains(prefix, 'b')) fail_at(range, "bytes are not supported");
  const bool raw = contains(prefix, 'r'), is_format = contains(prefix, 'f');
  format = format || is_format;
  const std::size_t open = t.begin + t.prefix;
  const std::size_t quotes = t.end - open >= 6 && s[open + 1] == s[open] && s[open + 2] == s[open] ? 3 : 1;
  const auto add_text = [&](std::string piece) {
    if (piece.empty()) return;
    if (!pieces.empty() && pieces.back()->kind == ExprKind::Constant) {
      piece = pieces.back()->value.toStringRef() + piece;
      pieces.pop_back();
    }
    auto e = std::make_shared<Expr>();
    e->kind = ExprKind::Constant;
    e->range = range;
    e->value = IValue(std::move(piece));
    pieces.push_back(std::move(e));
  };
  const std::size_t end = t.end - quotes;
  std::size_t begin = open + quotes;
  for (std::size_t i = begin; is_format && i < end;) {
    if (s[i] == '\\' && !raw) {
      i += 2;
    } else if (s[i] != '{') {
      ++i;
    } else if (i + 1 < end && s[i + 1] == '{') {
      i += 2;
    } else {
      add_text(unescaped(begin, i, raw, true));
      const FormatField field = format_field(s, i);
      std::string_view inner = std::string_view(s).substr(i + 1, field.expression_end - i - 1);
      while (!inner.empty() && inner.back() == ' ') inner.remove_suffix(1);
      // {x=} is the text itself, then the value.
      const bool shows_text =
          inner.size() > 1 && inner.back() == '=' && std::string_view("=!<>").find(inner[inner.size() - 2]) == std::string_view::npos;
      if (shows_text) add_text(s.substr(i + 1, field.expression_end - i - 1));
      auto piece = std::make_shared<Expr>();
      piece->kind = ExprKind::FormatPiece;
      piece->range = SourceRange(source_, i, field.end);
      Parser expression(source_, i + 1, i + 1 + inner.size() - (shows_text ? 1 : 0));
      expression.depth_ = depth_ + 1;
      piece->parts.push_back(expression.whole_expression());
      piece->text = s.substr(field.expression_end, field.end - 1 - field.expression_end);
      if (shows_text && piece->text.empty()) piece->text = "!r";
      pieces.push_back(done(std::move(piece)));
      begin = i = field.end;
    }
  }
  add_text(unescaped(begin, end, raw, is_format));
}

}  // namespace cresset::jit
