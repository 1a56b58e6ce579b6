// TupleType: tuples whose members have names.
#pragma once

#include <optional>

#include <cresset/dispatch/type.h>

namespace cresset {

/// A named tuple: a tuple type with a qualified name and a name for each member.
struct CRESSET_API NamedTupleType final : TupleType {
  std::vector<std::string> fields;
  NamedTupleType(std::string name, std::vector<std::string> fields, std::vector<TypePtr> members)
      : TupleType(std::move(members), std::move(name)), fields(std::move(fields)) {}
  std::optional<std::size_t> field_index(std::string_view field) const;

 protected:
  bool same_details(const Type& other) const override;
  bool details_below(const Type& other, std::string* why_not) const override;
};

}  // namespace cresset
