// Small containers, reference counts, errors, half types, threads.
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <string>

#include <cresset/base/half.h>
#include <cresset/base/intrusive_ptr.h>
#include <cresset/base/parallel.h>
#include <cresset/base/small_vector.h>

#include "base/parse_number.h"

namespace cresset {
namespace {

TEST(SmallVector, GrowsMovesAndErases) {
  SmallVector<int64_t, 2> v{1, 2};
  for (int64_t i = 3; i < 20; ++i) v.push_back(v.back() + 1);
  SmallVector<int64_t, 2> copy = v, moved = std::move(v);
  EXPECT_TRUE(v.empty());
  EXPECT_TRUE(copy == moved);
  copy.insert(copy.begin() + 1, 100);
  EXPECT_EQ(copy[1], 100);
  copy.erase(copy.begin() + 1);
  EXPECT_TRUE(copy == moved);
  copy = copy;  // NOLINT
  EXPECT_EQ(copy.size(), 19u);
  SmallVector<int64_t, 2> small{7};
  copy = std::move(small);
  EXPECT_EQ(copy.size(), 1u);
  EXPECT_EQ(to_string(DimVector{1, 2}), "[1, 2]");
}

// Both ways, of which a build takes one: by the C++ library, and by the C library where that has no such function.
TEST(ParseNumber, ReadsDoublesAsFromChars) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const struct {
    const char* text;
    double value;
    std::size_t length;
    std::errc error;
  } cases[] = {
      {"1.5", 1.5, 3, {}},
      {"-2e3", -2000, 4, {}},
      {".5,", 0.5, 2, {}},
      {"0x1", 0, 1, {}},
      {"-0", -0.0, 2, {}},
      {"inf", kInfinity, 3, {}},
      {"-Infinity", -kInfinity, 9, {}},
      {"1e", 1, 1, {}},
      {"4.9e-324", 4.9e-324, 8, {}},
      {"1e-310", 1e-310, 6, {}},
      {"1.7976931348623157e308", 1.7976931348623157e308, 22, {}},
      {"1e999", 7, 5, std::errc::result_out_of_range},
      {"-1e-999", 7, 7, std::errc::result_out_of_range},
      {"", 7, 0, std::errc::invalid_argument},
      {" 1", 7, 0, std::errc::invalid_argument},
      {"+1", 7, 0, std::errc::invalid_argument},
      {"--1", 7, 0, std::errc::invalid_argument},
      {"abc", 7, 0, std::errc::invalid_argument},
  };
  for (const auto& c : cases)
    for (const auto read : {&parse_double, &detail::parse_double_by_strtod}) {
      double v = 7;
      const auto [end, error] = read(c.text, c.text + std::strlen(c.text), v);
      EXPECT_EQ(v, c.value) << c.text;
      EXPECT_EQ(std::signbit(v), std::signbit(c.value)) << c.text;
      EXPECT_EQ(end, c.text + c.length) << c.text;
      EXPECT_EQ(error, c.error) << c.text;
    }
  const std::string part = "12345";
  double v = 0;
  EXPECT_EQ(detail::parse_double_by_strtod(part.data(), part.data() + 2, v).ptr, part.data() + 2);
  EXPECT_EQ(v, 12);
}

TEST(ArrayRef, SlicesAndChecks) {
  const std::vector<int64_t> v{1, 2, 3};
  const IntArrayRef a = v;
  EXPECT_TRUE(a.slice(1) == IntArrayRef({2, 3}));
  EXPECT_THROW(a.at(3), IndexError);
  EXPECT_THROW(a.slice(2, 2), Error);
}

struct Counted : intrusive_ptr_target {
  explicit Counted(int& alive) : alive(alive) { ++alive; }
  ~Counted() override { --alive; }
  void release_resources() override { released = true; }
  int& alive;
  bool released = false;
};

TEST(IntrusivePtr, StrongAndWeak) {
  int alive = 0;
  auto p = make_intrusive<Counted>(alive);
  weak_intrusive_ptr<Counted> w(p);
  EXPECT_EQ(p.use_count(), 1u);
  EXPECT_TRUE(w.lock() == p);
  Counted* raw = p.get();
  auto q = p;
  EXPECT_EQ(p.use_count(), 2u);
  p.reset();
  q.reset();
  EXPECT_TRUE(w.expired());
  EXPECT_FALSE(w.lock());
  EXPECT_EQ(alive, 1) << "memory stays while a weak reference is there";
  EXPECT_TRUE(raw->released);
  w.reset();
  EXPECT_EQ(alive, 0);
}

TEST(Error, PiecesAndClasses) {
  try {
    CRESSET_CHECK_VALUE(false, "op: ", 3, " was required; ", 2.5, " and ", true, " were given.");
    FAIL();
  } catch (const ValueError& e) {
    EXPECT_STREQ(e.what(), "op: 3 was required; 2.5 and true were given.");
  }
  EXPECT_THROW(CRESSET_INTERNAL_ASSERT(1 == 2), InternalError);
}

TEST(Half, RoundsToNearestEven) {
  EXPECT_EQ(float(Half(65504.0f)), 65504.0f);
  EXPECT_TRUE(std::isinf(float(Half(65520.0f))));
  EXPECT_EQ(float(Half(65519.0f)), 65504.0f);
  EXPECT_EQ(Half(5.9604645e-8f).x, 1);  // the smallest subnormal
  EXPECT_EQ(Half(2.9802322e-8f).x, 0);  // half of it goes to even
  EXPECT_EQ(float(Half(1.0f + 0x1p-11f)), 1.0f);
  EXPECT_EQ(float(BFloat16(1.0f + 0x1p-8f)), 1.0f);
  EXPECT_EQ(float(BFloat16(1.0f + 0x3p-8f)), 1.0f + 0x1p-6f);
  EXPECT_TRUE(std::isnan(float(BFloat16(NAN))));
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const Half h(static_cast<uint16_t>(bits), Half::from_bits());
    if (!std::isnan(float(h))) {
      ASSERT_EQ(Half(float(h)).x, bits);
    }
  }
}

TEST(Parallel, CoversTheRangeOnce) {
  const int before = get_num_threads();
  for (int threads : {1, 2, 4}) {
    set_num_threads(threads);
    std::vector<std::atomic<int>> hits(1000);
    parallel_for(0, 1000, 10, [&](int64_t b, int64_t e) {
      for (int64_t i = b; i < e; ++i) ++hits[static_cast<std::size_t>(i)];
    });
    for (auto& h : hits) ASSERT_EQ(h, 1);
  }
  EXPECT_THROW(parallel_for(0, 100, 1,
                            [](int64_t b, int64_t) {
                              if (b >= 0) throw ValueError("inside");
                            }),
               ValueError);
  set_num_threads(before);
}

}  // namespace
}  // namespace cresset
