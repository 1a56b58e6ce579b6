// The inputs of an exported program against what it was exported for: structure, constants, sizes and ranges of symbols.
#include <cctype>

#include "ir/archive/export_tree.h"

namespace cresset::jit {

namespace {

using Symbols = std::map<std::string, int64_t>;

// The value of a size's expression, in the words of SymPy: Symbol('s0', positive=True), Integer(2), Add(…), Mul(…). Nothing for other
// expressions and for symbols that no input has given a value.
class Expression {
 public:
  Expression(std::string_view text, const Symbols& symbols) : text_(text), symbols_(symbols) {}
  std::optional<int64_t> value() {
    auto v = term(0);
    return at_ == text_.size() ? v : std::nullopt;
  }
  /// The name when the whole text is one symbol.
  static std::optional<std::string> symbol(std::string_view text) {
    constexpr std::string_view head = "Symbol('";
    if (!text.starts_with(head)) return std::nullopt;
    const std::size_t quote = text.find('\'', head.size());
    if (quote == std::string_view::npos || text.find('(', quote) != std::string_view::npos) return std::nullopt;
    return std::string(text.substr(head.size(), quote - head.size()));
  }

 private:
  std::optional<int64_t> term(int depth) {
    constexpr int kDeepest = 100;
    if (depth > kDeepest) return std::nullopt;
    const std::size_t open = text_.find('(', at_);
    if (open == std::string_view::npos) return std::nullopt;
    const std::string_view name = text_.substr(at_, open - at_);
    if (name == "Symbol") {
      const std::size_t close = text_.find(')', open);
      if (close == std::string_view::npos) return std::nullopt;
      const auto symbol_name = symbol(text_.substr(at_, close + 1 - at_));
      at_ = close + 1;
      const auto found = symbol_name ? symbols_.find(*symbol_name) : symbols_.end();
      return found == symbols_.end() ? std::nullopt : std::optional(found->second);
    }
    at_ = open + 1;
    if (name == "Integer") {
      int64_t v = 0;
      const bool negative = at_ < text_.size() && text_[at_] == '-';
      if (negative) ++at_;
      for (int digits = 0; at_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at_])); ++at_)
        if (++digits > 18)
          return std::nullopt;
        else
          v = v * 10 + (text_[at_] - '0');
      return skip(')') ? std::optional(negative ? -v : v) : std::nullopt;
    }
    if (name != "Add" && name != "Mul") return std::nullopt;
    int64_t result = name == "Mul";
    do {
      const auto v = term(depth + 1);
      if (!v) return std::nullopt;
      const bool overflow = name == "Mul" ? __builtin_mul_overflow(result, *v, &result) : __builtin_add_overflow(result, *v, &result);
      if (overflow) return std::nullopt;
    } while (skip(','));
    return skip(')') ? std::optional(result) : std::nullopt;
  }
  bool skip(char c) {
    if (at_ >= text_.size() || text_[at_] != c) return false;
    for (++at_; at_ < text_.size() && text_[at_] == ' ';) ++at_;
    return true;
  }
  std::string_view text_;
  const Symbols& symbols_;
  std::size_t at_ = 0;
};

void check_range(const ExportCheck& check, std::size_t dim, int64_t size, const RangeConstraint& range) {
  if (range.least)
    CRESSET_CHECK(size >= *range.least, "Expected input at ", check.place, ".shape[", dim, "] to be >= ", *range.least, ", but got ", size);
  if (range.most)
    CRESSET_CHECK(size <= *range.most, "Expected input at ", check.place, ".shape[", dim, "] to be <= ", *range.most, ", but got ", size);
}

}  // namespace

void ExportedProgram::check_inputs(const Stack& arguments) const {
  std::vector<IValue> leaves;
  const TreeSpec &positional = in_spec.children.at(0), &keywords = in_spec.children.at(1);
  CRESSET_CHECK_VALUE(arguments.size() == positional.children.size() + keywords.children.size(),
                      "Trying to flatten user inputs with exported input tree spec: ", in_spec.str(), ", but actually got ",
                      arguments.size(), " inputs.");
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const bool keyword = i >= positional.children.size();
    const std::size_t k = keyword ? i - positional.children.size() : i;
    exported::flatten(keyword ? keywords.children[k] : positional.children[k], arguments[i],
                      keyword ? "**kwargs['" + keywords.keys[k].toStringRef() + "']" : "*args[" + std::to_string(k) + "]", leaves);
  }
  // Symbols that stand alone get their values first, then expressions of them are compared.
  Symbols symbols;
  for (const bool alone : {true, false})
    for (std::size_t i = 0; i < leaves.size(); ++i) {
      const ExportCheck& check = checks[i];
      if (check.constant && alone)
        CRESSET_CHECK(leaves[i].tag() == check.constant->tag() && sameConstant(leaves[i], *check.constant), "Expected input at ",
                      check.place, " to be equal to ", to_string(*check.constant), ", but got ", to_string(leaves[i]));
      if (!check.tensor) continue;
      CRESSET_CHECK_TYPE(leaves[i].isTensor() && leaves[i].toTensor().defined(), "Expected input at ", check.place,
                         " to be a tensor, but got ", leaves[i].type()->annotation_str());
      const Tensor& t = leaves[i].toTensor();
      CRESSET_CHECK(static_cast<std::size_t>(t.dim()) == check.sizes.size(), "Expected input at ", check.place, " to have ",
                    check.sizes.size(), " dimensions, but got a tensor of shape ", t.sizes());
      for (std::size_t d = 0; d < check.sizes.size(); ++d) {
        const int64_t size = t.size(static_cast<int64_t>(d));
        std::optional<int64_t> expected;
        if (const auto* number = std::get_if<int64_t>(&check.sizes[d])) {
          expected = *number;
        } else {
          const std::string& text = std::get<std::string>(check.sizes[d]);
          if (const auto symbol = Expression::symbol(text); symbol && !symbols.contains(*symbol)) {
            symbols[*symbol] = size;
            if (const auto range = range_constraints.find(*symbol); range != range_constraints.end())
              check_range(check, d, size, range->second);
            continue;
          }
          if (!alone || Expression::symbol(text)) expected = Expression(text, symbols).value();
        }
        if (expected)
          CRESSET_CHECK(size == *expected, "Expected input at ", check.place, ".shape[", d, "] to be equal to ", *expected, ", but got ",
                        size);
      }
    }
}

IValue ExportedProgram::operator()(Stack arguments, const Kwargs& kwargs) const {
  const Method forward = module.get_method("forward");
  arguments.insert(arguments.begin(), IValue(module._ivalue()));
  forward.function().checkAndNormalize(arguments, kwargs);
  check_inputs(Stack(arguments.begin() + 1, arguments.end()));
  forward.function().run(arguments);
  return arguments.empty() ? IValue() : std::move(arguments[0]);
}

}  // namespace cresset::jit
