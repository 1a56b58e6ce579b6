// Every distribution against values recorded from PyTorch (random_stream_expected.inc), in values and in
// words consumed.
#include "backends/cpu/random_stream.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <cresset/base/parallel.h>
#include "backends/cpu/box_muller.h"

namespace cresset::cpu {
namespace {

constexpr uint64_t kSeed = 42;  // of the recorded rows

// A parameter of a row: integers stay exact.
struct Number {
  template <class V>
  constexpr Number(V v) : real(static_cast<double>(v)), integer(static_cast<int64_t>(v)) {}
  double real;
  int64_t integer;
};

struct Expected {
  const char* distribution;
  const char* dtype;
  int64_t n;
  Number a, b;
  uint64_t checksum;  // FNV-1a of all bytes
  uint32_t next;      // the 31 bits that random_() on int32 gives afterwards
  double shown[6];    // the first three and the last three values
};

const Expected kExpected[] = {
#include "random_stream_expected.inc"
};

uint64_t fnv(const void* data, std::size_t bytes) {
  uint64_t value = 0xCBF29CE484222325u;
  for (std::size_t i = 0; i < bytes; ++i) value = (value ^ static_cast<const uint8_t*>(data)[i]) * 0x100000001B3u;
  return value;
}

// Distance in units of the last place of T at b.
template <class T>
double ulps(double a, double b) {
  if (a == b) return 0;
  if (std::numeric_limits<T>::is_integer || b == 0) return std::fabs(a - b) * 0x1p60;
  return std::fabs(a - b) / std::ldexp(1.0, std::ilogb(b) + 1 - std::numeric_limits<T>::digits);
}

template <class T>
constexpr bool kFloatingElement = std::is_floating_point_v<T> || is_reduced_floating_point_v<T>;

// Fills `out` as the row says; false for a distribution that T does not have.
template <class T>
bool draw(const Expected& row, T* p, CPUGeneratorImpl& generator) {
  const std::string name = row.distribution;
  const int64_t n = row.n;
  if constexpr (kFloatingElement<T>) {
    if (name == "uniform") return uniform_fill(p, n, row.a.real, row.b.real, generator), true;
    if (name == "normal") return normal_fill(p, n, row.a.real, row.b.real, generator), true;
    if (name == "serial_normal") return normal_serial_fill(p, n, row.a.real, row.b.real, generator), true;
    if (name == "log_normal") return log_normal_fill(p, n, row.a.real, row.b.real, generator), true;
    if (name == "cauchy") return cauchy_fill(p, n, row.a.real, row.b.real, generator), true;
    if (name == "exponential") return exponential_fill(p, n, row.a.real, generator), true;
  }
  if constexpr (!std::is_same_v<T, bool>) {
    if (name == "geometric") return geometric_fill(p, n, row.a.real, generator), true;
    if (name == "randperm") return randperm_fill(p, n, generator), true;
  }
  if (name == "bernoulli") return bernoulli_fill(p, n, row.a.real, generator), true;
  if (name == "random") return random_fill(p, n, generator), true;
  if (name == "random_range") return random_range_fill(p, n, integer_range<T>(row.a.integer, row.b.integer), generator), true;
  std::vector<double> probabilities(static_cast<std::size_t>(n));
  for (int64_t i = 0; i < n; ++i) probabilities[static_cast<std::size_t>(i)] = static_cast<double>(i) / static_cast<double>(n);
  if (name == "bernoulli_double_tensor") return bernoulli_tensor_fill(p, probabilities.data(), n, generator), true;
  const std::vector<float> single(probabilities.begin(), probabilities.end());
  if (name == "bernoulli_float_tensor") return bernoulli_tensor_fill(p, single.data(), n, generator), true;
  return false;
}

template <class E>
void expect_row(const Expected& row, const E* values, int64_t n, bool exact, CPUGeneratorImpl& generator) {
  const int64_t shown = std::min<int64_t>(3, n);
  for (int64_t i = 0; i < shown; ++i) {
    EXPECT_LE(ulps<E>(static_cast<double>(values[i]), row.shown[i]), exact ? 0 : 2) << "element " << i;
    EXPECT_LE(ulps<E>(static_cast<double>(values[n - shown + i]), row.shown[shown + i]), exact ? 0 : 2) << "element " << n - shown + i;
  }
  if (exact) {
    EXPECT_EQ(fnv(values, static_cast<std::size_t>(n) * sizeof(E)), row.checksum);
  }
  EXPECT_EQ(generator.random() & 0x7FFFFFFFu, row.next);
}

// double results of the C library's log, sin, tan and exp may differ in the last place between its versions.
template <class T>
bool is_exact(const std::string& name) {
  return !std::is_same_v<T, double> ||
         !(name == "normal" || name == "serial_normal" || name == "log_normal" || name == "cauchy" || name == "exponential");
}

template <class T>
void check_row(const Expected& row) {
  const std::string name = row.distribution;
  CPUGeneratorImpl generator(kSeed);
  if constexpr (kFloatingElement<T>) {
    if (name.starts_with("multinomial")) {
      std::vector<T> weights;
      for (int i = 0; i < 100; ++i) weights.push_back(static_cast<T>(static_cast<float>(i * 37 % 11)));
      std::vector<int64_t> drawn(static_cast<std::size_t>(2 * row.n));
      const auto multinomial =
          name == "multinomial_with_replacement" ? multinomial_with_replacement<T> : multinomial_without_replacement<T>;
      multinomial(drawn.data(), weights.data(), 2, 50, row.n, generator, false);
      return expect_row(row, drawn.data(), 2 * row.n, true, generator);
    }
  }
  const std::unique_ptr<T[]> out(new T[static_cast<std::size_t>(row.n)]);
  ASSERT_TRUE(draw(row, out.get(), generator)) << "no such distribution for this dtype";
  expect_row(row, out.get(), row.n, is_exact<T>(name), generator);
}

// One test for each distribution of the recorded table, so that a failure names it.
std::vector<std::string> distributions() {
  std::vector<std::string> names;
  for (const Expected& row : kExpected)
    if (std::find(names.begin(), names.end(), row.distribution) == names.end()) names.push_back(row.distribution);
  return names;
}

class RandomStream : public testing::TestWithParam<std::string> {};

TEST_P(RandomStream, GivesRecordedValues) {
  int rows = 0;
  for (const Expected& row : kExpected) {
    if (row.distribution != GetParam()) continue;
    ++rows;
    SCOPED_TRACE(std::string(row.distribution) + " " + row.dtype + " n=" + std::to_string(row.n) + " a=" + std::to_string(row.a.real) +
                 " b=" + std::to_string(row.b.real));
    const std::string dtype = row.dtype;
    if (dtype == "float32")
      check_row<float>(row);
    else if (dtype == "float64")
      check_row<double>(row);
    else if (dtype == "float16")
      check_row<Half>(row);
    else if (dtype == "bfloat16")
      check_row<BFloat16>(row);
    else if (dtype == "uint8")
      check_row<uint8_t>(row);
    else if (dtype == "int8")
      check_row<int8_t>(row);
    else if (dtype == "int16")
      check_row<int16_t>(row);
    else if (dtype == "int32")
      check_row<int32_t>(row);
    else if (dtype == "int64")
      check_row<int64_t>(row);
    else if (dtype == "bool")
      check_row<bool>(row);
    else
      ADD_FAILURE() << "unknown dtype " << dtype;
  }
  EXPECT_GE(rows, 12);
}
INSTANTIATE_TEST_SUITE_P(Recorded, RandomStream, testing::ValuesIn(distributions()), [](const auto& info) { return info.param; });

template <class F>
std::string error_of(const F& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

TEST(RandomStreamTest, ManualSeedZeroIsTheFamousOne) {
  CPUGeneratorImpl generator(0);
  float u[3];
  uniform_fill(u, 3, 0.0, 1.0, generator);
  EXPECT_FLOAT_EQ(u[0], 0.49625658988952637f);
  EXPECT_FLOAT_EQ(u[1], 0.7682217955589294f);
  EXPECT_FLOAT_EQ(u[2], 0.08847743272781372f);
}

// The second normal of a pair is kept across calls and types, and dropped by a new seed.
TEST(RandomStreamTest, SecondNormalIsKept) {
  CPUGeneratorImpl whole(5), parts(5);
  double expected[6];
  normal_fill(expected, 6, 0.0, 1.0, whole);
  float first[3];
  normal_fill(first, 3, 0.0, 1.0, parts);
  EXPECT_EQ(first[2], static_cast<float>(expected[2]));
  ASSERT_TRUE(parts.next_double_normal_sample().has_value());
  EXPECT_EQ(*parts.next_double_normal_sample(), expected[3]);
  double rest[3];
  normal_fill(rest, 3, 0.0, 1.0, parts);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(rest[i], expected[3 + i]);
  normal_fill(rest, 1, 0.0, 1.0, parts);
  parts.set_current_seed(5);
  EXPECT_FALSE(parts.next_double_normal_sample().has_value());
}

// Stretches, odd positions in the block of words, and threads do not change the numbers.
TEST(RandomStreamTest, LongFillsEqualShortOnes) {
  constexpr int64_t n = 50001;
  CPUGeneratorImpl whole(9), parts(9);
  whole.random();
  parts.random();
  std::vector<double> expected(n), actual(n);
  const int threads = get_num_threads();
  set_num_threads(4);
  exponential_fill(expected.data(), n, 1.5, whole);
  set_num_threads(1);
  for (int64_t i = 0, step = 1; i < n; i += step, step = step % 97 + 1)
    exponential_fill(actual.data() + i, std::min(step, n - i), 1.5, parts);
  set_num_threads(threads);
  EXPECT_EQ(actual, expected);
  EXPECT_EQ(whole.state_bytes(), parts.state_bytes());

  set_num_threads(4);
  normal_serial_fill(expected.data(), n, 0.5, 2.0, whole);
  set_num_threads(1);
  for (int64_t i = 0, step = 1; i < n; i += step, step = step % 97 + 1)
    normal_serial_fill(actual.data() + i, std::min(step, n - i), 0.5, 2.0, parts);
  set_num_threads(threads);
  EXPECT_EQ(actual, expected);
  EXPECT_EQ(whole.state_bytes(), parts.state_bytes());
}

// Rounding to half can reach the excluded end; such draws become the first number of the range.
TEST(RandomStreamTest, UniformNeverGivesTheEnd) {
  constexpr int64_t n = 100000;
  std::vector<BFloat16> values(n, BFloat16(5.0f));
  CPUGeneratorImpl generator(7);
  uniform_fill(values.data(), n, 0.0, 1.0, generator);
  int64_t zeros = 0;
  for (BFloat16 v : values) {
    ASSERT_TRUE(static_cast<float>(v) >= 0.0f && static_cast<float>(v) < 1.0f);
    zeros += static_cast<float>(v) == 0.0f;
  }
  EXPECT_GT(zeros, 100);  // about n * 2^-9 draws round to 1
  CPUGeneratorImpl again(7);
  uniform_fill(values.data(), n, -1.0, 0.0, again);
  for (BFloat16 v : values) ASSERT_TRUE(static_cast<float>(v) >= -1.0f && static_cast<float>(v) < 0.0f);
}

// The shuffle of very large permutations, against the library's own Mersenne Twister.
TEST(RandomStreamTest, InsideOutShuffle) {
  constexpr int64_t n = 3000;
  std::mt19937 words(11);
  std::vector<int32_t> expected(n), actual(n);
  for (int64_t i = 0; i < n; ++i) {
    const uint64_t high = words();
    const auto z = static_cast<std::size_t>((high << 32 | words()) % static_cast<uint64_t>(i + 1));
    expected[static_cast<std::size_t>(i)] = expected[z];
    expected[z] = static_cast<int32_t>(i);
  }
  CPUGeneratorImpl generator(11);
  randperm_inside_out_fill(actual.data(), n, generator);
  EXPECT_EQ(actual, expected);
  EXPECT_EQ(kLargeRandperm, 214748364);
}

// The code chosen for this processor gives the bits of the plain one.
TEST(RandomStreamTest, VectorBlocksEqualScalarOnes) {
  constexpr int64_t n = 1 << 16;
  std::vector<float> scalar(n), vector(n);
  CPUGeneratorImpl first(3), second(3);
  uniform_fill(scalar.data(), n, 0.0, 1.0, first);
  [[maybe_unused]] std::vector<float> edges(scalar.begin(), scalar.begin() + kNormalBlock);
  box_muller_scalar(scalar.data(), n / kNormalBlock, 0.25f, 3.0f);
  normal_fill(vector.data(), n, 0.25, 3.0, second);
  EXPECT_EQ(std::memcmp(scalar.data(), vector.data(), n * sizeof(float)), 0);
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    edges[0] = 0.0f;             // radius 0
    edges[1] = 1.0f - 0x1p-24f;  // the largest radius
    edges[9] = 1.0f - 0x1p-24f;  // the largest angle
    std::vector<float> same = edges;
    box_muller_scalar(edges.data(), 1, 0.0f, 1.0f);
    box_muller_avx2(same.data(), 1, 0.0f, 1.0f);
    EXPECT_EQ(std::memcmp(edges.data(), same.data(), kNormalBlock * sizeof(float)), 0);
  }
#endif
}

TEST(RandomStreamTest, BoundsThatHalfTypesRoundMoveInwards) {
  const auto span = [](IntegerRange r) { return std::pair(r.base, r.span); };
  const WarningHandler before = set_warning_handler([](std::string_view, const std::string&) {});
  EXPECT_EQ(span(integer_range<BFloat16>(-519, 519)), std::pair(int64_t{-516}, uint64_t{1032}));
  EXPECT_EQ(span(integer_range<BFloat16>(0, 260)), std::pair(int64_t{0}, uint64_t{258}));
  EXPECT_EQ(span(integer_range<float>(0, 1 << 25)), std::pair(int64_t{0}, uint64_t{(1 << 25) - 2}));
  EXPECT_EQ(error_of([] { integer_range<BFloat16>(-515, -513); }),
            "random_ expects 'from' casted to dtype to be less than 'to' casted to dtype, but got from=-515 "
            ">= to=-516");
  set_warning_handler(before);
  EXPECT_EQ(span(integer_range<int8_t>(-5, std::nullopt)), std::pair(int64_t{-5}, uint64_t{133}));
  EXPECT_EQ(span(integer_range<float>(3, std::nullopt)), std::pair(int64_t{3}, uint64_t{(1 << 24) - 2}));
  EXPECT_EQ(span(integer_range<int64_t>(std::numeric_limits<int64_t>::min(), std::nullopt)), std::pair(int64_t{0}, uint64_t{0}));
}

TEST(RandomStreamTest, ErrorsLeaveTheStreamAlone) {
  CPUGeneratorImpl generator(1);
  const std::vector<uint8_t> state = generator.state_bytes();
  float x[20];
  int64_t index[4];
  const float nan = std::numeric_limits<float>::quiet_NaN(), inf = std::numeric_limits<float>::infinity();
  EXPECT_EQ(error_of([&] { uniform_fill(x, 3, 2.0, 1.0, generator); }),
            "uniform_ expects to return a [from, to) range, but found from=2 > to=1");
  EXPECT_EQ(error_of([&] { uniform_fill(x, 3, 0.0, inf, generator); }), "uniform_: to is out of bounds for Float; to=inf was given.");
  EXPECT_EQ(error_of([&] { normal_fill(x, 3, 0.0, -1.0, generator); }), "normal expects std >= 0.0, but found std -1");
  EXPECT_EQ(error_of([&] { normal_fill(x, 20, 0.0, nan, generator); }), "normal expects std >= 0.0, but found std nan");
  EXPECT_EQ(error_of([&] { log_normal_fill(x, 3, 0.0, 0.0, generator); }), "log_normal_ expects std > 0.0, but found std=0");
  EXPECT_EQ(error_of([&] { exponential_fill(x, 3, 0.0, generator); }), "exponential_ expects lambda > 0.0, but found lambda=0");
  EXPECT_EQ(error_of([&] { cauchy_fill(x, 3, 0.0, 0.0, generator); }), "cauchy_ expects sigma > 0.0, but found sigma=0");
  EXPECT_EQ(error_of([&] { geometric_fill(x, 3, 1.0, generator); }), "geometric_ expects p to be in (0, 1), but got p=1");
  EXPECT_EQ(error_of([&] { bernoulli_fill(x, 3, 1.5, generator); }), "bernoulli_ expects p to be in [0, 1], but got p=1.5");
  const float p[] = {0.5f, nan};
  EXPECT_EQ(error_of([&] { bernoulli_tensor_fill(x, p, 2, generator); }),
            "bernoulli expects probabilities in [0, 1], but element 1 is nan");
  EXPECT_EQ(error_of([&] { integer_range<int64_t>(5, 5); }), "random_ expects 'from' to be less than 'to', but got from=5 >= to=5");
  EXPECT_EQ(error_of([&] { integer_range<uint8_t>(0, 300); }), "to - 1 is out of bounds for unsigned char");
  EXPECT_EQ(error_of([&] { randperm_fill(reinterpret_cast<int8_t*>(x), 129, generator); }),
            "randperm: n=129 is too large for the result dtype Char.");
  const float weights[] = {0.0f, 0.0f, -1.0f, 2.0f};
  EXPECT_EQ(error_of([&] { multinomial_with_replacement(index, weights, 1, 2, 2, generator); }),
            "multinomial: invalid multinomial distribution (sum of probabilities <= 0); row 0 sums to 0.");
  EXPECT_EQ(error_of([&] { multinomial_without_replacement(index, weights, 2, 2, 1, generator); }),
            "multinomial: invalid multinomial distribution (sum of probabilities <= 0); row 0 sums to 0.");
  EXPECT_EQ(error_of([&] { multinomial_with_replacement(index, weights + 2, 1, 2, 2, generator); }),
            "multinomial: probability tensor contains either `inf`, `nan` or element < 0; row 0, column 0 is -1.");
  EXPECT_EQ(error_of([&] { multinomial_without_replacement(index, weights, 1, 2, 3, generator); }),
            "multinomial: cannot sample n_sample > prob_dist.size(-1) samples without replacement; "
            "n_sample=3 and 2 categories were given.");
  EXPECT_EQ(generator.state_bytes(), state);
}

// ---- counter-based fills

TEST(RandomStreamTest, PhiloxFillsFollowTheirDefinition) {
  constexpr int64_t n = 1000;
  const PhiloxStream blocks(123, 7);
  PhiloxStream stream(123, 7);
  std::vector<float> single(n);
  philox_uniform_fill(single.data(), n, 0.0, 1.0, stream);
  for (int64_t i = 0; i < n; ++i) {
    const uint32_t word = blocks.block(static_cast<uint64_t>(i / 4))[static_cast<std::size_t>(i % 4)];
    ASSERT_EQ(single[static_cast<std::size_t>(i)], static_cast<float>(word & 0xFFFFFFu) * 0x1p-24f) << i;
  }
  EXPECT_EQ(stream.position(), 250u);
  std::vector<double> doubles(3);
  philox_uniform_fill(doubles.data(), 3, 0.0, 1.0, stream);
  const PhiloxStream::Block block = blocks.block(250);
  const uint64_t word = static_cast<uint64_t>(block[2]) << 32 | block[3];
  EXPECT_EQ(doubles[1], static_cast<double>(word & ((uint64_t{1} << 53) - 1)) * 0x1p-53);
  EXPECT_EQ(stream.position(), 252u);

  std::vector<float> normals(20), expected(32);
  PhiloxStream start(123, 7), again(123, 7);
  philox_normal_fill(normals.data(), 20, 1.0, 2.0, start);
  philox_uniform_fill(expected.data(), 32, 0.0, 1.0, again);
  box_muller_scalar(expected.data(), 2, 1.0f, 2.0f);
  EXPECT_TRUE(std::equal(normals.begin(), normals.end(), expected.begin()));
  EXPECT_EQ(start.position(), 8u);
}

TEST(RandomStreamTest, PhiloxNumbersDoNotDependOnThreads) {
  constexpr int64_t n = 100003;
  const int threads = get_num_threads();
  std::vector<double> one(n), four(n);
  for (int count : {1, 4}) {
    set_num_threads(count);
    PhiloxStream stream(99);
    std::vector<double>& out = count == 1 ? one : four;
    philox_normal_fill(out.data(), n, 0.0, 1.0, stream);
    EXPECT_EQ(stream.position(), static_cast<uint64_t>((n + 15) / 16 * 8));
  }
  set_num_threads(threads);
  EXPECT_EQ(one, four);
  const double mean = std::accumulate(one.begin(), one.end(), 0.0) / n;
  double variance = 0;
  for (double x : one) variance += (x - mean) * (x - mean) / n;
  EXPECT_NEAR(mean, 0.0, 0.015);
  EXPECT_NEAR(variance, 1.0, 0.02);
}

}  // namespace
}  // namespace cresset::cpu
