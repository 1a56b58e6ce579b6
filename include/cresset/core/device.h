// Devices are registered names plus an index. The core knows only that "cpu" and "meta" exist and that further
// kinds take one of sixteen slots, of which the first three are reserved under the names PrivateUse1..3.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include <cresset/base/error.h>

namespace cresset {

using DeviceIndex = int8_t;

enum class DeviceType : int8_t {
  CPU = 0,
  CUDA = 1,  // a name that extensions mention; nothing registers it here
  XLA = 2,   // likewise
  Meta = 3,
  PrivateUse1 = 4,
  PrivateUse2 = 5,
  PrivateUse3 = 6,
  FirstNamedSlot = 7,  // slots handed out by register_device_type
  LastSlot = 19,
  MAIA = LastSlot,  // a slot whose name is given
  // Names that sources mention; no slot belongs to them and no tensor can be there.
  HIP = 64,
  XPU,
  MPS,
  HPU,
  MTIA,
  Lazy,
  IPU,
  VE,
  FPGA,
  Vulkan,
  Metal,
  MKLDNN,
  OPENGL,
  OPENCL,
  IDEEP,
  COMPILE_TIME_MAX_DEVICE_TYPES,
};
inline constexpr int kDeviceTypeCount = 20;
inline constexpr DeviceType kCPU = DeviceType::CPU, kCUDA = DeviceType::CUDA, kXLA = DeviceType::XLA, kMeta = DeviceType::Meta,
                            kPrivateUse1 = DeviceType::PrivateUse1, kMAIA = DeviceType::MAIA, kHIP = DeviceType::HIP,
                            kXPU = DeviceType::XPU, kMPS = DeviceType::MPS, kHPU = DeviceType::HPU, kMTIA = DeviceType::MTIA,
                            kLazy = DeviceType::Lazy, kIPU = DeviceType::IPU, kVE = DeviceType::VE, kFPGA = DeviceType::FPGA,
                            kVulkan = DeviceType::Vulkan, kMetal = DeviceType::Metal;

/// The registered name in lower case, "privateuseone" for an unnamed PrivateUse1.
CRESSET_API std::string DeviceTypeName(DeviceType t, bool lower_case = true);
inline std::string to_string(DeviceType t) { return DeviceTypeName(t); }
/// Names slot PrivateUse1, once; a second different name, or the name of another device, is an error.
CRESSET_API void rename_privateuse1_backend(const std::string& name);
inline void register_privateuse1_backend(const std::string& name) { rename_privateuse1_backend(name); }
CRESSET_API bool is_privateuse1_backend_registered();
/// Gives a new device name the next free slot, or returns the slot that already has it. Raises when none is left.
CRESSET_API DeviceType register_device_type(const std::string& name);
/// The slot of a registered name; raises with the list of known names.
CRESSET_API DeviceType device_type_from_name(std::string_view name);
/// "cpu, meta, privateuseone, …": every name a device string may begin with.
CRESSET_API std::string known_device_names();

/// A device kind and an index; index -1 means the current device of that kind.
struct CRESSET_API Device {
  using Type = DeviceType;
  constexpr Device(DeviceType type, DeviceIndex index = -1) : type_(type), index_(index) {}
  /// Parses "cpu", "mychip", "mychip:1".
  Device(const std::string& text);
  Device(std::string_view text) : Device(std::string(text)) {}
  Device(const char* text) : Device(std::string(text)) {}

  constexpr DeviceType type() const { return type_; }
  constexpr DeviceIndex index() const { return index_; }
  void set_index(DeviceIndex i) { index_ = i; }
  constexpr bool has_index() const { return index_ != -1; }
  constexpr bool is_cpu() const { return type_ == DeviceType::CPU; }
  constexpr bool is_cuda() const { return type_ == DeviceType::CUDA; }
  constexpr bool is_meta() const { return type_ == DeviceType::Meta; }
  constexpr bool is_privateuseone() const { return type_ == DeviceType::PrivateUse1; }
  constexpr bool is_xla() const { return type_ == DeviceType::XLA; }
  constexpr bool is_hip() const { return type_ == DeviceType::HIP; }
  constexpr bool is_xpu() const { return type_ == DeviceType::XPU; }
  constexpr bool is_mps() const { return type_ == DeviceType::MPS; }
  constexpr bool is_hpu() const { return type_ == DeviceType::HPU; }
  constexpr bool is_ipu() const { return type_ == DeviceType::IPU; }
  constexpr bool is_ve() const { return type_ == DeviceType::VE; }
  constexpr bool is_vulkan() const { return type_ == DeviceType::Vulkan; }
  constexpr bool is_metal() const { return type_ == DeviceType::Metal; }
  constexpr bool is_mtia() const { return type_ == DeviceType::MTIA; }
  constexpr bool is_lazy() const { return type_ == DeviceType::Lazy; }
  constexpr bool is_maia() const { return type_ == DeviceType::MAIA; }
  /// Can tensors there be strided?
  constexpr bool supports_as_strided() const { return !is_xla() && !is_lazy(); }
  /// "cpu" or "mychip:1".
  std::string str() const;
  friend constexpr bool operator==(Device a, Device b) { return a.type_ == b.type_ && a.index_ == b.index_; }

 private:
  DeviceType type_;
  DeviceIndex index_;
};
inline std::string to_string(Device d) { return d.str(); }

}  // namespace cresset

template <>
struct std::hash<cresset::Device> {
  std::size_t operator()(cresset::Device d) const noexcept {
    return static_cast<std::size_t>(static_cast<uint8_t>(d.type())) << 8 | static_cast<uint8_t>(d.index());
  }
};
