// Nodes and constants as expressions.
#include <algorithm>

#include <cresset/ir/operator.h>

#include "ir/archive/code_printer.h"
#include "ir/text/text.h"

namespace cresset::jit {

bool is_identifier(std::string_view name) {
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  return !name.empty() && letter(name[0]) &&
         std::all_of(name.begin(), name.end(), [&](char c) { return letter(c) || (c >= '0' && c <= '9'); });
}

namespace {

std::string comma_separated(const std::vector<std::string>& parts) {
  std::string out;
  for (std::size_t i = 0; i < parts.size(); ++i) out += (i ? ", " : "") + parts[i];
  return out;
}
std::string tuple_text(const std::vector<std::string>& members) {
  return "(" + comma_separated(members) + (members.size() == 1 ? ",)" : ")");
}
std::string dict_text(const std::vector<std::string>& items) {
  std::string out = "{";
  for (std::size_t i = 0; i + 1 < items.size(); i += 2) out += (i ? ", " : "") + items[i] + ": " + items[i + 1];
  return out + "}";
}
std::string annotated(const TypePtr& type, const std::string& expression, const CodeNames& names) {
  return "annotate(" + annotation_text(type, names) + ", " + expression + ")";
}
// What stands in front of `.name` and `[i]`.
std::string operand(const std::string& expression) { return "(" + expression + ")"; }

bool is_ascii(std::string_view s) {
  return std::all_of(s.begin(), s.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}
// PyTorch's reader wants the apostrophe escaped, too.
std::string string_literal(std::string_view s) {
  std::string out;
  for (char c : in_quotes(s)) {
    if (c == '\'') out += '\\';
    out += c;
  }
  return out;
}

// Does the literal alone say that it is of this type?
bool says_element_type(const TypePtr& element, const std::vector<TypePtr>& members) {
  return !members.empty() && std::all_of(members.begin(), members.end(), [&](const TypePtr& t) {
    return *t == *element || (t->kind == TypeKind::Tensor && element->kind == TypeKind::Tensor);
  });
}

// Operators that the language has a word or a sign for.
struct Word {
  const char *kind, *word;
};
constexpr Word kCasts[] = {{"aten::Bool", "bool"},
                           {"aten::Complex", "complex"},
                           {"aten::Float", "float"},
                           {"aten::Int", "int"},
                           {"aten::str", "str"},
                           {"prim::Print", "print"},
                           {"prim::unchecked_unwrap_optional", "unchecked_unwrap_optional"}};
constexpr Word kImplicitCasts[] = {{"aten::ComplexImplicit", "complex"},
                                   {"aten::FloatImplicit", "float"},
                                   {"aten::IntImplicit", "int"},
                                   {"aten::ScalarImplicit", "number"}};
constexpr Word kFields[] = {{"prim::EnumName", "name"}, {"prim::EnumValue", "value"}};

template <std::size_t N>
const char* word_of(const Word (&table)[N], const std::string& kind) {
  for (const Word& w : table)
    if (kind == w.kind) return w.word;
  return nullptr;
}

std::string operator_name(Symbol kind) {
  for (const char* of_autograd : {"aten::backward", "aten::grad"})
    if (kind.toQualString() == of_autograd) return "torch.autograd." + std::string(kind.toUnqualString());
  if (kind.is_aten()) return "torch." + std::string(kind.toUnqualString());
  return "ops." + std::string(kind.ns()) + "." + std::string(kind.toUnqualString());
}

// A default fits when it is the constant that leaving the argument out would give.
bool is_default(const Argument& argument, const Value* v) {
  if (!argument.default_value) return false;
  const auto given = toIValue(v);
  if (!given) return false;
  const IValue& wanted = *argument.default_value;
  if (sameConstant(wanted, *given)) return true;
  // An int as default of a float or of a list of fixed length; a Scalar may be either number, so 1.0 is not its default 1.
  if (wanted.isInt() && given->isDouble())
    return argument.type->kind == TypeKind::Float && given->toDouble() == static_cast<double>(wanted.toInt());
  return given->isIntList() && wanted.isIntList() && given->toIntVector() == wanted.toIntVector();
}

std::string operator_call(const Node& n, const std::vector<std::string>& inputs) {
  const FunctionSchema* schema = n.maybeSchema();
  std::vector<std::string> arguments;
  if (!schema || schema->is_vararg()) return operator_name(n.kind()) + "(" + comma_separated(inputs) + ")";
  // Results to write to stand last; defaults in front of them are left out, too.
  std::size_t results = inputs.size();
  while (results > 0 && schema->arguments()[results - 1].kwarg_only && schema->arguments()[results - 1].is_mutable()) --results;
  std::size_t needed = results;
  while (needed > 0 && is_default(schema->arguments()[needed - 1], n.input(needed - 1))) --needed;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Argument& a = schema->arguments()[i];
    if (i < needed || i >= results) arguments.push_back(a.kwarg_only ? a.name + "=" + inputs[i] : inputs[i]);
  }
  return operator_name(n.kind()) + "(" + comma_separated(arguments) + ")";
}

std::vector<TypePtr> types_of(const std::vector<Value*>& values) {
  std::vector<TypePtr> out;
  for (const Value* v : values) out.push_back(v->type());
  return out;
}

std::string list_text(const Node& n, const std::vector<std::string>& inputs, const CodeNames& names) {
  const TypePtr& type = n.output()->type();
  const std::string literal = "[" + comma_separated(inputs) + "]";
  return says_element_type(type->contained.at(0), types_of(n.inputs())) ? literal : annotated(type, literal, names);
}

std::string dict_text(const Node& n, const std::vector<std::string>& inputs, const CodeNames& names) {
  const TypePtr& type = n.output()->type();
  std::vector<TypePtr> keys, values;
  for (std::size_t i = 0; i < n.inputs().size(); ++i) (i % 2 ? values : keys).push_back(n.input(i)->type());
  const bool plain = says_element_type(type->contained.at(0), keys) && says_element_type(type->contained.at(1), values);
  return plain ? dict_text(inputs) : annotated(type, dict_text(inputs), names);
}

// Of a function or method, which is the first input: a comma behind the last argument.
std::string call_text(const std::string& callee, const std::vector<std::string>& inputs) {
  std::string out = callee + "(";
  for (std::size_t i = 1; i < inputs.size(); ++i) out += inputs[i] + ", ";
  return out + ")";
}
std::string attribute_text(const std::string& object, const std::string& name) {
  const std::string base = is_identifier(object) ? object : operand(object);
  return is_identifier(name) ? base + "." + name : "getattr(" + object + ", " + string_literal(name) + ")";
}

std::string isinstance_text(const Node& n, const std::string& object, const CodeNames& names) {
  const auto& types = n.tys(attr::types);
  std::vector<std::string> parts;
  for (const TypePtr& t : types) parts.push_back(annotation_text(t, names));
  return "isinstance(" + object + ", " + (parts.size() == 1 ? parts[0] : "(" + comma_separated(parts) + ")") + ")";
}

}  // namespace

std::string expression_text(const Node& n, const std::vector<std::string>& inputs, const CodeNames& names) {
  const std::string& kind = n.kind().toQualString();
  if (const char* word = word_of(kCasts, kind)) return std::string(word) + "(" + comma_separated(inputs) + ")";
  if (const char* type = word_of(kImplicitCasts, kind)) return std::string("annotate(") + type + ", " + inputs.at(0) + ")";
  if (const char* field = word_of(kFields, kind)) return operand(inputs.at(0)) + "." + field;
  switch (n.kind()) {
    case prim::ListConstruct: return list_text(n, inputs, names);
    case prim::DictConstruct: return dict_text(n, inputs, names);
    case prim::TupleConstruct:
      if (!n.output()->type()->name.empty()) return names.type(n.output()->type()) + "(" + comma_separated(inputs) + ")";
      return tuple_text(inputs);
    case prim::ListUnpack:
    case prim::TupleUnpack: return inputs.at(0);
    case prim::TupleIndex: return operand(inputs.at(0)) + "[" + inputs.at(1) + "]";
    case prim::TupleSlice: return operand(inputs.at(0)) + "[" + std::to_string(n.i(attr::beg)) + ":" + std::to_string(n.i(attr::end)) + "]";
    case aten::__getitem__: return (is_identifier(inputs.at(0)) ? inputs[0] : operand(inputs[0])) + "[" + inputs.at(1) + "]";
    case prim::GetAttr: return attribute_text(inputs.at(0), n.s(attr::name));
    case prim::CallMethod: return call_text(operand(inputs.at(0)) + "." + n.s(attr::name), inputs);
    case prim::CallFunction: return call_text(inputs.at(0), inputs);
    case prim::CreateObject: {
      const std::string cls = names.type(n.output()->type());
      return cls + ".__new__(" + cls + ")";
    }
    case prim::unchecked_cast: return "unchecked_cast(" + annotation_text(n.output()->type(), names) + ", " + inputs.at(0) + ")";
    case prim::ModuleContainerIndex: return inputs.at(0) + "[" + inputs.at(1) + "]";
    case prim::Uninitialized: return "uninitialized(" + annotation_text(n.output()->type(), names) + ")";
    case prim::isinstance: return isinstance_text(n, inputs.at(0), names);
    case prim::tolist:
      return annotated(n.output()->type(), (is_identifier(inputs.at(0)) ? inputs[0] : operand(inputs[0])) + ".tolist()", names);
    case prim::PythonOp:
    case prim::IgnoredPythonOp:
      CRESSET_THROW(Error, "Could not export Python function call '", n.hasAttributeS("name") ? n.s(attr::name) : "<python_value>",
                    "'. Remove calls to Python functions before export. Did you forget to add @script or @script_method annotation? "
                    "If this is a nn.ModuleList, add it to __constants__",
                    n.sourceRange().known() ? ":\n" + n.sourceRange().highlight() : ".");
    default: break;
  }
  CRESSET_CHECK(n.blocks().empty() && n.outputs().size() < 64, "archive: the code of '", kind, "' cannot be written", ".");
  return operator_call(n, inputs);
}

std::string constant_text(const IValue& v, const TypePtr& type, const CodeNames& names, ConstantTable& constants) {
  const auto in_table = [&] { return "CONSTANTS.c" + std::to_string(constants.index_of(v)); };
  switch (v.tag()) {
    case IValue::Tag::None: return "None";
    case IValue::Tag::Bool: return v.toBool() ? "True" : "False";
    case IValue::Tag::Int: return std::to_string(v.toInt());
    case IValue::Tag::Double: {
      const std::string text = float_text(v.toDouble());
      return text.find('(') == std::string::npos ? text : "nan";
    }
    case IValue::Tag::Complex: return complex_text(v.toComplexDouble());
    case IValue::Tag::String: return is_ascii(v.toStringRef()) ? string_literal(v.toStringRef()) : in_table();
    case IValue::Tag::Device: return "torch.device(\"" + v.toDevice().str() + "\")";
    case IValue::Tag::Function: return names.function(static_cast<const Function&>(*v.toFunction()));
    case IValue::Tag::Enum: return names.type(v.toEnumHolder()->type) + "." + v.toEnumHolder()->name;
    case IValue::Tag::Tuple: {
      const auto& members = v.toTupleElements();
      const TypePtr& named = v.toTupleRef().type;
      std::vector<std::string> texts;
      for (const IValue& m : members) texts.push_back(constant_text(m, nullptr, names, constants));
      return named && !named->name.empty() ? names.type(named) + "(" + comma_separated(texts) + ")" : tuple_text(texts);
    }
    case IValue::Tag::List: {
      const TypePtr list_type = type && type->kind == TypeKind::List ? type : v.type();
      std::vector<std::string> texts;
      std::vector<TypePtr> types;
      for (const IValue& m : v.toListRef()) {
        texts.push_back(constant_text(m, list_type->contained[0], names, constants));
        types.push_back(m.type());
      }
      const std::string literal = "[" + comma_separated(texts) + "]";
      return says_element_type(list_type->contained[0], types) ? literal : annotated(list_type, literal, names);
    }
    case IValue::Tag::Dict: {
      const TypePtr dict_type = type && type->kind == TypeKind::Dict ? type : v.type();
      std::vector<std::string> texts;
      std::vector<TypePtr> keys, values;
      for (const auto& [key, value] : v.toDictImpl().items) {
        texts.push_back(constant_text(key, dict_type->contained[0], names, constants));
        texts.push_back(constant_text(value, dict_type->contained[1], names, constants));
        keys.push_back(key.type());
        values.push_back(value.type());
      }
      const bool plain = says_element_type(dict_type->contained[0], keys) && says_element_type(dict_type->contained[1], values);
      return plain ? dict_text(texts) : annotated(dict_type, dict_text(texts), names);
    }
    default: return in_table();
  }
}

std::string annotation_text(const TypePtr& type, const CodeNames& names) {
  if (!type->name.empty() && type->kind != TypeKind::Var && type->kind != TypeKind::Function) return names.type(type);
  if (type->contained.empty()) return type->annotation_str();
  std::string out = type->annotation_str();
  out.resize(out.find('[') + 1);
  for (std::size_t i = 0; i < type->contained.size(); ++i) out += (i ? ", " : "") + annotation_text(type->contained[i], names);
  return out + "]";
}

std::size_t ConstantTable::index_of(const IValue& v) {
  for (std::size_t i = 0; i < values_.size(); ++i)
    if (sameConstant(values_[i], v)) return i;
  values_.push_back(v);
  return values_.size() - 1;
}

}  // namespace cresset::jit
