// Indexing in C++: each case beside the same in numbers.
#include <gtest/gtest.h>

#include <sstream>

#include <cresset/cresset.h>

using namespace cresset;
using namespace cresset::indexing;

namespace {

Tensor counted(IntArrayRef sizes) {
  int64_t n = 1;
  for (int64_t s : sizes) n *= s;
  return arange(n).view(sizes);
}

}  // namespace

TEST(TensorIndexing, BasicIndicesAreViews) {
  const Tensor x = counted({2, 3, 4});
  const Tensor part = get_item(x, {Slice(1), None, Ellipsis, Slice(None, None, 2)});
  EXPECT_EQ(part.sizes(), IntArrayRef({1, 1, 3, 2}));
  EXPECT_TRUE(part.flatten().equal(tensor({12, 14, 16, 18, 20, 22})));
  EXPECT_TRUE(part.is_alias_of(x));
  EXPECT_TRUE(get_item(x, {"...", -1}).equal(tensor({{3, 7, 11}, {15, 19, 23}})));
  EXPECT_TRUE(get_item(x, {0, Slice(-2), 1}).equal(tensor({5, 9})));
  const Tensor whole = get_item(x, {Ellipsis});
  EXPECT_TRUE(whole.is_alias_of(x));
  EXPECT_FALSE(whole.is_same(x));
}

TEST(TensorIndexing, TensorsSelect) {
  const Tensor x = counted({2, 3, 4});
  EXPECT_TRUE(get_item(x, {Slice(), None, tensor({2, 0}), 1}).equal(tensor({9, 1, 21, 13}).view({2, 1, 2})));
  EXPECT_TRUE(get_item(x, {tensor({1, 0}), Ellipsis, tensor({3, 2})}).equal(tensor({{15, 19, 23}, {2, 6, 10}})));
  EXPECT_TRUE(get_item(x, {1, x[1] > 20}).equal(tensor({21, 22, 23})));
  EXPECT_TRUE(get_item(x, {tensor(1), 2, 3}).equal(tensor(23)));
  EXPECT_EQ(get_item(x, {true}).sizes(), IntArrayRef({1, 2, 3, 4}));
  EXPECT_EQ(get_item(x, {false}).sizes(), IntArrayRef({0, 2, 3, 4}));
}

TEST(TensorIndexing, Assignment) {
  Tensor x = zeros({2, 3}, TensorOptions(kLong));
  set_item(x, {Slice(), 1}, tensor({5, 6}));
  set_item(x, {1, Slice(None, None, 2)}, Scalar(7));
  EXPECT_TRUE(x.equal(tensor({{0, 5, 0}, {7, 6, 7}})));
  set_item(x, {x > 5}, Scalar(-1));
  EXPECT_TRUE(x.equal(tensor({{0, 5, 0}, {-1, -1, -1}})));
  set_item(x, {tensor({0, 1}), tensor({0, 2})}, tensor({8, 9}).view({1, 1, 2}));
  EXPECT_TRUE(x.equal(tensor({{8, 5, 0}, {-1, -1, 9}})));
  set_item(x, {0}, tensor({1, 2, 3}).view({1, 3}));
  EXPECT_TRUE(x[0].equal(tensor({1, 2, 3})));
}

TEST(TensorIndexing, Text) {
  const auto text = [](const auto& v) {
    std::ostringstream out;
    out << v;
    return out.str();
  };
  const std::string most = std::to_string(INDEX_MAX), least = std::to_string(INDEX_MIN);
  EXPECT_EQ(text(Slice(1, 2, 3)), "1:2:3");
  EXPECT_EQ(text(std::vector<TensorIndex>{None, "...", Ellipsis, 0, true, Slice(1, None, 2)}),
            "(None, ..., ..., 0, true, 1:" + most + ":2)");
  EXPECT_EQ(text(TensorIndex(Slice(None, 3))), "0:3:1");
  EXPECT_EQ(text(TensorIndex(Slice(None, None, -1))), most + ":" + least + ":-1");
  EXPECT_NE(text(TensorIndex(tensor({7, 8}))).find("8"), std::string::npos);
}

TEST(TensorIndexing, Errors) {
  const Tensor x = counted({2, 3});
  EXPECT_THROW(get_item(x, {0, 0, 0}), IndexError);
  EXPECT_THROW(get_item(x, {0, 3}), IndexError);
  EXPECT_THROW(get_item(x, {Slice(None, None, 0)}), ValueError);
  EXPECT_THROW(get_item(tensor(1.0), {0}), IndexError);
  EXPECT_THROW(get_item(x, {".."}), ValueError);
  EXPECT_THROW(set_item(x, {0}, zeros({2})), Error);
}
