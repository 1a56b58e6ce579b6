#include "ir/passes/scalar_expression.h"

namespace cresset::jit::rewrite {
namespace {

const Symbol kFloorDivide = Symbol::fromQualString("aten::floor_divide"), kDiv = Symbol::fromQualString("aten::div");
const Symbol kAdd = Symbol::fromQualString("aten::add"), kSub = Symbol::fromQualString("aten::sub"),
             kMul = Symbol::fromQualString("aten::mul");

enum class Operation { add, sub, mul, floor, truncate, divide };

std::optional<Operation> operation_of(const Node* n) {
  const FunctionSchema* schema = n->maybeSchema();
  if (!schema || schema->is_mutable()) return std::nullopt;
  const std::size_t operands = n->inputs().size();
  if (n->kind() == kMul && operands == 2) return Operation::mul;
  if (n->kind() == kFloorDivide && operands == 2) return Operation::floor;
  if ((n->kind() == kAdd || n->kind() == kSub) && operands == 3 && is_number(n->input(2), 1))
    return n->kind() == kAdd ? Operation::add : Operation::sub;
  if (n->kind() != kDiv) return std::nullopt;
  if (operands == 2 || (operands == 3 && n->input(2)->mustBeNone())) return Operation::divide;
  const auto mode = operands == 3 ? string_of(n->input(2)) : std::nullopt;
  if (mode == "floor") return Operation::floor;
  return mode == "trunc" ? std::optional(Operation::truncate) : std::nullopt;
}

// A number in a constant tensor of rank 0.
std::optional<IValue> constant_number(const Value* v) {
  const auto constant = toIValue(v);
  if (!constant || !constant->isTensor() || !constant->toTensor().defined()) return std::nullopt;
  const Tensor& t = constant->toTensor();
  if (t.dim() != 0 || t.requires_grad()) return std::nullopt;
  if (t.scalar_type() == ScalarType::Long) return IValue(t.item().toLong());
  if (t.scalar_type() == ScalarType::Double) return IValue(t.item().toDouble());
  return std::nullopt;
}

// a / b towards zero, of integers: floor division, and one more where it went below.
Value* truncated(const Emitter& emit, Value* a, Value* b) {
  Value* floor = emit("aten::floordiv", {a, b});
  Value* zero = emit.integer(0);
  Value* inexact = emit("aten::ne", {emit("aten::mul", {floor, b}), a});
  Value* below = emit("aten::lt", {floor, zero});
  return emit("aten::add", {floor, emit("aten::Int", {emit("aten::__and__", {inexact, below})})});
}

}  // namespace

Value* ScalarExpressions::number_in(const Value* tensor) {
  const Node* n = tensor->node();
  return n->kind() == prim::NumToTensor && !is_marked(n) ? n->input(0) : nullptr;
}

std::optional<TypeKind> ScalarExpressions::operand_kind(const Value* v, int depth, bool& is_tensor_operand) {
  is_tensor_operand = is_tensor(v);
  if (is_tensor_operand) return kind_of(v, depth);
  const TypeKind kind = v->type()->kind;
  return kind == TypeKind::Int || kind == TypeKind::Float ? std::optional(kind) : std::nullopt;
}

std::optional<TypeKind> ScalarExpressions::kind_of(const Value* tensor, int depth) {
  if (const auto known = kinds_.find(tensor); known != kinds_.end()) return known->second;
  const auto kind = find_kind(tensor, depth);
  kinds_.emplace(tensor, kind);
  return kind;
}

std::optional<TypeKind> ScalarExpressions::find_kind(const Value* tensor, int depth) {
  const Node* n = tensor->node();
  if (is_marked(n) || aliases_->hasWriters(tensor)) return std::nullopt;
  if (const Value* number = number_in(tensor)) {
    const TypeKind kind = number->type()->kind;
    return kind == TypeKind::Int || kind == TypeKind::Float ? std::optional(kind) : std::nullopt;
  }
  if (const auto number = constant_number(tensor)) return number->isInt() ? TypeKind::Int : TypeKind::Float;
  if (depth == 0) return std::nullopt;
  const auto operation = operation_of(n);
  if (!operation) return std::nullopt;
  bool left_tensor, right_tensor;
  const auto left = operand_kind(n->input(0), depth - 1, left_tensor), right = operand_kind(n->input(1), depth - 1, right_tensor);
  if (!left || !right || !(left_tensor || right_tensor)) return std::nullopt;
  const bool any_float = *left == TypeKind::Float || *right == TypeKind::Float;
  // A float number beside a tensor of integers gives the default dtype.
  const bool float_tensor = (left_tensor && *left == TypeKind::Float) || (right_tensor && *right == TypeKind::Float);
  if (any_float && !float_tensor) return std::nullopt;
  switch (*operation) {
    case Operation::add:
    case Operation::sub:
    case Operation::mul: return any_float ? TypeKind::Float : TypeKind::Int;
    case Operation::floor:
    case Operation::truncate: return any_float ? std::nullopt : std::optional(TypeKind::Int);
    case Operation::divide: return any_float ? std::optional(TypeKind::Float) : std::nullopt;
  }
  return std::nullopt;
}

Value* ScalarExpressions::emit(const Emitter& emit, const Value* tensor) {
  Value*& known = made_[tensor];
  if (!known) known = make(emit, tensor);
  return known;
}

Value* ScalarExpressions::make(const Emitter& emit, const Value* tensor) {
  if (!is_tensor(tensor)) return const_cast<Value*>(tensor);
  if (Value* number = number_in(tensor)) return number;
  if (const auto number = constant_number(tensor)) return emit.constant(*number);
  const Node* n = tensor->node();
  Value *a = this->emit(emit, n->input(0)), *b = this->emit(emit, n->input(1));
  switch (*operation_of(n)) {
    case Operation::add: return emit("aten::add", {a, b});
    case Operation::sub: return emit("aten::sub", {a, b});
    case Operation::mul: return emit("aten::mul", {a, b});
    case Operation::floor: return emit("aten::floordiv", {a, b});
    case Operation::truncate: return truncated(emit, a, b);
    case Operation::divide: return emit("aten::div", {a, b});
  }
  return nullptr;
}

}  // namespace cresset::jit::rewrite
