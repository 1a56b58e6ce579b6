// Generators: the words, PyTorch's state layout, handles, and Philox against its published vectors.
#include <cresset/core/generator.h>

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include <cresset/core/philox.h>
#include <cresset/core/tensor.h>

namespace cresset {
namespace {

uint64_t fnv(const std::vector<uint8_t>& bytes) {
  uint64_t value = 0xCBF29CE484222325u;
  for (uint8_t b : bytes) value = (value ^ b) * 0x100000001B3u;
  return value;
}

std::vector<uint32_t> words(CPUGeneratorImpl& generator, int64_t n) {
  std::vector<uint32_t> out(static_cast<std::size_t>(n));
  generator.random_words(out.data(), n);
  return out;
}

template <class F>
std::string error_of(const F& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

TEST(Mt19937, GivesTheStandardWords) {
  Mt19937 engine;  // seed 5489: the C++ standard fixes word 10000
  std::vector<uint32_t> out(10000);
  engine.fill(out.data(), 10000);
  EXPECT_EQ(out.back(), 4123659995u);
  std::mt19937 reference(5489);
  for (uint32_t word : out) ASSERT_EQ(word, reference());
}

TEST(Mt19937, SingleAndBlockDrawsMix) {
  Mt19937 engine(1);
  std::mt19937 reference(1);
  std::vector<uint32_t> out(2000);
  for (int64_t n : {1, 622, 1, 1, 623, 624, 625, 1500, 3}) {
    ASSERT_EQ(engine(), reference());
    engine.fill(out.data(), n);
    for (int64_t i = 0; i < n; ++i) ASSERT_EQ(out[static_cast<std::size_t>(i)], reference()) << n << " " << i;
  }
}

// FNV-1a of torch.get_rng_state() in the same situations.
TEST(CPUGenerator, StateBytesArePyTorchs) {
  CPUGeneratorImpl generator(0);
  EXPECT_EQ(generator.state_bytes().size(), 5056u);
  EXPECT_EQ(fnv(generator.state_bytes()), 0xd383c07ab3df60e4u);
  const std::pair<int64_t, uint64_t> steps[] = {
      {1, 0x2bdbf6e360a05b23u}, {622, 0x0ab98a97cb54c84fu}, {1, 0x5b3f0cbb63c639c3u}, {1, 0x05bfc64ea716a7e7u}};
  for (auto [n, expected] : steps) {
    words(generator, n);
    EXPECT_EQ(fnv(generator.state_bytes()), expected) << n;
  }
  generator.set_current_seed(static_cast<uint64_t>(-1));
  EXPECT_EQ(fnv(generator.state_bytes()), 0x6c31680f074856a2u);
  // What torch.empty(1).normal_() leaves: four words used and the kept second normal.
  generator.set_current_seed((uint64_t{1} << 40) + 5);
  words(generator, 4);
  generator.set_next_double_normal_sample(-0x1.35281a692942ap-1);
  EXPECT_EQ(fnv(generator.state_bytes()), 0x26c884daeeb3d6f0u);
  words(generator, 3);
  EXPECT_EQ(fnv(generator.state_bytes()), 0x91409f01fcc24ca8u);
}

TEST(CPUGenerator, StateRoundTripsAtEveryPlaceOfTheBlock) {
  for (int64_t used : {0, 1, 300, 623, 624, 625, 1000, 1248}) {
    CPUGeneratorImpl a(17), b(99);
    words(a, used);
    a.set_next_double_normal_sample(1.25);
    a.set_next_float_normal_sample(-0.5f);
    b.set_state_bytes(a.state_bytes());
    EXPECT_EQ(b.state_bytes(), a.state_bytes());
    EXPECT_EQ(b.current_seed(), 17u);
    EXPECT_EQ(b.next_double_normal_sample(), 1.25);
    EXPECT_EQ(b.next_float_normal_sample(), -0.5f);
    EXPECT_EQ(words(b, 1300), words(a, 1300)) << used;
  }
}

TEST(CPUGenerator, RefusesWhatIsNoState) {
  CPUGeneratorImpl generator(3);
  words(generator, 10);
  const std::vector<uint8_t> good = generator.state_bytes();
  EXPECT_EQ(error_of([&] { generator.set_state_bytes(std::vector<uint8_t>(10)); }),
            "set_state: a CPU generator state of 5056 bytes was required; 10 bytes were given. Pass what "
            "get_state returned.");
  EXPECT_EQ(error_of([&] { generator.set_state_bytes(std::vector<uint8_t>(5056)); }),
            "set_state: an MT19937 state was required; seeded=0, left=0, next=0 were given. Pass what "
            "get_state returned.");
  for (auto [offset, value] : {std::pair{8, 0}, {8, 200}, {12, 0}, {16, 200}, {17, 4}, {23, 128}}) {
    std::vector<uint8_t> bad = good;
    bad[static_cast<std::size_t>(offset)] = static_cast<uint8_t>(value);
    EXPECT_TRUE(error_of([&] { generator.set_state_bytes(bad); }).starts_with("set_state: an MT19937 state was required; seeded="))
        << offset;
  }
  EXPECT_EQ(generator.state_bytes(), good);
}

TEST(CPUGenerator, SeedsByTheLowWordAndKeepsAll64Bits) {
  CPUGeneratorImpl low(5), high((uint64_t{1} << 40) + 5);
  EXPECT_EQ(words(low, 100), words(high, 100));
  EXPECT_EQ(high.current_seed(), (uint64_t{1} << 40) + 5);
  CPUGeneratorImpl pair(5), single(5);
  const uint64_t first = single.random();
  EXPECT_EQ(pair.random64(), first << 32 | single.random());
}

TEST(Generator, CloneContinuesOnItsOwn) {
  const Generator generator = make_cpu_generator(4);
  generator.get<CPUGeneratorImpl>()->random();
  const Generator copy = generator.clone();
  EXPECT_FALSE(copy == generator);
  EXPECT_EQ(copy.state_bytes(), generator.state_bytes());
  copy.get<CPUGeneratorImpl>()->random();
  EXPECT_NE(copy.state_bytes(), generator.state_bytes());
  EXPECT_EQ(copy.device(), Device(DeviceType::CPU));
  EXPECT_TRUE(copy.key_set().has(DispatchKey::CPU));
}

TEST(Generator, DefaultIsOneForTheProcess) {
  const Generator& generator = default_cpu_generator();
  EXPECT_EQ(&generator, &default_cpu_generator());
  const std::lock_guard lock(generator.mutex());
  const Tensor state = generator.get_state();
  const uint64_t a = generator.seed();
  EXPECT_EQ(generator.current_seed(), a);
  EXPECT_NE(generator.seed(), a);
  generator.set_state(state);
  EXPECT_EQ(make_cpu_generator().current_seed(), 67280421310721u);
}

TEST(Generator, LookupChecksTheDevice) {
  struct Other final : GeneratorImpl {
    Other() : GeneratorImpl(Device(DeviceType::PrivateUse1, 0), DispatchKeySet(DispatchKey::PrivateUse1)) {}
    void set_current_seed(uint64_t) override {}
    uint64_t current_seed() const override { return 0; }
    uint64_t seed() override { return 0; }
    std::vector<uint8_t> state_bytes() const override { return {}; }
    void set_state_bytes(std::span<const uint8_t>) override {}
    intrusive_ptr<GeneratorImpl> clone() const override { return make_intrusive<Other>(); }
  };
  const Generator fallback = make_cpu_generator(1), other = make_generator<Other>();
  EXPECT_EQ(get_generator_or_default<CPUGeneratorImpl>(std::nullopt, fallback), fallback.get<CPUGeneratorImpl>());
  EXPECT_EQ(get_generator_or_default<CPUGeneratorImpl>(Generator(), fallback), fallback.get<CPUGeneratorImpl>());
  EXPECT_TRUE(error_of([&] {
                get_generator_or_default<CPUGeneratorImpl>(other, fallback);
              }).starts_with("Expected a 'cpu' device type for generator but found '"));
  EXPECT_EQ(error_of([&] { check_generator<CPUGeneratorImpl>(std::nullopt); }),
            "generator: a defined generator was required; none was given.");
  EXPECT_EQ(error_of([&] { fallback.set_offset(4); }),
            "set_offset: a counter-based generator was required; the generator of cpu has no offset. Use "
            "set_state.");
  EXPECT_EQ(error_of([&] { fallback.get_offset(); }),
            "get_offset: a counter-based generator was required; the generator of cpu has no offset. Use "
            "get_state.");
}

// Known answers of philox4x32 with ten rounds, published with Random123.
TEST(Philox, KnownAnswers) {
  using Block = PhiloxStream::Block;
  EXPECT_EQ(PhiloxStream::encrypt({0, 0, 0, 0}, {0, 0}), (Block{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(PhiloxStream::encrypt({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}),
            (Block{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(PhiloxStream::encrypt({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Block{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
  // The third one as a stream: key and counter split into seed, block index and subsequence.
  const PhiloxStream stream(0x299f31d0a4093822u, 0x0370734413198a2eu);
  EXPECT_EQ(stream.block(0x85a308d3243f6a88u), (Block{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, TakeReservesBlocks) {
  PhiloxStream stream(1, 2, 10);
  EXPECT_EQ(stream.take(3), 10u);
  EXPECT_EQ(stream.take(1), 13u);
  EXPECT_EQ(stream.position(), 14u);
  EXPECT_EQ(PhiloxStream(1, 2).block(13), stream.block(13));
  EXPECT_NE(PhiloxStream(1, 3).block(13), stream.block(13));
}

}  // namespace
}  // namespace cresset
