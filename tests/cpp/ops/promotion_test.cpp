// Promotion of operand types: the whole table, recorded from PyTorch's torch.result_type.
#include <gtest/gtest.h>

#include <cresset/ops/functions.h>

namespace cresset {
namespace {

constexpr ScalarType kOrder[] = {kByte,   kChar,         kShort,         kInt,  kLong,     kHalf,       kFloat,
                                 kDouble, kComplexFloat, kComplexDouble, kBool, kBFloat16, kComplexHalf};
// One letter a type, in kOrder; complex32, the last, is a result only.
constexpr char kLetters[] = "uabilhfdczBgk";

ScalarType type_of(char letter) { return kOrder[std::string_view(kLetters).find(letter)]; }

constexpr const char* kTensorTensor[] = {"ubbilhfdczug", "babilhfdczag", "bbbilhfdczbg", "iiiilhfdczig", "lllllhfdczlg", "hhhhhhfdczhf",
                                         "fffffffdczff", "ddddddddzzdd", "ccccccczczcc", "zzzzzzzzzzzz", "uabilhfdczBg", "gggggffdczgg"};
// Tensor with dimensions and zero-dimensional tensor.
constexpr const char* kTensorZeroDim[] = {"uuuuuhfdczug", "aaaaahfdczag", "bbbbbhfdczbg", "iiiiihfdczig", "lllllhfdczlg", "hhhhhhhhkkhh",
                                          "ffffffffccff", "ddddddddzzdd", "cccccccccccc", "zzzzzzzzzzzz", "uabilhfdczBg", "ggggggggccgg"};
// Tensor and True, 3, 2.5, 1j; the same for tensors with and without dimensions.
constexpr const char* kTensorNumber[] = {"uufc", "aafc", "bbfc", "iifc", "llfc", "hhhk", "fffc", "dddz", "cccc", "zzzz", "Blfc", "gggc"};

TEST(Promotion, TwoTensors) {
  for (int a = 0; a < 12; ++a)
    for (int b = 0; b < 12; ++b) {
      const Tensor x = empty({2}, kOrder[a]), y = empty({2}, kOrder[b]);
      EXPECT_EQ(result_type(x, y), type_of(kTensorTensor[a][b])) << toString(kOrder[a]) << " " << toString(kOrder[b]);
      EXPECT_EQ(promote_types(kOrder[a], kOrder[b]), type_of(kTensorTensor[a][b]));
    }
}

TEST(Promotion, ZeroDimensionalTensorsRankLower) {
  for (int a = 0; a < 12; ++a)
    for (int b = 0; b < 12; ++b) {
      const Tensor x = empty({2}, kOrder[a]), y = empty({}, kOrder[b]);
      EXPECT_EQ(result_type(x, y), type_of(kTensorZeroDim[a][b])) << toString(kOrder[a]) << " " << toString(kOrder[b]);
      EXPECT_EQ(result_type(y, x), type_of(kTensorZeroDim[a][b]));
    }
}

TEST(Promotion, NumbersRankLowest) {
  const Scalar numbers[] = {Scalar(true), Scalar(3), Scalar(2.5), Scalar(std::complex<double>(0, 1))};
  for (int a = 0; a < 12; ++a)
    for (int b = 0; b < 4; ++b)
      for (bool zero_dim : {false, true}) {
        const Tensor x = zero_dim ? empty({}, kOrder[a]) : empty({2}, kOrder[a]);
        EXPECT_EQ(result_type(x, numbers[b]), type_of(kTensorNumber[a][b])) << toString(kOrder[a]) << " number " << b;
        EXPECT_EQ(result_type(numbers[b], x), type_of(kTensorNumber[a][b]));
      }
}

TEST(Promotion, DefaultTypeDecidesForNumbersAndDivision) {
  set_default_dtype(kDouble);
  const Tensor i = ones({2}, kLong);
  EXPECT_EQ(result_type(i, Scalar(2.5)), kDouble);
  EXPECT_EQ(div(i, i).scalar_type(), kDouble);
  set_default_dtype(kFloat);
  EXPECT_EQ(result_type(i, Scalar(2.5)), kFloat);
  EXPECT_EQ(div(i, i).scalar_type(), kFloat);
}

TEST(Promotion, OperatorsUseIt) {
  const Tensor u8 = full({2}, 200, TensorOptions(kByte)), i16 = ones({2}, kShort), f16 = ones({2}, kHalf);
  EXPECT_EQ(add(u8, i16).scalar_type(), kShort);
  EXPECT_EQ(add(u8, i16).to(kLong)[0].item<int64_t>(), 201);
  EXPECT_EQ(mul(f16, 2.5).scalar_type(), kHalf);
  EXPECT_EQ(mul(u8, 2).scalar_type(), kByte);
  EXPECT_EQ(eq(u8, i16).scalar_type(), kBool);
  EXPECT_EQ(sigmoid(i16).scalar_type(), kFloat);
  EXPECT_EQ(abs(ones({2}, kComplexDouble)).scalar_type(), kDouble);
}

}  // namespace
}  // namespace cresset
