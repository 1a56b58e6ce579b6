// Types: construction, printing, comparison.
#include <cresset/dispatch/tuple_type.h>
#include <cresset/dispatch/type.h>

#include <algorithm>
#include <array>
#include <ostream>

#include <cresset/dispatch/tensor_type.h>

namespace cresset {
namespace {

struct KindName {
  const char* schema;
  const char* annotation;
};
// In the order of TypeKind.
constexpr std::array<KindName, 35> kNames = {{{"Any", "Any"},
                                              {"Tensor", "Tensor"},
                                              {"Scalar", "number"},
                                              {"int", "int"},
                                              {"SymInt", "int"},
                                              {"float", "float"},
                                              {"complex", "complex"},
                                              {"bool", "bool"},
                                              {"str", "str"},
                                              {"NoneType", "NoneType"},
                                              {"Device", "Device"},
                                              {"ScalarType", "int"},
                                              {"Layout", "int"},
                                              {"MemoryFormat", "int"},
                                              {"Generator", "Generator"},
                                              {"Storage", "Storage"},
                                              {"Stream", "Stream"},
                                              {"Capsule", "Capsule"},
                                              {"List", "List"},
                                              {"Optional", "Optional"},
                                              {"Tuple", "Tuple"},
                                              {"Dict", "Dict"},
                                              {"Future", "Future"},
                                              {"Var", "Var"},
                                              {"Object", "Object"},
                                              {"AnyList", "list"},
                                              {"AnyTuple", "tuple"},
                                              {"AnyClassType", "AnyClassType"},
                                              {"AnyEnumType", "AnyEnumType"},
                                              {"Union", "Union"},
                                              {"RRef", "RRef"},
                                              {"Await", "Await"},
                                              {"Function", "Function"},
                                              {"Interface", "Interface"},
                                              {"Enum", "Enum"}}};
static_assert(kNames.size() == static_cast<std::size_t>(TypeKind::Enum) + 1);

// An object of the kind's class. Object, Function, Interface and Enum without more than a name are plain.
TypePtr make(TypeKind kind, std::vector<TypePtr> contained = {}, std::string name = {}) {
  switch (kind) {
#define CRESSET_MAKE(Class, kind_name) \
  case TypeKind::kind_name: return std::make_shared<Class>();
    CRESSET_SIMPLE_TYPES(CRESSET_MAKE)
#undef CRESSET_MAKE
    case TypeKind::Tensor: return std::make_shared<TensorType>();
    case TypeKind::Var: return std::make_shared<VarType>(std::move(name));
    default: break;
  }
  if (!contained.empty()) {
    switch (kind) {
      case TypeKind::List: return std::make_shared<ListType>(std::move(contained[0]));
      case TypeKind::Optional: return std::make_shared<OptionalType>(std::move(contained[0]));
      case TypeKind::Dict: return std::make_shared<DictType>(std::move(contained[0]), std::move(contained[1]));
      case TypeKind::Future: return std::make_shared<FutureType>(std::move(contained[0]));
      case TypeKind::RRef: return std::make_shared<RRefType>(std::move(contained[0]));
      case TypeKind::Await: return std::make_shared<AwaitType>(std::move(contained[0]));
      case TypeKind::Union: return std::make_shared<UnionType>(std::move(contained));
      default: break;
    }
  }
  if (kind == TypeKind::Tuple) return std::make_shared<TupleType>(std::move(contained), std::move(name));
  return std::make_shared<Type>(kind, std::move(contained), std::move(name));
}

// Kinds that are integers to scripts.
bool is_integer_kind(TypeKind k) {
  return k == TypeKind::Int || k == TypeKind::SymInt || k == TypeKind::ScalarType || k == TypeKind::Layout || k == TypeKind::MemoryFormat;
}
bool is_size_kind(TypeKind k) { return k == TypeKind::Int || k == TypeKind::SymInt; }

std::string joined(const std::vector<TypePtr>& types, std::string (Type::*text)() const) {
  std::string out;
  for (std::size_t i = 0; i < types.size(); ++i) out += (i ? ", " : "") + ((*types[i]).*text)();
  return out;
}

// As PyTorch spells types, futures and their kin have square brackets, and round ones inside of dicts and unions.
std::string text_inside(const Type& t) {
  switch (t.kind) {
    case TypeKind::List: return text_inside(*t.contained[0]) + "[]";
    case TypeKind::Optional: return text_inside(*t.contained[0]) + "?";
    case TypeKind::Future:
    case TypeKind::RRef:
    case TypeKind::Await: return std::string(kNames[static_cast<std::size_t>(t.kind())].schema) + "(" + text_inside(*t.contained[0]) + ")";
    default: return t.str();
  }
}

std::string joined_inside(const std::vector<TypePtr>& types) {
  std::string out;
  for (std::size_t i = 0; i < types.size(); ++i) out += (i ? ", " : "") + text_inside(*types[i]);
  return out;
}

std::string tuple_str(const Type& t) {
  if (!t.name.empty()) return t.name;
  const auto* named = dynamic_cast<const NamedTupleType*>(&t);
  if (!named) return "(" + joined(t.contained, &Type::str) + ")";
  std::string out = "NamedTuple(";  // of an operator with several results
  for (std::size_t i = 0; i < named->fields.size(); ++i) out += (i ? ", " : "") + named->fields[i] + " : " + named->contained[i]->str();
  return out + ")";
}

bool explain(std::string* why_not, const Type& a, const Type& b) {
  if (why_not && why_not->empty()) *why_not = "'" + a.str() + "' is not a subtype of '" + b.str() + "'.";
  return false;
}

}  // namespace

Type::~Type() = default;

std::string Type::str() const {
  switch (kind) {
    case TypeKind::List: return contained[0]->str() + "[]";
    case TypeKind::Optional: return contained[0]->str() + "?";
    case TypeKind::Future:
    case TypeKind::RRef:
    case TypeKind::Await: return std::string(kNames[static_cast<std::size_t>(kind())].schema) + "[" + contained[0]->str() + "]";
    case TypeKind::Dict:
    case TypeKind::Union: return std::string(kNames[static_cast<std::size_t>(kind())].schema) + "(" + joined_inside(contained) + ")";
    case TypeKind::Tuple: return tuple_str(*this);
    case TypeKind::Function: return "Function<" + name + ">";
    case TypeKind::Enum: return "Enum<" + name + ">";
    case TypeKind::Var:
    case TypeKind::Object:
    case TypeKind::Interface:
    case TypeKind::Tensor: return own_str();
    default: return kNames[static_cast<std::size_t>(kind())].schema;
  }
}

std::string Type::annotation_str() const {
  switch (kind) {
    case TypeKind::List:
    case TypeKind::Optional:
    case TypeKind::Dict:
    case TypeKind::Future:
    case TypeKind::RRef:
    case TypeKind::Await:
    case TypeKind::Union:
      return std::string(kNames[static_cast<std::size_t>(kind())].annotation) + "[" + joined(contained, &Type::annotation_str) + "]";
    case TypeKind::Tuple:
      if (!name.empty()) return own_annotation_str();
      return "Tuple[" + (contained.empty() ? "()" : joined(contained, &Type::annotation_str)) + "]";
    case TypeKind::Function: return "Function<" + name + ">";
    case TypeKind::Var:
    case TypeKind::Object:
    case TypeKind::Interface:
    case TypeKind::Enum:
    case TypeKind::Tensor: return own_annotation_str();
    default: return kNames[static_cast<std::size_t>(kind())].annotation;
  }
}

std::ostream& operator<<(std::ostream& out, const Type& t) { return out << t.str(); }

bool Type::isSubtypeOfExt(const Type& other, std::ostream* why_not) const {
  std::string reason;
  const bool below = is_subtype_of(other, &reason);
  if (!below && why_not) *why_not << reason;
  return below;
}

bool Type::requires_grad() const {
  if (const auto* tensor = castRaw<TensorType>()) return tensor->requires_grad();
  return std::any_of(contained.begin(), contained.end(), [](const TypePtr& t) { return t->requires_grad(); });
}

TypePtr Type::withContained(std::vector<TypePtr> types) const {
  if (kind == TypeKind::Tuple || kind == TypeKind::Union || types.size() == contained.size()) {
    if (const auto* named = castRaw<NamedTupleType>()) return named_tuple_of(name, named->fields, std::move(types));
    if (kind == TypeKind::Union) return union_of(std::move(types));
    if (kind == TypeKind::Optional) return optional_of(std::move(types[0]));
    if (!contained.empty() || kind == TypeKind::Tuple) return make(kind, std::move(types), name);
  }
  throw Error("createWithContained: a type that contains " + std::to_string(types.size()) + " others was required; '" + str() +
              "' was given.");
}

bool Type::has_free_variables() const {
  return kind == TypeKind::Var || std::any_of(contained.begin(), contained.end(), [](const TypePtr& t) { return t->has_free_variables(); });
}

bool Type::same_details(const Type& other) const {
  return name == other.name && contained.size() == other.contained.size() &&
         std::equal(contained.begin(), contained.end(), other.contained.begin(),
                    [](const TypePtr& x, const TypePtr& y) { return x == y || *x == *y; });
}

bool Type::equals(const Type& b) const {
  const Type& a = *this;
  const auto number_and_union = [](const Type& x, const Type& y) { return x.kind == TypeKind::Number && y.kind == TypeKind::Union; };
  if (number_and_union(a, b) || number_and_union(b, a)) return a.is_subtype_of(b) && b.is_subtype_of(a);
  if (a.kind != b.kind) return is_size_kind(a.kind) && is_size_kind(b.kind);
  if (a.kind == TypeKind::Union) {  // the order of members does not matter
    const auto among = [](const TypePtr& t, const std::vector<TypePtr>& all) {
      return std::any_of(all.begin(), all.end(), [&](const TypePtr& o) { return *t == *o; });
    };
    return a.contained.size() == b.contained.size() &&
           std::all_of(a.contained.begin(), a.contained.end(), [&](const TypePtr& t) { return among(t, b.contained); });
  }
  return a.same_details(b);
}

bool Type::details_below(const Type& other, std::string*) const { return same_details(other); }

bool Type::is_subtype_of(const Type& other, std::string* why_not) const {
  if (this == &other || other.kind == TypeKind::Any) return true;
  if (kind == TypeKind::Union)
    return std::all_of(contained.begin(), contained.end(), [&](const TypePtr& t) { return t->is_subtype_of(other, why_not); });
  if (other.kind == TypeKind::Optional) {
    if (kind == TypeKind::None) return true;
    return (kind == TypeKind::Optional ? *contained[0] : *this).is_subtype_of(*other.contained[0], why_not);
  }
  if (other.kind == TypeKind::Union) {
    if (kind == TypeKind::Optional)
      return contained[0]->is_subtype_of(other, why_not) && basic_type(TypeKind::None)->is_subtype_of(other, why_not);
    for (const TypePtr& t : other.contained)
      if (is_subtype_of(*t)) return true;
    if (kind == TypeKind::Number) {  // is one of these three
      constexpr TypeKind numbers[] = {TypeKind::Int, TypeKind::Float, TypeKind::Complex};
      return std::all_of(std::begin(numbers), std::end(numbers), [&](TypeKind k) { return basic_type(k)->is_subtype_of(other, why_not); });
    }
    return explain(why_not, *this, other);
  }
  if (is_integer_kind(kind) && is_integer_kind(other.kind)) return true;
  if (other.kind == TypeKind::Number &&
      (is_integer_kind(kind) || kind == TypeKind::Bool || kind == TypeKind::Float || kind == TypeKind::Complex))
    return true;
  if (other.kind == TypeKind::AnyList && kind == TypeKind::List) return true;
  if (other.kind == TypeKind::AnyTuple && kind == TypeKind::Tuple) return true;
  if (other.kind == TypeKind::AnyClass && kind == TypeKind::Object) return true;
  if (other.kind == TypeKind::AnyEnum && kind == TypeKind::Enum) return true;
  if (other.kind == TypeKind::Tuple && kind == TypeKind::Tuple && other.name.empty()) {
    if (contained.size() != other.contained.size()) return explain(why_not, *this, other);
    for (std::size_t i = 0; i < contained.size(); ++i)
      if (!contained[i]->is_subtype_of(*other.contained[i], why_not)) return false;
    return true;
  }
  if ((other.kind == TypeKind::Future || other.kind == TypeKind::Await) && kind == other.kind)
    return contained[0]->is_subtype_of(*other.contained[0], why_not);
  // Classes know which interfaces they implement.
  if (kind == other.kind || other.kind == TypeKind::Interface) return details_below(other, why_not) || explain(why_not, *this, other);
  return explain(why_not, *this, other);
}

std::optional<std::size_t> NamedTupleType::field_index(std::string_view field) const {
  const auto at = std::find(fields.begin(), fields.end(), field);
  return at == fields.end() ? std::nullopt : std::optional(static_cast<std::size_t>(at - fields.begin()));
}
bool NamedTupleType::same_details(const Type& other) const {
  const auto* o = dynamic_cast<const NamedTupleType*>(&other);
  return o && fields == o->fields && Type::same_details(other);
}
bool NamedTupleType::details_below(const Type& other, std::string*) const {
  const auto* o = dynamic_cast<const NamedTupleType*>(&other);
  if (!o || fields != o->fields || name != o->name) return false;
  for (std::size_t i = 0; i < contained.size(); ++i)
    if (!contained[i]->is_subtype_of(*o->contained[i])) return false;
  return true;
}

std::optional<std::vector<std::string_view>> TupleType::names() const {
  const auto* named = castRaw<NamedTupleType>();
  return named ? std::optional(std::vector<std::string_view>(named->fields.begin(), named->fields.end())) : std::nullopt;
}
TupleTypePtr TupleType::createNamed(const std::optional<QualifiedName>& name, const std::vector<std::string>& fields,
                                    const std::vector<TypePtr>& members) {
  return named_tuple_of(name ? name->qualifiedName() : std::string(), fields, members)->expect<TupleType>();
}
ListTypePtr ListType::of(TypeKind element) {
  static const auto* all = [] {
    auto* a = new std::array<ListTypePtr, kNames.size()>;
    for (std::size_t i = 0; i < a->size(); ++i) (*a)[i] = create(basic_type(static_cast<TypeKind>(i)));
    return a;
  }();
  return (*all)[static_cast<std::size_t>(element)];
}
ListTypePtr ListType::ofOptionalTensors() {
  static const auto* type = new ListTypePtr(create(OptionalType::ofTensor()));
  return *type;
}
OptionalTypePtr OptionalType::create(TypePtr element) {
  if (const auto same = element->cast<OptionalType>()) return same;
  return std::make_shared<OptionalType>(std::move(element));
}
OptionalTypePtr OptionalType::ofTensor() {
  static const auto* type = new OptionalTypePtr(create(basic_type(TypeKind::Tensor)));
  return *type;
}
UnionTypePtr UnionType::create(std::vector<TypePtr> members) {
  const TypePtr type = union_of(std::move(members));
  const auto made = type->cast<UnionType>();
  CRESSET_CHECK(made, "UnionType: at least two different types were required; only '", type->str(), "' was given.");
  return made;
}

const char* typeKindToString(TypeKind kind) {
  // Objects are classes, devices and streams objects; all others have their word.
  static constexpr std::array<const char*, kNames.size()> kWords = {
      "AnyType",       "TensorType",  "NumberType",    "IntType",       "SymIntType",     "FloatType",     "ComplexType",
      "BoolType",      "StringType",  "NoneType",      "DeviceObjType", "ScalarTypeType", "LayoutType",    "MemoryFormatType",
      "GeneratorType", "StorageType", "StreamObjType", "CapsuleType",   "ListType",       "OptionalType",  "TupleType",
      "DictType",      "FutureType",  "VarType",       "ClassType",     "AnyListType",    "AnyTupleType",  "AnyClassType",
      "AnyEnumType",   "UnionType",   "RRefType",      "AwaitType",     "FunctionType",   "InterfaceType", "EnumType"};
  return kWords[static_cast<std::size_t>(kind)];
}

TypePtr basic_type(TypeKind kind) {
  static const auto* all = [] {
    auto* a = new std::array<TypePtr, kNames.size()>;
    for (std::size_t i = 0; i < a->size(); ++i) (*a)[i] = make(static_cast<TypeKind>(i));
    return a;
  }();
  return (*all)[static_cast<std::size_t>(kind)];
}
TypePtr list_of(TypePtr element) { return make(TypeKind::List, {std::move(element)}); }
TypePtr optional_of(TypePtr element) {
  const bool holds_none = element->kind == TypeKind::Optional || element->kind == TypeKind::None || element->kind == TypeKind::Any;
  if (element->kind == TypeKind::Union) return union_of({std::move(element), basic_type(TypeKind::None)});
  return holds_none ? element : make(TypeKind::Optional, {std::move(element)});
}
TypePtr tuple_of(std::vector<TypePtr> members) { return make(TypeKind::Tuple, std::move(members)); }
TypePtr named_tuple_of(std::string name, std::vector<std::string> fields, std::vector<TypePtr> members) {
  CRESSET_CHECK(fields.size() == members.size(), "named tuple '", name, "': one type for each field is required; ", fields.size(),
                " fields and ", members.size(), " types were given.");
  return std::make_shared<NamedTupleType>(std::move(name), std::move(fields), std::move(members));
}
TypePtr dict_of(TypePtr key, TypePtr value) { return make(TypeKind::Dict, {std::move(key), std::move(value)}); }
TypePtr future_of(TypePtr value) { return make(TypeKind::Future, {std::move(value)}); }
TypePtr await_of(TypePtr value) { return make(TypeKind::Await, {std::move(value)}); }
TypePtr rref_of(TypePtr value) { return make(TypeKind::RRef, {std::move(value)}); }
TypePtr var_type(std::string name) { return make(TypeKind::Var, {}, std::move(name)); }
TypePtr object_type(std::string name) { return make(TypeKind::Object, {}, std::move(name)); }
TypePtr function_type(std::string name) { return make(TypeKind::Function, {}, std::move(name)); }

namespace {
std::size_t union_rank(TypeKind kind) {
  constexpr TypeKind kOrder[] = {TypeKind::Any,    TypeKind::Enum,      TypeKind::AnyEnum, TypeKind::Tensor,   TypeKind::Tuple,
                                 TypeKind::List,   TypeKind::Dict,      TypeKind::Number,  TypeKind::Float,    TypeKind::Complex,
                                 TypeKind::Future, TypeKind::Await,     TypeKind::RRef,    TypeKind::Int,      TypeKind::None,
                                 TypeKind::String, TypeKind::Generator, TypeKind::Bool,    TypeKind::Optional, TypeKind::Var,
                                 TypeKind::Device, TypeKind::Function,  TypeKind::Object,  TypeKind::Interface};
  return static_cast<std::size_t>(std::find(std::begin(kOrder), std::end(kOrder), kind) - std::begin(kOrder));
}
}  // namespace

TypePtr union_of(std::vector<TypePtr> members) {
  std::vector<TypePtr> flat, kept;
  for (TypePtr& m : members) {
    if (m->kind == TypeKind::Union) {
      flat.insert(flat.end(), m->contained.begin(), m->contained.end());
    } else if (m->kind == TypeKind::Optional) {
      flat.push_back(m->contained[0]);
      flat.push_back(basic_type(TypeKind::None));
    } else {
      flat.push_back(std::move(m));
    }
  }
  CRESSET_CHECK(!flat.empty(), "Union: at least one member is required; none were given.");
  for (std::size_t i = 0; i < flat.size(); ++i) {
    bool below = false;
    for (std::size_t j = 0; j < flat.size() && !below; ++j)
      below = j != i && flat[i]->is_subtype_of(*flat[j]) && (j < i || !flat[j]->is_subtype_of(*flat[i]));
    if (!below) kept.push_back(flat[i]);
  }
  if (kept.size() == 1) return kept[0];
  if (kept.size() == 2 && (kept[0]->kind == TypeKind::None || kept[1]->kind == TypeKind::None))
    return optional_of(kept[kept[0]->kind == TypeKind::None ? 1 : 0]);
  // In one order, however they were written: by kind, in PyTorch's order of kinds, then by name.
  std::stable_sort(kept.begin(), kept.end(), [](const TypePtr& a, const TypePtr& b) {
    return std::pair(union_rank(a->kind), a->str()) < std::pair(union_rank(b->kind), b->str());
  });
  return make(TypeKind::Union, std::move(kept));
}

TypePtr unify_types(const TypePtr& a, const TypePtr& b, bool default_to_union) {
  if (a == b || *a == *b) return a;
  if (a->kind == TypeKind::Tensor && b->kind == TypeKind::Tensor) {
    const auto merged = a->expect<TensorType>()->merge(*b->expect<TensorType>());
    return merged->is_refined() ? merged : TensorType::get();
  }
  if (a->is_subtype_of(*b)) return b;
  if (b->is_subtype_of(*a)) return a;
  if (a->kind == TypeKind::None) return optional_of(b);
  if (b->kind == TypeKind::None) return optional_of(a);
  if (a->kind == TypeKind::Optional || b->kind == TypeKind::Optional) {
    const TypePtr inner =
        unify_types(a->kind == TypeKind::Optional ? a->element() : a, b->kind == TypeKind::Optional ? b->element() : b, default_to_union);
    return inner ? optional_of(inner) : nullptr;
  }
  if (a->kind == TypeKind::Tuple && b->kind == TypeKind::Tuple && a->name.empty() && b->name.empty() &&
      a->contained.size() == b->contained.size()) {
    std::vector<TypePtr> members;
    for (std::size_t i = 0; i < a->contained.size(); ++i) {
      members.push_back(unify_types(a->contained[i], b->contained[i], default_to_union));
      if (!members.back()) return nullptr;
    }
    return tuple_of(std::move(members));
  }
  // Containers are invariant, but refined tensors inside are only knowledge, which may be given up.
  if (a->kind == b->kind && (a->kind == TypeKind::List || a->kind == TypeKind::Dict || a->kind == TypeKind::Future)) {
    std::vector<TypePtr> members;
    for (std::size_t i = 0; i < a->contained.size(); ++i) {
      if (a->contained[i]->kind != TypeKind::Tensor || b->contained[i]->kind != TypeKind::Tensor) {
        if (!(*a->contained[i] == *b->contained[i])) return default_to_union ? union_of({a, b}) : nullptr;
      }
      members.push_back(unify_types(a->contained[i], b->contained[i]));
    }
    return make(a->kind, std::move(members));
  }
  return default_to_union ? union_of({a, b}) : nullptr;
}

}  // namespace cresset
