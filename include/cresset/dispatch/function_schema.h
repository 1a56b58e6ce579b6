// FunctionSchema: an operator's name, arguments, returns and aliasing, with its text form.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <cresset/dispatch/ivalue.h>
#include <cresset/dispatch/type.h>

namespace cresset {

/// "aten::add" and "Tensor".
struct CRESSET_API OperatorName {
  std::string name;
  std::string overload_name;
  /// "aten", empty when there is none.
  std::string_view ns() const {
    const std::size_t at = name.find("::");
    return at == std::string::npos ? std::string_view() : std::string_view(name).substr(0, at);
  }
  /// The part behind "aten::".
  std::string_view base() const {
    const std::size_t at = name.find("::");
    return at == std::string::npos ? std::string_view(name) : std::string_view(name).substr(at + 2);
  }
  std::string str() const { return overload_name.empty() ? name : name + "." + overload_name; }
  friend bool operator==(const OperatorName&, const OperatorName&) = default;
  friend auto operator<=>(const OperatorName&, const OperatorName&) = default;
};
inline std::string to_string(const OperatorName& n) { return n.str(); }

/// "(a!)", "(a -> *)": which memory an argument or return shares and whether it is written.
struct AliasInfo {
  bool is_write = false;
  std::vector<std::string> before;       // sets before "->", in order; "*" is the wildcard
  std::vector<std::string> after;        // equal to before unless written with "->"
  std::shared_ptr<AliasInfo> contained;  // of list elements: Tensor(a)[]
  std::string str() const;
  bool isWrite() const { return is_write; }
  bool isWildcardBefore() const { return before.size() == 1 && before[0] == "*"; }
  bool isWildcardAfter() const { return after.size() == 1 && after[0] == "*"; }
  friend bool operator==(const AliasInfo& a, const AliasInfo& b) {
    return a.is_write == b.is_write && a.before == b.before && a.after == b.after && (!a.contained == !b.contained) &&
           (!a.contained || *a.contained == *b.contained);
  }
};

/// One argument or return. Each member is a function as well: name() and so on.
struct CRESSET_API Argument {
  Field<std::string> name;
  Field<TypePtr> type;
  Field<std::optional<int32_t>> N;  // int[N]
  Field<std::optional<IValue>> default_value;
  Field<bool> kwarg_only;
  std::optional<AliasInfo> alias;

  Argument() = default;
  /// Without a type: Tensor.
  explicit Argument(std::string name, TypePtr type = nullptr, std::optional<int32_t> N = {}, std::optional<IValue> default_value = {},
                    bool kwarg_only = false, std::optional<AliasInfo> alias = {})
      : name(std::move(name)),
        type(type ? std::move(type) : basic_type(TypeKind::Tensor)),
        N(N),
        default_value(std::move(default_value)),
        kwarg_only(kwarg_only),
        alias(std::move(alias)) {}

  bool is_out() const { return kwarg_only && is_mutable(); }
  /// Is it written, as a whole or (lists) in its elements?
  bool is_mutable() const { return alias && (alias->is_write || (alias->contained && alias->contained->is_write)); }
  /// Null for one that shares no memory.
  const AliasInfo* alias_info() const { return alias ? &*alias : nullptr; }
  const TypePtr& real_type() const { return type; }
  Argument cloneWithType(TypePtr other) const {
    Argument copy = *this;
    copy.type = std::move(other);
    return copy;
  }
  /// "Tensor(a!) self", "int[2] stride=1".
  std::string str() const;
};
inline std::string to_string(const Argument& a) { return a.str(); }

enum class AliasAnalysisKind : uint8_t { INTERNAL_SPECIAL_CASE, CONSERVATIVE, FROM_SCHEMA, PURE_FUNCTION };
CRESSET_API const char* toString(AliasAnalysisKind k);

/// One argument or return of a schema, by number.
enum class SchemaArgType : uint8_t { input, output };
struct SchemaArgument {
  SchemaArgType type;
  std::size_t index;
  friend bool operator==(const SchemaArgument&, const SchemaArgument&) = default;
};

class CRESSET_API FunctionSchema {
 public:
  FunctionSchema() = default;
  FunctionSchema(OperatorName name, std::vector<Argument> arguments, std::vector<Argument> returns, bool is_vararg = false,
                 bool is_varret = false);
  FunctionSchema(std::string name, std::string overload_name, std::vector<Argument> arguments, std::vector<Argument> returns,
                 bool is_vararg = false, bool is_varret = false)
      : FunctionSchema(OperatorName{std::move(name), std::move(overload_name)}, std::move(arguments), std::move(returns), is_vararg,
                       is_varret) {}

  const OperatorName& operator_name() const { return name_; }
  const std::string& name() const { return name_.name; }
  const std::string& overload_name() const { return name_.overload_name; }
  const std::vector<Argument>& arguments() const { return arguments_; }
  const std::vector<Argument>& returns() const { return returns_; }
  bool is_vararg() const { return is_vararg_; }
  bool is_varret() const { return is_varret_; }
  bool is_mutable() const;
  /// Position of an argument by name, or nothing.
  std::optional<std::size_t> argument_index(std::string_view name) const;
  std::optional<int> argumentIndexWithName(std::string_view argument) const {
    const auto at = argument_index(argument);
    return at ? std::optional(static_cast<int>(*at)) : std::nullopt;
  }
  bool is_mutable(std::size_t argument) const { return arguments_.at(argument).is_mutable(); }
  // What the schema says of memory; arguments that it does not have raise. Of what values at hand add, see schema_info.h.
  const Argument& argument(const SchemaArgument& which) const;
  bool is_mutable(const SchemaArgument& which) const { return argument(which).is_mutable(); }
  bool is_mutable(std::string_view argument) const;
  /// Has it a set of memory?
  bool is_aliasing(const SchemaArgument& which) const { return argument(which).alias.has_value(); }
  /// May the two be one memory? Types that never are one have none in common.
  bool may_alias(const SchemaArgument& a, const SchemaArgument& b) const;
  /// Or may a hold memory of b, and (`both_ways`) b of a? What lies in a container is any memory that is a wildcard.
  bool may_contain_alias(const SchemaArgument& a, const SchemaArgument& b, bool both_ways = true) const;
  // Copies with another part.
  FunctionSchema cloneWithName(std::string name, std::string overload_name) const;
  FunctionSchema cloneWithArguments(std::vector<Argument> arguments) const;
  FunctionSchema cloneWithReturns(std::vector<Argument> returns) const;
  /// With the types that the function makes of those of arguments and returns.
  template <class F>
  FunctionSchema cloneWithRemappedTypes(F&& map) const {
    FunctionSchema copy = *this;
    for (auto* list : {&copy.arguments_, &copy.returns_})
      for (Argument& a : *list) a.type = map(TypePtr(a.type));
    return copy;
  }
  /// Canonical text; parse_schema is its inverse.
  std::string str() const;

  AliasAnalysisKind alias_analysis() const { return alias_kind_.value_or(AliasAnalysisKind::CONSERVATIVE); }
  bool has_alias_analysis() const { return alias_kind_.has_value(); }
  void set_alias_analysis(AliasAnalysisKind k) { alias_kind_ = k; }
  // Under PyTorch's names.
  AliasAnalysisKind aliasAnalysis() const { return alias_analysis(); }
  bool hasAnyAliasInfo() const;
  void setAliasAnalysis(AliasAnalysisKind k) { alias_kind_ = k; }
  /// Name, types, defaults and aliases equal (argument names included).
  friend CRESSET_API bool operator==(const FunctionSchema& a, const FunctionSchema& b);

 private:
  OperatorName name_;
  std::vector<Argument> arguments_, returns_;
  bool is_vararg_ = false, is_varret_ = false;
  std::optional<AliasAnalysisKind> alias_kind_;
};
inline std::string to_string(const FunctionSchema& s) { return s.str(); }
inline std::string toString(const FunctionSchema& s) { return s.str(); }

/// Parses "ns::name.overload(args) -> returns"; errors show the text with a caret and the column.
CRESSET_API FunctionSchema parse_schema(std::string_view text);
/// Parses "ns::name.overload".
CRESSET_API OperatorName parse_operator_name(std::string_view text);
/// A whole schema, or a name alone.
CRESSET_API std::variant<OperatorName, FunctionSchema> parse_schema_or_name(std::string_view text);
/// Parses a type alone: "Tensor?", "int[]", "(int, Tensor)".
CRESSET_API TypePtr parse_type(std::string_view text);

/// Why a kernel's inferred schema does not fit the declared one, or nothing when it fits: `The number of arguments is different. 1 vs 2.`
/// (declared first).
CRESSET_API std::optional<std::string> find_schema_differences(const FunctionSchema& declared, const FunctionSchema& inferred);

}  // namespace cresset

template <>
struct std::hash<cresset::OperatorName> {
  std::size_t operator()(const cresset::OperatorName& n) const noexcept {
    return std::hash<std::string>()(n.name) * 31 + std::hash<std::string>()(n.overload_name);
  }
};
