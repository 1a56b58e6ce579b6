// Which arguments and returns of a schema may share memory.
#include <cresset/dispatch/schema_info.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include <cresset/dispatch/dispatcher.h>
#include <cresset/dispatch/script_values.h>

#include "dispatch/tags.h"

namespace cresset {

namespace {

using Kinds = std::set<std::string>;

// Kinds of memory of a type: types of which none is the other's never share any. Numbers and texts have none.
void add_kinds(const TypePtr& type, Kinds& kinds) {
  switch (type->kind) {
    case TypeKind::Tensor: kinds.insert("Tensor"); break;
    case TypeKind::Optional: add_kinds(type->element(), kinds); break;
    case TypeKind::Union:
      for (const TypePtr& member : type->contained) add_kinds(member, kinds);
      break;
    case TypeKind::Any:
    case TypeKind::Var: kinds.insert("Any"); break;
    case TypeKind::List:
    case TypeKind::Dict:
    case TypeKind::Tuple:
    case TypeKind::Future:
    case TypeKind::RRef:
    case TypeKind::Await:
    case TypeKind::Object:
    case TypeKind::Interface:
    case TypeKind::AnyList:
    case TypeKind::AnyTuple:
    case TypeKind::AnyClass:
    case TypeKind::Generator:
    case TypeKind::Capsule:
    case TypeKind::Storage: kinds.insert(type->str()); break;
    default: break;
  }
}
Kinds kinds_of(const TypePtr& type) {
  Kinds kinds;
  add_kinds(type, kinds);
  return kinds;
}
// Of what lies in a value of the type, at any depth.
void add_contained(const TypePtr& type, Kinds& kinds) {
  for (const TypePtr& inner : type->contained) {
    if (type->kind != TypeKind::Optional && type->kind != TypeKind::Union) add_kinds(inner, kinds);
    add_contained(inner, kinds);
  }
}
Kinds contained_kinds(const TypePtr& type) {
  Kinds kinds;
  add_contained(type, kinds);
  return kinds;
}
bool share(const Kinds& a, const Kinds& b) {
  if (a.empty() || b.empty()) return false;
  if (a.count("Any") || b.count("Any")) return true;
  return std::ranges::any_of(a, [&](const std::string& kind) { return b.count(kind) > 0; });
}

std::vector<std::string> sets_of(const Argument& a) {
  std::vector<std::string> sets;
  if (!a.alias) return sets;
  sets = a.alias->before;
  sets.insert(sets.end(), a.alias->after.begin(), a.alias->after.end());
  return sets;
}
bool is_wildcard(const Argument& a) {
  const auto sets = sets_of(a);
  return std::ranges::find(sets, "*") != sets.end();
}

bool may_contain(const Argument& a, const Argument& b, bool b_is_wildcard) {
  const Kinds inside = contained_kinds(a.type);
  return (b_is_wildcard && share(inside, kinds_of(b.type))) || share(inside, contained_kinds(b.type));
}

void add_inside(const IValue& v, std::vector<IValue>& out) {
  const auto add = [&](const IValue& inner) {
    out.push_back(inner);
    add_inside(inner, out);
  };
  if (v.isList())
    std::ranges::for_each(v.toListRef(), add);
  else if (v.isTuple())
    std::ranges::for_each(v.toTupleElements(), add);
  else if (v.isGenericDict())
    for (const auto& [key, value] : v.toDictImpl().items) add(key), add(value);
}

}  // namespace

// ---- the schema alone

const Argument& FunctionSchema::argument(const SchemaArgument& which) const {
  const auto& all = which.type == SchemaArgType::input ? arguments_ : returns_;
  CRESSET_CHECK(which.index < all.size(), name_.str(), ": ", which.type == SchemaArgType::input ? "argument " : "return ", which.index,
                " was asked for; there are ", all.size(), ".");
  return all[which.index];
}
bool FunctionSchema::is_mutable(std::string_view argument) const {
  const auto index = argument_index(argument);
  CRESSET_CHECK(index, "Schema has no argument named ", argument, ": ", str());
  return is_mutable(*index);
}
bool FunctionSchema::may_alias(const SchemaArgument& left, const SchemaArgument& right) const {
  const Argument &a = argument(left), &b = argument(right);
  if (!share(kinds_of(a.type), kinds_of(b.type))) return false;
  const auto other = sets_of(b);
  return std::ranges::any_of(sets_of(a), [&](const std::string& set) { return std::ranges::find(other, set) != other.end(); });
}
bool FunctionSchema::may_contain_alias(const SchemaArgument& left, const SchemaArgument& right, bool both_ways) const {
  const Argument &a = argument(left), &b = argument(right);
  return may_alias(left, right) || may_contain(a, b, is_wildcard(b)) || (both_ways && may_contain(b, a, is_wildcard(a)));
}

// ---- with values

/// Classes of arguments, returns and sets that may be one memory.
class SchemaInfo::Sharing {
 public:
  explicit Sharing(const SchemaInfo& info) : inputs_(info.schema_.arguments().size()) {
    const FunctionSchema& schema = info.schema_;
    parent_.resize(1 + inputs_ + schema.returns().size());
    std::iota(parent_.begin(), parent_.end(), std::size_t{0});
    sets_["*"] = kWildcard;
    join_sets(schema.arguments(), SchemaArgType::input);
    join_sets(schema.returns(), SchemaArgType::output);
    join_values(info.values_);
  }
  bool same(const SchemaArgument& a, const SchemaArgument& b) { return root(place(a)) == root(place(b)); }
  bool wildcard(const SchemaArgument& a) { return root(place(a)) == root(kWildcard); }

 private:
  static constexpr std::size_t kWildcard = 0;
  std::size_t place(const SchemaArgument& a) const { return 1 + (a.type == SchemaArgType::input ? a.index : inputs_ + a.index); }
  std::size_t root(std::size_t i) const {
    while (parent_[i] != i) i = parent_[i];
    return i;
  }
  void join(std::size_t a, std::size_t b) { parent_[root(a)] = root(b); }

  void join_sets(const std::vector<Argument>& arguments, SchemaArgType type) {
    std::map<std::string, std::size_t> carriers;
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      const auto names = sets_of(arguments[i]);
      for (const std::string& name : std::set<std::string>(names.begin(), names.end())) {
        const auto [set, fresh] = sets_.try_emplace(name, parent_.size());
        if (fresh) parent_.push_back(parent_.size());
        join(place({type, i}), set->second);
        if (++carriers[name] == 2) join(set->second, kWildcard);
      }
    }
  }
  void join_values(const std::vector<std::optional<IValue>>& values) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (!values[i]) continue;
      std::vector<IValue> inside;
      add_inside(*values[i], inside);
      for (std::size_t k = 0; k < values.size(); ++k) {
        if (k == i || !values[k]) continue;
        if (values[i]->isAliasOf(*values[k])) join(place({SchemaArgType::input, i}), place({SchemaArgType::input, k}));
        if (std::ranges::any_of(inside, [&](const IValue& v) { return v.isAliasOf(*values[k]); }))
          join(place({SchemaArgType::input, k}), kWildcard);
      }
    }
  }

  std::size_t inputs_;
  std::vector<std::size_t> parent_;  // the wildcard, the arguments, the returns, the named sets
  std::map<std::string, std::size_t> sets_;
};

void SchemaInfo::addArgumentValue(const std::string& name, const IValue& value) {
  const auto index = schema_.argument_index(name);
  CRESSET_CHECK(index, "Schema has no argument named ", name, ": ", schema_.str());
  values_[*index] = value;
}
void SchemaInfo::addArgumentValues(const std::vector<std::optional<IValue>>& values) {
  CRESSET_CHECK(values.size() <= values_.size(), "Schema does not have enough arguments for value list: ", schema_.str());
  for (std::size_t i = 0; i < values.size(); ++i)
    if (values[i]) values_[i] = values[i];
}
void SchemaInfo::addArgumentValues(const std::unordered_map<std::string, IValue>& values) {
  for (const auto& [name, value] : values) addArgumentValue(name, value);
}

bool SchemaInfo::known_false(std::string_view argument) const {
  const auto index = schema_.argument_index(argument);
  return index && values_[*index] && values_[*index]->isBool() && !values_[*index]->toBool();
}

// Normalization writes its running statistics when it trains, which its schema does not say.
bool SchemaInfo::is_written(std::size_t input) const {
  const Argument& a = schema_.arguments()[input];
  if (a.is_mutable()) return true;
  if (a.name != "running_mean" && a.name != "running_var") return false;
  for (const char* flag : {"training", "train", "use_input_stats"})
    if (hasInputArgumentNamed(flag)) return !known_false(flag);
  return false;
}

bool SchemaInfo::is_mutable() const {
  for (std::size_t i = 0; i < values_.size(); ++i)
    if (is_written(i)) return true;
  return false;
}
bool SchemaInfo::is_mutable(const SchemaArgument& which) const {
  static_cast<void>(schema_.argument(which));
  for (std::size_t i = 0; i < values_.size(); ++i) {
    const SchemaArgument input{SchemaArgType::input, i};
    if (is_written(i) && (input == which || may_alias(input, which))) return true;
  }
  return false;
}
bool SchemaInfo::is_mutable(std::string_view name) const {
  const auto index = schema_.argument_index(name);
  CRESSET_CHECK(index, "Schema has no argument named ", name, ": ", schema_.str());
  return is_mutable(SchemaArgument{SchemaArgType::input, *index});
}

bool SchemaInfo::is_nondeterministic() const {
  const auto op = Dispatcher::singleton().findSchema(schema_.operator_name());
  if (!op || !has_tag(*op, "nondeterministic_seeded")) return false;
  return !known_false("train");
}

bool SchemaInfo::may_alias(const SchemaArgument& a, const SchemaArgument& b) const {
  if (!share(kinds_of(schema_.argument(a).type), kinds_of(schema_.argument(b).type))) return false;
  return a == b || Sharing(*this).same(a, b);
}
bool SchemaInfo::may_contain_alias(const SchemaArgument& left, const SchemaArgument& right, bool both_ways) const {
  const Argument &a = schema_.argument(left), &b = schema_.argument(right);
  Sharing sharing(*this);
  return may_alias(left, right) || may_contain(a, b, sharing.wildcard(right)) || (both_ways && may_contain(b, a, sharing.wildcard(left)));
}

}  // namespace cresset
