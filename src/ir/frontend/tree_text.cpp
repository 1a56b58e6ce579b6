// A tree as text, for tests of the parser: "(Binary + (Name x) (Constant 1))".
#include "ir/frontend/tree_text.h"

#include <cstdio>

namespace cresset::jit {
namespace {

constexpr const char* kExprNames[] = {"Name",    "Constant", "Ellipsis",    "FormatString", "FormatPiece",  "Unary",    "Binary",
                                      "BoolOp",  "Compare",  "Conditional", "Attribute",    "Subscript",    "Slice",    "Call",
                                      "Starred", "List",     "Tuple",       "Dict",         "ListComp",     "DictComp", "Lambda",
                                      "Set",     "Await",    "Yield",       "Walrus",       "GeneratorExp", "SetComp"};
constexpr const char* kStmtNames[] = {"Expression",  "Assign", "AugAssign", "Return",   "If",       "While",    "For",
                                      "Assert",      "Raise",  "Pass",      "Break",    "Continue", "Delete",   "With",
                                      "FunctionDef", "Import", "Global",    "Nonlocal", "Try",      "ClassDef", "Async"};

std::string constant_text(const IValue& v) {
  char digits[40];
  if (v.isString()) return "'" + v.toStringRef() + "'";
  if (v.isBool()) return v.toBool() ? "True" : "False";
  if (v.isDouble()) return std::snprintf(digits, sizeof digits, "%.17g", v.toDouble()), digits;
  if (v.isComplexDouble()) return std::snprintf(digits, sizeof digits, "%.17gj", v.toComplexDouble().imag()), digits;
  return to_string(v);
}

void write(std::string& out, const ExprPtr& e);
void write_all(std::string& out, const std::vector<ExprPtr>& list) {
  for (const ExprPtr& e : list) write(out, e);
}

// Each piece begins with a blank.
void write(std::string& out, const ExprPtr& e) {
  if (!e) {
    out += " -";
    return;
  }
  out += std::string(" (") + kExprNames[static_cast<std::size_t>(e->kind)];
  if (!e->text.empty()) out += " " + e->text;
  if (e->kind == ExprKind::Constant) out += " " + constant_text(e->value);
  for (std::size_t i = 0; i < e->parts.size(); ++i) {
    if (i && !e->operators.empty()) out += " " + e->operators[i - 1];
    write(out, e->parts[i]);
  }
  for (const Keyword& k : e->keywords) {
    out += " " + (k.name.empty() ? "**" : k.name + "=");
    write(out, k.value);
  }
  for (const Comprehension& c : e->generators) {
    out += " for";
    write(out, c.target);
    out += " in";
    write(out, c.iterable);
    for (const ExprPtr& condition : c.conditions) {
      out += " if";
      write(out, condition);
    }
  }
  out += e->trailing_comma ? " ,)" : ")";
}

void write(std::string& out, const FunctionDefinition& f, std::size_t indent);
void write(std::string& out, const std::vector<StmtPtr>& body, std::size_t indent) {
  for (const StmtPtr& s : body) {
    out += std::string(indent, ' ') + kStmtNames[static_cast<std::size_t>(s->kind)];
    if (!s->text.empty()) out += " " + s->text;
    write_all(out, s->targets);
    if (s->annotation) {
      out += " :";
      write(out, s->annotation);
    }
    if (s->value) write(out, s->value);
    if (s->message) write(out, s->message);
    for (const WithItem& item : s->items) {
      write(out, item.value);
      write(out, item.target);
    }
    out += "\n";
    if (s->function) write(out, *s->function, indent + 2);
    write(out, s->body, indent + 2);
    if (s->orelse.empty()) continue;
    out += std::string(indent, ' ') + "else\n";
    write(out, s->orelse, indent + 2);
  }
}

void write(std::string& out, const FunctionDefinition& f, std::size_t indent) {
  static constexpr const char* kMarks[] = {"", "keyword ", "*", "**"};
  for (const ExprPtr& d : f.decorators) {
    out += std::string(indent, ' ') + "@";
    write(out, d);
    out += "\n";
  }
  out += std::string(indent, ' ') + "def " + f.name;
  for (const Parameter& p : f.parameters) {
    out += std::string(" [") + kMarks[p.kind] + p.name;
    if (p.annotation) {
      out += " :";
      write(out, p.annotation);
    }
    if (p.default_value) {
      out += " =";
      write(out, p.default_value);
    }
    out += "]";
  }
  if (f.returns) {
    out += " ->";
    write(out, f.returns);
  }
  out += "\n";
  write(out, f.body, indent + 2);
}

}  // namespace

std::string tree_text(const SourceFile& file) {
  std::string out;
  for (const SourceFile::Item& item : file.items) {
    if (item.function) write(out, *item.function, 0);
    if (item.statement) write(out, {item.statement}, 0);
    if (!item.type) continue;
    out += "class " + item.type->name;
    write_all(out, item.type->bases);
    out += "\n";
    write(out, item.type->assignments, 2);
    for (const auto& m : item.type->methods) write(out, *m, 2);
  }
  return out;
}

}  // namespace cresset::jit
