// Rules on tensors: operators that give their operand, and questions that types answer.
#include "ir/passes/peephole.h"

namespace cresset::jit {
namespace {

std::optional<std::vector<int64_t>> constant_ints(const Value* v) {
  const auto constant = toIValue(v);
  if (constant && constant->isList()) {
    std::vector<int64_t> out;
    for (const IValue& e : constant->toListRef()) {
      if (!e.isInt()) return std::nullopt;
      out.push_back(e.toInt());
    }
    return out;
  }
  if (v->node()->kind() != prim::ListConstruct) return std::nullopt;
  std::vector<int64_t> out;
  for (const Value* e : v->node()->inputs()) {
    const auto i = constant_as<int64_t>(e);
    if (!i) return std::nullopt;
    out.push_back(*i);
  }
  return out;
}

// expand to the sizes that the tensor has
Value* expand(Node* n, Peephole& p) {
  const TensorType* t = p.tensor(n->input(0));
  if (!t || (n->input(1)->node()->kind() == prim::ListConstruct && p.aliases.hasWriters(n->input(1)))) return nullptr;
  const auto have = t->concrete_sizes(), want = constant_ints(n->input(1));
  return have && want && *have == *want ? n->input(0) : nullptr;
}

// t(t(x)); ranks above 2 raise and stay
Value* transpose_twice(Node* n, Peephole&) {
  const Node* inner = n->input(0)->node();
  static const Symbol t = Symbol::aten("t");
  if (inner->kind() != t || is_marked(inner)) return nullptr;
  Value* x = inner->input(0);
  const TensorType* type = tensor_rumours(x);
  return type && type->dim() && *type->dim() > 2 ? nullptr : x;
}

bool same_dtype_and_device(const TensorType* a, const TensorType* b) {
  return a && b && a->dtype && a->dtype == b->dtype && a->device && a->device == b->device;
}

Value* type_as(Node* n, Peephole& p) { return same_dtype_and_device(p.tensor(n->input(0)), p.tensor(n->input(1))) ? n->input(0) : nullptr; }

// to(x, dtype, non_blocking, copy, format), to(x, device, dtype, …), to(x, other, …)
Value* to(Node* n, Peephole& p) {
  const FunctionSchema* s = n->maybeSchema();
  const TensorType* x = p.tensor(n->input(0));
  if (!s || !x || !x->dtype || !x->device) return nullptr;
  for (std::size_t i = 1; i < s->arguments().size(); ++i) {
    const std::string& name = s->arguments()[i].name;
    const Value* v = n->input(i);
    const auto constant = toIValue(v);
    if (name == "dtype") {
      if (!constant || !(constant->isNone() || (constant->isInt() && constant->toInt() == static_cast<int64_t>(*x->dtype)))) return nullptr;
    } else if (name == "device") {
      if (!constant || !(constant->isNone() || (constant->isDevice() && constant->toDevice() == *x->device))) return nullptr;
    } else if (name == "other") {
      if (!same_dtype_and_device(x, p.tensor(v))) return nullptr;
    } else if (name == "copy") {
      if (!constant || !constant->isBool() || constant->toBool()) return nullptr;
    } else if (name != "non_blocking" && !v->mustBeNone()) {
      return nullptr;  // a memory format, a layout
    }
  }
  return n->input(0);
}

// A new list each time: the caller may change what it gets.
Value* int_list(const std::vector<int64_t>& values, Peephole& p) {
  std::vector<Value*> elements;
  for (const int64_t v : values) elements.push_back(p.graph->insertConstant(v));
  return p.graph->insertNode(p.graph->createList(basic_type(TypeKind::Int), elements))->output();
}

// size(x), size(x, dim)
Value* size(Node* n, Peephole& p) {
  const TensorType* t = p.tensor(n->input(0));
  if (!t || !t->sizes) return nullptr;
  if (n->inputs().size() == 1) {
    const auto sizes = t->concrete_sizes();
    return sizes ? int_list(*sizes, p) : nullptr;
  }
  const auto dim = int_constant(n, 1);
  if (!dim) return nullptr;
  const auto rank = static_cast<int64_t>(t->sizes->size());
  const int64_t at = *dim < 0 ? *dim + rank : *dim;
  if (at < 0 || at >= rank || !(*t->sizes)[static_cast<std::size_t>(at)]) return nullptr;
  return p.graph->insertConstant(*(*t->sizes)[static_cast<std::size_t>(at)]);
}

Value* length(Node* n, Peephole& p) {
  if (!is_kind(n->input(0), TypeKind::Tensor)) return nullptr;
  const TensorType* t = p.tensor(n->input(0));
  return t && t->sizes && !t->sizes->empty() && t->sizes->front() ? p.graph->insertConstant(*t->sizes->front()) : nullptr;
}

// A constant that a fact about the type gives.
template <class F>
Value* known(Node* n, Peephole& p, F&& fact) {
  const TensorType* t = p.tensor(n->input(0));
  if (!t) return nullptr;
  const auto value = fact(*t);
  return value ? p.graph->insertConstant(IValue(*value)) : nullptr;
}
Value* dim(Node* n, Peephole& p) {
  return known(n, p, [](const TensorType& t) { return t.dim() ? std::optional(static_cast<int64_t>(*t.dim())) : std::nullopt; });
}
Value* numel(Node* n, Peephole& p) {
  return known(n, p, [](const TensorType& t) { return t.numel(); });
}
Value* dtype(Node* n, Peephole& p) {
  return known(n, p, [](const TensorType& t) { return t.dtype ? std::optional(static_cast<int64_t>(*t.dtype)) : std::nullopt; });
}
Value* device(Node* n, Peephole& p) {
  return known(n, p, [](const TensorType& t) { return t.device; });
}
Value* is_floating_point(Node* n, Peephole& p) {
  return known(n, p, [](const TensorType& t) { return t.dtype ? std::optional(isFloatingType(*t.dtype)) : std::nullopt; });
}
Value* is_complex(Node* n, Peephole& p) {
  return known(n, p, [](const TensorType& t) { return t.dtype ? std::optional(isComplexType(*t.dtype)) : std::nullopt; });
}
Value* is_cuda(Node* n, Peephole& p) {
  return known(n, p, [](const TensorType& t) { return t.device ? std::optional(t.device->str().starts_with("cuda")) : std::nullopt; });
}
Value* is_cpu(Node* n, Peephole& p) {
  return known(n, p, [](const TensorType& t) { return t.device ? std::optional(t.device->is_cpu()) : std::nullopt; });
}

// What has strides is strided.
Value* layout(Node* n, Peephole& p) {
  return known(n, p, [](const TensorType& t) { return t.strides ? std::optional(static_cast<int64_t>(Layout::Strided)) : std::nullopt; });
}

// Int(NumToTensor(s)) and its like, where the number has the asked type already.
template <TypeKind K>
Value* number_of_tensor(Node* n, Peephole&) {
  const Node* inner = n->input(0)->node();
  if (inner->kind() != prim::NumToTensor || is_marked(inner)) return nullptr;
  Value* number = inner->input(0);
  const TypeKind k = number->type()->kind;
  if (K == TypeKind::Number ? k == TypeKind::Int || k == TypeKind::Float || k == TypeKind::Complex : k == K) return number;
  return nullptr;
}

// x + 0, x - 0, x * 1, x / 1: the result is x when its dtype does not change and nobody can tell the two apart.
template <int64_t Neutral, bool FloatingOnly>
Value* neutral_operand(Node* n, Peephole& p) {
  const TensorType* x = p.tensor(n->input(0));
  const auto constant = toIValue(n->input(1));
  if (!x || !x->dtype || !constant || n->inputs().size() > 3) return nullptr;
  if (n->inputs().size() == 3 && !toIValue(n->input(2))) return nullptr;  // a factor of the number, or how to round
  if (n->inputs().size() == 3 && !toIValue(n->input(2))->isInt()) return nullptr;
  const bool floating = isFloatingType(*x->dtype) || isComplexType(*x->dtype);
  if (*x->dtype == ScalarType::Bool || (FloatingOnly && !floating)) return nullptr;
  const bool is_neutral = constant->isInt() ? constant->toInt() == Neutral
                                            : constant->isDouble() && floating && constant->toDouble() == static_cast<double>(Neutral);
  if (!is_neutral || !p.aliases.safeToChangeAliasingRelationship(n->input(0), n->output())) return nullptr;
  return n->input(0);
}

}  // namespace

const PeepholeRules& tensor_rules() {
  static const PeepholeRules rules{
      {"aten::expand", expand},
      {"aten::t", transpose_twice},
      {"aten::type_as", type_as},
      {"aten::to", to},
      {"aten::size", size},
      {"aten::len", length},
      {"aten::dim", dim},
      {"prim::ndim", dim},
      {"aten::numel", numel},
      {"prim::dtype", dtype},
      {"prim::device", device},
      {"aten::is_floating_point", is_floating_point},
      {"aten::is_complex", is_complex},
      {"prim::is_cuda", is_cuda},
      {"prim::is_cpu", is_cpu},
      {"prim::layout", layout},
      {"aten::Int", number_of_tensor<TypeKind::Int>},
      {"aten::IntImplicit", number_of_tensor<TypeKind::Int>},
      {"aten::Float", number_of_tensor<TypeKind::Float>},
      {"aten::FloatImplicit", number_of_tensor<TypeKind::Float>},
      {"aten::Bool", number_of_tensor<TypeKind::Bool>},
      {"aten::ScalarImplicit", number_of_tensor<TypeKind::Number>},
      {"aten::item", number_of_tensor<TypeKind::Number>},
      {"aten::add", neutral_operand<0, false>},
      {"aten::sub", neutral_operand<0, false>},
      {"aten::mul", neutral_operand<1, false>},
      {"aten::div", neutral_operand<1, true>},
  };
  return rules;
}

}  // namespace cresset::jit
