// Constants: values that a prim::Constant can hold, and back.
#include <bit>
#include <cstring>

#include <cresset/ir/function.h>
#include <cresset/ir/ir.h>

#include "ir/text/text.h"

namespace cresset::jit {

std::optional<IValue> toIValue(const Value* v) {
  const Node* n = v->node();
  if (n->kind() != prim::Constant) return std::nullopt;
  const Type& type = *v->type();
  if (!n->hasAttribute(attr::value)) {
    if (type.kind == TypeKind::Function) {
      const auto* f = dynamic_cast<const FunctionType*>(&type);
      return f ? std::optional(IValue(intrusive_ptr<ivalue::FunctionBase>(intrusive_ptr<Function>::reclaim_copy(f->function()))))
               : std::nullopt;
    }
    return IValue();
  }
  if (type.kind == TypeKind::None) return IValue();  // whatever a pass has written there
  switch (n->kindOf(attr::value)) {
    case AttributeKind::i: return type.kind == TypeKind::Bool ? IValue(n->i(attr::value) != 0) : IValue(n->i(attr::value));
    case AttributeKind::f: return IValue(n->f(attr::value));
    case AttributeKind::c: return IValue(n->c(attr::value));
    case AttributeKind::s:
      if (type.kind == TypeKind::Device) return IValue(Device(n->s(attr::value)));
      return IValue(n->s(attr::value));
    case AttributeKind::t: return IValue(n->t(attr::value));
    case AttributeKind::is: return IValue(n->is(attr::value));
    case AttributeKind::fs: return IValue(n->fs(attr::value));
    case AttributeKind::cs: return IValue(n->cs(attr::value));
    case AttributeKind::ss: return IValue(n->ss(attr::value));
    case AttributeKind::ts: return IValue(n->ts(attr::value));
    case AttributeKind::ival: return n->ival(attr::value);
    default: return std::nullopt;
  }
}

bool isConstantValue(const IValue& v) {
  switch (v.tag()) {
    case IValue::Tag::Generator:
    case IValue::Tag::Storage:
    case IValue::Tag::Capsule:
    case IValue::Tag::UInt:
    case IValue::Tag::Future: return false;
    case IValue::Tag::Tensor: return v.toTensor().defined() && !v.toTensor().requires_grad();
    case IValue::Tag::List:
    case IValue::Tag::Tuple:
      for (const IValue& e : v.toListRef())
        if (!isConstantValue(e)) return false;
      return true;
    case IValue::Tag::Dict:
      for (const auto& [key, value] : v.toDictImpl().items)
        if (!isConstantValue(key) || !isConstantValue(value)) return false;
      return true;
    default: return true;
  }
}

std::optional<Value*> tryInsertConstant(Graph& g, const IValue& v, TypePtr type) {
  if (!isConstantValue(v)) return std::nullopt;
  Node* n = g.create(prim::Constant);
  Value* out = n->output();
  switch (v.tag()) {
    case IValue::Tag::None: out->setType(type && type->kind == TypeKind::Optional ? type : basic_type(TypeKind::None)); break;
    case IValue::Tag::Int:
      if (type && (type->kind == TypeKind::Float || type->kind == TypeKind::Complex)) {
        n->destroy();
        return tryInsertConstant(g, type->kind == TypeKind::Float ? IValue(v.toDouble()) : IValue(v.toComplexDouble()), type);
      }
      n->i_(attr::value, v.toInt());
      out->setType(basic_type(TypeKind::Int));
      break;
    case IValue::Tag::Bool:
      n->i_(attr::value, v.toBool());
      out->setType(basic_type(TypeKind::Bool));
      break;
    case IValue::Tag::Double:
      n->f_(attr::value, v.toDouble());
      out->setType(basic_type(TypeKind::Float));
      break;
    case IValue::Tag::Complex:
      n->c_(attr::value, v.toComplexDouble());
      out->setType(basic_type(TypeKind::Complex));
      break;
    case IValue::Tag::String:
      n->s_(attr::value, v.toStringRef());
      out->setType(basic_type(TypeKind::String));
      break;
    case IValue::Tag::Device:
      n->s_(attr::value, v.toDevice().str());
      out->setType(basic_type(TypeKind::Device));
      break;
    case IValue::Tag::Tensor:
      n->t_(attr::value, v.toTensor());
      out->inferTypeFrom(v.toTensor());
      break;
    case IValue::Tag::Function: {
      auto f = intrusive_ptr<Function>::reclaim_copy(static_cast<Function*>(v.toFunction().get()));
      n->s_(attr::name, f->name());
      out->setType(std::make_shared<FunctionType>(std::move(f)));
      break;
    }
    default: n->ival_(attr::value, v); out->setType(type ? std::move(type) : v.type());
  }
  return g.insertNode(n)->output();
}

std::optional<Value*> tryInsertConstant(Graph& g, const IValue& v, std::optional<SourceRange> range, std::optional<ScopePtr> scope) {
  const auto constant = tryInsertConstant(g, v);
  if (constant && range && range->known()) (*constant)->node()->setSourceRange(std::move(*range));
  if (constant && scope && *scope) (*constant)->node()->setScope(std::move(*scope));
  return constant;
}

Value* insertConstant(Graph& g, const IValue& v, std::optional<SourceRange> range, std::optional<ScopePtr> scope) {
  const auto constant = tryInsertConstant(g, v, std::move(range), std::move(scope));
  CRESSET_CHECK(constant, "insertConstant: a value that can be a constant was required; a ", v.tagKind(), " was given",
                v.isTensor() ? " that requires grad or is undefined. Detach it." : ".");
  return *constant;
}

bool sameConstant(const IValue& a, const IValue& b) {
  if (a.tag() != b.tag()) return false;
  switch (a.tag()) {
    case IValue::Tag::Double: return std::bit_cast<uint64_t>(a.toDouble()) == std::bit_cast<uint64_t>(b.toDouble());
    case IValue::Tag::Complex: {
      const auto x = a.toComplexDouble(), y = b.toComplexDouble();
      return std::memcmp(&x, &y, sizeof x) == 0;
    }
    case IValue::Tag::Tensor: {
      const Tensor &x = a.toTensor(), &y = b.toTensor();
      if (x.is_same(y)) return true;
      if (!x.defined() || !y.defined() || x.scalar_type() != y.scalar_type() || x.device() != y.device() || x.layout() != y.layout() ||
          x.sizes() != y.sizes() || x.requires_grad() != y.requires_grad() || !x.has_storage() || !y.has_storage())
        return false;
      if (x.strides() != y.strides()) return false;
      return x.is_meta() || tensor_bytes(x) == tensor_bytes(y);  // a meta tensor has no contents
    }
    case IValue::Tag::List:
    case IValue::Tag::Tuple: {
      const auto &x = a.toListRef(), &y = b.toListRef();
      return x.size() == y.size() && *a.type() == *b.type() && std::equal(x.begin(), x.end(), y.begin(), sameConstant);
    }
    case IValue::Tag::Dict: {
      const auto &x = a.toDictImpl().items, &y = b.toDictImpl().items;
      return x.size() == y.size() && *a.type() == *b.type() && std::equal(x.begin(), x.end(), y.begin(), [](const auto& p, const auto& q) {
               return sameConstant(p.first, q.first) && sameConstant(p.second, q.second);
             });
    }
    case IValue::Tag::ScriptObject:
    case IValue::Tag::Object:
    case IValue::Tag::Function: return a.is(b);
    default: return a == b;
  }
}

}  // namespace cresset::jit
