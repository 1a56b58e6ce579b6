// Statements and blocks.
#include <algorithm>

#include "ir/frontend/parser.h"

namespace cresset::jit {

std::shared_ptr<Stmt> Parser::start(StmtKind kind) const {
  auto s = std::make_shared<Stmt>();
  s->kind = kind;
  return s;
}
StmtPtr Parser::finish(std::shared_ptr<Stmt> s, std::size_t begin) const {
  s->range = range_from(begin);
  const ExprPtr& last = s->message ? s->message : s->value;
  if (last && s->body.empty() && last->range.start() >= begin && last->range.end() < s->range.end())
    s->range = SourceRange(source_, begin, last->range.end());
  return s;
}

bool Parser::at_compound() const {
  static constexpr std::string_view kWords[] = {"if", "while", "for", "with", "def", "try", "class", "async", "@"};
  return std::any_of(std::begin(kWords), std::end(kWords), [this](std::string_view w) { return at(w); });
}

void Parser::statement(std::vector<StmtPtr>& out) {
  if (at_compound()) {
    out.push_back(compound_statement());
    return;
  }
  for (;;) {
    out.push_back(simple_statement());
    if (!accept(";") || token().kind >= Token::Newline) break;
  }
  end_of_statement();
}

std::vector<StmtPtr> Parser::suite() {
  const Deeper deeper(*this);
  expect(":");
  std::vector<StmtPtr> body;
  if (!at(Token::Newline)) {
    if (at_compound()) unexpected("a statement");
    statement(body);
    return body;
  }
  advance();
  if (!at(Token::Indent)) unexpected("an indented block");
  advance();
  while (!at(Token::Dedent) && !at(Token::End)) {
    if (at(Token::Indent)) fail("unexpected indent");
    statement(body);
  }
  if (at(Token::Dedent)) advance();
  return body;
}

StmtPtr Parser::simple_statement() {
  const std::size_t begin = token().begin;
  if (at(Token::Indent)) fail("unexpected indent");
  static constexpr std::pair<std::string_view, StmtKind> kSingle[] = {
      {"pass", StmtKind::Pass}, {"break", StmtKind::Break}, {"continue", StmtKind::Continue}};
  for (const auto& [word, kind] : kSingle)
    if (accept(word)) return finish(start(kind), begin);
  if (at("import") || at("from")) return words_statement(StmtKind::Import);
  if (at("global")) return words_statement(StmtKind::Global);
  if (at("nonlocal")) return words_statement(StmtKind::Nonlocal);
  if (accept("return")) {
    auto s = start(StmtKind::Return);
    if (!at_end_of_items()) s->value = items(&Parser::test);
    return finish(std::move(s), begin);
  }
  if (accept("raise")) {
    auto s = start(StmtKind::Raise);
    if (!at_end_of_items()) s->value = test();
    if (accept("from")) s->message = test();
    return finish(std::move(s), begin);
  }
  if (accept("assert")) {
    auto s = start(StmtKind::Assert);
    s->value = test();
    if (accept(",")) s->message = test();
    return finish(std::move(s), begin);
  }
  if (accept("del")) {
    auto s = start(StmtKind::Delete);
    ExprPtr targets = target_list();
    if (targets->kind == ExprKind::Tuple)
      s->targets = targets->parts;
    else
      s->targets = {targets};
    return finish(std::move(s), begin);
  }
  return assignment_or_expression();
}

// Statements that are only read: their text.
StmtPtr Parser::words_statement(StmtKind kind) {
  const std::size_t begin = token().begin;
  auto s = start(kind);
  while (token().kind < Token::Newline && !at(";")) advance();
  s->text = source_->text().substr(begin, last_end_ - begin);
  return finish(std::move(s), begin);
}

void Parser::check_target(const ExprPtr& target) const {
  switch (target->kind) {
    case ExprKind::Name:
    case ExprKind::Attribute:
    case ExprKind::Subscript: return;
    case ExprKind::Starred: check_target(target->parts[0]); return;
    case ExprKind::Tuple:
    case ExprKind::List:
      for (const ExprPtr& part : target->parts) check_target(part);
      return;
    default: fail_at(target->range, "cannot assign to this expression here");
  }
}

StmtPtr Parser::assignment_or_expression() {
  const std::size_t begin = token().begin;
  const auto value = [this] { return at("yield") ? yield() : items(&Parser::named_test); };
  ExprPtr first = value();
  if (accept(":")) {
    auto s = start(StmtKind::Assign);
    check_target(first);
    s->targets.push_back(first);
    s->annotation = test();
    if (accept("=")) s->value = value();
    return finish(std::move(s), begin);
  }
  if (at("=")) {
    auto s = start(StmtKind::Assign);
    ExprPtr last = first;
    while (accept("=")) {
      check_target(last);
      s->targets.push_back(last);
      last = value();
    }
    s->value = last;
    if (const Token* comment = type_comment(last_end_, token().begin); comment && at(Token::Newline)) {
      Parser annotation(source_, comment->begin, comment->end);
      annotation.depth_ = depth_;
      s->annotation = annotation.whole_expression();
    }
    return finish(std::move(s), begin);
  }
  const std::string_view op = text(token());
  if (at(Token::Operator) && op.size() >= 2 && op.back() == '=' && op != "==" && op != "!=" && op != "<=" && op != ">=" && op != ":=") {
    auto s = start(StmtKind::AugAssign);
    check_target(first);
    if (first->kind == ExprKind::Tuple || first->kind == ExprKind::List)
      fail_at(first->range, "augmented assignment can only have one LHS expression");
    s->targets.push_back(first);
    s->text = op.substr(0, op.size() - 1);
    advance();
    s->value = value();
    return finish(std::move(s), begin);
  }
  auto s = start(StmtKind::Expression);
  s->value = first;
  return finish(std::move(s), begin);
}

StmtPtr Parser::compound_statement() {
  const Deeper deeper(*this);
  const std::size_t begin = token().begin;
  if (at("if")) return if_statement();
  if (at("for")) return for_statement();
  if (at("with")) return with_statement();
  if (at("try")) return try_statement();
  if (at("class")) return class_statement();
  if (accept("while")) {
    auto s = start(StmtKind::While);
    s->value = named_test();
    s->body = suite();
    if (accept("else")) s->orelse = suite();
    return finish(std::move(s), begin);
  }
  if (accept("async")) {
    if (!at_compound()) unexpected("def, for or with");
    compound_statement();
    return finish(start(StmtKind::Async), begin);
  }
  std::vector<ExprPtr> marks = decorators();
  if (at("class")) return class_statement();
  if (!at("def")) unexpected("def or class");
  auto s = start(StmtKind::FunctionDef);
  s->function = function(std::move(marks));
  return finish(std::move(s), begin);
}

StmtPtr Parser::if_statement() {
  const Deeper deeper(*this);
  const std::size_t begin = token().begin;
  advance();  // if, elif
  auto s = start(StmtKind::If);
  s->value = named_test();
  s->body = suite();
  if (at("elif"))
    s->orelse.push_back(if_statement());
  else if (accept("else"))
    s->orelse = suite();
  return finish(std::move(s), begin);
}

StmtPtr Parser::for_statement() {
  const std::size_t begin = token().begin;
  expect("for");
  auto s = start(StmtKind::For);
  s->targets.push_back(target_list());
  expect("in");
  s->value = items(&Parser::test);
  s->body = suite();
  if (accept("else")) s->orelse = suite();
  return finish(std::move(s), begin);
}

StmtPtr Parser::with_statement() {
  const std::size_t begin = token().begin;
  expect("with");
  auto s = start(StmtKind::With);
  // "with (a as b, c):" looks like an expression; what stands behind the parenthesis decides.
  bool in_parentheses = false;
  if (at("(")) {
    std::size_t depth = 0, i = 0;
    bool several = false;
    for (; token(i).kind < Token::Newline; ++i) {
      if (at("(", i) || at("[", i) || at("{", i)) ++depth;
      if (at(")", i) || at("]", i) || at("}", i)) --depth;
      if (depth == 1 && (at("as", i) || at(",", i))) several = true;
      if (!depth) break;
    }
    in_parentheses = several && at(":", i + 1);
  }
  if (in_parentheses) advance();
  do {
    if (in_parentheses && at(")")) break;
    WithItem item;
    item.value = test();
    if (accept("as")) {
      item.target = target_item();
      check_target(item.target);
    }
    s->items.push_back(std::move(item));
  } while (accept(","));
  if (in_parentheses) expect(")");
  s->body = suite();
  return finish(std::move(s), begin);
}

StmtPtr Parser::try_statement() {
  const std::size_t begin = token().begin;
  expect("try");
  suite();
  while (accept("except")) {
    accept("*");
    if (!at(":")) items(&Parser::test);
    if (accept("as")) name();
    suite();
  }
  if (accept("else")) suite();
  if (accept("finally")) suite();
  return finish(start(StmtKind::Try), begin);
}

StmtPtr Parser::class_statement() {
  const std::size_t begin = token().begin;
  expect("class");
  name();
  while (!at(":") && token().kind < Token::Newline) advance();
  suite();
  return finish(start(StmtKind::ClassDef), begin);
}

}  // namespace cresset::jit
