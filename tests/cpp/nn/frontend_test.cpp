// Containers, options, functions, starting values, recurrent layers, optimisers, data loaders and files of the C++ front end.
#include <cmath>
#include <set>
#include <sstream>

#include <gtest/gtest.h>

#include <cresset/cresset.h>
#include <cresset/nn/data_loader.h>
#include <cresset/serialize.h>

#include "error_of.h"
#include "same_tensors.h"

using namespace cresset;
namespace F = cresset::nn::functional;

namespace {

template <class T>
std::string text(const T& value) {
  std::ostringstream stream;
  stream << value;
  return stream.str();
}

struct TwoInputsImpl : nn::Module {
  Tensor forward(const Tensor& a, const Tensor& b) { return a + b; }
};
CRESSET_MODULE(TwoInputs);

struct BlockImpl : nn::Cloneable<BlockImpl> {
  BlockImpl() { BlockImpl::reset(); }
  void reset() override {
    layers = register_module("layers", nn::Sequential(nn::Linear(3, 4), nn::ReLU(), nn::Linear(4, 2)));
    scale = register_parameter("scale", ones({2}));
  }
  Tensor forward(Tensor x) { return layers->forward(x) * scale; }
  nn::Sequential layers{nullptr};
  Tensor scale;
};
CRESSET_MODULE(Block);

}  // namespace

// --- containers

TEST(Containers, SequentialCallsOneAfterAnother) {
  manual_seed(0);
  nn::Linear first(3, 4), second(4, 2);
  nn::Sequential model(first, nn::Functional([](Tensor t) { return t.relu(); }), second);
  const Tensor x = randn({5, 3});
  EXPECT_TRUE(same(model->forward(x), second(first(x).relu())));
  EXPECT_EQ(model->size(), 3u);
  EXPECT_EQ(model->at<nn::LinearImpl>(2).options.out_features(), 2);
  EXPECT_EQ(model->named_parameters().keys(), (std::vector<std::string>{"0.weight", "0.bias", "2.weight", "2.bias"}));
  EXPECT_NE(error_of([&] { model->forward(x, x); }).find("expects 1 argument(s), but received 2"), std::string::npos);
  EXPECT_NE(error_of([&] { model->forward(3); }).find("Expected argument #0 to be of type cresset::Tensor, but received value of type int"),
            std::string::npos);
  EXPECT_NE(error_of([&] { model->forward<int>(x); }).find("but you asked for type int"), std::string::npos);
  EXPECT_EQ(error_of([] { nn::Sequential()->forward(Tensor()); }), "Cannot call forward() on an empty Sequential");
  EXPECT_EQ(error_of([&] { model->at<nn::LinearImpl>(7); }), "Index out of range");
}

TEST(Containers, SequentialTakesNamesAndDefaults) {
  nn::Sequential model({{"up", nn::ConvTranspose2d(nn::ConvTranspose2dOptions(1, 2, 2).stride(2))}, {"act", nn::Tanh()}});
  EXPECT_EQ(model->forward(ones({1, 1, 3, 3})).sizes(), IntArrayRef({1, 2, 6, 6}));
  EXPECT_EQ(model->named_children().keys(), (std::vector<std::string>{"up", "act"}));
  nn::Sequential both{TwoInputs(), nn::Sigmoid()};
  EXPECT_TRUE(close(both->forward(zeros({2}), zeros({2})), full({2}, 0.5)));
  nn::Sequential recurrent{nn::LSTM(2, 3)};
  const auto [out, state] = recurrent->forward<std::tuple<Tensor, nn::LSTMState>>(ones({4, 1, 2}));
  EXPECT_EQ(out.sizes(), IntArrayRef({4, 1, 3}));
}

TEST(Containers, ListsAndDictionaries) {
  nn::ModuleList list(nn::Linear(1, 2), nn::ReLU());
  list->insert(1, nn::Linear(2, 3));
  EXPECT_EQ(list->size(), 3u);
  EXPECT_EQ(list->at<nn::LinearImpl>(1).options.out_features(), 3);
  EXPECT_EQ(list->named_parameters().keys().back(), "1.bias");
  nn::ModuleDict dict;
  dict->update(std::vector<std::pair<std::string, std::shared_ptr<nn::Module>>>{{"a", nn::Linear(1, 1).ptr()}, {"b", nn::ReLU().ptr()}});
  EXPECT_EQ(dict->keys(), (std::vector<std::string>{"a", "b"}));
  dict->pop("a");
  EXPECT_FALSE(dict->contains("a"));
  nn::ParameterList parameters(ones({1}), zeros({2}));
  EXPECT_EQ(parameters->parameters().size(), 2u);
  nn::ParameterDict named;
  named->insert("w", ones({3}));
  EXPECT_EQ((*named)["w"].numel(), 3);
}

TEST(Containers, OrderedDictKeepsTheOrder) {
  nn::OrderedDict<std::string, int> dict("Thing");
  dict.insert("b", 1);
  dict.insert("a", 2);
  dict.insert("c", 3);
  dict.erase("b");
  EXPECT_EQ(dict.keys(), (std::vector<std::string>{"a", "c"}));
  EXPECT_EQ(dict["c"], 3);
  EXPECT_EQ(error_of([&] { dict["x"]; }), "Thing 'x' is not defined");
  EXPECT_EQ(error_of([&] { dict.insert("a", 5); }), "Thing 'a' already defined");
}

// --- modules

TEST(Modules, CloneIsDeep) {
  manual_seed(0);
  Block block;
  auto copy = std::dynamic_pointer_cast<BlockImpl>(block->clone());
  const Tensor x = randn({2, 3});
  EXPECT_TRUE(same(block->forward(x), copy->forward(x)));
  {
    const NoGradGuard no_grad;
    copy->scale.zero_();
  }
  EXPECT_EQ(copy->forward(x).abs().sum().item<double>(), 0);
  EXPECT_NE(block->forward(x).abs().sum().item<double>(), 0);
  // An AnyModule calls its own module after it was cloned.
  const nn::AnyModule any(block);
  const nn::AnyModule any_copy = any.clone();
  {
    const NoGradGuard no_grad;
    any_copy.get<BlockImpl>().scale.zero_();
  }
  EXPECT_EQ(any_copy.forward(x).abs().sum().item<double>(), 0);
  EXPECT_NE(any.forward(x).abs().sum().item<double>(), 0);
  TwoInputs plain;
  EXPECT_NE(error_of([&] { plain->clone(); }).find("clone() has not been implemented for"), std::string::npos);
}

TEST(Modules, ApplyAndNamesReachTheWholeTree) {
  Block block;
  std::vector<std::string> names;
  block->apply([&](const std::string& name, nn::Module&) { names.push_back(name); });
  EXPECT_EQ(names, (std::vector<std::string>{"", "layers", "layers.0", "layers.1", "layers.2"}));
  EXPECT_EQ(block->modules().size(), 5u);
  block->apply([](nn::Module& m) {
    if (auto* linear = m.as<nn::Linear>()) nn::init::constant_(linear->weight, 0.5);
  });
  EXPECT_EQ(block->layers->at<nn::LinearImpl>(0).weight.sum().item<double>(), 6);
  EXPECT_EQ(text(nn::Linear(3, 4)), "torch::nn::Linear(in_features=3, out_features=4, bias=true)");
  block->to(kDouble);
  EXPECT_EQ(block->scale.scalar_type(), kDouble);
}

TEST(Modules, PaddingModesOfConvolutions) {
  const Tensor x = arange(4, kFloat).reshape({1, 1, 4});
  const auto run = [&](auto mode) {
    nn::Conv1d layer(nn::Conv1dOptions(1, 1, 3).padding(1).bias(false).padding_mode(mode));
    nn::init::ones_(layer->weight);
    return layer(x).flatten();
  };
  EXPECT_TRUE(same(run(nn::kZeros), tensor({1.f, 3.f, 6.f, 5.f})));
  EXPECT_TRUE(same(run(nn::kReflect), tensor({2.f, 3.f, 6.f, 7.f})));
  EXPECT_TRUE(same(run(nn::kReplicate), tensor({1.f, 3.f, 6.f, 8.f})));
  EXPECT_TRUE(same(run(nn::kCircular), tensor({4.f, 3.f, 6.f, 5.f})));
  nn::Conv2d same_size(nn::Conv2dOptions(1, 1, 4).padding(nn::kSame));
  EXPECT_EQ(same_size(ones({1, 1, 5, 6})).sizes(), IntArrayRef({1, 1, 5, 6}));
  nn::ConvTranspose1d up(nn::ConvTranspose1dOptions(1, 1, 3).stride(2));
  const std::vector<int64_t> wanted = {10};
  EXPECT_EQ(up(ones({1, 1, 4}), IntArrayRef(wanted)).size(2), 10);
  const std::vector<int64_t> too_large = {12};
  EXPECT_EQ(error_of([&] { up(ones({1, 1, 4}), IntArrayRef(too_large)); }),
            "requested an output size of 12, but valid sizes range from 9 to 10");
}

TEST(Modules, EmbeddingsAndNorms) {
  nn::Embedding embedding(nn::EmbeddingOptions(4, 2).padding_idx(-1));
  EXPECT_EQ(embedding(tensor({3})).abs().sum().item<double>(), 0);
  auto fixed = nn::Embedding::from_pretrained(arange(6, kFloat).reshape({3, 2}));
  EXPECT_FALSE(fixed->weight.requires_grad());
  EXPECT_TRUE(same(fixed(tensor({2})), tensor({{4.f, 5.f}})));
  nn::EmbeddingBag bag(nn::EmbeddingBagOptions(3, 2).mode(nn::kSum)._weight(arange(6, kFloat).reshape({3, 2})));
  EXPECT_TRUE(same(bag(tensor({{0, 1}, {2, 2}})), tensor({{2.f, 4.f}, {8.f, 10.f}})));
  EXPECT_EQ(error_of([] { nn::BatchNorm1d(2)(ones({1, 2, 3, 4})); }), "expected 2D or 3D input (got 4D input)");
  const Tensor x = randn({2, 4, 5});
  EXPECT_TRUE(close(nn::LayerNorm(std::vector<int64_t>{5})(x).mean(-1), zeros({2, 4})));
  EXPECT_TRUE(close(nn::GroupNorm(2, 4)(x).reshape({2, 2, -1}).mean(-1), zeros({2, 2})));
}

TEST(Modules, LossesReduceAsTheyAreTold) {
  const Tensor x = tensor({1.f, 2.f, 4.f}), y = tensor({0.f, 0.f, 0.f});
  EXPECT_EQ(nn::MSELoss()(x, y).item<double>(), 7);
  EXPECT_EQ(nn::MSELoss(nn::MSELossOptions(nn::kSum))(x, y).item<double>(), 21);
  EXPECT_EQ(nn::L1Loss(nn::kNone)(x, y).numel(), 3);
  const Tensor logits = tensor({{0.f, 0.f}, {0.f, 0.f}}), target = tensor({0, 1});
  EXPECT_NEAR(nn::CrossEntropyLoss()(logits, target).item<double>(), std::log(2.0), 1e-6);
  EXPECT_NEAR(nn::CrossEntropyLoss(nn::CrossEntropyLossOptions().reduction(nn::kSum).ignore_index(1))(logits, target).item<double>(),
              std::log(2.0), 1e-6);
  const Tensor p = full({2, 3}, 1.0 / 3), q = full({2, 3}, std::log(0.5));
  const double one = 3 * (1.0 / 3) * (std::log(1.0 / 3) - std::log(0.5));
  EXPECT_NEAR(F::kl_div(q, p, F::KLDivFuncOptions().reduction(nn::kBatchMean)).item<double>(), one, 1e-6);
}

TEST(Functions, ShapesAndNorms) {
  const Tensor x = arange(4, kFloat).reshape({1, 1, 2, 2});
  EXPECT_EQ(F::pad(x, F::PadFuncOptions({1, 1}).value(7))[0][0][0][0].item<double>(), 7);
  const Tensor twice = F::interpolate(x, F::InterpolateFuncOptions().scale_factor(std::vector<double>{2, 2}).mode(nn::kNearest));
  EXPECT_EQ(twice.sizes(), IntArrayRef({1, 1, 4, 4}));
  EXPECT_EQ(F::interpolate(x, F::InterpolateFuncOptions().size(std::vector<int64_t>{3}).mode(nn::kBilinear).align_corners(true))[0][0][1][1]
                .item<double>(),
            1.5);
  EXPECT_EQ(error_of([&] { F::interpolate(x, F::InterpolateFuncOptions()); }), "either size or scale_factor should be defined");
  EXPECT_TRUE(close(F::normalize(tensor({{3.f, 4.f}})), tensor({{0.6f, 0.8f}})));
  EXPECT_NEAR(F::lp_pool1d(tensor({3.f, 4.f}).reshape({1, 1, 2}), F::LPPool1dFuncOptions(2, 2)).item<double>(), 5, 1e-6);
  // 3 channels of ones, size 3: the sums of squares are 2, 3, 2 of 3.
  const Tensor r = F::local_response_norm(ones({1, 3, 1}), F::LocalResponseNormFuncOptions(3).alpha(3).beta(1).k(1));
  EXPECT_TRUE(close(r.flatten(), tensor({1.f / 3, 1.f / 4, 1.f / 3})));
  EXPECT_EQ(nn::AdaptiveAvgPool2d(nn::AdaptiveAvgPool2dOptions({std::nullopt, 1}))(x).sizes(), IntArrayRef({1, 1, 2, 1}));
  const Tensor hard = F::gumbel_softmax(randn({5, 3}), F::GumbelSoftmaxFuncOptions().hard(true));
  EXPECT_TRUE(close(hard.sum(1), ones({5})));
}

TEST(Init, ValuesHaveTheirScale) {
  manual_seed(0);
  const Tensor w = empty({200, 100});
  EXPECT_NEAR(nn::init::kaiming_normal_(w, 0, nn::kFanIn, nn::kReLU).std().item<double>(), std::sqrt(2.0 / 100), 3e-3);
  EXPECT_LE(nn::init::xavier_uniform_(w).abs().max().item<double>(), std::sqrt(6.0 / 300));
  const Tensor q = nn::init::orthogonal_(empty({3, 5}));
  EXPECT_TRUE(close(q.matmul(q.t()), eye(3)));
  EXPECT_EQ(nn::init::sparse_(empty({10, 4}), 0.3).eq(0).sum().item<int64_t>(), 12);
  EXPECT_EQ(nn::init::dirac_(empty({2, 2, 3})).sum().item<double>(), 2);
  EXPECT_NEAR(nn::init::calculate_gain(nn::kTanh), 5.0 / 3, 1e-12);
}

TEST(Recurrent, LayersAgreeWithCells) {
  manual_seed(0);
  nn::GRU layer(nn::GRUOptions(2, 3));
  nn::GRUCell cell(2, 3);
  const auto own = layer->named_parameters();
  for (auto& [name, value] : cell->named_parameters()) value.set_data(own[name + "_l0"].detach());
  const Tensor x = randn({4, 5, 2});
  const auto [out, last] = layer(x);
  Tensor h;
  for (int64_t t = 0; t < 4; ++t) h = cell(x[t], h);
  EXPECT_TRUE(close(last[0], h));
  nn::LSTM deep(nn::LSTMOptions(2, 3).num_layers(2).bidirectional(true).batch_first(true).proj_size(1));
  const auto [y, state] = deep(randn({5, 4, 2}));
  EXPECT_EQ(y.sizes(), IntArrayRef({5, 4, 2}));
  EXPECT_EQ(std::get<0>(state).sizes(), IntArrayRef({4, 5, 1}));
  EXPECT_EQ(std::get<1>(state).sizes(), IntArrayRef({4, 5, 3}));
  EXPECT_EQ(deep->named_parameters().keys()[4], "weight_hr_l0");
  EXPECT_EQ(error_of([&] { deep(ones({1, 2, 5})); }), "input.size(-1) must be equal to input_size. Expected 2, got 5");
}

TEST(Recurrent, PackedSequencesEndWhereTheyEnd) {
  manual_seed(0);
  nn::LSTM layer(2, 3);
  const Tensor a = randn({2, 2}), b = randn({4, 2});
  const auto packed = nn::utils::rnn::pack_sequence(std::vector<Tensor>{a, b}, false);
  const auto [out, state] = layer->forward_with_packed_input(packed);
  const auto [padded, lengths] = nn::utils::rnn::pad_packed_sequence(out);
  EXPECT_TRUE(same(lengths, tensor({2, 4})));
  const auto [alone, alone_state] = layer(a.unsqueeze(1));
  EXPECT_TRUE(close(padded.narrow(0, 0, 2).select(1, 0), alone.select(1, 0)));
  EXPECT_TRUE(close(std::get<0>(state).select(1, 0), std::get<0>(alone_state).select(1, 0)));
}

// --- optimisers

TEST(Optimizers, EveryOneMinimisesAParabola) {
  const auto run = [](const std::function<std::unique_ptr<optim::Optimizer>(std::vector<Tensor>)>& make) {
    Tensor p = full({2}, 3.0).set_requires_grad(true);
    const auto optimizer = make({p});
    for (int i = 0; i < 200; ++i)
      optimizer->step([&] {
        optimizer->zero_grad();
        Tensor loss = (p - 1).square().sum();
        loss.backward();
        return loss;
      });
    return (p - 1).abs().max().item<double>();
  };
  EXPECT_LT(run([](auto p) { return std::make_unique<optim::SGD>(p, optim::SGDOptions(0.05).momentum(0.5).nesterov(true)); }), 1e-3);
  EXPECT_LT(run([](auto p) { return std::make_unique<optim::Adam>(p, optim::AdamOptions(0.1).amsgrad(true)); }), 2e-2);
  EXPECT_LT(run([](auto p) { return std::make_unique<optim::AdamW>(p, optim::AdamWOptions(0.1).weight_decay(0)); }), 2e-2);
  EXPECT_LT(run([](auto p) { return std::make_unique<optim::Adagrad>(p, optim::AdagradOptions(0.5)); }), 1e-2);
  EXPECT_LT(run([](auto p) { return std::make_unique<optim::RMSprop>(p, optim::RMSpropOptions(0.02).centered(true).momentum(0.1)); }),
            5e-2);
}

TEST(Optimizers, GroupsHaveOptionsOfTheirOwn) {
  Tensor a = ones({1}).set_requires_grad(true), b = ones({1}).set_requires_grad(true);
  std::vector<optim::OptimizerParamGroup> groups;
  groups.emplace_back(std::vector<Tensor>{a}, std::make_unique<optim::SGDOptions>(0.5));
  groups.emplace_back(std::vector<Tensor>{b});
  optim::SGD sgd(groups, optim::SGDOptions(0.1));
  (a + b).sum().backward();
  sgd.step();
  EXPECT_NEAR(a.item<double>(), 0.5, 1e-6);
  EXPECT_NEAR(b.item<double>(), 0.9, 1e-6);
  optim::StepLR schedule(sgd, 2, 0.1);
  schedule.step();
  EXPECT_NEAR(sgd.param_groups()[0].options().get_lr(), 0.5, 1e-12);
  schedule.step();
  EXPECT_NEAR(static_cast<optim::SGDOptions&>(sgd.param_groups()[1].options()).lr(), 0.01, 1e-12);
  EXPECT_EQ(error_of([&] { sgd.add_param_group(optim::OptimizerParamGroup({a})); }),
            "some parameters appear in more than one parameter group");
  EXPECT_EQ(error_of([&] { optim::SGD(std::vector<Tensor>{a}, optim::SGDOptions(0.1).nesterov(true)); }),
            "Nesterov momentum requires a momentum and zero dampening");
}

TEST(Utils, GradientsAreClippedTogether) {
  Tensor a = ones({1}).set_requires_grad(true), b = ones({1}).set_requires_grad(true);
  (a * 3 + b * 4).sum().backward();
  EXPECT_NEAR(nn::utils::clip_grad_norm_({a, b}, 1), 5, 1e-6);
  EXPECT_NEAR(a.grad().item<double>(), 0.6, 1e-5);
  nn::utils::clip_grad_value_(b, 0.1);
  EXPECT_NEAR(b.grad().item<double>(), 0.1, 1e-6);
  nn::utils::vector_to_parameters(tensor({5.f, 6.f}), {a, b});
  EXPECT_TRUE(same(nn::utils::parameters_to_vector({a, b}).detach(), tensor({5.f, 6.f})));
}

// --- data

namespace {
struct Squares : data::datasets::Dataset<Squares> {
  explicit Squares(std::size_t n) : n(n) {}
  data::Example<> get(std::size_t i) override {
    CRESSET_CHECK(i != 1000, "no such example");
    return {full({2}, static_cast<double>(i)), tensor(static_cast<int64_t>(i * i))};
  }
  std::optional<std::size_t> size() const override { return n; }
  std::size_t n;
};
}  // namespace

TEST(Data, LoadersGiveEveryExampleOnce) {
  for (const std::size_t workers : {0, 3}) {
    auto loader = data::make_data_loader<data::samplers::SequentialSampler>(Squares(10).map(data::transforms::Stack<>()),
                                                                            data::DataLoaderOptions(4).workers(workers));
    for (int epoch = 0; epoch < 2; ++epoch) {
      std::vector<int64_t> sizes;
      int64_t sum = 0;
      for (auto& batch : *loader) {
        sizes.push_back(batch.data.size(0));
        sum += batch.target.sum().item<int64_t>();
      }
      EXPECT_EQ(sizes, (std::vector<int64_t>{4, 4, 2}));
      EXPECT_EQ(sum, 285);
    }
  }
  auto random = data::make_data_loader(Squares(100), data::DataLoaderOptions().batch_size(30).drop_last(true));
  std::set<double> seen;
  for (auto& batch : *random)
    for (auto& example : batch) seen.insert(example.data[0].item<double>());
  EXPECT_EQ(seen.size(), 90u);
}

TEST(Data, ErrorsOfWorkersArriveWhereTheyIterate) {
  auto loader = data::make_data_loader<data::samplers::SequentialSampler>(Squares(1001), data::DataLoaderOptions(1001).workers(1));
  EXPECT_EQ(error_of([&] {
              for (auto& batch : *loader) (void)batch;
            }),
            "Caught exception in DataLoader worker thread. Original message: no such example");
}

TEST(Data, SamplersShareTheWork) {
  data::samplers::DistributedSequentialSampler a(5, 2, 0), b(5, 2, 1);
  EXPECT_EQ(*a.next(10), (std::vector<std::size_t>{0, 1, 2}));
  EXPECT_EQ(*b.next(10), (std::vector<std::size_t>{3, 4, 0}));
  data::samplers::RandomSampler random(6);
  random.next(2);
  serialize::OutputArchive out;
  random.save(out);
  std::stringstream file;
  out.save_to(file);
  serialize::InputArchive in;
  in.load_from(file);
  data::samplers::RandomSampler copy(1);
  copy.load(in);
  EXPECT_EQ(random.next(10), copy.next(10));
  EXPECT_FALSE(copy.next(1).has_value());
}

TEST(Data, TransformsAreChained) {
  auto dataset =
      data::datasets::TensorDataset(arange(6, kFloat).reshape({3, 2}))
          .map(data::transforms::Lambda<data::TensorExample>([](data::TensorExample e) { return data::TensorExample(e.data + 1); }))
          .map(data::transforms::Stack<data::TensorExample>());
  EXPECT_TRUE(same(dataset.get_batch(std::vector<std::size_t>{0, 2}).data, tensor({{1.f, 2.f}, {5.f, 6.f}})));
  data::transforms::Normalize<> normalize(std::vector<double>{1, 2}, std::vector<double>{2, 4});
  EXPECT_TRUE(same(normalize(ones({2, 1, 1})).flatten(), tensor({0.f, -0.25f})));
  EXPECT_NE(error_of([] { data::datasets::MNIST("/nowhere"); }).find("Error opening images file at /nowhere/train-images-idx3-ubyte"),
            std::string::npos);
}

// --- files

TEST(Files, ModulesOptimisersAndTensors) {
  manual_seed(0);
  Block block, copy;
  std::stringstream file;
  save(block, file);
  load(copy, file);
  const Tensor x = randn({2, 3});
  EXPECT_TRUE(same(block->forward(x), copy->forward(x)));

  Tensor t = arange(3, kLong), back;
  std::stringstream tensor_file;
  std::string bytes;
  save(t, [&](const void* data, std::size_t n) {
    bytes.append(static_cast<const char*>(data), n);
    return n;
  });
  Tensor from_bytes;
  load(
      from_bytes, [&](uint64_t position, void* buffer, std::size_t n) { return bytes.copy(static_cast<char*>(buffer), n, position); },
      [&] { return bytes.size(); });
  EXPECT_TRUE(same(from_bytes, t));
  save(t, tensor_file);
  load(back, tensor_file);
  EXPECT_TRUE(same(t, back));

  std::vector<Tensor> many = {ones({2}), t}, all;
  std::stringstream list_file;
  save(many, list_file);
  load(all, list_file);
  ASSERT_EQ(all.size(), 2u);
  EXPECT_TRUE(same(all[1], t));

  optim::Adam adam(block->parameters(), optim::AdamOptions(0.5).betas({0.8, 0.9})), other(copy->parameters(), optim::AdamOptions());
  block->forward(x).sum().backward();
  copy->forward(x).sum().backward();
  adam.step();
  {
    const NoGradGuard no_grad;
    for (std::size_t i = 0; i < block->parameters().size(); ++i) copy->parameters()[i].copy_(block->parameters()[i]);
  }
  std::stringstream adam_file;
  save(adam, adam_file);
  load(other, adam_file);
  adam.step();
  other.step();
  EXPECT_TRUE(same(block->scale, copy->scale));

  nn::Linear wrong(2, 2);
  std::stringstream again(tensor_file.str());
  EXPECT_EQ(error_of([&] { load(wrong, again); }), "No such serialized tensor 'weight'");
}
