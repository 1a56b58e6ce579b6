// Annotations as types: names of the language, of typing and torch, and whatever the resolver knows.
#include <cresset/dispatch/tensor_type.h>

#include "ir/frontend/annotation_words.h"
#include "ir/frontend/sugared_value.h"
#include "ir/frontend/tree.h"

namespace cresset::jit {
namespace {

// PyTorch's scripts know dtypes, layouts and memory formats as ints.
constexpr std::pair<std::string_view, TypeKind> kNames[] = {
    {"Tensor", TypeKind::Tensor},
    {"int", TypeKind::Int},
    {"float", TypeKind::Float},
    {"double", TypeKind::Float},
    {"bool", TypeKind::Bool},
    {"complex", TypeKind::Complex},
    {"str", TypeKind::String},
    {"None", TypeKind::None},
    {"NoneType", TypeKind::None},
    {"Any", TypeKind::Any},
    {"number", TypeKind::Number},
    {"Scalar", TypeKind::Number},
    {"Device", TypeKind::Device},
    {"device", TypeKind::Device},
    {"Generator", TypeKind::Generator},
    {"Stream", TypeKind::Stream},
    {"Storage", TypeKind::Storage},
    {"Capsule", TypeKind::Capsule},
    {"AnyList", TypeKind::AnyList},
    {"AnyTuple", TypeKind::AnyTuple},
    {"dtype", TypeKind::Int},
    {"Dtype", TypeKind::Int},
    {"layout", TypeKind::Int},
    {"Layout", TypeKind::Int},
    {"memory_format", TypeKind::Int},
    {"qscheme", TypeKind::Int},
    {"AnyClassType", TypeKind::AnyClass},
    {"AnyEnumType", TypeKind::AnyEnum},
};

enum class Constructor { List, Dict, Tuple, Optional, Union, Future, Await, RRef, Same };
constexpr std::pair<std::string_view, Constructor> kConstructors[] = {
    {"List", Constructor::List},
    {"list", Constructor::List},
    {"BroadcastingList1", Constructor::List},
    {"BroadcastingList2", Constructor::List},
    {"BroadcastingList3", Constructor::List},
    {"Dict", Constructor::Dict},
    {"dict", Constructor::Dict},
    {"Tuple", Constructor::Tuple},
    {"tuple", Constructor::Tuple},
    {"Optional", Constructor::Optional},
    {"Union", Constructor::Union},
    {"Future", Constructor::Future},
    {"Await", Constructor::Await},
    {"_Await", Constructor::Await},
    {"RRef", Constructor::RRef},
    {"Final", Constructor::Same},
    {"Annotated", Constructor::Same},
};

template <class T, std::size_t N>
std::optional<T> find(const std::pair<std::string_view, T> (&table)[N], std::string_view name) {
  for (const auto& [known, value] : table)
    if (known == name) return value;
  return std::nullopt;
}

// "a.b.C" of an expression; empty when it is something else.
std::string dotted(const Expr& e) {
  if (e.kind == ExprKind::Name) return e.text;
  if (e.kind != ExprKind::Attribute) return {};
  std::string base = dotted(*e.parts[0]);
  return base.empty() ? base : base + "." + e.text;
}

// The name without the package that defines the names of the tables.
std::string_view plain(std::string_view name) {
  constexpr std::string_view kPackages[] = {
      "typing.",        "typing_extensions.", "builtins.", "torch.jit.", "cresset.jit.", "torch._jit_internal.",
      "torch.futures.", "cresset.futures.",   "torch.",    "cresset.",   "types."};
  for (const std::string_view package : kPackages)
    if (name.starts_with(package) && name.find('.', package.size()) == std::string_view::npos) return name.substr(package.size());
  return name;
}

class Annotations {
 public:
  /// `place`: where errors point to, when the text has a place of its own elsewhere.
  Annotations(Resolver* resolver, SourceRange place) : resolver_(resolver), place_(std::move(place)) {}

  TypePtr type(const ExprPtr& e) {
    switch (e->kind) {
      case ExprKind::Constant:
        if (e->value.isNone()) return basic_type(TypeKind::None);
        if (e->value.isString()) return text(e->value.toStringRef(), range(*e));
        break;
      case ExprKind::Name:
      case ExprKind::Attribute: return named(e);
      case ExprKind::Subscript: return constructed(*e);
      case ExprKind::Binary:
        if (e->text == "|") return union_of({type(e->parts[0]), type(e->parts[1])});
        break;
      default: break;
    }
    if (e->kind == ExprKind::Binary) fail(*e, "Expression of type " + e->text + " cannot be used in a type expression");
    fail(*e, "a type was expected here: a name such as 'int' or 'Tensor', or one with types in brackets such as 'List[int]'");
  }

  TypePtr text(const std::string& annotation, const SourceRange& range) {
    const std::string filename = range.known() ? range.filename() : "<annotation>";
    const ExprPtr e = parse_expression(std::make_shared<Source>(annotation, filename));
    return Annotations(resolver_, range).type(e);
  }

 private:
  const SourceRange& range(const Expr& e) const { return place_.known() ? place_ : e.range; }
  [[noreturn]] void fail(const Expr& e, const std::string& message) const { script_error(range(e), message); }

  TypePtr named(const ExprPtr& e) {
    const std::string name = dotted(*e);
    if (name.empty()) fail(*e, "a type was expected here");
    const std::string_view short_name = plain(name);
    if (const auto kind = find(kNames, short_name)) return *kind == TypeKind::Tensor ? TensorType::get() : basic_type(*kind);
    if (short_name == "Size" && short_name.size() != name.size()) return list_of(basic_type(TypeKind::Int));
    if (resolver_)
      if (TypePtr t = resolver_->resolveType(name, range(*e))) return t;
    if (find(kConstructors, short_name)) fail(*e, missing_contained_type(std::string(short_name)));
    fail(*e, "Unknown type name '" + name + "'");
  }

  TypePtr constructed(const Expr& e) {
    const std::string name = dotted(*e.parts[0]);
    auto constructor = find(kConstructors, plain(name));
    if (!constructor) constructor = find(kConstructors, std::string_view(name).substr(name.rfind('.') + 1));  // import typing as tp
    if (name.empty()) fail(*e.parts[0], "Subscripted type must be a type identifier");
    if (!constructor) fail(*e.parts[0], "Unknown type constructor " + name);
    std::vector<ExprPtr> written(e.parts.begin() + 1, e.parts.end());
    // Tuple[()] has no members.
    if (written.size() == 1 && written[0]->kind == ExprKind::Tuple) {
      if (*constructor == Constructor::Tuple && !written[0]->parts.empty())
        fail(*written[0], "Tuple literal in Tuple type annotation must not have any elements!");
      written = written[0]->parts;
    }
    if (plain(name) == "Annotated" && !written.empty()) written.resize(1);
    std::vector<TypePtr> members;
    for (const ExprPtr& w : written) members.push_back(type(w));
    const auto single = [&] {
      if (members.size() != 1) fail(e, name + " expects exactly one element type; " + std::to_string(members.size()) + " were given");
      return members[0];
    };
    switch (*constructor) {
      case Constructor::List: return list_of(single());
      case Constructor::Optional: return union_of({single(), basic_type(TypeKind::None)});
      case Constructor::Future: return future_of(single());
      case Constructor::Await: return await_of(single());
      case Constructor::RRef: return rref_of(single());
      case Constructor::Same: return single();
      case Constructor::Tuple: return tuple_of(std::move(members));
      case Constructor::Union:
        if (members.empty()) fail(e, "Union expects at least one type");
        return union_of(std::move(members));
      case Constructor::Dict: break;
    }
    if (members.size() != 2) fail(e, name + " must have exactly two element types; " + std::to_string(members.size()) + " were given");
    check_key(e, *members[0]);
    return dict_of(members[0], members[1]);
  }

  void check_key(const Expr& e, const Type& key) const {
    switch (key.kind) {
      case TypeKind::Any:
      case TypeKind::Int:
      case TypeKind::Bool:
      case TypeKind::Float:
      case TypeKind::Complex:
      case TypeKind::String:
      case TypeKind::Tensor:
      case TypeKind::Device:
      case TypeKind::Enum: return;
      default:
        fail(e,
             "Cannot create dict for key type '" + key.str() + "', only int, float, complex, Tensor, device and string keys are supported");
    }
  }

  Resolver* resolver_;
  SourceRange place_;
};

}  // namespace

TypePtr type_of_annotation(const ExprPtr& annotation, Resolver* resolver) {
  return annotation ? Annotations(resolver, {}).type(annotation) : TensorType::get();
}

std::string missing_contained_type(const std::string& word) {
  if (word == "Dict" || word == "dict")
    return "Attempted to use " + word + " without contained types. Please add contained type, e.g. " + word + "[int, int]";
  return "Attempted to use " + word + " without a contained type. Please add a contained type, e.g. " + word + "[int]";
}

TypePtr parse_annotation(const std::string& text, const ResolverPtr& resolver, const SourceRange& range) {
  return Annotations(resolver.get(), range).text(text, range);
}

}  // namespace cresset::jit
