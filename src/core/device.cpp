// The registry of device names, and device strings.
#include <cresset/base/fork.h>
#include <cresset/core/device.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <mutex>
#include <optional>

#include "base/hint.h"
#include "core/backend_device.h"

namespace cresset {
namespace {

// Slot → name; empty slots are free.
struct Names {
  ForkSafe<std::mutex> mutex;
  std::array<std::string, kDeviceTypeCount> name;
  bool privateuse1_named = false;
  Names() {
    name[0] = "cpu";
    name[3] = "meta";
    name[4] = "privateuseone";
    name[5] = "privateusetwo";
    name[6] = "privateusethree";
    name[static_cast<std::size_t>(DeviceType::MAIA)] = "maia";
  }
};
Names& names() {
  static auto* n = new Names;
  return *n;
}

// Names that mean something to users of PyTorch although no slot answers to them here.
constexpr std::array<const char*, 5> kForeign = {"cuda", "xla", "mps", "xpu", "hip"};
// In the order of DeviceType, from HIP on.
constexpr std::array kNamesWithoutSlot = {"hip",  "xpu",    "mps",   "hpu",    "mtia",   "lazy",   "ipu",  "ve",
                                          "fpga", "vulkan", "metal", "mkldnn", "opengl", "opencl", "ideep"};
static_assert(kNamesWithoutSlot.size() ==
              static_cast<std::size_t>(DeviceType::COMPILE_TIME_MAX_DEVICE_TYPES) - static_cast<std::size_t>(DeviceType::HIP));

// Letters, digits and _ of ASCII, not beginning with a digit. Other names are no devices: they are never looked for among plug-ins,
// because names come from files as well.
bool is_plain_name(std::string_view name) {
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  return !name.empty() && letter(name[0]) &&
         std::all_of(name.begin(), name.end(), [&](char c) { return letter(c) || (c >= '0' && c <= '9'); });
}

void check_new_name(const Names& n, const std::string& name) {
  CRESSET_CHECK(is_plain_name(name), "device name: letters, digits and _ were required, not beginning with a digit; '", name,
                "' was given.");
  for (const std::string& other : n.name)
    CRESSET_CHECK(other != name, "device name '", name, "' already belongs to another device. Choose another name.");
  for (const char* other : kForeign)
    CRESSET_CHECK(name != other, "device name '", name, "' is reserved for that device. Choose another name.");
}

// "cuda" names a device also where nobody has mounted one.
std::string unlocked_list(const Names& n) {
  std::string out;
  for (std::size_t i = 0; i < n.name.size(); ++i) {
    const std::string& s = n.name[i].empty() && i == static_cast<std::size_t>(DeviceType::CUDA) ? "cuda" : n.name[i];
    if (!s.empty()) out += (out.empty() ? "" : ", ") + s;
  }
  return out;
}

}  // namespace

std::string DeviceTypeName(DeviceType t, bool lower_case) {
  Names& n = names();
  std::lock_guard lock(n.mutex);
  std::string s = t < DeviceType::HIP ? n.name.at(static_cast<std::size_t>(t))
                                      : kNamesWithoutSlot.at(static_cast<std::size_t>(t) - static_cast<std::size_t>(DeviceType::HIP));
  if (s.empty()) s = t == DeviceType::CUDA ? "cuda" : t == DeviceType::XLA ? "xla" : str("slot", static_cast<int>(t));
  if (!lower_case) std::transform(s.begin(), s.end(), s.begin(), [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return s;
}

void rename_privateuse1_backend(const std::string& name) {
  Names& n = names();
  std::lock_guard lock(n.mutex);
  std::string& slot = n.name[static_cast<std::size_t>(DeviceType::PrivateUse1)];
  if (n.privateuse1_named) {
    if (slot != name)
      detail::raise_with_hint(str("torch.register_privateuse1_backend() has already been set! Current backend: ", slot),
                              "It cannot become '" + name + "'. Use register_device_type for a second backend.");
    return;
  }
  if (name != slot) check_new_name(n, name);
  slot = name;
  n.privateuse1_named = true;
}

bool is_privateuse1_backend_registered() {
  Names& n = names();
  std::lock_guard lock(n.mutex);
  return n.privateuse1_named;
}

DeviceType register_device_type(const std::string& name) {
  Names& n = names();
  std::lock_guard lock(n.mutex);
  for (int i = static_cast<int>(DeviceType::PrivateUse1); i < kDeviceTypeCount; ++i)
    if (n.name[i] == name) return static_cast<DeviceType>(i);
  check_new_name(n, name);
  for (int i = static_cast<int>(DeviceType::FirstNamedSlot); i < kDeviceTypeCount; ++i)
    if (n.name[i].empty()) {
      n.name[i] = name;
      return static_cast<DeviceType>(i);
    }
  CRESSET_THROW(Error, "register_device_type: no slot is left for '", name, "'; registered: ", unlocked_list(n), ".");
}

namespace {
std::optional<DeviceType> find_type(std::string_view name) {
  Names& n = names();
  std::lock_guard lock(n.mutex);
  for (int i = 0; i < kDeviceTypeCount; ++i)
    if (n.name[i] == name && !name.empty()) return static_cast<DeviceType>(i);
  if (name == "privateuseone") return DeviceType::PrivateUse1;
  if (name == "cuda") return DeviceType::CUDA;
  return std::nullopt;
}

// Kinds that PyTorch names: objects with the name exist though no tensor can be there.
std::optional<DeviceType> find_kind_without_slot(std::string_view name) {
  if (name == "xla") return DeviceType::XLA;
  for (std::size_t i = 0; i < kNamesWithoutSlot.size(); ++i)
    if (name == kNamesWithoutSlot[i] && name != "metal") return static_cast<DeviceType>(static_cast<std::size_t>(DeviceType::HIP) + i);
  return std::nullopt;
}
}  // namespace

namespace detail {
std::optional<DeviceType> device_type_of_name(std::string_view name) { return find_type(name); }

void forget_device_name(DeviceType type) {
  Names& n = names();
  std::lock_guard lock(n.mutex);
  const bool is_renamed = type == DeviceType::PrivateUse1;
  n.name[static_cast<std::size_t>(type)] = is_renamed ? "privateuseone" : "";
  if (is_renamed) n.privateuse1_named = false;
}
}  // namespace detail

DeviceType device_type_from_name(std::string_view name) {
  if (const auto known = find_type(name)) return *known;
  // Nobody has asked for it yet: a plug-in may give the name.
  const std::string problem = is_plain_name(name) ? detail::resolve_device_name(std::string(name)) : "";
  if (const auto loaded = find_type(name); loaded && problem.empty()) return *loaded;
  if (const auto kind = problem.empty() ? find_kind_without_slot(name) : std::nullopt) return *kind;
  // PyTorch's names; those of plug-ins stand in the hint.
  const std::string words = str(
      "Expected one of cpu, cuda, ipu, xpu, mkldnn, opengl, opencl, ideep, hip, ve, fpga, maia, xla, lazy, vulkan, mps, meta, hpu, mtia, "
      "privateuseone device type at start of device string: ",
      name);
  CRESSET_CHECK(problem.empty(), words, "\nA plug-in should give the device '", name, "', but it does not load: ", problem,
                "\nRun `cresset doctor ", name, "` for its parts.");
  detail::raise_with_hint(words, "No installed plug-in gives this name. `cresset doctor` lists the devices that are there.");
}

std::string known_device_names() {
  Names& n = names();
  std::lock_guard lock(n.mutex);
  return unlocked_list(n);
}

Device::Device(const std::string& text) : type_(DeviceType::CPU), index_(-1) {
  const std::size_t colon = text.find(':');
  CRESSET_CHECK(!text.empty(), "Device string must not be empty");
  const std::string_view name = std::string_view(text).substr(0, colon);
  const bool is_word = std::all_of(name.begin(), name.end(), [](unsigned char c) { return std::isalnum(c) || c == '_'; });
  CRESSET_CHECK(is_word, "Invalid device string: '", text, "'");
  type_ = device_type_from_name(name);
  if (colon == std::string::npos) return;
  const char* first = text.data() + colon + 1;
  const char* last = text.data() + text.size();
  int value = -1;
  const auto [end, error] = std::from_chars(first, last, value);
  CRESSET_CHECK(error == std::errc() && end == last && value >= 0 && value <= 127 && (last - first == 1 || *first != '0'),
                "Invalid device string: '", text, "'");
  index_ = static_cast<DeviceIndex>(value);
}

std::string Device::str() const {
  std::string s = DeviceTypeName(type_);
  if (has_index()) s += ":" + std::to_string(static_cast<int>(index_));
  return s;
}

}  // namespace cresset
