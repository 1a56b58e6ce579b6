// Reads Python's tokens in one pass over the text.
#include "ir/frontend/lexer.h"

#include <algorithm>
#include <array>
#include <cctype>

namespace cresset::jit {
namespace {

constexpr std::array<std::string_view, 35> kKeywords = {
    "False",  "None",     "True", "and",    "as",      "assert", "async",  "await",  "break", "class",  "continue", "def",
    "del",    "elif",     "else", "except", "finally", "for",    "from",   "global", "if",    "import", "in",       "is",
    "lambda", "nonlocal", "not",  "or",     "pass",    "raise",  "return", "try",    "while", "with",   "yield"};

// Longest first.
constexpr std::array<std::string_view, 48> kOperators = {"...", "**=", "//=", ">>=", "<<=", "->", ":=", "==", "!=", "<=", ">=", "**",
                                                         "//",  "<<",  ">>",  "+=",  "-=",  "*=", "/=", "%=", "@=", "&=", "|=", "^=",
                                                         "+",   "-",   "*",   "/",   "%",   "@",  "<",  ">",  "&",  "|",  "^",  "~",
                                                         "=",   ".",   ",",   ":",   ";",   "(",  ")",  "[",  "]",  "{",  "}",  "!"};

struct Failure {
  std::size_t at;
  std::string message;
};

FormatField field_at(std::string_view text, std::size_t at, std::size_t depth);

// The place behind the string that starts at `at`. Strings inside the braces of a format string may use its quotes again.
std::size_t end_of_string(std::string_view text, std::size_t at, std::size_t prefix, std::size_t depth) {
  const std::size_t begin = at;
  if (depth > 8) throw Failure{begin, "f-string: expressions nested too deeply"};
  const bool format = text.substr(at, prefix).find_first_of("fF") != std::string_view::npos;
  at += prefix;
  const char quote = text[at];
  const char three[3] = {quote, quote, quote};
  const std::string_view close = text.substr(at, 3) == std::string_view(three, 3) ? std::string_view(three, 3) : std::string_view(three, 1);
  at += close.size();
  while (at < text.size()) {
    if (text[at] == '\\')
      at += 2;
    else if (text.substr(at, close.size()) == close)
      return at + close.size();
    else if (text[at] == '\n' && close.size() == 1)
      break;
    else if (format && text[at] == '{')
      at = text.substr(at, 2) == "{{" ? at + 2 : field_at(text, at, depth).end;
    else
      ++at;
  }
  throw Failure{begin, close.size() == 3 ? "expected a valid token: unterminated triple-quoted string literal"
                                         : "expected a valid token: unterminated string literal"};
}

FormatField field_at(std::string_view text, std::size_t at, std::size_t depth) {
  const std::size_t begin = at++;
  std::size_t expression_end = 0;  // of a field whose format specification has begun
  for (std::size_t open = 1; at < text.size();) {
    const char c = text[at];
    if (!expression_end && (c == '\'' || c == '"')) {
      at = end_of_string(text, at, 0, depth + 1);
      continue;
    }
    if (open == 1 && !expression_end && (c == ':' || (c == '!' && text.substr(at, 2) != "!="))) expression_end = at;
    if (c == '{' || c == '(' || c == '[') ++open;
    if (c == '}' || c == ')' || c == ']') --open;
    if (!open) return {expression_end ? expression_end : at, at + 1};
    ++at;
  }
  throw Failure{begin, "f-string: expecting '}'"};
}

class Lexer {
 public:
  Lexer(std::string_view text, std::size_t begin, std::size_t end, bool one_line)
      : text_(text.substr(0, end)), at_(begin), one_line_(one_line) {}

  TokenList run() {
    if (at_ == 0 && text_.starts_with("\xEF\xBB\xBF")) at_ = 3;
    try {
      if (!one_line_) start_line();
      while (at_ < text_.size()) next();
      finish();
    } catch (Failure& f) {
      add(Token::Error, std::min(f.at, text_.size()), std::min(f.at + 1, text_.size()));
      out_.error = std::move(f.message);
    }
    return std::move(out_);
  }

 private:
  char peek(std::size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }
  static bool digit(char c) { return c >= '0' && c <= '9'; }
  static bool name_start(char c) {
    return std::isalpha(static_cast<unsigned char>(c)) || c == '_' || static_cast<unsigned char>(c) >= 0x80;
  }
  static bool name_char(char c) { return name_start(c) || digit(c); }
  void add(Token::Kind kind, std::size_t begin, std::size_t end, uint8_t prefix = 0) { out_.tokens.push_back({kind, prefix, begin, end}); }

  // Skips blank lines and takes the indentation of the next line of code.
  void start_line() {
    for (;;) {
      std::size_t column = 0;
      const std::size_t line = at_;
      for (;; ++at_) {
        const char c = peek();
        if (c == ' ')
          ++column;
        else if (c == '\t')
          column = column / 8 * 8 + 8;
        else if (c == '\f')
          column = 0;
        else
          break;
      }
      if (peek() == '#') comment();
      if (peek() == '\r') ++at_;
      if (at_ >= text_.size()) return;
      if (peek() == '\n') {
        ++at_;
        continue;
      }
      if (indents_.empty()) indents_.push_back(column);
      indent_to(column, line);
      return;
    }
  }
  void indent_to(std::size_t column, std::size_t line) {
    if (column > indents_.back()) {
      if (indents_.size() > kMaxNesting) throw Failure{at_, "the source is nested too deeply: too many levels of indentation"};
      indents_.push_back(column);
      add(Token::Indent, line, at_);
      return;
    }
    while (indents_.size() > 1 && column < indents_.back()) {
      indents_.pop_back();
      add(Token::Dedent, at_, at_);
    }
    if (column != indents_.back()) throw Failure{at_, "unindent does not match any outer indentation level"};
  }
  void finish() {
    if (!brackets_.empty()) throw Failure{brackets_.back(), std::string("'") + text_[brackets_.back()] + "' was never closed"};
    if (!one_line_ && !out_.tokens.empty() && out_.tokens.back().kind != Token::Newline && out_.tokens.back().kind != Token::Dedent)
      add(Token::Newline, text_.size(), text_.size());
    for (; indents_.size() > 1; indents_.pop_back()) add(Token::Dedent, text_.size(), text_.size());
    add(Token::End, text_.size(), text_.size());
  }

  // Up to the end of the line.
  void comment() {
    const std::size_t end = std::min(text_.find('\n', at_), text_.size());
    std::size_t word = at_ + 1;
    while (word < end && (text_[word] == ' ' || text_[word] == '\t')) ++word;
    if (text_.substr(word, end - word).starts_with("type:")) {
      word += 5;
      while (word < end && (text_[word] == ' ' || text_[word] == '\t')) ++word;
      if (!text_.substr(word, end - word).starts_with("ignore")) out_.type_comments.push_back({Token::String, 0, word, end});
    }
    at_ = end;
  }

  void next() {
    const char c = peek();
    switch (c) {
      case ' ':
      case '\t':
      case '\f':
      case '\r': ++at_; return;
      case '#': comment(); return;
      case '\n':
        ++at_;
        if (one_line_ || !brackets_.empty()) return;
        add(Token::Newline, at_ - 1, at_);
        start_line();
        return;
      case '\\': {
        std::size_t behind = at_ + 1;
        if (behind < text_.size() && text_[behind] == '\r') ++behind;
        if (behind < text_.size() && text_[behind] != '\n') throw Failure{at_, "unexpected character after line continuation character"};
        at_ = behind + 1;
        return;
      }
      default: break;
    }
    if (digit(c) || (c == '.' && digit(peek(1)))) return number();
    if (const std::size_t prefix = string_prefix()) return string(prefix - 1);
    if (name_start(c)) {
      const std::size_t begin = at_;
      while (at_ < text_.size() && name_char(text_[at_])) ++at_;
      return add(Token::Name, begin, at_);
    }
    for (const std::string_view op : kOperators) {
      if (!text_.substr(at_).starts_with(op)) continue;
      bracket(op[0]);
      add(Token::Operator, at_, at_ + op.size());
      at_ += op.size();
      return;
    }
    throw Failure{at_, std::isprint(static_cast<unsigned char>(c)) ? std::string("invalid character '") + c + "'"
                                                                   : "invalid non-printable character"};
  }
  void bracket(char c) {
    if (c == '(' || c == '[' || c == '{') {
      if (brackets_.size() >= kMaxNesting) throw Failure{at_, "too many nested parentheses"};
      brackets_.push_back(at_);
    } else if (c == ')' || c == ']' || c == '}') {
      if (brackets_.empty()) throw Failure{at_, std::string("unmatched '") + c + "'"};
      const char open = text_[brackets_.back()], close = open == '(' ? ')' : open == '[' ? ']' : '}';
      if (c != close) throw Failure{at_, std::string("closing parenthesis '") + c + "' does not match opening parenthesis '" + open + "'"};
      brackets_.pop_back();
    }
  }

  void number() {
    const std::size_t begin = at_;
    const auto digits = [this](auto&& accepted) {
      while (accepted(peek()) || (peek() == '_' && accepted(peek(1)))) ++at_;
    };
    const char base = static_cast<char>(std::tolower(static_cast<unsigned char>(peek(1))));
    if (peek() == '0' && (base == 'x' || base == 'o' || base == 'b')) {
      at_ += 2;
      digits([](char c) { return std::isxdigit(static_cast<unsigned char>(c)) != 0; });
    } else {
      digits(digit);
      if (peek() == '.') {
        ++at_;
        digits(digit);
      }
      if (peek() == 'e' || peek() == 'E') {
        const std::size_t sign = peek(1) == '+' || peek(1) == '-';
        if (digit(peek(1 + sign))) {
          at_ += 1 + sign;
          digits(digit);
        }
      }
      if (peek() == 'j' || peek() == 'J') ++at_;
    }
    // "1if x else y" is Python; "12abc" is not.
    if (name_start(peek())) {
      std::size_t end = at_;
      while (end < text_.size() && name_char(text_[end])) ++end;
      if (!is_keyword(text_.substr(at_, end - at_))) throw Failure{begin, "invalid number"};
    }
    add(Token::Number, begin, at_);
  }

  // One more than the length of the prefix of a string that starts here; 0 when none does.
  std::size_t string_prefix() const {
    for (std::size_t n = 0; n <= 2; ++n) {
      const char c = peek(n);
      if (c == '"' || c == '\'') return n + 1;
      const char lower = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
      if (lower != 'r' && lower != 'f' && lower != 'b' && lower != 'u') return 0;
    }
    return 0;
  }
  void string(std::size_t prefix) {
    const std::size_t begin = at_;
    at_ = end_of_string(text_, at_, prefix, 0);
    add(Token::String, begin, at_, static_cast<uint8_t>(prefix));
  }
  std::string_view text_;
  std::size_t at_;
  bool one_line_;
  std::vector<std::size_t> indents_;   // columns; the first is that of the first line
  std::vector<std::size_t> brackets_;  // places of open brackets
  TokenList out_;
};

}  // namespace

FormatField format_field(std::string_view text, std::size_t at) { return field_at(text, at, 0); }

bool is_keyword(std::string_view word) { return std::find(kKeywords.begin(), kKeywords.end(), word) != kKeywords.end(); }

TokenList tokens_of(std::string_view text, std::size_t begin, std::size_t end, bool one_line) {
  return Lexer(text, begin, end, one_line).run();
}

}  // namespace cresset::jit
