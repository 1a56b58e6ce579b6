// For alias analysis: kinds of nodes whose treatment does not come from a schema.
#pragma once

#include <cresset/ir/symbol.h>

namespace cresset::jit {

/// What the parts of the language do with memory that have no schema to say it.
enum class MemoryRole : uint8_t {
  constructs,
  fresh,
  from_tuple,
  from_outside,
  sets_attribute,
  hands_on,
  forks,
  waits,
  calls,
  normalizes,
  schema
};
inline MemoryRole memory_role_of(Symbol kind) {
  switch (kind) {
    case prim::Constant:
    case prim::CreateObject:
    case prim::DictConstruct:
    case prim::ListConstruct:
    case prim::TupleConstruct: return MemoryRole::constructs;
    case prim::Uninitialized:
    case prim::isinstance:
    case prim::HasAttr:
    case prim::Print:
    case prim::RaiseException:
    case prim::EmptyListLiteral: return MemoryRole::fresh;
    case prim::TupleUnpack:
    case prim::TupleIndex:
    case prim::TupleSlice: return MemoryRole::from_tuple;
    case prim::ListUnpack:
    case prim::GetAttr: return MemoryRole::from_outside;
    case prim::SetAttr: return MemoryRole::sets_attribute;
    case prim::unchecked_cast:
    case prim::unchecked_unwrap_optional:
    case prim::profile:
    case prim::profile_ivalue:
    case prim::Guard:
    case prim::BailOut:
    case prim::ConstantChunk:
    case prim::TypeCheck:
    case prim::RequiresGradCheck:
    case prim::AutogradAdd:
    case aten::_unwrap_optional: return MemoryRole::hands_on;
    case prim::fork: return MemoryRole::forks;
    case aten::wait: return MemoryRole::waits;
    case prim::CallFunction:
    case prim::CallMethod:
    case prim::Enter:
    case prim::Exit:
    case prim::PythonOp:
    case prim::IgnoredPythonOp:
    case prim::BailoutTemplate: return MemoryRole::calls;
    case aten::batch_norm:
    case aten::instance_norm: return MemoryRole::normalizes;
    default: return MemoryRole::schema;
  }
}

}  // namespace cresset::jit
