// A device backend as a C++ class: the table of cresset/core/backend_table.h is filled from its methods while compiling.
//
//   struct MyChip {
//     static constexpr const char* kName = "mychip";
//     int device_count();
//     void* allocate(int device, std::size_t nbytes);            // null: out of memory
//     void deallocate(int device, void* data, std::size_t nbytes);
//     void copy(const cresset_copy& c);
//   };
//   CRESSET_BACKEND(MyChip)                                        // once a library
//   CRESSET_BACKEND_IMPL(MyChip, aten, m) { m.impl("relu", &relu); }  // kernels, as many blocks as wanted
//
// These four methods are required; every other method of the table may be added under the name it has there, and
// `cresset doctor mychip` lists what each would switch on. Methods report errors by exceptions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include <cresset/core/backend.h>
#include <cresset/core/backend_table.h>
#include <cresset/dispatch/library.h>

namespace cresset {

namespace detail {

/// Turns methods that raise into functions that return a status.
template <class B>
struct BackendFace {
  static B& self(void* p) { return *static_cast<B*>(p); }
  static std::string& last_error() {
    static thread_local std::string text;
    return text;
  }
  template <class F>
  static cresset_status guarded(F f) noexcept {
    try {
      f();
      return CRESSET_OK;
    } catch (const OutOfMemoryError& e) {
      last_error() = e.what();
      return CRESSET_OUT_OF_MEMORY;
    } catch (const NotImplementedError& e) {
      last_error() = e.what();
      return CRESSET_NOT_SUPPORTED;
    } catch (const DeviceError& e) {
      last_error() = e.what();
      return CRESSET_DEVICE_LOST;
    } catch (const std::exception& e) {
      last_error() = e.what();
      return CRESSET_INVALID_ARGUMENT;
    }
  }

  static cresset_backend make() {
    check_methods();
    cresset_backend t{};
    t.struct_size = sizeof t;
    t.table_version = CRESSET_BACKEND_TABLE_VERSION;
    t.needs_version = CRESSET_BACKEND_TABLE_OLDEST;
    t.name = B::kName;
    t.self = new B();  // lives as long as the process: tensors may be freed at its very end
    if constexpr (requires { B::kDescription; }) t.description = B::kDescription;
    if constexpr (requires { B::kFileTag; }) t.file_tag = B::kFileTag;
    if constexpr (requires { B::kFlags; }) t.flags = B::kFlags;
    if constexpr (requires { B::kSlot; }) t.slot = B::kSlot;
    if constexpr (requires { B::kDLPackType; }) t.dlpack_type = B::kDLPackType;
    fill_memory(t);
    fill_device(t);
    fill_streams(t);
    fill_events(t);
    fill_shared_events(t);
    fill_graphs(t);
    fill_extras(t);
    return t;
  }

 private:
  // A method that is there under a name of the table, but cannot be called as the table does, would be left out in silence.
#define CRESSET_BACKEND_METHOD_(name, call, signature)                                                                 \
  static_assert(                                                                                                       \
      !requires { &B::name; } ||                                                                                       \
          requires(B b, void* p, void** out, cresset_memory_stats& stats, cresset_device_properties& props) { call; }, \
      "backend class: the method '" #name "' cannot be called as required: " signature)
#define CRESSET_BACKEND_REQUIRED_(name, signature) \
  static_assert(requires { &B::name; }, "backend class: the method '" #name "' is required: " signature)
#define CRESSET_BACKEND_TOGETHER_(first, name) \
  static_assert(!requires { &B::first; } || requires { &B::name; }, "backend class: '" #first "' needs the method '" #name "' as well")
#define CRESSET_BACKEND_NO_METHOD_(other, name)                                       \
  static_assert(                                                                      \
      !requires { requires std::is_member_function_pointer_v<decltype(&B::other)>; }, \
      "backend class: the method '" #other "' is never called; the name in the table is '" #name "'")
  static void check_methods() {
    CRESSET_BACKEND_REQUIRED_(device_count, "int device_count()");
    CRESSET_BACKEND_REQUIRED_(allocate, "void* allocate(int device, std::size_t nbytes)");
    CRESSET_BACKEND_REQUIRED_(deallocate, "void deallocate(int device, void* data, std::size_t nbytes)");
    CRESSET_BACKEND_REQUIRED_(copy, "void copy(const cresset_copy& c)");
    CRESSET_BACKEND_METHOD_(device_count, static_cast<int>(b.device_count()), "int device_count()");
    CRESSET_BACKEND_METHOD_(allocate, *out = b.allocate(0, std::size_t{1}), "void* allocate(int device, std::size_t nbytes)");
    CRESSET_BACKEND_METHOD_(deallocate, b.deallocate(0, p, std::size_t{1}), "void deallocate(int device, void* data, std::size_t nbytes)");
    CRESSET_BACKEND_METHOD_(copy, b.copy(std::declval<const cresset_copy&>()), "void copy(const cresset_copy& c)");
    CRESSET_BACKEND_METHOD_(fill, b.fill(0, p, std::size_t{1}, uint8_t{0}, cresset_stream{0}),
                            "void fill(int device, void* data, std::size_t nbytes, uint8_t value, cresset_stream stream)");
    CRESSET_BACKEND_METHOD_(
        fill_pattern, b.fill_pattern(0, p, std::size_t{0}, std::size_t{1}, static_cast<const void*>(p), std::size_t{4}, cresset_stream{0}),
        "void fill_pattern(int device, void* data, std::size_t offset, std::size_t count, const void* pattern, "
        "std::size_t pattern_size, cresset_stream stream)");
    CRESSET_BACKEND_METHOD_(copy_strided, static_cast<bool>(b.copy_strided(std::declval<const cresset_strided_copy&>())),
                            "bool copy_strided(const cresset_strided_copy& c), false for what it does not do");
    CRESSET_BACKEND_METHOD_(copy_cast, static_cast<bool>(b.copy_cast(std::declval<const cresset_strided_copy&>())),
                            "bool copy_cast(const cresset_strided_copy& c), false for what it does not do");
    CRESSET_BACKEND_METHOD_(pinned_allocate, *out = b.pinned_allocate(std::size_t{1}), "void* pinned_allocate(std::size_t nbytes)");
    CRESSET_BACKEND_METHOD_(pinned_deallocate, b.pinned_deallocate(p, std::size_t{1}),
                            "void pinned_deallocate(void* data, std::size_t nbytes)");
    CRESSET_BACKEND_METHOD_(memory_stats, b.memory_stats(0, stats), "void memory_stats(int device, cresset_memory_stats& out)");
    CRESSET_BACKEND_METHOD_(reset_peak_memory_stats, b.reset_peak_memory_stats(0), "void reset_peak_memory_stats(int device)");
    CRESSET_BACKEND_METHOD_(empty_cache, b.empty_cache(), "void empty_cache()");
    CRESSET_BACKEND_METHOD_(set_device, b.set_device(0), "void set_device(int device)");
    CRESSET_BACKEND_METHOD_(synchronize, b.synchronize(0), "void synchronize(int device)");
    CRESSET_BACKEND_METHOD_(get_properties, b.get_properties(0, props), "void get_properties(int device, cresset_device_properties& out)");
    CRESSET_BACKEND_METHOD_(generator_seed, b.generator_seed(0, uint64_t{0}), "void generator_seed(int device, uint64_t seed)");
    CRESSET_BACKEND_METHOD_(stream_create, static_cast<cresset_stream>(b.stream_create(0, 0)),
                            "cresset_stream stream_create(int device, int priority)");
    CRESSET_BACKEND_METHOD_(stream_query, static_cast<int>(b.stream_query(0, cresset_stream{0})),
                            "bool stream_query(int device, cresset_stream stream)");
    CRESSET_BACKEND_METHOD_(stream_synchronize, b.stream_synchronize(0, cresset_stream{0}),
                            "void stream_synchronize(int device, cresset_stream stream)");
    CRESSET_BACKEND_METHOD_(event_create, *out = b.event_create(0, 0), "void* event_create(int device, int flags)");
    CRESSET_BACKEND_METHOD_(event_destroy, b.event_destroy(0, p), "void event_destroy(int device, void* event)");
    CRESSET_BACKEND_METHOD_(event_record, b.event_record(0, p, cresset_stream{0}),
                            "void event_record(int device, void* event, cresset_stream stream)");
    CRESSET_BACKEND_METHOD_(event_wait, b.event_wait(0, p, cresset_stream{0}),
                            "void event_wait(int device, void* event, cresset_stream stream)");
    CRESSET_BACKEND_METHOD_(event_query, static_cast<int>(b.event_query(p)), "bool event_query(void* event)");
    CRESSET_BACKEND_METHOD_(event_synchronize, b.event_synchronize(p), "void event_synchronize(void* event)");
    CRESSET_BACKEND_METHOD_(event_elapsed, static_cast<double>(b.event_elapsed(p, p)), "double event_elapsed(void* begin, void* end)");
    CRESSET_BACKEND_METHOD_(event_export, b.event_export(0, p, static_cast<uint8_t*>(p)),
                            "void event_export(int device, void* event, uint8_t* handle)");
    CRESSET_BACKEND_METHOD_(event_import, *out = b.event_import(0, static_cast<const uint8_t*>(p)),
                            "void* event_import(int device, const uint8_t* handle)");
    CRESSET_BACKEND_METHOD_(optimizer_step, b.optimizer_step(0, 0), "void optimizer_step(int device, int phase)");
    CRESSET_BACKEND_METHOD_(graph_begin, b.graph_begin(0, cresset_stream{0}, 0),
                            "void graph_begin(int device, cresset_stream stream, int mode)");
    CRESSET_BACKEND_METHOD_(graph_end, *out = b.graph_end(0, cresset_stream{0}), "void* graph_end(int device, cresset_stream stream)");
    CRESSET_BACKEND_METHOD_(graph_replay, b.graph_replay(0, p, cresset_stream{0}),
                            "void graph_replay(int device, void* graph, cresset_stream stream)");
    CRESSET_BACKEND_METHOD_(graph_destroy, b.graph_destroy(0, p), "void graph_destroy(int device, void* graph)");
    CRESSET_BACKEND_METHOD_(graph_dump, b.graph_dump(p, ""), "void graph_dump(void* graph, const char* path)");
    CRESSET_BACKEND_METHOD_(stream_is_capturing, static_cast<bool>(b.stream_is_capturing(0, cresset_stream{0})),
                            "bool stream_is_capturing(int device, cresset_stream stream)");
    CRESSET_BACKEND_METHOD_(stream_priorities, (static_cast<std::pair<int, int>>(b.stream_priorities(0))),
                            "std::pair<int, int> stream_priorities(int device), the lowest and the highest");
    CRESSET_BACKEND_METHOD_(stream_to_native, *out = b.stream_to_native(0, cresset_stream{0}),
                            "void* stream_to_native(int device, cresset_stream stream)");
    CRESSET_BACKEND_METHOD_(stream_from_native, static_cast<cresset_stream>(b.stream_from_native(0, p)),
                            "cresset_stream stream_from_native(int device, void* handle)");
    CRESSET_BACKEND_METHOD_(peer_access, static_cast<bool>(b.peer_access(0, 1)), "bool peer_access(int device, int peer)");
    CRESSET_BACKEND_METHOD_(profile_push, b.profile_push(""), "void profile_push(const char* name)");
    CRESSET_BACKEND_METHOD_(profile_pop, b.profile_pop(), "void profile_pop()");
    CRESSET_BACKEND_TOGETHER_(stream_create, stream_query);
    CRESSET_BACKEND_TOGETHER_(stream_create, stream_synchronize);
    CRESSET_BACKEND_TOGETHER_(event_create, event_destroy);
    CRESSET_BACKEND_TOGETHER_(event_create, event_record);
    CRESSET_BACKEND_TOGETHER_(event_create, event_wait);
    CRESSET_BACKEND_TOGETHER_(event_create, event_query);
    CRESSET_BACKEND_TOGETHER_(event_create, event_synchronize);
    CRESSET_BACKEND_TOGETHER_(event_record, event_create);
    CRESSET_BACKEND_TOGETHER_(event_elapsed, event_create);
    CRESSET_BACKEND_TOGETHER_(event_export, event_create);
    CRESSET_BACKEND_TOGETHER_(event_export, event_import);
    CRESSET_BACKEND_TOGETHER_(event_import, event_export);
    CRESSET_BACKEND_TOGETHER_(stream_query, stream_create);
    CRESSET_BACKEND_TOGETHER_(stream_synchronize, stream_create);
    CRESSET_BACKEND_TOGETHER_(pinned_allocate, pinned_deallocate);
    CRESSET_BACKEND_TOGETHER_(pinned_deallocate, pinned_allocate);
    CRESSET_BACKEND_TOGETHER_(memory_stats, reset_peak_memory_stats);
    CRESSET_BACKEND_TOGETHER_(reset_peak_memory_stats, memory_stats);
    CRESSET_BACKEND_TOGETHER_(profile_push, profile_pop);
    CRESSET_BACKEND_TOGETHER_(profile_pop, profile_push);
    CRESSET_BACKEND_TOGETHER_(graph_begin, graph_end);
    CRESSET_BACKEND_TOGETHER_(graph_begin, graph_replay);
    CRESSET_BACKEND_TOGETHER_(graph_begin, graph_destroy);
    CRESSET_BACKEND_TOGETHER_(graph_begin, stream_is_capturing);
    CRESSET_BACKEND_TOGETHER_(graph_end, graph_begin);
    CRESSET_BACKEND_TOGETHER_(graph_replay, graph_begin);
    CRESSET_BACKEND_TOGETHER_(graph_destroy, graph_begin);
    CRESSET_BACKEND_TOGETHER_(stream_is_capturing, graph_begin);
    CRESSET_BACKEND_TOGETHER_(graph_dump, graph_begin);
    CRESSET_BACKEND_TOGETHER_(stream_priorities, stream_create);
    CRESSET_BACKEND_TOGETHER_(stream_to_native, stream_create);
    CRESSET_BACKEND_TOGETHER_(stream_from_native, stream_create);
    // Slips of the finger and other orders of the words. (All of them cannot be known here: `cresset doctor` shows which methods were
    // found.)
    CRESSET_BACKEND_NO_METHOD_(syncronize, synchronize);
    CRESSET_BACKEND_NO_METHOD_(synchronise, synchronize);
    CRESSET_BACKEND_NO_METHOD_(setDevice, set_device);
    CRESSET_BACKEND_NO_METHOD_(set_devcie, set_device);
    CRESSET_BACKEND_NO_METHOD_(deviceCount, device_count);
    CRESSET_BACKEND_NO_METHOD_(getProperties, get_properties);
    CRESSET_BACKEND_NO_METHOD_(create_stream, stream_create);
    CRESSET_BACKEND_NO_METHOD_(synchronize_stream, stream_synchronize);
    CRESSET_BACKEND_NO_METHOD_(create_event, event_create);
    CRESSET_BACKEND_NO_METHOD_(destroy_event, event_destroy);
    CRESSET_BACKEND_NO_METHOD_(record_event, event_record);
    CRESSET_BACKEND_NO_METHOD_(wait_event, event_wait);
    CRESSET_BACKEND_NO_METHOD_(synchronize_event, event_synchronize);
    CRESSET_BACKEND_NO_METHOD_(event_elapsed_time, event_elapsed);
    CRESSET_BACKEND_NO_METHOD_(event_ipc_handle, event_export);
    CRESSET_BACKEND_NO_METHOD_(event_from_ipc_handle, event_import);
    CRESSET_BACKEND_NO_METHOD_(allocate_pinned, pinned_allocate);
    CRESSET_BACKEND_NO_METHOD_(deallocate_pinned, pinned_deallocate);
    CRESSET_BACKEND_NO_METHOD_(emptyCache, empty_cache);
    CRESSET_BACKEND_NO_METHOD_(capture_begin, graph_begin);
    CRESSET_BACKEND_NO_METHOD_(capture_end, graph_end);
    CRESSET_BACKEND_NO_METHOD_(replay_graph, graph_replay);
    CRESSET_BACKEND_NO_METHOD_(can_access_peer, peer_access);
    CRESSET_BACKEND_NO_METHOD_(native_handle, stream_to_native);
  }
#undef CRESSET_BACKEND_NO_METHOD_
#undef CRESSET_BACKEND_TOGETHER_
#undef CRESSET_BACKEND_REQUIRED_
#undef CRESSET_BACKEND_METHOD_

  static void fill_memory(cresset_backend& t) {
    t.device_count = [](void* p) -> int32_t {
      int32_t n = 0;
      guarded([&] { n = static_cast<int32_t>(self(p).device_count()); });
      return n;
    };
    t.allocate = [](void* p, int32_t device, std::size_t n, void** out) {
      return guarded([&] {
        *out = self(p).allocate(device, n);
        CRESSET_CHECK_AS(OutOfMemoryError, *out, B::kName, ": out of memory.");
      });
    };
    t.deallocate = [](void* p, int32_t device, void* data, std::size_t n) { guarded([&] { self(p).deallocate(device, data, n); }); };
    t.copy = [](void* p, const cresset_copy* c) { return guarded([&] { self(p).copy(*c); }); };
    t.error_text = [](void*, cresset_status) -> const char* { return last_error().c_str(); };
    if constexpr (requires(B b, void* d) { b.fill(0, d, std::size_t{1}, uint8_t{0}, cresset_stream{0}); })
      t.fill = [](void* p, int32_t device, void* data, std::size_t n, uint8_t value, cresset_stream s) {
        return guarded([&] { self(p).fill(device, data, n, value, s); });
      };
    if constexpr (requires(B b, void* d) {
                    b.fill_pattern(0, d, std::size_t{0}, std::size_t{1}, static_cast<const void*>(d), std::size_t{4}, cresset_stream{0});
                  })
      t.fill_pattern = [](void* p, int32_t device, void* data, std::size_t offset, std::size_t count, const void* pattern, std::size_t size,
                          cresset_stream s) {
        return guarded([&] { self(p).fill_pattern(device, data, offset, count, pattern, size, s); });
      };
    if constexpr (requires(B b, const cresset_strided_copy& c) { static_cast<bool>(b.copy_strided(c)); })
      t.copy_strided = [](void* p, const cresset_strided_copy* c) {
        bool done = false;
        const cresset_status status = guarded([&] { done = self(p).copy_strided(*c); });
        return status == CRESSET_OK && !done ? CRESSET_USE_FALLBACK : status;
      };
    if constexpr (requires(B b, const cresset_strided_copy& c) { static_cast<bool>(b.copy_cast(c)); })
      t.copy_cast = [](void* p, const cresset_strided_copy* c) {
        bool done = false;
        const cresset_status status = guarded([&] { done = self(p).copy_cast(*c); });
        return status == CRESSET_OK && !done ? CRESSET_USE_FALLBACK : status;
      };
    if constexpr (requires(B b, void* d) { d = b.pinned_allocate(std::size_t{1}); }) {
      t.pinned_allocate = [](void* p, std::size_t n, void** out) { return guarded([&] { *out = self(p).pinned_allocate(n); }); };
      t.pinned_deallocate = [](void* p, void* data, std::size_t n) { guarded([&] { self(p).pinned_deallocate(data, n); }); };
    }
    if constexpr (requires(B b, cresset_memory_stats& out) { b.memory_stats(0, out); }) {
      t.memory_stats = [](void* p, int32_t device, cresset_memory_stats* out) {
        return guarded([&] { self(p).memory_stats(device, *out); });
      };
      t.reset_peak_memory_stats = [](void* p, int32_t device) { guarded([&] { self(p).reset_peak_memory_stats(device); }); };
    }
    if constexpr (requires(B b) { b.empty_cache(); }) t.empty_cache = [](void* p) { guarded([&] { self(p).empty_cache(); }); };
  }
  static void fill_device(cresset_backend& t) {
    if constexpr (requires(B b) { b.set_device(0); })
      t.set_device = [](void* p, int32_t device) { return guarded([&] { self(p).set_device(device); }); };
    if constexpr (requires(B b) { b.synchronize(0); })
      t.synchronize = [](void* p, int32_t device) { return guarded([&] { self(p).synchronize(device); }); };
    if constexpr (requires(B b, cresset_device_properties& out) { b.get_properties(0, out); })
      t.get_properties = [](void* p, int32_t device, cresset_device_properties* out) {
        return guarded([&] { self(p).get_properties(device, *out); });
      };
    if constexpr (requires(B b) { b.generator_seed(0, uint64_t{0}); })
      t.generator_seed = [](void* p, int32_t device, uint64_t seed) { return guarded([&] { self(p).generator_seed(device, seed); }); };
  }
  static void fill_streams(cresset_backend& t) {
    if constexpr (requires(B b) { b.stream_create(0, 0); }) {
      t.stream_create = [](void* p, int32_t device, int32_t priority, cresset_stream* out) {
        return guarded([&] { *out = self(p).stream_create(device, priority); });
      };
      t.stream_query = [](void* p, int32_t device, cresset_stream s, int32_t* done) {
        return guarded([&] { *done = self(p).stream_query(device, s); });
      };
      t.stream_synchronize = [](void* p, int32_t device, cresset_stream s) {
        return guarded([&] { self(p).stream_synchronize(device, s); });
      };
    }
  }
  static void fill_events(cresset_backend& t) {
    if constexpr (requires(B b) { b.event_create(0, 0); }) {
      t.event_create = [](void* p, int32_t device, int32_t flags, void** out) {
        return guarded([&] { *out = self(p).event_create(device, flags); });
      };
      t.event_destroy = [](void* p, int32_t device, void* e) { guarded([&] { self(p).event_destroy(device, e); }); };
      t.event_record = [](void* p, int32_t device, void* e, cresset_stream s) {
        return guarded([&] { self(p).event_record(device, e, s); });
      };
      t.event_wait = [](void* p, int32_t device, void* e, cresset_stream s) { return guarded([&] { self(p).event_wait(device, e, s); }); };
      t.event_query = [](void* p, void* e, int32_t* done) { return guarded([&] { *done = self(p).event_query(e); }); };
      t.event_synchronize = [](void* p, void* e) { return guarded([&] { self(p).event_synchronize(e); }); };
      if constexpr (requires(B b, void* e) { b.event_elapsed(e, e); })
        t.event_elapsed = [](void* p, void* begin, void* end, double* ms) {
          return guarded([&] { *ms = self(p).event_elapsed(begin, end); });
        };
    }
  }
  static void fill_shared_events(cresset_backend& t) {
    if constexpr (requires(B b, void* e, uint8_t* handle) { b.event_export(0, e, handle); }) {
      t.event_export = [](void* p, int32_t device, void* e, uint8_t* handle) {
        return guarded([&] { self(p).event_export(device, e, handle); });
      };
      t.event_import = [](void* p, int32_t device, const uint8_t* handle, void** out) {
        return guarded([&] { *out = self(p).event_import(device, handle); });
      };
    }
  }
  static void fill_graphs(cresset_backend& t) {
    if constexpr (requires(B b) { b.graph_begin(0, cresset_stream{0}, 0); }) {
      t.graph_begin = [](void* p, int32_t device, cresset_stream s, int32_t mode) {
        return guarded([&] { self(p).graph_begin(device, s, mode); });
      };
      t.graph_end = [](void* p, int32_t device, cresset_stream s, void** graph) {
        return guarded([&] { *graph = self(p).graph_end(device, s); });
      };
      t.graph_replay = [](void* p, int32_t device, void* graph, cresset_stream s) {
        return guarded([&] { self(p).graph_replay(device, graph, s); });
      };
      t.graph_destroy = [](void* p, int32_t device, void* graph) { guarded([&] { self(p).graph_destroy(device, graph); }); };
      t.stream_is_capturing = [](void* p, int32_t device, cresset_stream s, int32_t* capturing) {
        return guarded([&] { *capturing = self(p).stream_is_capturing(device, s); });
      };
    }
    if constexpr (requires(B b, void* g) { b.graph_dump(g, ""); })
      t.graph_dump = [](void* p, void* graph, const char* path) { return guarded([&] { self(p).graph_dump(graph, path); }); };
    if constexpr (requires(B b) { b.stream_priorities(0); })
      t.stream_priorities = [](void* p, int32_t device, int32_t* lowest, int32_t* highest) {
        return guarded([&] {
          const std::pair<int, int> range = self(p).stream_priorities(device);
          *lowest = range.first;
          *highest = range.second;
        });
      };
    if constexpr (requires(B b, void* h) { h = b.stream_to_native(0, cresset_stream{0}); })
      t.stream_to_native = [](void* p, int32_t device, cresset_stream s, void** handle) {
        return guarded([&] { *handle = self(p).stream_to_native(device, s); });
      };
    if constexpr (requires(B b, void* h) { b.stream_from_native(0, h); })
      t.stream_from_native = [](void* p, int32_t device, void* handle, cresset_stream* out) {
        return guarded([&] { *out = self(p).stream_from_native(device, handle); });
      };
  }
  static void fill_extras(cresset_backend& t) {
    if constexpr (requires(B b) { b.peer_access(0, 1); })
      t.peer_access = [](void* p, int32_t device, int32_t peer, int32_t* possible) {
        return guarded([&] { *possible = self(p).peer_access(device, peer); });
      };
    if constexpr (requires { B::kAutocast; }) t.autocast = &B::kAutocast;
    if constexpr (requires(B b) { b.optimizer_step(0, 0); })
      t.optimizer_step = [](void* p, int32_t device, int32_t phase) { return guarded([&] { self(p).optimizer_step(device, phase); }); };
    if constexpr (requires(B b) { b.profile_push(""); }) {
      t.profile_push = [](void* p, const char* name) { guarded([&] { self(p).profile_push(name); }); };
      t.profile_pop = [](void* p) { guarded([&] { self(p).profile_pop(); }); };
    }
  }
};

}  // namespace detail

/// The table of a backend class; one for the process.
template <class B>
const cresset_backend& table_of_backend() {
  static const cresset_backend table = detail::BackendFace<B>::make();
  return table;
}
/// The one object of a backend class.
template <class B>
B& backend_object() {
  return *static_cast<B*>(table_of_backend<B>().self);
}
/// The device kind of a backend class, registered on first use; nothing when that fails (load_backend tells why).
template <class B>
std::optional<DeviceType> try_backend_type() {
  static const std::optional<DeviceType> type = []() -> std::optional<DeviceType> {
    try {
      return register_backend(table_of_backend<B>());
    } catch (const std::exception& e) {
      detail::report_plugin_error(e.what());
      return std::nullopt;
    }
  }();
  return type;
}
/// The device kind of a backend class; raises when it could not be registered.
template <class B>
DeviceType backend_type() {
  const auto t = try_backend_type<B>();
  CRESSET_CHECK(t, "backend '", B::kName, "' is not registered. `cresset doctor ", B::kName, "` tells why.");
  return *t;
}

namespace detail {
/// A block of kernels for the key that a backend class was given. One that does not load makes the device refuse work: without its kernels
/// everything would run on the CPU, and nobody would know.
template <class B>
class BackendLibrary {
 public:
  BackendLibrary(DispatchKey (*key_of)(DeviceType), const char* ns, void (*fill)(Library&), const char* file, uint32_t line) {
    const auto type = try_backend_type<B>();
    if (!type) return;
    try {
      library_.emplace(Library::IMPL, ns, key_of(*type), file, line);
      fill(library_->built_in_names_must_exist());
    } catch (const std::exception& e) {
      refuse_device(*type, e.what());
    }
  }

 private:
  std::optional<Library> library_;
};
inline DispatchKey key_of_backend(DeviceType t) { return backendKey(t); }
inline DispatchKey key_of_backend_autograd(DeviceType t) { return autogradKey(t); }
}  // namespace detail

}  // namespace cresset

#define CRESSET_BACKEND_LIBRARY_(Backend, key_of, ns, m, id)                                            \
  static void CRESSET_CONCAT(cresset_backend_fill_, id)(::cresset::Library&);                           \
  static const ::cresset::detail::BackendLibrary<Backend> CRESSET_CONCAT(cresset_backend_library_, id)( \
      &::cresset::detail::key_of, #ns, &CRESSET_CONCAT(cresset_backend_fill_, id), __FILE__, __LINE__); \
  void CRESSET_CONCAT(cresset_backend_fill_, id)(::cresset::Library & m)

/// Registers a backend class when its library is loaded, and exports what the loader looks for.
#define CRESSET_BACKEND(Backend)                                                                                                   \
  extern "C" CRESSET_PUBLIC const cresset_backend* cresset_backend_entry(void) { return &::cresset::table_of_backend<Backend>(); } \
  static const bool CRESSET_UNIQUE(cresset_backend_registered_) = ::cresset::try_backend_type<Backend>().has_value()
/// Kernels of a backend class for operators of a namespace.
#define CRESSET_BACKEND_IMPL(Backend, ns, m) CRESSET_BACKEND_LIBRARY_(Backend, key_of_backend, ns, m, __COUNTER__)
/// Gradient kernels of a backend class, which replace the built-in formulas on its device.
#define CRESSET_BACKEND_AUTOGRAD_IMPL(Backend, ns, m) CRESSET_BACKEND_LIBRARY_(Backend, key_of_backend_autograd, ns, m, __COUNTER__)
