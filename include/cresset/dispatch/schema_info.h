// SchemaInfo: what a schema says of memory, together with the values of some of its arguments.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include <cresset/dispatch/function_schema.h>

namespace cresset {

/// A schema and arguments as far as they are known. Values that are one memory, or lie in one another, make arguments share memory that
/// the schema alone keeps apart, and so do returns on the same sets. Sets that several arguments (or several returns) carry count as the
/// wildcard. Arguments that the schema does not have raise.
class CRESSET_API SchemaInfo {
 public:
  explicit SchemaInfo(FunctionSchema schema) : schema_(std::move(schema)), values_(schema_.arguments().size()) {}
  explicit SchemaInfo(const char* schema) : SchemaInfo(parse_schema(schema)) {}

  const FunctionSchema& schema() const { return schema_; }
  bool hasInputArgumentNamed(const std::string& name) const { return schema_.argument_index(name).has_value(); }
  void addArgumentValue(const std::string& name, const IValue& value);
  void addArgumentValues(const std::vector<std::optional<IValue>>& values);
  void addArgumentValues(const std::unordered_map<std::string, IValue>& values);

  bool is_mutable() const;
  /// Is it written, or memory that it may share? Running statistics are, unless the argument that says so is known to be false.
  bool is_mutable(const SchemaArgument& which) const;
  bool is_mutable(std::string_view name) const;
  /// May two calls with the same arguments differ? The operator's tag says it; dropout that does not train gives its input.
  bool is_nondeterministic() const;
  bool may_alias(const SchemaArgument& a, const SchemaArgument& b) const;
  bool may_contain_alias(const SchemaArgument& a, const SchemaArgument& b, bool both_ways = true) const;

 private:
  class Sharing;
  bool is_written(std::size_t input) const;
  bool known_false(std::string_view argument) const;
  FunctionSchema schema_;
  std::vector<std::optional<IValue>> values_;
};

}  // namespace cresset
