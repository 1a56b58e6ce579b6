// What modules write of themselves.
#include <sstream>

#include <gtest/gtest.h>

#include <cresset/cresset.h>
#include <cresset/ops/print.h>

using namespace cresset;

namespace {
template <class T>
std::string written(const T& value) {
  std::ostringstream stream;
  stream << value;
  return stream.str();
}
struct PlainImpl : nn::Module {};
CRESSET_MODULE(Plain);
}  // namespace

// As libtorch 2.13 writes them.
TEST(Print, WhatTensorsAreMadeOf) {
  EXPECT_EQ(written(TensorOptions()),
            "TensorOptions(dtype=float (default), device=cpu (default), layout=Strided (default), requires_grad=false (default), "
            "pinned_memory=false (default), memory_format=(nullopt))");
  EXPECT_EQ(written(dtype(kDouble).device("cpu").layout(kSparseCsr).requires_grad(true).memory_format(MemoryFormat::ChannelsLast3d)),
            "TensorOptions(dtype=double, device=cpu, layout=SparseCsr, requires_grad=true, pinned_memory=false (default), "
            "memory_format=ChannelsLast3d)");
  const std::pair<ScalarType, const char*> names[] = {{kByte, "unsigned char"},
                                                      {kChar, "signed char"},
                                                      {kShort, "short int"},
                                                      {kInt, "int"},
                                                      {kLong, "long int"},
                                                      {kHalf, "c10::Half"},
                                                      {kFloat, "float"},
                                                      {kDouble, "double"},
                                                      {kBool, "bool"},
                                                      {kBFloat16, "c10::BFloat16"},
                                                      {kComplexFloat, "c10::complex<float>"}};
  for (const auto& [type, name] : names) EXPECT_EQ(written(TypeMeta(type)), name);
  EXPECT_EQ(written(kMkldnn) + written(kSparse) + written(MemoryFormat::Preserve), "MkldnnSparsePreserve");
  EXPECT_EQ(written(Scalar(true)) + " " + written(Scalar(3)) + " " + written(Scalar(123456.789)) + " " + written(Scalar(1e16)),
            "true 3 123457 1e+16");
  EXPECT_EQ(written(Scalar(std::complex<double>(1, 2))), "(1,2)");
}

TEST(Print, TensorsOfOneElementHaveTheFewestDigits) {
  const std::pair<double, const char*> numbers[] = {{3, "3"},
                                                    {0.1, "0.1"},
                                                    {1e-5, "1e-05"},
                                                    {1e-4, "0.0001"},
                                                    {1e15, "1000000000000000"},
                                                    {1e16, "1e+16"},
                                                    {-0.0, "-0"},
                                                    {1.0 / 3, "0.3333333333333333"}};
  for (const auto& [number, text] : numbers) EXPECT_EQ(written(tensor(number, kDouble)), std::string(text) + "\n[ CPUDoubleType{} ]");
  EXPECT_EQ(written(tensor(0.1)), "0.10000000149011612\n[ CPUFloatType{} ]");
}

TEST(Print, OptionsOfLayers) {
  EXPECT_EQ(written(nn::Dropout(0.25)), "torch::nn::Dropout(p=0.25, inplace=false)");
  EXPECT_EQ(written(nn::ReLU()), "torch::nn::ReLU()");
  EXPECT_EQ(written(nn::ReLU(true)), "torch::nn::ReLU(inplace=true)");
  EXPECT_EQ(written(nn::LeakyReLU(nn::LeakyReLUOptions().inplace(true))), "torch::nn::LeakyReLU(negative_slope=0.01, inplace=true)");
  EXPECT_EQ(written(nn::MaxPool1d(3)), "torch::nn::MaxPool1d(kernel_size=3, stride=3, padding=0, dilation=1, ceil_mode=false)");
  EXPECT_EQ(written(nn::AdaptiveAvgPool2d(nn::AdaptiveAvgPool2dOptions({2, std::nullopt}))),
            "torch::nn::AdaptiveAvgPool2d(output_size=[2, None])");
  EXPECT_EQ(written(nn::BatchNorm1d(nn::BatchNorm1dOptions(3).momentum(std::nullopt))),
            "torch::nn::BatchNorm1d(3, eps=1e-05, momentum=None, affine=true, track_running_stats=true)");
  EXPECT_EQ(written(nn::ConstantPad2d(1, 2.5)), "torch::nn::ConstantPad2d(padding=[1, 1, 1, 1], value=2.5)");
  EXPECT_EQ(written(nn::Unflatten(nn::UnflattenOptions(1, {2, 3}))), "torch::nn::Unflatten(dim=1, unflattened_size={2, 3})");
  EXPECT_EQ(written(nn::Upsample(nn::UpsampleOptions().scale_factor(std::vector<double>{2}).mode(nn::kLinear))),
            "torch::nn::Upsample(scale_factor=[2], mode=kLinear)");
  EXPECT_EQ(written(nn::MSELoss()), "torch::nn::MSELoss()");
}

TEST(Print, ConvolutionsWriteWhatIsUnusual) {
  EXPECT_EQ(written(nn::Conv1d(1, 2, 3)), "torch::nn::Conv1d(1, 2, kernel_size=3, stride=1)");
  EXPECT_EQ(written(nn::Conv2d(nn::Conv2dOptions(2, 4, 3).padding(1).groups(2).bias(false).padding_mode(nn::kCircular))),
            "torch::nn::Conv2d(2, 4, kernel_size=[3, 3], stride=[1, 1], padding=[1, 1], groups=2, bias=false, padding_mode=kCircular)");
  EXPECT_EQ(written(nn::Conv2d(nn::Conv2dOptions(2, 4, 3).padding(nn::kSame).dilation(2))),
            "torch::nn::Conv2d(2, 4, kernel_size=[3, 3], stride=[1, 1], padding=kSame, dilation=[2, 2])");
  EXPECT_EQ(written(nn::ConvTranspose1d(nn::ConvTranspose1dOptions(2, 4, 3).stride(2).output_padding(1))),
            "torch::nn::ConvTranspose1d(2, 4, kernel_size=3, stride=2, output_padding=1)");
}

TEST(Print, RecurrentLayersAndEmbeddings) {
  EXPECT_EQ(written(nn::GRU(2, 3)),
            "torch::nn::GRU(input_size=2, hidden_size=3, num_layers=1, bias=true, batch_first=false, dropout=0, bidirectional=false)");
  EXPECT_EQ(written(nn::RNNCell(nn::RNNCellOptions(2, 3).nonlinearity(nn::kReLU))), "torch::nn::RNNCell(2, 3, nonlinearity=kReLU)");
  EXPECT_EQ(written(nn::Embedding(nn::EmbeddingOptions(4, 2).padding_idx(1))),
            "torch::nn::Embedding(num_embeddings=4, embedding_dim=2, padding_idx=1)");
  EXPECT_EQ(written(nn::EmbeddingBag(nn::EmbeddingBagOptions(4, 2).mode(nn::kSum))),
            "torch::nn::EmbeddingBag(num_embeddings=4, embedding_dim=2, mode=kSum)");
}

// A buffer that has room for nothing, below a stream that raises.
TEST(Print, StreamsMayRaise) {
  struct Full : std::streambuf {
  } full;
  std::ostream stream(&full);
  stream.exceptions(std::ios::badbit | std::ios::failbit);
  const nn::Linear linear(2, 3);
  EXPECT_THROW(stream << linear, std::ios_base::failure);
}

TEST(Print, ContainersAndOwnClasses) {
  EXPECT_EQ(written(nn::ParameterList(ones({2, 3}))), "torch::nn::ParameterList(\n(0): Parameter containing: [Float of size [2, 3]]\n)");
  EXPECT_EQ(written(nn::MultiheadAttention(4, 2)),
            "torch::nn::MultiheadAttention(\n  (out_proj): torch::nn::Linear(in_features=4, out_features=4, bias=true)\n)");
  EXPECT_EQ(nn::TransformerEncoderLayer(4, 2)->name(), "torch::nn::TransformerEncoderLayerImpl");
  EXPECT_NE(Plain()->name().find("PlainImpl"), std::string::npos);
}
