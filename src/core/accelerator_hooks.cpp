// Registries of hooks and generators by device kind.
#include <cresset/base/fork.h>
#include <cresset/core/accelerator_hooks.h>

#include <array>
#include <atomic>
#include <map>
#include <mutex>

#include <cresset/core/backend.h>
#include <cresset/core/device_guard.h>

namespace cresset {
namespace {

template <class T>
using ByKind = std::array<std::atomic<T>, kDeviceTypeCount>;
ByKind<AcceleratorHooksInterface*>& all_hooks() {
  static ByKind<AcceleratorHooksInterface*> hooks{};
  return hooks;
}
ByKind<GeneratorMaker>& all_makers() {
  static ByKind<GeneratorMaker> makers{};
  return makers;
}

struct DefaultGenerators {
  ForkSafe<std::mutex> mutex;
  std::map<std::pair<DeviceType, DeviceIndex>, Generator> by_device;  // a map: references stay valid
};
DefaultGenerators& default_generators() {
  static auto* g = new DefaultGenerators;
  return *g;
}

[[noreturn]] void not_supported(const char* what) {
  CRESSET_THROW(NotImplementedError, "Backend doesn't support `", what, "`. Override it in the class of the backend's hooks.");
}

}  // namespace

void AcceleratorHooksInterface::setCurrentDevice(DeviceIndex) const { not_supported("setCurrentDevice()"); }
DeviceIndex AcceleratorHooksInterface::getCurrentDevice() const { not_supported("getCurrentDevice()"); }
DeviceIndex AcceleratorHooksInterface::exchangeDevice(DeviceIndex) const { not_supported("exchangeDevice()"); }
DeviceIndex AcceleratorHooksInterface::maybeExchangeDevice(DeviceIndex index) const {
  return index < 0 ? DeviceIndex{-1} : exchangeDevice(index);
}
Allocator* AcceleratorHooksInterface::getPinnedMemoryAllocator() const { not_supported("getPinnedMemoryAllocator()"); }
Device AcceleratorHooksInterface::getDeviceFromPtr(void*) const { not_supported("getDeviceFromPtr()"); }
const Generator& AcceleratorHooksInterface::getDefaultGenerator(DeviceIndex) const { not_supported("getDefaultGenerator()"); }
Generator AcceleratorHooksInterface::getNewGenerator(DeviceIndex) const { not_supported("getNewGenerator()"); }
bool PrivateUse1HooksInterface::hasPrimaryContext(DeviceIndex) const { return true; }
void PrivateUse1HooksInterface::resizePrivateUse1Bytes(const Storage&, std::size_t) const { not_supported("resizePrivateUse1Bytes()"); }

void registerAcceleratorHooks(DeviceType type, AcceleratorHooksInterface* hooks) {
  AcceleratorHooksInterface* none = nullptr;
  CRESSET_CHECK(all_hooks().at(static_cast<std::size_t>(type)).compare_exchange_strong(none, hooks), "hooks of device kind '",
                DeviceTypeName(type), "' are already registered; a kind has one object of hooks.");
}

AcceleratorHooksInterface* getAcceleratorHooks(DeviceType type) {
  return type >= DeviceType::HIP ? nullptr : all_hooks().at(static_cast<std::size_t>(type)).load();
}

PrivateUse1HooksInterface* GetPrivateUse1HooksInterface() {
  auto* hooks = dynamic_cast<PrivateUse1HooksInterface*>(getAcceleratorHooks(kPrivateUse1));
  CRESSET_CHECK(hooks, "Please register PrivateUse1HooksInterface by `RegisterPrivateUse1HooksInterface` first.");
  return hooks;
}

namespace detail {
const PrivateUse1HooksInterface& getPrivateUse1Hooks() {
  static const PrivateUse1HooksInterface none;
  const auto* hooks = dynamic_cast<PrivateUse1HooksInterface*>(getAcceleratorHooks(kPrivateUse1));
  return hooks ? *hooks : none;
}
}  // namespace detail

std::optional<DeviceType> getAccelerator() {
  for (DeviceType t : registered_backends())
    if (device_count(t) > 0) return t;
  for (int i = static_cast<int>(DeviceType::PrivateUse1); i < kDeviceTypeCount; ++i)
    if (device_count(static_cast<DeviceType>(i)) > 0) return static_cast<DeviceType>(i);
  return std::nullopt;
}

void registerGenerator(DeviceType type, GeneratorMaker maker) {
  static ByKind<bool> registered{};
  CRESSET_CHECK(!registered.at(static_cast<std::size_t>(type)).exchange(true), "Only can register a generator to the ",
                toString(backendKey(type)), " dispatch key once!");
  all_makers().at(static_cast<std::size_t>(type)).store(maker);
}

namespace detail {
void give_generator(DeviceType type, GeneratorMaker maker) {
  GeneratorMaker none = nullptr;
  all_makers().at(static_cast<std::size_t>(type)).compare_exchange_strong(none, maker);
}
}  // namespace detail

bool has_generator(DeviceType type) {
  return type == kCPU || (type < DeviceType::HIP && all_makers().at(static_cast<std::size_t>(type)).load() != nullptr);
}

Generator make_generator_for(Device device) {
  if (device.is_cpu()) return make_cpu_generator();
  const GeneratorMaker maker = has_generator(device.type()) ? all_makers().at(static_cast<std::size_t>(device.type())).load() : nullptr;
  if (!maker)  // newer sources for PyTorch register none: their hooks make generators
    if (const auto* hooks = dynamic_cast<const PrivateUse1HooksInterface*>(getAcceleratorHooks(device.type())))
      return hooks->getNewGenerator(device.index());
  CRESSET_CHECK(maker, "Generator: device '", device, "' has no generator registered. Please register a generator to the ",
                toString(backendKey(device.type())),
                " dispatch key, with CRESSET_REGISTER_GENERATOR, or using the REGISTER_GENERATOR_PRIVATEUSE1 macro.");
  return maker(resolved_device(device).index());
}

const Generator& default_generator_of(Device device) {
  if (device.is_cpu()) return default_cpu_generator();
  const Device d = resolved_device(device);
  if (const auto* hooks = getAcceleratorHooks(d.type()); hooks && !has_generator(d.type())) return hooks->getDefaultGenerator(d.index());
  DefaultGenerators& all = default_generators();
  std::lock_guard lock(all.mutex);
  Generator& g = all.by_device[{d.type(), d.index()}];
  if (!g.defined()) g = make_generator_for(d);
  return g;
}

Allocator* pinned_memory_allocator(DeviceType t) {
  const auto* hooks = getAcceleratorHooks(t);
  CRESSET_CHECK(hooks, "Cannot access accelerator device when none is available: ", DeviceTypeName(t), " has no pinned memory.");
  return hooks->getPinnedMemoryAllocator();
}

bool is_pinned_ptr(const void* data) {
  if (!data) return false;
  for (auto& slot : all_hooks())
    if (const auto* hooks = slot.load(); hooks && hooks->isPinnedPtr(data)) return true;
  return false;
}

}  // namespace cresset
