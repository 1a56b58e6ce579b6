// What a device kind tells the core about itself beyond guards: counts, generators, pinned memory, resizing storages.
//
// PyTorch's class names: a backend that derives from PrivateUse1HooksInterface and registers itself works here. A backend
// with a table (cresset/backend.h) gets an implementation from the core.
#pragma once

#include <optional>
#include <string>

#include <cresset/core/allocator.h>
#include <cresset/core/generator.h>
#include <cresset/core/storage.h>

namespace cresset {

/// Answers of one device kind; everything has a default that says no.
struct CRESSET_API AcceleratorHooksInterface {
  virtual ~AcceleratorHooksInterface() = default;
  /// Called once, before the first use.
  virtual void init() const {}
  virtual bool isBuilt() const { return false; }
  virtual bool isAvailable() const { return deviceCount() > 0; }
  /// Has device `index` been used in this process?
  virtual bool hasPrimaryContext(DeviceIndex index) const = 0;
  virtual DeviceIndex deviceCount() const { return 0; }
  virtual void setCurrentDevice(DeviceIndex index) const;
  virtual DeviceIndex getCurrentDevice() const;
  virtual DeviceIndex exchangeDevice(DeviceIndex index) const;
  /// exchangeDevice, but -1 does nothing and gives -1.
  virtual DeviceIndex maybeExchangeDevice(DeviceIndex index) const;
  virtual bool isPinnedPtr(const void* /*data*/) const { return false; }
  virtual Allocator* getPinnedMemoryAllocator() const;
  virtual Device getDeviceFromPtr(void* data) const;
  virtual const Generator& getDefaultGenerator(DeviceIndex index = -1) const;
  virtual Generator getNewGenerator(DeviceIndex index = -1) const;
};

/// The hooks of slot PrivateUse1.
struct CRESSET_API PrivateUse1HooksInterface : AcceleratorHooksInterface {
  bool hasPrimaryContext(DeviceIndex index) const override;
  /// Gives a storage another size, keeping what fits.
  virtual void resizePrivateUse1Bytes(const Storage& storage, std::size_t new_bytes) const;
};

struct PrivateUse1HooksArgs {};

/// Hooks of a device kind; they must live as long as the process. A second registration is an error.
CRESSET_API void registerAcceleratorHooks(DeviceType type, AcceleratorHooksInterface* hooks);
/// Null when the kind has none.
CRESSET_API AcceleratorHooksInterface* getAcceleratorHooks(DeviceType type);
inline void RegisterPrivateUse1HooksInterface(PrivateUse1HooksInterface* hooks) { registerAcceleratorHooks(kPrivateUse1, hooks); }
inline bool isPrivateUse1HooksRegistered() { return getAcceleratorHooks(kPrivateUse1) != nullptr; }
/// Raises when there are none.
CRESSET_API PrivateUse1HooksInterface* GetPrivateUse1HooksInterface();
namespace detail {
CRESSET_API const PrivateUse1HooksInterface& getPrivateUse1Hooks();
}

/// The device kind of the accelerator of this process: the first non-CPU kind that has a device; nothing when there is none.
CRESSET_API std::optional<DeviceType> getAccelerator();

/// Makes new generators of a device kind (PyTorch's RegisterGenerator for PrivateUse1).
using GeneratorMaker = Generator (*)(DeviceIndex index);
CRESSET_API void registerGenerator(DeviceType type, GeneratorMaker maker);
/// A new generator on a device; raises `Generator: device 'x' has no generator registered`.
CRESSET_API Generator make_generator_for(Device device);
/// The generator that is used on a device when none is given; index -1 is the current device.
CRESSET_API const Generator& default_generator_of(Device device);
CRESSET_API bool has_generator(DeviceType type);

/// Host memory that devices of a kind can read directly. `t` says which kind; raises when it has no such memory.
CRESSET_API Allocator* pinned_memory_allocator(DeviceType t);
/// Is it pinned memory of any registered kind?
CRESSET_API bool is_pinned_ptr(const void* data);

namespace detail {
struct GeneratorRegistrar {
  GeneratorRegistrar(DeviceType type, GeneratorMaker maker) { registerGenerator(type, maker); }
};
}  // namespace detail

/// The generator of device `index` of a kind as the Python name Generator(device="kind:index") makes it.
#define CRESSET_REGISTER_GENERATOR(DevType, maker) \
  static const ::cresset::detail::GeneratorRegistrar CRESSET_UNIQUE(cresset_generator_registrar_)(::cresset::DeviceType::DevType, maker)
#define REGISTER_GENERATOR_PRIVATEUSE1(maker) CRESSET_REGISTER_GENERATOR(PrivateUse1, maker)

}  // namespace cresset
