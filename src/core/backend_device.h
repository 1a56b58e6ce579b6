// What the core builds from a backend's table: errors from statuses, an allocator, guards with streams and events.
#pragma once

#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <vector>

#include <cresset/base/fork.h>
#include <cresset/core/accelerator_hooks.h>
#include <cresset/core/backend.h>
#include <cresset/core/backend_table.h>
#include <cresset/core/device_graph.h>
#include <cresset/core/device_guard.h>

#include "core/backend_memory.h"

namespace cresset::detail {

inline constexpr int kMaxDevices = 64;     // of one kind
inline constexpr int kStreamsInPool = 32;  // a device and priority

/// Sets the maker of a kind's generators unless one is registered; a registration later takes its place.
void give_generator(DeviceType type, GeneratorMaker maker);

/// The memory of one device, and its pool of streams.
struct BackendDevice {
  BackendDevice(const Backend& backend, int index) : memory(backend, index) {}
  DeviceMemory memory;
  ForkSafe<std::mutex> mutex;
  struct Streams {
    std::vector<cresset_stream> made;
    std::size_t next = 0;
  };
  std::map<int, Streams> pool;  // by priority
};

/// A registered backend; lives as long as the process.
class Backend final {
 public:
  Backend(const cresset_backend& table, DeviceType type);

  const cresset_backend& table() const { return table_; }
  DeviceType type() const { return type_; }
  const std::string& name() const { return name_; }
  const std::string& file_tag() const { return file_tag_; }
  int device_count() const;
  BackendDevice& device(int index) const { return *devices_[static_cast<std::size_t>(index)]; }
  Allocator* allocator() const { return allocator_.get(); }
  const impl::DeviceGuardImplInterface* guard() const { return guard_.get(); }
  AcceleratorHooksInterface* hooks() const { return hooks_.get(); }

  /// To be called before anything that reaches the device: refuses in a forked child, and when a part of the backend is broken.
  void enter() const;
  void refuse(const std::string& reason);
  /// Raises when a status is not CRESSET_OK; the pieces say what was being done.
  void check(cresset_status status, int device, std::string_view what) const {
    if (status != CRESSET_OK) [[unlikely]]
      raise(status, device, what);
  }
  [[noreturn]] void raise(cresset_status status, int device, std::string_view what) const;
  void check_index(int index) const;
  /// The lowest and the highest; smaller numbers go first.
  std::pair<int, int> stream_priorities(int index) const;
  DataPtr allocate_pinned(std::size_t nbytes) const;
  bool is_pinned(const void* data) const;

 private:
  const cresset_backend table_;
  const DeviceType type_;
  const std::string name_, file_tag_, description_;
  std::array<std::unique_ptr<BackendDevice>, kMaxDevices> devices_;
  std::unique_ptr<Allocator> allocator_;
  std::unique_ptr<impl::DeviceGuardImplInterface> guard_;
  std::unique_ptr<AcceleratorHooksInterface> hooks_;
  std::atomic<const std::string*> broken_{nullptr};  // lives as long as the process
};

/// Loads what offers a device name. Gives the reason when something broken should have, and nothing when nobody offers it.
std::string resolve_device_name(const std::string& name);
/// Of a name that is there; nothing is loaded for it.
std::optional<DeviceType> device_type_of_name(std::string_view name);
/// For a registration that failed after it had taken the name.
void forget_device_name(DeviceType type);
/// Null when the kind has no table.
Backend* backend_of(DeviceType t);
/// Makes guards, hooks, allocator and generators of a new backend known to the core.
void install_device(Backend& backend);

}  // namespace cresset::detail
