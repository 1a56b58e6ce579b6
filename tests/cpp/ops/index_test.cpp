// Views, joins, indexing and sorting: results against plain loops, aliasing, and the words of errors.
#include <algorithm>
#include <numeric>

#include "ops/naive.h"

using namespace cresset;
using namespace cresset::testing;

namespace {

Tensor longs(const std::vector<double>& v) { return vector(v, kLong); }

TEST(ViewTest, ViewsShareMemory) {
  Tensor t = noise({2, 3, 4}, kFloat);
  for (const Tensor& v : {t.view({6, 4}), t.transpose(0, 2), t.permute({2, 0, 1}), t.select(1, 2), cresset::slice(t, 2, 1, 4, 2),
                          t.unsqueeze(1), t.expand({5, 2, 3, 4}), t.diagonal(0, 1, 2), t.unfold(2, 2, 1), t.reshape({24}), t.flatten(),
                          t.split(2, 2)[1], t.unbind(0)[1], t.alias(), t.view(kInt)})
    EXPECT_TRUE(v.is_alias_of(t));
  EXPECT_FALSE(t.transpose(0, 1).reshape({24}).is_alias_of(t));
}

TEST(ViewTest, SizesAndStrides) {
  const Tensor t = cresset::empty({2, 3, 4}, kFloat);
  EXPECT_EQ(t.view({-1, 2}).sizes(), IntArrayRef({12, 2}));
  EXPECT_EQ(t.transpose(0, 2).strides(), IntArrayRef({1, 4, 12}));
  EXPECT_EQ(t.diagonal(1, 1, 2).strides(), IntArrayRef({12, 5}));
  EXPECT_EQ(t.unfold(2, 2, 2).sizes(), IntArrayRef({2, 3, 2, 2}));
  EXPECT_EQ(cresset::slice(t, 1, -2, 100, 1).sizes(), IntArrayRef({2, 2, 4}));
  EXPECT_EQ(t.movedim({0, 1}, {2, 0}).sizes(), IntArrayRef({3, 4, 2}));
  EXPECT_EQ(cresset::empty({1, 3, 1}, kFloat).squeeze().sizes(), IntArrayRef({3}));
  EXPECT_EQ(cresset::empty({0, 3}, kFloat).view({3, 0, 2}).strides(), IntArrayRef({2, 2, 1}));
  EXPECT_EQ(t.view(kShort).sizes(), IntArrayRef({2, 3, 8}));
  EXPECT_EQ(t.view(kDouble).strides(), IntArrayRef({6, 2, 1}));
  EXPECT_EQ(t.tensor_split(3, 2)[0].sizes(), IntArrayRef({2, 3, 2}));
  EXPECT_EQ(t.chunk(3, 2).size(), 2u);
  Tensor m = cresset::empty({2, 3}, kFloat);
  m.t_();
  EXPECT_EQ(m.strides(), IntArrayRef({1, 3}));
  m.unsqueeze_(0);
  EXPECT_EQ(m.sizes(), IntArrayRef({1, 3, 2}));
}

TEST(ViewTest, Errors) {
  const Tensor t = cresset::empty({2, 3}, kFloat);
  EXPECT_RAISES(Error, t.view({4}), "shape '[4]' is invalid for input of size 6");
  EXPECT_RAISES(Error, t.view({-1, -1}), "only one dimension can be inferred");
  EXPECT_RAISES(Error, t.t().view({6}), "view size is not compatible with input tensor's size and stride");
  EXPECT_RAISES(Error, cresset::empty({0, 3}, kFloat).view({-1, 0}), "the unspecified dimension size -1 can be any value and is ambiguous");
  EXPECT_RAISES(Error, t.expand({3, 3}),
                "The expanded size of the tensor (3) must match the existing size (2) at non-singleton dimension 0.");
  EXPECT_RAISES(Error, t.permute({0, 0}), "duplicate dims are not allowed");
  EXPECT_RAISES(IndexError, t.select(0, 5), "select(): index 5 out of range for tensor of size [2, 3] at dimension 0");
  EXPECT_RAISES(IndexError, t.transpose(0, 2), "Dimension out of range (expected to be in range of [-2, 1], but got 2)");
  EXPECT_RAISES(Error, cresset::slice(t, 0, 0, 2, 0), "slice step must be positive");
  EXPECT_RAISES(Error, t.narrow(0, 1, 3), "start (1) + length (3) exceeds dimension size (2).");
  EXPECT_RAISES(Error, t.as_strided({3, 3}, {1, 3}, 5), "out of bounds for storage of size 24");
  EXPECT_RAISES(Error, t.split(-1, 0), "split expects split_size be non-negative");
  EXPECT_RAISES(Error, t.split_with_sizes({1, 2}, 0), "to sum exactly to 2");
  EXPECT_RAISES(Error, t.view(kDouble), "self.size(-1) must be divisible by 2 to view Float as Double");
  EXPECT_RAISES(Error, imag(t), "imag is not implemented for tensors with non-complex dtypes.");
  EXPECT_RAISES(IndexError, cresset::empty({}, kFloat).unbind(0), "Dimension specified as 0 but tensor has no dimensions");
}

TEST(ViewTest, ResizeGrowsStorageAndKeepsElements) {
  Tensor t = vector({1, 2, 3});
  const void* before = t.data_ptr();
  t.resize_({2});
  EXPECT_EQ(t.data_ptr(), before);
  t.resize_({3, 2});
  EXPECT_EQ(values(t.view({6}).narrow(0, 0, 3)), std::vector<double>({1, 2, 3}));
  EXPECT_RAISES(Error, t.resize_({-1}), "negative dimension -1");
  EXPECT_RAISES(Error, t.set_(cresset::empty({2}, kInt)), "Could not set tensor of type Int to a tensor of type Float");
}

// ---- joining -----------------------------------------------------------------------------------------------------------

TEST(ConcatTest, CatOfMixedLayoutsAndTypes) {
  for (int64_t d = 0; d < 3; ++d)
    for (const Tensor& a : layouts({2, 3, 4}, kFloat)) {
      const Tensor b = noise({2, 3, 4}, kFloat, 5), out = cat({a, b, a}, d);
      EXPECT_EQ(values(narrow(out, d, 0, a.size(d))), values(a));
      EXPECT_EQ(values(narrow(out, d, a.size(d), b.size(d))), values(b));
      EXPECT_EQ(values(narrow(out, d, a.size(d) + b.size(d), a.size(d))), values(a));
    }
  const Tensor mixed = cat({longs({1, 2}), vector({0.5})}, 0);
  EXPECT_EQ(mixed.scalar_type(), kFloat);
  EXPECT_EQ(values(mixed), std::vector<double>({1, 2, 0.5}));
  EXPECT_EQ(cat({cresset::empty({0}, kFloat), noise({2, 3}, kFloat)}, 0).sizes(), IntArrayRef({2, 3}));
  EXPECT_RAISES(Error, stack({}, 0), "stack expects a non-empty TensorList");
  EXPECT_RAISES(Error, cat({noise({2, 3}, kFloat), noise({2, 4}, kFloat)}, 0),
                "Expected size 3 but got size 4 for tensor number 1 in the list.");
}

TEST(ConcatTest, FlipRollPadRepeat) {
  for (const Tensor& t : layouts({3, 4, 5}, kFloat)) {
    const Tensor f = flip(t, {0, 2}), r = roll(t, {1, -2}, {0, 2}), p = constant_pad_nd(t, {1, 2, -1, 1}, 7);
    for (int64_t i = 0; i < 3; ++i)
      for (int64_t j = 0; j < 4; ++j)
        for (int64_t k = 0; k < 5; ++k) {
          const auto at = [](const Tensor& x, int64_t a, int64_t b, int64_t c) {
            return x.select(0, a).select(0, b).select(0, c).item<float>();
          };
          EXPECT_EQ(at(f, i, j, k), at(t, 2 - i, j, 4 - k));
          EXPECT_EQ(at(r, (i + 1) % 3, j, (k + 3) % 5), at(t, i, j, k));
          if (j >= 1) {
            EXPECT_EQ(at(p, i, j - 1, k + 1), at(t, i, j, k));
          }
          EXPECT_EQ(at(p, i, 3, k), 7);
        }
    EXPECT_EQ(values(roll(t, {3}, {})), values(roll(t.reshape({60}), {3}, {0})));
    EXPECT_EQ(values(t.repeat({2, 1, 3})), values(cat({cat({t, t, t}, 2), cat({t, t, t}, 2)}, 0)));
  }
  EXPECT_EQ(values(repeat_interleave(vector({1, 2, 3}), longs({2, 0, 1}), 0)), std::vector<double>({1, 1, 3}));
  EXPECT_RAISES(Error, repeat_interleave(longs({-1})), "repeats can not be negative");
}

TEST(ConcatTest, BorderPadding) {
  const Tensor t = tensor({0, 1, 2, 3}, {1, 4});
  EXPECT_EQ(values(pad(t, {2, 1}, "reflect")), std::vector<double>({2, 1, 0, 1, 2, 3, 2}));
  EXPECT_EQ(values(pad(t, {2, 1}, "replicate")), std::vector<double>({0, 0, 0, 1, 2, 3, 3}));
  EXPECT_EQ(values(pad(t.view({1, 1, 4}), {2, 1}, "circular")), std::vector<double>({2, 3, 0, 1, 2, 3, 0}));
  EXPECT_EQ(values(pad(t.view({1, 1, 4}), {-1, 2}, "circular")), std::vector<double>({1, 2, 3, 1, 2}));
  EXPECT_EQ(values(reflection_pad1d_backward(cresset::ones({1, 7}, kFloat), t, {2, 1})), std::vector<double>({1, 2, 3, 1}));
  EXPECT_RAISES(Error, pad(t, {4, 0}, "reflect"), "Padding size should be less than the corresponding input dimension");
  EXPECT_RAISES(NotImplementedError, pad(t, {1, 1}, "foo"), "Unrecognised padding mode foo");
}

// ---- indexing ----------------------------------------------------------------------------------------------------------

TEST(IndexTest, IndexAndIndexPutMatchPlainLoops) {
  for (const Tensor& t : layouts({4, 3, 5}, kFloat)) {
    const Tensor i = longs({3, 0, -1, 1}), k = longs({4, -5, 2, 2});
    const Tensor got = index(t, {std::optional<Tensor>(i), std::nullopt, std::optional<Tensor>(k)});  // separated: the index comes first
    ASSERT_EQ(got.sizes(), IntArrayRef({4, 3}));
    const int64_t rows[] = {3, 0, 3, 1}, columns[] = {4, 0, 2, 2};
    for (int64_t n = 0; n < 4; ++n) EXPECT_EQ(values(got.select(0, n)), values(t.select(0, rows[n]).select(1, columns[n])));
    const Tensor middle = index(t, {std::nullopt, std::optional<Tensor>(longs({2, 0}).view({2, 1}).expand({2, 2}))});
    ASSERT_EQ(middle.sizes(), IntArrayRef({4, 2, 2, 5}));
    EXPECT_EQ(values(middle.select(1, 0).select(1, 1)), values(t.select(1, 2)));
    const Tensor mask = gt(t, 0);
    EXPECT_EQ(values(index(t, {std::optional<Tensor>(mask)})), values(masked_select(t, mask)));

    Tensor sum = cresset::zeros({4, 3, 5}, kFloat);
    index_put_(sum, {std::optional<Tensor>(longs({1, 1, 2}))}, cresset::ones({3, 5}, kFloat), true);
    EXPECT_EQ(sum.sum().item<float>(), 45);
    EXPECT_EQ(sum.select(0, 1).select(0, 0).select(0, 0).item<float>(), 2);
  }
}

TEST(IndexTest, OneIndexASlice) {
  for (const Tensor& t : layouts({4, 3, 5}, kDouble))
    for (int64_t d = 0; d < 3; ++d) {
      const std::vector<double> at = {2, 0, 2};
      const Tensor picked = index_select(t, d, longs(at));
      Tensor added = t.clone(), copied = t.clone();
      for (int64_t n = 0; n < 3; ++n) {
        EXPECT_EQ(values(picked.select(d, n)), values(t.select(d, static_cast<int64_t>(at[n]))));
        added.select(d, static_cast<int64_t>(at[n])).add_(picked.select(d, n), 2);
        copied.select(d, static_cast<int64_t>(at[n])).copy_(picked.select(d, n));
      }
      EXPECT_EQ(values(index_add(t, d, longs(at), picked, 2)), values(added));
      EXPECT_EQ(values(index_copy(t, d, longs(at), picked)), values(copied));
      EXPECT_EQ(values(index_fill(t, d, longs({-1}), 9).select(d, t.size(d) - 1)),
                std::vector<double>(static_cast<std::size_t>(60 / t.size(d)), 9));
    }
}

TEST(IndexTest, OneIndexAnElement) {
  for (const Tensor& t : layouts({4, 3, 5}, kDouble))
    for (int64_t d = 0; d < 3; ++d) {
      DimVector sizes = {2, 2, 3};
      const Tensor at = cresset::remainder(cresset::abs(noise(sizes, kLong, 3)), t.size(d));
      const Tensor got = gather(t, d, at), src = noise({4, 3, 5}, kDouble, 8), added = scatter_add(t, d, at, src);
      Tensor want = t.clone();
      for (int64_t i = 0; i < 2; ++i)
        for (int64_t j = 0; j < 2; ++j)
          for (int64_t k = 0; k < 3; ++k) {
            int64_t place[3] = {i, j, k};
            place[d] = at.select(0, i).select(0, j).select(0, k).item<int64_t>();
            EXPECT_EQ(got.select(0, i).select(0, j).select(0, k).item<double>(),
                      t.select(0, place[0]).select(0, place[1]).select(0, place[2]).item<double>());
            want.select(0, place[0]).select(0, place[1]).select(0, place[2]).add_(src.select(0, i).select(0, j).select(0, k));
          }
      expect_close(values(added), values(want), 1e-14, "scatter_add");
    }
  EXPECT_EQ(values(scatter_reduce(vector({1, 2, 3}), 0, longs({0, 0, 2}), vector({4, 6, 5}), "mean", false)),
            std::vector<double>({5, 2, 5}));
  EXPECT_EQ(values(scatter_reduce(vector({1, 2, 3}), 0, longs({0, 0, 2}), vector({4, 6, 5}), "amax")), std::vector<double>({6, 2, 5}));
  EXPECT_EQ(values(take(tensor({0, 1, 2, 3, 4, 5}, {2, 3}).t(), longs({1, -1}))), std::vector<double>({3, 5}));
  EXPECT_EQ(values(nonzero(tensor({0, 1, 2, 0}, {2, 2}))), std::vector<double>({0, 1, 1, 0}));
}

TEST(IndexTest, BadIndicesRaiseAndWriteNothing) {
  Tensor t = cresset::zeros({3, 2}, kFloat);
  const auto at = [](const Tensor& i) { return std::vector<std::optional<Tensor>>{i}; };
  EXPECT_RAISES(IndexError, index(t, at(longs({0, 5}))), "index 5 is out of bounds for dimension 0 with size 3");
  EXPECT_RAISES(IndexError, index(t, at(vector({0.5}))), "tensors used as indices must be long, int, byte or bool tensors");
  EXPECT_RAISES(IndexError, index(t, {std::optional<Tensor>(longs({0, 1})), std::optional<Tensor>(longs({0, 1, 0}))}),
                "could not be broadcast together with shapes [2], [3]");
  EXPECT_RAISES(IndexError, index(t, at(vector({1, 0}, kBool))), "The shape of the mask [2] at index 0 does not match");
  EXPECT_RAISES(IndexError, index_put_(t, at(longs({0, 5})), cresset::ones({1}, kFloat)), "index 5 is out of bounds");
  EXPECT_RAISES(Error, index_put_(t, at(longs({0})), cresset::ones({3, 3}, kFloat)), "cannot be broadcast to indexing result of shape");
  EXPECT_RAISES(Error, index_put_(t, at(longs({0})), cresset::ones({1}, kDouble)),
                "Index put requires the source and destination dtypes match");
  EXPECT_RAISES(Error, t.scatter_(0, tensor({0, 9}, {1, 2}, kLong), 1), "index 9 is out of bounds for dimension 0 with size 3");
  EXPECT_RAISES(Error, t.index_add_(0, longs({0, 7}), cresset::ones({2, 2}, kFloat)),
                "index 7 is out of bounds for dimension 0 with size 3");
  EXPECT_RAISES(IndexError, t.index_fill_(0, longs({0, 7}), 1), "index 7 is out of bounds for dimension 0 with size 3");
  EXPECT_RAISES(IndexError, t.put_(longs({0, 99}), vector({1, 1})), "tried to access index 99 on a tensor of 6 elements");
  EXPECT_RAISES(Error, t.masked_scatter_(cresset::ones({3, 2}, kBool), vector({1})),
                "Number of elements of source < number of ones in mask");
  EXPECT_RAISES(Error, t.expand({4, 3, 2}).scatter_(0, cresset::zeros({1, 1, 1}, kLong), 1), "refers to a single memory location");
  EXPECT_EQ(t.abs().sum().item<float>(), 0);
  EXPECT_RAISES(IndexError, index_select(t, 0, longs({3})), "index out of range in self");
  EXPECT_RAISES(Error, gather(t, 0, tensor({3}, {1, 1}, kLong)), "index 3 is out of bounds for dimension 0 with size 3");
  EXPECT_RAISES(Error, gather(t, 0, longs({0})), "Index tensor must have the same number of dimensions as input tensor");
}

TEST(IndexTest, Embedding) {
  const Tensor w = noise({5, 3}, kFloat), at = tensor({1, 4, 1, 0}, {2, 2}, kLong);
  EXPECT_EQ(values(embedding(w, at).select(0, 0).select(0, 1)), values(w.select(0, 4)));
  const Tensor g = embedding_dense_backward(cresset::ones({2, 2, 3}, kFloat), at, 5, 0, false);
  EXPECT_EQ(values(g.select(1, 0)), std::vector<double>({0, 2, 0, 0, 1}));
  EXPECT_EQ(values(embedding_dense_backward(cresset::ones({2, 2, 3}, kFloat), at, 5, -1, true).select(1, 0)),
            std::vector<double>({1, 1, 0, 0, 1}));
}

// ---- sorting -----------------------------------------------------------------------------------------------------------

TEST(SortTest, StableInEveryLayoutAndType) {
  for (ScalarType type : {kFloat, kDouble, kHalf, kLong, kInt, kByte, kBool})
    for (const DimVector& sizes : {DimVector{3, 20}, DimVector{2, 1500}, DimVector{0, 3}})
      for (const Tensor& t : layouts(sizes, type))
        for (int64_t d = 0; d < 2; ++d)
          for (bool descending : {false, true}) {
            const auto [v, i] = sort(t, std::optional<bool>(true), d, descending);
            std::vector<double> want, want_index;
            for_each_reduced(t, uint64_t{1} << d, [&](const std::vector<double>& row) {
              std::vector<int64_t> order(row.size());
              std::iota(order.begin(), order.end(), 0);
              std::stable_sort(order.begin(), order.end(),
                               [&](int64_t a, int64_t b) { return descending ? row[a] > row[b] : row[a] < row[b]; });
              for (int64_t o : order) want.push_back(row[o]), want_index.push_back(static_cast<double>(o));
            });
            EXPECT_EQ(values(v.movedim(d, -1)), want);
            EXPECT_EQ(values(i.movedim(d, -1)), want_index);
          }
}

TEST(SortTest, NanIsTheLargest) {
  const double nan = std::nan("");
  EXPECT_EQ(values(std::get<1>(sort(vector({3, nan, 1, -0.0, 0}), 0, false))), std::vector<double>({3, 4, 2, 0, 1}));
  EXPECT_EQ(values(std::get<1>(sort(vector({3, nan, 1}), 0, true))), std::vector<double>({1, 0, 2}));
  EXPECT_EQ(values(std::get<1>(topk(vector({nan, 1, 2}), 2))), std::vector<double>({0, 2}));
}

TEST(SortTest, RanksAgreeWithSorting) {
  for (const Tensor& t : layouts({7, 300}, kFloat))
    for (int64_t d = 0; d < 2; ++d)
      for (int64_t k : {int64_t{1}, int64_t{5}, t.size(d)}) {
        const auto [v, i] = topk(t, k, d);
        EXPECT_EQ(values(v), values(narrow(std::get<0>(sort(t, d, true)), d, 0, k)));
        EXPECT_EQ(values(gather(t, d, i)), values(v));
        EXPECT_EQ(values(std::get<0>(kthvalue(t, k, d))), values(std::get<0>(sort(t, d, false)).select(d, k - 1)));
      }
  EXPECT_RAISES(Error, topk(noise({3}, kFloat), 4), "selected index k out of range");
}

TEST(SortTest, UniqueSearchAndCount) {
  const auto [v, inverse, counts] = _unique2(longs({3, 1, 1}), true, true, true);
  EXPECT_EQ(values(v), std::vector<double>({1, 3}));
  EXPECT_EQ(values(inverse), std::vector<double>({1, 0, 0}));
  EXPECT_EQ(values(counts), std::vector<double>({2, 1}));
  EXPECT_EQ(values(std::get<0>(unique_dim(tensor({1, 2, 1, 2, 0, 1}, {3, 2}), 0))), std::vector<double>({0, 1, 1, 2}));
  EXPECT_EQ(values(std::get<0>(unique_consecutive(longs({1, 1, 2, 1})))), std::vector<double>({1, 2, 1}));
  const Tensor s = vector({1, 3, 5});
  EXPECT_EQ(values(searchsorted(s, vector({0, 3, 6, std::nan("")}))), std::vector<double>({0, 1, 3, 3}));
  EXPECT_EQ(values(searchsorted(s, vector({3}), false, true)), std::vector<double>({2}));
  EXPECT_EQ(values(bincount(longs({1, 2, 2}))), std::vector<double>({0, 1, 2}));
  EXPECT_RAISES(Error, bincount(longs({-1})), "bincount only supports 1-d non-negative integral inputs.");
  EXPECT_EQ(values(histc(tensor({0, 1, 2, 3, 4, 5}, {2, 3}), 5)), std::vector<double>({1, 1, 1, 1, 2}));
}

}  // namespace
