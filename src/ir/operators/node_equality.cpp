// Hashing and comparing nodes.
#include "ir/graph/node_equality.h"

#include <cresset/ir/node_hashing.h>

#include <algorithm>
#include <bit>
#include <string_view>

namespace cresset::jit {
namespace {

std::size_t mixed(std::size_t seed, std::size_t v) { return seed ^ (v + 0x9e3779b97f4a7c15 + (seed << 6) + (seed >> 2)); }

// Of what is cheap; equality decides.
std::size_t hash_of(const AttributeValue& v) {
  return std::visit(
      [](const auto& x) -> std::size_t {
        using T = std::decay_t<decltype(x)>;
        if constexpr (std::is_same_v<T, double>) {
          return std::hash<uint64_t>()(std::bit_cast<uint64_t>(x));
        } else if constexpr (std::is_same_v<T, int64_t> || std::is_same_v<T, std::string>) {
          return std::hash<T>()(x);
        } else if constexpr (std::is_same_v<T, std::vector<int64_t>>) {
          std::size_t h = x.size();
          for (const int64_t i : x) h = mixed(h, static_cast<std::size_t>(i));
          return h;
        } else if constexpr (std::is_same_v<T, Tensor>) {
          if (!x.defined()) return 0;
          std::size_t h = static_cast<std::size_t>(x.scalar_type());
          for (const int64_t n : x.sizes()) h = mixed(h, static_cast<std::size_t>(n));
          if (x.has_storage() && x.device().is_cpu() && x.is_contiguous() && x.numel() > 0)
            h = mixed(h, std::hash<std::string_view>()({static_cast<const char*>(x.data_ptr()), std::min<std::size_t>(x.nbytes(), 256)}));
          return h;
        } else {
          return 0;
        }
      },
      v);
}

}  // namespace

std::size_t hash_node(const Node* n) {
  std::size_t h = mixed(n->kind(), n->outputs().size());
  for (const Value* v : n->inputs()) h = mixed(h, v->unique());
  for (const Attribute& a : n->attributes()) h = mixed(mixed(h, a.name), hash_of(a.value));
  return h;
}

bool equal_attributes(const AttributeValue& a, const AttributeValue& b) {
  if (a.index() != b.index()) return false;
  return std::visit(
      [&](const auto& x) -> bool {
        using T = std::decay_t<decltype(x)>;
        const T& y = std::get<T>(b);
        if constexpr (std::is_same_v<T, std::shared_ptr<Graph>> || std::is_same_v<T, std::vector<std::shared_ptr<Graph>>>)
          return false;
        else if constexpr (std::is_same_v<T, TypePtr>)
          return *x == *y;
        else if constexpr (std::is_same_v<T, std::vector<TypePtr>>)
          return std::equal(x.begin(), x.end(), y.begin(), y.end(), [](const TypePtr& s, const TypePtr& t) { return *s == *t; });
        else
          return sameConstant(IValue(x), IValue(y));
      },
      a);
}

bool equal_nodes(const Node* a, const Node* b) {
  if (a->kind() != b->kind() || a->inputs() != b->inputs() || a->outputs().size() != b->outputs().size() ||
      a->attributes().size() != b->attributes().size())
    return false;
  for (std::size_t i = 0; i < a->outputs().size(); ++i)
    if (!(*a->output(i)->type() == *b->output(i)->type())) return false;
  for (const Attribute& x : a->attributes())
    if (!b->hasAttribute(x.name) || !equal_attributes(x.value, b->attribute(x.name))) return false;
  return true;
}

std::size_t HashNode::operator()(const Node* n) const { return hash_node(n); }
bool EqualNode::operator()(const Node* a, const Node* b) const { return equal_nodes(a, b); }

}  // namespace cresset::jit
