// Softmax over many classes of very different frequency, in clusters (Grave et al. 2017).
#pragma once

#include <cresset/nn/containers.h>
#include <cresset/nn/layers.h>

namespace cresset::nn {

/// The log-probability of each target, and the mean of their negatives.
struct ASMoutput {
  Tensor output;
  double loss;
};

/// The head has the frequent classes and one entry for each tail; tail i first projects to in_features / div_value^(i+1).
class CRESSET_API AdaptiveLogSoftmaxWithLossImpl : public Cloneable<AdaptiveLogSoftmaxWithLossImpl> {
 public:
  AdaptiveLogSoftmaxWithLossImpl(int64_t in_features, int64_t n_classes, std::vector<int64_t> cutoffs)
      : AdaptiveLogSoftmaxWithLossImpl(AdaptiveLogSoftmaxWithLossOptions(in_features, n_classes, std::move(cutoffs))) {}
  explicit AdaptiveLogSoftmaxWithLossImpl(AdaptiveLogSoftmaxWithLossOptions options_) : options(std::move(options_)) {
    AdaptiveLogSoftmaxWithLossImpl::reset();
  }
  void reset() override;
  void reset_parameters();
  void pretty_print(std::ostream& stream) const override;
  /// Input (N, in_features) or (in_features), targets (N) or ().
  ASMoutput forward(const Tensor& input, const Tensor& target);
  /// (N, n_classes).
  Tensor log_prob(const Tensor& input);
  /// The class of highest probability of each row; rows that stay in the head do not run through the tails.
  Tensor predict(const Tensor& input);

  AdaptiveLogSoftmaxWithLossOptions options;
  /// The options' cutoffs and n_classes.
  std::vector<int64_t> cutoffs;
  int64_t shortlist_size = 0, n_clusters = 0, head_size = 0;
  Linear head = nullptr;
  ModuleList tail = nullptr;

 private:
  Tensor tail_log_prob(int64_t cluster, const Tensor& input);
  Tensor full_log_prob(const Tensor& input, const Tensor& head_output);
};
CRESSET_MODULE(AdaptiveLogSoftmaxWithLoss);

}  // namespace cresset::nn
