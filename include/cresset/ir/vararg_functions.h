// What nodes with any number of inputs or outputs do, on a stack: for evaluators of graphs.
#pragma once

#include <cresset/ir/ir.h>

namespace cresset::jit {

// Each takes its operands off the stack and leaves its results. `count` is the number of operands, or of results of listUnpack, which
// raises for a list of another length.
CRESSET_API void tupleUnpack(Stack& stack);
CRESSET_API void listUnpack(Stack& stack, std::size_t count);
CRESSET_API void tupleConstruct(Stack& stack, std::size_t count);
/// A tuple with the fields of the type.
CRESSET_API void namedTupleConstruct(Stack& stack, TypePtr type, std::size_t count);
CRESSET_API void listConstruct(Stack& stack, const Type& list_type, std::size_t count);
/// Of keys and values in turn.
CRESSET_API void dictConstruct(Stack& stack, const Type& dict_type, std::size_t count);
/// The members from `begin` up to `end`.
CRESSET_API void tupleSlice(Stack& stack, std::size_t begin, std::size_t end);

}  // namespace cresset::jit
