// Training in the manner of PyTorch's C++ tutorials: a network for the files of MNIST in the folder argv[1], a data loader, an optimiser,
// and a generator with transposed convolutions that learns one image. Prints what the test compares.
#include "norms.h"

#include <torch/torch.h>

#include <cstdio>
#include <iostream>
#include <sstream>
#include <string>

struct Net : torch::nn::Module {
  Net()
      : conv1(torch::nn::Conv2dOptions(1, 8, /*kernel_size=*/3)),
        conv2(torch::nn::Conv2dOptions(8, 16, 3).stride(2)),
        fc1(16 * 12 * 12, 32),
        fc2(32, 10) {
    register_module("conv1", conv1);
    register_module("conv2", conv2);
    register_module("conv2_drop", conv2_drop);
    register_module("fc1", fc1);
    register_module("fc2", fc2);
  }

  torch::Tensor forward(torch::Tensor x) {
    x = torch::relu(conv1->forward(x));
    x = torch::relu(conv2_drop->forward(conv2->forward(x)));
    x = x.view({-1, 16 * 12 * 12});
    x = torch::relu(fc1->forward(x));
    x = torch::dropout(x, /*p=*/0.1, /*training=*/is_training());
    x = fc2->forward(x);
    return torch::log_softmax(x, /*dim=*/1);
  }

  torch::nn::Conv2d conv1;
  torch::nn::Conv2d conv2;
  torch::nn::Dropout2d conv2_drop;
  torch::nn::Linear fc1;
  torch::nn::Linear fc2;
};

template <typename DataLoader>
void train(size_t epoch, Net& model, torch::Device device, DataLoader& data_loader, torch::optim::Optimizer& optimizer,
           size_t dataset_size) {
  model.train();
  size_t seen = 0;
  for (auto& batch : data_loader) {
    auto data = batch.data.to(device), targets = batch.target.to(device);
    optimizer.zero_grad();
    auto output = model.forward(data);
    auto loss = torch::nll_loss(output, targets);
    AT_ASSERT(!std::isnan(loss.template item<float>()));
    loss.backward();
    optimizer.step();
    seen += batch.data.size(0);
  }
  TORCH_CHECK(seen == dataset_size, "epoch ", epoch, " saw ", seen, " of ", dataset_size);
}

template <typename DataLoader>
double test(Net& model, torch::Device device, DataLoader& data_loader, size_t dataset_size) {
  torch::NoGradGuard no_grad;
  model.eval();
  double test_loss = 0;
  int32_t correct = 0;
  for (const auto& batch : data_loader) {
    auto data = batch.data.to(device), targets = batch.target.to(device);
    auto output = model.forward(data);
    test_loss += torch::nll_loss(output, targets, /*weight=*/{}, torch::Reduction::Sum).template item<float>();
    auto pred = output.argmax(1);
    correct += pred.eq(targets).sum().template item<int64_t>();
  }
  return static_cast<double>(correct) / dataset_size;
}

// A generator as the DCGAN tutorial has it, smaller.
struct DCGANGeneratorImpl : torch::nn::Module {
  DCGANGeneratorImpl(int kNoiseSize)
      : conv1(torch::nn::ConvTranspose2dOptions(kNoiseSize, 16, 4).bias(false)),
        batch_norm1(16),
        conv2(torch::nn::ConvTranspose2dOptions(16, 1, 4).stride(2).padding(1).bias(false)) {
    register_module("conv1", conv1);
    register_module("batch_norm1", batch_norm1);
    register_module("conv2", conv2);
  }

  torch::Tensor forward(torch::Tensor x) {
    x = torch::relu(batch_norm1(conv1(x)));
    return torch::tanh(conv2(x));
  }

  torch::nn::ConvTranspose2d conv1;
  torch::nn::BatchNorm2d batch_norm1;
  torch::nn::ConvTranspose2d conv2;
};
TORCH_MODULE(DCGANGenerator);

auto main(int argc, char** argv) -> int {
  TORCH_CHECK(norm_of(torch::ones({4})) == 2, "objects that do not link see the same tensors");
  torch::manual_seed(1);
  torch::DeviceType device_type = torch::cuda::is_available() ? torch::kCUDA : torch::kCPU;
  torch::Device device(device_type);

  Net model;
  model.to(device);
  auto train_dataset = torch::data::datasets::MNIST(argv[1])
                           .map(torch::data::transforms::Normalize<>(0.1307, 0.3081))
                           .map(torch::data::transforms::Stack<>());
  const size_t train_dataset_size = train_dataset.size().value();
  auto train_loader = torch::data::make_data_loader<torch::data::samplers::SequentialSampler>(
      std::move(train_dataset), torch::data::DataLoaderOptions().batch_size(32).workers(2));
  auto test_dataset = torch::data::datasets::MNIST(argv[1], torch::data::datasets::MNIST::Mode::kTest)
                          .map(torch::data::transforms::Normalize<>(0.1307, 0.3081))
                          .map(torch::data::transforms::Stack<>());
  const size_t test_dataset_size = test_dataset.size().value();
  auto test_loader = torch::data::make_data_loader(std::move(test_dataset), 100);

  torch::optim::SGD optimizer(model.parameters(), torch::optim::SGDOptions(0.02).momentum(0.5));
  for (size_t epoch = 1; epoch <= 3; ++epoch) train(epoch, model, device, *train_loader, optimizer, train_dataset_size);
  const double accuracy = test(model, device, *test_loader, test_dataset_size);
  std::printf("accuracy %.3f\n", accuracy);

  // A module and an optimiser through files: the copy continues as the original does.
  DCGANGenerator generator(8), copy(8);
  torch::nn::Sequential discriminator(torch::nn::Conv2d(torch::nn::Conv2dOptions(1, 4, 4).stride(2).padding(1).bias(false)),
                                      torch::nn::LeakyReLU(torch::nn::LeakyReLUOptions().negative_slope(0.2)), torch::nn::Flatten(),
                                      torch::nn::Linear(64, 1), torch::nn::Sigmoid());
  torch::optim::Adam adam(generator->parameters(), torch::optim::AdamOptions(1e-2).betas(std::make_tuple(0.5, 0.999)));
  torch::optim::Adam copied(copy->parameters(), torch::optim::AdamOptions(1));
  torch::Tensor noise = torch::randn({4, 8, 1, 1}, device), real = torch::empty({4}, device).uniform_(0.8, 1.0);
  const auto step = [&](DCGANGenerator& g, torch::optim::Adam& o) {
    o.zero_grad();
    torch::Tensor loss = torch::binary_cross_entropy(discriminator->forward(g->forward(noise)).reshape(real.sizes()), real);
    loss.backward();
    o.step();
    return loss.item<float>();
  };
  const float first = step(generator, adam);
  for (int i = 0; i < 20; ++i) step(generator, adam);
  std::stringstream module_file, optimizer_file;
  torch::save(generator, module_file);
  torch::save(adam, optimizer_file);
  torch::load(copy, module_file);
  torch::load(copied, optimizer_file);
  const float a = step(generator, adam), b = step(copy, copied);
  std::printf("generator learns %d, copy agrees %d\n", a < first, a == b);
  torch::save(generator, std::string(argv[1]) + "/generator.pt");
  std::cout << discriminator << "\n";
  return 0;
}
