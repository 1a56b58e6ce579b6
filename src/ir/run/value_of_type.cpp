// Which values belong to a type.
#include <cresset/ir/class_type.h>
#include <cresset/ir/interpreter.h>

namespace cresset::jit {

bool value_is_of_type(const IValue& v, const Type& type) {
  switch (type.kind) {
    case TypeKind::Any:
    case TypeKind::Var: return true;
    case TypeKind::Optional: return v.isNone() || value_is_of_type(v, *type.element());
    case TypeKind::Union:
      for (const TypePtr& t : type.contained)
        if (value_is_of_type(v, *t)) return true;
      return false;
    case TypeKind::Tensor: {
      if (!v.isTensor()) return false;
      const auto& wanted = static_cast<const TensorType&>(type);
      return !wanted.is_refined() || (v.toTensor().defined() && TensorType::create(v.toTensor())->is_subtype_of(wanted));
    }
    case TypeKind::None: return v.isNone();
    case TypeKind::Int:
    case TypeKind::SymInt:
    case TypeKind::ScalarType:
    case TypeKind::Layout:
    case TypeKind::MemoryFormat: return v.isInt();
    case TypeKind::Float: return v.isDouble();
    case TypeKind::Bool: return v.isBool();
    case TypeKind::Complex: return v.isComplexDouble();
    case TypeKind::Number: return v.isScalar();
    case TypeKind::String: return v.isString();
    case TypeKind::Device: return v.isDevice();
    case TypeKind::Generator: return v.isGenerator();
    case TypeKind::Storage: return v.isStorage();
    case TypeKind::AnyList: return v.isList();
    case TypeKind::AnyTuple: return v.isTuple();
    case TypeKind::AnyEnum: return v.isEnum();
    case TypeKind::AnyClass: return v.isObject();
    case TypeKind::List: {
      if (!v.isList()) return false;
      const ivalue::ListImpl& l = v.toListImpl();
      if (l.element_type && (l.element_type->is_subtype_of(*type.element()) || l.elements.empty()))
        return l.element_type->is_subtype_of(*type.element()) || l.elements.empty();
      for (const IValue& e : l.elements)
        if (!value_is_of_type(e, *type.element())) return false;
      return true;
    }
    case TypeKind::Tuple: {
      if (!v.isTuple() || v.toTupleElements().size() != type.contained.size()) return false;
      for (std::size_t i = 0; i < type.contained.size(); ++i)
        if (!value_is_of_type(v.toTupleElements()[i], *type.contained[i])) return false;
      return true;
    }
    case TypeKind::Dict:
      if (!v.isGenericDict()) return false;
      for (const auto& [key, value] : v.toDictImpl().items)
        if (!value_is_of_type(key, *type.contained[0]) || !value_is_of_type(value, *type.contained[1])) return false;
      return true;
    case TypeKind::Future: return v.isFuture();
    case TypeKind::Function: return v.isFunction();
    case TypeKind::Enum: return v.isEnum() && *v.toEnumHolder()->type == type;
    case TypeKind::Interface: return v.isScriptObject() && v.toObjectRef().type->is_subtype_of(type);
    case TypeKind::Object: return v.isCustomClass() || (v.isScriptObject() && *v.toObjectRef().type == type);
    case TypeKind::Capsule: return v.isCapsule();
    default: return false;
  }
}

}  // namespace cresset::jit
