#include "ir/text/constant_reader.h"

#include <cresset/ir/class_type.h>
#include <cresset/ir/function.h>

#include "ir/text/text.h"
#include "ir/text/type_reader.h"

namespace cresset::jit {
namespace {

// Uninitialised, with the sizes, strides and device of a type.
Tensor empty_strided_of(const TensorType& t) {
  Tensor base = cresset::detail::empty_cpu({1}, *t.dtype);
  return base.to(*t.device)
      .expand(std::vector<int64_t>(t.sizes->size(), 1))
      .expand(*t.concrete_sizes())
      .as_strided(*t.concrete_sizes(), std::vector<int64_t>(t.sizes->size(), 0));
}

}  // namespace

IValue ConstantReader::dict_of(const Literal& l, const Type& type, Node* holder) {
  auto dict = make_intrusive<ivalue::DictImpl>();
  const bool typed = type.kind == TypeKind::Dict;
  if (typed) {
    dict->key_type = type.contained[0];
    dict->value_type = type.contained[1];
  }
  const Type& any = *basic_type(TypeKind::Any);
  for (std::size_t i = 0; i + 1 < l.items.size(); i += 2)
    dict->items.insert_or_assign(value_of(l.items[i], typed ? *type.contained[0] : any, holder),
                                 value_of(l.items[i + 1], typed ? *type.contained[1] : any, holder));
  return IValue(std::move(dict));
}

IValue ConstantReader::enumerator_of(const Literal& l, const Type& type) {
  const auto* e = dynamic_cast<const EnumType*>(&type);
  const std::size_t dot = l.s.rfind('.');
  const auto found = e && dot != std::string::npos && l.s.substr(0, dot) == e->name ? e->find(l.s.substr(dot + 1)) : nullptr;
  if (!found) c_.fail_at(l.at, "unknown constant '" + l.s + "'");
  return IValue(found);
}

// A string of its own, which is found again by its address.
IValue ConstantReader::placeholder_of(const Literal& l, Node* holder) {
  if (l.s.empty()) c_.fail_at(l.at, "the contents of this constant are not in the text");
  IValue placeholder{std::string(l.s)};
  placeholders_.emplace(placeholder.toStringRef().data(), l);
  if (holder) holders_.push_back(holder);
  return placeholder;
}

IValue ConstantReader::value_of(const Literal& l, const Type& wanted, Node* holder) {
  const Type& type = wanted.kind == TypeKind::Optional ? *wanted.element() : wanted;
  const auto element = [&](std::size_t i) -> const Type& {
    if (type.kind == TypeKind::List) return *type.element();
    if (type.kind == TypeKind::Tuple && i < type.contained.size()) return *type.contained[i];
    return *basic_type(TypeKind::Any);
  };
  switch (l.kind) {
    case Literal::Kind::None: return IValue();
    case Literal::Kind::Bool: return IValue(l.i != 0);
    case Literal::Kind::Int:
      if (type.kind == TypeKind::Float) return IValue(static_cast<double>(l.i));
      if (type.kind == TypeKind::Complex) return IValue(std::complex<double>(static_cast<double>(l.i)));
      if (type.kind == TypeKind::Bool) return IValue(l.i != 0);
      return IValue(l.i);
    case Literal::Kind::Float: return type.kind == TypeKind::Complex ? IValue(std::complex<double>(l.f)) : IValue(l.f);
    case Literal::Kind::Complex: return IValue(l.c);
    case Literal::Kind::String:
      if (type.kind == TypeKind::Device) {
        try {
          return IValue(Device(l.s));
        } catch (const Error& e) {
          c_.fail_at(l.at, e.msg());
        }
      }
      return IValue(l.s);
    case Literal::Kind::List: {
      std::vector<IValue> v;
      for (std::size_t i = 0; i < l.items.size(); ++i) v.push_back(value_of(l.items[i], element(i), holder));
      const TypePtr element_type = type.kind == TypeKind::List ? type.element() : nullptr;
      return IValue(make_intrusive<ivalue::ListImpl>(std::move(v), element_type));
    }
    case Literal::Kind::Tuple: {
      if (type.kind == TypeKind::Tuple && type.contained.size() != l.items.size())
        c_.fail_at(l.at,
                   "a tuple of type " + type.str() + " was expected; one of " + std::to_string(l.items.size()) + " elements stands here");
      std::vector<IValue> v;
      for (std::size_t i = 0; i < l.items.size(); ++i) v.push_back(value_of(l.items[i], element(i), holder));
      const bool named = type.kind == TypeKind::Tuple && !type.name.empty();
      return IValue(make_intrusive<ivalue::TupleImpl>(std::move(v), named ? type.shared_from_this() : nullptr));
    }
    case Literal::Kind::Dict: return dict_of(l, type, holder);
    case Literal::Kind::Name: return enumerator_of(l, type);
    case Literal::Kind::Function: {
      const auto f = options_.functions ? options_.functions(l.s) : nullptr;
      if (!f) c_.fail_at(l.at, "unknown function '" + l.s + "'");
      return IValue(f);
    }
    case Literal::Kind::Undefined: return IValue(Tensor());
    case Literal::Kind::Display: {
      const auto t = tensor_from_display(l.s, type.kind == TypeKind::Tensor ? type : *TensorType::get());
      if (!t) c_.fail_at(l.at, "{" + l.s + "} is no tensor");
      return IValue(*t);
    }
    case Literal::Kind::Tensor:
    case Literal::Kind::Object: return placeholder_of(l, holder);
    default: c_.fail_at(l.at, "this cannot be part of a constant");
  }
}

void ConstantReader::read_section() {
  for (;;) {
    c_.skip();
    const std::size_t start = c_.at;
    const std::string_view name = c_.word();
    if (name.size() < 2 || name[0] != 'c' || name.find_first_not_of("0123456789", 1) != std::string_view::npos) {
      c_.at = start;
      return;
    }
    c_.expect(":");
    c_.skip();
    const TypePtr t = read_type(c_.text, c_.at, options_.resolver);
    c_.expect("=");
    c_.skip();
    const std::size_t form_at = c_.at;
    const std::string_view form = c_.word();
    IValue entry;
    if (form == "base64" || form == "empty") {
      const auto* tensor = dynamic_cast<const TensorType*>(t.get());
      if (!tensor || !tensor->dtype || !tensor->concrete_sizes()) c_.fail_at(form_at, "a complete tensor type is required here");
      std::string bytes;
      if (form == "base64") {
        c_.skip();
        if (c_.peek() != '"') c_.fail("expected a string here");
        const std::size_t text_at = ++c_.at, end = c_.text.find('"', text_at);
        if (end == std::string_view::npos) c_.fail("a string without an end");
        auto decoded = from_base64(c_.text.substr(text_at, end - text_at));
        if (!decoded) c_.fail("this is no base64 text");
        bytes = std::move(*decoded);
        c_.at = end + 1;
      }
      std::optional<Tensor> v;
      if (form == "empty" && tensor->device && tensor->concrete_strides())
        v = empty_strided_of(*tensor);
      else
        v = tensor_from_bytes(*tensor, bytes);
      if (!v) c_.fail_at(form_at, "the contents do not fit the type " + t->str());
      entry = IValue(*v);
    } else if (form == "object") {
      Literal slots = read_literal(c_, options_.resolver, true);
      auto object = new_object(t, 0);
      const auto* cls = dynamic_cast<const ClassType*>(t.get());
      for (std::size_t i = 0; i < slots.items.size(); ++i)
        object->slots.push_back(
            value_of(slots.items[i], cls && i < cls->numAttributes() ? *cls->getAttribute(i) : *basic_type(TypeKind::Any)));
      entry = IValue(object);
      objects_.push_back(object);
    } else {
      c_.fail_at(form_at, "expected base64, empty or object here");
    }
    if (!constants_.emplace(std::string(name), std::move(entry)).second)
      c_.fail_at(start, "constant '" + std::string(name) + "' was given twice");
  }
}

const IValue& ConstantReader::constant(const std::string& name, std::size_t at) const {
  const auto found = constants_.find(name);
  if (found == constants_.end()) c_.fail_at(at, "constant '" + name + "' is not in the text");
  return found->second;
}

// Replaces placeholders inside of a value.
void ConstantReader::fill(IValue& v) const {
  if (v.isString()) {
    const auto found = placeholders_.find(v.toStringRef().data());
    if (found != placeholders_.end()) v = constant(found->second.s, found->second.at);
  } else if (v.isList()) {
    for (IValue& e : v.toListImpl().elements) fill(e);
  } else if (v.isTuple()) {
    for (IValue& e : v.toTuple()->elements) fill(e);
  } else if (v.isGenericDict()) {
    for (auto& [key, value] : v.toDictImpl().items) {
      fill(key);
      fill(value);
    }
    v.toDictImpl().items.reindex();
  }
}

void ConstantReader::fill_placeholders() {
  for (const auto& object : objects_)
    for (IValue& v : object->slots) fill(v);
  for (Node* n : holders_)
    for (const Symbol name : n->attributeNames())
      if (n->kindOf(name) == AttributeKind::ival) {
        IValue v = n->ival(name);
        fill(v);
        n->ival_(name, std::move(v));
      }
}

}  // namespace cresset::jit
