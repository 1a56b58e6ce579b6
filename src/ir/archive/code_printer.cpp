// Functions: which values stand inside other expressions, names, statements.
#include "ir/archive/code_printer.h"

#include <algorithm>
#include <cctype>
#include <unordered_set>

#include <cresset/ir/archive.h>

#include "ir/rewrite/pass_tools.h"

namespace cresset::jit {
namespace {

// An expression is put into another one while it, with the indentation, is shorter than this.
constexpr std::size_t kLongExpression = 40;
constexpr std::size_t kDeepestBlock = 200;

constexpr const char* kReserved[] = {
    // Words of Python
    "False", "None", "True", "and", "as", "assert", "async", "await", "break", "class", "continue", "def", "del", "elif", "else", "except",
    "finally", "for", "from", "global", "if", "import", "in", "is", "lambda", "nonlocal", "not", "or", "pass", "raise", "return", "try",
    "while", "with", "yield",
    // What means something in the texts
    "CONSTANTS", "Tensor", "__torch__", "annotate", "bool", "complex", "float", "fork", "getattr", "inf", "infj", "int", "isinstance",
    "nan", "nanj", "ops", "print", "range", "str", "torch", "unchecked_cast", "unchecked_unwrap_optional", "uninitialized"};

bool is_constant(const Node* n) { return n->kind() == prim::Constant; }
bool is_function(const Node* n) { return is_constant(n) && n->output()->type()->kind == TypeKind::Function; }

// "_12" is the name of a value without one.
bool is_meaningful(const std::string& name) {
  return !name.empty() && !(name[0] == '_' && std::all_of(name.begin() + 1, name.end(), [](unsigned char c) { return std::isdigit(c); }));
}
bool has_own_name(const Value* v) { return v->node()->kind() == prim::GetAttr || (v->hasDebugName() && is_meaningful(v->debugNameBase())); }

std::string valid_identifier(const std::string& name) {
  std::string out;
  for (char c : name) out += std::isalnum(static_cast<unsigned char>(c)) || c == '_' ? c : '_';
  if (out.empty() || std::isdigit(static_cast<unsigned char>(out[0]))) out.insert(out.begin(), '_');
  return out;
}

bool is_delimiter(const Node* n) {
  return (n->kind() == prim::Enter || n->kind() == prim::Exit) && n->hasAttribute(attr::compilation_edge);
}

// Delimiters of the fallback are no statements; what stands between them is marked.
void delimiters_to_marks(Graph& g) {
  std::vector<Node*> done;
  const auto in = [&](const Block* b) {
    std::size_t depth = 0;
    for (Node* n : b->nodes()) {
      if (is_delimiter(n)) {
        depth += n->kind() == prim::Enter ? 1 : std::size_t(0) - 1;
        done.push_back(n);
      } else if (depth > 0 && !is_constant(n)) {
        n->i_(attr::to_compile, 0);
      }
    }
  };
  in(g.block());
  g.block()->visit([&](Node* n) {
    for (const Block* b : n->blocks()) in(b);
  });
  for (Node* n : done) n->destroy();
}

// The order in which a statement evaluates its inputs: loops assign their variables first.
std::vector<Value*> inputs_in_order(const Node* n) {
  std::vector<Value*> out = n->inputs();
  if (n->kind() == prim::Loop) std::rotate(out.begin(), out.begin() + 2, out.end());
  return out;
}

// The values that stand inside the expression which uses them. Going backwards from each statement, its operands are taken in as long as
// they are just the nodes in front of it, so that the order of evaluation stays.
class InlineValues {
 public:
  explicit InlineValues(const Block* top) {
    std::vector<const Block*> blocks{top};
    while (!blocks.empty()) {
      const Block* b = blocks.back();
      blocks.pop_back();
      scan(b, blocks);
    }
  }
  bool contains(const Value* v) const { return inline_.count(v) != 0; }

 private:
  static const Node* before(const Node* n) {
    do n = n->prev();
    while (is_constant(n));
    return n;
  }
  static bool can_be_inlined(const Value* v) {
    const Node* n = v->node();
    switch (n->kind()) {
      case prim::If:
      case prim::Loop:
      case prim::CreateObject:
      case prim::Enter:
      case prim::Exit:
      case prim::Param:
      case prim::ListUnpack:
      case prim::TupleUnpack:
      case prim::Uninitialized:
      case prim::isinstance:
      case prim::ModuleContainerIndex:  // needs the annotation of a variable
      case prim::fork:
      case prim::awaitable: return false;
      default: break;
    }
    if (n->outputs().size() != 1 || v->use_count() != 1) return false;
    const Node* user = v->uses()[0].user;
    if (is_marked(n) || is_marked(user)) return false;
    if (user->owningBlock() != n->owningBlock()) return false;
    // Attributes are read at once: PyTorch's texts show what a module uses line by line.
    return user->kind() == prim::Return ||
           (!has_own_name(v) && user->kind() != prim::fork && user->kind() != prim::awaitable && user->kind() != prim::Enter);
  }
  void scan(const Block* b, std::vector<const Block*>& blocks) {
    const Node* statement = b->return_node();
    while (statement != b->param_node()) {
      for (const Block* inner : statement->blocks()) blocks.push_back(inner);
      const Node* point = before(statement);
      std::vector<Value*> operands = inputs_in_order(statement);
      while (!operands.empty()) {
        const Value* v = operands.back();
        operands.pop_back();
        if (is_constant(v->node()) || v->node() != point || !can_be_inlined(v)) continue;
        inline_.insert(v);
        point = before(point);
        operands.insert(operands.end(), v->node()->inputs().begin(), v->node()->inputs().end());
      }
      statement = point;
    }
  }
  std::unordered_set<const Value*> inline_;
};

class FunctionPrinter {
 public:
  FunctionPrinter(const CodeNames& names, ConstantTable& constants, std::string& text, CodeRanges& ranges,
                  std::unordered_map<std::string, std::size_t>& next_suffix, std::size_t level)
      : names_(names), constants_(constants), text_(text), ranges_(ranges), next_suffix_(next_suffix), level_(level) {
    used_.insert(std::begin(kReserved), std::end(kReserved));
  }

  void run(const Function& f, bool self_type) {
    const auto original = f.graph();
    CRESSET_CHECK(original, "archive: function '", f.qualname(), "' is not written in the script language; its code cannot be saved.");
    const auto graph = original->copy();
    make_loops_expressible(*graph);
    delimiters_to_marks(*graph);
    header(f, *graph, self_type);
    const InlineValues inlined(graph->block());
    inlined_ = &inlined;
    ++level_;
    body(graph->block(), [&](const Block* b) { return_statement(b); });
    --level_;
  }

 private:
  // ---- names

  std::string unique_name(const std::string& base) {
    std::string name = base;
    while (base == "_" ? name == "_" || used_.count(name) : used_.count(name) != 0) name = base + std::to_string(next_suffix_[base]++);
    used_.insert(name);
    return name;
  }
  std::string name_value(const Value* v) {
    std::string base = "_";
    if (v->node()->kind() == prim::GetAttr)
      base = valid_identifier(v->node()->s(attr::name));
    else if (has_own_name(v))
      base = valid_identifier(v->debugNameBase());
    return texts_[v] = unique_name(base);
  }
  const std::string& text_of(const Value* v) const {
    const auto found = texts_.find(v);
    CRESSET_INTERNAL_ASSERT(found != texts_.end(), "a value has no text: %", v->debugName());
    return found->second;
  }

  // ---- statements

  void statement(const std::string& s) {
    text_.append(2 * level_, ' ');
    text_ += s;
    text_ += '\n';
  }
  // The statement that is this node.
  void statement(const Node* n, const std::string& s) { statement(is_marked(n) ? s + kFallbackComment : s); }
  // The next statement comes from there; what stands inside it is visited before it.
  void mark(const SourceRange& range) {
    if (!ranges_.empty() && ranges_.back().first == text_.size()) ranges_.pop_back();
    ranges_.emplace_back(text_.size(), range);
  }
  bool is_long(const std::string& expression) const { return expression.size() + 2 * level_ >= kLongExpression; }

  // Gives names to what waits to be part of a later expression, up to this value.
  void materialize_through(const Value* last) {
    std::size_t i = 0;
    for (bool more = true; more; ++i) {
      const Value* v = waiting_[i];
      const std::string expression = text_of(v);
      mark(v->node()->sourceRange());
      statement(name_value(v) + " = " + expression);
      more = v != last;
    }
    waiting_.erase(waiting_.begin(), waiting_.begin() + static_cast<std::ptrdiff_t>(i));
  }
  bool is_waiting(const Value* v) const { return std::find(waiting_.begin(), waiting_.end(), v) != waiting_.end(); }
  // Operands that would make the line too long become statements of their own.
  void split_long(const std::vector<Value*>& operands) {
    for (auto v = operands.rbegin(); v != operands.rend(); ++v)
      if (inlined_->contains(*v) && is_waiting(*v) && is_long(text_of(*v))) return materialize_through(*v);
  }
  void consume(const std::vector<Value*>& operands) {
    for (const Value* v : operands) std::erase(waiting_, v);
  }
  std::vector<std::string> operand_texts(const std::vector<Value*>& operands) {
    split_long(operands);
    consume(operands);
    std::vector<std::string> out;
    for (const Value* v : operands) out.push_back(text_of(v));
    return out;
  }

  void body(const Block* b, const std::function<void(const Block*)>& end) {
    CRESSET_CHECK(level_ < kDeepestBlock, "archive: the code nests more than ", kDeepestBlock, " blocks deep.");
    const std::size_t before = text_.size();
    std::vector<std::pair<const Value*, std::size_t>> contexts;  // of `with`: the object, the text's size behind the header
    for (const Node* n : b->nodes())
      if (is_function(n)) constant(n);
    for (const Node* n : b->nodes()) {
      if (is_function(n)) continue;
      if (n->kind() == prim::Enter) {
        const std::string object = operand_texts(n->inputs())[0];
        statement("with " + object + (n->output()->hasUses() ? " as " + name_value(n->output()) : "") + ":");
        ++level_;
        contexts.emplace_back(n->input(0), text_.size());
      } else if (n->kind() == prim::Exit) {
        CRESSET_CHECK(!contexts.empty() && contexts.back().first == n->input(0),
                      "archive: the blocks of `with` statements are not nested.");
        if (contexts.back().second == text_.size()) statement("pass");
        --level_;
        contexts.pop_back();
      } else {
        node(n);
      }
    }
    CRESSET_CHECK(contexts.empty(), "archive: a `with` statement has no end.");
    end(b);
    if (text_.size() == before) statement("pass");
  }

  void node(const Node* n) {
    mark(n->sourceRange());
    switch (n->kind()) {
      case prim::Constant: return constant(n);
      case prim::If: return if_statement(n);
      case prim::Loop: return loop(n);
      case prim::SetAttr: {
        CRESSET_CHECK(is_identifier(n->s(attr::name)), "archive: the attribute '", n->s(attr::name), "' is set, which has no text.");
        const std::vector<std::string> operands = operand_texts(n->inputs());
        const std::string object = is_identifier(operands[0]) ? operands[0] : "(" + operands[0] + ")";
        return statement(n, object + "." + n->s(attr::name) + " = " + operands[1]);
      }
      case prim::fork:
      case prim::awaitable: return fork(n);
      case prim::Uninitialized:
        if (!n->output()->hasUses()) return;
        break;
      default: break;
    }
    const std::string expression = expression_text(*n, operand_texts(n->inputs()), names_);
    if (n->outputs().size() == 1 && inlined_->contains(n->output())) {
      texts_[n->output()] = expression;
      waiting_.push_back(n->output());
      return;
    }
    std::string left;
    for (const Value* v : n->outputs()) left += (left.empty() ? "" : ", ") + name_value(v);
    if (n->kind() == prim::ModuleContainerIndex) left += " : " + annotation_text(n->output()->type(), names_);
    if (!left.empty() && (n->kind() == prim::ListUnpack || n->kind() == prim::TupleUnpack)) left += ",";
    statement(n, left.empty() ? expression : left + " = " + expression);
  }

  void constant(const Node* n) {
    const Value* v = n->output();
    const auto value = toIValue(v);
    CRESSET_CHECK(value, "archive: a constant of type '", v->type()->str(), "' has no value that could be written.");
    if (!v->hasUses()) return;
    const std::string expression = constant_text(*value, v->type(), names_, constants_);
    texts_[v] = expression;
    if (is_long(expression) && expression.rfind("CONSTANTS.", 0) != 0) statement((texts_[v] = unique_name("_")) + " = " + expression);
  }

  // `annotated`: what a reader could not infer from the values alone.
  void assign(const std::vector<std::string>& left, const std::vector<std::string>& right) {
    if (left.empty()) return;
    const auto joined = [](const std::vector<std::string>& parts) {
      std::string out;
      for (const std::string& p : parts) out += (out.empty() ? "" : ", ") + p;
      return out;
    };
    statement(joined(left) + " = " + joined(right));
  }

  void if_statement(const Node* n) {
    const std::string condition = operand_texts(n->inputs())[0];
    std::vector<std::string> names;
    for (const Value* v : n->outputs()) names.push_back(name_value(v));
    // The reader unifies the types of the arms; where that does not give the right type the first arm says it.
    std::vector<bool> annotate;
    for (std::size_t i = 0; i < n->outputs().size(); ++i) {
      const TypePtr &type = n->output(i)->type(), &first = n->blocks()[0]->outputs()[i]->type(),
                    &second = n->blocks()[1]->outputs()[i]->type();
      const TypePtr unified = unify_types(first, second);
      // One optional is always annotated, as PyTorch writes it.
      const bool optional = n->outputs().size() == 1 && type->kind == TypeKind::Optional && !(*first == *type && *second == *type);
      annotate.push_back(optional || !unified || !(*unified == *type));
    }
    statement(n, "if " + condition + ":");
    for (std::size_t arm = 0; arm < 2; ++arm) {
      if (arm == 1) statement("else:");
      ++level_;
      body(n->blocks()[arm], [&](const Block* b) {
        const std::vector<std::string> values = operand_texts(b->outputs());
        if (arm == 0 && std::find(annotate.begin(), annotate.end(), true) != annotate.end()) {
          for (std::size_t i = 0; i < values.size(); ++i)
            statement(names[i] + (annotate[i] ? " : " + annotation_text(n->output(i)->type(), names_) : "") + " = " + values[i]);
        } else {
          assign(names, values);
        }
      });
      --level_;
    }
  }

  void loop(const Node* n) {
    const Block* b = n->blocks()[0];
    const bool is_for = constant_as<bool>(n->input(1)).value_or(false) && constant_as<bool>(b->outputs()[0]).value_or(false);
    std::vector<std::string> names;
    for (std::size_t i = 0; i < n->outputs().size(); ++i) {
      const Value* v = n->output(i);
      const std::string initial = text_of(n->input(i + 2));
      consume({n->input(i + 2)});
      names.push_back(name_value(v));
      const bool annotated = v->type()->kind == TypeKind::Optional || !(*v->type() == *n->input(i + 2)->type());
      statement(names.back() + (annotated ? ": " + annotation_text(v->type(), names_) : "") + " = " + initial);
      texts_[b->inputs()[i + 1]] = names.back();
    }
    if (is_for) {
      const std::string count = operand_texts({n->input(0)})[0];
      statement(n, "for " + name_value(b->inputs()[0]) + " in range(" + count + "):");
    } else {
      const std::string start = text_of(n->input(1));
      consume({n->input(1)});
      names.insert(names.begin(), unique_name("_"));
      statement(names[0] + " = " + start);
      statement(n, "while " + names[0] + ":");
    }
    ++level_;
    body(b, [&](const Block* inner) {
      std::vector<Value*> values = inner->outputs();
      if (is_for) values.erase(values.begin());
      assign(names, operand_texts(values));
    });
    --level_;
  }

  void fork(const Node* n) {
    const auto graph = n->g(attr::Subgraph);
    const std::vector<std::string> captured = operand_texts(n->inputs());
    const std::string name = unique_name("__forked_function");
    statement("def " + name + "():");
    for (std::size_t i = 0; i < captured.size(); ++i) texts_[graph->inputs()[i]] = captured[i];
    const InlineValues inner(graph->block());
    const InlineValues* outer = std::exchange(inlined_, &inner);
    ++level_;
    body(graph->block(), [&](const Block* b) { return_statement(b); });
    --level_;
    inlined_ = outer;
    statement(n, name_value(n->output()) + (n->kind() == prim::fork ? " = fork(" : " = awaitable(") + name + ")");
  }

  void return_statement(const Block* b) {
    const std::vector<std::string> values = operand_texts(b->outputs());
    if (values.empty()) return statement("return None");
    std::string all;
    for (const std::string& v : values) all += (all.empty() ? "" : ", ") + v;
    statement("return " + all);
  }

  void header(const Function& f, const Graph& graph, bool self_type) {
    const FunctionSchema& schema = f.getSchema();
    CRESSET_CHECK(schema.arguments().size() == graph.inputs().size(), "archive: the schema of '", f.qualname(),
                  "' does not fit its graph.");
    mark({});
    std::string line = "def " + f.name() + "(";
    for (std::size_t i = 0; i < graph.inputs().size(); ++i) {
      const Argument& a = schema.arguments()[i];
      const std::string name = unique_name(valid_identifier(a.name));
      texts_[graph.inputs()[i]] = name;
      if (i) line += ",\n    ";
      line += name;
      if (i > 0 || self_type) line += ": " + annotation_text(a.type, names_);
      if (a.default_value) line += "=" + constant_text(*a.default_value, a.type, names_, constants_);
    }
    const TypePtr result = schema.returns().empty() ? basic_type(TypeKind::None) : schema.returns()[0].type();
    statement(line + ") -> " + annotation_text(result, names_) + ":");
  }

  const CodeNames& names_;
  ConstantTable& constants_;
  std::string& text_;
  CodeRanges& ranges_;
  std::unordered_map<std::string, std::size_t>& next_suffix_;
  std::size_t level_;
  std::unordered_set<std::string> used_;
  std::unordered_map<const Value*, std::string> texts_;  // names and expressions
  std::vector<const Value*> waiting_;                    // expressions that no statement has yet, in the order of the program
  const InlineValues* inlined_ = nullptr;
};

}  // namespace

void CodePrinter::function(const Function& f, bool self_type) {
  FunctionPrinter(names_, constants_, text_, ranges_, next_suffix_, 0).run(f, self_type);
}

std::string CodePrinter::constant(const IValue& v) const { return constant_text(v, v.type(), names_, constants_); }

void CodePrinter::type(const TypePtr& type) {
  const std::string qualified = names_.type(type);
  const std::string name = qualified.substr(qualified.rfind('.') + 1);
  const auto line = [&](std::size_t level, const std::string& s) { text_ += std::string(2 * level, ' ') + s + "\n"; };
  if (const auto cls = type->cast<ClassType>()) {
    CRESSET_CHECK(!cls->is_opaque(), "archive: the class '", cls->name, "' is known only by name; its code cannot be saved.");
    line(0, "class " + name + (cls->is_module() ? "(Module):" : ":"));
    class_type(*cls);
  } else if (const auto interface = type->cast<InterfaceType>()) {
    line(0, "class " + name + (interface->is_module() ? "(ModuleInterface):" : "(Interface):"));
    for (const FunctionSchema& m : interface->methods()) {
      std::string arguments = "self";
      for (std::size_t i = 1; i < m.arguments().size(); ++i)
        arguments += ", " + m.arguments()[i].name + ": " + annotation_text(m.arguments()[i].type, names_);
      const TypePtr result = m.returns().empty() ? basic_type(TypeKind::None) : m.returns()[0].type();
      line(1, "def " + m.name() + "(" + arguments + ") -> " + annotation_text(result, names_) + ":");
      line(2, "pass");
    }
  } else if (const auto enumeration = type->cast<EnumType>()) {
    line(0, "class " + name + "(Enum):");
    for (const auto& e : enumeration->enumerators()) line(1, e->name + " = " + constant(e->value));
  } else if (const auto tuple = type->cast<NamedTupleType>()) {
    line(0, "class " + name + "(NamedTuple):");
    for (std::size_t i = 0; i < tuple->fields.size(); ++i) line(1, tuple->fields[i] + " : " + annotation_text(tuple->contained[i], names_));
  } else {
    CRESSET_THROW(Error, "archive: the code of the type '", type->str(), "' cannot be saved.");
  }
}

void CodePrinter::class_type(const ClassType& type) {
  const auto line = [&](const std::string& s) { text_ += "  " + s + "\n"; };
  if (type.is_module()) {
    std::string parameters, buffers;
    for (const ClassAttribute& a : type.attributes()) {
      if (a.is_parameter) parameters += "\"" + a.name + "\", ";
      if (a.is_buffer) buffers += "\"" + a.name + "\", ";
    }
    line("__parameters__ = [" + parameters + "]");
    line("__buffers__ = [" + buffers + "]");
    const auto hooks = [&](const char* list, const std::vector<Function*>& functions) {
      std::string names;
      for (const Function* f : functions) names += "\"" + f->name() + "\", ";
      if (!names.empty()) line(std::string(list) + " = [" + names + "]");
    };
    hooks("__forward_pre_hooks__", type.getForwardPreHooks());
    hooks("__forward_hooks__", type.getForwardHooks());
  }
  for (const ClassAttribute& a : type.attributes()) {
    const std::string annotation = annotation_text(a.type, names_);
    line(is_identifier(a.name) ? a.name + " : " + annotation : "__annotations__[\"" + a.name + "\"] = " + annotation);
  }
  for (const auto& [name, value] : type.constants())
    line(name + " : Final[" + annotation_text(value.type(), names_) + "] = " + constant(value));
  std::vector<const Function*> functions;
  for (const auto& all : {type.methods(), type.getForwardPreHooks(), type.getForwardHooks()})
    for (const Function* f : all)
      if (std::find(functions.begin(), functions.end(), f) == functions.end()) functions.push_back(f);  // a hook may run twice
  for (const Function* f : functions) FunctionPrinter(names_, constants_, text_, ranges_, next_suffix_, 1).run(*f, true);
}

namespace {
CodeNames own_names() {
  return {[](const TypePtr& t) { return t->name; }, [](const Function& f) { return f.qualname(); }};
}
}  // namespace

std::pair<std::string, std::vector<IValue>> code_with_constants(const Function& function) {
  ConstantTable constants;
  CodePrinter printer(own_names(), constants);
  const auto& arguments = function.getSchema().arguments();
  // The first parameter of a method is written as `self` alone.
  const bool is_method = !arguments.empty() && arguments[0].type->kind == TypeKind::Object &&
                         function.qualname() == arguments[0].type->name + "." + function.name();
  printer.function(function, !is_method);
  return {printer.text(), constants.values()};
}
std::string code_of(const Function& function) { return code_with_constants(function).first; }

}  // namespace cresset::jit
