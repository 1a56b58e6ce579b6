// Graphs as text. Nothing here recurses over blocks or subgraphs, and indentation stops growing at a depth, so that the text of a deep
// graph is linear in its size.
#include <algorithm>
#include <deque>
#include <iostream>

#include <cresset/ir/function.h>
#include <cresset/ir/ir.h>

#include "ir/text/text.h"

namespace cresset::jit {
namespace {

constexpr std::size_t kDeepestIndent = 48;
constexpr int64_t kLargestDisplay = 10;

class Printer {
 public:
  explicit Printer(const PrintOptions& options) : options_(options) {}

  std::string run(const Graph& g) {
    graph(g);
    for (std::size_t i = 0; i < sections_.size(); ++i) {
      out_ += "with " + sections_[i].first + " = ";
      graph(*sections_[i].second);
    }
    constants_section();
    return std::move(out_);
  }

  std::string node_text(const Node& n) {
    node(n, 0);
    for (std::size_t i = 0; i < n.blocks().size(); ++i) {
      out_ += "  block" + std::to_string(i) + "(";
      for (std::size_t k = 0; k < n.blocks()[i]->inputs().size(); ++k) {
        if (k) out_ += ", ";
        formal(*n.blocks()[i]->inputs()[k]);
      }
      out_ += "):\n";
      body(*n.blocks()[i], 2);
      out_ += "    -> (";
      names(n.blocks()[i]->outputs());
      out_ += ")\n";
    }
    return std::move(out_);
  }

  std::string block_text(const Block& b) {
    body(b);
    out_ += "  -> (";
    names(b.outputs());
    out_ += ")\n";
    return std::move(out_);
  }

  std::string node_head(const Node& n) {
    kind_and_attributes(n);
    return std::move(out_);
  }

  std::string node_line(const Node& n) {
    node(n, 0);
    while (!out_.empty() && out_.back() == '\n') out_.pop_back();
    return std::move(out_);
  }

 private:
  void graph(const Graph& g) {
    out_ += "graph(";
    const auto& inputs = g.inputs();
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (i) out_ += ",\n      ";
      formal(*inputs[i]);
    }
    out_ += "):\n";
    body(*g.block());
    out_ += "  return (";
    names(g.outputs());
    out_ += ")\n";
  }

  // The nodes of a block and of all blocks inside.
  void body(const Block& top, std::size_t level = 1) {
    struct Frame {
      const Node* node;  // to be printed next
      const Block* block;
      std::size_t level;
      std::size_t next_block;  // of the node printed last
    };
    std::vector<Frame> stack{{top.param_node()->next(), &top, level, 0}};
    while (!stack.empty()) {
      Frame& f = stack.back();
      const Node* before = f.node->prev();
      if (before->kind() != prim::Param && f.next_block < before->blocks().size()) {
        const Block* b = before->blocks()[f.next_block];
        indent(f.level + 1);
        out_ += "block" + std::to_string(f.next_block++) + "(";
        for (std::size_t i = 0; i < b->inputs().size(); ++i) {
          if (i) out_ += ", ";
          formal(*b->inputs()[i]);
        }
        out_ += "):\n";
        stack.push_back({b->param_node()->next(), b, f.level + 2, 0});
        continue;
      }
      if (f.node->kind() == prim::Return) {
        if (stack.size() > 1) {
          indent(f.level);
          out_ += "-> (";
          names(f.block->outputs());
          out_ += ")\n";
        }
        stack.pop_back();
        continue;
      }
      node(*f.node, f.level);
      f.node = f.node->next();
      f.next_block = 0;
    }
  }

  void indent(std::size_t level) { out_.append(2 * std::min(level, kDeepestIndent), ' '); }

  void name(const Value& v) {
    out_ += '%';
    const std::string n = v.debugName();
    out_ += is_plain_name(n) ? n : in_quotes(n);
  }
  void names(const std::vector<Value*>& values) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (i) out_ += ", ";
      name(*values[i]);
    }
  }
  void formal(const Value& v) {
    name(v);
    out_ += " : ";
    out_ += v.type()->str();
  }

  void kind_and_attributes(const Node& n) {
    if (n.kind() == prim::PythonOp && n.hasAttribute(attr::name) && n.kindOf(attr::name) == AttributeKind::s &&
        (is_plain_name(n.s(attr::name)) || n.s(attr::name) == "<python_value>")) {
      out_ += "^" + n.s(attr::name) + "(";
      static const Symbol scalar_args = Symbol::attr("scalar_args");
      if (n.hasAttribute(scalar_args) && n.kindOf(scalar_args) == AttributeKind::ival) {
        const auto& args = n.ival(scalar_args).toListRef();
        for (std::size_t i = 0; i < args.size(); ++i) {
          if (i) out_ += ", ";
          literal(args[i]);
        }
      }
      out_ += ")";
      attributes(n, {attr::name, scalar_args});
    } else if (n.hasAttribute(attr::Subgraph) && n.kindOf(attr::Subgraph) == AttributeKind::g && n.g(attr::Subgraph)) {
      out_ += section(n.kind().toQualString() + "_", n.g(attr::Subgraph).get());
      attributes(n, {attr::Subgraph});
    } else {
      out_ += n.kind().toQualString();
      attributes(n, {});
    }
  }

  void node(const Node& n, std::size_t level) {
    indent(level);
    for (std::size_t i = 0; i < n.outputs().size(); ++i) {
      if (i) out_ += ", ";
      formal(*n.outputs()[i]);
    }
    out_ += " = ";
    kind_and_attributes(n);
    out_ += "(";
    names(n.inputs());
    out_ += ")";
    if (n.scope() && !n.scopeName().empty()) out_ += ", scope: " + n.scopeName();
    if (options_.source_ranges && n.sourceRange().known() && n.sourceRange().filename().find('\n') == std::string::npos)
      out_ += " # " + n.sourceRange().str();
    out_ += "\n";
  }

  std::string section(const std::string& prefix, const Graph* g) {
    sections_.emplace_back(prefix + std::to_string(sections_.size()), g);
    return sections_.back().first;
  }

  void attributes(const Node& n, std::initializer_list<Symbol> hidden) {
    if (!options_.attributes) return;
    bool any = false;
    for (const Attribute& a : n.attributes()) {
      if (std::find(hidden.begin(), hidden.end(), a.name) != hidden.end()) continue;
      out_ += any ? ", " : "[";
      any = true;
      out_ += a.name.toUnqualString();
      out_ += "=";
      const bool typed = n.kind() == prim::Constant && a.name == attr::value && !n.outputs().empty();
      attribute(a, typed ? n.outputs()[0]->type().get() : nullptr);
    }
    if (any) out_ += "]";
  }

  template <class T, class F>
  void list(AttributeKind kind, const std::vector<T>& values, F&& f) {
    if (values.empty() && kind != AttributeKind::is) out_ += toString(kind);
    out_ += "[";
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (i) out_ += ", ";
      f(values[i]);
    }
    out_ += "]";
  }

  // `constant` is the type of the constant whose value it is, else null.
  void attribute(const Attribute& a, const Type* constant) {
    switch (a.kind()) {
      case AttributeKind::f: out_ += float_text(std::get<double>(a.value)); break;
      case AttributeKind::c: out_ += complex_text(std::get<std::complex<double>>(a.value)); break;
      case AttributeKind::i: out_ += std::to_string(std::get<int64_t>(a.value)); break;
      case AttributeKind::s: out_ += in_quotes(std::get<std::string>(a.value)); break;
      case AttributeKind::t: tensor(std::get<Tensor>(a.value), constant); break;
      case AttributeKind::g: out_ += "<" + section("graph_", std::get<std::shared_ptr<Graph>>(a.value).get()) + ">"; break;
      case AttributeKind::ty: type(*std::get<TypePtr>(a.value)); break;
      case AttributeKind::fs: list(a.kind(), std::get<std::vector<double>>(a.value), [&](double v) { out_ += float_text(v); }); break;
      case AttributeKind::cs:
        list(a.kind(), std::get<std::vector<std::complex<double>>>(a.value), [&](auto v) { out_ += complex_text(v); });
        break;
      case AttributeKind::is: list(a.kind(), std::get<std::vector<int64_t>>(a.value), [&](int64_t v) { out_ += std::to_string(v); }); break;
      case AttributeKind::ss:
        list(a.kind(), std::get<std::vector<std::string>>(a.value), [&](const auto& v) { out_ += in_quotes(v); });
        break;
      case AttributeKind::ts: list(a.kind(), std::get<std::vector<Tensor>>(a.value), [&](const Tensor& v) { tensor(v, nullptr); }); break;
      case AttributeKind::gs:
        list(a.kind(), std::get<std::vector<std::shared_ptr<Graph>>>(a.value),
             [&](const auto& g) { out_ += "<" + section("graph_", g.get()) + ">"; });
        break;
      case AttributeKind::tys: list(a.kind(), std::get<std::vector<TypePtr>>(a.value), [&](const TypePtr& t) { type(*t); }); break;
      case AttributeKind::ival: {
        const IValue& v = std::get<IValue>(a.value);
        // Outside of constants the text must show the exact type; inside, the output's type does.
        if (!constant) out_ += "annotate(" + v.type()->str() + ", ";
        literal(v);
        if (!constant) out_ += ")";
        break;
      }
    }
  }

  void type(const Type& t) { out_ += t.str(); }

  void literal(const IValue& v) {
    switch (v.tag()) {
      case IValue::Tag::None: out_ += "None"; break;
      case IValue::Tag::Int: out_ += std::to_string(v.toInt()); break;
      case IValue::Tag::Bool: out_ += v.toBool() ? "True" : "False"; break;
      case IValue::Tag::Double: out_ += float_text(v.toDouble()); break;
      case IValue::Tag::Complex: out_ += complex_text(v.toComplexDouble()); break;
      case IValue::Tag::String: out_ += in_quotes(v.toStringRef()); break;
      case IValue::Tag::Device: out_ += in_quotes(v.toDevice().str()); break;
      case IValue::Tag::Tensor: tensor(v.toTensor(), nullptr); break;
      case IValue::Tag::Enum: out_ += v.toEnumHolder()->type->name + "." + v.toEnumHolder()->name; break;
      case IValue::Tag::Function: out_ += "<Function " + v.toFunction()->qualname() + ">"; break;
      case IValue::Tag::List:
      case IValue::Tag::Tuple: {
        out_ += v.isList() ? "[" : "(";
        const auto& elements = v.toListRef();
        for (std::size_t i = 0; i < elements.size(); ++i) {
          if (i) out_ += ", ";
          literal(elements[i]);
        }
        if (v.isTuple() && elements.size() == 1) out_ += ",";
        out_ += v.isList() ? "]" : ")";
        break;
      }
      case IValue::Tag::Dict: {
        out_ += "{";
        bool first = true;
        for (const auto& [key, value] : v.toDictImpl().items) {
          if (!first) out_ += ", ";
          first = false;
          literal(key);
          out_ += ": ";
          literal(value);
        }
        out_ += "}";
        break;
      }
      case IValue::Tag::ScriptObject: out_ += options_.constants ? "<Object " + constant(v) + ">" : "<Object>"; break;
      default: out_ += "<" + v.tagKind() + ">";
    }
  }

  static std::string element_text(const Tensor& t) {
    switch (t.scalar_type()) {
      case ScalarType::Float:
      case ScalarType::Double: {
        const double v = t.item().toDouble();
        std::string s = float_text(v);
        return s;
      }
      case ScalarType::Long:
      case ScalarType::Int: return std::to_string(t.item().toLong());
      case ScalarType::Bool: return t.item().toBool() ? "1" : "0";
      default: return to_string(t.item());
    }
  }

  // One element that the reader gets back from its text and the output's type is shown; others are in the constants section.
  void tensor(const Tensor& t, const Type* constant_type) {
    if (!t.defined()) {
      out_ += "<Undefined>";
      return;
    }
    const bool single = t.has_storage() && t.is_cpu() && t.numel() == 1;
    if (single && constant_type) {
      const std::string text = element_text(t);
      const auto read = tensor_from_display(text, *constant_type);
      if (read && sameConstant(IValue(*read), IValue(t))) {
        out_ += "{" + text + "}";
        return;
      }
    }
    if (options_.constants) {
      out_ += "<Tensor " + constant(IValue(t)) + ">";
    } else if (single) {
      out_ += "{" + element_text(t) + "}";
    } else {
      out_ += "<Tensor>";
    }
  }

  std::string constant(const IValue& v) {
    const void* key =
        v.isTensor() ? static_cast<const void*>(v.toTensor().unsafeGetTensorImpl()) : static_cast<const void*>(&v.toObjectRef());
    const auto [found, fresh] = constant_numbers_.emplace(key, constants_.size());
    if (fresh) constants_.push_back(v);
    return "c" + std::to_string(found->second);
  }

  void constants_section() {
    if (constants_.empty()) return;
    out_ += "with constants:\n";
    for (std::size_t i = 0; i < constants_.size(); ++i) {  // objects may add more
      const IValue v = constants_[i];
      out_ += "  c" + std::to_string(i) + " : ";
      if (v.isTensor()) {
        const Tensor& t = v.toTensor();
        out_ += TensorType::create(t)->str() + " = ";
        if (!t.has_storage() || t.device() == Device("meta")) {
          out_ += "empty";
        } else {
          const std::string bytes = tensor_bytes(t);
          out_ += "base64 \"" + base64(bytes.data(), bytes.size()) + "\"";
          if (t.numel() > 0 && t.numel() <= kLargestDisplay && t.is_cpu()) preview(t);
        }
      } else {
        const ivalue::Object& o = v.toObjectRef();
        out_ += o.type->str() + " = object(";
        for (std::size_t k = 0; k < o.slots.size(); ++k) {
          if (k) out_ += ", ";
          literal(o.slots[k]);
        }
        out_ += ")";
      }
      out_ += "\n";
    }
  }

  void preview(const Tensor& t) {
    out_ += "  #";
    const Tensor flat = t.detach().reshape({t.numel()});
    for (int64_t i = 0; i < flat.numel(); ++i) out_ += " " + element_text(flat.select(0, i));
  }

  PrintOptions options_;
  std::string out_;
  std::vector<std::pair<std::string, const Graph*>> sections_;
  std::vector<IValue> constants_;
  std::unordered_map<const void*, std::size_t> constant_numbers_;
};

}  // namespace

std::string Node::str() const {
  PrintOptions options;
  options.constants = false;
  return Printer(options).node_line(*this);
}
std::string kind_and_attributes(const Node& n) {
  PrintOptions options;
  options.constants = false;
  return Printer(options).node_head(n);
}
std::string Node::toString() const {
  PrintOptions options;
  options.constants = false;
  return Printer(options).node_text(*this);
}
std::ostream& Node::print(std::ostream& out) const { return out << *this; }
std::ostream& Node::print(std::ostream& out, std::size_t level, std::vector<const Node*>* groups, bool print_source_locations,
                          bool print_attributes, bool, bool print_body) const {
  const PrintOptions options{print_source_locations, false, print_attributes};
  if (groups && hasAttribute(attr::Subgraph)) groups->push_back(this);
  if (!print_body) return out << std::string(2 * level, ' ') << Printer(options).node_line(*this);
  const std::string whole = Printer(options).node_text(*this);
  for (std::string_view text = whole; !text.empty();) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    out << std::string(2 * level, ' ') << line << "\n";
  }
  return out;
}
void Node::dump() const { std::cout << *this; }
void Graph::dump() const { std::cout << *this; }
std::ostream& Graph::print(std::ostream& out, bool source_ranges) const { return out << toString(PrintOptions{source_ranges, false}); }
std::ostream& operator<<(std::ostream& out, const Graph& g) { return g.print(out); }
std::ostream& operator<<(std::ostream& out, const Node& n) { return out << n.toString(); }
std::ostream& operator<<(std::ostream& out, const Value& v) { return out << v.debugName() << " : " << *v.type(); }
std::ostream& operator<<(std::ostream& out, const Block& b) {
  PrintOptions options;
  options.constants = false;
  return out << Printer(options).block_text(b);
}
std::ostream& operator<<(std::ostream& out, const SourceRange& r) { return out << r.highlight(); }
std::string Graph::toString(const PrintOptions& options) const { return Printer(options).run(*this); }
std::string Graph::toString(bool source_ranges) const { return toString(PrintOptions{source_ranges, true}); }
std::string to_string(const Graph& g) { return g.toString(); }

}  // namespace cresset::jit
