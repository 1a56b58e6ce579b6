// Sets and maps of values by memory and by identity, what values contain, and copies. The answers are PyTorch's.
#include <cresset/dispatch/ivalue.h>

#include <gtest/gtest.h>

#include <cresset/dispatch/script_values.h>
#include <cresset/ops/functions.h>

#include "error_of.h"

namespace cresset {
namespace {

IValue list_of_tensors(const std::vector<Tensor>& tensors) { return IValue(tensors); }

TEST(IValue, InASetByMemory) {
  const Tensor x = zeros({4});
  IValue::HashAliasedIValues set{IValue(x)};
  EXPECT_EQ(set.count(IValue(x.view({2, 2}))), 1u);  // one storage
  EXPECT_EQ(set.count(IValue(zeros({4}))), 0u);
  const IValue list = list_of_tensors({x}), text("abc");
  set = {list, text, IValue(3)};
  EXPECT_EQ(set.count(IValue(list)), 1u);
  EXPECT_EQ(set.count(list_of_tensors({x})), 0u);
  EXPECT_EQ(set.count(IValue(text)), 1u);
  EXPECT_EQ(set.count(IValue("abc")), 0u);
  EXPECT_EQ(set.count(IValue(3)), 0u);  // numbers have no memory
  IValue::HashAliasedIValueMap map;
  map[IValue(x)] = 1;
  EXPECT_EQ(map.count(IValue(x.view({2, 2}))), 1u);
}

TEST(IValue, ContainsValues) {
  const Tensor x = zeros({2});
  const auto count = [](const IValue& v) {
    IValue::HashAliasedIValues found;
    v.getSubValues(found);
    return found.size();
  };
  EXPECT_EQ(count(IValue(std::make_tuple(x, int64_t{3}, std::vector<Tensor>{x}))), 3u);  // the tuple, the list and the tensor
  EXPECT_EQ(count(IValue(std::unordered_map<std::string, Tensor>{{"k", x}})), 2u);
  EXPECT_EQ(count(IValue("abc")), 0u);
  EXPECT_EQ(count(IValue(3)), 0u);
  EXPECT_EQ(count(IValue()), 0u);
  EXPECT_EQ(count(IValue(std::vector<int64_t>{1})), 1u);
  const IValue future(make_intrusive<ivalue::Future>());
  EXPECT_NE(error_of([&] { count(future); }).find("Cannot inspect value of type Future"), std::string::npos);
  EXPECT_NE(error_of([&] { count(IValue(Device("cpu"))); }).find("Cannot inspect value of type Device"), std::string::npos);
}

TEST(IValue, IsVisitedToTheDepth) {
  const Tensor x = zeros({2});
  const IValue tuple(std::make_tuple(x, int64_t{3}, std::vector<Tensor>{x}));
  int visited = 0;
  EXPECT_FALSE(tuple.visit([&](const IValue&) { return ++visited, false; }));
  EXPECT_EQ(visited, 5);
  visited = 0;
  EXPECT_TRUE(tuple.visit([&](const IValue&) { return ++visited, true; }));
  EXPECT_EQ(visited, 1);
  visited = 0;
  IValue(std::unordered_map<std::string, std::string>{{"k", "v"}}).visit([&](const IValue&) { return ++visited, false; });
  EXPECT_EQ(visited, 3);  // keys and values
}

TEST(IValue, CopiesWhatOccursTwiceOnce) {
  const Tensor t = ones({2});
  const IValue list = list_of_tensors({t, t});
  const IValue copy = list.deepcopy();
  EXPECT_TRUE(copy.toListRef()[0].is(copy.toListRef()[1]));
  EXPECT_FALSE(copy.toListRef()[0].toTensor().is_alias_of(t));
  IValue::HashIdentityIValueMap copies;
  const IValue first = list.deepcopy(copies);
  EXPECT_EQ(copies.size(), 2u);  // the list and the tensor
  EXPECT_TRUE(list.deepcopy(copies).is(first));
  EXPECT_EQ(IValue(t).deepcopy(Device("meta")).toTensor().device(), Device("meta"));
  // A list that contains itself.
  IValue ring(std::vector<int64_t>{});
  ring.toListImpl().elements.push_back(ring);
  const IValue ring_copy = ring.deepcopy();
  EXPECT_TRUE(ring_copy.toListRef()[0].is(ring_copy));
  EXPECT_FALSE(ring_copy.is(ring));
  ring.toListImpl().elements.clear();
  ring_copy.toListImpl().elements.clear();
}

}  // namespace
}  // namespace cresset
