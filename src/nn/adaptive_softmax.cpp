// Softmax over clusters of classes.
#include <cresset/nn/adaptive_softmax.h>

#include <algorithm>
#include <cmath>
#include <ostream>

#include <cresset/ops/functions_compare.h>
#include <cresset/ops/functions_concat.h>

namespace cresset::nn {

namespace {
void check_cutoffs(const AdaptiveLogSoftmaxWithLossOptions& o) {
  const std::vector<int64_t>& c = o.cutoffs();
  CRESSET_CHECK(
      !c.empty() && std::is_sorted(c.begin(), c.end()) && c.front() > 0 && c.back() <= o.n_classes() - 1 &&
          std::adjacent_find(c.begin(), c.end()) == c.end(),
      "cutoffs should be a sequence of unique, positive integers sorted in an increasing order, where each value is between 1 and "
      "n_classes-1");
  CRESSET_CHECK(o.div_value() != 0, "div_value should not be equal to 0");
}
}  // namespace

void AdaptiveLogSoftmaxWithLossImpl::reset() {
  check_cutoffs(options);
  cutoffs = options.cutoffs();
  cutoffs.push_back(options.n_classes());
  shortlist_size = cutoffs.front();
  n_clusters = static_cast<int64_t>(cutoffs.size()) - 1;
  head_size = shortlist_size + n_clusters;
  head = register_module("head", Linear(LinearOptions(options.in_features(), head_size).bias(options.head_bias())));
  tail = register_module("tail", ModuleList());
  for (int64_t i = 0; i < n_clusters; ++i) {
    const auto at = static_cast<std::size_t>(i);
    const auto projected = static_cast<int64_t>(static_cast<double>(options.in_features()) / std::pow(options.div_value(), i + 1));
    tail->push_back(Sequential(Linear(LinearOptions(options.in_features(), projected).bias(false)),
                               Linear(LinearOptions(projected, cutoffs[at + 1] - cutoffs[at]).bias(false))));
  }
}
void AdaptiveLogSoftmaxWithLossImpl::reset_parameters() {
  head->reset_parameters();
  for (std::size_t i = 0; i < tail->size(); ++i)
    for (std::size_t layer : {0, 1}) tail->at<SequentialImpl>(i).at<LinearImpl>(layer).reset_parameters();
}
void AdaptiveLogSoftmaxWithLossImpl::pretty_print(std::ostream& stream) const { stream << "torch::nn::AdaptiveLogSoftmaxWithLoss"; }

Tensor AdaptiveLogSoftmaxWithLossImpl::tail_log_prob(int64_t cluster, const Tensor& input) {
  return cresset::log_softmax(tail->at<SequentialImpl>(static_cast<std::size_t>(cluster)).forward(input), 1);
}

ASMoutput AdaptiveLogSoftmaxWithLossImpl::forward(const Tensor& input, const Tensor& target) {
  const bool batched = target.dim() > 0;
  CRESSET_CHECK(input.dim() == (batched ? 2 : 1), batched ? "2D" : "1D",
                " target/input mismatch: input and target should have the same batch");
  const Tensor x = batched ? input : input.unsqueeze(0), classes = batched ? target : target.unsqueeze(0);
  CRESSET_CHECK(x.size(0) == classes.size(0), "Input and target should have the same size in the batch dimension.");
  const Tensor inside = cresset::logical_and(classes.ge(0), classes.lt(options.n_classes()));
  CRESSET_CHECK(inside.all().item<bool>(), "Target values should be in [0, ", options.n_classes() - 1, "], but values in range [",
                classes.min().item<int64_t>(), ", ", classes.max().item<int64_t>(), "] were found. ");

  // What the head says of each row: its class, or the cluster that has it.
  Tensor in_head = classes.clone();
  for (int64_t i = 0; i < n_clusters; ++i) in_head.masked_fill_(classes.ge(cutoffs[static_cast<std::size_t>(i)]), shortlist_size + i);
  Tensor output = cresset::log_softmax(head(x), 1).gather(1, in_head.unsqueeze(1)).squeeze(1);
  for (int64_t i = 0; i < n_clusters; ++i) {
    const Tensor rows = in_head.eq(shortlist_size + i).nonzero().squeeze(1);
    if (rows.numel() == 0) continue;
    const Tensor relative = classes.index_select(0, rows) - cutoffs[static_cast<std::size_t>(i)];
    const Tensor local = tail_log_prob(i, x.index_select(0, rows)).gather(1, relative.unsqueeze(1)).squeeze(1);
    output = output.index_add(0, rows, local);
  }
  const double loss = (-output).mean().item<double>();
  return {batched ? output : output.squeeze(0), loss};
}

Tensor AdaptiveLogSoftmaxWithLossImpl::full_log_prob(const Tensor& input, const Tensor& head_output) {
  const Tensor of_head = cresset::log_softmax(head_output, 1);
  std::vector<Tensor> parts = {of_head.narrow(1, 0, shortlist_size)};
  for (int64_t i = 0; i < n_clusters; ++i) parts.push_back(tail_log_prob(i, input) + of_head.narrow(1, shortlist_size + i, 1));
  return cresset::cat(parts, 1);
}
Tensor AdaptiveLogSoftmaxWithLossImpl::log_prob(const Tensor& input) { return full_log_prob(input, head(input)); }
Tensor AdaptiveLogSoftmaxWithLossImpl::predict(const Tensor& input) {
  const Tensor head_output = head(input);
  Tensor output = head_output.argmax(1);
  const Tensor rows = output.ge(shortlist_size).nonzero().squeeze(1);
  if (rows.numel() == 0) return output;
  const Tensor classes = full_log_prob(input.index_select(0, rows), head_output.index_select(0, rows)).argmax(1);
  return output.index_copy(0, rows, classes);
}

}  // namespace cresset::nn
