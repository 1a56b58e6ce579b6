// Functions and classes.
#include "ir/frontend/parser.h"

namespace cresset::jit {

std::vector<ExprPtr> Parser::decorators() {
  std::vector<ExprPtr> out;
  while (accept("@")) {
    out.push_back(named_test());
    end_of_statement();
  }
  return out;
}

FunctionPtr Parser::function(std::vector<ExprPtr> decorators) {
  const Deeper deeper(*this);
  auto f = std::make_shared<FunctionDefinition>();
  const std::size_t begin = token().begin;
  f->decorators = std::move(decorators);
  expect("def");
  if (!at(Token::Name)) unexpected("a name");
  f->name = text(token());
  advance();
  const std::size_t parameters_begin = token().begin;
  expect("(");
  f->parameters = parameters();
  expect(")");
  const std::size_t parameters_end = last_end_;
  if (accept("->")) f->returns = test();
  f->header = range_from(begin);
  const std::size_t behind_header = last_end_;
  const std::size_t commented = parameter_comments(*f, parameters_begin, parameters_end);
  std::size_t body = at_ + 1;  // the first token of the body
  while (body + 1 < list_.tokens.size() && (list_.tokens[body].kind == Token::Newline || list_.tokens[body].kind == Token::Indent)) ++body;
  if (const Token* comment = type_comment(behind_header, list_.tokens[std::min(body, list_.tokens.size() - 1)].begin))
    signature_comment(*f, *comment, commented);
  f->body = suite();
  f->range = range_from(begin);
  return f;
}

std::vector<Parameter> Parser::parameters() {
  std::vector<Parameter> out;
  bool keyword_only = false;
  while (!at(")")) {
    const std::size_t begin = token().begin;
    Parameter p;
    if (accept("/")) {
      if (!accept(",")) break;
      continue;
    }
    if (accept("*")) {
      if (keyword_only) fail("* argument may appear only once");
      keyword_only = true;
      if (accept(",")) continue;
      p.kind = Parameter::VarPositional;
    } else if (accept("**")) {
      p.kind = Parameter::VarKeyword;
    } else if (keyword_only) {
      p.kind = Parameter::KeywordOnly;
    }
    p.name = name();
    for (const Parameter& earlier : out)
      if (earlier.name == p.name) fail("duplicate argument '" + p.name + "' in function definition");
    if (accept(":")) p.annotation = test();
    if (accept("=")) p.default_value = test();
    p.range = range_from(begin);
    if (p.kind == Parameter::Positional && !p.default_value && !out.empty() && out.back().default_value)
      fail_at(p.range, "non-default argument follows default argument");
    keyword_only = keyword_only || p.kind == Parameter::VarPositional;
    out.push_back(std::move(p));
    if (!accept(",")) break;
  }
  return out;
}

// Comments of single parameters: "x,  # type: int".
std::size_t Parser::parameter_comments(FunctionDefinition& f, std::size_t begin, std::size_t end) {
  if (!type_comment(begin, end)) return 0;
  std::size_t count = 0;
  for (std::size_t i = 0; i < f.parameters.size(); ++i) {
    Parameter& p = f.parameters[i];
    const Token* comment = type_comment(p.range.end(), i + 1 < f.parameters.size() ? f.parameters[i + 1].range.start() : end);
    if (!comment || p.annotation) continue;
    Parser annotation(source_, comment->begin, comment->end);
    annotation.depth_ = depth_;
    p.annotation = annotation.whole_expression();
    ++count;
  }
  return count;
}

void Parser::wrong_number_of_types(std::size_t given, std::size_t parameters, const Token& comment) const {
  fail_at(SourceRange(source_, comment.begin, comment.end), "Number of type annotations (" + std::to_string(given) +
                                                                ") did not match the number of function parameters (" +
                                                                std::to_string(parameters) + ")");
}

// "# type: (int, Tensor) -> Tensor"; the result may be left to inference, `self` may be left out, and (...) leaves the parameters to their
// own comments.
void Parser::signature_comment(FunctionDefinition& f, const Token& comment, std::size_t commented) {
  Parser p(source_, comment.begin, comment.end);
  p.depth_ = depth_;
  if (!p.accept("(")) return;
  std::vector<ExprPtr> types;
  bool left_out = false;
  while (!p.at(")")) {
    if (p.accept("...")) {
      left_out = true;
    } else {
      if (!p.accept("*")) p.accept("**");
      types.push_back(p.test());
    }
    if (!p.accept(",")) break;
  }
  p.expect(")");
  if (commented && !left_out)
    fail_at(SourceRange(source_, comment.begin, comment.end),
            "Return type line behind types of single parameters: '# type: (...) -> Result' was required");
  if (commented && commented + (f.parameters[0].name == "self") < f.parameters.size())
    wrong_number_of_types(commented, f.parameters.size(), comment);
  const ExprPtr result = p.at(Token::End) ? nullptr : (p.expect("->"), p.whole_expression());
  if (!left_out) {
    const bool without_self = types.size() + 1 == f.parameters.size() && f.parameters[0].name == "self";
    if (types.size() != f.parameters.size() && !without_self) wrong_number_of_types(types.size(), f.parameters.size(), comment);
    for (std::size_t i = 0; i < types.size(); ++i) f.parameters[i + (without_self ? 1 : 0)].annotation = types[i];
  }
  if (result) f.returns = result;
}

std::shared_ptr<const ClassDefinition> Parser::class_definition(std::vector<ExprPtr> decorators) {
  auto c = std::make_shared<ClassDefinition>();
  const std::size_t begin = token().begin;
  c->decorators = std::move(decorators);
  expect("class");
  c->name = name();
  if (accept("(")) {
    while (!at(")")) {
      if (at(Token::Name) && at("=", 1)) fail("keyword arguments of classes are not supported");
      c->bases.push_back(test());
      if (!accept(",")) break;
    }
    expect(")");
  }
  const SourceRange header = range_from(begin);
  expect(":");
  const bool block = at(Token::Newline);
  if (block) {
    advance();
    if (!at(Token::Indent)) unexpected("an indented block");
    advance();
  }
  do {
    if (at("@") || at("def")) {
      std::vector<ExprPtr> marks = this->decorators();
      if (!at("def")) unexpected("def");
      c->methods.push_back(function(std::move(marks)));
      continue;
    }
    std::vector<StmtPtr> statements;
    statement(statements);
    for (StmtPtr& s : statements) {
      const bool text_only =
          s->kind == StmtKind::Expression && (s->value->kind == ExprKind::Constant || s->value->kind == ExprKind::Ellipsis);
      if (s->kind == StmtKind::Assign)
        c->assignments.push_back(std::move(s));
      else if (s->kind != StmtKind::Pass && !text_only)
        fail_at(s->range, "a class may contain methods, annotated attributes and assignments only");
    }
  } while (block && !at(Token::Dedent) && !at(Token::End));
  if (at(Token::Dedent)) advance();
  c->range = header;
  return c;
}

}  // namespace cresset::jit
