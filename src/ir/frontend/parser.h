// The parser of scripts, by recursive descent over the tokens. Depth is bounded; what is wrong raises ScriptError at its place.
#pragma once

#include <cresset/base/stack.h>

#include "ir/frontend/lexer.h"
#include "ir/frontend/tree.h"

namespace cresset::jit {

using FunctionPtr = std::shared_ptr<const FunctionDefinition>;

class Parser {
 public:
  explicit Parser(std::shared_ptr<const Source> source);
  /// A part of the text as one line: annotations in comments, fields of format strings.
  Parser(std::shared_ptr<const Source> source, std::size_t begin, std::size_t end);

  std::shared_ptr<const SourceFile> file();
  /// The first def, with the decorators in front of it.
  FunctionPtr first_function();
  ExprPtr whole_expression();

 private:
  friend class Deeper;
  // Tokens (parser.cpp).
  const Token& token(std::size_t ahead = 0) const { return list_.tokens[std::min(at_ + ahead, list_.tokens.size() - 1)]; }
  std::string_view text(const Token& t) const { return std::string_view(source_->text()).substr(t.begin, t.end - t.begin); }
  bool at(std::string_view word, std::size_t ahead = 0) const;
  bool at(Token::Kind kind) const { return token().kind == kind; }
  bool at_name() const;
  void advance();
  bool accept(std::string_view word);
  void expect(std::string_view word);
  std::string name();
  void end_of_statement();
  [[noreturn]] void fail(const std::string& message) const;
  [[noreturn]] void fail_at(const SourceRange& range, const std::string& message) const;
  [[noreturn]] void unexpected(std::string_view expected) const;
  SourceRange range_from(std::size_t begin) const { return SourceRange(source_, begin, last_end_); }
  /// A program that was given as text and not found as a Python function: some marks of errors are one longer.
  bool is_text_program() const { return source_->filename() == "<string>"; }
  // The "# type:" comment that starts in this part of the text, or null.
  const Token* type_comment(std::size_t begin, std::size_t end) const;

  // Expressions (parse_expression.cpp).
  std::shared_ptr<Expr> make(ExprKind kind, std::size_t begin, std::vector<ExprPtr> parts = {}) const;
  ExprPtr done(std::shared_ptr<Expr> e) const;
  ExprPtr test();
  ExprPtr named_test();
  ExprPtr or_test();
  ExprPtr and_test();
  ExprPtr not_test();
  ExprPtr comparison();
  ExprPtr binary(int level);
  ExprPtr unary();
  ExprPtr postfix();
  ExprPtr subscript(ExprPtr base, std::size_t begin);
  ExprPtr slice_or_test();
  ExprPtr call(ExprPtr base, std::size_t begin);
  ExprPtr atom();
  ExprPtr parenthesised();
  ExprPtr list_display();
  ExprPtr brace_display();
  ExprPtr lambda();
  ExprPtr yield();
  ExprPtr star_or(ExprPtr (Parser::*item)());
  ExprPtr items(ExprPtr (Parser::*item)());  // a tuple when there is a comma
  ExprPtr target_item() { return binary(1); }
  ExprPtr target_list();
  std::vector<Comprehension> generators();
  bool at_end_of_items() const;

  // Literals (parse_literal.cpp).
  ExprPtr number();
  ExprPtr strings();
  std::string unescaped(std::size_t begin, std::size_t end, bool raw, bool format) const;
  void string_pieces(const Token& t, std::vector<ExprPtr>& pieces, bool& format);

  // Statements (parse_statement.cpp).
  void statement(std::vector<StmtPtr>& out);
  StmtPtr simple_statement();
  StmtPtr compound_statement();
  bool at_compound() const;
  std::vector<StmtPtr> suite();
  std::shared_ptr<Stmt> start(StmtKind kind) const;
  StmtPtr finish(std::shared_ptr<Stmt> s, std::size_t begin) const;
  StmtPtr assignment_or_expression();
  StmtPtr if_statement();
  StmtPtr for_statement();
  StmtPtr with_statement();
  StmtPtr try_statement();
  StmtPtr class_statement();
  StmtPtr words_statement(StmtKind kind);
  void check_target(const ExprPtr& target) const;

  // Definitions (parse_definition.cpp).
  std::vector<ExprPtr> decorators();
  FunctionPtr function(std::vector<ExprPtr> decorators);
  std::vector<Parameter> parameters();
  std::size_t parameter_comments(FunctionDefinition& f, std::size_t begin, std::size_t end);
  /// `commented`: how many parameters have comments of their own.
  void signature_comment(FunctionDefinition& f, const Token& comment, std::size_t commented);
  [[noreturn]] void wrong_number_of_types(std::size_t given, std::size_t parameters, const Token& comment) const;
  std::shared_ptr<const ClassDefinition> class_definition(std::vector<ExprPtr> decorators);

  std::shared_ptr<const Source> source_;
  TokenList list_;
  std::size_t at_ = 0;
  std::size_t last_end_ = 0;  // behind the last token that is text
  mutable std::size_t depth_ = 0;
};

/// One step of recursion.
class Deeper {
 public:
  explicit Deeper(Parser& p) : parser_(p) {
    check_stack("scripts");
    if (++parser_.depth_ > 4 * kMaxNesting) {
      --parser_.depth_;
      parser_.fail("the source is nested too deeply");
    }
  }
  ~Deeper() { --parser_.depth_; }
  Deeper(const Deeper&) = delete;

 private:
  Parser& parser_;
};

}  // namespace cresset::jit
