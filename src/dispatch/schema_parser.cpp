// The grammar of operator schemas:
//   schema   := name ["." overload] "(" [argument {"," argument} | "*" | "..."] ")" ["->" returns]
//   argument := type [name] ["=" default]
//   type     := base [alias] {"[" [N] "]" [alias]} ["?"]
//   alias    := "(" set {"|" set} ["!"] ["->" [set {"|" set}]] ")" | "!"
//   set      := name | "*" | "$" number    (the last is what "!" alone stands for: written, and nobody else's)
// A recursive-descent reader over the text; every error shows the text with a caret and gives the column.
#include <cresset/core/scalar_type.h>
#include <cresset/dispatch/custom_class.h>
#include <cresset/dispatch/function_schema.h>

#include <cctype>
#include <charconv>
#include <unordered_map>

namespace cresset {
namespace {

constexpr int kMostMarks = 512;

const std::unordered_map<std::string_view, TypeKind>& base_types() {
  static const auto* m = new std::unordered_map<std::string_view, TypeKind>{{"Tensor", TypeKind::Tensor},
                                                                            {"Scalar", TypeKind::Number},
                                                                            {"number", TypeKind::Number},
                                                                            {"int", TypeKind::Int},
                                                                            {"SymInt", TypeKind::SymInt},
                                                                            {"float", TypeKind::Float},
                                                                            {"SymFloat", TypeKind::Float},
                                                                            {"complex", TypeKind::Complex},
                                                                            {"bool", TypeKind::Bool},
                                                                            {"SymBool", TypeKind::Bool},
                                                                            {"str", TypeKind::String},
                                                                            {"Device", TypeKind::Device},
                                                                            {"DeviceIndex", TypeKind::Int},
                                                                            {"ScalarType", TypeKind::ScalarType},
                                                                            {"Layout", TypeKind::Layout},
                                                                            {"MemoryFormat", TypeKind::MemoryFormat},
                                                                            {"Generator", TypeKind::Generator},
                                                                            {"Storage", TypeKind::Storage},
                                                                            {"Stream", TypeKind::Stream},
                                                                            {"Any", TypeKind::Any},
                                                                            {"AnyList", TypeKind::AnyList},
                                                                            {"AnyTuple", TypeKind::AnyTuple},
                                                                            {"AnyClassType", TypeKind::AnyClass},
                                                                            {"AnyEnumType", TypeKind::AnyEnum},
                                                                            {"Capsule", TypeKind::Capsule},
                                                                            {"QScheme", TypeKind::Int},
                                                                            {"NoneType", TypeKind::None},
                                                                            {"None", TypeKind::None}};
  return *m;
}

// Words that stand for integers in defaults, as native schemas write them.
std::optional<int64_t> named_constant(std::string_view w, TypeKind kind) {
  if (w == "Mean") return 1;
  if (w == "Sum") return 2;
  if (w == "None") return std::nullopt;
  if (w == "contiguous_format") return 0;
  if (w == "preserve_format") return 1;
  if (w == "channels_last") return 2;
  if (w == "strided") return 0;
  for (int i = 0; i < static_cast<int>(ScalarType::Undefined); ++i) {  // element types by Python's names
    const char* alias = dtype_alias(static_cast<ScalarType>(i));
    if (alias && w == alias) return i;
  }
  if (const auto dtype = dtype_from_name(w)) return static_cast<int>(*dtype);
  if (w == "cpu" && kind == TypeKind::Device) return 0;
  return std::nullopt;
}

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  std::variant<OperatorName, FunctionSchema> schema_or_name(bool need_schema) {
    of_operator_ = true;
    OperatorName name = operator_name();
    skip();
    if (at_ == text_.size()) {
      CRESSET_CHECK(!need_schema, "Tried to parse a function schema but only the operator name was given");
      return name;
    }
    expect('(');
    std::vector<Argument> arguments;
    bool vararg = false, varret = false, keyword_only = false;
    if (!accept(')')) {
      do {
        if (vararg) fail("... must be the last element of the argument list");
        if (accept("...")) {
          vararg = true;
        } else if (accept('*')) {
          keyword_only = true;
        } else {
          arguments.push_back(argument(keyword_only));
        }
      } while (accept(','));
      expect(')');
    }
    if (vararg && std::any_of(arguments.begin(), arguments.end(), [](const Argument& a) { return a.default_value.has_value(); }))
      fail("schemas with vararg (...) can't have default value args");
    std::vector<Argument> returns;
    if (accept("->")) {
      if (accept("...")) {
        varret = true;
      } else if (accept('(')) {
        if (!accept(')')) {
          do {
            if (varret) fail("... must be the last element of the return list");
            if (accept("..."))
              varret = true;
            else
              returns.push_back(return_value());
          } while (accept(','));
          expect(')');
        }
      } else {
        returns.push_back(return_value());
      }
    } else {
      fail_expected("arrow");
    }
    end();
    FunctionSchema s(std::move(name), std::move(arguments), std::move(returns), vararg, varret);
    s.set_alias_analysis(AliasAnalysisKind::FROM_SCHEMA);
    return s;
  }

  TypePtr type_alone() {
    TypedMark t = type();
    end();
    return t.type;
  }

 private:
  struct TypedMark {
    TypePtr type;
    std::optional<AliasInfo> alias;
    std::optional<int32_t> n;
  };

  // Errors have PyTorch's words: another word than the grammar wants, or one that means nothing.
  [[noreturn]] void fail_expected(std::string_view wanted) { fail_expected_at((skip(), at_), wanted); }
  [[noreturn]] void fail_expected_at(std::size_t at, std::string_view wanted) {
    CRESSET_THROW(Error, "expected ", wanted, " but found '", kind_at(at), "' here:\n", marked(at));
  }
  [[noreturn]] void fail(const std::string& what) { fail_at((skip(), at_), what); }
  [[noreturn]] void fail_at(std::size_t at, const std::string& what) { CRESSET_THROW(Error, "\n", what, ":\n", marked(at)); }

  /// The end of the word at `at`.
  std::size_t word_end(std::size_t at) const {
    std::size_t end = at;
    const bool number = std::isdigit(static_cast<unsigned char>(text_[at])) != 0;
    while (end < text_.size() && (number ? std::isdigit(static_cast<unsigned char>(text_[end])) != 0 : word_char(text_[end]))) ++end;
    return end > at ? end : text_.substr(at, 2) == "->" ? at + 2 : text_.substr(at, 3) == "..." ? at + 3 : at + 1;
  }
  std::string kind_at(std::size_t at) const {
    if (at >= text_.size()) return "eof";
    if (std::isdigit(static_cast<unsigned char>(text_[at]))) return "number";
    if (word_char(text_[at])) return "ident";
    return text_.substr(at, 2) == "->" ? "arrow" : text_.substr(at, 3) == "..." ? "dots" : std::string(1, text_[at]);
  }
  /// The text with the word at `at` underlined.
  std::string marked(std::size_t at) const {
    std::string out(text_);
    if (at >= text_.size()) return out;
    if (out.back() != '\n') out += '\n';
    return out + std::string(at, ' ') + std::string(word_end(at) - at, '~') + " <--- HERE\n";
  }
  void skip() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
  }
  bool accept(std::string_view token) {
    skip();
    if (text_.substr(at_, token.size()) != token) return false;
    at_ += token.size();
    return true;
  }
  bool accept(char c) { return accept(std::string_view(&c, 1)); }
  void expect(char c) {
    if (!accept(c)) fail_expected(std::string_view(&c, 1));
  }
  void end() {
    skip();
    if (at_ != text_.size()) fail_expected("eof");
  }
  static bool word_char(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }
  std::string_view word() {
    skip();
    const std::size_t start = at_;
    if (at_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at_]))) fail_expected("ident");
    while (at_ < text_.size() && word_char(text_[at_])) ++at_;
    if (at_ == start) fail_expected("ident");
    return text_.substr(start, at_ - start);
  }

  OperatorName operator_name() {
    OperatorName n;
    n.name = word();
    if (accept("::")) n.name += "::" + std::string(word());
    if (at_ < text_.size() && text_[at_] == '.') {
      ++at_;
      n.overload_name = word();
      const bool dunder = n.overload_name.rfind("__", 0) == 0;
      CRESSET_CHECK(n.overload_name != "default" && !dunder, n.overload_name, " is not a legal overload name for aten operators");
    }
    return n;
  }

  std::string alias_set() {
    if (accept('*')) return "*";
    if (accept('$')) return "$" + std::to_string(integer());
    return std::string(word());
  }
  // Is the next thing behind spaces this one? What is skipped here might be the end of a type.
  bool is_next(char c) const {
    const std::size_t next = text_.find_first_not_of(" \t\n\r", at_);
    return next != std::string_view::npos && text_[next] == c;
  }
  std::optional<AliasInfo> alias() {
    AliasInfo a;
    if (is_next('!')) {
      expect('!');
      a.is_write = true;
      a.before.push_back("$" + std::to_string(fresh_sets_++));
      return a;
    }
    if (at_ >= text_.size() || text_[at_] != '(') return std::nullopt;
    expect('(');
    const auto sets = [&](std::vector<std::string>& out) {
      do out.push_back(alias_set());
      while (accept('|'));
    };
    sets(a.before);
    a.is_write = accept('!');
    if (!accept("->"))
      a.after = a.before;
    else if (!is_next(')'))
      sets(a.after);
    expect(')');
    return a;
  }

  // Reading, comparing, printing and freeing a type are recursive, so what one may be made of is limited.
  void count_mark() {
    if (++marks_ > kMostMarks) fail(str("a type with more than ", kMostMarks, " brackets and marks is not supported"));
  }

  TypedMark type() {
    if (depth_ == 0) marks_ = 0;
    ++depth_;
    TypedMark t = nested_type();
    --depth_;
    return t;
  }
  TypedMark nested_type() {
    TypedMark t;
    skip();
    const std::size_t start = at_;
    t.type = accept('(') ? tuple_type() : named_type(start);
    t.alias = alias();
    while (at_ < text_.size()) {
      if (text_[at_] == '[') {
        ++at_;
        list_mark(t);
      } else if (text_[at_] == '?') {
        ++at_;
        count_mark();
        t.type = optional_of(std::move(t.type));
      } else {
        break;
      }
    }
    return t;
  }
  // Behind the bracket.
  TypePtr tuple_type() {
    count_mark();
    std::vector<TypePtr> members;
    if (!accept(')')) {
      do members.push_back(type().type);
      while (accept(','));
      expect(')');
    }
    return tuple_of(std::move(members));
  }
  TypePtr named_type(std::size_t start) {
    const std::string_view w = word();
    if (w == "Dimname") fail_at(start, "named tensors are not supported: Dimname");
    if (w == "Dict") {
      count_mark();
      expect('(');
      TypePtr key = type().type;
      expect(',');
      TypePtr value = type().type;
      expect(')');
      return dict_of(std::move(key), std::move(value));
    }
    if (w == "Future" || w == "Await" || w == "RRef") {
      count_mark();
      const bool square = accept('[');  // scripts print Future[t], operators are written with Future(t)
      if (!square) expect('(');
      TypePtr inner = type().type;
      expect(square ? ']' : ')');
      return w == "Future" ? future_of(std::move(inner)) : w == "RRef" ? rref_of(std::move(inner)) : await_of(std::move(inner));
    }
    if (const auto found = base_types().find(w); found != base_types().end()) return basic_type(found->second);
    if (w == "__torch__") return class_type(start);
    if (std::islower(static_cast<unsigned char>(w[0])) && (w.size() == 1 || !std::islower(static_cast<unsigned char>(w[1]))))
      return var_type(std::string(w));
    fail_at(start,
            w == "int64_t"
                ? std::string("Use `SymInt` or `int` instead of `int64_t` in an operator's schema string. `SymInt` corresponds to "
                              "c10::SymInt in C++ while `int` in schema corresponds to the int64_t type in C++.")
            : w == "double"
                ? std::string("Use `float` instead of `double` in an operator's schema string. `float` in schema corresponds to "
                              "the double type in C++")
                : std::string("unknown type specifier. Common valid schema types include Tensor, SymInt, int, float, bool, Scalar; for "
                              "a full list, please see https://github.com/pytorch/pytorch/blob/main/aten/src/ATen/native/README.md#func "));
  }
  // Behind "__torch__", which begins the names of classes.
  TypePtr class_type(std::size_t start) {
    std::string full = "__torch__";
    std::size_t last = start;
    while (at_ < text_.size() && text_[at_] == '.') {
      ++at_;
      last = (skip(), at_);
      full += "." + std::string(word());
    }
    constexpr std::string_view kCustom = "__torch__.torch.classes.";
    if (of_operator_ && full.starts_with(kCustom) && !find_custom_class(full))
      fail_at(last, "Unknown custom class type " + full.substr(kCustom.size()) + ". Please ensure it is registered.");
    return object_type(std::move(full));
  }
  // Behind the bracket of "[]" or "[n]": the type becomes a list of what it was.
  void list_mark(TypedMark& t) {
    count_mark();
    std::optional<int32_t> n;
    skip();
    if (at_ < text_.size() && text_[at_] != ']') n = static_cast<int32_t>(integer());
    expect(']');
    t.type = list_of(std::move(t.type));
    t.n = n;
    std::optional<AliasInfo> own = alias();
    if (!t.alias) {
      t.alias = own;
      return;
    }
    AliasInfo outer = own.value_or(AliasInfo{});
    outer.contained = std::make_shared<AliasInfo>(*t.alias);
    // A list of tensors that alias or are written counts as doing so itself.
    if (!own) {
      outer.before = {};
      outer.after = {};
    }
    t.alias = outer;
  }

  int64_t integer() {
    skip();
    const std::size_t start = at_;
    if (at_ < text_.size() && text_[at_] == '-') ++at_;
    while (at_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at_]))) ++at_;
    int64_t v = 0;
    const auto [p, e] = std::from_chars(text_.data() + start, text_.data() + at_, v);
    if (e != std::errc() || p != text_.data() + at_) fail_expected_at(start, "number");
    return v;
  }

  IValue number(const Type& t) {
    skip();
    const std::size_t start = at_;
    if (at_ < text_.size() && (text_[at_] == '-' || text_[at_] == '+')) ++at_;
    bool floating = false;
    if (text_.substr(at_, 3) == "inf" || text_.substr(at_, 3) == "nan") {
      at_ += 3;
      floating = true;
    }
    while (at_ < text_.size() &&
           (std::isdigit(static_cast<unsigned char>(text_[at_])) || text_[at_] == '.' || text_[at_] == 'e' || text_[at_] == 'E' ||
            ((text_[at_] == '-' || text_[at_] == '+') && (text_[at_ - 1] == 'e' || text_[at_ - 1] == 'E')))) {
      floating = floating || text_[at_] == '.' || text_[at_] == 'e' || text_[at_] == 'E';
      ++at_;
    }
    if (at_ == start) fail_expected_at(start, "number");
    const std::string token(text_.substr(start, at_ - start));
    if (at_ < text_.size() && text_[at_] == 'j') {
      const double imaginary = floating_number(token, start);
      ++at_;
      return IValue(std::complex<double>(0, imaginary));
    }
    if (!floating && t.kind != TypeKind::Float) {
      at_ = start;
      if (text_[at_] == '+') ++at_;
      return IValue(integer());
    }
    if (t.kind == TypeKind::Int || t.kind == TypeKind::SymInt) fail_expected_at(start, "number");
    return IValue(floating_number(token, start));
  }
  // As it is printed: "(0.5-1.0j)".
  IValue complex_number() {
    const std::size_t start = ++at_, end = text_.find("j)", start);
    if (end == std::string_view::npos) fail_expected_at(start, "number");
    const std::string token(text_.substr(start, end - start));
    std::size_t sign = token.find_last_of("+-");
    while (sign != std::string::npos && sign > 0 && token[sign - 1] == 'e') sign = token.find_last_of("+-", sign - 1);
    if (sign == std::string::npos) fail_expected_at(start, "number");
    at_ = end + 2;
    return IValue(std::complex<double>(floating_number(token.substr(0, sign), start), floating_number(token.substr(sign), start)));
  }
  // All of the token, which begins at `start`.
  double floating_number(const std::string& token, std::size_t start) {
    try {
      std::size_t read = 0;
      if (const double v = std::stod(token, &read); read == token.size()) return v;
    } catch (const std::exception&) {  // none, or one that no double holds
    }
    fail_expected_at(start, "number");
  }

  // The character behind a backslash in the string that begins at `start`, or those of three octal digits.
  char escaped(std::size_t start) {
    constexpr std::string_view kLetters = "ntrfvab\\\"'", kCharacters = "\n\t\r\f\v\a\b\\\"'";
    const char c = text_[++at_];
    if (const std::size_t found = kLetters.find(c); found != std::string_view::npos) {
      ++at_;
      return kCharacters[found];
    }
    if (c == 'x') fail_at(start, "unsupported hex specifier");
    int value = 0;
    for (int i = 0; i < 3; ++i, ++at_) {
      if (at_ == text_.size() || text_[at_] < '0' || text_[at_] > '7') fail_at(start, "ill formed octal specifier");
      value = value * 8 + (text_[at_] - '0');
    }
    return static_cast<char>(value);
  }

  IValue default_value(const Type& declared, std::optional<int32_t> n) {
    skip();
    const std::size_t start = at_;
    const Type& t = declared.kind == TypeKind::Optional ? *declared.element() : declared;
    if (at_ < text_.size() && text_[at_] == '[') {
      ++at_;
      if (t.kind != TypeKind::List) fail_at(start, str("a list cannot be the default of type ", declared.str()));
      std::vector<IValue> values;
      if (!accept(']')) {
        do values.push_back(default_value(*t.element(), std::nullopt));
        while (accept(','));
        expect(']');
      }
      return make_intrusive<ivalue::ListImpl>(std::move(values), t.element());
    }
    if (at_ < text_.size() && (text_[at_] == '"' || text_[at_] == '\'')) {
      const char quote = text_[at_++];
      std::string s;
      while (at_ < text_.size() && text_[at_] != quote) {
        s += text_[at_] == '\\' && at_ + 1 < text_.size() ? escaped(start) : text_[at_++];
      }
      if (at_ == text_.size())
        CRESSET_THROW(Error, "expected a valid token but found '", text_.substr(start, 1), "' here:\n", marked(start));
      ++at_;
      if (t.kind == TypeKind::Device) return IValue(Device(s));
      if (t.kind != TypeKind::String) fail_at(start, str("a string cannot be the default of type ", declared.str()));
      return IValue(std::move(s));
    }
    if (at_ < text_.size() && std::isalpha(static_cast<unsigned char>(text_[at_])) && text_.substr(at_, 3) != "inf" &&
        text_.substr(at_, 3) != "nan") {
      const std::string_view w = word();
      if (w == "None") return IValue();
      if (w == "True") return repeat(IValue(true), t, n);
      if (w == "False") return repeat(IValue(false), t, n);
      if (t.kind == TypeKind::Device) return IValue(Device(std::string(w)));
      const bool takes_numbers = t.kind != TypeKind::Tensor && t.kind != TypeKind::String && t.kind != TypeKind::Bool;
      if (const auto v = takes_numbers ? named_constant(w, t.kind) : std::nullopt)
        return t.kind == TypeKind::Float ? IValue(static_cast<double>(*v)) : repeat(IValue(*v), t, n);
      fail("invalid numeric default value");
    }
    if (t.kind == TypeKind::Tensor) fail_expected("None");
    if (t.kind == TypeKind::Bool) {  // `bool flag=0`
      const IValue v = number(t);
      return IValue(v.isDouble() ? v.toDouble() != 0 : v.toInt() != 0);
    }
    if (t.kind == TypeKind::String) fail_at(start, str("a number cannot be the default of type ", declared.str()));
    const Type& element = t.kind == TypeKind::List ? *t.element() : t;
    if (element.kind == TypeKind::Bool) fail_at(start, str("a number cannot be the default of type ", declared.str()));
    return repeat(at_ < text_.size() && text_[at_] == '(' ? complex_number() : number(element), t, n);
  }

  // `int[2] k=1` means [1, 1].
  static IValue repeat(IValue v, const Type& t, std::optional<int32_t> n) {
    if (t.kind != TypeKind::List) return v;
    return make_intrusive<ivalue::ListImpl>(std::vector<IValue>(static_cast<std::size_t>(n.value_or(1)), v), t.element());
  }

  Argument argument(bool keyword_only) {
    TypedMark t = type();
    Argument a;
    a.type = std::move(t.type);
    a.alias = std::move(t.alias);
    a.N = t.n;
    a.kwarg_only = keyword_only;
    a.name = word();
    if (accept('=')) a.default_value = default_value(*a.type, a.N);
    return a;
  }

  Argument return_value() {
    TypedMark t = type();
    Argument a;
    a.type = std::move(t.type);
    a.alias = std::move(t.alias);
    a.N = t.n;
    skip();
    if (at_ < text_.size() && word_char(text_[at_])) a.name = word();
    return a;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  int depth_ = 0, marks_ = 0;  // of the type that is being read
  int fresh_sets_ = 0;         // sets without a name, counted over the schema
  bool of_operator_ = false;   // operators name classes that are registered; types of files may come before them
};

}  // namespace

FunctionSchema parse_schema(std::string_view text) { return std::get<FunctionSchema>(Parser(text).schema_or_name(true)); }
std::variant<OperatorName, FunctionSchema> parse_schema_or_name(std::string_view text) { return Parser(text).schema_or_name(false); }
OperatorName parse_operator_name(std::string_view text) {
  auto r = Parser(text).schema_or_name(false);
  CRESSET_CHECK(std::holds_alternative<OperatorName>(r), "operator name: a name without arguments was required; '", text, "' was given.");
  return std::get<OperatorName>(std::move(r));
}
TypePtr parse_type(std::string_view text) { return Parser(text).type_alone(); }

}  // namespace cresset
