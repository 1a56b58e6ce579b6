// Philox4x32-10, a counter-based generator (Salmon, Moraes, Dror, Shaw: Parallel Random Numbers: As Easy as
// 1, 2, 3, 2011). Any position is computed alone, from integers only, so parallel fills and every device give
// the same numbers.
#pragma once

#include <array>
#include <cstdint>

namespace cresset {

/// The words of one seed and subsequence: word(i) for any i < 2^66, four to a block, and a position for
/// sequential use.
class PhiloxStream {
 public:
  using Block = std::array<uint32_t, 4>;
  static constexpr int kRounds = 10;
  static constexpr uint32_t kMultiplier0 = 0xD2511F53u, kMultiplier1 = 0xCD9E8D57u, kWeyl0 = 0x9E3779B9u, kWeyl1 = 0xBB67AE85u;

  constexpr explicit PhiloxStream(uint64_t seed = 0, uint64_t subsequence = 0, uint64_t first_block = 0)
      : seed_(seed), subsequence_(subsequence), next_(first_block) {}

  /// The bijection itself: ten rounds over a 128-bit counter with a 64-bit key, least significant word first.
  static constexpr Block encrypt(Block counter, std::array<uint32_t, 2> key) {
    for (int round = 0; round < kRounds; ++round) {
      const uint64_t a = uint64_t{kMultiplier0} * counter[0], b = uint64_t{kMultiplier1} * counter[2];
      counter = {static_cast<uint32_t>(b >> 32) ^ counter[1] ^ key[0], static_cast<uint32_t>(b),
                 static_cast<uint32_t>(a >> 32) ^ counter[3] ^ key[1], static_cast<uint32_t>(a)};
      key[0] += kWeyl0;
      key[1] += kWeyl1;
    }
    return counter;
  }

  /// Block `index` of the stream, four words; does not move the position.
  constexpr Block block(uint64_t index) const {
    return encrypt({static_cast<uint32_t>(index), static_cast<uint32_t>(index >> 32), static_cast<uint32_t>(subsequence_),
                    static_cast<uint32_t>(subsequence_ >> 32)},
                   {static_cast<uint32_t>(seed_), static_cast<uint32_t>(seed_ >> 32)});
  }
  /// Reserves `count` blocks: returns the index of the first and moves the position behind the last.
  constexpr uint64_t take(uint64_t count) {
    const uint64_t first = next_;
    next_ += count;
    return first;
  }
  constexpr uint64_t seed() const { return seed_; }
  constexpr uint64_t subsequence() const { return subsequence_; }
  /// Index of the next block that take() gives.
  constexpr uint64_t position() const { return next_; }
  constexpr void set_position(uint64_t block_index) { next_ = block_index; }

 private:
  uint64_t seed_, subsequence_, next_;
};

}  // namespace cresset
