// Types: construction, printing, comparison.
#include <cresset/dispatch/type.h>

#include <array>

namespace cresset {
namespace {

constexpr std::array<const char*, 25> kNames = {"Any",       "Tensor",  "Scalar",   "int",     "SymInt",     "float",    "complex",
                                                "bool",      "str",     "NoneType", "Device",  "ScalarType", "Layout",   "MemoryFormat",
                                                "Generator", "Storage", "Stream",   "Capsule", "List",       "Optional", "Tuple",
                                                "Dict",      "Future",  "Var",      "Object"};

TypePtr make(TypeKind kind, std::vector<TypePtr> contained = {}, std::string name = {}) {
  return std::make_shared<const Type>(Type{kind, std::move(contained), std::move(name)});
}

bool same_number(TypeKind k) { return k == TypeKind::Int || k == TypeKind::SymInt; }

}  // namespace

std::string Type::str() const {
  switch (kind) {
    case TypeKind::List: return contained[0]->str() + "[]";
    case TypeKind::Optional: return contained[0]->str() + "?";
    case TypeKind::Dict: return "Dict(" + contained[0]->str() + ", " + contained[1]->str() + ")";
    case TypeKind::Future: return "Future(" + contained[0]->str() + ")";
    case TypeKind::Tuple: {
      std::string out = "(";
      for (std::size_t i = 0; i < contained.size(); ++i) out += (i ? ", " : "") + contained[i]->str();
      return out + ")";
    }
    case TypeKind::Var:
    case TypeKind::Object: return name;
    default: return kNames[static_cast<std::size_t>(kind)];
  }
}

bool operator==(const Type& a, const Type& b) {
  if (a.kind != b.kind) return same_number(a.kind) && same_number(b.kind);
  if (a.name != b.name || a.contained.size() != b.contained.size()) return false;
  for (std::size_t i = 0; i < a.contained.size(); ++i)
    if (!(*a.contained[i] == *b.contained[i])) return false;
  return true;
}

bool Type::is_subtype_of(const Type& other) const {
  if (*this == other || other.kind == TypeKind::Any) return true;
  if (other.kind == TypeKind::Optional) {
    if (kind == TypeKind::None) return true;
    return (kind == TypeKind::Optional ? *contained[0] : *this).is_subtype_of(*other.contained[0]);
  }
  if (other.kind == TypeKind::Number)
    return kind == TypeKind::Int || kind == TypeKind::SymInt || kind == TypeKind::Float || kind == TypeKind::Complex ||
           kind == TypeKind::Bool;
  if (other.kind == TypeKind::Tuple && kind == TypeKind::Tuple && contained.size() == other.contained.size()) {
    for (std::size_t i = 0; i < contained.size(); ++i)
      if (!contained[i]->is_subtype_of(*other.contained[i])) return false;
    return true;
  }
  return false;
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
  return element->kind == TypeKind::Optional ? element : make(TypeKind::Optional, {std::move(element)});
}
TypePtr tuple_of(std::vector<TypePtr> members) { return make(TypeKind::Tuple, std::move(members)); }
TypePtr dict_of(TypePtr key, TypePtr value) { return make(TypeKind::Dict, {std::move(key), std::move(value)}); }
TypePtr var_type(std::string name) { return make(TypeKind::Var, {}, std::move(name)); }
TypePtr object_type(std::string name) { return make(TypeKind::Object, {}, std::move(name)); }

}  // namespace cresset
