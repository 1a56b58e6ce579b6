// Rules on lists and dicts that are made here and that nobody changes.
#include <algorithm>
#include <cmath>

#include "ir/passes/peephole.h"

namespace cresset::jit {
namespace {

Value* new_list(Node* like, const std::vector<Value*>& members, Peephole& p) {
  return p.graph->insertNode(p.graph->createList(like->output()->type()->element(), members))->output();
}

Value* list_length(Node* n, Peephole& p) {
  const Node* list = p.constant_container(n->input(0), prim::ListConstruct);
  return list ? p.graph->insertConstant(static_cast<int64_t>(list->inputs().size())) : nullptr;
}

Value* refined_length(Node* n, Peephole& p) {
  const auto facts = p.lengths.find(n->input(0));
  if (facts == p.lengths.end() || p.aliases.hasWriters(n->input(0))) return nullptr;
  for (const NumberFact& fact : facts->second)
    if (holds_at(fact, n)) return p.graph->insertConstant(fact.number);
  return nullptr;
}

// A negative index counts from the end; one out of range raises when it runs and stays.
Value* list_item(Node* n, Peephole& p) {
  const Node* list = p.constant_container(n->input(0), prim::ListConstruct);
  const auto index = int_constant(n, 1);
  if (!list || !index) return nullptr;
  const auto size = static_cast<int64_t>(list->inputs().size());
  const int64_t at = *index < 0 ? *index + size : *index;
  return at >= 0 && at < size ? list->input(static_cast<std::size_t>(at)) : nullptr;
}

bool unpack_list(Node* n, Peephole& p) {
  const Node* list = p.constant_container(n->input(0), prim::ListConstruct);
  if (!list || list->inputs().size() != n->outputs().size() || !n->hasUses()) return false;
  for (std::size_t i = 0; i < n->outputs().size(); ++i) n->output(i)->replaceAllUsesWith(list->input(i));
  return true;
}

// list[start:end:step] with constants; None is what Python says
Value* list_slice(Node* n, Peephole& p) {
  const Node* list = p.constant_container(n->input(0), prim::ListConstruct);
  if (!list || n->inputs().size() != 4) return nullptr;
  const auto start = toIValue(n->input(1)), end = toIValue(n->input(2));
  const auto step = int_constant(n, 3);
  if (!start || !end || !step || *step <= 0) return nullptr;
  const auto size = static_cast<int64_t>(list->inputs().size());
  const auto bound = [&](const IValue& v, int64_t none) {
    if (!v.isInt()) return none;
    return std::clamp(v.toInt() < 0 ? v.toInt() + size : v.toInt(), int64_t{0}, size);
  };
  std::vector<Value*> members;
  for (int64_t i = bound(*start, 0); i < bound(*end, size); i += *step) members.push_back(list->input(static_cast<std::size_t>(i)));
  return new_list(n, members, p);
}

Value* concatenation(Node* n, Peephole& p) {
  if (n->inputs().size() != 2) return nullptr;
  const Node *a = p.constant_container(n->input(0), prim::ListConstruct), *b = p.constant_container(n->input(1), prim::ListConstruct);
  if (!a || !b) return nullptr;
  std::vector<Value*> members = a->inputs();
  members.insert(members.end(), b->inputs().begin(), b->inputs().end());
  return new_list(n, members, p);
}

// The sizes of a tensor, as long as nobody changes the list.
const Node* sizes_of(const Value* v, const Peephole& p) {
  const Node* n = v->node();
  return n->kind() == aten::size && n->inputs().size() == 1 && !p.aliases.hasWriters(v) && !is_marked(n) ? n : nullptr;
}
// len(x.size()) of a known rank
Value* length_of_sizes(Node* n, Peephole& p) {
  const Node* size = sizes_of(n->input(0), p);
  const TensorType* t = size && !p.aliases.hasWriters(size->input()) ? p.tensor(size->input()) : nullptr;
  return t && t->dim() ? p.graph->insertConstant(static_cast<int64_t>(*t->dim())) : nullptr;
}
// x.size()[i] → x.size(i)
Value* item_of_sizes(Node* n, Peephole& p) {
  const Node* size = n->inputs().size() == 2 ? sizes_of(n->input(0), p) : nullptr;
  if (!size || !int_constant(n, 1) || p.aliases.hasWriters(size->input())) return nullptr;
  // Another error for an index out of range: only where the rank says that it is in range.
  const TensorType* t = p.tensor(size->input());
  if (!t || !t->dim()) return nullptr;
  const auto rank = static_cast<int64_t>(*t->dim());
  const int64_t i = *int_constant(n, 1);
  return i >= -rank && i < rank ? p.graph->insert(aten::size, {size->input(), n->input(1)}) : nullptr;
}

// ---- dicts: the keys must be constants that differ

struct Entries {
  std::vector<IValue> keys;
  std::vector<Value*> key_values, values;
};
// A float that equals itself.
bool is_number_of(const IValue& key) { return key.isDouble() && !std::isnan(key.toDouble()); }
std::optional<Entries> entries(const Value* v, const Peephole& p) {
  const Node* dict = p.constant_container(v, prim::DictConstruct);
  if (!dict) return std::nullopt;
  Entries out;
  for (std::size_t i = 0; i + 1 < dict->inputs().size(); i += 2) {
    auto key = toIValue(dict->input(i));
    if (!key || (!key->isInt() && !key->isString() && !key->isBool() && !is_number_of(*key))) return std::nullopt;
    for (const IValue& other : out.keys)
      if (other == *key) return std::nullopt;
    out.keys.push_back(std::move(*key));
    out.key_values.push_back(dict->input(i));
    out.values.push_back(dict->input(i + 1));
  }
  return out;
}

Value* dict_length(Node* n, Peephole& p) {
  const auto e = entries(n->input(0), p);
  return e ? p.graph->insertConstant(static_cast<int64_t>(e->keys.size())) : nullptr;
}
Value* dict_item(Node* n, Peephole& p) {
  const auto e = entries(n->input(0), p);
  const auto key = e && n->inputs().size() == 2 ? toIValue(n->input(1)) : std::nullopt;
  if (!key) return nullptr;
  for (std::size_t i = 0; i < e->keys.size(); ++i)
    if (e->keys[i] == *key) return e->values[i];
  return nullptr;
}
Value* dict_keys(Node* n, Peephole& p) {
  const auto e = entries(n->input(0), p);
  return e ? new_list(n, e->key_values, p) : nullptr;
}
Value* dict_contains(Node* n, Peephole& p) {
  const auto e = entries(n->input(0), p);
  const auto key = e && n->inputs().size() == 2 ? toIValue(n->input(1)) : std::nullopt;
  if (!key) return nullptr;
  return p.graph->insertConstant(std::find(e->keys.begin(), e->keys.end(), *key) != e->keys.end());
}

}  // namespace

const PeepholeRules& container_rules() {
  static const PeepholeRules rules{
      {"aten::len", list_length},     {"aten::__getitem__", list_item},
      {"aten::slice", list_slice},    {"aten::add", concatenation},
      {"aten::len", length_of_sizes}, {"aten::__getitem__", item_of_sizes},
      {"aten::len", dict_length},     {"aten::__getitem__", dict_item},
      {"aten::keys", dict_keys},      {"aten::__contains__", dict_contains},
      {"aten::len", refined_length},
  };
  return rules;
}

const PeepholeEdits& container_edits() {
  static const PeepholeEdits edits{{"prim::ListUnpack", unpack_list}};
  return edits;
}

}  // namespace cresset::jit
