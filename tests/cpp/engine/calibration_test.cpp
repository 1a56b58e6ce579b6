// Ranges out of histograms: expected values are counted by hand.
#include <cresset/engine/calibration.h>
#include <gtest/gtest.h>

#include <cresset/ops/functions_creation.h>

#include "error_of.h"

namespace cresset::engine {
namespace {

Tensor of(const std::vector<float>& values) {
  Tensor t = cresset::empty({static_cast<int64_t>(values.size())}, TensorOptions(kFloat));
  std::copy(values.begin(), values.end(), t.data_ptr<float>());
  return t;
}

TEST(Calibration, MaxIsTheLargestMagnitudeOfFiniteNumbers) {
  RangeObserver o;
  EXPECT_EQ(o.range({"max"}), (Range{0, 0}));
  o.add(of({0, 1, 3, std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}));
  EXPECT_EQ(o.range({"max"}), (Range{0, 3}));
  o.add(of({-5, 2}));
  EXPECT_EQ(o.range({"max"}), (Range{-5, 5}));
}

TEST(Calibration, PercentilesCountMagnitudesWithoutZeros) {
  RangeObserver o;
  std::vector<float> values(1000, 0.F);
  for (int i = 1; i <= 100; ++i) values.push_back(static_cast<float>(i));
  o.add(of(values));
  EXPECT_NEAR(o.range({"percentile", 90}).most, 90, 0.1);
  EXPECT_NEAR(o.range({"percentile", 100}).most, 100, 0.1);
}

TEST(Calibration, TheHistogramGrows) {
  RangeObserver o;
  for (int i = 0; i < 100; ++i) o.add(of({1, 0.5F}));
  o.add(of({1000}));
  EXPECT_NEAR(o.range({"percentile", 99}).most, 1, 0.51);  // a bin is half a unit wide now
  EXPECT_EQ(o.range({"max"}).most, 1000);
}

TEST(Calibration, EntropyCutsALoneOutlierOffAndKeepsAnEvenSpread) {
  std::vector<int64_t> even(2048, 10);
  EXPECT_NEAR(entropy_threshold(even, 4, 128), 4, 0.1);
  std::vector<int64_t> bell(2048);
  for (std::size_t i = 0; i < 400; ++i) bell[i] = static_cast<int64_t>(100000 * std::exp(-static_cast<double>(i * i) / 20000));
  bell[2047] = 1;
  const double cut = entropy_threshold(bell, 4, 128);
  EXPECT_GT(cut, 4.0 * 200 / 2048);
  EXPECT_LT(cut, 4.0 * 600 / 2048);
}

TEST(Calibration, WhatIsRefused) {
  EXPECT_NE(error_of([] { check_calibration_method({"best"}); }).find("the method max, percentile or entropy was required; got 'best'"),
            std::string::npos);
  EXPECT_NE(error_of([] { check_calibration_method({"percentile", 0}); }).find("a percentile above 0 and up to 100 was required; got 0"),
            std::string::npos);
  EXPECT_NE(error_of([] { entropy_threshold({1, 2}, 1, 128); }).find("at least as many bins as levels were required; got 2 for 128"),
            std::string::npos);
}

}  // namespace
}  // namespace cresset::engine
