// The parser's hold on the tokens, and its entries.
#include "ir/frontend/parser.h"

#include <algorithm>

#include "ir/frontend/sugared_value.h"

namespace cresset::jit {

Parser::Parser(std::shared_ptr<const Source> source)
    : source_(std::move(source)), list_(tokens_of(source_->text(), 0, source_->text().size(), false)) {}
Parser::Parser(std::shared_ptr<const Source> source, std::size_t begin, std::size_t end)
    : source_(std::move(source)), list_(tokens_of(source_->text(), begin, end, true)), last_end_(begin) {}

bool Parser::at(std::string_view word, std::size_t ahead) const {
  const Token& t = token(ahead);
  return (t.kind == Token::Operator || t.kind == Token::Name) && text(t) == word;
}
bool Parser::at_name() const { return at(Token::Name) && !is_keyword(text(token())); }
void Parser::advance() {
  const Token& t = token();
  if (t.kind < Token::Newline) last_end_ = t.end;
  if (at_ + 1 < list_.tokens.size()) ++at_;
}
bool Parser::accept(std::string_view word) {
  if (!at(word)) return false;
  advance();
  return true;
}
void Parser::expect(std::string_view word) {
  if (!accept(word)) unexpected(word);
}
std::string Parser::name() {
  if (!at_name()) unexpected("a name");
  std::string out(text(token()));
  advance();
  return out;
}
void Parser::end_of_statement() {
  if (at(Token::Newline))
    advance();
  else if (!at(Token::End))
    unexpected("newline");
}

void Parser::fail_at(const SourceRange& range, const std::string& message) const { script_error(range, message); }
void Parser::fail(const std::string& message) const {
  const Token& t = token();
  const std::size_t begin = t.kind == Token::End && last_end_ ? last_end_ - 1 : t.begin;
  fail_at(SourceRange(source_, begin, t.end), t.kind == Token::Error ? list_.error : message);
}
void Parser::unexpected(std::string_view expected) const {
  static constexpr const char* kWords[] = {"", "", "", "", "newline", "indent", "dedent", "eof", ""};
  const Token& t = token();
  const std::string found = t.kind < Token::Newline ? std::string(text(t).substr(0, 40)) : kWords[t.kind];
  fail("expected " + std::string(expected) + " but found '" + found + "' here");
}

const Token* Parser::type_comment(std::size_t begin, std::size_t end) const {
  const auto first = std::lower_bound(list_.type_comments.begin(), list_.type_comments.end(), begin,
                                      [](const Token& c, std::size_t place) { return c.begin < place; });
  return first != list_.type_comments.end() && first->begin < end ? &*first : nullptr;
}

std::shared_ptr<const SourceFile> Parser::file() {
  auto out = std::make_shared<SourceFile>();
  while (!at(Token::End)) {
    SourceFile::Item item;
    if (at("@") || at("def") || at("class")) {
      std::vector<ExprPtr> marks = decorators();
      if (at("class"))
        item.type = class_definition(std::move(marks));
      else if (at("def"))
        item.function = function(std::move(marks));
      else
        unexpected("def or class");
      out->items.push_back(std::move(item));
      continue;
    }
    std::vector<StmtPtr> statements;
    statement(statements);
    for (StmtPtr& s : statements) {
      item.statement = std::move(s);
      out->items.push_back(item);
    }
  }
  return out;
}

FunctionPtr Parser::first_function() {
  std::vector<ExprPtr> marks = decorators();
  while (!at("def")) {
    if (at(Token::End) || at(Token::Error) || at("async") || at("class") || at("lambda")) unexpected("def");
    std::vector<StmtPtr> skipped;
    statement(skipped);
    marks = decorators();
  }
  return function(std::move(marks));
}

ExprPtr Parser::whole_expression() {
  ExprPtr e = items(&Parser::test);
  while (at(Token::Newline)) advance();
  if (!at(Token::End)) unexpected("eof");
  return e;
}

std::shared_ptr<const SourceFile> parse_source(const std::shared_ptr<const Source>& source) { return Parser(source).file(); }
std::shared_ptr<const FunctionDefinition> parse_function(const std::shared_ptr<const Source>& source) {
  return Parser(source).first_function();
}
ExprPtr parse_expression(const std::shared_ptr<const Source>& source) {
  return Parser(source, 0, source->text().size()).whole_expression();
}
const std::string& function_name(const FunctionDefinition& f) { return f.name; }
std::vector<std::string> parameter_names(const FunctionDefinition& f) {
  std::vector<std::string> names;
  for (const Parameter& p : f.parameters) names.push_back(p.name);
  return names;
}

}  // namespace cresset::jit
