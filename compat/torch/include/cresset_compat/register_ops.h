// torch/csrc/jit/runtime/register_ops_utils.h: what files that register operators use.
#pragma once

#include <string_view>

#include <cresset_compat/jit.h>

#include <cresset/ir/vararg_functions.h>

namespace c10::impl {
/// Does a list of names ("aten::add.Tensor;aten::mul") hold the name in front of a schema's parenthesis?
constexpr bool op_allowlist_contains_name_in_schema(std::string_view list, std::string_view schema) {
  const std::string_view name = schema.substr(0, schema.find('('));
  while (!list.empty()) {
    const std::string_view one = list.substr(0, list.find(';'));
    if (one == name) return true;
    list.remove_prefix(one.size() < list.size() ? one.size() + 1 : list.size());
  }
  return false;
}
}  // namespace c10::impl

namespace torch::detail {
/// A text that is wanted, or not.
template <bool wanted>
class SelectiveStr {
 public:
  constexpr explicit SelectiveStr(const char* text) : text_(text) {}
  constexpr operator const char*() const { return text_; }

 private:
  const char* text_;
};
}  // namespace torch::detail

namespace torch::jit {
using cresset::jit::dictConstruct;
using cresset::jit::listConstruct;
using cresset::jit::listUnpack;
using cresset::jit::namedTupleConstruct;
using cresset::jit::tupleConstruct;
using cresset::jit::tupleSlice;
using cresset::jit::tupleUnpack;
inline c10::AliasAnalysisKind aliasAnalysisFromSchema() { return c10::AliasAnalysisKind::FROM_SCHEMA; }
inline c10::AliasAnalysisKind aliasAnalysisConservative() { return c10::AliasAnalysisKind::CONSERVATIVE; }
inline c10::AliasAnalysisKind aliasAnalysisSpecialCase() { return c10::AliasAnalysisKind::INTERNAL_SPECIAL_CASE; }
/// The operator, or none where the selection leaves it out.
template <class F>
std::optional<Operator> OperatorGenerator(torch::detail::SelectiveStr<true> schema, F&& operation, c10::AliasAnalysisKind alias) {
  return Operator(std::string(schema), std::forward<F>(operation), alias);
}
template <class F>
std::optional<Operator> OperatorGenerator(torch::detail::SelectiveStr<false> /*schema*/, F&& /*operation*/,
                                          c10::AliasAnalysisKind /*alias*/) {
  return std::nullopt;
}
}  // namespace torch::jit
