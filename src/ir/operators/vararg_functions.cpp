// Containers on a stack.
#include <cresset/ir/vararg_functions.h>

#include <iterator>

#include <cresset/dispatch/boxing.h>

namespace cresset::jit {
namespace {

std::vector<IValue> taken(Stack& stack, std::size_t count) {
  CRESSET_CHECK(stack.size() >= count, count, " operands were required on the stack; it has ", stack.size(), ".");
  const auto first = stack.end() - static_cast<std::ptrdiff_t>(count);
  std::vector<IValue> out(std::make_move_iterator(first), std::make_move_iterator(stack.end()));
  stack.erase(first, stack.end());
  return out;
}
IValue popped(Stack& stack) { return std::move(taken(stack, 1)[0]); }

}  // namespace

void tupleUnpack(Stack& stack) {
  const IValue tuple = popped(stack);
  const auto& members = tuple.toTupleElements();
  stack.insert(stack.end(), members.begin(), members.end());
}
void listUnpack(Stack& stack, std::size_t count) {
  const IValue list = popped(stack);
  const auto& members = list.toListRef();
  CRESSET_CHECK(members.size() == count, "Expected ", count, " elements in a list but found ", members.size());
  stack.insert(stack.end(), members.begin(), members.end());
}
void tupleConstruct(Stack& stack, std::size_t count) { stack.emplace_back(ivalue::TupleImpl::create(taken(stack, count))); }
void namedTupleConstruct(Stack& stack, TypePtr type, std::size_t count) {
  stack.emplace_back(make_intrusive<ivalue::TupleImpl>(taken(stack, count), std::move(type)));
}
void listConstruct(Stack& stack, const Type& list_type, std::size_t count) {
  stack.emplace_back(make_intrusive<ivalue::ListImpl>(taken(stack, count), list_type.element()));
}
void dictConstruct(Stack& stack, const Type& dict_type, std::size_t count) {
  const std::vector<IValue> members = taken(stack, count);
  auto dict = make_intrusive<ivalue::DictImpl>();
  dict->key_type = dict_type.containedType(0);
  dict->value_type = dict_type.containedType(1);
  for (std::size_t i = 0; i + 1 < members.size(); i += 2) dict->items.insert_or_assign(members[i], members[i + 1]);
  stack.emplace_back(std::move(dict));
}
void tupleSlice(Stack& stack, std::size_t begin, std::size_t end) {
  const IValue tuple = popped(stack);
  const auto& members = tuple.toTupleElements();
  CRESSET_CHECK(begin <= end && end <= members.size(), "tupleSlice: a range within ", members.size(), " members was required; ", begin,
                " to ", end, " was given.");
  stack.emplace_back(ivalue::TupleImpl::create(
      std::vector<IValue>(members.begin() + static_cast<std::ptrdiff_t>(begin), members.begin() + static_cast<std::ptrdiff_t>(end))));
}

}  // namespace cresset::jit
