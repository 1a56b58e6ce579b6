// The generator of a device that a backend's table describes.
#pragma once

#include <cresset/core/generator.h>

namespace cresset {

/// Two streams of one seed: a counter for kernels on the device (Philox, core/philox.h), and the CPU's stream for operators
/// that run there through the fallback, so that a seed gives the same numbers on every such device and on the CPU.
class CRESSET_API DeviceGeneratorImpl final : public GeneratorImpl {
 public:
  /// `told` hears of every new seed; may be null.
  using SeedListener = void (*)(Device device, uint64_t seed);
  explicit DeviceGeneratorImpl(Device device, uint64_t seed = kDefaultRandomSeed, SeedListener told = nullptr);

  void set_current_seed(uint64_t seed) override;
  uint64_t current_seed() const override { return seed_; }
  uint64_t seed() override;
  std::vector<uint8_t> state_bytes() const override;
  void set_state_bytes(std::span<const uint8_t> state) override;
  intrusive_ptr<GeneratorImpl> clone() const override;
  void set_offset(uint64_t offset) override { offset_ = offset; }
  uint64_t get_offset() const override { return offset_; }

  /// Reserves `count` numbers of the counter stream and returns the position of the first.
  uint64_t take(uint64_t count) {
    const uint64_t first = offset_;
    offset_ += count;
    return first;
  }
  /// The stream of the fallback.
  const Generator& host() const { return host_; }

 private:
  uint64_t seed_;
  uint64_t offset_ = 0;
  Generator host_;
  SeedListener told_;
};

}  // namespace cresset
