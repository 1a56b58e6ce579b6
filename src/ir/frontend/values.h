// What the files of sugared values share.
#pragma once

#include "ir/frontend/call_matching.h"
#include "ir/frontend/sugared_value.h"

namespace cresset::jit {

/// The arguments of a call as values of the graph; starred tuples were spread before.
std::vector<CallValue> call_values(GraphFunction& m, const std::vector<CallArgument>& args, const std::vector<CallArgument>& kwargs = {});
/// `method` of an object of a class or interface, called.
SugaredValuePtr call_method_of(const SourceRange& range, GraphFunction& m, Value* self, const std::string& method,
                               const std::vector<CallArgument>& args, const std::vector<CallArgument>& kwargs = {});
/// Has the object's class (or interface) this method?
bool has_method(const Type& type, const std::string& name);
/// A node in front of the insertion point with one output of this type.
Value* insert_node(const SourceRange& range, Graph& g, Symbol kind, const std::vector<Value*>& inputs, TypePtr type);
/// An operator on values, as a thing of the compiler.
inline SugaredValuePtr operator_result(const SourceRange& range, GraphFunction& m, Symbol kind, const std::vector<Value*>& inputs) {
  std::vector<CallValue> args;
  for (Value* v : inputs) args.push_back({v, ""});
  return simple_value(emit_operator(range, *m.graph(), {kind}, std::move(args)));
}
inline Value* int_constant(const SourceRange& range, GraphFunction& m, int64_t v) { return m.graph()->insertConstant(IValue(v), range); }

/// x.tolist() as a value of this type, which nothing else tells; null when the callee is another method.
Value* emit_tolist(const SourceRange& range, GraphFunction& m, const SugaredValue& callee, const TypePtr& type);

/// Iterables (iterables.cpp).
SugaredValuePtr range_value(const SourceRange& range, GraphFunction& m, const std::vector<CallArgument>& args);
SugaredValuePtr zip_value(const SourceRange& range, GraphFunction& m, const std::vector<CallArgument>& args);
SugaredValuePtr enumerate_value(const SourceRange& range, GraphFunction& m, const std::vector<CallArgument>& args,
                                const std::vector<CallArgument>& kwargs);
SugaredValuePtr reversed_value(const SourceRange& range, GraphFunction& m, const CallArgument& arg);
/// slice(…), for subscripts.
SugaredValuePtr slice_value(const SourceRange& range, GraphFunction& m, const std::vector<CallArgument>& args,
                            const std::vector<CallArgument>& kwargs);
/// begin, end and step of a slice, null where they are None or left out; empty for other things.
std::vector<SugaredValuePtr> bounds_of_slice(const SugaredValuePtr& v);
/// What len() gives for an iterable.
Value* length_of(const SourceRange& range, GraphFunction& m, const SugaredValuePtr& v);
/// A list of what `for` would give.
Value* list_of_iterable(const SourceRange& range, GraphFunction& m, const SugaredValuePtr& iterable);
/// A dict of an iterable of pairs.
Value* dict_of_iterable(const SourceRange& range, GraphFunction& m, const SugaredValuePtr& iterable);

/// A type's name before its brackets: List, Dict, Optional, … (type_values.cpp). Null for other names.
SugaredValuePtr type_constructor(const std::string& name);

}  // namespace cresset::jit
