// Operators whose nodes say by attributes, or by the number of their operands, what they do.
#include <algorithm>

#include <cresset/ops/functions_arith.h>
#include <cresset/ops/functions_concat.h>
#include <cresset/ops/functions_matmul.h>
#include <cresset/ops/functions_view.h>

#include "ir/operators/builtins.h"

namespace cresset::jit {
namespace {

Operation constant_chunk(const Node* n) {
  CRESSET_CHECK(n && n->inputs().size() == 1, "prim::ConstantChunk: a node with one operand was required; there are ",
                n ? n->inputs().size() : 0, " operands.");
  return [chunks = n->i(attr::chunks), dim = n->i(attr::dim), wanted = n->outputs().size()](Stack& stack) {
    const std::vector<Tensor> parts = cresset::chunk(pop(stack).toTensor(), chunks, dim);
    CRESSET_CHECK(parts.size() == wanted, "prim::ConstantChunk: ", wanted, " chunks were expected; dimension ", dim, " has ", parts.size());
    for (const Tensor& part : parts) push(stack, part);
  };
}

bool are_alike(ArrayRef<Tensor> tensors) {
  return std::ranges::all_of(tensors, [&](const Tensor& t) {
    return t.sizes() == tensors[0].sizes() && t.scalar_type() == tensors[0].scalar_type() && t.device() == tensors[0].device();
  });
}

// a1 @ b1 + a2 @ b2 + … = [a1 a2 …] @ [b1; b2; …], one product where the operands have the same sizes.
Tensor sum_of_products(ArrayRef<Tensor> left, ArrayRef<Tensor> right) {
  if (are_alike(left) && are_alike(right)) return cresset::mm(cresset::cat(left, 1), cresset::cat(right, 0));
  Tensor sum = cresset::mm(left[0], right[0]);
  for (std::size_t i = 1; i < left.size(); ++i) sum = cresset::add(sum, cresset::mm(left[i], right[i]));
  return sum;
}

Operation tree_reduce(const Node* n) {
  const std::size_t count = n ? n->inputs().size() : 0;
  CRESSET_CHECK(count > 0 && count % 2 == 0, "prim::MMTreeReduce: as many left as right operands were required; there are ", count,
                " operands.");
  return [count](Stack& stack) {
    std::vector<Tensor> operands;
    for (const IValue& v : last(stack, count)) operands.push_back(v.toTensor());
    drop(stack, count);
    push(stack, sum_of_products({operands.data(), count / 2}, {operands.data() + count / 2, count / 2}));
  };
}

// a @ b1, a @ b2, … = a @ [b1 b2 …], and b1 @ a, b2 @ a, … = [b1; b2; …] @ a.
Operation batch_side(const Node* n) {
  const std::size_t count = n ? n->outputs().size() : 0;
  CRESSET_CHECK(count > 0 && n->inputs().size() == count + 1, "prim::MMBatchSide: one operand more than results was required; there are ",
                n ? n->inputs().size() : 0, " operands and ", count, " results.");
  return [count, left = n->i(attr::side) == 0](Stack& stack) {
    std::vector<Tensor> operands;
    for (const IValue& v : last(stack, count + 1)) operands.push_back(v.toTensor());
    drop(stack, count + 1);
    const Tensor& common = operands[0];
    const ArrayRef<Tensor> others(operands.data() + 1, count);
    if (!are_alike(others) || others[0].dim() != 2) {
      for (const Tensor& other : others) push(stack, left ? cresset::mm(common, other) : cresset::mm(other, common));
      return;
    }
    const int64_t along = left ? 1 : 0, size = others[0].size(along);
    const Tensor all = cresset::cat(others, along);
    const Tensor product = left ? cresset::mm(common, all) : cresset::mm(all, common);
    for (std::size_t i = 0; i < count; ++i) push(stack, product.narrow(along, static_cast<int64_t>(i) * size, size));
  };
}

}  // namespace

std::vector<Operator> node_operators() {
  return {Operator(prim::ConstantChunk, constant_chunk, AliasAnalysisKind::FROM_SCHEMA),
          Operator(prim::MMTreeReduce, tree_reduce, AliasAnalysisKind::PURE_FUNCTION),
          Operator(prim::MMBatchSide, batch_side, AliasAnalysisKind::PURE_FUNCTION)};
}

}  // namespace cresset::jit
