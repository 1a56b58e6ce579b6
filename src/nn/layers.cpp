// Layers with weights.
#include <cresset/nn/layers.h>

#include <cmath>
#include <ostream>

#include <cresset/ops/functions_creation.h>

namespace cresset::nn {

namespace {
// kaiming_uniform_(a = sqrt(5)) and the bias that goes with it: both uniform on ±1/sqrt(fan_in) (He et al. 2015).
Tensor uniform(IntArrayRef sizes, int64_t fan_in) {
  const double bound = fan_in > 0 ? 1.0 / std::sqrt(static_cast<double>(fan_in)) : 0;
  return cresset::empty(sizes, TensorOptions()).uniform_(-bound, bound);
}
}  // namespace

void LinearImpl::reset() {
  weight = register_parameter("weight", uniform({options.out_features(), options.in_features()}, options.in_features()));
  bias = register_parameter("bias", options.bias() ? uniform({options.out_features()}, options.in_features()) : Tensor(), options.bias());
}
void LinearImpl::reset_parameters() {
  const double bound = options.in_features() > 0 ? 1.0 / std::sqrt(static_cast<double>(options.in_features())) : 0;
  init::uniform_(weight, -bound, bound);
  if (bias.defined()) init::uniform_(bias, -bound, bound);
}
void LinearImpl::pretty_print(std::ostream& stream) const {
  stream << std::boolalpha << "torch::nn::Linear(in_features=" << options.in_features() << ", out_features=" << options.out_features()
         << ", bias=" << options.bias() << ")";
}

void BilinearImpl::reset() {
  const int64_t fan_in = options.in1_features();
  weight = register_parameter("weight", uniform({options.out_features(), options.in1_features(), options.in2_features()}, fan_in));
  bias = register_parameter("bias", options.bias() ? uniform({options.out_features()}, fan_in) : Tensor(), options.bias());
}

void BilinearImpl::pretty_print(std::ostream& stream) const {
  stream << std::boolalpha << "torch::nn::Bilinear(in1_features=" << options.in1_features() << ", in2_features=" << options.in2_features()
         << ", out_features=" << options.out_features() << ", bias=" << options.bias() << ")";
}

void PReLUImpl::reset() {
  weight = register_parameter("weight", cresset::full({options.num_parameters()}, options.init(), TensorOptions()));
}

EmbeddingImpl::EmbeddingImpl(EmbeddingOptions options_) : options(std::move(options_)) { EmbeddingImpl::reset(); }
void EmbeddingImpl::reset() {
  const int64_t rows = options.num_embeddings();
  if (auto& padding = options.padding_idx()) {
    CRESSET_CHECK(*padding < rows && *padding >= -rows, "Padding_idx must be within num_embeddings");
    if (*padding < 0) padding = rows + *padding;
  }
  if (options._weight().defined()) {
    CRESSET_CHECK(options._weight().sizes() == IntArrayRef({rows, options.embedding_dim()}),
                  "Shape of _weight does not match num_embeddings and embedding_dim");
    weight = register_parameter("weight", options._weight());
    return;
  }
  weight = register_parameter("weight", cresset::empty({rows, options.embedding_dim()}, TensorOptions()));
  reset_parameters();
}
void EmbeddingImpl::reset_parameters() {
  init::normal_(weight);
  const NoGradGuard no_grad;
  if (options.padding_idx()) weight[*options.padding_idx()].fill_(0);
}
Tensor EmbeddingImpl::forward(const Tensor& indices) const {
  functional::EmbeddingFuncOptions call;
  call.padding_idx(options.padding_idx()).max_norm(options.max_norm()).norm_type(options.norm_type());
  return functional::embedding(indices, weight, call.scale_grad_by_freq(options.scale_grad_by_freq()).sparse(options.sparse()));
}
void EmbeddingBagImpl::reset() {
  Tensor rows = options._weight();
  if (!rows.defined()) rows = init::normal_(cresset::empty({options.num_embeddings(), options.embedding_dim()}, TensorOptions()));
  weight = register_parameter("weight", rows);
}
Tensor EmbeddingBagImpl::forward(const Tensor& input, const Tensor& offsets, const Tensor& per_sample_weights) const {
  functional::EmbeddingBagFuncOptions call;
  call.offsets(offsets).per_sample_weights(per_sample_weights).max_norm(options.max_norm()).norm_type(options.norm_type());
  call.scale_grad_by_freq(options.scale_grad_by_freq()).mode(options.mode()).sparse(options.sparse());
  call.include_last_offset(options.include_last_offset()).padding_idx(options.padding_idx());
  return functional::embedding_bag(input, weight, call);
}

// --- convolutions

namespace detail {

void check_channels(int64_t in, int64_t out, int64_t groups) {
  CRESSET_CHECK_VALUE(in > 0 && groups > 0 && out > 0, "in_channels, groups and out_channels must be a positive integer.");
  CRESSET_CHECK_VALUE(in % groups == 0, "in_channels must be divisible by groups");
  CRESSET_CHECK_VALUE(out % groups == 0, "out_channels must be divisible by groups");
}

void reset_convolution(Module& module, Tensor& weight, Tensor& bias, std::vector<int64_t> sizes, bool with_bias, int64_t bias_size) {
  int64_t fan_in = 1;
  for (std::size_t d = 1; d < sizes.size(); ++d) fan_in *= sizes[d];
  weight = module.register_parameter("weight", uniform(sizes, fan_in));
  bias = module.register_parameter("bias", with_bias ? uniform({bias_size}, fan_in) : Tensor(), with_bias);
}

std::vector<int64_t> padding_widths(IntArrayRef kernel, IntArrayRef dilation, const IntArrayRef* padding, bool same) {
  std::vector<int64_t> widths;
  for (std::size_t d = kernel.size(); d-- > 0;) {
    const int64_t total = padding ? 2 * (*padding)[d] : same ? dilation[d] * (kernel[d] - 1) : 0;
    widths.push_back(total / 2);
    widths.push_back(total - total / 2);
  }
  return widths;
}

std::vector<int64_t> transposed_output_padding(const Tensor& input, const std::optional<IntArrayRef>& output_size, IntArrayRef given,
                                               IntArrayRef stride, IntArrayRef padding, IntArrayRef kernel, IntArrayRef dilation) {
  if (!output_size) return given.vec();
  const std::size_t dims = kernel.size();
  CRESSET_CHECK(output_size->size() == dims || output_size->size() == dims + 2, "output_size must have ", dims, " or ", dims + 2,
                " elements (got ", output_size->size(), ")");
  const IntArrayRef wanted = output_size->slice(output_size->size() - dims);
  std::vector<int64_t> out;
  for (std::size_t d = 0; d < dims; ++d) {
    const int64_t in = input.size(input.dim() - static_cast<int64_t>(dims - d));
    const int64_t least = (in - 1) * stride[d] - 2 * padding[d] + dilation[d] * (kernel[d] - 1) + 1;
    CRESSET_CHECK_VALUE(wanted[d] >= least && wanted[d] < least + stride[d], "requested an output size of ", wanted[d],
                        ", but valid sizes range from ", least, " to ", least + stride[d] - 1);
    out.push_back(wanted[d] - least);
  }
  return out;
}

}  // namespace detail

// --- norms

void LayerNormImpl::reset() {
  const IntArrayRef shape = options.normalized_shape();
  const bool affine = options.elementwise_affine();
  weight = register_parameter("weight", affine ? cresset::ones(shape, TensorOptions()) : Tensor(), affine);
  bias = register_parameter("bias", affine ? cresset::zeros(shape, TensorOptions()) : Tensor(), affine);
}
void LayerNormImpl::reset_parameters() {
  if (!options.elementwise_affine()) return;
  init::ones_(weight);
  init::zeros_(bias);
}
Tensor LayerNormImpl::forward(const Tensor& input) const {
  return functional::layer_norm(input,
                                functional::LayerNormFuncOptions(options.normalized_shape()).weight(weight).bias(bias).eps(options.eps()));
}

void GroupNormImpl::reset() {
  const bool affine = options.affine();
  weight = register_parameter("weight", affine ? cresset::ones({options.num_channels()}, TensorOptions()) : Tensor(), affine);
  bias = register_parameter("bias", affine ? cresset::zeros({options.num_channels()}, TensorOptions()) : Tensor(), affine);
}
Tensor GroupNormImpl::forward(const Tensor& input) const {
  return functional::group_norm(input, functional::GroupNormFuncOptions(options.num_groups()).weight(weight).bias(bias).eps(options.eps()));
}

}  // namespace cresset::nn
