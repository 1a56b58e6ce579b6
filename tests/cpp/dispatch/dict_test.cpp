#include <cresset/dispatch/boxing.h>
#include <gtest/gtest.h>

#include <list>
#include <random>

namespace cresset {
namespace {

TEST(Dict, entries_have_a_name_to_bind_to) {
  Dict<std::string, int64_t> dict;
  dict.insert("a", 1);
  dict.insert("b", 2);
  for (auto& entry : dict) entry.setValue(entry.value() * 10);
  int64_t sum = 0;
  std::string keys;
  for (const auto& entry : dict) sum += entry.value();
  for (auto&& entry : dict) keys += entry.key();
  for (auto entry : dict) sum += entry.value();
  for (auto it = dict.begin(); it != dict.end(); ++it) sum += it->value() + (*it).value();
  EXPECT_EQ(sum, 120);
  EXPECT_EQ(keys, "ab");
  const auto first = *dict.begin();  // a copy stays when its iterator is gone
  EXPECT_EQ(first.key(), "a");
}

TEST(List, get_gives_the_value_as_it_lies_there) {
  List<int64_t> list({3, 4});
  const IValue third = list[0].get();
  EXPECT_EQ(third.toInt(), 3);
  list[0] = list[1];
  EXPECT_EQ(static_cast<int64_t>(list[0]), 4);
  EXPECT_TRUE(list[0] == int64_t{4});
}

TEST(IValue, maps_by_identity_compare_objects) {
  const IValue a = List<int64_t>({1}), b = List<int64_t>({1});
  EXPECT_TRUE(IValue::CompIdentityIValues()(a, IValue(a)));
  EXPECT_FALSE(IValue::CompIdentityIValues()(a, b));
  EXPECT_TRUE(a == b);
}

struct NotAValue {};
template <class T>
constexpr bool is_value = std::is_convertible_v<T, IValue>;
static_assert(is_value<std::vector<Tensor>> && is_value<std::vector<IValue>> && is_value<std::vector<std::vector<int64_t>>> &&
              is_value<std::vector<bool>>);
static_assert(is_value<std::vector<std::optional<Tensor>>> && is_value<std::array<double, 2>> && is_value<ArrayRef<int64_t>>);
static_assert(!is_value<std::vector<NotAValue>> && !is_value<std::vector<std::vector<NotAValue>>> && !is_value<ArrayRef<NotAValue>>);
static_assert(!is_value<std::array<NotAValue, 2>>);
int64_t which(const IValue&) { return 1; }
int64_t which(const std::vector<NotAValue>&) { return 2; }

TEST(IValue, lists_of_anything_else_are_left_to_other_overloads) {
  EXPECT_EQ(which(std::vector<NotAValue>()), 2);
  EXPECT_EQ(which(std::vector<int64_t>{1}), 1);
}

// The same random calls on a dict and on a plain list of pairs.
TEST(Dict, keeps_order_and_finds_through_inserts_and_erasures) {
  for (const int64_t range : {5, 40, 3000}) {
    Dict<int64_t, int64_t> dict;
    std::list<std::pair<int64_t, int64_t>> plain;
    std::mt19937 random(static_cast<unsigned>(range));
    for (int64_t step = 0; step < 4000; ++step) {
      const int64_t key = static_cast<int64_t>(random() % static_cast<unsigned>(range));
      const auto at = std::find_if(plain.begin(), plain.end(), [&](auto& e) { return e.first == key; });
      switch (random() % 4) {
        case 0:
          EXPECT_EQ(dict.erase(key), at == plain.end() ? 0u : 1u);
          if (at != plain.end()) plain.erase(at);
          break;
        case 1:
          EXPECT_EQ(dict.insert(key, step).second, at == plain.end());
          if (at == plain.end()) plain.emplace_back(key, step);
          break;
        case 2:
          dict.insert_or_assign(key, step);
          if (at == plain.end())
            plain.emplace_back(key, step);
          else
            at->second = step;
          break;
        default:
          if (random() % 8 == 0 && !plain.empty()) {
            const auto [k, v] = dict.impl()->items.pop_back();
            EXPECT_EQ(k.toInt(), plain.back().first);
            EXPECT_EQ(v.toInt(), plain.back().second);
            plain.pop_back();
          }
          EXPECT_EQ(dict.contains(key), std::any_of(plain.begin(), plain.end(), [&](auto& e) { return e.first == key; }));
      }
      ASSERT_EQ(dict.size(), plain.size());
    }
    auto expected = plain.begin();
    for (const auto& entry : dict) {
      EXPECT_EQ(entry.key(), expected->first);
      EXPECT_EQ(entry.value(), expected->second);
      EXPECT_EQ(dict.at(entry.key()), expected->second);
      ++expected;
    }
    EXPECT_EQ(expected, plain.end());
  }
}

TEST(Dict, keys_of_every_kind) {
  ivalue::DictItems items;
  std::vector<IValue> keys{
      IValue("a"), IValue(int64_t{1}), IValue(true), IValue(1.0), IValue(std::complex<double>(1, 0)), IValue(std::string(100, 'x'))};
  for (int64_t i = 0; i < 20; ++i) keys.push_back(IValue(static_cast<double>(i) + 0.5));
  for (std::size_t i = 0; i < keys.size(); ++i) EXPECT_TRUE(items.try_emplace(keys[i], static_cast<int64_t>(i)).second);
  for (std::size_t i = 0; i < keys.size(); ++i) EXPECT_EQ(items.find(keys[i])->second.toInt(), static_cast<int64_t>(i));
  items.try_emplace(IValue(0.0), IValue("zero"));
  EXPECT_EQ(items.find(IValue(-0.0))->second.toStringRef(), "zero");
  EXPECT_TRUE(items.find(IValue("absent")) == items.end());
}

TEST(Dict, moved_from_and_cleared_dicts_are_empty) {
  ivalue::DictItems items;
  for (int64_t i = 0; i < 100; ++i) items.try_emplace(i, i);
  ivalue::DictItems copy = items, moved = std::move(items);
  EXPECT_EQ(copy.size(), 100u);
  EXPECT_EQ(moved.find(IValue(int64_t{7}))->second.toInt(), 7);
  EXPECT_TRUE(items.empty());  // NOLINT: documented
  EXPECT_TRUE(items.find(IValue(int64_t{7})) == items.end());
  moved.clear();
  EXPECT_TRUE(moved.empty());
  EXPECT_TRUE(moved.begin() == moved.end());
}

TEST(Dict, equal_in_any_order) {
  Dict<std::string, int64_t> a, b;
  a.insert("x", 1);
  a.insert("y", 2);
  b.insert("y", 2);
  b.insert("x", 1);
  EXPECT_TRUE(IValue(a) == IValue(b));
  b.insert_or_assign("x", 3);
  EXPECT_FALSE(IValue(a) == IValue(b));
}

TEST(IValue, characters_that_may_be_written_are_text) {
  char text[] = "ab";
  char* const begin = text;
  EXPECT_EQ(IValue(text).toStringRef(), "ab");
  EXPECT_EQ(IValue(begin).toStringRef(), "ab");
}

}  // namespace
}  // namespace cresset
