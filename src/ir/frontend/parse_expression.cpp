// Expressions: precedence as in Python's grammar.
#include <algorithm>

#include "ir/frontend/frontend.h"
#include "ir/frontend/parser.h"

namespace cresset::jit {
namespace {

constexpr uint32_t kMaxHeight = 2 * kMaxNesting;

int level_of(std::string_view op) {
  static constexpr std::pair<std::string_view, int> kLevels[] = {{"|", 1}, {"^", 2}, {"&", 3}, {"<<", 4}, {">>", 4}, {"+", 5},
                                                                 {"-", 5}, {"*", 6}, {"/", 6}, {"//", 6}, {"%", 6},  {"@", 6}};
  for (const auto& [text, level] : kLevels)
    if (text == op) return level;
  return 0;
}

}  // namespace

std::shared_ptr<Expr> Parser::make(ExprKind kind, std::size_t begin, std::vector<ExprPtr> parts) const {
  auto e = std::make_shared<Expr>();
  e->kind = kind;
  e->range = range_from(begin);
  e->parts = std::move(parts);
  return e;
}

namespace {

// Calls, displays and operations end where their last part ends: the marks of errors leave closing brackets out, as PyTorch's do.
bool ends_with_its_parts(ExprKind kind) {
  switch (kind) {
    case ExprKind::Call:
    case ExprKind::Tuple:
    case ExprKind::List:
    case ExprKind::ListComp:
    case ExprKind::GeneratorExp:
    case ExprKind::Dict:
    case ExprKind::Binary:
    case ExprKind::Unary:
    case ExprKind::Compare:
    case ExprKind::BoolOp:
    case ExprKind::Conditional: return true;
    default: return false;
  }
}

}  // namespace

// Knows its height and its end from here on.
ExprPtr Parser::done(std::shared_ptr<Expr> e) const {
  uint32_t below = 0;
  std::size_t end = 0;
  const auto look = [&](const ExprPtr& part) {
    if (!part) return;
    below = std::max(below, part->height);
    end = std::max(end, part->range.end());
  };
  for (const ExprPtr& p : e->parts) look(p);
  for (const Keyword& k : e->keywords) look(k.value);
  for (const Comprehension& c : e->generators) {
    look(c.target);
    look(c.iterable);
    for (const ExprPtr& p : c.conditions) look(p);
  }
  e->height = below + 1;
  if (end > e->range.start() && end < e->range.end() && ends_with_its_parts(e->kind))
    e->range = SourceRange(source_, e->range.start(), end);
  if (e->height > kMaxHeight)
    fail_at(e->range, "the expression is too deep: more than " + std::to_string(kMaxHeight) + " operations in each other");
  return e;
}

ExprPtr Parser::test() {
  const Deeper deeper(*this);
  const std::size_t begin = token().begin;
  if (at("lambda")) return lambda();
  ExprPtr value = or_test();
  if (!accept("if")) return value;
  ExprPtr condition = or_test();
  expect("else");
  ExprPtr otherwise = test();
  return done(make(ExprKind::Conditional, begin, {condition, value, otherwise}));
}

ExprPtr Parser::named_test() {
  if (!at_name() || !at(":=", 1)) return test();
  const std::size_t begin = token().begin;
  ExprPtr target = atom();
  advance();
  ExprPtr value = test();
  return done(make(ExprKind::Walrus, begin, {target, value}));
}

ExprPtr Parser::or_test() {
  const std::size_t begin = token().begin;
  ExprPtr first = and_test();
  if (!at("or")) return first;
  std::vector<ExprPtr> parts{first};
  while (accept("or")) parts.push_back(and_test());
  auto e = make(ExprKind::BoolOp, begin, std::move(parts));
  e->text = "or";
  return done(std::move(e));
}

ExprPtr Parser::and_test() {
  const std::size_t begin = token().begin;
  ExprPtr first = not_test();
  if (!at("and")) return first;
  std::vector<ExprPtr> parts{first};
  while (accept("and")) parts.push_back(not_test());
  auto e = make(ExprKind::BoolOp, begin, std::move(parts));
  e->text = "and";
  return done(std::move(e));
}

ExprPtr Parser::not_test() {
  const Deeper deeper(*this);
  const std::size_t begin = token().begin;
  if (!accept("not")) return comparison();
  ExprPtr operand = not_test();
  auto e = make(ExprKind::Unary, begin, {operand});
  e->text = "not";
  return done(std::move(e));
}

ExprPtr Parser::comparison() {
  static constexpr std::string_view kOperators[] = {"<", ">", "==", ">=", "<=", "!=", "in"};
  const std::size_t begin = token().begin;
  std::vector<ExprPtr> parts{binary(1)};
  std::vector<std::string> operators;
  for (;;) {
    std::string op;
    if (at("not") && at("in", 1)) {
      advance();
      op = "not in";
    } else if (at("is")) {
      op = at("not", 1) ? "is not" : "is";
      if (op == "is not") advance();
    } else if (std::any_of(std::begin(kOperators), std::end(kOperators), [this](std::string_view o) { return at(o); })) {
      op = text(token());
    } else {
      break;
    }
    advance();
    operators.push_back(std::move(op));
    parts.push_back(binary(1));
  }
  if (operators.empty()) return parts[0];
  auto e = make(ExprKind::Compare, begin, std::move(parts));
  e->operators = std::move(operators);
  return done(std::move(e));
}

ExprPtr Parser::binary(int level) {
  const std::size_t begin = token().begin;
  ExprPtr left = unary();
  for (;;) {
    if (!at(Token::Operator)) return left;
    const std::string op(text(token()));
    const int found = level_of(op);
    if (found < level) return left;
    advance();
    ExprPtr right = binary(found + 1);
    auto e = make(ExprKind::Binary, begin, {left, right});
    e->text = op;
    left = done(std::move(e));
  }
}

ExprPtr Parser::unary() {
  const Deeper deeper(*this);
  const std::size_t begin = token().begin;
  if (at("-") || at("+") || at("~")) {
    const std::string op(text(token()));
    advance();
    // The one number that has no positive counterpart.
    if (op == "-" && at(Token::Number) && text(token()) == "9223372036854775808" && !at("**", 1)) {
      advance();
      auto smallest = make(ExprKind::Constant, begin);
      smallest->value = IValue(INT64_MIN);
      return smallest;
    }
    ExprPtr operand = unary();
    auto e = make(ExprKind::Unary, begin, {operand});
    e->text = op;
    return done(std::move(e));
  }
  ExprPtr base;
  if (accept("await")) {
    ExprPtr operand = postfix();
    base = done(make(ExprKind::Await, begin, {operand}));
  } else {
    base = postfix();
  }
  if (!accept("**")) return base;
  ExprPtr exponent = unary();
  auto e = make(ExprKind::Binary, begin, {base, exponent});
  e->text = "**";
  return done(std::move(e));
}

ExprPtr Parser::postfix() {
  const std::size_t begin = token().begin;
  ExprPtr e = atom();
  for (;;) {
    if (accept(".")) {
      if (!at(Token::Name)) unexpected("a name");
      std::string field(text(token()));  // keywords too: archives name what Python cannot
      advance();
      auto a = make(ExprKind::Attribute, begin, {e});
      a->text = std::move(field);
      e = done(std::move(a));
    } else if (at("[")) {
      e = subscript(std::move(e), begin);
    } else if (at("(")) {
      e = call(std::move(e), begin);
    } else {
      return e;
    }
  }
}

ExprPtr Parser::subscript(ExprPtr base, std::size_t begin) {
  expect("[");
  std::vector<ExprPtr> parts{std::move(base)};
  bool comma = false;
  do {
    if (comma && at("]")) break;
    parts.push_back(at("*") ? star_or(&Parser::test) : slice_or_test());
    comma = accept(",");
  } while (comma);
  expect("]");
  comma = comma || (parts.size() == 2 && parts[1]->kind == ExprKind::Starred);  // x[*i] has a tuple of indices
  auto e = make(ExprKind::Subscript, begin, std::move(parts));
  // One behind the index: its bracket, or the quote of a text (PyTorch shows all of it in programs that are given as text).
  if (!is_text_program() && e->parts.size() == 2 && e->parts[1]->kind == ExprKind::Constant &&
      e->parts[1]->range.end() + 1 < e->range.end())
    e->range = SourceRange(source_, begin, e->parts[1]->range.end() + 1);
  e->trailing_comma = comma;
  return done(std::move(e));
}

ExprPtr Parser::slice_or_test() {
  const std::size_t begin = token().begin;
  ExprPtr first;
  if (!at(":")) {
    first = named_test();
    if (!at(":")) return first;
  }
  const auto bound = [this]() -> ExprPtr { return at(":") || at("]") || at(",") ? nullptr : test(); };
  expect(":");
  ExprPtr second = bound(), third;
  if (accept(":")) third = bound();
  return done(make(ExprKind::Slice, begin, {first, second, third}));
}

ExprPtr Parser::call(ExprPtr base, std::size_t begin) {
  const std::size_t open = token().end;
  expect("(");
  std::vector<ExprPtr> parts{std::move(base)};
  std::vector<Keyword> keywords;
  while (!at(")")) {
    const std::size_t start = token().begin;
    if (accept("**")) {
      ExprPtr value = test();
      keywords.push_back({range_from(start), "", value});
    } else if (at(Token::Name) && at("=", 1)) {
      std::string word = name();
      advance();
      ExprPtr value = test();
      keywords.push_back({range_from(start), std::move(word), value});
    } else if (at("*")) {
      parts.push_back(star_or(&Parser::test));
    } else {
      ExprPtr value = named_test();
      if (at("for") || at("async")) {
        std::vector<Comprehension> clauses = generators();
        auto g = make(ExprKind::GeneratorExp, start, {value});
        g->generators = std::move(clauses);
        value = done(std::move(g));
      } else if (!keywords.empty()) {
        fail_at(value->range, "positional argument follows keyword argument");
      }
      parts.push_back(std::move(value));
    }
    if (!accept(",")) break;
  }
  expect(")");
  auto e = make(ExprKind::Call, begin, std::move(parts));
  e->keywords = std::move(keywords);
  // Without the parenthesis behind the last argument, as PyTorch shows calls.
  std::size_t end = e->parts.size() == 1 && e->keywords.empty() ? open : begin;
  for (const ExprPtr& part : e->parts) {
    const bool quoted = part->kind == ExprKind::Constant && part->value.isString();  // its range ends in front of the quote
    end = std::max(end, part->range.end() + quoted);
  }
  for (const Keyword& k : e->keywords) end = std::max(end, k.range.end());
  e->range = SourceRange(source_, begin, end);
  return done(std::move(e));
}

ExprPtr Parser::atom() {
  const Token& t = token();
  if (t.kind == Token::Number) return number();
  if (t.kind == Token::String) return strings();
  if (at("(")) return parenthesised();
  if (at("[")) return list_display();
  if (at("{")) return brace_display();
  if (accept("...")) return make(ExprKind::Ellipsis, t.begin);
  if (at("True") || at("False") || at("None")) {
    const std::string word(text(t));
    advance();
    auto e = make(ExprKind::Constant, t.begin);
    if (word != "None") e->value = IValue(word == "True");
    return e;
  }
  if (!at_name()) unexpected("an expression");
  std::string word = name();
  auto e = make(ExprKind::Name, t.begin);
  e->text = std::move(word);
  return e;
}

ExprPtr Parser::parenthesised() {
  const std::size_t begin = token().begin;
  expect("(");
  ExprPtr inner;
  if (at("yield")) {
    inner = yield();
  } else if (!at(")")) {
    inner = star_or(&Parser::named_test);
    if (at("for") || at("async")) {
      std::vector<Comprehension> clauses = generators();
      auto g = make(ExprKind::GeneratorExp, begin, {inner});
      g->generators = std::move(clauses);
      inner = done(std::move(g));
    } else if (at(",")) {
      std::vector<ExprPtr> parts{inner};
      while (accept(",") && !at(")")) parts.push_back(star_or(&Parser::named_test));
      expect(")");
      return done(make(ExprKind::Tuple, begin, std::move(parts)));
    }
  }
  expect(")");
  return inner ? inner : done(make(ExprKind::Tuple, begin));
}

ExprPtr Parser::list_display() {
  const std::size_t begin = token().begin;
  expect("[");
  std::vector<ExprPtr> parts;
  while (!at("]")) {
    parts.push_back(star_or(&Parser::named_test));
    if (parts.size() == 1 && (at("for") || at("async"))) {
      std::vector<Comprehension> clauses = generators();
      expect("]");
      auto e = make(ExprKind::ListComp, begin, std::move(parts));
      e->generators = std::move(clauses);
      return done(std::move(e));
    }
    if (!accept(",")) break;
  }
  expect("]");
  return done(make(ExprKind::List, begin, std::move(parts)));
}

ExprPtr Parser::brace_display() {
  const std::size_t begin = token().begin;
  expect("{");
  std::vector<ExprPtr> parts;
  std::vector<Comprehension> clauses;
  bool set = false;
  while (!at("}")) {
    if (at("**")) throw NotSupportedError(SourceRange(source_, begin, begin + 1), "Dict expansion (e.g. `{**dict}`) is not supported");
    parts.push_back(star_or(&Parser::named_test));
    if (parts.size() == 1) set = !at(":");
    if (!set) {
      expect(":");
      parts.push_back(test());
    }
    if (parts.size() == (set ? 1u : 2u) && (at("for") || at("async"))) {
      clauses = generators();
      break;
    }
    if (!accept(",")) break;
  }
  expect("}");
  const bool comprehension = !clauses.empty();
  auto e = make(set ? (comprehension ? ExprKind::SetComp : ExprKind::Set) : (comprehension ? ExprKind::DictComp : ExprKind::Dict), begin,
                std::move(parts));
  e->generators = std::move(clauses);
  return done(std::move(e));
}

std::vector<Comprehension> Parser::generators() {
  std::vector<Comprehension> out;
  while (at("for") || at("async")) {
    if (at("async")) fail("asynchronous comprehensions are not supported");
    advance();
    Comprehension c;
    c.target = target_list();
    expect("in");
    c.iterable = or_test();
    while (accept("if")) c.conditions.push_back(or_test());
    out.push_back(std::move(c));
  }
  return out;
}

ExprPtr Parser::lambda() {
  const std::size_t begin = token().begin;
  expect("lambda");
  while (!at(":")) {
    if (!accept("*") && !accept("**") && !accept("/")) {
      name();
      if (accept("=")) test();
    } else if (at_name()) {
      advance();
    }
    if (!accept(",")) break;
  }
  expect(":");
  ExprPtr body = test();
  return done(make(ExprKind::Lambda, begin, {body}));
}

ExprPtr Parser::yield() {
  const std::size_t begin = token().begin;
  expect("yield");
  std::vector<ExprPtr> parts;
  if (accept("from"))
    parts.push_back(test());
  else if (!at_end_of_items())
    parts.push_back(items(&Parser::test));
  return done(make(ExprKind::Yield, begin, std::move(parts)));
}

ExprPtr Parser::star_or(ExprPtr (Parser::*item)()) {
  if (!at("*")) return (this->*item)();
  const std::size_t begin = token().begin;
  advance();
  ExprPtr value = binary(1);
  return done(make(ExprKind::Starred, begin, {value}));
}

bool Parser::at_end_of_items() const {
  static constexpr std::string_view kEnds[] = {")", "]", "}", "=", ":", ";", "in"};
  return token().kind >= Token::Newline || std::any_of(std::begin(kEnds), std::end(kEnds), [this](std::string_view e) { return at(e); });
}

ExprPtr Parser::items(ExprPtr (Parser::*item)()) {
  const std::size_t begin = token().begin;
  ExprPtr first = star_or(item);
  if (!at(",")) return first;
  std::vector<ExprPtr> parts{first};
  while (accept(",") && !at_end_of_items()) parts.push_back(star_or(item));
  return done(make(ExprKind::Tuple, begin, std::move(parts)));
}

ExprPtr Parser::target_list() {
  ExprPtr target = items(&Parser::target_item);
  check_target(target);
  return target;
}

}  // namespace cresset::jit
