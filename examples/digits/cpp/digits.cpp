// The digits network without Python: reads the weights and the held-out scans that train.py wrote, and reports the
// accuracy; with --train it also trains a fresh network on a part of those scans, to show the C++ side of training.
#include <chrono>
#include <cstdio>
#include <cstring>
#include <exception>
#include <string>

#include <cresset/cresset.h>

using cresset::Tensor;
namespace nn = cresset::nn;

struct DigitsNetImpl : nn::Module {
  nn::Conv2d conv1 = register_module("conv1", nn::Conv2d(nn::Conv2dOptions(1, 16, 3).padding(1)));
  nn::BatchNorm2d norm1 = register_module("norm1", nn::BatchNorm2d(16));
  nn::Conv2d conv2 = register_module("conv2", nn::Conv2d(nn::Conv2dOptions(16, 32, 3).padding(1)));
  nn::BatchNorm2d norm2 = register_module("norm2", nn::BatchNorm2d(32));
  nn::Dropout dropout = register_module("dropout", nn::Dropout(0.25));
  nn::Linear fc = register_module("fc", nn::Linear(32 * 2 * 2, 10));

  Tensor forward(Tensor x) {
    x = cresset::max_pool2d(cresset::relu(norm1(conv1(x))), {2, 2});
    x = cresset::max_pool2d(cresset::relu(norm2(conv2(x))), {2, 2});
    return fc(dropout(x.flatten(1)));
  }
};
CRESSET_MODULE(DigitsNet);

static double accuracy(const DigitsNet& net, const Tensor& images, const Tensor& labels) {
  const cresset::NoGradGuard no_grad;
  net->eval();
  return net(images).argmax(1).eq(labels).to(cresset::kDouble).mean().item<double>();
}

static void train(const Tensor& images, const Tensor& labels) {
  cresset::default_cpu_generator().set_current_seed(0);
  DigitsNet net{std::make_shared<DigitsNetImpl>()};
  cresset::optim::Adam optimizer(net->parameters(), 5e-3);
  const int64_t half = images.size(0) / 2;
  const Tensor x = images.narrow(0, 0, half), y = labels.narrow(0, 0, half);
  double loss_value = 0;
  for (int step = 0; step < 60; ++step) {
    net->train();
    optimizer.zero_grad();
    const Tensor loss = cresset::cross_entropy_loss(net(x), y);
    loss.backward();
    optimizer.step();
    loss_value = loss.item<double>();
  }
  std::printf("C++: trained 60 steps on %ld scans, loss %.4f, accuracy %.4f on the others\n", static_cast<long>(half), loss_value,
              accuracy(net, images.narrow(0, half, images.size(0) - half), labels.narrow(0, half, images.size(0) - half)));
}

int main(int argc, char** argv) try {
  if (argc < 2) {
    std::fprintf(stderr, "usage: %s FOLDER [--train]\n", argv[0]);
    return 2;
  }
  const std::string folder = argv[1];
  Tensor images, labels;
  for (auto& [name, value] : cresset::load_safetensors(folder + "/digits_test.safetensors")) (name == "images" ? images : labels) = value;

  DigitsNet net{std::make_shared<DigitsNetImpl>()};
  net->load_state_dict(cresset::load_safetensors(folder + "/digits.safetensors"));
  const auto start = std::chrono::steady_clock::now();
  const double result = accuracy(net, images, labels);
  const double ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  std::printf("C++: accuracy %.4f on %ld scans in %.1f ms\n", result, static_cast<long>(images.size(0)), ms);
  if (argc > 2 && std::strcmp(argv[2], "--train") == 0) train(images, labels);
} catch (const std::exception& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 1;
}
