// FunctionSchema: text form and comparison.
#include <cresset/dispatch/function_schema.h>

#include <charconv>

namespace cresset {
namespace {

std::string join_sets(const std::vector<std::string>& sets) {
  std::string out;
  for (const std::string& s : sets) out += (out.empty() ? "" : "|") + s;
  return out;
}

std::string double_text(double v) {
  char buffer[40];
  std::string s(buffer, std::to_chars(buffer, buffer + sizeof buffer, v).ptr);
  if (s.find_first_of(".eni") == std::string::npos) s += ".";
  return s;
}

std::string default_text(const IValue& v, const std::optional<int32_t>& n) {
  switch (v.tag()) {
    case IValue::Tag::Double: return double_text(v.toDouble());
    case IValue::Tag::String: {
      std::string out = "\"";
      for (char c : v.toStringRef()) {
        constexpr std::string_view kCharacters = "\"\\\n\t\r\f\v\a\b", kLetters = "\"\\ntrfvab";
        const auto byte = static_cast<unsigned char>(c);
        if (const std::size_t at = kCharacters.find(c); at != std::string_view::npos) {
          out += '\\';
          out += kLetters[at];
        } else if (byte < 0x20 || byte == 0x7f) {
          out += '\\';
          for (int shift = 6; shift >= 0; shift -= 3) out += static_cast<char>('0' + (byte >> shift & 7));
        } else {
          out += c;
        }
      }
      return out + "\"";
    }
    case IValue::Tag::List: {
      const std::vector<IValue>& e = v.toListRef();
      bool all_equal = n.has_value() && !e.empty();
      for (const IValue& x : e) all_equal = all_equal && x == e[0];
      if (all_equal && e.size() == static_cast<std::size_t>(*n)) return default_text(e[0], std::nullopt);  // what a number is repeated to
      std::string out = "[";
      for (std::size_t i = 0; i < e.size(); ++i) out += (i ? ", " : "") + default_text(e[i], std::nullopt);
      return out + "]";
    }
    case IValue::Tag::Device: return "\"" + to_string(v) + "\"";
    default: return to_string(v);
  }
}

bool equal_arguments(const std::vector<Argument>& a, const std::vector<Argument>& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const Argument &x = a[i], &y = b[i];
    if (x.name != y.name || !(*x.type == *y.type) || x.N != y.N || x.kwarg_only != y.kwarg_only ||
        x.default_value.has_value() != y.default_value.has_value() || (x.default_value && !(*x.default_value == *y.default_value)) ||
        !(x.alias == y.alias))
      return false;
  }
  return true;
}

}  // namespace

std::string AliasInfo::str() const {
  if (before.empty() && after.empty()) return "";
  std::string out = "(" + join_sets(before) + (is_write ? "!" : "");
  if (after != before) out += " -> " + join_sets(after);
  return out + ")";
}

std::string Argument::str() const {
  // A list prints its element's alias marks before the brackets and its own behind them: Tensor(a)[], Tensor[](a!).
  const bool optional = type->kind == TypeKind::Optional;
  const Type& inner = optional ? *type->element() : *type;
  std::string out;
  if (inner.kind == TypeKind::List) {
    const bool optional_element = inner.element()->kind == TypeKind::Optional;
    out = optional_element ? inner.element()->element()->str() : inner.element()->str();
    if (alias && alias->contained) out += alias->contained->str();
    if (optional_element) out += "?";
    out += "[" + (N ? std::to_string(*N) : "") + "]";
  } else {
    out = inner.str();
  }
  if (alias) out += alias->str();
  if (optional) out += "?";
  if (!name.empty()) out += " " + name;
  if (default_value) out += "=" + default_text(*default_value, N);
  return out;
}

const char* toString(AliasAnalysisKind k) {
  constexpr const char* names[] = {"INTERNAL_SPECIAL_CASE", "CONSERVATIVE", "FROM_SCHEMA", "PURE_FUNCTION"};
  return names[static_cast<std::size_t>(k)];
}

FunctionSchema::FunctionSchema(OperatorName name, std::vector<Argument> arguments, std::vector<Argument> returns, bool is_vararg,
                               bool is_varret)
    : name_(std::move(name)), arguments_(std::move(arguments)), returns_(std::move(returns)), is_vararg_(is_vararg), is_varret_(is_varret) {
  bool defaults_began = false;
  for (const Argument& a : arguments_) {
    if (a.kwarg_only) break;
    // As PyTorch does, optional-typed and Tensor-like positional arguments without default may not follow defaulted ones.
    CRESSET_CHECK(!defaults_began || a.default_value, "schema ", name_, ": argument '", a.name,
                  "' without a default follows one with a default. Give it a default or move it.");
    defaults_began = defaults_began || a.default_value.has_value();
  }
}

bool FunctionSchema::is_mutable() const {
  for (const Argument& a : arguments_)
    if (a.is_mutable()) return true;
  return false;
}

std::optional<std::size_t> FunctionSchema::argument_index(std::string_view name) const {
  for (std::size_t i = 0; i < arguments_.size(); ++i)
    if (arguments_[i].name == name) return i;
  return std::nullopt;
}

bool FunctionSchema::hasAnyAliasInfo() const {
  const auto has = [](const std::vector<Argument>& all) {
    return std::any_of(all.begin(), all.end(), [](const Argument& a) { return a.alias.has_value(); });
  };
  return has(arguments_) || has(returns_);
}
FunctionSchema FunctionSchema::cloneWithName(std::string name, std::string overload_name) const {
  FunctionSchema copy = *this;
  copy.name_ = {std::move(name), std::move(overload_name)};
  return copy;
}
FunctionSchema FunctionSchema::cloneWithArguments(std::vector<Argument> arguments) const {
  FunctionSchema copy = *this;
  copy.arguments_ = std::move(arguments);
  return copy;
}
FunctionSchema FunctionSchema::cloneWithReturns(std::vector<Argument> returns) const {
  FunctionSchema copy = *this;
  copy.returns_ = std::move(returns);
  return copy;
}

std::string FunctionSchema::str() const {
  std::string out = name_.str() + "(";
  bool keyword = false, first = true;
  for (const Argument& a : arguments_) {
    if (!first) out += ", ";
    first = false;
    if (a.kwarg_only && !keyword) {
      out += "*, ";
      keyword = true;
    }
    out += a.str();
  }
  if (is_vararg_) out += first ? "..." : ", ...";
  out += ") -> ";
  if (returns_.empty() && is_varret_) return out + "...";
  // One result that is a tuple has its own parentheses, so that it is told from several results.
  if (returns_.size() == 1 && !is_varret_)
    if (const std::string result = returns_[0].str(); !result.starts_with("(")) return out + result;
  out += "(";
  for (std::size_t i = 0; i < returns_.size(); ++i) out += (i ? ", " : "") + returns_[i].str();
  if (is_varret_) out += returns_.empty() ? "..." : ", ...";
  return out + ")";
}

bool operator==(const FunctionSchema& a, const FunctionSchema& b) {
  return a.name_ == b.name_ && a.is_vararg_ == b.is_vararg_ && a.is_varret_ == b.is_varret_ &&
         equal_arguments(a.arguments_, b.arguments_) && equal_arguments(a.returns_, b.returns_);
}

std::optional<std::string> find_schema_differences(const FunctionSchema& declared, const FunctionSchema& inferred) {
  const auto compare = [](const std::vector<Argument>& d, const std::vector<Argument>& i, const char* what) -> std::optional<std::string> {
    if (d.size() != i.size()) return str("The number of ", what, "s is different. ", d.size(), " vs ", i.size(), ".");
    for (std::size_t k = 0; k < d.size(); ++k)
      if (!(*d[k].type == *i[k].type))
        return str("Type mismatch in ", what, " ", k + 1, ": ", d[k].type->str(), " vs ", i[k].type->str(), ".");
    return std::nullopt;
  };
  if (auto r = compare(declared.arguments(), inferred.arguments(), "argument")) return r;
  return compare(declared.returns(), inferred.returns(), "return");
}

}  // namespace cresset
