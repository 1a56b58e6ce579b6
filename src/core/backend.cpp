// Registration of backends: what a table must have, which slot it gets, where plug-ins are looked for.
#include <cresset/base/fork.h>
#include <cresset/base/interrupt.h>
#include <cresset/core/backend.h>

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "core/backend_device.h"

namespace cresset {
namespace {

struct Registry {
  ForkSafe<std::recursive_mutex> mutex;  // loading a plug-in registers it
  std::array<std::atomic<detail::Backend*>, kDeviceTypeCount> by_type{};
  std::vector<std::unique_ptr<detail::Backend>> made;  // also those that were forgotten
  std::vector<DeviceType> order;
  std::map<std::string, std::string> library;     // device name -> file
  std::map<std::string, std::string> problem;     // device name -> why it is not there
  std::map<std::string, cresset_backend> broken;  // tables that were refused, for the report
  std::vector<std::string> errors;                // reported while a library was being loaded
  std::map<void*, std::string> half_loaded;       // libraries whose initialisers, which run once, reported an error
  std::vector<DeviceResolver> resolvers;
  std::vector<std::function<void(DeviceType)>> listeners;
  std::vector<std::string> resolving;  // names being looked for
  void (*install)(DeviceType) = nullptr;
};
Registry& registry() {
  static auto* r = new Registry;
  return *r;
}

// ---- parts of a table

using Table = cresset_backend;
struct PartRule {
  const char* name;
  bool required;
  bool (*present)(const Table&);
  const char* without;
};
#define CRESSET_HAS(entry) [](const Table& t) { return t.entry != nullptr; }
constexpr PartRule kParts[] = {
    {"device_count", true, CRESSET_HAS(device_count), "the device cannot be used"},
    {"allocate", true, CRESSET_HAS(allocate), "no tensor can be made"},
    {"deallocate", true, CRESSET_HAS(deallocate), "memory cannot be freed"},
    {"copy", true, CRESSET_HAS(copy), "tensors cannot be moved"},
    {"error_text", false, CRESSET_HAS(error_text), "errors show numbers instead of words"},
    {"set_device", false, CRESSET_HAS(set_device), "the backend is not told which device is current (fine for one device)"},
    {"synchronize", false, CRESSET_HAS(synchronize), "synchronize() returns at once (right only when every call is finished on return)"},
    {"fill", false, CRESSET_HAS(fill), "zeros and zero_() are copied from the host"},
    {"get_properties", false, CRESSET_HAS(get_properties), "get_device_properties shows the name only"},
    {"stream_create", false, CRESSET_HAS(stream_create), "Stream objects all mean the default stream"},
    {"stream_query", false, CRESSET_HAS(stream_query), "Stream.query() always says done"},
    {"stream_synchronize", false, CRESSET_HAS(stream_synchronize), "Stream.synchronize() waits for the whole device"},
    {"event_create", false, CRESSET_HAS(event_create), "events are marks of the host, and recording one waits for its stream"},
    {"event_elapsed", false, CRESSET_HAS(event_elapsed),
     "elapsed_time and the profiler's device times are measured by the host's clock, or refused with events"},
    {"pinned_allocate", false, CRESSET_HAS(pinned_allocate), "pin_memory() refuses, and copies from the host always wait"},
    {"generator_seed", false, CRESSET_HAS(generator_seed), "the backend is not told of seeds; random numbers come from the CPU's stream"},
    {"kernels", false, [](const Table& t) { return t.kernels != nullptr && t.kernel_count > 0; },
     "no kernels in C; operators run on the CPU unless C++ kernels are registered"},
    {"autocast", false, CRESSET_HAS(autocast), "autocast uses the CPU's lists and types"},
    {"optimizer_step", false, CRESSET_HAS(optimizer_step), "the backend does not hear of optimizer steps"},
    {"profile_push", false, CRESSET_HAS(profile_push), "named ranges do not reach the vendor's profiler"},
    {"empty_cache", false, CRESSET_HAS(empty_cache), "accelerator.empty_cache() does nothing"},
    {"memory_stats", false, CRESSET_HAS(memory_stats), "reserved bytes are those of tensors: a cache is not seen"},
    {"fill_pattern", false, CRESSET_HAS(fill_pattern),
     "fill_ and ones copy one element again and again, and strided ones are filled by the host"},
    {"copy_strided", false, CRESSET_HAS(copy_strided), "copies between layouts of many short rows go through the host"},
    {"copy_cast", false, CRESSET_HAS(copy_cast), "copies between types go through the host"},
    {"graph_begin", false, CRESSET_HAS(graph_begin), "accelerator.Graph cannot record"},
    {"graph_dump", false, CRESSET_HAS(graph_dump), "Graph.debug_dump refuses"},
    {"stream_priorities", false, CRESSET_HAS(stream_priorities), "streams have the priorities 0 and -1"},
    {"stream_to_native", false, CRESSET_HAS(stream_to_native), "Stream.native_handle refuses"},
    {"stream_from_native", false, CRESSET_HAS(stream_from_native), "ExternalStream refuses"},
    {"peer_access", false, CRESSET_HAS(peer_access), "can_device_access_peer says no"},
    {"event_export", false, CRESSET_HAS(event_export), "Event(interprocess=True) refuses"},
    {"dlpack_type", false, [](const Table& t) { return t.dlpack_type != 0; }, "tensors are exchanged as those of an extension device"},
};
#undef CRESSET_HAS

std::vector<BackendPart> parts_of(const Table& t) {
  std::vector<BackendPart> out;
  for (const PartRule& r : kParts) out.push_back({r.name, r.required, r.present(t), r.without});
  return out;
}

// Functions that make sense only together: the first of each row asks for the rest.
std::string incomplete_group(const Table& t) {
  const auto missing = [](const char* first, std::initializer_list<std::pair<const char*, bool>> rest) {
    std::string out;
    for (const auto& [name, there] : rest)
      if (!there) out += (out.empty() ? "" : ", ") + std::string(name);
    return out.empty() ? out : std::string(first) + " needs " + out;
  };
  std::string out;
  if (t.stream_create) out = missing("stream_create", {{"stream_query", t.stream_query}, {"stream_synchronize", t.stream_synchronize}});
  if (out.empty() && t.event_create)
    out = missing("event_create", {{"event_destroy", t.event_destroy},
                                   {"event_record", t.event_record},
                                   {"event_wait", t.event_wait},
                                   {"event_query", t.event_query},
                                   {"event_synchronize", t.event_synchronize}});
  if (out.empty() && t.pinned_allocate) out = missing("pinned_allocate", {{"pinned_deallocate", t.pinned_deallocate}});
  if (out.empty() && t.memory_stats) out = missing("memory_stats", {{"reset_peak_memory_stats", t.reset_peak_memory_stats}});
  if (out.empty() && t.event_export) out = missing("event_export", {{"event_create", t.event_create}, {"event_import", t.event_import}});
  if (out.empty() && t.graph_begin)
    out = missing("graph_begin", {{"graph_end", t.graph_end},
                                  {"graph_replay", t.graph_replay},
                                  {"graph_destroy", t.graph_destroy},
                                  {"stream_is_capturing", t.stream_is_capturing}});
  if (out.empty() && t.profile_push) out = missing("profile_push", {{"profile_pop", t.profile_pop}});
  if (out.empty() && t.kernel_count > 0) out = missing("kernel_count", {{"kernels", t.kernels}});
  return out;
}

// The table as this library knows it: what its maker did not know is null.
Table normalised(const Table& given) {
  constexpr std::size_t kHead = offsetof(Table, name) + sizeof(given.name);
  CRESSET_CHECK(given.struct_size >= kHead && given.struct_size <= 65536, "a backend's table says that it has ", given.struct_size,
                " bytes, which cannot be; set struct_size to sizeof(cresset_backend).");
  Table t{};
  std::memcpy(&t, &given, std::min(given.struct_size, sizeof t));
  t.struct_size = sizeof t;
  CRESSET_CHECK(t.name && *t.name, "a backend's table has no name; set name to what device strings shall begin with.");
  return t;
}

void check_version(const Table& t) {
  CRESSET_CHECK(t.table_version >= CRESSET_BACKEND_TABLE_OLDEST, "backend '", t.name, "' was built for version ", t.table_version,
                " of the backend table, and this library runs versions ", CRESSET_BACKEND_TABLE_OLDEST, " to ",
                CRESSET_BACKEND_TABLE_VERSION, "; build the plug-in again.");
  const uint32_t needs = t.needs_version ? t.needs_version : t.table_version;
  CRESSET_CHECK(needs <= CRESSET_BACKEND_TABLE_VERSION, "backend '", t.name, "' needs version ", needs,
                " of the backend table, and this library has version ", CRESSET_BACKEND_TABLE_VERSION,
                "; install a newer Cresset or an older plug-in.");
}

void check_parts(const Table& t) {
  std::string missing;
  for (const PartRule& r : kParts)
    if (r.required && !r.present(t)) missing += (missing.empty() ? "" : ", ") + std::string(r.name);
  CRESSET_CHECK(missing.empty(), "backend '", t.name, "': required parts are missing: ", missing, ". `cresset doctor ", t.name,
                "` says what each is for.");
  const std::string group = incomplete_group(t);
  CRESSET_CHECK(group.empty(), "backend '", t.name, "': ", group, ".");
  CRESSET_CHECK(t.slot >= 0 && t.slot <= 16, "backend '", t.name, "': a slot of 1 to 16, or 0 for any, was required; ", t.slot,
                " was given.");
}

// Slot 1 is PrivateUse1, which is renamed; others get their name from the registry of names.
DeviceType take_slot(const Table& t) {
  if (t.slot == 1) {
    rename_privateuse1_backend(t.name);
    return DeviceType::PrivateUse1;
  }
  const DeviceType type = register_device_type(t.name);
  CRESSET_CHECK(t.slot == 0 || static_cast<int>(type) == static_cast<int>(DeviceType::PrivateUse1) + t.slot - 1, "backend '", t.name,
                "' asks for slot ", t.slot, ", but the name has slot ",
                static_cast<int>(type) - static_cast<int>(DeviceType::PrivateUse1) + 1, "; leave slot at 0.");
  return type;
}

// A table whose registration failed and that is tried again has its object: guards and hooks that were installed name it.
detail::Backend& backend_for(const Table& t, DeviceType type) {
  auto& made = registry().made;
  const auto same = [&](const auto& b) { return b->type() == type && b->table().self == t.self && b->table().allocate == t.allocate; };
  if (const auto known = std::ranges::find_if(made, same); known != made.end()) return **known;
  return *made.emplace_back(std::make_unique<detail::Backend>(t, type));
}

// As before a registration. The object stays, for guards and allocators that were installed have it.
void forget(const char* name, bool with_name) {
  const auto type = detail::device_type_of_name(name);
  if (!type) return;
  registry().by_type[static_cast<std::size_t>(*type)].store(nullptr, std::memory_order_release);
  std::erase(registry().order, *type);
  if (with_name) detail::forget_device_name(*type);
}

// ---- loading

// Says nothing about the plug-in: it may load the next time.
bool is_passing(const std::exception& e) {
  return dynamic_cast<const std::bad_alloc*>(&e) || dynamic_cast<const OutOfMemoryError*>(&e) || dynamic_cast<const Interrupted*>(&e);
}

std::string dl_reason() {
  const char* text = dlerror();
  return text ? text : "unknown reason";
}

}  // namespace

namespace detail {

Backend* backend_of(DeviceType t) {
  return t >= DeviceType::HIP ? nullptr : registry().by_type[static_cast<std::size_t>(t)].load(std::memory_order_acquire);
}

void report_plugin_error(const std::string& text) {
  Registry& r = registry();
  std::lock_guard lock(r.mutex);
  r.errors.push_back(text);
}

void refuse_device(DeviceType t, const std::string& reason) {
  Registry& r = registry();
  std::lock_guard lock(r.mutex);
  r.errors.push_back(reason);
  Backend* b = backend_of(t);
  CRESSET_INTERNAL_ASSERT(b);
  r.problem.emplace(b->name(), reason);
  b->refuse(reason);
}

void set_backend_installer(void (*install)(DeviceType)) { registry().install = install; }

// Looks for a name that no slot has; returns the reason why there is none, empty when nobody offers it. A reason stays: a broken plug-in is
// not loaded a second time. Want of memory and interrupts are raised and not kept.
std::string resolve_device_name(const std::string& name) {
  Registry& r = registry();
  std::lock_guard lock(r.mutex);
  if (const auto known = r.problem.find(name); known != r.problem.end()) return known->second;
  if (std::find(r.resolving.begin(), r.resolving.end(), name) != r.resolving.end()) return "";
  r.resolving.push_back(name);
  const struct Resolved {
    std::vector<std::string>& names;
    ~Resolved() { names.pop_back(); }
  } resolved{r.resolving};
  try {
    if (const std::vector<std::string> paths = backend_candidates(name); !paths.empty()) {
      load_backend(paths.front());
      return "";
    }
    const auto resolvers = r.resolvers;
    for (const DeviceResolver& resolver : resolvers)
      if (resolver(name)) break;
    return "";
  } catch (const std::exception& e) {
    if (is_passing(e)) throw;
    return r.problem[name] = e.what();
  }
}

}  // namespace detail

DeviceType register_backend(const cresset_backend& given) {
  const Table t = normalised(given);
  Registry& r = registry();
  std::lock_guard lock(r.mutex);
  for (DeviceType known : r.order) {
    const detail::Backend* b = detail::backend_of(known);
    if (b->name() != t.name) continue;
    CRESSET_CHECK(b->table().self == t.self && b->table().allocate == t.allocate, "backend '", t.name,
                  "' is registered already by another library (", r.library.contains(t.name) ? r.library[t.name] : "linked to the program",
                  "). Load one of the two.");
    return known;
  }
  const bool is_new = !detail::device_type_of_name(t.name);
  try {
    check_version(t);
    check_parts(t);
    const DeviceType type = take_slot(t);
    detail::Backend& backend = backend_for(t, type);
    r.by_type[static_cast<std::size_t>(type)].store(&backend, std::memory_order_release);
    detail::install_device(backend);
    r.order.push_back(type);
    r.problem.erase(t.name);
    if (r.install) r.install(type);
    for (const auto& listener : r.listeners) listener(type);
    return type;
  } catch (const std::exception& e) {
    if (!is_passing(e)) {
      r.problem[t.name] = e.what();
      r.broken[t.name] = t;
    } else {
      forget(t.name, is_new);
    }
    throw;
  }
}

DeviceType load_backend(const std::string& path) {
  Registry& r = registry();
  std::lock_guard lock(r.mutex);
  std::vector<std::string> earlier = std::exchange(r.errors, {});
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  const std::string reason = library ? "" : dl_reason();
  const std::vector<std::string> errors = std::exchange(r.errors, std::move(earlier));
  CRESSET_CHECK(library, "backend plug-in ", path, " does not load: ", reason);
  // Opened again it would run without what failed: its kernels, perhaps.
  if (!errors.empty()) r.half_loaded.emplace(library, errors.front());
  const auto failed = r.half_loaded.find(library);
  CRESSET_CHECK(failed == r.half_loaded.end(), "backend plug-in ", path, ": ", failed->second);
  const auto entry = reinterpret_cast<cresset_backend_entry_function>(dlsym(library, CRESSET_BACKEND_ENTRY_NAME));
  CRESSET_CHECK(entry, "backend plug-in ", path, " does not export ", CRESSET_BACKEND_ENTRY_NAME,
                ". Write CRESSET_BACKEND(Class) once in the library.");
  const cresset_backend* table = entry();
  CRESSET_CHECK(table, "backend plug-in ", path, ": ", CRESSET_BACKEND_ENTRY_NAME, " gave no table.");
  const DeviceType type = register_backend(*table);
  r.library[detail::backend_of(type)->name()] = path;
  return type;
}

bool is_backend(DeviceType t) { return detail::backend_of(t) != nullptr; }

std::vector<DeviceType> registered_backends() {
  Registry& r = registry();
  std::lock_guard lock(r.mutex);
  return r.order;
}

const cresset_backend* backend_table(DeviceType t) {
  const detail::Backend* b = detail::backend_of(t);
  return b ? &b->table() : nullptr;
}

BackendReport inspect_backend(const std::string& name) {
  BackendReport report;
  report.name = name;
  try {
    report.type = device_type_from_name(name);
  } catch (const std::exception& e) {
    if (is_passing(e)) throw;
    report.problem = e.what();
  }
  Registry& r = registry();
  std::lock_guard lock(r.mutex);
  if (const auto at = r.library.find(name); at != r.library.end()) report.library = at->second;
  if (const auto at = r.problem.find(name); at != r.problem.end()) report.problem = at->second;
  const Table* t = report.type ? backend_table(*report.type) : nullptr;
  if (const auto at = r.broken.find(name); !t && at != r.broken.end()) t = &at->second;
  if (t) {
    report.table_version = t->table_version;
    report.parts = parts_of(*t);
  }
  return report;
}

void add_device_resolver(DeviceResolver resolver) {
  Registry& r = registry();
  std::lock_guard lock(r.mutex);
  r.resolvers.push_back(std::move(resolver));
}

void add_backend_listener(std::function<void(DeviceType)> listener) {
  Registry& r = registry();
  std::lock_guard lock(r.mutex);
  for (DeviceType t : r.order) listener(t);
  r.listeners.push_back(std::move(listener));
}

std::vector<std::string> backend_candidates(const std::string& name) {
  std::vector<std::string> out;
  const char* variable = std::getenv("CRESSET_BACKEND_PATH");
  if (!variable) return out;
  std::string_view rest(variable);
  while (!rest.empty()) {
    const std::size_t colon = std::min(rest.find(':'), rest.size());
    const std::filesystem::path place(rest.substr(0, colon));
    rest.remove_prefix(std::min(colon + 1, rest.size()));
    std::error_code ignored;
    const std::array<std::string, 3> files{name + ".so", "lib" + name + ".so", "libcresset_" + name + ".so"};
    if (std::filesystem::is_directory(place, ignored)) {
      for (const std::string& file : files)
        if (std::filesystem::exists(place / file, ignored)) out.push_back((place / file).string());
    } else if (std::find(files.begin(), files.end(), place.filename().string()) != files.end()) {
      out.push_back(place.string());
    }
  }
  return out;
}

}  // namespace cresset

extern "C" cresset_status cresset_backend_register(const cresset_backend* table, int32_t* device_type, char* error, size_t error_size) {
  try {
    CRESSET_CHECK(table, "cresset_backend_register: a table was required; null was given.");
    const cresset::DeviceType t = cresset::register_backend(*table);
    if (device_type) *device_type = static_cast<int32_t>(t);
    return CRESSET_OK;
  } catch (const std::exception& e) {
    if (error && error_size > 0) {
      std::strncpy(error, e.what(), error_size - 1);
      error[error_size - 1] = '\0';
    }
    return dynamic_cast<const std::bad_alloc*>(&e) ? CRESSET_OUT_OF_MEMORY : CRESSET_INVALID_ARGUMENT;
  }
}
