// Checks and compositions of the CTC loss.
#include <algorithm>
#include <limits>
#include <vector>

#include <cresset/ops/functions_arith.h>
#include <cresset/ops/functions_compare.h>
#include <cresset/ops/functions_creation.h>
#include <cresset/ops/functions_ctc.h>
#include <cresset/ops/functions_reduce.h>
#include <cresset/ops/functions_view.h>

#include "ops/loss.h"
#include "ops/ops_decl_ctc.h"
#include "ops/shared/shape_util.h"

namespace cresset::ops {
namespace {

constexpr const char* kWhere = " (while checking arguments for ctc_loss_allocate_outputs)";

// The values of a tensor of lengths.
std::vector<int64_t> lengths(const Tensor& t, const char* name) {
  CRESSET_CHECK(isIntegralType(t.scalar_type(), /*includeBool=*/false), name, " must be integral");
  const Tensor values = t.to(kLong).to(Device(kCPU)).contiguous();
  const int64_t* const p = values.const_data_ptr<int64_t>();
  return {p, p + values.numel()};
}

}  // namespace

std::array<TensorSpec, 2> ctc_loss_shape(const Tensor& log_probs, const Tensor& targets, IntArrayRef input_lengths,
                                         IntArrayRef target_lengths, int64_t blank, bool) {
  CRESSET_CHECK(log_probs.dim() == 3, "Expected 3-dimensional tensor, but got ", log_probs.dim(),
                "-dimensional tensor for argument #1 'log_probs'", kWhere);
  CRESSET_CHECK(log_probs.numel() > 0, "log_probs tensor must not be empty");
  CRESSET_CHECK(targets.scalar_type() == kInt || targets.scalar_type() == kLong,
                "Expected tensor for argument #2 'targets' to have scalar type Int; but got ", targets.scalar_type(), " instead", kWhere);
  const int64_t time = log_probs.size(0), batch = log_probs.size(1), labels = log_probs.size(2);
  CRESSET_CHECK(blank >= 0 && blank < labels, "blank must be in label range");
  CRESSET_CHECK(static_cast<int64_t>(input_lengths.size()) == batch, "input_lengths must be of size batch_size");
  CRESSET_CHECK(static_cast<int64_t>(target_lengths.size()) == batch, "target_lengths must be of size batch_size");
  int64_t total = 0, longest = 0;
  for (int64_t s : target_lengths) {
    CRESSET_CHECK(s >= 0, "Expected target_lengths to have value at least 0, but got value ", s, kWhere);
    total += s;
    longest = std::max(longest, s);
  }
  for (int64_t t : input_lengths) {
    CRESSET_CHECK(t >= 0, "Expected input_lengths to have value at least 0, but got value ", t, kWhere);
    CRESSET_CHECK(t <= time, "Expected input_lengths to have value at most ", time, ", but got value ", t, kWhere);
  }
  if (targets.dim() == 1) {
    CRESSET_CHECK(targets.size(0) == total, "Expected tensor to have size ", total, " at dimension 0, but got size ", targets.size(0),
                  " for argument #2 'targets'", kWhere);
  } else {
    CRESSET_CHECK(targets.dim() == 2, "Expected 1 or 2 dimensions, but got ", targets.dim(), " for argument #2 'targets'", kWhere);
    CRESSET_CHECK(targets.size(0) == batch, "Expected tensor to have size ", batch, " at dimension 0, but got size ", targets.size(0),
                  " for argument #2 'targets'", kWhere);
    CRESSET_CHECK(targets.size(1) >= longest, "Expected tensor to have size at least ", longest, " at dimension 1, but got size ",
                  targets.size(1), " for argument #2 'targets'", kWhere);
  }
  return {spec_like(log_probs, {batch}), spec_like(log_probs, {batch, time, 2 * longest + 1})};
}

TensorSpec ctc_loss_backward_shape(const Tensor& grad, const Tensor& log_probs, const Tensor& targets, IntArrayRef input_lengths,
                                   IntArrayRef target_lengths, const Tensor& neg_log_likelihood, const Tensor& log_alpha, int64_t blank,
                                   bool zero_infinity) {
  const auto forward = ctc_loss_shape(log_probs, targets, input_lengths, target_lengths, blank, zero_infinity);
  CRESSET_CHECK(grad.sizes() == IntArrayRef(forward[0].sizes) && neg_log_likelihood.sizes() == IntArrayRef(forward[0].sizes) &&
                    log_alpha.sizes() == IntArrayRef(forward[1].sizes),
                "_ctc_loss_backward: gradient and losses of size ", forward[0].sizes, " and forward variables of size ", forward[1].sizes,
                " were required; got ", grad.sizes(), ", ", neg_log_likelihood.sizes(), " and ", log_alpha.sizes(), ".");
  return spec_like(log_probs, log_probs.sizes());
}

std::tuple<Tensor, Tensor> ctc_loss_raw_tensors(const Tensor& log_probs, const Tensor& targets, const Tensor& input_lengths,
                                                const Tensor& target_lengths, int64_t blank, bool zero_infinity) {
  return cresset::_ctc_loss(log_probs, targets, IntArrayRef(lengths(input_lengths, "input_lengths")),
                            IntArrayRef(lengths(target_lengths, "target_lengths")), blank, zero_infinity);
}

Tensor ctc_loss_backward_tensors(const Tensor& grad, const Tensor& log_probs, const Tensor& targets, const Tensor& input_lengths,
                                 const Tensor& target_lengths, const Tensor& neg_log_likelihood, const Tensor& log_alpha, int64_t blank,
                                 bool zero_infinity) {
  return cresset::_ctc_loss_backward(grad, log_probs, targets, IntArrayRef(lengths(input_lengths, "input_lengths")),
                                     IntArrayRef(lengths(target_lengths, "target_lengths")), neg_log_likelihood, log_alpha, blank,
                                     zero_infinity);
}

Tensor ctc_loss_lists(const Tensor& log_probs, const Tensor& targets, IntArrayRef input_lengths, IntArrayRef target_lengths, int64_t blank,
                      int64_t reduction, bool zero_infinity) {
  const bool batched = log_probs.dim() == 3;
  Tensor loss = std::get<0>(
      cresset::_ctc_loss(batched ? log_probs : log_probs.unsqueeze(1), targets, input_lengths, target_lengths, blank, zero_infinity));
  if (zero_infinity) loss = loss.masked_fill(cresset::eq(loss, std::numeric_limits<double>::infinity()), 0);
  if (reduction == kReduceMean) {
    const Tensor divisors = detail::empty_cpu({static_cast<int64_t>(target_lengths.size())}, kDouble);
    for (std::size_t n = 0; n < target_lengths.size(); ++n)
      divisors.mutable_data_ptr<double>()[n] = static_cast<double>(std::max<int64_t>(target_lengths[n], 1));
    return cresset::mean(loss / divisors.to(loss.scalar_type()).to(loss.device()));
  }
  if (reduction == kReduceSum) return cresset::sum(loss);
  return batched ? loss : loss.squeeze(0);
}

Tensor ctc_loss_tensors(const Tensor& log_probs, const Tensor& targets, const Tensor& input_lengths, const Tensor& target_lengths,
                        int64_t blank, int64_t reduction, bool zero_infinity) {
  return ctc_loss_lists(log_probs, targets, lengths(input_lengths, "input_lengths"), lengths(target_lengths, "target_lengths"), blank,
                        reduction, zero_infinity);
}

}  // namespace cresset::ops
