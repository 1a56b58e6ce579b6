// The functions of nn::functional that are more than one operator.
#include <cresset/nn/functional.h>

#include <cmath>
#include <sstream>

#include <cresset/ops/functions_compare.h>
#include <cresset/ops/functions_concat.h>
#include <cresset/ops/functions_copy.h>
#include <cresset/ops/functions_creation.h>
#include <cresset/ops/functions_fractional_pool.h>
#include <cresset/ops/functions_grid.h>
#include <cresset/ops/functions_im2col.h>
#include <cresset/ops/functions_reduce.h>
#include <cresset/ops/functions_unpool.h>
#include <cresset/ops/functions_upsample.h>

namespace cresset::nn::functional {

namespace {
template <std::size_t D, class Convolution>
Tensor convolve(const Tensor& input, const Tensor& weight, const ConvFuncOptions<D>& o, const Convolution& convolution) {
  const auto bias = detail::given(o.bias());
  if (const auto* sizes = std::get_if<ExpandingArray<D>>(&o.padding()))
    return convolution(input, weight, bias, IntArrayRef(o.stride()), IntArrayRef(*sizes), IntArrayRef(o.dilation()), o.groups());
  const std::string_view name = std::holds_alternative<enumtype::kSame>(o.padding()) ? "same" : "valid";
  return convolution(input, weight, bias, IntArrayRef(o.stride()), name, IntArrayRef(o.dilation()), o.groups());
}

Tensor reduced(const Tensor& loss, const loss_reduction_t& reduction) {
  if (std::holds_alternative<enumtype::kMean>(reduction)) return loss.mean();
  return std::holds_alternative<enumtype::kSum>(reduction) ? loss.sum() : loss;
}

/// The p-norm of windows from the sum of powers that an average pooling gives.
Tensor norm_of_powers(const Tensor& average, double p, int64_t window) {
  return (average.sign() * cresset::relu(average.abs())).mul(static_cast<double>(window)).pow(1 / p);
}

void check_probability(double p) { CRESSET_CHECK(p >= 0 && p <= 1, "dropout probability has to be between 0 and 1, but got ", p); }

/// The last dimensions of the output, from their number or their ratio to the input's.
template <std::size_t D>
std::vector<int64_t> fractional_size(const Tensor& input, const FractionalMaxPoolOptions<D>& o) {
  CRESSET_CHECK(o.output_size() || o.output_ratio(), "fractional_max_pool", D,
                "d requires specifying either an output_size or an output_ratio");
  CRESSET_CHECK(!(o.output_size() && o.output_ratio()), "only one of output_size and output_ratio may be specified");
  if (o.output_size()) return IntArrayRef(*o.output_size()).vec();
  std::vector<int64_t> out;
  for (std::size_t d = 0; d < D; ++d) {
    const double ratio = (*o.output_ratio())[d];
    CRESSET_CHECK(ratio > 0 && ratio < 1, "output_ratio must be between 0 and 1 (got ", ratio, ")");
    out.push_back(static_cast<int64_t>(static_cast<double>(input.size(static_cast<int64_t>(d) - static_cast<int64_t>(D))) * ratio));
  }
  return out;
}
template <std::size_t D>
Tensor fractional_samples(const Tensor& input, const FractionalMaxPoolOptions<D>& o) {
  if (o._random_samples().defined()) return o._random_samples();
  const int64_t dims = D;
  const bool batched = input.dim() == dims + 2;
  return cresset::rand({batched ? input.size(0) : 1, input.size(-dims - 1), dims}, input.options().requires_grad(false));
}

/// The last dimensions of what a pooling with these options had as its input.
template <std::size_t D>
std::vector<int64_t> unpooled_size(const Tensor& input, const MaxUnpoolFuncOptions<D>& o) {
  std::vector<int64_t> least;
  for (std::size_t d = 0; d < D; ++d) {
    const int64_t in = input.size(static_cast<int64_t>(d) - static_cast<int64_t>(D));
    least.push_back((in - 1) * o.stride()[d] + o.kernel_size()[d] - 2 * o.padding()[d]);
  }
  if (!o.output_size()) return least;
  std::vector<int64_t> size = *o.output_size();
  if (size.size() == D + 2) size.erase(size.begin(), size.begin() + 2);
  CRESSET_CHECK(size.size() == D, "output_size should be a sequence containing ", D, " or ", D + 2, " elements, but it has a length of '",
                size.size(), "'");
  for (std::size_t d = 0; d < D; ++d) {
    const int64_t low = least[d] - o.stride()[d], high = least[d] + o.stride()[d];
    CRESSET_CHECK(low < size[d] && size[d] < high, "invalid output_size ", to_string(size), " (dim ", d, " must be between ", low, " and ",
                  high, ")");
  }
  return size;
}

std::string list_of(const std::vector<double>& values) {
  std::ostringstream out;
  for (std::size_t i = 0; i < values.size(); ++i) out << (i ? ", " : "[") << values[i];
  return out.str() + "]";
}
std::optional<double> scale(const std::vector<double>& factors, std::size_t i) {
  return i < factors.size() ? std::optional<double>(factors[i]) : std::nullopt;
}
}  // namespace

Tensor gumbel_softmax(const Tensor& logits, const GumbelSoftmaxFuncOptions& o) {
  const Tensor gumbels = (logits - cresset::empty_like(logits).exponential_(1).log()) / o.tau();
  const Tensor soft = cresset::softmax(gumbels, o.dim());
  if (!o.hard()) return soft;
  const Tensor index = std::get<1>(soft.max(o.dim(), true));
  const Tensor one = cresset::zeros_like(logits).scatter_(o.dim(), index, 1.0);
  return one - soft.detach() + soft;  // straight through: the values of `one`, the gradient of `soft`
}

Tensor rrelu(Tensor input, const RReLUFuncOptions& o) {
  CRESSET_CHECK(o.lower() <= o.upper(), "rrelu: lower must not be greater than upper; got ", o.lower(), " and ", o.upper());
  if (!o.training()) {
    const double slope = (o.lower() + o.upper()) / 2;
    return o.inplace() ? cresset::leaky_relu_(input, slope) : cresset::leaky_relu(input, slope);
  }
  Tensor factor;
  {
    const NoGradGuard no_grad;
    // One number for each element that is not positive, in order.
    const Tensor below = input.le(0);
    const Tensor slopes = cresset::empty({below.sum().item<int64_t>()}, input.options().dtype(kDouble)).uniform_(o.lower(), o.upper());
    factor = cresset::ones_like(input).masked_scatter_(below, slopes.to(input.scalar_type()));
  }
  return o.inplace() ? input.mul_(factor) : input * factor;
}

Tensor alpha_dropout(Tensor input, const AlphaDropoutFuncOptions& o) {
  check_probability(o.p());
  const Tensor out = cresset::alpha_dropout(input, o.p(), o.training());
  return o.inplace() ? input.copy_(out) : out;
}
Tensor feature_alpha_dropout(Tensor input, const FeatureAlphaDropoutFuncOptions& o) {
  check_probability(o.p());
  if (o.p() == 0 || !o.training() || input.numel() == 0) return input;
  if (o.p() == 1) return o.inplace() ? input.mul_(0) : input * 0;
  CRESSET_CHECK(input.dim() >= 2, "Feature dropout requires at least 2 dimensions in the input");
  std::vector<int64_t> shape(static_cast<std::size_t>(input.dim()), 1);
  shape[0] = input.size(0);
  shape[1] = input.size(1);
  const Tensor kept = cresset::empty(shape, input.options().requires_grad(false)).bernoulli_(1 - o.p());
  // The value that a saturated unit has, and the scale that restores mean and variance (Klambauer et al. 2017).
  const double alpha = 1.7580993408473766;
  const double scale = 1 / std::sqrt((alpha * alpha * o.p() + 1) * (1 - o.p()));
  const Tensor shift = (kept - 1).mul_(alpha * scale).add_(alpha * scale * o.p());
  const Tensor factor = kept * scale;
  return o.inplace() ? input.mul_(factor).add_(shift) : input * factor + shift;
}

#define CRESSET_NN_CONVOLUTION(D)                                                                     \
  Tensor conv##D##d(const Tensor& input, const Tensor& weight, const Conv##D##dFuncOptions& o) {      \
    return convolve<D>(input, weight, o, [](const auto&... a) { return cresset::conv##D##d(a...); }); \
  }
CRESSET_NN_CONVOLUTION(1)
CRESSET_NN_CONVOLUTION(2)
CRESSET_NN_CONVOLUTION(3)
#undef CRESSET_NN_CONVOLUTION

Tensor fold(const Tensor& input, const FoldFuncOptions& o) {
  CRESSET_CHECK(input.dim() == 2 || input.dim() == 3, "Input Error: Only unbatched (2D) or batched (3D) input Tensors are supported (got ",
                input.dim(), "D)");
  return cresset::col2im(input, o.output_size(), o.kernel_size(), o.dilation(), o.padding(), o.stride());
}
Tensor unfold(const Tensor& input, const UnfoldFuncOptions& o) {
  return cresset::im2col(input, o.kernel_size(), o.dilation(), o.padding(), o.stride());
}

Tensor local_response_norm(const Tensor& input, const LocalResponseNormOptions& o) {
  CRESSET_CHECK(input.dim() >= 3, "Expected 3D or higher dimensionality input (got ", input.dim(), " dimensions)");
  // The mean of squares over `size` neighbouring channels, as a pooling over the channels of a tensor of one channel.
  const std::vector<int64_t> sizes = input.sizes().vec();
  const Tensor squares = input.mul(input).reshape({sizes[0], 1, sizes[1], -1});
  const Tensor padded = cresset::pad(squares, {0, 0, o.size() / 2, (o.size() - 1) / 2});
  const Tensor mean = cresset::avg_pool2d(padded, {o.size(), 1}, {1, 1}).reshape(sizes);
  return input / mean.mul(o.alpha()).add(o.k()).pow(o.beta());
}

Tensor detail::cross_map_lrn(const Tensor& input, const CrossMapLRN2dOptions& o) {
  const int64_t window = (o.size() - 1) / 2 * 2 + 1;
  const double alpha = o.alpha() * static_cast<double>(window) / static_cast<double>(o.size());
  return local_response_norm(input, LocalResponseNormOptions(window).alpha(alpha).beta(o.beta()).k(o.k()));
}

Tensor normalize(const Tensor& input, const NormalizeFuncOptions& o) {
  if (!o.out()) return input / input.norm(o.p(), {o.dim()}, true).clamp_min(o.eps()).expand_as(input);
  Tensor out = *o.out();
  return cresset::div_out(out, input, input.norm(o.p(), {o.dim()}, true).clamp_min_(o.eps()).expand_as(input));
}

std::vector<int64_t> adaptive_size(const Tensor& input, ArrayRef<std::optional<int64_t>> given) {
  CRESSET_CHECK(input.dim() > static_cast<int64_t>(given.size()), "Input dimension should be at least ", given.size() + 1);
  std::vector<int64_t> out;
  for (std::size_t i = 0; i < given.size(); ++i)
    out.push_back(given[i].value_or(input.size(input.dim() - static_cast<int64_t>(given.size()) + static_cast<int64_t>(i))));
  return out;
}

Tensor lp_pool1d(const Tensor& input, const LPPool1dFuncOptions& o) {
  const Tensor average = cresset::avg_pool1d(input.pow(o.norm_type()), o.kernel_size(), o.stride(), {0}, o.ceil_mode());
  return norm_of_powers(average, o.norm_type(), o.kernel_size()[0]);
}
Tensor lp_pool2d(const Tensor& input, const LPPool2dFuncOptions& o) {
  const Tensor average = cresset::avg_pool2d(input.pow(o.norm_type()), o.kernel_size(), o.stride(), {0, 0}, o.ceil_mode());
  return norm_of_powers(average, o.norm_type(), o.kernel_size()[0] * o.kernel_size()[1]);
}
Tensor lp_pool3d(const Tensor& input, const LPPool3dFuncOptions& o) {
  const Tensor average = cresset::avg_pool3d(input.pow(o.norm_type()), o.kernel_size(), o.stride(), {0, 0, 0}, o.ceil_mode());
  return norm_of_powers(average, o.norm_type(), o.kernel_size()[0] * o.kernel_size()[1] * o.kernel_size()[2]);
}

std::tuple<Tensor, Tensor> fractional_max_pool2d_with_indices(const Tensor& input, const FractionalMaxPool2dFuncOptions& o) {
  return cresset::fractional_max_pool2d(input, o.kernel_size(), fractional_size(input, o), fractional_samples(input, o));
}
std::tuple<Tensor, Tensor> fractional_max_pool3d_with_indices(const Tensor& input, const FractionalMaxPool3dFuncOptions& o) {
  return cresset::fractional_max_pool3d(input, o.kernel_size(), fractional_size(input, o), fractional_samples(input, o));
}
Tensor max_unpool1d(const Tensor& input, const Tensor& indices, const MaxUnpool1dFuncOptions& o) {
  const std::vector<int64_t> size = unpooled_size(input, o);
  return cresset::max_unpool2d(input.unsqueeze(-1), indices.unsqueeze(-1), {size[0], 1}).squeeze(-1);
}
Tensor max_unpool2d(const Tensor& input, const Tensor& indices, const MaxUnpool2dFuncOptions& o) {
  return cresset::max_unpool2d(input, indices, unpooled_size(input, o));
}
Tensor max_unpool3d(const Tensor& input, const Tensor& indices, const MaxUnpool3dFuncOptions& o) {
  return cresset::max_unpool3d(input, indices, unpooled_size(input, o), o.stride(), o.padding());
}

Tensor pad(const Tensor& input, const PadFuncOptions& o) {
  static constexpr std::string_view modes[] = {"constant", "reflect", "replicate", "circular"};
  const bool constant = std::holds_alternative<enumtype::kConstant>(o.mode());
  return cresset::pad(input, o.pad(), modes[o.mode().index()], constant ? std::optional<double>(o.value()) : std::nullopt);
}

Tensor interpolate(const Tensor& input, const InterpolateFuncOptions& o) {
  const int64_t dims = input.dim() - 2;
  const std::string mode = enumtype::get_enum_name(o.mode()).substr(1);
  CRESSET_CHECK(dims >= 1 && dims <= 3, "Input Error: Only 3D, 4D and 5D input Tensors supported (got ", input.dim(),
                "D) for the modes: nearest | linear | bilinear | bicubic | trilinear (got k", mode, ")");
  CRESSET_CHECK(!o.align_corners().has_value() || (mode != "Nearest" && mode != "Area"),
                "align_corners option can only be set with the interpolating modes: linear | bilinear | bicubic | trilinear");
  CRESSET_CHECK(o.size().has_value() || o.scale_factor().has_value(), "either size or scale_factor should be defined");
  CRESSET_CHECK(!o.size().has_value() || !o.scale_factor().has_value(), "only one of size or scale_factor should be defined");
  std::vector<int64_t> size = o.size().value_or(std::vector<int64_t>());
  std::vector<double> factors = o.scale_factor().value_or(std::vector<double>());
  if (size.size() == 1) size.resize(static_cast<std::size_t>(dims), size.front());
  if (factors.size() == 1) factors.resize(static_cast<std::size_t>(dims), factors.front());
  CRESSET_CHECK(size.empty() || size.size() == static_cast<std::size_t>(dims), "Input and output must have the same number of spatial ",
                "dimensions, but got input with spatial dimensions of ", to_string(input.sizes().slice(2)), " and output size of ",
                to_string(size), ".");
  CRESSET_CHECK(factors.empty() || factors.size() == static_cast<std::size_t>(dims), "scale_factor shape must match input shape. Input is ",
                dims, "D, scale_factor size is ", list_of(factors));
  if (size.empty()) {
    for (int64_t i = 0; i < dims; ++i)
      size.push_back(static_cast<int64_t>(std::floor(static_cast<double>(input.size(i + 2)) * factors[static_cast<std::size_t>(i)])));
    // Recomputed factors are the quotients of the sizes, which is what operators without factors use.
    if (o.recompute_scale_factor().value_or(false)) factors.clear();
  }
  const bool align = o.align_corners().value_or(false);
  const auto a = scale(factors, 0), b = scale(factors, 1), c = scale(factors, 2);
  if (mode == "Nearest") {
    if (dims == 1) return cresset::upsample_nearest1d(input, size, a);
    return dims == 2 ? cresset::upsample_nearest2d(input, size, a, b) : cresset::upsample_nearest3d(input, size, a, b, c);
  }
  if (mode == "NearestExact") {
    if (dims == 1) return cresset::_upsample_nearest_exact1d(input, size, a);
    return dims == 2 ? cresset::_upsample_nearest_exact2d(input, size, a, b) : cresset::_upsample_nearest_exact3d(input, size, a, b, c);
  }
  if (mode == "Area") {
    if (dims == 1) return cresset::adaptive_avg_pool1d(input, size);
    return dims == 2 ? cresset::adaptive_avg_pool2d(input, size) : cresset::adaptive_avg_pool3d(input, size);
  }
  const bool fits =
      (mode == "Linear" && dims == 1) || ((mode == "Bilinear" || mode == "Bicubic") && dims == 2) || (mode == "Trilinear" && dims == 3);
  CRESSET_CHECK(fits, "Got ", input.dim(), "D input, but the mode ", mode, " needs another number of dimensions");
  CRESSET_CHECK(!o.antialias() || dims == 2, "Anti-alias option is only supported for bilinear and bicubic modes");
  if (dims == 1) return cresset::upsample_linear1d(input, size, align, a);
  if (dims == 3) return cresset::upsample_trilinear3d(input, size, align, a, b, c);
  if (mode == "Bilinear")
    return o.antialias() ? cresset::_upsample_bilinear2d_aa(input, size, align, a, b)
                         : cresset::upsample_bilinear2d(input, size, align, a, b);
  return o.antialias() ? cresset::_upsample_bicubic2d_aa(input, size, align, a, b) : cresset::upsample_bicubic2d(input, size, align, a, b);
}

Tensor grid_sample(const Tensor& input, const Tensor& grid, const GridSampleFuncOptions& o) {
  return cresset::grid_sampler(input, grid, static_cast<int64_t>(o.mode().index()), static_cast<int64_t>(o.padding_mode().index()),
                               o.align_corners().value_or(false));
}
Tensor affine_grid(const Tensor& theta, IntArrayRef size, bool align_corners) {
  CRESSET_CHECK(theta.is_floating_point(), "Expected theta to have floating point type, but got ", toString(theta.scalar_type()));
  CRESSET_CHECK(size.size() == 4 || size.size() == 5,
                "affine_grid only supports 4D and 5D sizes, for 2D and 3D affine transforms, respectively. Got size ", to_string(size));
  const auto dims = static_cast<int64_t>(size.size()) - 2;
  CRESSET_CHECK(theta.dim() == 3 && theta.size(-2) == dims && theta.size(-1) == dims + 1, "Expected a batch of ", dims,
                "D affine matrices of shape Nx", dims, "x", dims + 1, " for size ", to_string(size), ". Got ", to_string(theta.sizes()),
                ".");
  for (const int64_t n : size) CRESSET_CHECK(n > 0, "Expected non-zero, positive output size. Got ", to_string(size));
  return cresset::affine_grid_generator(theta, size, align_corners);
}

Tensor embedding(const Tensor& input, const Tensor& weight, const EmbeddingFuncOptions& o) {
  int64_t padding = o.padding_idx().value_or(-1);
  if (o.padding_idx()) {
    CRESSET_CHECK(padding < weight.size(0) && padding >= -weight.size(0), "Padding_idx must be within num_embeddings");
    if (padding < 0) padding += weight.size(0);
  }
  if (o.max_norm()) {
    const NoGradGuard no_grad;
    Tensor rows = weight;
    cresset::embedding_renorm_(rows, input, *o.max_norm(), o.norm_type());
  }
  return cresset::embedding(weight, input, padding, o.scale_grad_by_freq(), o.sparse());
}

Tensor embedding_bag(const Tensor& input, const Tensor& weight, const EmbeddingBagFuncOptions& o) {
  Tensor indices = input, offsets = o.offsets(), weights = o.per_sample_weights();
  CRESSET_CHECK(!weights.defined() || weights.sizes() == input.sizes(), "embedding_bag: If per_sample_weights (",
                to_string(weights.sizes()), ") is not null, then it must have the same shape as the input (", to_string(input.sizes()),
                ")");
  CRESSET_CHECK(input.dim() == 1 || input.dim() == 2, "input has to be 1D or 2D Tensor, but got Tensor of dimension ", input.dim());
  if (input.dim() == 2) {
    CRESSET_CHECK(!offsets.defined(),
                  "If input is 2D, then offsets has to be null, as input is treated is a mini-batch of fixed length sequences. However, "
                  "found offsets of type Tensor");
    offsets = cresset::arange(0, input.numel(), input.size(1), input.options());
    indices = input.reshape({-1});
    if (weights.defined()) weights = weights.reshape({-1});
  }
  CRESSET_CHECK(offsets.defined(), "offsets has to be a 1D Tensor but got null");
  CRESSET_CHECK(offsets.dim() == 1, "offsets has to be a 1D Tensor");
  const bool sums = std::holds_alternative<enumtype::kSum>(o.mode());
  CRESSET_CHECK(!weights.defined() || sums,
                "embedding_bag: per_sample_weights was not null. per_sample_weights is only supported for mode='kSum' (got mode='",
                enumtype::get_enum_name(o.mode()), "').Please open a feature request on GitHub.");
  if (o.max_norm()) {
    const NoGradGuard no_grad;
    Tensor rows = weight;
    cresset::embedding_renorm_(rows, indices, *o.max_norm(), o.norm_type());
  }
  return std::get<0>(cresset::embedding_bag(weight, indices, offsets, o.scale_grad_by_freq(), static_cast<int64_t>(o.mode().index()),
                                            o.sparse(), detail::given(weights), o.include_last_offset(), o.padding_idx()));
}

Tensor kl_div(const Tensor& input, const Tensor& target, const KLDivLossOptions& o) {
  const std::string reduction = enumtype::get_enum_name(o.reduction()).substr(1);
  const int64_t number = reduction == "None" ? 0 : reduction == "Mean" ? 1 : 2;
  const Tensor loss = cresset::kl_div(input, target, number, o.log_target());
  return reduction == "BatchMean" && input.dim() != 0 ? loss / input.size(0) : loss;
}

Tensor triplet_margin_with_distance_loss(const Tensor& anchor, const Tensor& positive, const Tensor& negative,
                                         const TripletMarginWithDistanceLossOptions& o) {
  const auto distance = [&](const Tensor& a, const Tensor& b) {
    return o.distance_function() ? (*o.distance_function())(a, b) : cresset::pairwise_distance(a, b);
  };
  const Tensor near = distance(anchor, positive);
  Tensor far = distance(anchor, negative);
  if (o.swap()) far = cresset::min(far, distance(positive, negative));
  return reduced((near - far).add(o.margin()).clamp_min(0), o.reduction());
}

Tensor multilabel_soft_margin_loss(const Tensor& input, const Tensor& target, const MultiLabelSoftMarginLossOptions& o) {
  Tensor loss = -(target * cresset::log_sigmoid(input) + (1 - target) * cresset::log_sigmoid(-input));
  if (o.weight().defined()) loss = loss * o.weight();
  return reduced(loss.mean(-1), o.reduction());
}

}  // namespace cresset::nn::functional
