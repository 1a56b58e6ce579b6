// Sessions of the profiler seen from C++: ranges, inputs, threads, memory, and what it means that none runs.
#include <cresset/dispatch/profiler.h>

#include <gtest/gtest.h>

#include <stdexcept>
#include <thread>

#include <cresset/base/parallel.h>
#include <cresset/cresset.h>

namespace {

using namespace cresset;

/// Records of the first thread, by name.
struct Recorded {
  explicit Recorded(profiler::Profile p) : profile(std::move(p)) {}
  const std::vector<profiler::Record>& records() const { return profile.threads.at(0).records; }
  const profiler::Record& at(std::string_view name) const {
    for (const auto& r : records())
      if (*r.name == name) return r;
    throw std::runtime_error("no record " + std::string(name));
  }
  std::string parent_of(std::string_view name) const {
    const int32_t p = at(name).parent;
    return p < 0 ? "" : *records()[static_cast<std::size_t>(p)].name;
  }
  profiler::Profile profile;
};

template <class F>
Recorded record(const profiler::Options& options, const F& f) {
  profiler::start(options);
  try {
    f();
  } catch (...) {
    profiler::stop();
    throw;
  }
  return Recorded(profiler::stop());
}

TEST(Profiler, RecordsOperatorsInsideOfOperatorsInsideOfRanges) {
  const Tensor x = ones({2, 3});
  const Recorded r = record({}, [&] {
    CRESSET_RECORD_FUNCTION("step", {});
    (void)cresset::matmul(x, x.t());
  });
  EXPECT_EQ(r.parent_of("step"), "");
  EXPECT_EQ(r.parent_of("aten::matmul"), "step");
  EXPECT_EQ(r.parent_of("aten::mm"), "aten::matmul");
  for (const auto& e : r.records()) EXPECT_LE(e.begin, e.end);
  EXPECT_LE(r.at("step").begin, r.at("aten::mm").begin);
  EXPECT_GE(r.at("step").end, r.at("aten::mm").end);
}

TEST(Profiler, KeepsInputsWhenAsked) {
  const Tensor x = ones({2, 3});
  const Recorded r = record({.record_shapes = true}, [&] {
    CRESSET_RECORD_FUNCTION("own", {x, 3});
    CRESSET_RECORD_FUNCTION("given", std::vector<IValue>({x}), 17);
    (void)cresset::sum(x, {1}, true);
  });
  const auto& sum = r.at("aten::sum").details->inputs;
  ASSERT_EQ(sum.size(), 4u);
  EXPECT_EQ(sum[0].sizes(), (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(sum[0].strides(), (std::vector<int64_t>{3, 1}));
  EXPECT_STREQ(sum[0].type, "float");
  EXPECT_STREQ(sum[1].type, "ScalarList");
  EXPECT_EQ(sum[2].value.toBool(), true);
  EXPECT_STREQ(sum[3].type, "");
  EXPECT_EQ(*r.at("aten::sum").overload, "dim_IntList");
  ASSERT_EQ(r.at("own").details->inputs.size(), 2u);
  EXPECT_EQ(r.at("own").details->inputs[1].value.toInt(), 3);
  EXPECT_EQ(r.at("given").sequence_nr, 17);
  EXPECT_EQ(record({}, [&] { (void)cresset::sum(x); }).at("aten::sum").details, nullptr);
}

TEST(Profiler, EvaluatesNothingWhileOff) {
  int evaluated = 0;
  const auto name = [&] {
    ++evaluated;
    return std::string("name");
  };
  const auto f = [&] { CRESSET_RECORD_FUNCTION(name(), {}); };
  f();
  EXPECT_EQ(evaluated, 0);
  record({}, f);
  EXPECT_EQ(evaluated, 1);
  EXPECT_FALSE(profiler::recording());
  EXPECT_EQ(profiler::begin({.name = "nothing"}), 0u);
}

TEST(Profiler, UserScopesAndScopes) {
  const Recorded r = record({}, [] {
    CRESSET_RECORD_USER_SCOPE("user");
    profiler::RecordFunction plain(profiler::Scope::CustomClass);
    EXPECT_TRUE(plain.isActive());
    EXPECT_FALSE(plain.needsInputs());
    plain.before("class");
    plain.end();
    (void)ones({1});
  });
  EXPECT_EQ(r.at("user").scope, profiler::Scope::UserScope);
  EXPECT_EQ(r.at("class").scope, profiler::Scope::CustomClass);
  EXPECT_EQ(r.parent_of("aten::ones"), "user");
}

TEST(Profiler, BackwardStepsNameTheirForwardOperator) {
  const Recorded r = record({}, [] {
    const Tensor x = ones({3}).requires_grad_(true);
    (x * x).sum().backward();
  });
  EXPECT_EQ(r.at("MulBackward0").sequence_nr, r.at("aten::mul").sequence_nr);
  EXPECT_EQ(r.at("MulBackward0").forward_thread, r.profile.threads[0].autograd_thread);
  EXPECT_EQ(r.at("MulBackward0").scope, profiler::Scope::BackwardFunction);
  EXPECT_EQ(r.parent_of("MulBackward0"), "autograd::engine::evaluate_function: MulBackward0");
  EXPECT_EQ(r.at("aten::ones").forward_thread, 0u);
}

TEST(Profiler, ThreadsThatWorkForThisOneAreRecorded) {
  const int before = get_num_threads();
  set_num_threads(2);
  std::atomic<int> arrived{0};
  const Recorded r = record({}, [&] {
    parallel_for(0, 2, 1, [&](int64_t, int64_t) {
      ++arrived;
      while (arrived < 2) std::this_thread::yield();  // each range in a thread of its own
      (void)ones({1});
    });
    std::thread([] { (void)zeros({1}); }).join();
  });
  set_num_threads(before);
  ASSERT_EQ(r.profile.threads.size(), 2u);
  for (const auto& t : r.profile.threads) {
    ASSERT_FALSE(t.records.empty());
    EXPECT_EQ(*t.records[0].name, "aten::ones");
  }
  EXPECT_NE(r.profile.threads[0].os_thread, r.profile.threads[1].os_thread);
}

TEST(Profiler, MemoryBelongsToWhatRuns) {
  const Recorded r = record({.profile_memory = true}, [] {
    const Tensor x = empty({100});
    CRESSET_RECORD_USER_SCOPE("range");
    (void)x.add(1);
    DataPtr own = GetCPUAllocator()->allocate(24);
    profiler::report_memory(own.get(), 7, kCPU);
  });
  const auto& memory = r.profile.threads[0].memory;
  std::vector<int64_t> bytes;
  std::vector<std::string> where;
  for (const auto& m : memory) {
    bytes.push_back(m.bytes);
    where.push_back(m.parent < 0 ? "" : *r.records()[static_cast<std::size_t>(m.parent)].name);
  }
  EXPECT_EQ(bytes, (std::vector<int64_t>{400, 400, -400, 24, 7, -24, -400}));
  EXPECT_EQ(where, (std::vector<std::string>{"aten::empty", "aten::add", "range", "range", "range", "range", ""}));
  EXPECT_TRUE(record({}, [] { (void)empty({100}); }).profile.threads[0].memory.empty());
}

TEST(Profiler, RangesThatDoNotEndEndWithTheSession) {
  profiler::Token open = 0;
  const Recorded r = record({}, [&] { open = profiler::begin({.name = "open"}); });
  EXPECT_EQ(r.at("open").end, r.profile.duration);
  profiler::end(open);  // of a session that has gone
  const Recorded later = record({}, [&] {
    profiler::end(open);
    (void)ones({1});
  });
  EXPECT_EQ(later.parent_of("aten::ones"), "");
}

TEST(Profiler, RangesMayEndInAnotherThread) {
  const Recorded r = record({}, [] {
    const profiler::Token t = profiler::begin({.name = "handed on"});
    std::thread([t] { profiler::end(t); }).join();
    (void)ones({1});
  });
  EXPECT_EQ(r.parent_of("aten::ones"), "");
  EXPECT_LE(r.at("handed on").end, r.at("aten::ones").begin);
}

TEST(Profiler, OneSessionAtATime) {
  record({}, [] { EXPECT_THROW(profiler::start({}), Error); });
  EXPECT_THROW(profiler::stop(), Error);
}

TEST(Profiler, AScopeThatOutlivesTheSessionRecordsNothing) {
  const Tensor x = ones({1});
  std::optional<impl::IncludeDispatchKeyGuard> scope;
  record({}, [&] { scope.emplace(DispatchKeySet(DispatchKey::BackendSelect)); });
  scope.reset();  // puts back the keys of the session
  EXPECT_TRUE(profiler::recording());
  EXPECT_EQ(x.add(1).item<float>(), 2);
  EXPECT_FALSE(profiler::recording());
}

TEST(Profiler, StoppingWhileOthersWork) {
  const Tensor x = ones({4});
  for (int i = 0; i < 20; ++i) {
    profiler::start({.record_shapes = true, .profile_memory = true});
    const auto keys = cresset::detail::local_keys;
    std::atomic<bool> done{false};
    std::thread other([&] {
      cresset::detail::local_keys = keys;
      while (!done) (void)x.add(1);
    });
    for (int k = 0; k < 50; ++k) (void)x.mul(2);
    const profiler::Profile p = profiler::stop();
    done = true;
    other.join();
    EXPECT_GE(p.threads.size(), 1u);
  }
}

TEST(Profiler, AnObserverSeesWhatCallsGiveOut) {
  const Tensor x = ones({2, 3});
  profiler::start_observing();
  const Tensor y = cresset::sum(x, {1}, false);
  const auto parts = x.split(1);
  const Recorded r{profiler::stop_observing()};
  const auto& sum = *r.at("aten::sum").details;
  ASSERT_EQ(sum.given.size(), 4u);
  EXPECT_EQ(sum.given[0].kind, "Tensor(float)");
  EXPECT_EQ(sum.given[1].elements.at(0).value.toInt(), 1);
  EXPECT_EQ(sum.given[3].kind, "None");
  EXPECT_EQ(sum.results.at(0).tensor->impl_address, y.unsafeGetTensorImpl());
  EXPECT_EQ(r.at("aten::split").details->results.at(0).elements.at(1).tensor->offset, 3);
  EXPECT_TRUE(sum.inputs.empty());
}

TEST(Profiler, AnObserverAndAProfileComeAndGoOnTheirOwn) {
  profiler::start_observing();
  (void)ones({1});
  std::optional<Recorded> profile, observed;
  {
    CRESSET_RECORD_USER_SCOPE("around");
    profiler::start({.record_shapes = true, .profile_memory = true});
    EXPECT_ANY_THROW(profiler::start({}));
    EXPECT_ANY_THROW(profiler::start_observing());
    (void)zeros({2});
    observed.emplace(profiler::stop_observing());
    EXPECT_ANY_THROW(profiler::stop_observing());
    (void)full({3}, 1);
    profiler::start_observing();
    (void)empty({4});
    profile.emplace(profiler::stop());
  }
  (void)ones({5});
  const Recorded rest{profiler::stop_observing()};
  EXPECT_FALSE(profiler::recording());
  EXPECT_EQ(observed->parent_of("aten::zeros"), "around");
  EXPECT_EQ(observed->at("aten::zeros").details->given.size(), 5u);
  EXPECT_EQ(profile->parent_of("aten::zeros"), "");
  EXPECT_EQ(profile->at("aten::zeros").details->inputs.size(), 5u);
  EXPECT_FALSE(profile->profile.threads[0].memory.empty());
  EXPECT_EQ(profile->at("aten::zeros").id, observed->at("aten::zeros").id);
  EXPECT_GE(profile->at("aten::zeros").begin, 0);
  EXPECT_LE(profile->at("aten::full").end, profile->profile.duration);
  EXPECT_ANY_THROW((void)profile->at("aten::ones"));
  EXPECT_ANY_THROW((void)rest.at("aten::full"));
  EXPECT_EQ(rest.parent_of("aten::ones"), "");
  EXPECT_EQ(rest.at("aten::ones").details->given.at(0).elements.at(0).value.toInt(), 5);
}

}  // namespace
