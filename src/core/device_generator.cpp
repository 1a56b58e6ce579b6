// Seeds and state of device generators: seed, position of the counter, then the state of the CPU's stream.
#include <cresset/core/device_generator.h>

#include <cstring>

namespace cresset {
namespace {
constexpr std::size_t kHead = 2 * sizeof(uint64_t);
}

DeviceGeneratorImpl::DeviceGeneratorImpl(Device device, uint64_t seed, SeedListener told)
    : GeneratorImpl(device, DispatchKeySet(backendKey(device.type()))), seed_(seed), host_(make_cpu_generator(seed)), told_(told) {}

void DeviceGeneratorImpl::set_current_seed(uint64_t seed) {
  seed_ = seed;
  offset_ = 0;
  host_.set_current_seed(seed);
  if (told_) told_(device_, seed);
}

uint64_t DeviceGeneratorImpl::seed() {
  const uint64_t value = nondeterministic_seed();
  set_current_seed(value);
  return value;
}

std::vector<uint8_t> DeviceGeneratorImpl::state_bytes() const {
  std::vector<uint8_t> bytes(kHead);
  std::memcpy(bytes.data(), &seed_, sizeof seed_);
  std::memcpy(bytes.data() + sizeof seed_, &offset_, sizeof offset_);
  const std::vector<uint8_t> host = host_.state_bytes();
  bytes.insert(bytes.end(), host.begin(), host.end());
  return bytes;
}

void DeviceGeneratorImpl::set_state_bytes(std::span<const uint8_t> state) {
  CRESSET_CHECK(state.size() == kHead + CPUGeneratorImpl::kStateSize, "set_state: a state of ", kHead + CPUGeneratorImpl::kStateSize,
                " bytes was required for the generator of ", device_, "; ", state.size(),
                " bytes were given. Pass what get_state returned.");
  host_.set_state_bytes(state.subspan(kHead));
  std::memcpy(&seed_, state.data(), sizeof seed_);
  std::memcpy(&offset_, state.data() + sizeof seed_, sizeof offset_);
}

intrusive_ptr<GeneratorImpl> DeviceGeneratorImpl::clone() const {
  auto copy = make_intrusive<DeviceGeneratorImpl>(device_, seed_);
  copy->offset_ = offset_;
  copy->host_ = host_.clone();
  return copy;
}

}  // namespace cresset
