// Attention and transformers. Expected numbers are those of PyTorch's Python modules with the same weights, in double.
#include <numeric>

#include <gtest/gtest.h>

#include <cresset/cresset.h>
#include <cresset/serialize.h>

#include "error_of.h"

using namespace cresset;
namespace F = cresset::nn::functional;

namespace {

/// cos(0.3 i), i from `start`.
Tensor wave(std::vector<int64_t> sizes, int64_t start = 0) {
  const int64_t n = std::accumulate(sizes.begin(), sizes.end(), int64_t{1}, std::multiplies<>());
  return (arange(start, start + n, kDouble) * 0.3).cos().reshape(sizes);
}
/// The module in double, for inference, with weights 0.3 sin(0.7 i), i running through all parameters.
template <class Holder>
Holder filled(Holder module) {
  const NoGradGuard no_grad;
  module->to(kDouble);
  module->eval();
  int64_t n = 0;
  for (Tensor& p : module->parameters()) {
    p.copy_(((arange(n, n + p.numel(), kDouble) * 0.7).sin() * 0.3).reshape(p.sizes()));
    n += p.numel();
  }
  return module;
}
void expect(const Tensor& got, const std::vector<double>& wanted, double tolerance = 1e-8) {
  const Tensor flat = got.detach().flatten().contiguous();
  ASSERT_EQ(flat.numel(), static_cast<int64_t>(wanted.size()));
  for (std::size_t i = 0; i < wanted.size(); ++i) EXPECT_NEAR(flat.data_ptr<double>()[i], wanted[i], tolerance) << "element " << i;
}
Tensor first_feature(const Tensor& t) { return t.select(-1, 0); }

nn::TransformerEncoderLayerOptions encoder_layer() { return nn::TransformerEncoderLayerOptions(4, 2).dim_feedforward(8); }

}  // namespace

TEST(Attention, AsInPython) {
  nn::MultiheadAttention attention = filled(nn::MultiheadAttention(4, 2));
  const Tensor q = wave({3, 2, 4}), k = wave({5, 2, 4}, 50);
  const auto [out, weights] = attention(q, k, k);
  expect(out.sum(-1), {-0.731590947, -0.70637671, -0.700211359, -0.706596697, -0.732823684, -0.726135535});
  expect(weights[0][0], {0.22961224, 0.191629444, 0.172436136, 0.243199846, 0.163122334});

  const auto [same, none] = attention(q, k, k, Tensor(), false);
  EXPECT_FALSE(none.defined());
  expect(same - out, std::vector<double>(24, 0));

  const Tensor mask = zeros({3, 5}, kBool), padding = zeros({2, 5}, kBool);
  mask[0].slice(0, 3, 5).fill_(true);
  padding[0][2] = true;
  padding[1][1] = true;
  padding[1][4] = true;
  const auto [masked, masked_weights] = attention(q, k, k, padding, true, mask);
  expect(masked.sum(-1), {-0.740953088, -0.789492222, -0.693893233, -0.747861464, -0.733970251, -0.750988537});
  expect(masked_weights[1][0], {0.497589883, 0, 0.502410117, 0, 0});
  expect(std::get<0>(attention(q, k, k, padding, false, mask)) - masked, std::vector<double>(24, 0));

  const auto [unbatched, by_head] = attention(q.select(1, 0), k.select(1, 0), k.select(1, 0), Tensor(), true, Tensor(), false);
  expect(unbatched.sum(-1), {-0.731590947, -0.700211359, -0.732823684});
  EXPECT_EQ(by_head.sizes(), (IntArrayRef{2, 3, 5}));
  // Equal inputs take one product for the three projections.
  expect(std::get<0>(attention(q, q, q)) - std::get<0>(attention(q, q.clone(), q.clone())), std::vector<double>(24, 0), 1e-14);
}

TEST(Attention, KeysAndValuesOfOtherSizesAndExtraPositions) {
  nn::MultiheadAttention attention =
      filled(nn::MultiheadAttention(nn::MultiheadAttentionOptions(4, 2).kdim(3).vdim(2).add_bias_kv(true).add_zero_attn(true)));
  const auto [out, weights] = attention(wave({3, 2, 4}), wave({5, 2, 3}, 9), wave({5, 2, 2}, 7));
  expect(out.sum(-1), {0.715689247, 0.717113706, 0.711765817, 0.717560972, 0.715976327, 0.721196222});
  EXPECT_EQ(weights.sizes(), (IntArrayRef{2, 3, 7}));
  EXPECT_EQ(attention->named_parameters().keys(),
            (std::vector<std::string>{"q_proj_weight", "k_proj_weight", "v_proj_weight", "in_proj_bias", "bias_k", "bias_v",
                                      "out_proj.weight", "out_proj.bias"}));
}

TEST(Attention, WrongInputIsRefused) {
  nn::MultiheadAttention attention(4, 2);
  const Tensor x = zeros({3, 2, 4});
  EXPECT_EQ(error_of([] { nn::MultiheadAttention(4, 3); }), "embed_dim must be divisible by num_heads");
  EXPECT_EQ(error_of([] { nn::MultiheadAttention(0, 3); }),
            "embed_dim and num_heads must be greater than 0, got embed_dim=0 and num_heads=3 instead");
  EXPECT_EQ(error_of([&] { attention(x[0][0], x, x); }), "query should be unbatched 2D or batched 3D tensor but received 1-D query tensor");
  EXPECT_EQ(error_of([&] { attention(x, x, x, Tensor(), true, zeros({2, 2}, kBool)); }),
            "The shape of the 2D attn_mask is [2, 2], but should be [3, 3].");
  EXPECT_EQ(error_of([&] { attention(x, x, x, zeros({3, 3}, kBool)); }), "expecting key_padding_mask shape of [2, 3], but got [3, 3]");
  EXPECT_EQ(error_of([&] { attention(x, x, x, Tensor(), true, zeros({3, 3}, kInt)); }),
            "only bool and floating types of attn_mask are supported; got Int");
  EXPECT_EQ(error_of([&] { attention(x, x, zeros({2, 2, 4})); }), "key shape [3, 2, 4] does not match value shape [2, 2, 4]");
  EXPECT_EQ(error_of([&] { attention(zeros({3, 2, 6}), x, x); }), "was expecting embedding dimension of 4, but got 6");
}

TEST(Transformer, Layers) {
  const Tensor src = wave({3, 2, 4}), tgt = wave({2, 2, 4}, 11);
  nn::TransformerEncoderLayer layer = filled(nn::TransformerEncoderLayer(encoder_layer()));
  expect(first_feature(layer(src)), {-0.620146489, -0.580290917, -0.607538782, -0.733349913, -0.767370292, -0.660808232});
  const Tensor causal = nn::TransformerImpl::generate_square_subsequent_mask(3).to(kDouble);
  expect(first_feature(layer(src, causal)), {-0.589570616, -0.586712995, -0.616442469, -0.748263713, -0.767370292, -0.660808232});

  const std::vector<double> with_gelu = {-0.612753506, -0.571376784, -0.599817138, -0.730447612, -0.766245403, -0.654826233};
  expect(first_feature(filled(nn::TransformerEncoderLayer(encoder_layer().activation(nn::kGELU)))(src)), with_gelu);
  const std::function<Tensor(const Tensor&)> own = [](const Tensor& x) { return F::gelu(x); };
  expect(first_feature(filled(nn::TransformerEncoderLayer(encoder_layer().activation(own)))(src)), with_gelu);

  auto decoder = filled(nn::TransformerDecoderLayer(nn::TransformerDecoderLayerOptions(4, 2).dim_feedforward(8)));
  expect(first_feature(decoder(tgt, src)), {-0.250994691, -0.261869281, -0.2362572, -0.0787183665});
}

TEST(Transformer, StacksAndBoth) {
  const Tensor src = wave({3, 2, 4}), tgt = wave({2, 2, 4}, 11);
  auto encoder = filled(nn::TransformerEncoder(
      nn::TransformerEncoderOptions(encoder_layer(), 2).norm(nn::AnyModule(nn::LayerNorm(nn::LayerNormOptions({4}))))));
  expect(first_feature(encoder(src)), {-0.515770808, -0.518144643, -0.518510303, -0.506381195, -0.505248185, -0.513950412});

  nn::Transformer both = filled(nn::Transformer(nn::TransformerOptions(4, 2, 1, 2).dim_feedforward(8)));
  const auto names = both->named_parameters().keys();
  EXPECT_EQ(names.size(), 52u);
  EXPECT_EQ(names.front(), "encoder.layers.0.self_attn.in_proj_weight");
  EXPECT_EQ(names.back(), "decoder.norm.bias");
  expect(first_feature(both(src, tgt)), {0.157257705, 0.157319722, 0.157599361, 0.157190384});
  const Tensor padding = zeros({2, 3}, kBool), causal = nn::TransformerImpl::generate_square_subsequent_mask(2).to(kDouble);
  padding[0][2] = true;
  expect(first_feature(both(src, tgt, Tensor(), causal, Tensor(), padding, Tensor(), padding)),
         {0.157412289, 0.157305286, 0.157583582, 0.157190407});

  first_feature(both(src, tgt)).sum().backward();
  const Tensor gradient = both->named_parameters()["decoder.layers.0.multihead_attn.in_proj_weight"].grad().sum(1);
  expect(gradient.slice(0, 8, 12), {-0.0109297549, -0.0131912889, -0.00924885196, -0.000956374813});

  // Copies and files have the same values; AnyModule adds the masks.
  auto copy = std::dynamic_pointer_cast<nn::TransformerImpl>(both->clone());
  expect(copy->forward(src, tgt) - both(src, tgt), std::vector<double>(16, 0));
  nn::Transformer read(nn::TransformerOptions(4, 2, 1, 2).dim_feedforward(8));
  read->to(kDouble);
  read->eval();
  std::stringstream file;
  save(both, file);
  load(read, file);
  expect(nn::AnyModule(read).forward(src, tgt) - both(src, tgt), std::vector<double>(16, 0));
}

TEST(Transformer, TrainsWithDropoutAndOwnParts) {
  manual_seed(0);
  nn::Transformer both(nn::TransformerOptions(4, 2, 1, 1).dim_feedforward(8).dropout(0.5));
  const Tensor src = wave({3, 2, 4}).to(kFloat), tgt = wave({2, 2, 4}).to(kFloat);
  EXPECT_GT((both(src, tgt) - both(src, tgt)).abs().max().item<double>(), 1e-3);
  both->eval();
  EXPECT_EQ((both(src, tgt) - both(src, tgt)).abs().max().item<double>(), 0);
  EXPECT_EQ(error_of([&] { both(src, tgt.select(1, 0)); }), "src and tgt should have 3 dimensions, or 2 without batches, but got 3 and 2");
  EXPECT_EQ(error_of([&] { both(src, zeros({2, 3, 4})); }), "src and tgt should have equal batch size (at dim 1), but got 2 and 3");
  EXPECT_EQ(error_of([&] { both(src, zeros({2, 2, 5})); }),
            "src and tgt should have same feature size as d_model (at dim -1), but got 4 and 5");

  struct Twice : nn::Cloneable<Twice> {
    void reset() override {}
    Tensor forward(const Tensor& src, const Tensor&, const Tensor&) { return src * 2; }
  };
  nn::Transformer own(nn::TransformerOptions(4, 2).num_decoder_layers(1).custom_encoder(nn::AnyModule(std::make_shared<Twice>())));
  own->eval();
  EXPECT_EQ((own(src, tgt) - own->decoder.forward(tgt, src * 2)).abs().max().item<double>(), 0);
}
