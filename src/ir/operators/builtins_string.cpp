// Methods of strings, formatting, and strings from values. Strings are bytes; case and classes are those of ASCII.
#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <sstream>

#include <cresset/base/interrupt.h>
#include <cresset/dispatch/script_values.h>
#include <cresset/ops/print.h>

#include "base/parse_number.h"
#include "ir/operators/builtin_call.h"
#include "ir/text/text.h"

namespace cresset::jit {
namespace builtin {

std::string script_text(const IValue& v) {
  const auto join = [](const std::vector<IValue>& values) {
    std::string out;
    for (std::size_t i = 0; i < values.size(); ++i) out += (i ? ", " : "") + script_text(values[i]);
    return out;
  };
  switch (v.tag()) {
    case IValue::Tag::String: return v.toStringRef();
    case IValue::Tag::Tensor: {
      std::ostringstream out;
      out << v.toTensor();
      return out.str();
    }
    case IValue::Tag::Bool: return v.toBool() ? "True" : "False";
    case IValue::Tag::Double:
      return std::isnan(v.toDouble())                                                     ? "nan"
             : std::fabs(v.toDouble()) < 1e10 && v.toDouble() == std::floor(v.toDouble()) ? float_text(v.toDouble())
                                                                                          : [&] {
                                                                                              std::string s = float_text(v.toDouble());
                                                                                              if (s.back() == '.') s.pop_back();
                                                                                              return s;
                                                                                            }();
    case IValue::Tag::Complex: return complex_text(v.toComplexDouble());
    case IValue::Tag::List: return "[" + join(v.toListRef()) + "]";
    case IValue::Tag::Tuple: return "(" + join(v.toListRef()) + (v.toListRef().size() == 1 ? ",)" : ")");
    case IValue::Tag::Dict: {
      std::string out;
      for (const auto& [key, value] : v.toDictImpl().items) out += (out.empty() ? "" : ", ") + script_text(key) + ": " + script_text(value);
      return "{" + out + "}";
    }
    case IValue::Tag::Enum: {
      const auto e = v.toEnumHolder();
      const std::string& name = e->type->name;
      return name.substr(name.rfind('.') + 1) + "." + e->name;
    }
    default: return to_string(v);
  }
}

namespace {

bool is_space(char c) { return std::isspace(static_cast<unsigned char>(c)); }
bool is_alpha(char c) { return std::isalpha(static_cast<unsigned char>(c)); }
bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)); }
bool is_alnum(char c) { return std::isalnum(static_cast<unsigned char>(c)); }
bool is_upper(char c) { return std::isupper(static_cast<unsigned char>(c)); }
bool is_lower(char c) { return std::islower(static_cast<unsigned char>(c)); }
bool is_print(char c) { return std::isprint(static_cast<unsigned char>(c)); }
char upper(char c) { return static_cast<char>(std::toupper(static_cast<unsigned char>(c))); }
char lower(char c) { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); }

template <class F>
std::string mapped(Text s, F&& f) {
  std::string out = s;
  std::transform(out.begin(), out.end(), out.begin(), f);
  return out;
}
bool all_chars(Text s, bool (*f)(char)) { return !s.empty() && std::all_of(s.begin(), s.end(), f); }
bool cased(Text s, bool (*wanted)(char), bool (*unwanted)(char)) {
  return std::any_of(s.begin(), s.end(), wanted) && std::none_of(s.begin(), s.end(), unwanted);
}

std::string title(Text s) {
  std::string out;
  bool inside = false;
  for (char c : s) {
    out += inside ? lower(c) : upper(c);
    inside = is_alpha(c);
  }
  return out;
}
bool is_title(Text s) {
  bool inside = false, any = false;
  for (char c : s) {
    if (is_alpha(c) && (inside ? is_upper(c) : is_lower(c))) return false;
    any = any || is_alpha(c);
    inside = is_alpha(c);
  }
  return any;
}
bool is_identifier(Text s) {
  return !s.empty() && !is_digit(s[0]) && std::all_of(s.begin(), s.end(), [](char c) { return is_alnum(c) || c == '_'; });
}

constexpr int64_t kLongest = int64_t{1} << 32;
std::string repeated(char c, int64_t n) {
  check_memory_limit(std::max<int64_t>(n, 0));
  CRESSET_CHECK(n < kLongest, "a string of ", n, " characters is too long.");
  return std::string(static_cast<std::size_t>(std::max<int64_t>(n, 0)), c);
}
char fill_char(Text fill) {
  CRESSET_CHECK(fill.size() == 1, "The fill character must be exactly one character long");
  return fill[0];
}
std::string center(Text s, int64_t width, Text fill) {
  const char c = fill_char(fill);
  const int64_t missing = std::max<int64_t>(0, width - static_cast<int64_t>(s.size()));
  // As CPython: the odd character goes left when the width is odd.
  const int64_t left = missing / 2 + (missing & width & 1);
  return repeated(c, left) + s + repeated(c, missing - left);
}
std::string zero_filled(Text s, int64_t width) {
  const std::string zeros = repeated('0', width - static_cast<int64_t>(s.size()));
  const bool sign = !s.empty() && (s[0] == '-' || s[0] == '+');
  return sign ? s[0] + zeros + s.substr(1) : zeros + s;
}

// Clamps the range of a search; -1 as the end stands for the length.
std::pair<std::size_t, std::size_t> search_range(Text s, int64_t start, int64_t end) {
  const auto n = static_cast<int64_t>(s.size());
  if (start < 0) start = std::max<int64_t>(0, n + start);
  if (end < 0) end = std::max<int64_t>(0, n + end + 1);
  start = std::min(start, n);
  return {static_cast<std::size_t>(start), static_cast<std::size_t>(std::clamp(end, start, n))};
}
int64_t find(Text s, Text what, int64_t start, int64_t end) {
  const auto [from, to] = search_range(s, start, end);
  const std::size_t at = std::string_view(s).substr(0, to).find(what, from);
  return at == std::string_view::npos ? -1 : static_cast<int64_t>(at);
}
int64_t find_last(Text s, Text what, int64_t start, int64_t end) {
  const auto [from, to] = search_range(s, start, end);
  const std::size_t at = std::string_view(s).substr(from, to - from).rfind(what);
  return at == std::string_view::npos ? -1 : static_cast<int64_t>(at + from);
}
int64_t count(Text s, Text what, int64_t start, int64_t end) {
  const auto [from, to] = search_range(s, start, end);
  const std::string_view range = std::string_view(s).substr(from, to - from);
  if (what.empty()) return static_cast<int64_t>(range.size()) + 1;
  int64_t n = 0;
  for (std::size_t at = range.find(what); at != std::string_view::npos; at = range.find(what, at + what.size())) ++n;
  return n;
}
std::string replace(Text s, Text old, Text fresh, int64_t max) {
  std::string out;
  std::size_t at = 0;
  int64_t done = 0;
  while (max < 0 || done < max) {
    std::size_t next = old.empty() ? at : s.find(old, at);
    if (next == std::string::npos || (old.empty() && at > s.size())) break;
    out.append(s, at, next - at);
    out += fresh;
    if (old.empty()) {
      if (at < s.size()) out += s[at];
      ++at;
    } else {
      at = next + old.size();
    }
    ++done;
  }
  if (at < s.size()) out.append(s, at);
  return out;
}

IValue string_list(std::vector<std::string> parts) {
  std::vector<IValue> values(std::make_move_iterator(parts.begin()), std::make_move_iterator(parts.end()));
  return make_list(std::move(values), basic_type(TypeKind::String));
}
std::vector<std::string> split_words(Text s, int64_t max) {
  std::vector<std::string> out;
  std::size_t at = 0;
  for (;;) {
    while (at < s.size() && is_space(s[at])) ++at;
    if (at == s.size()) return out;
    if (max >= 0 && static_cast<int64_t>(out.size()) == max) {
      std::size_t end = s.size();
      while (end > at && is_space(s[end - 1])) --end;
      out.push_back(s.substr(at, end - at));
      return out;
    }
    const std::size_t start = at;
    while (at < s.size() && !is_space(s[at])) ++at;
    out.push_back(s.substr(start, at - start));
  }
}
std::vector<std::string> split(Text s, Text separator, int64_t max) {
  CRESSET_CHECK_VALUE(!separator.empty(), "empty separator");
  std::vector<std::string> out;
  std::size_t at = 0;
  while (max < 0 || static_cast<int64_t>(out.size()) < max) {
    const std::size_t next = s.find(separator, at);
    if (next == std::string::npos) break;
    out.push_back(s.substr(at, next - at));
    at = next + separator.size();
  }
  out.push_back(s.substr(at));
  return out;
}
std::vector<std::string> split_right(Text s, Text separator, int64_t max) {
  CRESSET_CHECK_VALUE(!separator.empty(), "empty separator");
  std::vector<std::string> out;
  std::size_t end = s.size();
  while (max < 0 || static_cast<int64_t>(out.size()) < max) {
    const std::size_t at = end < separator.size() ? std::string::npos : s.rfind(separator, end - separator.size());
    if (at == std::string::npos) break;
    out.push_back(s.substr(at + separator.size(), end - at - separator.size()));
    end = at;
  }
  out.push_back(s.substr(0, end));
  std::reverse(out.begin(), out.end());
  return out;
}
std::vector<std::string> split_lines(Text s, bool keep_ends) {
  std::vector<std::string> out;
  std::size_t start = 0;
  while (start < s.size()) {
    std::size_t end = s.find_first_of("\n\r\v\f", start);
    if (end == std::string::npos) {
      out.push_back(s.substr(start));
      break;
    }
    const std::size_t behind = end + (s[end] == '\r' && end + 1 < s.size() && s[end + 1] == '\n' ? 2 : 1);
    out.push_back(s.substr(start, (keep_ends ? behind : end) - start));
    start = behind;
  }
  return out;
}
std::string stripped(Text s, Text chars, bool left, bool right) {
  std::size_t start = 0, end = s.size();
  if (left)
    while (start < end && chars.find(s[start]) != std::string::npos) ++start;
  if (right)
    while (end > start && chars.find(s[end - 1]) != std::string::npos) --end;
  return s.substr(start, end - start);
}
std::string expand_tabs(Text s, int64_t size) {
  std::string out;
  int64_t column = 0;
  for (char c : s) {
    if (c == '\t') {
      const int64_t n = size > 0 ? size - column % size : 0;
      out += repeated(' ', n);
      column += n;
    } else {
      out += c;
      column = c == '\n' || c == '\r' ? 0 : column + 1;
    }
  }
  return out;
}
std::tuple<std::string, std::string, std::string> partition(Text s, Text separator, bool last) {
  const std::size_t at = last ? s.rfind(separator) : s.find(separator);
  if (at == std::string::npos)
    return last ? std::make_tuple(std::string(), std::string(), s) : std::make_tuple(s, std::string(), std::string());
  return {s.substr(0, at), separator, s.substr(at + separator.size())};
}
std::string join(Text s, IValue& values) {
  std::string out;
  bool first = true;
  for (const IValue& v : values.toListRef()) {
    if (!first) out += s;
    first = false;
    out += v.toStringRef();
  }
  return out;
}

std::string sliced(Text s, IValue& start, IValue& end, int64_t step) {
  CRESSET_CHECK_VALUE(step != 0, "slice step cannot be zero");
  const auto n = static_cast<int64_t>(s.size());
  const auto bound = [&](const IValue& v, int64_t none) {
    if (v.isNone()) return none;
    const int64_t i = v.toInt() < 0 ? v.toInt() + n : v.toInt();
    return step > 0 ? std::clamp<int64_t>(i, 0, n) : std::clamp<int64_t>(i, -1, n - 1);
  };
  const int64_t from = bound(start, step > 0 ? 0 : n - 1), to = bound(end, step > 0 ? n : -1);
  std::string out;
  for (int64_t i = from; step > 0 ? i < to : i > to; i += step) {
    out += s[static_cast<std::size_t>(i)];
    if (step > n || step < -n) break;
  }
  return out;
}

std::string character(Text s, int64_t i) {
  const int64_t n = static_cast<int64_t>(s.size()), at = i < 0 ? i + n : i;
  CRESSET_CHECK_INDEX(at >= 0 && at < n, "string index out of range");
  return std::string(1, s[static_cast<std::size_t>(at)]);
}

std::string in_base(int64_t v, int base, const char* prefix) {
  const uint64_t magnitude = v < 0 ? 0 - static_cast<uint64_t>(v) : static_cast<uint64_t>(v);
  char buffer[72];
  char* end = std::to_chars(buffer, buffer + sizeof buffer, magnitude, base).ptr;
  return (v < 0 ? "-" : "") + std::string(prefix) + std::string(buffer, end);
}

std::string trimmed(Text s) { return stripped(s, " \n\t\f\v\r", true, true); }
int64_t to_int(Text s) {
  std::string t = trimmed(s);
  const char* first = t.data() + (t.size() > 1 && t[0] == '+' ? 1 : 0);
  int64_t v = 0;
  const auto [end, error] = std::from_chars(first, t.data() + t.size(), v);
  CRESSET_CHECK_VALUE(error == std::errc() && end == t.data() + t.size() && !t.empty(), "invalid literal for int() with base 10: '", s,
                      "'");
  return v;
}
double to_float(Text s) {
  std::string t = trimmed(s);
  const char* first = t.data() + (t.size() > 1 && t[0] == '+' ? 1 : 0);
  double v = 0;
  const auto [end, error] = parse_double(first, t.data() + t.size(), v);
  CRESSET_CHECK_VALUE(error == std::errc() && end == t.data() + t.size() && !t.empty(), "could not convert string to float: '", s, "'");
  return v;
}

std::string chr(int64_t i) {
  CRESSET_CHECK(i >= 0 && i < 0x110000, "chr() arg not in range(0x110000), found ", i);
  std::string out;
  const auto u = static_cast<uint32_t>(i);
  if (u < 0x80) {
    out += static_cast<char>(u);
  } else if (u < 0x800) {
    out += static_cast<char>(0xc0 | u >> 6);
    out += static_cast<char>(0x80 | (u & 63));
  } else if (u < 0x10000) {
    out += static_cast<char>(0xe0 | u >> 12);
    out += static_cast<char>(0x80 | (u >> 6 & 63));
    out += static_cast<char>(0x80 | (u & 63));
  } else {
    out += static_cast<char>(0xf0 | u >> 18);
    out += static_cast<char>(0x80 | (u >> 12 & 63));
    out += static_cast<char>(0x80 | (u >> 6 & 63));
    out += static_cast<char>(0x80 | (u & 63));
  }
  return out;
}
int64_t ord(Text s) {
  CRESSET_CHECK_TYPE(s.size() == 1, "String for ord() must be 1 character, found ", s.size());
  return static_cast<unsigned char>(s[0]);
}

// "{}" in turn; "{{" and "}}" are braces.
void format(Stack& stack) {
  // The number of arguments is pushed behind them.
  const auto n = static_cast<std::size_t>(pop(stack).toInt());
  const std::string& pattern = stack[stack.size() - n].toStringRef();
  const IValue* args = stack.data() + stack.size() - n + 1;
  std::string out;
  std::size_t used = 0;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    const char c = pattern[i];
    if ((c == '{' || c == '}') && i + 1 < pattern.size() && pattern[i + 1] == c) {
      out += c;
      ++i;
    } else if (c == '{' && i + 1 < pattern.size() && pattern[i + 1] == '}') {
      CRESSET_CHECK(used + 1 < n, "Too few arguments for format string: ", pattern);
      out += script_text(args[used++]);
      ++i;
    } else {
      out += c;
    }
  }
  CRESSET_CHECK(used + 1 == n, "Too many arguments for format string: ", pattern);
  drop(stack, n);
  push(stack, std::move(out));
}

// "%s", "%d", "%5.2f" and the others of Python's % operator on strings.
void percent_format(Stack& stack) {
  const auto n = static_cast<std::size_t>(pop(stack).toInt());
  const std::string& pattern = stack[stack.size() - n].toStringRef();
  std::vector<IValue> args(stack.end() - static_cast<std::ptrdiff_t>(n) + 1, stack.end());
  if (args.size() == 1 && args[0].isTuple()) args = std::vector<IValue>(args[0].toTupleElements());
  std::string out;
  std::size_t used = 0;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] != '%') {
      out += pattern[i];
      continue;
    }
    const std::size_t start = i++;
    while (i < pattern.size() && std::strchr("-+ #0123456789.", pattern[i])) ++i;
    CRESSET_CHECK_VALUE(i < pattern.size(), "Incomplete format specifier");
    const char kind = pattern[i];
    if (kind == '%') {
      out += '%';
      continue;
    }
    CRESSET_CHECK_TYPE(used < args.size(), "Too few arguments for format string");
    const IValue& v = args[used++];
    std::string spec = pattern.substr(start, i - start);
    CRESSET_CHECK_VALUE(spec.size() < 16, "a format of less than 16 characters was required; '", spec, "' was given.");
    char buffer[512];
    CRESSET_CHECK(!std::strchr("dixXoeEfFgG", kind) || v.isScalar(), "%", std::string(1, kind),
                  " requires a number for formatting, but got ", v.tagKind());
    switch (kind) {
      case 'd':
      case 'i':
      case 'x':
      case 'X':
      case 'o': {
        spec += std::string("ll") + kind;
        const int64_t number = v.isDouble() ? static_cast<int64_t>(std::clamp(v.toDouble(), -9.2e18, 9.2e18)) : v.toScalar().toLong();
        std::snprintf(buffer, sizeof buffer, spec.c_str(), static_cast<long long>(number));
        out += buffer;
        break;
      }
      case 'e':
      case 'E':
      case 'f':
      case 'F':
      case 'g':
      case 'G':
        spec += kind;
        std::snprintf(buffer, sizeof buffer, spec.c_str(), v.toScalar().toDouble());
        out += buffer;
        break;
      case 'c':
        CRESSET_CHECK(v.isInt() || (v.isString() && v.toStringRef().size() == 1), "%c requires an int or char for formatting, but got ",
                      v.tagKind());
        out += v.isInt() ? chr(v.toInt()) : v.toStringRef();
        break;
      case 's': {
        const std::string text = script_text(v);
        const std::string digits = spec.substr(1);
        int64_t width = 0;
        std::from_chars(digits.data() + (!digits.empty() && digits[0] == '-'), digits.data() + digits.size(), width);
        const std::string padding = repeated(' ', width - static_cast<int64_t>(text.size()));
        out += !digits.empty() && digits[0] == '-' ? text + padding : padding + text;
        break;
      }
      default: CRESSET_THROW(ValueError, "The specifier %", std::string(1, kind), " is not supported in TorchScript format strings");
    }
  }
  CRESSET_CHECK_TYPE(used == args.size(), "Too many arguments for format string");
  drop(stack, n);
  push(stack, std::move(out));
}

const BuiltinRow kStringRows[] = {
    {"aten::add.str(str a, str b) -> str", CRESSET_BUILTIN((Text a, Text b)->std::string { return a + b; })},
    {"aten::mul.str(str a, int b) -> str", CRESSET_BUILTIN((Text a, int64_t n)->std::string {
       CRESSET_CHECK(n <= 0 || a.empty() || n < kLongest / static_cast<int64_t>(a.size()), "the repeated string is too long.");
       check_memory_limit(n * static_cast<int64_t>(a.size()));
       std::string out;
       for (int64_t i = 0; i < n; ++i) out += a;
       return out;
     })},
    {"aten::len.str(str s) -> int", CRESSET_BUILTIN((Text s)->int64_t { return static_cast<int64_t>(s.size()); })},
    {"aten::__contains__.str_in(str s, str part) -> bool",
     CRESSET_BUILTIN((Text s, Text part)->bool { return s.find(part) != std::string::npos; })},
    {"aten::__getitem__.str(str s, int index) -> str", CRESSET_BUILTIN((Text s, int64_t i)->std::string { return character(s, i); })},
    {"prim::StringIndex(str string, int index) -> str", CRESSET_BUILTIN((Text s, int64_t i)->std::string { return character(s, i); })},
    {"aten::slice.str(str string, int? start=None, int? end=None, int step=1) -> str",
     CRESSET_BUILTIN((Text s, IValue& a, IValue& b, int64_t step)->std::string { return sliced(s, a, b, step); })},
    {"aten::list(str t) -> str[]", CRESSET_BUILTIN((Text s)->IValue {
       std::vector<std::string> out;
       for (char c : s) out.emplace_back(1, c);
       return string_list(std::move(out));
     })},
    {"aten::str(t elem) -> str", CRESSET_BUILTIN((IValue & v)->std::string { return script_text(v); })},
    {"aten::format(str self, ...) -> str", &format},
    {"aten::percentFormat(str self, ...) -> str", &percent_format},
    {"aten::ord(str string) -> int", CRESSET_BUILTIN((Text s)->int64_t { return ord(s); })},
    {"aten::chr(int i) -> str", CRESSET_BUILTIN((int64_t i)->std::string { return chr(i); })},
    {"aten::hex(int i) -> str", CRESSET_BUILTIN((int64_t i)->std::string { return in_base(i, 16, "0x"); })},
    {"aten::oct(int i) -> str", CRESSET_BUILTIN((int64_t i)->std::string { return in_base(i, 8, "0o"); })},
    {"aten::bin(int i) -> str", CRESSET_BUILTIN((int64_t i)->std::string { return in_base(i, 2, "0b"); })},
    {"aten::Int.str(str a) -> int", CRESSET_BUILTIN((Text s)->int64_t { return to_int(s); })},
    {"aten::Float.str(str a) -> float", CRESSET_BUILTIN((Text s)->double { return to_float(s); })},
    {"aten::upper(str self) -> str", CRESSET_BUILTIN((Text s)->std::string { return mapped(s, upper); })},
    {"aten::lower(str self) -> str", CRESSET_BUILTIN((Text s)->std::string { return mapped(s, lower); })},
    {"aten::casefold(str self) -> str", CRESSET_BUILTIN((Text s)->std::string { return mapped(s, lower); })},
    {"aten::capitalize(str self) -> str", CRESSET_BUILTIN((Text s)->std::string {
       std::string out = mapped(s, lower);
       if (!out.empty()) out[0] = upper(out[0]);
       return out;
     })},
    {"aten::title(str self) -> str", CRESSET_BUILTIN((Text s)->std::string { return title(s); })},
    {"aten::swapcase(str self) -> str",
     CRESSET_BUILTIN((Text s)->std::string { return mapped(s, [](char c) { return is_upper(c) ? lower(c) : upper(c); }); })},
    {"aten::isupper(str self) -> bool", CRESSET_BUILTIN((Text s)->bool { return cased(s, is_upper, is_lower); })},
    {"aten::islower(str self) -> bool", CRESSET_BUILTIN((Text s)->bool { return cased(s, is_lower, is_upper); })},
    {"aten::isdigit(str self) -> bool", CRESSET_BUILTIN((Text s)->bool { return all_chars(s, is_digit); })},
    {"aten::isspace(str self) -> bool", CRESSET_BUILTIN((Text s)->bool { return all_chars(s, is_space); })},
    {"aten::isalnum(str self) -> bool", CRESSET_BUILTIN((Text s)->bool { return all_chars(s, is_alnum); })},
    {"aten::isalpha(str self) -> bool", CRESSET_BUILTIN((Text s)->bool { return all_chars(s, is_alpha); })},
    {"aten::isdecimal(str self) -> bool", CRESSET_BUILTIN((Text s)->bool { return all_chars(s, is_digit); })},
    {"aten::isnumeric(str self) -> bool", CRESSET_BUILTIN((Text s)->bool { return all_chars(s, is_digit); })},
    {"aten::isidentifier(str self) -> bool", CRESSET_BUILTIN((Text s)->bool { return is_identifier(s); })},
    {"aten::istitle(str self) -> bool", CRESSET_BUILTIN((Text s)->bool { return is_title(s); })},
    {"aten::isprintable(str self) -> bool", CRESSET_BUILTIN((Text s)->bool { return std::all_of(s.begin(), s.end(), is_print); })},
    {"aten::center(str self, int width, str fillchar=\" \") -> str",
     CRESSET_BUILTIN((Text s, int64_t width, Text fill)->std::string { return center(s, width, fill); })},
    {"aten::ljust(str self, int width, str fillchar=\" \") -> str", CRESSET_BUILTIN((Text s, int64_t width, Text fill)->std::string {
       return s + repeated(fill_char(fill), width - static_cast<int64_t>(s.size()));
     })},
    {"aten::rjust(str self, int width, str fillchar=\" \") -> str", CRESSET_BUILTIN((Text s, int64_t width, Text fill)->std::string {
       return repeated(fill_char(fill), width - static_cast<int64_t>(s.size())) + s;
     })},
    {"aten::zfill(str self, int width) -> str", CRESSET_BUILTIN((Text s, int64_t width)->std::string { return zero_filled(s, width); })},
    {"aten::find(str self, str substr, int start=0, int end=-1) -> int",
     CRESSET_BUILTIN((Text s, Text what, int64_t a, int64_t b)->int64_t { return find(s, what, a, b); })},
    {"aten::rfind(str self, str substr, int start=0, int end=-1) -> int",
     CRESSET_BUILTIN((Text s, Text what, int64_t a, int64_t b)->int64_t { return find_last(s, what, a, b); })},
    {"aten::index.str(str self, str substr, int start=0, int end=-1) -> int",
     CRESSET_BUILTIN((Text s, Text what, int64_t a, int64_t b)->int64_t {
       const int64_t at = find(s, what, a, b);
       CRESSET_CHECK_VALUE(at >= 0, "ValueError: substring not found");
       return at;
     })},
    {"aten::rindex(str self, str substr, int start=0, int end=-1) -> int",
     CRESSET_BUILTIN((Text s, Text what, int64_t a, int64_t b)->int64_t {
       const int64_t at = find_last(s, what, a, b);
       CRESSET_CHECK_VALUE(at >= 0, "ValueError: substring not found");
       return at;
     })},
    {"aten::count(str self, str substr, int start=0, int end=-1) -> int",
     CRESSET_BUILTIN((Text s, Text what, int64_t a, int64_t b)->int64_t { return count(s, what, a, b); })},
    {"aten::replace(str self, str old, str new, int max=-1) -> str",
     CRESSET_BUILTIN((Text s, Text a, Text b, int64_t max)->std::string { return replace(s, a, b, max); })},
    {"aten::startswith(str self, str substr, int start=0, int end=-1) -> bool",
     CRESSET_BUILTIN((Text s, Text what, int64_t a, int64_t b)->bool {
       const auto [from, to] = search_range(s, a, b);
       return std::string_view(s).substr(from, to - from).starts_with(what);
     })},
    {"aten::endswith(str self, str substr, int start=0, int end=-1) -> bool",
     CRESSET_BUILTIN((Text s, Text what, int64_t a, int64_t b)->bool {
       const auto [from, to] = search_range(s, a, b);
       return std::string_view(s).substr(from, to - from).ends_with(what);
     })},
    {"aten::split.str(str self, str? separator=None, int max=-1) -> str[]",
     CRESSET_BUILTIN((Text s, IValue& separator, int64_t max)->IValue {
       return string_list(separator.isNone() ? split_words(s, max) : split(s, separator.toStringRef(), max));
     })},
    {"aten::rsplit(str self, str separator=\" \", int max=-1) -> str[]",
     CRESSET_BUILTIN((Text s, Text separator, int64_t max)->IValue { return string_list(split_right(s, separator, max)); })},
    {"aten::splitlines(str self, bool keepends=False) -> str[]",
     CRESSET_BUILTIN((Text s, bool keep)->IValue { return string_list(split_lines(s, keep)); })},
    {"aten::strip(str self, str chars=\" \\n\\t\\f\\v\") -> str",
     CRESSET_BUILTIN((Text s, Text chars)->std::string { return stripped(s, chars, true, true); })},
    {"aten::lstrip(str self, str chars=\" \\n\\t\\f\\v\") -> str",
     CRESSET_BUILTIN((Text s, Text chars)->std::string { return stripped(s, chars, true, false); })},
    {"aten::rstrip(str self, str chars=\" \\n\\t\\f\\v\") -> str",
     CRESSET_BUILTIN((Text s, Text chars)->std::string { return stripped(s, chars, false, true); })},
    {"aten::join(str self, str[] values) -> str", CRESSET_BUILTIN((Text s, IValue& values)->std::string { return join(s, values); })},
    {"aten::partition(str self, str separator) -> (str, str, str)",
     CRESSET_BUILTIN(
         (Text s, Text separator)->std::tuple<std::string, std::string, std::string> { return partition(s, separator, false); })},
    {"aten::rpartition(str self, str separator) -> (str, str, str)",
     CRESSET_BUILTIN(
         (Text s, Text separator)->std::tuple<std::string, std::string, std::string> { return partition(s, separator, true); })},
    {"aten::expandtabs(str self, int tabsize=8) -> str", CRESSET_BUILTIN((Text s, int64_t n)->std::string { return expand_tabs(s, n); })},
};

}  // namespace
}  // namespace builtin

void register_string_builtins(const AddRows& add) { add(builtin::kStringRows, std::size(builtin::kStringRows)); }

}  // namespace cresset::jit
