// The type expressions of IR texts, schemas and annotations. See class_type.h for the spellings.
#include "ir/text/type_reader.h"

#include <cctype>
#include <charconv>

#include <cresset/dispatch/tensor_type.h>

namespace cresset::jit {
namespace {

// Types nested deeper than this are refused: comparing and printing them is recursive.
constexpr int kDeepestType = 256;
// `Tensor[][]?`: each of them is a level of the type, too.
constexpr int kMostSuffixes = 8;

const std::unordered_map<std::string_view, TypeKind>& simple_types() {
  static const auto* m = new std::unordered_map<std::string_view, TypeKind>{{"Tensor", TypeKind::Tensor},
                                                                            {"Dynamic", TypeKind::Tensor},
                                                                            {"int", TypeKind::Int},
                                                                            {"float", TypeKind::Float},
                                                                            {"bool", TypeKind::Bool},
                                                                            {"complex", TypeKind::Complex},
                                                                            {"str", TypeKind::String},
                                                                            {"Dimname", TypeKind::String},
                                                                            {"Scalar", TypeKind::Number},
                                                                            {"number", TypeKind::Number},
                                                                            {"NoneType", TypeKind::None},
                                                                            {"None", TypeKind::None},
                                                                            {"Device", TypeKind::Device},
                                                                            {"Generator", TypeKind::Generator},
                                                                            {"Stream", TypeKind::Stream},
                                                                            {"Storage", TypeKind::Storage},
                                                                            {"Capsule", TypeKind::Capsule},
                                                                            {"Any", TypeKind::Any},
                                                                            {"AnyList", TypeKind::AnyList},
                                                                            {"AnyTuple", TypeKind::AnyTuple},
                                                                            {"list", TypeKind::AnyList},
                                                                            {"tuple", TypeKind::AnyTuple},
                                                                            {"AnyClassType", TypeKind::AnyClass},
                                                                            {"AnyEnumType", TypeKind::AnyEnum},
                                                                            {"SymInt", TypeKind::SymInt},
                                                                            {"ScalarType", TypeKind::ScalarType},
                                                                            {"Layout", TypeKind::Layout},
                                                                            {"MemoryFormat", TypeKind::MemoryFormat},
                                                                            {"QScheme", TypeKind::Int}};
  return *m;
}

class TypeReader {
 public:
  TypeReader(std::string_view text, std::size_t& at, const TypeResolver& resolver) : text_(text), at_(at), resolver_(resolver) {}

  TypePtr type(int depth) {
    if (depth > kDeepestType) fail("types nested more than " + std::to_string(kDeepestType) + " deep are not supported");
    TypePtr t = primary(depth);
    for (int suffixes = 0;; ++suffixes) {
      if (suffixes > kMostSuffixes) fail("more than " + std::to_string(kMostSuffixes) + " of [] and ? behind one type are not supported");
      if (list_behind_space()) {
        t = list_of(std::move(t));
      } else if (peek() == '?') {
        ++at_;
        t = optional_of(std::move(t));
      } else {
        return t;
      }
    }
  }

 private:
  [[noreturn]] void fail(std::string message) { throw SyntaxError{at_, std::move(message)}; }
  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  void skip() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
  }
  bool accept(char c) {
    skip();
    if (peek() != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!accept(c))
      fail(std::string("expected ") + c + " but found " + (at_ < text_.size() ? "'" + std::string(1, text_[at_]) + "'" : "the end") +
           " here");
  }
  static bool word_char(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

  // "[]" or "[3]"; anything else in brackets belongs to somebody else.
  // "Tensor []" is a list as well.
  bool list_behind_space() {
    const std::size_t start = at_;
    skip();
    if (peek() == '[' && list_brackets()) return true;
    at_ = start;
    return false;
  }
  bool list_brackets() {
    std::size_t i = at_ + 1;
    while (i < text_.size() && (std::isdigit(static_cast<unsigned char>(text_[i])) || text_[i] == ' ')) ++i;
    if (i >= text_.size() || text_[i] != ']') return false;
    at_ = i + 1;
    return true;
  }

  std::string path() {
    const std::size_t start = at_;
    while (at_ < text_.size() && (word_char(text_[at_]) || (text_[at_] == '.' && at_ + 1 < text_.size() && word_char(text_[at_ + 1]))))
      ++at_;
    return std::string(text_.substr(start, at_ - start));
  }

  std::vector<TypePtr> members(char open, char close, int depth) {
    std::vector<TypePtr> out;
    expect(open);
    if (accept(close)) return out;
    do out.push_back(type(depth + 1));
    while (accept(',') && (skip(), peek() != close));
    expect(close);
    return out;
  }

  // "(values : Tensor, indices : Tensor)".
  TypePtr fields(int depth) {
    std::vector<std::string> names;
    std::vector<TypePtr> types;
    expect('(');
    if (accept(')')) return named_tuple_of({}, {}, {});
    do {
      skip();
      names.push_back(path());
      if (names.back().empty()) fail("expected the name of a field here");
      expect(':');
      types.push_back(type(depth + 1));
    } while (accept(','));
    expect(')');
    return named_tuple_of({}, std::move(names), std::move(types));
  }

  std::string angle_name() {
    std::string name;
    if (peek() != '<') return name;
    ++at_;
    const std::size_t end = text_.find('>', at_);
    if (end == std::string_view::npos) fail("expected > here");
    name = text_.substr(at_, end - at_);
    at_ = end + 1;
    return name;
  }

  TypePtr primary(int depth) {
    skip();
    if (peek() == '(') return tuple_of(members('(', ')', depth));
    const std::size_t start = at_;
    if (!std::isalpha(static_cast<unsigned char>(peek())) && peek() != '_') fail("expected a type here");
    const std::string word = path();
    const std::size_t behind = at_;
    if (const auto dtype = dtype_of_word(word)) {
      if (peek() == '(') return refined(dtype);
      return TensorType::create(dtype, std::nullopt);
    }
    if (word == "Tensor" && peek() == '(') return refined(std::nullopt);
    if (word == "Function") {
      return function_type(angle_name());
    }
    if (word == "Enum" && peek() == '<') {
      // The annotation of values may stand behind the name; the name identifies the type.
      const std::string name = angle_name();
      if (TypePtr known = resolver_ ? resolver_(name) : nullptr) return known;
      return EnumType::create(name, basic_type(TypeKind::Any));
    }
    skip();
    if (peek() == '[' || peek() == '(') {
      const char open = peek(), close = open == '[' ? ']' : ')';
      const auto exactly = [&](std::size_t n) {
        std::vector<TypePtr> m = members(open, close, depth);
        if (m.size() != n) {
          at_ = start;
          fail(word + " takes " + std::to_string(n) + (n == 1 ? " type" : " types") + "; " + std::to_string(m.size()) + " were given");
        }
        return m;
      };
      if (word == "Optional") return optional_of(exactly(1)[0]);
      if (word == "List") return list_of(exactly(1)[0]);
      if (word == "Future") return future_of(exactly(1)[0]);
      if (word == "RRef") return rref_of(exactly(1)[0]);
      if (word == "Await") return await_of(exactly(1)[0]);
      if (word == "Dict") {
        const auto m = exactly(2);
        return dict_of(m[0], m[1]);
      }
      if (word == "Tuple") {
        if (open == '[' && text_.substr(at_, 4) == "[()]") {
          at_ += 4;
          return tuple_of({});
        }
        return tuple_of(members(open, close, depth));
      }
      if (word == "Union") return union_of(members(open, close, depth));
      if (word == "NamedTuple" && open == '(') return fields(depth);
    }
    at_ = behind;
    if (const auto found = simple_types().find(word); found != simple_types().end()) return basic_type(found->second);
    if (word.find('.') == std::string::npos && std::islower(static_cast<unsigned char>(word[0]))) return var_type(word);
    if (TypePtr known = resolver_ ? resolver_(word) : nullptr) return known;
    if (word.find('.') == std::string::npos) {
      at_ = start;
      fail("Unknown type name '" + word + "'");
    }
    return ClassType::opaque(word);
  }

  int64_t integer() {
    skip();
    int64_t v = 0;
    const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), v);
    if (error != std::errc()) fail("expected a number here");
    at_ = static_cast<std::size_t>(end - text_.data());
    return v;
  }
  std::optional<int64_t> dim() {
    if (accept('*')) return std::nullopt;
    return integer();
  }

  // "(2, *, strides=[3, 1], requires_grad=0, device=cuda:0)", or sizes with strides behind colons in old texts; "..." is an unknown rank.
  TypePtr refined(std::optional<ScalarType> dtype) {
    expect('(');
    TensorType::Dims sizes, strides;
    bool unknown_rank = false, old_strides = false;
    std::optional<TensorType::Dims> named_strides;
    std::optional<bool> requires_grad;
    std::optional<Device> device;
    while (!accept(')')) {
      skip();
      if (text_.substr(at_, 3) == "...") {
        at_ += 3;
        unknown_rank = true;
      } else if (std::isalpha(static_cast<unsigned char>(peek()))) {
        const std::size_t start = at_;
        const std::string key = path();
        expect('=');
        if (key == "strides") {
          expect('[');
          named_strides.emplace();
          while (!accept(']')) {
            named_strides->push_back(dim());
            if (!accept(',') && (skip(), peek() != ']')) fail("expected , or ] here");
          }
        } else if (key == "requires_grad") {
          requires_grad = integer() != 0;
        } else if (key == "device") {
          skip();
          const std::size_t from = at_;
          while (at_ < text_.size() && (word_char(text_[at_]) || text_[at_] == ':')) ++at_;
          try {
            device = Device(std::string(text_.substr(from, at_ - from)));
          } catch (const Error& e) {
            at_ = from;
            fail(e.msg());
          }
        } else {
          at_ = start;
          fail("unknown property '" + key + "' of a tensor type");
        }
      } else {
        if (named_strides || requires_grad || device) fail("sizes stand in front of strides, requires_grad and device");
        sizes.push_back(dim());
        if (accept(':')) {
          old_strides = true;
          strides.resize(sizes.size() - 1);
          strides.push_back(dim());
        }
      }
      if (!accept(',')) {
        expect(')');
        break;
      }
    }
    if (old_strides) {
      strides.resize(sizes.size());
      named_strides = std::move(strides);
    }
    return TensorType::create(dtype, unknown_rank ? std::nullopt : std::optional(std::move(sizes)), std::move(named_strides), requires_grad,
                              device);
  }

  std::string_view text_;
  std::size_t& at_;
  const TypeResolver& resolver_;
};

}  // namespace

TypePtr read_type(std::string_view text, std::size_t& at, const TypeResolver& resolver) { return TypeReader(text, at, resolver).type(0); }

TypePtr parse_type_expression(std::string_view text, const TypeResolver& resolver) {
  std::size_t at = 0;
  try {
    TypePtr t = read_type(text, at, resolver);
    while (at < text.size() && std::isspace(static_cast<unsigned char>(text[at]))) ++at;
    if (at != text.size()) throw SyntaxError{at, "unexpected text behind the type"};
    return t;
  } catch (const SyntaxError& e) {
    CRESSET_THROW(Error, "type: ", e.message, " at column ", e.at + 1, ":\n", text, "\n", std::string(e.at, ' '), "~ <--- HERE");
  }
}

}  // namespace cresset::jit
