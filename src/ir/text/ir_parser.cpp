// Reading IR text. One pass over the characters with an explicit stack of blocks; subgraph and constant sections follow their graph, so
// references to them are resolved at the end.
#include <cresset/ir/ir_parser.h>

#include <algorithm>

#include <cresset/ir/function.h>
#include <cresset/ir/operator.h>

#include "ir/text/constant_reader.h"
#include "ir/text/literal_reader.h"
#include "ir/text/text.h"

namespace cresset::jit {
namespace {

class IrReader {
 public:
  IrReader(std::string_view text, const ParseOptions& options) : c_(text), options_(options) {}

  std::shared_ptr<Graph> run(std::unordered_map<std::string, Value*>* names) {
    try {
      auto graph = read_graph(names);
      for (;;) {
        c_.skip();
        if (c_.at >= c_.text.size()) break;
        const std::size_t start = c_.at;
        if (c_.word() != "with") c_.fail_at(start, "expected the end but found " + (c_.at = start, c_.found()) + " here");
        c_.skip();
        const std::size_t name_start = c_.at;
        while (c_.at < c_.text.size() && (Cursor::word_char(c_.peek()) || c_.peek() == ':')) ++c_.at;
        std::string name(c_.text.substr(name_start, c_.at - name_start));
        if (name == "constants:") {
          constants_.read_section();
          continue;
        }
        c_.expect("=");
        if (!sections_.emplace(name, read_graph(nullptr)).second) c_.fail_at(name_start, "section '" + name + "' was given twice");
      }
      resolve();
      return graph;
    } catch (const SyntaxError& e) {
      raise(e);
    }
  }

 private:
  // ---- errors

  [[noreturn]] void raise(const SyntaxError& e) const {
    const std::size_t at = std::min(e.at, c_.text.size());
    const std::size_t before = at == 0 ? std::string_view::npos : c_.text.rfind('\n', at - 1);
    const std::size_t start = before == std::string_view::npos ? 0 : before + 1;
    const std::size_t end = std::min(c_.text.find('\n', start), c_.text.size());
    const auto line = static_cast<std::size_t>(std::count(c_.text.begin(), c_.text.begin() + static_cast<std::ptrdiff_t>(start), '\n')) + 1;
    // Around the place only: lines with constants are long.
    constexpr std::size_t kShown = 120;
    const std::size_t from = at - start > kShown ? at - kShown : start;
    const std::string_view shown = c_.text.substr(from, std::min(end, at + kShown) - from);
    CRESSET_THROW(Error, e.message, ":\n", options_.filename.empty() ? std::string() : options_.filename + ", ", "line ", line, ", column ",
                  at - start + 1, ":\n", shown, "\n", std::string(at - from, ' '), "~~~~ <--- HERE");
  }

  // ---- names

  struct Shadowed {
    std::string_view name;
    Value* before;
  };
  struct Frame {
    Block* block;
    Node* last;            // the node that blocks standing here belong to
    std::size_t shadowed;  // names bound in this block start there
  };

  void bind(std::string_view name, Value* v, bool was_quoted) {
    Value*& slot = environment_[name];
    shadowed_.push_back({name, slot});
    slot = v;
    values_.push_back(v);
    if (!was_quoted && name.find_first_not_of("0123456789") == std::string_view::npos) {
      if (name.size() > 15) c_.fail_at(c_.at - name.size(), "the number of a value has at most 15 digits");
      numbered_.emplace_back(v, std::stoull(std::string(name)));
    } else {
      v->setDebugName(std::string(name));
    }
  }

  // %name or %"any name"; the view lives as long as the reader.
  std::string_view value_name(bool* was_quoted = nullptr) {
    c_.expect("%");
    if (c_.peek() == '"') {
      quoted_names_.push_back(std::make_unique<std::string>(c_.string()));
      if (was_quoted) *was_quoted = true;
      if (!Value::isValidName(*quoted_names_.back()) || quoted_names_.back()->empty()) c_.fail("a name needs a character that is no digit");
      return *quoted_names_.back();
    }
    const std::size_t start = c_.at;
    while (c_.at < c_.text.size() && (Cursor::word_char(c_.peek()) || c_.peek() == '.')) ++c_.at;
    if (c_.at == start) c_.fail("expected a value name but found " + c_.found() + " here");
    return c_.text.substr(start, c_.at - start);
  }

  Value* lookup() {
    c_.skip();
    const std::size_t start = c_.at;
    const std::string_view name = value_name();
    const auto found = environment_.find(name);
    if (found == environment_.end() || !found->second) c_.fail_at(start, "Cannot find a variable with name '" + std::string(name) + "'");
    return found->second;
  }

  std::vector<Value*> operands() {
    std::vector<Value*> out;
    c_.expect("(");
    if (c_.accept(")")) return out;
    do out.push_back(lookup());
    while (c_.accept(","));
    c_.expect(")");
    return out;
  }

  TypePtr type() {
    c_.skip();
    return read_type(c_.text, c_.at, options_.resolver);
  }

  // ---- graphs and blocks

  void block_inputs(Block* b) {
    c_.expect("(");
    if (c_.accept(")")) return;
    do {
      c_.skip();
      bool was_quoted = false;
      const std::string_view name = value_name(&was_quoted);
      Value* v = b->addInput();
      bind(name, v, was_quoted);
      if (c_.accept(":")) v->setType(type());
    } while (c_.accept(","));
    c_.expect(")");
  }

  std::shared_ptr<Graph> read_graph(std::unordered_map<std::string, Value*>* names) {
    environment_.clear();
    shadowed_.clear();
    values_.clear();
    numbered_.clear();
    graph_ = std::make_shared<Graph>();
    graphs_.push_back(graph_);
    c_.skip();
    const std::size_t start = c_.at;
    if (c_.word() != "graph") c_.fail_at(start, "expected graph but found " + (c_.at = start, c_.found()) + " here");
    block_inputs(graph_->block());
    c_.expect(":");
    std::vector<Frame> stack{{graph_->block(), nullptr, 0}};
    for (;;) {
      c_.skip();
      Frame& top = stack.back();
      if (c_.starts_with("->")) {
        if (stack.size() == 1) c_.fail("expected return but found '->' here");
        c_.at += 2;
        for (Value* v : operands()) top.block->registerOutput(v);
        close(top.shadowed);
        stack.pop_back();
        continue;
      }
      if (c_.peek() != '%' && c_.peek() != '=' && c_.peek() != '^') {
        const std::size_t word_start = c_.at;
        const std::string_view word = c_.word();
        if (word.empty()) c_.fail("expected a statement, return or -> but found " + c_.found() + " here");
        if (word == "return" && !c_.starts_with("::")) {
          if (stack.size() > 1) c_.fail_at(word_start, "expected -> but found 'return' here");
          for (Value* v : operands()) graph_->registerOutput(v);
          break;
        }
        if (!c_.starts_with("::")) {
          if (!top.last) c_.fail_at(word_start, "block '" + std::string(word) + "' stands behind no node");
          Block* b = top.last->addBlock();
          stack.push_back({b, nullptr, shadowed_.size()});
          block_inputs(b);
          c_.expect(":");
          continue;
        }
        c_.at = word_start;
      }
      top.last = statement(top.block);
    }
    number_values();
    if (names)
      for (const auto& [name, v] : environment_)
        if (v) names->emplace(std::string(name), v);
    if (names) names->merge(closed_);
    return std::move(graph_);
  }

  void close(std::size_t until) {
    while (shadowed_.size() > until) {
      Value*& here = environment_[shadowed_.back().name];
      if (here) closed_.emplace(std::string(shadowed_.back().name), here);
      here = shadowed_.back().before;
      shadowed_.pop_back();
    }
  }

  // Anonymous values keep the numbers of the text; all others come behind.
  void number_values() {
    std::unordered_map<std::size_t, Value*> owner;
    std::size_t next = 0;
    for (const auto& [v, number] : numbered_) {
      owner.emplace(number, v);
      next = std::max(next, number + 1);
    }
    std::unordered_map<const Value*, std::size_t> wanted;
    for (const auto& [number, v] : owner) wanted.emplace(v, number);
    for (Value* v : values_) {
      const auto own = wanted.find(v);
      graph_->renumberValue(v, own != wanted.end() ? own->second : next++);
    }
  }

  // ---- statements

  struct Output {
    std::string_view name;
    bool was_quoted = false;
    TypePtr type;  // null: not given
    std::size_t at;
  };

  Node* statement(Block* block) {
    std::vector<Output> outputs;
    if (c_.peek() == '%') {
      do {
        c_.skip();
        Output o;
        o.at = c_.at;
        o.name = value_name(&o.was_quoted);
        if (c_.accept(":")) o.type = type();
        outputs.push_back(std::move(o));
      } while (c_.accept(","));
      c_.expect("=");
    } else {
      c_.accept("=");
    }
    c_.skip();
    const std::size_t kind_at = c_.at;
    Node* n = nullptr;
    std::string kind_text;
    if (c_.peek() == '^') {
      n = python_call();
    } else {
      const std::size_t start = c_.at;
      if (c_.word().empty()) c_.fail("expected an operator but found " + c_.found() + " here");
      if (!c_.starts_with("::")) c_.fail("expected :: but found " + c_.found() + " here");
      while (c_.starts_with("::")) {
        c_.at += 2;
        if (c_.word().empty()) c_.fail("expected an operator name but found " + c_.found() + " here");
      }
      kind_text = c_.text.substr(start, c_.at - start);
      n = graph_->create(Symbol::fromQualString(kind_text), 0);
    }
    block->appendNode(n);
    for (const Output& o : outputs) {
      Value* v = n->addOutput();
      if (o.type) v->setType(o.type);
    }
    const TypePtr constant = n->kind() == prim::Constant && !outputs.empty() ? outputs[0].type : nullptr;
    if (c_.skip(), c_.peek() == '[') attributes(n, constant);
    for (Value* v : operands()) n->addInput(v);
    trailer(n);
    if (!kind_text.empty()) kinds_with_number(n, kind_text, kind_at);
    finish_types(n, outputs, kind_at);
    for (std::size_t i = 0; i < outputs.size(); ++i) bind(outputs[i].name, n->output(i), outputs[i].was_quoted);
    return n;
  }

  // "^Name(1, "a")": a call of Python; its scalar arguments stand in the parentheses.
  Node* python_call() {
    ++c_.at;
    const std::size_t start = c_.at;
    constexpr std::string_view kUnnamed = "<python_value>";
    if (c_.text.substr(start).starts_with(kUnnamed)) c_.at += kUnnamed.size();
    while (c_.at < c_.text.size() && (Cursor::word_char(c_.peek()) || c_.peek() == '.')) ++c_.at;
    if (c_.at == start) c_.fail("expected the name of a Python function here");
    Node* n = graph_->create(prim::PythonOp, 0);
    n->s_(attr::name, std::string(c_.text.substr(start, c_.at - start)));
    c_.expect("(");
    std::vector<IValue> scalars;
    if (!c_.accept(")")) {
      do scalars.push_back(constants_.value_of(read_literal(c_, options_.resolver, true), *basic_type(TypeKind::Any)));
      while (c_.accept(","));
      c_.expect(")");
    }
    if (!scalars.empty()) n->ival_(Symbol::attr("scalar_args"), IValue(make_intrusive<ivalue::TupleImpl>(std::move(scalars))));
    return n;
  }

  void attributes(Node* n, const TypePtr& constant) {
    c_.expect("[");
    if (c_.accept("]")) return;
    do {
      c_.skip();
      const std::string_view name = c_.word();
      if (name.empty()) c_.fail("expected an attribute name but found " + c_.found() + " here");
      const Symbol symbol = Symbol::attr(name);
      c_.expect("=");
      if (n->kind() == prim::Constant && symbol == attr::value) {
        constant_value(n, constant);
      } else {
        set_attribute(n, symbol, read_literal(c_, options_.resolver, false));
      }
    } while (c_.accept(","));
    c_.expect("]");
  }

  // ", scope: a/b" and "# file:line:column" at the end of the line.
  void trailer(Node* n) {
    c_.skip_blanks();
    if (c_.peek() == ',') {
      c_.expect(",");
      c_.skip_blanks();
      if (c_.word() != "scope") c_.fail("expected scope here");
      c_.expect(":");
      c_.skip_blanks();
      const std::size_t start = c_.at;
      while (c_.at < c_.text.size() && c_.peek() != '\n' && !c_.starts_with(" #")) ++c_.at;
      std::size_t end = c_.at;
      while (end > start && (c_.text[end - 1] == ' ' || c_.text[end - 1] == '\r')) --end;
      n->setScope(Scope::parse(c_.text.substr(start, end - start)));
      c_.skip_blanks();
    }
    if (c_.peek() != '#') return;
    const std::size_t start = c_.at + 1, end = std::min(c_.text.find('\n', start), c_.text.size());
    c_.at = end;
    set_source_range(n, c_.text.substr(start, end - start));
  }

  static void set_source_range(Node* n, std::string_view comment) {
    while (!comment.empty() && (comment.back() == ' ' || comment.back() == '\r')) comment.remove_suffix(1);
    while (!comment.empty() && comment.front() == ' ') comment.remove_prefix(1);
    const std::size_t second = comment.rfind(':');
    if (second == std::string_view::npos || second == 0) return;
    const std::size_t first = comment.rfind(':', second - 1);
    if (first == std::string_view::npos) return;
    const std::string line(comment.substr(first + 1, second - first - 1)), column(comment.substr(second + 1));
    const auto is_number = [](const std::string& s) {
      return !s.empty() && s.size() < 10 && s.find_first_not_of("0123456789") == std::string::npos;
    };
    if (!is_number(line) || !is_number(column)) return;
    n->setSourceRange(SourceRange::at(std::string(comment.substr(0, first)), std::stoul(line), std::stoul(column)));
  }

  // "prim::fork_0" may mean prim::fork with the graph of the section of that name.
  void kinds_with_number(Node* n, const std::string& kind, std::size_t at) {
    const std::size_t underscore = kind.rfind('_');
    if (underscore == std::string::npos || underscore + 1 == kind.size() ||
        kind.find_first_not_of("0123456789", underscore + 1) != std::string::npos)
      return;
    numbered_kinds_.push_back({n, graph_, kind, underscore, at});
  }

  void finish_types(Node* n, const std::vector<Output>& outputs, std::size_t kind_at) {
    if (n->kind() == prim::Constant || n->outputs().empty()) return;
    const FunctionSchema* schema = n->maybeSchema();
    if (!schema) return;
    std::vector<TypePtr> types = output_types(*schema, n->inputs());
    if (types.empty() || schema->is_varret()) return;
    if (types.size() != outputs.size())
      c_.fail_at(kind_at, "Operator " + schema->str() + " has " + std::to_string(types.size()) + " results; " +
                              std::to_string(outputs.size()) + " are named");
    for (std::size_t i = 0; i < types.size(); ++i) {
      if (!outputs[i].type) {
        n->output(i)->setType(types[i]);
      } else if (!schema->returns()[i].type->has_free_variables() && !outputs[i].type->is_subtype_of(*types[i])) {
        c_.fail_at(kind_at, "Annotated type " + outputs[i].type->str() + " does not match schema type " + types[i]->str() +
                                " for operator " + schema->str());
      }
    }
  }

  // ---- attributes

  void constant_value(Node* n, const TypePtr& type) {
    c_.skip();
    if (const auto shown = printed_tensor(type)) {
      n->t_(attr::value, *shown);
      return;
    }
    Literal l = read_literal(c_, options_.resolver, true);
    if (l.kind == Literal::Kind::Annotated) {
      const TypePtr annotated = l.type;
      n->ival_(attr::value, constants_.value_of(l.items[0], *annotated));
      if (!type && !n->outputs().empty()) n->output()->setType(annotated);
      return;
    }
    if (l.kind == Literal::Kind::Tensor || l.kind == Literal::Kind::Object) {
      if (!l.s.empty()) {
        references_.push_back({n, graph_, attr::value, l.s, l.at});
        return;
      }
      if (l.kind == Literal::Kind::Object) c_.fail_at(l.at, "the contents of <Object> are not in the text");
      n->t_(attr::value, empty_tensor(l, type));
      return;
    }
    const TypeKind wanted = type ? type->kind() : TypeKind::Any;
    switch (l.kind) {
      case Literal::Kind::Int:
      case Literal::Kind::Bool:
        if (wanted == TypeKind::Float)
          n->f_(attr::value, static_cast<double>(l.i));
        else if (wanted == TypeKind::Complex)
          n->c_(attr::value, static_cast<double>(l.i));
        else
          n->i_(attr::value, l.i);
        if (!type) untyped(n, l.kind == Literal::Kind::Int ? TypeKind::Int : TypeKind::Bool);
        return;
      case Literal::Kind::Float:
        if (wanted == TypeKind::Complex)
          n->c_(attr::value, l.f);
        else
          n->f_(attr::value, l.f);
        if (!type) untyped(n, TypeKind::Float);
        return;
      case Literal::Kind::Complex:
        n->c_(attr::value, l.c);
        if (!type) untyped(n, TypeKind::Complex);
        return;
      case Literal::Kind::String:
        n->s_(attr::value, l.s);
        if (!type) untyped(n, TypeKind::String);
        return;
      case Literal::Kind::Display: displayed_value(n, l, type); return;
      case Literal::Kind::None:
        if (!type) untyped(n, TypeKind::None);
        return;
      default: {
        const IValue v = constants_.value_of(l, type ? *type : *basic_type(TypeKind::Any), n);
        n->ival_(attr::value, v);
        if (!type && !n->outputs().empty()) n->output()->setType(v.type());
      }
    }
  }
  // Tensors, and in newer texts plain numbers.
  void displayed_value(Node* n, const Literal& l, const TypePtr& type) {
    const TypeKind wanted = type ? type->kind : TypeKind::Tensor;
    if (wanted == TypeKind::Tensor || wanted == TypeKind::Any) {
      const auto t = tensor_from_display(l.s, type ? *type : *TensorType::get());
      if (!t) c_.fail_at(l.at, "{" + l.s + "} is no tensor of type " + (type ? type->str() : "Tensor"));
      n->t_(attr::value, *t);
      return;
    }
    Cursor inner(l.s);
    const Literal number = read_literal(inner, options_.resolver, true);
    if (number.kind == Literal::Kind::Int && wanted == TypeKind::Float)
      n->f_(attr::value, static_cast<double>(number.i));
    else if (number.kind == Literal::Kind::Float)
      n->f_(attr::value, number.f);
    else
      n->i_(attr::value, number.i);
  }
  static void untyped(Node* n, TypeKind kind) {
    if (!n->outputs().empty()) n->output()->setType(basic_type(kind));
  }

  // The display of small tensors in texts of PyTorch: " 1  2 [ CPULongType{2} ]".
  std::optional<Tensor> printed_tensor(const TypePtr& type) {
    if (!type || type->kind != TypeKind::Tensor) return std::nullopt;
    if (!c_.at_number() && c_.peek() != '[') return std::nullopt;
    const std::size_t line_end = std::min(c_.text.find('\n', c_.at), c_.text.size());
    const std::size_t mark = c_.text.substr(0, line_end).find("[ CPU", c_.at);
    if (mark == std::string_view::npos) return std::nullopt;
    const std::size_t brace = c_.text.find('{', mark), close = c_.text.find("} ]", mark);
    if (brace == std::string_view::npos || close == std::string_view::npos || close > line_end || brace > close) return std::nullopt;
    std::string_view word = c_.text.substr(mark + 5, brace - mark - 5);
    if (word.size() < 4 || word.substr(word.size() - 4) != "Type") return std::nullopt;
    const auto dtype = dtype_of_word(word.substr(0, word.size() - 4));
    if (!dtype) return std::nullopt;
    std::vector<int64_t> sizes;
    Cursor dims(c_.text.substr(brace + 1, close - brace - 1));
    while (dims.at_number()) {
      sizes.push_back(read_literal(dims, nullptr, true).i);
      dims.accept(",");
    }
    std::vector<double> values;
    Cursor numbers(c_.text.substr(c_.at, mark - c_.at));
    double scale = 1;
    for (numbers.skip(); numbers.at_number(); numbers.skip()) {
      const Literal l = read_literal(numbers, nullptr, true);
      values.push_back(l.kind == Literal::Kind::Float ? l.f : static_cast<double>(l.i));
      if (values.size() == 1 && numbers.accept("*")) {
        scale = values[0];
        values.clear();
      }
    }
    int64_t count = 1;
    for (int64_t s : sizes) count *= s;
    if (count < 0 || static_cast<std::size_t>(count) != values.size())
      c_.fail("the display of a tensor has another number of elements than its shape");
    Tensor t = cresset::detail::empty_cpu({count}, ScalarType::Double);
    for (std::size_t i = 0; i < values.size(); ++i) static_cast<double*>(t.data_ptr())[i] = values[i] * scale;
    c_.at = close + 3;
    return t.to(*dtype).reshape(sizes);
  }

  Tensor empty_tensor(const Literal& l, const TypePtr& type) {
    const auto* t = dynamic_cast<const TensorType*>(type.get());
    if (!options_.parse_tensor_constants)
      c_.fail_at(l.at, "the contents of <Tensor> are not in the text; parse_tensor_constants=True reads zeros of its type");
    if (!t || !t->is_complete())
      c_.fail_at(l.at, "<Tensor> needs a complete type (dtype, sizes, strides, device); '" + (type ? type->str() : std::string("Tensor")) +
                           "' was given");
    int64_t count = 1;
    const std::vector<int64_t> sizes = *t->concrete_sizes();
    for (int64_t s : sizes) {
      if (s < 0 || (s && count > (int64_t{1} << 32) / s)) c_.fail_at(l.at, "the tensor is too large");
      count *= s;
    }
    const auto zeros = tensor_from_bytes(*t, std::string(static_cast<std::size_t>(count) * elementSize(*t->dtype), '\0'));
    if (!zeros) c_.fail_at(l.at, "sizes and strides do not fit each other");
    return *zeros;
  }

  void set_list(Node* n, Symbol name, Literal l) {
    using Kind = Literal::Kind;
    const auto all = [&](std::initializer_list<Kind> kinds) {
      return std::all_of(l.items.begin(), l.items.end(),
                         [&](const Literal& e) { return std::find(kinds.begin(), kinds.end(), e.kind) != kinds.end(); });
    };
    const auto number = [](const Literal& e) { return e.kind == Kind::Float ? e.f : static_cast<double>(e.i); };
    if (all({Kind::Int})) {
      std::vector<int64_t> v;
      for (const Literal& e : l.items) v.push_back(e.i);
      n->is_(name, std::move(v));
    } else if (all({Kind::String})) {
      std::vector<std::string> v;
      for (Literal& e : l.items) v.push_back(std::move(e.s));
      n->ss_(name, std::move(v));
    } else if (all({Kind::Type})) {
      std::vector<TypePtr> v;
      for (const Literal& e : l.items) v.push_back(e.type);
      n->tys_(name, std::move(v));
    } else if (all({Kind::Graph})) {
      std::vector<std::string> v;
      for (const Literal& e : l.items) v.push_back(e.s);
      graph_references_.push_back({n, name, std::move(v), true, l.at});
      n->gs_(name, {});
    } else if (all({Kind::Tensor, Kind::Undefined})) {
      n->ts_(name, std::vector<Tensor>(l.items.size()));
      for (std::size_t i = 0; i < l.items.size(); ++i) {
        if (l.items[i].kind == Kind::Undefined) continue;
        if (l.items[i].s.empty()) c_.fail_at(l.items[i].at, "the contents of <Tensor> are not in the text");
        references_.push_back({n, graph_, name, l.items[i].s, l.items[i].at, i});
      }
    } else if (all({Kind::Int, Kind::Float})) {
      std::vector<double> v;
      for (const Literal& e : l.items) v.push_back(number(e));
      n->fs_(name, std::move(v));
    } else if (all({Kind::Int, Kind::Float, Kind::Complex})) {
      std::vector<std::complex<double>> v;
      for (const Literal& e : l.items) v.push_back(e.kind == Kind::Complex ? e.c : std::complex<double>(number(e)));
      n->cs_(name, std::move(v));
    } else {
      n->ival_(name, constants_.value_of(l, *basic_type(TypeKind::Any), n));
    }
  }

  void set_attribute(Node* n, Symbol name, Literal l) {
    switch (l.kind) {
      case Literal::Kind::Int: n->i_(name, l.i); return;
      case Literal::Kind::Float: n->f_(name, l.f); return;
      case Literal::Kind::Complex: n->c_(name, l.c); return;
      case Literal::Kind::String: n->s_(name, std::move(l.s)); return;
      case Literal::Kind::Bool: n->i_(name, l.i); return;
      case Literal::Kind::Type: n->ty_(name, l.type); return;
      case Literal::Kind::Graph:
        graph_references_.push_back({n, name, {l.s}, false, l.at});
        n->g_(name, nullptr);
        return;
      case Literal::Kind::Tensor:
        if (l.s.empty()) c_.fail_at(l.at, "the contents of <Tensor> are not in the text");
        n->t_(name, Tensor());
        references_.push_back({n, graph_, name, l.s, l.at});
        return;
      case Literal::Kind::Undefined: n->t_(name, Tensor()); return;
      case Literal::Kind::Annotated: n->ival_(name, constants_.value_of(l.items[0], *l.type, n)); return;
      case Literal::Kind::EmptyList:
        switch (l.list_kind) {
          case AttributeKind::fs: n->fs_(name, {}); return;
          case AttributeKind::cs: n->cs_(name, {}); return;
          case AttributeKind::ss: n->ss_(name, {}); return;
          case AttributeKind::ts: n->ts_(name, {}); return;
          case AttributeKind::gs: n->gs_(name, {}); return;
          default: n->tys_(name, {}); return;
        }
      case Literal::Kind::List: set_list(n, name, std::move(l)); return;
      default: n->ival_(name, constants_.value_of(l, *basic_type(TypeKind::Any), n));
    }
  }

  // ---- sections

  void resolve() {
    constants_.fill_placeholders();
    for (const Reference& r : references_) {
      const IValue& v = constants_.constant(r.constant, r.at);
      if (r.index) {
        if (!v.isTensor()) c_.fail_at(r.at, "constant '" + r.constant + "' is no tensor");
        std::vector<Tensor> all = r.node->ts(r.name);
        all[*r.index] = v.toTensor();
        r.node->ts_(r.name, std::move(all));
      } else if (v.isTensor()) {
        r.node->t_(r.name, v.toTensor());
      } else {
        r.node->ival_(r.name, v);
      }
    }
    for (const NumberedKind& k : numbered_kinds_) {
      const auto found = sections_.find(k.kind);
      if (found == sections_.end()) continue;
      retype(k, found->second);
    }
    for (const GraphReference& r : graph_references_) {
      std::vector<std::shared_ptr<Graph>> graphs;
      for (const std::string& name : r.graphs) {
        const auto found = sections_.find(name);
        if (found == sections_.end()) c_.fail_at(r.at, "subgraph '" + name + "' is not in the text");
        graphs.push_back(found->second);
      }
      if (r.list)
        r.node->gs_(r.name, std::move(graphs));
      else
        r.node->g_(r.name, graphs[0]);
    }
    resolve_functions();
  }

  struct NumberedKind {
    Node* node;
    std::shared_ptr<Graph> graph;
    std::string kind;
    std::size_t underscore, at;
  };

  // The node again, with the kind without its number and the subgraph as an attribute in front.
  static void retype(const NumberedKind& k, const std::shared_ptr<Graph>& subgraph) {
    k.node->changeKind(Symbol::fromQualString(k.kind.substr(0, k.underscore)));
    std::vector<Attribute> others = k.node->attributes();
    for (const Attribute& a : others) k.node->removeAttribute(a.name);
    k.node->g_(attr::Subgraph, subgraph);
    for (Attribute& a : others) k.node->setAttribute(a.name, std::move(a.value));
  }

  // Constants of functions become the functions themselves where they are known.
  void resolve_functions() {
    if (!options_.functions) return;
    for (const auto& g : graphs_)
      g->block()->visit([&](Node* n) {
        if (n->kind() != prim::Constant || n->outputs().size() != 1 || n->output()->type()->kind != TypeKind::Function ||
            !n->hasAttribute(attr::name))
          return;
        const std::string& qualified = n->output()->type()->name;
        auto f = qualified.empty() ? nullptr : options_.functions(qualified);
        if (!f) f = options_.functions(n->s(attr::name));
        if (const auto function = dynamic_intrusive_pointer_cast<Function>(f))
          n->output()->setType(std::make_shared<FunctionType>(function));
      });
  }

  struct Reference {
    Node* node;
    std::shared_ptr<Graph> graph;
    Symbol name;
    std::string constant;
    std::size_t at;
    std::optional<std::size_t> index = std::nullopt;
  };
  struct GraphReference {
    Node* node;
    Symbol name;
    std::vector<std::string> graphs;
    bool list;
    std::size_t at;
  };

  Cursor c_;
  const ParseOptions& options_;
  // Of the graph being read.
  std::shared_ptr<Graph> graph_;
  std::unordered_map<std::string_view, Value*> environment_;
  std::vector<Shadowed> shadowed_;
  std::unordered_map<std::string, Value*> closed_;  // values of blocks that ended, by name
  std::vector<Value*> values_;
  std::vector<std::pair<Value*, std::size_t>> numbered_;
  // Of the whole text.
  std::vector<std::unique_ptr<std::string>> quoted_names_;
  std::vector<std::shared_ptr<Graph>> graphs_;
  std::unordered_map<std::string, std::shared_ptr<Graph>> sections_;
  ConstantReader constants_{c_, options_};
  std::vector<Reference> references_;
  std::vector<GraphReference> graph_references_;
  std::vector<NumberedKind> numbered_kinds_;
};

}  // namespace

std::shared_ptr<Graph> parse_ir(std::string_view text, const ParseOptions& options, std::unordered_map<std::string, Value*>* names) {
  return IrReader(text, options).run(names);
}

void parseIR(const std::string& text, Graph* graph, std::unordered_map<std::string, Value*>& values, bool parse_tensor_constants) {
  ParseOptions options;
  options.parse_tensor_constants = parse_tensor_constants;
  std::unordered_map<std::string, Value*> read;
  const std::shared_ptr<Graph> source = parse_ir(text, options, &read);
  // Numbers count the values in the order of the program, whatever they are in the text.
  std::size_t next = 0;
  const auto number = [&](const Sequence<Value*>& values) {
    for (Value* v : values) source->renumberValue(v, next++);
  };
  number(source->inputs());
  source->block()->visit([&](Node* n) {
    number(n->outputs());
    for (const Block* b : n->blocks()) number(b->inputs());
  });
  std::unordered_map<Value*, Value*> copies;
  source->copyInto(*graph, copies);
  for (const auto& [name, value] : read) values[name] = copies.at(value);
  graph->block()->visit([](Node* n) {
    // Nodes know their operators before somebody gives them other inputs.
    n->maybeOperator();
    for (Value* v : n->outputs()) v->setDebugName("");
  });
}
void parseIR(const std::string& text, Graph* graph, bool parse_tensor_constants) {
  std::unordered_map<std::string, Value*> values;
  parseIR(text, graph, values, parse_tensor_constants);
}

}  // namespace cresset::jit
