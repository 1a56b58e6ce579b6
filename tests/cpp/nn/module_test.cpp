// Modules, layers and optimisers of the C++ front end, against values worked out by hand or by plain loops.
#include <cmath>

#include <gtest/gtest.h>

#include <cresset/cresset.h>

#include "error_of.h"

using namespace cresset;

namespace {

double at(const Tensor& t, std::initializer_list<int64_t> index) {
  Tensor element = t;
  for (int64_t i : index) element = element[i];
  return element.item().toDouble();
}

struct NetImpl : nn::Module {
  NetImpl() {
    first = register_module("first", nn::Linear(3, 2));
    norm = register_module("norm", nn::BatchNorm2d(2));
    scale = register_parameter("scale", ones({2}));
  }
  nn::Linear first{nullptr};
  nn::BatchNorm2d norm{nullptr};
  Tensor scale;
};

}  // namespace

TEST(Module, NamesOwnEntriesFirstAndJoinsWithDots) {
  NetImpl net;
  std::vector<std::string> names;
  for (const auto& [name, _] : net.named_parameters()) names.push_back(name);
  EXPECT_EQ(names, (std::vector<std::string>{"scale", "first.weight", "first.bias", "norm.weight", "norm.bias"}));
  names.clear();
  for (const auto& [name, _] : net.named_buffers()) names.push_back(name);
  EXPECT_EQ(names, (std::vector<std::string>{"norm.running_mean", "norm.running_var", "norm.num_batches_tracked"}));
  EXPECT_EQ(net.parameters(false).size(), 1u);
}

TEST(Module, RefusesNamesThatAreTakenOrHaveDots) {
  NetImpl net;
  EXPECT_EQ(error_of([&] { net.register_parameter("scale", ones({1})); }), "Parameter 'scale' already defined");
  EXPECT_EQ(error_of([&] { net.register_buffer("a.b", ones({1})); }), "Buffer name must not contain a dot (got 'a.b')");
}

TEST(Module, LoadsAllOrNothing) {
  NetImpl net;
  auto state = net.state_dict();
  for (auto& [name, value] : state) value = zeros(value.sizes(), value.options());
  auto wrong = state;
  wrong[0].second = zeros({5});
  wrong[1].first = "first.other";
  const std::string text = error_of([&] { net.load_state_dict(wrong); });
  EXPECT_NE(text.find("first.other"), std::string::npos) << text;
  EXPECT_NE(text.find("scale"), std::string::npos) << text;
  EXPECT_EQ(at(net.scale, {0}), 1) << "a failed load must not change anything";
  net.load_state_dict(state);
  EXPECT_EQ(at(net.scale, {0}), 0);
  EXPECT_EQ(at(net.first->weight, {1, 2}), 0);
}

TEST(Module, ModesAndTypesReachChildren) {
  NetImpl net;
  net.eval();
  EXPECT_FALSE(net.norm->is_training());
  net.train();
  EXPECT_TRUE(net.norm->is_training());
  net.to(kDouble);
  EXPECT_EQ(net.first->weight.scalar_type(), kDouble);
  EXPECT_EQ(net.norm->num_batches_tracked.scalar_type(), kLong);
}

TEST(Module, AnEmptyHolderSaysSo) {
  nn::Linear none{nullptr};
  EXPECT_EQ(error_of([&] { none->parameters(); }), "Accessing empty ModuleHolder");
}

TEST(Layers, LinearIsTheMatrixProduct) {
  manual_seed(0);
  nn::Linear layer(3, 2);
  const Tensor x = randn({4, 3}), y = layer(x);
  for (int64_t i = 0; i < 4; ++i)
    for (int64_t o = 0; o < 2; ++o) {
      double expected = at(layer->bias, {o});
      for (int64_t k = 0; k < 3; ++k) expected += at(x, {i, k}) * at(layer->weight, {o, k});
      EXPECT_NEAR(at(y, {i, o}), expected, 1e-6);
    }
}

TEST(Layers, Conv2dIsTheSumOverTheWindow) {
  manual_seed(0);
  nn::Conv2d layer(nn::Conv2dOptions(2, 4, 3).stride(2).padding(1).groups(2));
  const Tensor x = randn({1, 2, 5, 6}), y = layer(x);
  ASSERT_EQ(y.sizes(), IntArrayRef({1, 4, 3, 3}));
  for (int64_t o = 0; o < 4; ++o)
    for (int64_t r = 0; r < 3; ++r)
      for (int64_t c = 0; c < 3; ++c) {
        double expected = at(layer->bias, {o});
        for (int64_t i = 0; i < 3; ++i)
          for (int64_t j = 0; j < 3; ++j) {
            const int64_t row = 2 * r + i - 1, column = 2 * c + j - 1;
            if (row >= 0 && row < 5 && column >= 0 && column < 6)
              expected += at(x, {0, o / 2, row, column}) * at(layer->weight, {o, 0, i, j});
          }
        EXPECT_NEAR(at(y, {0, o, r, c}), expected, 1e-5);
      }
  EXPECT_EQ(error_of([] { nn::Conv2d(nn::Conv2dOptions(3, 4, 1).groups(2)); }), "in_channels must be divisible by groups");
}

TEST(Layers, BatchNormKeepsRunningStatistics) {
  nn::BatchNorm2d layer(1);
  const Tensor x = arange(8, kFloat).reshape({2, 1, 2, 2});
  const Tensor y = layer(x);
  // Mean 3.5; variance 5.25, unbiased 6.
  EXPECT_NEAR(at(y, {0, 0, 0, 0}), -3.5 / std::sqrt(5.25 + 1e-5), 1e-5);
  EXPECT_NEAR(at(layer->running_mean, {0}), 0.35, 1e-6);
  EXPECT_NEAR(at(layer->running_var, {0}), 0.9 + 0.6, 1e-6);
  EXPECT_EQ(layer->num_batches_tracked.item().toLong(), 1);
  layer->eval();
  EXPECT_NEAR(at(layer(x), {1, 0, 1, 1}), (7 - 0.35) / std::sqrt(1.5 + 1e-5), 1e-5);
}

TEST(Layers, DropoutScalesWhatItKeeps) {
  manual_seed(1);
  nn::Dropout layer(0.25);
  const Tensor y = layer(ones({10000}));
  const double kept = y.gt(0).sum().item().toDouble();
  EXPECT_NEAR(kept, 7500, 200);
  EXPECT_NEAR(y.max().item().toDouble(), 1 / 0.75, 1e-6);
  layer->eval();
  EXPECT_EQ(layer(ones({5})).sum().item().toDouble(), 5);
}

TEST(Optim, SgdWithMomentumAndDecay) {
  Tensor p = full({1}, 2.0);
  p.requires_grad_(true);
  optim::SGD sgd({p}, optim::SGDOptions(0.1).momentum(0.9).weight_decay(0.5));
  double value = 2, velocity = 0;
  for (int step = 0; step < 3; ++step) {
    sgd.zero_grad();
    (p * 3).sum().backward();
    sgd.step();
    velocity = 0.9 * velocity + (3 + 0.5 * value);
    value -= 0.1 * velocity;
    EXPECT_NEAR(at(p, {0}), value, 1e-5);
  }
}

TEST(Optim, AdamTakesStepsOfTheLearningRate) {
  Tensor p = full({1}, 2.0);
  p.requires_grad_(true);
  optim::Adam adam({p}, 0.01);
  (p * 3).sum().backward();
  adam.step();
  EXPECT_NEAR(at(p, {0}), 1.99, 1e-6);
}

TEST(Optim, RefusesWhatCannotBeOptimised) {
  Tensor leaf = ones({1});
  leaf.requires_grad_(true);
  EXPECT_EQ(error_of([&] { optim::Adam(std::vector<Tensor>{leaf * 2}); }), "can't optimize a non-leaf Tensor");
  EXPECT_EQ(error_of([&] { optim::SGD(std::vector<Tensor>{leaf}, -1); }), "Invalid learning rate: -1");
}

namespace {
struct CountedImpl : nn::Cloneable<CountedImpl> {
  CountedImpl() { CountedImpl::reset(); }
  void reset() override { weight = register_parameter("weight", zeros({2})); }
  Tensor weight;
  int count = 0;
};
CRESSET_MODULE(Counted);
struct OuterImpl : nn::Cloneable<OuterImpl> {
  OuterImpl() { OuterImpl::reset(); }
  void reset() override { inner = register_module("inner", Counted()); }
  Counted inner = nullptr;
};
struct LabelledImpl : nn::Module {
  std::string forward(int times, const std::string& word, std::string&& rest) {
    std::string out;
    for (int i = 0; i < times; ++i) out += word;
    return out + std::move(rest);
  }
};
struct SignOptions : optim::OptimizerCloneableOptions<SignOptions> {
  explicit SignOptions(double rate) : rate_(rate) {}
  CRESSET_ARG(double, rate);
};
/// An optimiser of one's own, with options that say no more than they must.
struct SignDescent : optim::Optimizer {
  SignDescent(std::vector<Tensor> parameters, const SignOptions& options) : Optimizer(std::move(parameters), options.clone()) {}
  Tensor step(LossClosure = nullptr) override {
    const NoGradGuard no_grad;
    for (auto& group : param_groups())
      for (Tensor& p : group.params())
        if (p.grad().defined()) p.sub_(p.grad().sign(), static_cast<SignOptions&>(group.options()).rate());
    return {};
  }
};
struct WithDefaultImpl : nn::Module {
  Tensor forward(const Tensor& x, double by) { return x * by; }
  CRESSET_FORWARD_DEFAULTS({1, nn::AnyValue(2.0)})
};
std::vector<std::string>& heard() {
  static std::vector<std::string> warnings;
  return warnings;
}
}  // namespace

TEST(Module, CopiesTakeOverMembersOfChildren) {
  auto a = std::make_shared<OuterImpl>();
  a->inner->count = 7;
  const auto b = std::dynamic_pointer_cast<OuterImpl>(a->clone());
  EXPECT_EQ(b->inner->count, 7);
  a->inner->weight.set_requires_grad(false).fill_(1);
  EXPECT_EQ(b->inner->weight.sum().item<double>(), 0);
  EXPECT_EQ(b->inner->weight.unsafeGetTensorImpl(), b->named_parameters()["inner.weight"].unsafeGetTensorImpl());
}

TEST(Module, AppliesNamedFunctions) {
  const auto outer = std::make_shared<OuterImpl>();
  std::vector<std::string> names;
  std::as_const(*outer).apply([&](const std::string& name, const nn::Module&) { names.push_back(name); });
  outer->apply([&](const std::string& name, const std::shared_ptr<nn::Module>& m) { names.push_back(name + (m ? "!" : "")); }, "top");
  EXPECT_EQ(names, (std::vector<std::string>{"", "inner", "top!", "top.inner!"}));
}

TEST(Module, WarnsOfUndefinedParametersThatShouldRequireGradients) {
  heard().clear();
  const WarningHandler before = set_warning_handler([](std::string_view, const std::string& message) { heard().push_back(message); });
  OuterImpl module;
  module.register_parameter("absent", Tensor(), false);
  module.register_parameter("missing", Tensor());
  nn::Linear(nn::LinearOptions(1, 1).bias(false));
  set_warning_handler(before);
  ASSERT_EQ(heard().size(), 1u);
  EXPECT_EQ(heard()[0], "An undefined tensor cannot require grad. Ignoring the `requires_grad=true` function parameter.");
}

TEST(AnyModule, TakesEveryKindOfArgument) {
  nn::AnyModule any;
  EXPECT_EQ(error_of([&] { any.ptr(); }), "Cannot call ptr() on an empty AnyModule");
  any = std::make_shared<LabelledImpl>();
  EXPECT_EQ(any.forward<std::string>(2, std::string("ab"), std::string("c")), "ababc");
  any = std::make_shared<WithDefaultImpl>();
  EXPECT_EQ(any.forward(ones({1})).item<double>(), 2);
  EXPECT_NE(error_of([&] {
              any.forward();
            }).find("'s forward() method expects at least 1 argument(s) and at most 2 argument(s), but received 0."),
            std::string::npos);
}

TEST(Optim, OptimisersOfOnesOwn) {
  Tensor a = ones({1}), b = ones({1});
  a.requires_grad_(true);
  b.requires_grad_(true);
  SignDescent sign({a}, SignOptions(0.25));
  sign.add_parameters({b});
  EXPECT_EQ(sign.size(), 2u);
  (a * 3 - b).sum().backward();
  sign.step();
  EXPECT_EQ(a.item<double>(), 0.75);
  EXPECT_EQ(b.item<double>(), 1.25);
  EXPECT_NE(error_of([&] { sign.defaults().get_lr(); }).find("get_lr() has not been overidden"), std::string::npos);
}

TEST(Containers, HoldersHaveTheirModulesBrackets) {
  nn::Sequential layers(nn::Linear(1, 2), nn::ReLU());
  EXPECT_TRUE(layers[1]->as<nn::ReLU>());
  using OrderedModules = nn::OrderedDict<std::string, std::shared_ptr<nn::Module>>;
  OrderedModules entries = {{"a", nn::Linear(1, 1).ptr()}, {"b", nn::Dropout().ptr()}};
  nn::ModuleDict dict(entries);
  dict->update(OrderedModules{{"a", nn::ReLU().ptr()}, {"c", nn::Tanh().ptr()}});
  EXPECT_EQ(dict->keys(), (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_TRUE(dict["a"]->as<nn::ReLU>());
  nn::ParameterList list(ones({1}), zeros({2}));
  *list += *nn::ParameterList(ones({3}));
  EXPECT_EQ(list[2].numel(), 3);
  EXPECT_EQ(error_of([&] { list[3]; }), "Index out of range");
  nn::ParameterDict weights;
  weights->insert("w", ones({1}));
  nn::ParameterDict others;
  others->insert("w", zeros({4}));
  weights->update(*others);
  EXPECT_EQ(weights["w"].numel(), 4);
  weights->clear();
  EXPECT_TRUE(weights->empty());
  EXPECT_EQ(error_of([&] { weights->named_parameters().front(); }), "Called front() on an empty OrderedDict");
  EXPECT_EQ(nn::enumtype::get_enum_name(nn::loss_reduction_t(nn::kSum)), "kSum");
}
