// Derivatives of embedding bags.
#include "autograd/formulas_embedding.h"

#include <cresset/ops/functions_arith.h>
#include <cresset/ops/functions_compare.h>
#include <cresset/ops/functions_embedding.h>
#include <cresset/ops/functions_index.h>

namespace cresset::autograd::formulas {

Tensor embedding_bag_jvp(const Tensor& weight_p, const Tensor& weight_t, const Tensor& indices, const Tensor& offsets, int64_t mode,
                         const Tensor& factors_p, const Tensor& factors_t, bool include_last_offset, int64_t padding_idx,
                         const Tensor& bag_size, const Tensor& maxima) {
  constexpr int64_t kMax = 2;
  if (mode == kMax) return weight_t.gather(0, maxima.to(kLong)).masked_fill(cresset::eq(bag_size, 0).unsqueeze(1), 0);
  const auto bags = [&](const Tensor& table, const Tensor& factors) {
    const std::optional<Tensor> given = factors.defined() ? std::optional<Tensor>(factors) : std::nullopt;
    return std::get<0>(cresset::_embedding_bag(table, indices, offsets, false, mode, false, given, include_last_offset, padding_idx));
  };
  const Tensor moved = weight_t.defined() ? bags(weight_t, factors_p) : Tensor();
  if (!factors_t.defined()) return moved;
  const Tensor scaled = bags(weight_p, factors_t);
  return moved.defined() ? moved + scaled : scaled;
}

}  // namespace cresset::autograd::formulas
