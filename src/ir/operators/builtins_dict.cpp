// Dictionaries: methods and constructors, for every type of key.
#include "ir/operators/builtin_call.h"

namespace cresset::jit {
namespace builtin {
namespace {

using Dict = ivalue::DictImpl&;

[[noreturn]] void missing(const IValue& key) { CRESSET_THROW(KeyError, "KeyError: ", script_text(key)); }

IValue item(Dict d, const IValue& key) {
  const auto at = d.items.find(key);
  if (at == d.items.end()) missing(key);
  return at->second;
}
void set_item(Dict d, const IValue& key, const IValue& value) { d.items.insert_or_assign(key, value); }
IValue pop_item(Dict d, const IValue& key, const IValue* otherwise) {
  const auto at = d.items.find(key);
  if (at == d.items.end()) {
    if (!otherwise) missing(key);
    return *otherwise;
  }
  IValue v = std::move(at->second);
  d.items.erase(at);
  return v;
}
IValue copy(Dict d) {
  auto out = make_intrusive<ivalue::DictImpl>();
  out->items = d.items;
  out->key_type = d.key_type;
  out->value_type = d.value_type;
  return IValue(std::move(out));
}
IValue from_pairs(IValue& pairs) {
  auto out = make_intrusive<ivalue::DictImpl>();
  const ivalue::ListImpl& l = pairs.toListImpl();
  if (l.element_type && l.element_type->kind == TypeKind::Tuple && l.element_type->contained.size() == 2) {
    out->key_type = l.element_type->contained[0];
    out->value_type = l.element_type->contained[1];
  }
  for (const IValue& pair : l.elements) set_item(*out, pair.toTupleElements().at(0), pair.toTupleElements().at(1));
  return IValue(std::move(out));
}
IValue keys(Dict d) {
  std::vector<IValue> out;
  for (const auto& [key, value] : d.items) out.push_back(key);
  return make_list(std::move(out), d.key_type);
}
IValue values(Dict d) {
  std::vector<IValue> out;
  for (const auto& [key, value] : d.items) out.push_back(value);
  return make_list(std::move(out), d.value_type);
}
IValue items(Dict d) {
  std::vector<IValue> out;
  for (const auto& [key, value] : d.items) out.push_back(make_tuple({key, value}));
  return make_list(std::move(out), d.key_type ? tuple_of({d.key_type, d.value_type}) : nullptr);
}

#define CRESSET_OF_KEY(K)                                                                                                              \
  {"aten::len.Dict_" #K "(Dict(" #K ", t) self) -> int",                                                                               \
   CRESSET_BUILTIN((Dict d)->int64_t { return static_cast<int64_t>(d.items.size()); })},                                               \
      {"aten::__getitem__.Dict_" #K "(Dict(" #K ", t) self, " #K " key) -> t(*)",                                                      \
       CRESSET_BUILTIN((Dict d, IValue & k)->IValue { return item(d, k); })},                                                          \
      {"aten::_set_item." #K "(Dict(" #K ", t)(a!) l, " #K "(b -> *) idx, t(c -> *) v) -> ()",                                         \
       CRESSET_BUILTIN((Dict d, IValue & k, IValue & v)->void { set_item(d, k, v); })},                                                \
      {"aten::__contains__." #K "(Dict(" #K ", t) dict, " #K " key) -> bool",                                                          \
       CRESSET_BUILTIN((Dict d, IValue & k)->bool { return d.find(k) != nullptr; })},                                                  \
      {"aten::keys." #K "(Dict(" #K ", t) self) -> " #K "[](*)", CRESSET_BUILTIN((Dict d)->IValue { return keys(d); })},               \
      {"aten::values." #K "(Dict(" #K ", t) self) -> t[](*)", CRESSET_BUILTIN((Dict d)->IValue { return values(d); })},                \
      {"aten::items." #K "(Dict(" #K ", t) self) -> ((" #K ", t)[])", CRESSET_BUILTIN((Dict d)->IValue { return items(d); })},         \
      {"aten::pop.Dict_" #K "(Dict(" #K ", t)(a!) self, " #K " key) -> t(*)",                                                          \
       CRESSET_BUILTIN((Dict d, IValue & k)->IValue { return pop_item(d, k, nullptr); })},                                             \
      {"aten::pop.Dict_default_" #K "(Dict(" #K ", t)(a!) self, " #K " key, t default_value) -> t(*)",                                 \
       CRESSET_BUILTIN((Dict d, IValue & k, IValue & v)->IValue { return pop_item(d, k, &v); })},                                      \
      {"aten::get." #K "(Dict(" #K ", t) self, " #K " key) -> t(*)?", CRESSET_BUILTIN((Dict d, IValue & k)->IValue {                   \
         const IValue* at = d.find(k);                                                                                                 \
         return at ? *at : IValue();                                                                                                   \
       })},                                                                                                                            \
      {"aten::get.default_" #K "(Dict(" #K ", t) self, " #K " key, t default_value) -> t(*)",                                          \
       CRESSET_BUILTIN((Dict d, IValue & k, IValue & v)->IValue {                                                                      \
         const IValue* at = d.find(k);                                                                                                 \
         return at ? *at : v;                                                                                                          \
       })},                                                                                                                            \
      {"aten::setdefault." #K "(Dict(" #K ", t)(a!) self, " #K "(b -> *) key, t(c -> *) default_value) -> t(*)",                       \
       CRESSET_BUILTIN((Dict d, IValue & k, IValue & v)->IValue { return d.items.try_emplace(k, v).first->second; })},                 \
      {"aten::update." #K "(Dict(" #K ", t)(a!) self, Dict(" #K ", t)(a!) to_add) -> ()", CRESSET_BUILTIN((Dict d, Dict other)->void { \
         const auto added = other.items;                                                                                               \
         for (const auto& [k, v] : added) set_item(d, k, v);                                                                           \
       })},                                                                                                                            \
      {"aten::popitem." #K "(Dict(" #K ", t)(a!) self) -> ((" #K ", t))", CRESSET_BUILTIN((Dict d)->IValue {                           \
         CRESSET_CHECK_AS(KeyError, !d.items.empty(), "popitem(): dictionary is empty");                                               \
         const auto [key, value] = d.items.pop_back();                                                                                 \
         return make_tuple({key, value});                                                                                              \
       })},                                                                                                                            \
      {"aten::clear." #K "(Dict(" #K ", t)(a!) self) -> ()", CRESSET_BUILTIN((Dict d)->void { d.items.clear(); })},                    \
      {"aten::copy.Dict_" #K "(Dict(" #K ", t)(a) self) -> Dict(" #K ", t)", CRESSET_BUILTIN((Dict d)->IValue { return copy(d); })},   \
      {"aten::Delete.Dict_" #K "(Dict(" #K ", t)(a!) self, " #K " key) -> ()",                                                         \
       CRESSET_BUILTIN((Dict d, IValue & k)->void { pop_item(d, k, nullptr); })},                                                      \
      {"aten::dict." #K "((" #K ", tVal)[] inputs) -> Dict(" #K ", tVal)",                                                             \
       CRESSET_BUILTIN((IValue & pairs)->IValue { return from_pairs(pairs); })},                                                       \
  {                                                                                                                                    \
    "aten::dict.Dict_" #K "(Dict(" #K ", t)(a) self) -> Dict(" #K ", t)", CRESSET_BUILTIN((Dict d)->IValue { return copy(d); })        \
  }

const BuiltinRow kDictRows[] = {
    CRESSET_OF_KEY(str),
    CRESSET_OF_KEY(int),
    CRESSET_OF_KEY(bool),
    CRESSET_OF_KEY(float),
    CRESSET_OF_KEY(complex),
    CRESSET_OF_KEY(Tensor),
    {"aten::dict() -> Dict(str, Tensor)", CRESSET_BUILTIN(()->IValue {
       auto out = make_intrusive<ivalue::DictImpl>();
       out->key_type = basic_type(TypeKind::String);
       out->value_type = basic_type(TypeKind::Tensor);
       return IValue(std::move(out));
     })},
};

}  // namespace
}  // namespace builtin

void register_dict_builtins(const AddRows& add) { add(builtin::kDictRows, std::size(builtin::kDictRows)); }

}  // namespace cresset::jit
