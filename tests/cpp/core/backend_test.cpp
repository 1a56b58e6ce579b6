// Tables of backends: what registration checks, what the core builds from a table, guards, streams, events, names.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

#include <cresset/base/interrupt.h>
#include <cresset/core/accelerator_hooks.h>
#include <cresset/core/backend.h>
#include <cresset/core/device_generator.h>
#include <cresset/core/event.h>

namespace cresset {
namespace {

// A device of which the test sees every call.
struct Recorder {
  int set_device_calls = 0, last_device = -1;
  int64_t live = 0;
  int events_alive = 0;
  uint64_t next_stream = 1;
  uint64_t waited_stream = 0;
  uint64_t seed = 0;
  bool no_memory = false;
  bool events_happen = true;
};
Recorder recorder;

cresset_backend plain_table(const char* name) {
  cresset_backend t{};
  t.struct_size = sizeof t;
  t.table_version = CRESSET_BACKEND_TABLE_VERSION;
  t.name = name;
  t.device_count = [](void*) -> int32_t { return 3; };
  t.allocate = [](void*, int32_t, std::size_t n, void** out) -> cresset_status {
    if (recorder.no_memory) return CRESSET_OUT_OF_MEMORY;
    *out = std::malloc(n);
    ++recorder.live;
    return CRESSET_OK;
  };
  t.deallocate = [](void*, int32_t, void* p, std::size_t) {
    std::free(p);
    --recorder.live;
  };
  t.copy = [](void*, const cresset_copy* c) -> cresset_status {
    std::memcpy(c->target, c->source, c->nbytes);
    return CRESSET_OK;
  };
  return t;
}

cresset_backend full_table(const char* name) {
  cresset_backend t = plain_table(name);
  t.set_device = [](void*, int32_t d) -> cresset_status {
    ++recorder.set_device_calls;
    recorder.last_device = d;
    return CRESSET_OK;
  };
  t.stream_create = [](void*, int32_t, int32_t, cresset_stream* out) -> cresset_status {
    *out = recorder.next_stream++;
    return CRESSET_OK;
  };
  t.stream_query = [](void*, int32_t, cresset_stream, int32_t* done) -> cresset_status {
    *done = 1;
    return CRESSET_OK;
  };
  t.stream_synchronize = [](void*, int32_t, cresset_stream s) -> cresset_status {
    recorder.waited_stream = s;
    return CRESSET_OK;
  };
  t.event_create = [](void*, int32_t, int32_t, void** out) -> cresset_status {
    *out = new int(0);
    ++recorder.events_alive;
    return CRESSET_OK;
  };
  t.event_destroy = [](void*, int32_t, void* e) {
    delete static_cast<int*>(e);
    --recorder.events_alive;
  };
  t.event_record = [](void*, int32_t, void* e, cresset_stream s) -> cresset_status {
    *static_cast<int*>(e) = static_cast<int>(s);
    return CRESSET_OK;
  };
  t.event_wait = [](void*, int32_t, void*, cresset_stream) -> cresset_status { return CRESSET_OK; };
  t.event_query = [](void*, void*, int32_t* done) -> cresset_status {
    *done = recorder.events_happen;
    return CRESSET_OK;
  };
  t.event_synchronize = [](void*, void*) -> cresset_status { return CRESSET_OK; };
  t.generator_seed = [](void*, int32_t, uint64_t s) -> cresset_status {
    recorder.seed = s;
    return CRESSET_OK;
  };
  return t;
}

DeviceType full() {
  static const DeviceType t = register_backend(full_table("recorder"));
  return t;
}
DeviceType plain() {
  static const DeviceType t = register_backend(plain_table("bare"));
  return t;
}

template <class E = Error, class F>
std::string error_of(const F& f) {
  try {
    f();
  } catch (const E& e) {
    return e.what();
  }
  return "no error";
}
bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(Backend, RegistrationNamesEveryRequiredPartThatIsMissing) {
  cresset_backend t = plain_table("half");
  t.allocate = nullptr;
  t.copy = nullptr;
  EXPECT_EQ(error_of([&] { register_backend(t); }),
            "backend 'half': required parts are missing: allocate, copy. `cresset doctor half` says what each is for.");
  const BackendReport report = inspect_backend("half");
  EXPECT_TRUE(contains(report.problem, "required parts are missing"));
  int missing = 0;
  for (const BackendPart& p : report.parts) missing += p.required && !p.present;
  EXPECT_EQ(missing, 2);
  // Named in a device string, it tells the same.
  const std::string text = error_of([] { Device("half:0"); });
  EXPECT_TRUE(contains(text, "required parts are missing: allocate, copy")) << text;
  EXPECT_TRUE(contains(text, "Run `cresset doctor half`")) << text;
}

TEST(Backend, RegistrationChecksVersionsAndGroups) {
  cresset_backend t = plain_table("newer");
  t.table_version = CRESSET_BACKEND_TABLE_VERSION + 1;
  EXPECT_TRUE(contains(error_of([&] { register_backend(t); }), "needs version 7 of the backend table, and this library has version 6"));
  t.needs_version = CRESSET_BACKEND_TABLE_VERSION;  // built with a newer header, but content with this library
  EXPECT_NO_THROW(register_backend(t));

  t = plain_table("streamless");
  t.stream_create = full_table("x").stream_create;
  EXPECT_EQ(error_of([&] { register_backend(t); }), "backend 'streamless': stream_create needs stream_query, stream_synchronize.");

  t = plain_table("odd");
  t.struct_size = 3;
  EXPECT_TRUE(contains(error_of([&] { register_backend(t); }), "set struct_size to sizeof(cresset_backend)"));
  EXPECT_TRUE(contains(error_of([&] { register_backend(plain_table("")); }), "has no name"));
}

TEST(Backend, ATableOfAnOlderVersionCounts) {
  cresset_backend t = full_table("older");
  t.struct_size = offsetof(cresset_backend, autocast);
  t.table_version = 1;
  // What lies behind struct_size is not the maker's.
  t.empty_cache = [](void*) { FAIL(); };
  const DeviceType type = register_backend(t);
  EXPECT_EQ(backend_table(type)->empty_cache, nullptr);
  EXPECT_NE(backend_table(type)->stream_create, nullptr);
}

TEST(Backend, TheSameTableTwiceIsOneAndAnotherOfTheNameIsRefused) {
  const DeviceType t = full();
  EXPECT_EQ(register_backend(full_table("recorder")), t);
  cresset_backend other = full_table("recorder");
  other.self = &other;
  EXPECT_TRUE(contains(error_of([&] { register_backend(other); }), "registered already by another library"));
}

TEST(Backend, TheCEntryGivesStatusesAndText) {
  char text[64];
  int32_t type = -1;
  cresset_backend t = plain_table("c_entry");
  t.copy = nullptr;
  EXPECT_EQ(cresset_backend_register(&t, &type, text, sizeof text), CRESSET_INVALID_ARGUMENT);
  EXPECT_TRUE(contains(text, "required parts are missing: copy"));
  t = plain_table("c_entry2");
  EXPECT_EQ(cresset_backend_register(&t, &type, text, sizeof text), CRESSET_OK);
  EXPECT_EQ(DeviceTypeName(static_cast<DeviceType>(type)), "c_entry2");
}

TEST(Backend, WantOfMemoryAndInterruptsAreNotKeptAsFaultsOfAPlugin) {
  static int answers = 0;
  add_device_resolver([](const std::string& name) -> bool {
    if (name != "late") return false;
    if (++answers == 1) throw std::bad_alloc();
    if (answers == 2) throw Interrupted("interrupted");
    if (answers == 3) CRESSET_THROW(OutOfMemoryError, "no room");
    register_backend(plain_table("late"));
    return true;
  });
  EXPECT_EQ(error_of<std::bad_alloc>([] { Device("late:0"); }), "std::bad_alloc");
  EXPECT_EQ(error_of<Interrupted>([] { Device("late:0"); }), "interrupted");
  EXPECT_EQ(error_of<OutOfMemoryError>([] { inspect_backend("late"); }), "no room");
  EXPECT_EQ(Device("late:0").str(), "late:0");
  EXPECT_EQ(answers, 4);
  EXPECT_EQ(inspect_backend("late").problem, "");
}

TEST(Backend, RegistrationThatRunsOutOfMemoryLeavesNothing) {
  static int told = 0;
  add_backend_listener([](DeviceType t) {
    if (DeviceTypeName(t) == "narrow" && ++told == 1) throw std::bad_alloc();
  });
  const std::size_t before = registered_backends().size();
  EXPECT_EQ(error_of<std::bad_alloc>([] { register_backend(plain_table("narrow")); }), "std::bad_alloc");
  EXPECT_EQ(registered_backends().size(), before);
  EXPECT_TRUE(contains(error_of([] { Device("narrow"); }), "No installed plug-in gives this name"));
  char text[64];
  told = 0;
  const cresset_backend t = plain_table("narrow");
  EXPECT_EQ(cresset_backend_register(&t, nullptr, text, sizeof text), CRESSET_OUT_OF_MEMORY);
  EXPECT_EQ(cresset_backend_register(&t, nullptr, text, sizeof text), CRESSET_OK);
  EXPECT_EQ(Device("narrow:1").str(), "narrow:1");
  EXPECT_EQ(registered_backends().size(), before + 1);
}

TEST(Backend, AllocatorCountsAndReportsWantOfMemory) {
  const Device d(full(), 1);
  const int64_t before = recorder.live;
  {
    const DataPtr p = detail::allocate_on(d, 100);
    EXPECT_EQ(p.device(), d);
    EXPECT_EQ(device_memory_stats(d).allocated_bytes, 100);
    EXPECT_EQ(recorder.live, before + 1);
  }
  EXPECT_EQ(device_memory_stats(d).allocated_bytes, 0);
  EXPECT_EQ(device_memory_stats(d).peak_bytes, 100);
  EXPECT_EQ(recorder.live, before);
  recorder.no_memory = true;
  EXPECT_EQ(error_of<OutOfMemoryError>([&] { detail::allocate_on(d, 100); }),
            "recorder:1: out of memory: you tried to allocate 100 bytes\nFree tensors first, or use smaller ones.");
  recorder.no_memory = false;
}

TEST(DeviceGuard, PutsTheDeviceBackAlsoAfterAnException) {
  const auto* guard = impl::getDeviceGuardImpl(full());
  guard->setDevice(Device(full(), 0));
  try {
    const DeviceGuard inner(Device(full(), 2));
    EXPECT_EQ(guard->getDevice().index(), 2);
    EXPECT_EQ(inner.original_device().index(), 0);
    throw ValueError("through the guard");
  } catch (const ValueError&) {
  }
  EXPECT_EQ(guard->getDevice().index(), 0);
  EXPECT_EQ(recorder.last_device, 0) << "the backend has been told";
  OptionalDeviceGuard optional;
  EXPECT_FALSE(optional.current_device().has_value());
  optional.reset_device(Device(full(), 1));
  EXPECT_EQ(guard->getDevice().index(), 1);
  optional.reset();
  EXPECT_EQ(guard->getDevice().index(), 0);
}

TEST(DeviceGuard, ChangesBetweenKinds) {
  {
    DeviceGuard g(Device(full(), 2));
    g.reset_device(Device(plain(), 1));
    EXPECT_EQ(impl::getDeviceGuardImpl(full())->getDevice().index(), 0);
    EXPECT_EQ(impl::getDeviceGuardImpl(plain())->getDevice().index(), 1);
  }
  EXPECT_EQ(impl::getDeviceGuardImpl(plain())->getDevice().index(), 0);
}

TEST(DeviceGuard, RefusesDevicesThatAreNotThere) {
  EXPECT_EQ(error_of([] { DeviceGuard g(Device(full(), 3)); }),
            "recorder: invalid device ordinal 3; 3 devices are present. `cresset doctor recorder` lists them.");
  EXPECT_TRUE(
      contains(error_of([] { DeviceGuard g(Device(DeviceType::PrivateUse3, 0)); }), "is not linked with support for privateusethree"));
}

TEST(DeviceGuard, EachThreadHasItsOwn) {
  const DeviceGuard g(Device(full(), 2));
  int other = -1;
  std::thread([&] { other = impl::getDeviceGuardImpl(full())->getDevice().index(); }).join();
  EXPECT_EQ(other, 0);
}

TEST(DeviceGuard, TheCpuHasOneThatDoesNothing) {
  const DeviceGuard g{Device(kCPU)};
  EXPECT_EQ(g.current_device(), Device(kCPU));
  EXPECT_EQ(device_count(kCPU), 1);
}

TEST(Stream, GuardsPutBackStreamAndDevice) {
  const auto* impl = impl::getDeviceGuardImpl(full());
  const Stream s = impl->getStreamFromGlobalPool(Device(full(), 1), false);
  EXPECT_NE(s.id(), 0);
  {
    const StreamGuard g(s);
    EXPECT_EQ(impl->getDevice().index(), 1);
    EXPECT_EQ(impl->getStream(Device(full(), 1)), s);
    EXPECT_EQ(impl->getStream(Device(full(), 0)).id(), 0);
    int64_t elsewhere = -1;
    std::thread([&] { elsewhere = impl->getStream(Device(full(), 1)).id(); }).join();
    EXPECT_EQ(elsewhere, 0) << "current streams belong to a thread";
  }
  EXPECT_EQ(impl->getDevice().index(), 0);
  EXPECT_EQ(impl->getStream(Device(full(), 1)).id(), 0);
  {
    const Stream t = impl->getStreamFromGlobalPool(Device(full(), 0), false);
    const Stream both[] = {s, t};
    const MultiStreamGuard g(both);
    EXPECT_EQ(impl->getStream(Device(full(), 1)), s);
    EXPECT_EQ(impl->getStream(Device(full(), 0)), t);
  }
  EXPECT_EQ(impl->getStream(Device(full(), 0)).id(), 0);
}

TEST(Stream, GuardsEndQuietlyWhenTheOldStreamCannotComeBack) {
  struct Lost final : impl::DeviceGuardImplInterface {
    mutable int exchanges = 0;
    DeviceType type() const override { return kCPU; }
    Device exchangeDevice(Device d) const override { return d; }
    Device getDevice() const override { return Device(kCPU); }
    void setDevice(Device) const override {}
    void uncheckedSetDevice(Device) const noexcept override {}
    Stream getStream(Device d) const override { return Stream(Stream::DEFAULT, d); }
    DeviceIndex deviceCount() const noexcept override { return 1; }
    Stream exchangeStream(Stream s) const override {
      if (++exchanges > 1) throw Error("the stream is gone");
      return s;
    }
  };
  const Lost lost;
  impl::restore_stream(&lost, Stream(Stream::DEFAULT, Device(kCPU)));
  impl::restore_stream(&lost, Stream(Stream::DEFAULT, Device(kCPU)));
  EXPECT_EQ(lost.exchanges, 2);
}

TEST(Stream, ComesFromAPoolThatRepeats) {
  const auto* impl = impl::getDeviceGuardImpl(full());
  const Device d(full(), 2);
  const Stream first = impl->getNewStream(d, 0);
  for (int i = 1; i < 32; ++i) EXPECT_FALSE(impl->getNewStream(d, 0) == first);
  EXPECT_EQ(impl->getNewStream(d, 0), first);
  EXPECT_FALSE(impl->getNewStream(d, -1) == first) << "high priority has its own";
  const StreamData3 data = first.pack3();
  EXPECT_EQ(Stream::unpack3(data.stream_id, data.device_index, data.device_type), first);
  first.synchronize();
  EXPECT_EQ(recorder.waited_stream, static_cast<uint64_t>(first.id()));
}

TEST(Stream, MemoryRecordedOnOneGoesBackWhenItsWorkIsDone) {
  const Device device(full(), 0);
  const auto* guard = impl::getDeviceGuardImpl(full());
  const Stream stream = guard->getNewStream(device);
  const int64_t before = recorder.live;
  const int events = recorder.events_alive;
  recorder.events_happen = false;
  {
    const DataPtr data = detail::allocate_on(device, 64);
    guard->recordDataPtrOnStream(data, stream);
    guard->recordDataPtrOnStream(data, stream);  // counts once
  }
  EXPECT_EQ(recorder.live, before + 1);
  EXPECT_EQ(recorder.events_alive, events + 1);
  EXPECT_EQ(device_memory_stats(device).allocated_bytes, 0) << "no tensor holds it";
  { const DataPtr other = detail::allocate_on(device, 8); }
  EXPECT_EQ(recorder.live, before + 1) << "its work is not done";
  recorder.events_happen = true;
  { const DataPtr other = detail::allocate_on(device, 8); }
  EXPECT_EQ(recorder.live, before);
  EXPECT_EQ(recorder.events_alive, events);

  { const DataPtr unused = detail::allocate_on(device, 64); }
  EXPECT_EQ(recorder.live, before) << "nothing was recorded";
  const DataPtr data = detail::allocate_on(device, 64);
  EXPECT_TRUE(contains(error_of([&] { guard->recordDataPtrOnStream(data, guard->getDefaultStream(Device(full(), 1))); }),
                       "record_stream: a stream of "));
}

TEST(Event, RecordsOnItsKindOfDeviceAndIsFreed) {
  const auto* impl = impl::getDeviceGuardImpl(full());
  {
    Event e(full());
    EXPECT_TRUE(e.query());
    e.synchronize();
    EXPECT_EQ(recorder.events_alive, 0) << "made when it is recorded";
    e.record(impl->getStream(Device(full(), 1)));
    EXPECT_EQ(e.device().index(), 1);
    EXPECT_NE(e.eventId(), nullptr);
    Event moved = std::move(e);
    moved.block(impl->getStream(Device(full(), 1)));
    EXPECT_EQ(recorder.events_alive, 1);
    EXPECT_TRUE(
        contains(error_of([&] { moved.record(Stream(Stream::DEFAULT, Device(plain(), 0))); }), "does not match recording stream's"));
    EXPECT_TRUE(
        contains(error_of([&] { moved.record(impl->getStream(Device(full(), 0))); }), "does not match recording stream's device index"));
    Event end(full());
    EXPECT_EQ(error_of<ValueError>([&] { moved.elapsedTime(end); }), "Both events must be created with argument 'enable_timing=True'.");
  }
  EXPECT_EQ(recorder.events_alive, 0);
}

TEST(Event, ABackendWithoutEventsMeasuresOnTheHost) {
  Event begin(plain(), EventFlag::BACKEND_DEFAULT), end(plain(), EventFlag::BACKEND_DEFAULT);
  const Stream s(Stream::DEFAULT, Device(plain(), 0));
  EXPECT_EQ(error_of<ValueError>([&] { begin.elapsedTime(end); }), "Both events must be recorded before calculating elapsed time.");
  begin.record(s);
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
  end.record(s);
  EXPECT_GE(begin.elapsedTime(end), 1.5);
}

TEST(DeviceGenerator, TellsTheBackendAndKeepsItsState) {
  const Device d(full(), 1);
  const Generator g = default_generator_of(d);
  g.set_current_seed(7);
  EXPECT_EQ(recorder.seed, 7u);
  auto* own = g.get<DeviceGeneratorImpl>();
  EXPECT_EQ(own->take(4), 0u);
  EXPECT_EQ(own->take(1), 4u);
  const auto state = g.state_bytes();
  const uint32_t next = own->host().get<CPUGeneratorImpl>()->random();
  own->take(10);
  g.set_state_bytes(state);
  EXPECT_EQ(g.get_offset(), 5u);
  EXPECT_EQ(own->host().get<CPUGeneratorImpl>()->random(), next);
  EXPECT_FALSE(make_generator_for(d) == g);
  EXPECT_TRUE(contains(error_of([] { make_generator_for(Device(DeviceType::PrivateUse3, 0)); }), "has no generator registered"));
}

TEST(BackendPath, OffersFilesByName) {
  char folder[] = "/tmp/cresset_backend_XXXXXX";
  ASSERT_NE(mkdtemp(folder), nullptr);
  const std::string file = std::string(folder) + "/libcresset_broken.so";
  FILE* f = std::fopen(file.c_str(), "w");
  std::fputs("not a library", f);
  std::fclose(f);
  setenv("CRESSET_BACKEND_PATH", folder, 1);
  EXPECT_EQ(backend_candidates("broken"), std::vector<std::string>{file});
  EXPECT_TRUE(backend_candidates("other").empty());
  const std::string text = error_of([] { Device("broken"); });
  EXPECT_TRUE(contains(text, "does not load: ")) << text;
  EXPECT_TRUE(contains(text, "Run `cresset doctor broken`")) << text;
  EXPECT_EQ(error_of([] { Device("broken"); }), text) << "the same again, without loading twice";
  unsetenv("CRESSET_BACKEND_PATH");
  std::remove(file.c_str());
  std::remove(folder);
}

}  // namespace
}  // namespace cresset
