// The registry of device backends: registration of tables, loading of plug-ins, and questions about what is there.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <cresset/core/allocator.h>
#include <cresset/core/backend_table.h>
#include <cresset/core/device.h>
#include <cresset/core/stream.h>

namespace cresset {

/// Checks a table and makes it a device kind: allocator, guards, streams, generators, kernels, CPU fallback. Raises with
/// one sentence that names the missing part or the version that does not fit.
CRESSET_API DeviceType register_backend(const cresset_backend& table);
/// Loads a plug-in library and registers the backend in it. Raises with the reason; the library stays loaded.
CRESSET_API DeviceType load_backend(const std::string& path);
/// Is the kind described by a table?
CRESSET_API bool is_backend(DeviceType t);
/// Every kind that is, in order of registration.
CRESSET_API std::vector<DeviceType> registered_backends();
/// The table of a kind; entries of versions it did not know are null. Null when the kind has none.
CRESSET_API const cresset_backend* backend_table(DeviceType t);

/// One part of a backend: whether it is there, and what does not work without it.
struct BackendPart {
  std::string name;
  bool required;
  bool present;
  std::string without;
};
/// All that is known of a device name. `problem` is empty for a backend that works; `type` is set for registered names.
struct BackendReport {
  std::string name;
  std::optional<DeviceType> type;
  std::string problem;
  std::string library;  // the file it was loaded from, empty when unknown
  uint32_t table_version = 0;
  std::vector<BackendPart> parts;  // empty when there is no table
};
/// Loads what gives the name, if need be, and reports; never raises for broken plug-ins.
CRESSET_API BackendReport inspect_backend(const std::string& name);

/// Asked, in order of registration, when a device name is not known: loads what can give the name and returns true, or
/// returns false. An exception means that something that should give it is broken; its text becomes part of the error.
using DeviceResolver = std::function<bool(const std::string& name)>;
CRESSET_API void add_device_resolver(DeviceResolver resolver);
/// Called for every backend that is registered, now and later.
CRESSET_API void add_backend_listener(std::function<void(DeviceType)> listener);
/// Files that CRESSET_BACKEND_PATH offers for a device: directories and libraries separated by ':'; a directory offers
/// NAME.so, libNAME.so and libcresset_NAME.so.
CRESSET_API std::vector<std::string> backend_candidates(const std::string& name);

/// Bytes and blocks of a device's allocator.
struct DeviceMemoryStats {
  int64_t allocated_bytes = 0;
  int64_t peak_bytes = 0;
  int64_t allocations = 0;  // since the start
  int64_t live_blocks = 0;
  int64_t reserved_bytes = 0;  // what the backend's cache holds; the allocated bytes for backends without one
  int64_t peak_reserved_bytes = 0;
};
CRESSET_API DeviceMemoryStats device_memory_stats(Device d);
CRESSET_API void reset_peak_device_memory_stats(Device d);

/// How many devices a kind has: backends, hooks and guards are asked; 0 for unknown ones, 1 for the CPU.
CRESSET_API int device_count(DeviceType t);
namespace detail {
/// Does a device reach the memory of another one of its kind directly? Copies between them work in any case.
CRESSET_API bool can_access_peer(Device device, Device peer);
/// The lowest and the highest priority of streams; smaller numbers go first.
CRESSET_API std::pair<int, int> stream_priorities(Device device);
/// The driver's queue behind a stream, and a stream for a queue that somebody else keeps alive; errors name a backend that cannot.
CRESSET_API void* native_stream(const Stream& s);
CRESSET_API Stream stream_of_native(Device device, void* handle);
}  // namespace detail

/// The device with its index filled in: -1 becomes the current one. Raises for an index that does not exist.
CRESSET_API Device resolved_device(Device d);

namespace detail {
/// Keeps the text of an error that happened while a library was being loaded, where an exception would end the process.
/// load_backend raises it.
CRESSET_API void report_plugin_error(const std::string& text);
/// A part of a registered backend could not be loaded: load_backend raises it, and so does every use of the device from now on, for it
/// would do something else than its author believes. The first reason stays.
CRESSET_API void refuse_device(DeviceType t, const std::string& reason);
/// Called once for each new backend, by the layer that knows operators.
CRESSET_API void set_backend_installer(void (*install)(DeviceType));
/// Memory of a device with a table; index -1 is the current one.
CRESSET_API DataPtr allocate_on(Device device, std::size_t nbytes);
/// Raises the error that a status of a backend's function stands for; `what` says what was being done.
CRESSET_API void check_backend(DeviceType t, cresset_status status, int device, std::string_view what);
/// Bytes between the host and devices of one kind, or within the kind; contiguous. The stream is the device's current one.
CRESSET_API void copy_bytes(void* target, Device target_device, std::size_t target_offset, const void* source, Device source_device,
                            std::size_t source_offset, std::size_t nbytes, bool non_blocking);
}  // namespace detail

}  // namespace cresset
