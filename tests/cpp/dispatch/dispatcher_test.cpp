// Registration, computed tables and calls. Kernels return constants that say which of them ran.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <numeric>
#include <random>
#include <thread>

#include <cresset/dispatch/library.h>

namespace cresset {
namespace {

Library make(Library::Kind kind, const char* ns, std::optional<DispatchKey> key = std::nullopt) {
  return Library(kind, ns, key, "file.cpp", 1);
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

Tensor cpu(std::initializer_list<int64_t> sizes = {2}) { return detail::empty_cpu(sizes, kFloat); }
Tensor meta() { return detail::empty_meta({2}, {1}, kFloat); }

OperatorHandle find(const char* name) { return Dispatcher::singleton().findSchemaOrThrow(name, ""); }
int64_t run(const char* name, const Tensor& x) { return find(name).typed<int64_t(const Tensor&)>().call(x); }
CppFunction kernel(int64_t value) {
  return CppFunction([value](const Tensor&) { return value; });
}
std::string entry(const char* name, DispatchKey k) {
  const std::string table = find(name).dumpComputedTable(), start = std::string(toString(k)) + ": ";
  std::size_t at = table.rfind("\n" + start);
  if (at == std::string::npos) {
    if (table.rfind(start, 0) != 0) return "";
    at = 0;
  } else {
    ++at;
  }
  const std::string line = table.substr(at, table.find('\n', at) - at);
  return line.substr(line.rfind('['));
}

void leave_arguments(const OperatorHandle&, Stack*) {}
void answer_77(const OperatorHandle& op, Stack* s) {
  drop(s, op.schema().arguments().size());
  push(s, int64_t{77});
}

TEST(Registration, NamesAndBlocksAreChecked) {
  Library def = make(Library::DEF, "reg1");
  def.def("f(Tensor x) -> int");
  EXPECT_NE(error_of([&] { def.def("f(Tensor x) -> int"); }).find("with the same name and overload name multiple times"),
            std::string::npos);
  EXPECT_NE(error_of([] { make(Library::DEF, "reg1"); }).find("Only a single TORCH_LIBRARY can be used to register the namespace reg1"),
            std::string::npos);
  Library impl = make(Library::IMPL, "reg1", DispatchKey::CPU);
  EXPECT_NE(error_of([&] { impl.def("g(Tensor x) -> int"); }).find("Cannot define an operator inside of a TORCH_LIBRARY_IMPL block"),
            std::string::npos);
  EXPECT_NE(error_of([&] { impl.impl("other::f", kernel(1)); }).find("Explicitly provided namespace (other)"), std::string::npos);
  EXPECT_NE(error_of([&] {
              impl.impl("f", dispatch(DispatchKey::Meta, [](const Tensor&) { return int64_t{1}; }));
            }).find("inconsistent with the dispatch key"),
            std::string::npos);
  EXPECT_NE(error_of([&] { impl.fallback(CppFunction::makeFallthrough()); }).find("please define a separate block"), std::string::npos);
}

TEST(Registration, SchemaIsInferredAndCompared) {
  Library lib = make(Library::DEF, "reg2");
  lib.def("inferred", [](const Tensor&, std::optional<double>, IntArrayRef, TensorList) { return std::tuple<Tensor, int64_t>(); });
  EXPECT_EQ(find("reg2::inferred").schema().str(), "reg2::inferred(Tensor _0, float? _1, int[] _2, Tensor[] _3) -> (Tensor _0, int _1)");
  EXPECT_EQ(find("reg2::inferred").schema().alias_analysis(), AliasAnalysisKind::CONSERVATIVE);
  lib.def("typed(Tensor x, float y) -> int");
  const std::string wrong = error_of([&] { lib.impl("typed", [](const Tensor&, int64_t) { return int64_t{1}; }); });
  EXPECT_NE(wrong.find("expected schema: reg2::typed(Tensor x, float y) -> int"), std::string::npos);
  EXPECT_NE(wrong.find("Type mismatch in argument 2: float vs int."), std::string::npos);
  EXPECT_NE(
      error_of([&] { lib.impl("typed", [](const Tensor&) { return int64_t{1}; }); }).find("The number of arguments is different. 2 vs 1."),
      std::string::npos);
  EXPECT_NE(error_of([&] { lib.impl("typed", [](const Tensor&, double) {}); }).find("The number of returns is different. 1 vs 0."),
            std::string::npos);
  EXPECT_FALSE(find("reg2::typed").hasKernelForDispatchKey(DispatchKey::CompositeImplicitAutograd));
  const std::string handle = error_of([&] { find("reg2::inferred").typed<int64_t(const Tensor&)>(); });
  EXPECT_NE(handle.find("Tried to access or call an operator with a wrong signature"), std::string::npos);
}

TEST(Registration, KernelBeforeSchema) {
  Library impl = make(Library::IMPL, "reg3", DispatchKey::CPU);
  impl.impl("f", kernel(7));
  const auto dangling = Dispatcher::singleton().findDanglingImpls();
  EXPECT_TRUE(std::any_of(dangling.begin(), dangling.end(), [](const OperatorHandle& h) { return h.operator_name().str() == "reg3::f"; }));
  EXPECT_NE(error_of([] { find("reg3::f"); }).find("no definition"), std::string::npos);
  Library def = make(Library::FRAGMENT, "reg3");
  EXPECT_NE(error_of([&] { def.def("f(Tensor x, int y) -> int"); }).find("doesn't match"), std::string::npos);
  EXPECT_FALSE(Dispatcher::singleton().findSchema({"reg3::f", ""}));
  def.def("f(Tensor x) -> int");
  EXPECT_EQ(run("reg3::f", cpu()), 7);
}

TEST(Registration, OlderSchemasKeepWorking) {
  Library def = make(Library::DEF, "reg4");
  def.def("f(Tensor x, int y=3, bool z=False) -> int");
  Library impl = make(Library::IMPL, "reg4", DispatchKey::CPU);
  impl.impl("f", [](const Tensor&, int64_t y) { return y * 10; });
  const auto op = find("reg4::f").typed<int64_t(const Tensor&, int64_t, bool)>();
  EXPECT_EQ(op.call(cpu(), 4, false), 40);
  EXPECT_NE(error_of([&] { op.call(cpu(), 4, true); }).find("registered against an older schema"), std::string::npos);
}

TEST(Registration, NewestKernelWinsAndTheOlderComesBack) {
  Library def = make(Library::DEF, "reg5");
  def.def("f(Tensor x) -> int");
  Library first = make(Library::IMPL, "reg5", DispatchKey::CPU);
  first.impl("f", kernel(1));
  {
    Library second = make(Library::IMPL, "reg5", DispatchKey::CPU);
    second.impl("f", kernel(2));
    EXPECT_EQ(run("reg5::f", cpu()), 2);
    EXPECT_NE(find("reg5::f").dumpState().find("CPU (inactive): registered at file.cpp:1"), std::string::npos);
  }
  EXPECT_EQ(run("reg5::f", cpu()), 1);
}

TEST(Registration, TagsByName) {
  Library def = make(Library::DEF, "reg_tags");
  def.def("f(Tensor x) -> int", {Tag::pt2_compliant_tag, Tag::core});
  const std::vector<Tag> tags{Tag::out};
  def.def("g(Tensor x) -> int", tags).def("h(Tensor x) -> int", {"pointwise"}).def("none(Tensor x) -> int", {});
  def.def(schema("pure(Tensor x) -> int", AliasAnalysisKind::PURE_FUNCTION), {Tag::reduction});
  EXPECT_EQ(find("reg_tags::f").getTags(), (std::vector<std::string>{"pt2_compliant_tag", "core"}));
  EXPECT_EQ(find("reg_tags::g").getTags(), std::vector<std::string>{"out"});
  EXPECT_EQ(find("reg_tags::h").getTags(), std::vector<std::string>{"pointwise"});
  EXPECT_EQ(find("reg_tags::pure").getTags(), std::vector<std::string>{"reduction"});
  EXPECT_TRUE(find("reg_tags::none").getTags().empty());
}

TEST(Registration, KernelsWithKeysOfTheirOwn) {
  Library def = make(Library::DEF, "reg_keys");
  def.def("f(Tensor x) -> int");
  def.impl("f", DispatchKey::CPU, kernel(1)).impl("f", kMeta, kernel(2));
  EXPECT_EQ(run("reg_keys::f", cpu()), 1);
  EXPECT_EQ(run("reg_keys::f", meta()), 2);
  Library on_cpu = make(Library::IMPL, "reg_keys", DispatchKey::CPU);
  EXPECT_NE(error_of([&] { on_cpu.impl("f", kMeta, kernel(3)); }).find("is inconsistent with the dispatch key of the enclosing"),
            std::string::npos);
}

TEST(Registration, RemovalMakesTheOperatorUnknown) {
  std::optional<OperatorHandle> stale;
  {
    Library def = make(Library::DEF, "reg6");
    def.def("f(Tensor x) -> int", [](const Tensor&) { return int64_t{5}; });
    stale = find("reg6::f");
  }
  EXPECT_FALSE(Dispatcher::singleton().findOp({"reg6::f", ""}));
  Stack stack{cpu()};
  EXPECT_THROW(stale->callBoxed(stack), Error);
}

// What can be registered for one operator: a definition, kernels for a backend, for autograd keys, for alias keys and for all, fallbacks of
// keys.
class Commuting {
 public:
  static constexpr int kCount = 9;
  static constexpr const char* kName = "commute::f";

  /// The states of every subset, however it came about, are one.
  void add(int what) {
    live_.emplace(what, make(what));
    check();
  }
  void remove(int what) {
    live_.erase(what);
    check();
  }

 private:
  static RegistrationHandleRAII make(int what) {
    Dispatcher& d = Dispatcher::singleton();
    const std::string debug = "registration " + std::to_string(what);
    if (what == 0) return d.registerDef(parse_schema("commute::f(Tensor x) -> int"), debug);
    if (what == 1) return d.registerFallback(DispatchKey::PrivateUse7, KernelFunction::makeFallthrough(), debug);
    if (what == 2)
      return d.registerFallback(DispatchKey::PrivateUse8, KernelFunction::makeFromUnboxed([](const Tensor&) { return int64_t{2}; }), debug);
    constexpr std::optional<DispatchKey> keys[] = {std::nullopt,          DispatchKey::CPU,         DispatchKey::PrivateUse7,
                                                   DispatchKey::Autograd, DispatchKey::AutogradCPU, DispatchKey::CompositeExplicitAutograd};
    return d.registerImpl({kName, ""}, keys[what - 3], KernelFunction::makeFromUnboxed([](const Tensor&) { return int64_t{1}; }),
                          std::nullopt, nullptr, debug);
  }
  void check() {
    int subset = 0;
    std::string names;
    for (const auto& [what, handle] : live_) {
      subset |= 1 << what;
      names += " " + std::to_string(what);
    }
    const auto op = Dispatcher::singleton().findOp({kName, ""});
    const std::string state = op ? op->dumpState() + op->dumpComputedTable() + op->checkInvariants() : std::string("absent");
    if (subset >> 3 == 0 && !(subset & 1)) {
      ASSERT_EQ(state, "absent");  // fallbacks alone make no operator
    }
    const auto [it, fresh] = seen_.emplace(subset, state);
    ASSERT_EQ(it->second, state) << "with" << names;
  }

  std::map<int, RegistrationHandleRAII> live_;
  std::map<int, std::string> seen_;
};

// Every order of registering with every order of removing, for each three of them.
TEST(Registration, Commutes) {
  Commuting registrations;
  for (int a = 0; a < Commuting::kCount; ++a)
    for (int b = a + 1; b < Commuting::kCount; ++b)
      for (int c = b + 1; c < Commuting::kCount; ++c) {
        std::vector<int> in{a, b, c};
        do {
          std::vector<int> out{a, b, c};
          do {
            for (int what : in) registrations.add(what);
            for (int what : out) registrations.remove(what);
            if (HasFailure()) return;
          } while (std::next_permutation(out.begin(), out.end()));
        } while (std::next_permutation(in.begin(), in.end()));
      }
}

// All of them, in many orders, also with some that go and come again on the way.
TEST(Registration, CommutesInLongOrders) {
  Commuting registrations;
  std::mt19937 random(7);
  std::vector<int> order(Commuting::kCount);
  std::iota(order.begin(), order.end(), 0);
  for (int round = 0; round < 300; ++round) {
    std::shuffle(order.begin(), order.end(), random);
    for (std::size_t i = 0; i < order.size(); ++i) {
      registrations.add(order[i]);
      if (random() % 3 == 0) {
        const int again = order[random() % (i + 1)];
        registrations.remove(again);
        registrations.add(again);
      }
    }
    std::shuffle(order.begin(), order.end(), random);
    for (int what : order) registrations.remove(what);
    if (HasFailure()) return;
  }
}

struct Case {
  std::vector<DispatchKey> kernels;
  DispatchKey asked;
  const char* tag;
};
class Precedence : public testing::TestWithParam<Case> {};
TEST_P(Precedence, FirstHitWins) {
  Library def = make(Library::DEF, "precedence");
  def.def("f(Tensor x) -> int");
  std::vector<Library> keep;
  for (DispatchKey k : GetParam().kernels) {
    keep.push_back(make(Library::IMPL, "precedence", k));
    keep.back().impl("f", kernel(1));
  }
  EXPECT_EQ(entry("precedence::f", GetParam().asked), GetParam().tag) << find("precedence::f").dumpComputedTable();
}
using K = DispatchKey;
INSTANTIATE_TEST_SUITE_P(
    Tables, Precedence,
    testing::Values(
        Case{{K::CPU, K::CompositeImplicitAutograd}, K::CPU, "[kernel]"},
        Case{{K::CPU, K::CompositeImplicitAutograd}, K::CUDA, "[math kernel]"},
        Case{{K::CPU, K::CompositeImplicitAutograd}, K::AutogradCPU, "[backend fallback]"},
        Case{{K::CPU, K::CompositeImplicitAutograd}, K::AutogradCUDA, "[math kernel]"},
        Case{{K::CPU, K::Autograd, K::CompositeImplicitAutograd}, K::AutogradCPU, "[autograd kernel]"},
        Case{{K::CPU, K::Autograd, K::CompositeImplicitAutograd}, K::Meta, "[math kernel]"},
        Case{{K::CPU, K::Autograd, K::CompositeImplicitAutograd}, K::AutogradCUDA, "[math kernel]"},
        Case{{K::CPU, K::CompositeExplicitAutograd}, K::AutogradCPU, "[backend fallback]"},
        Case{{K::CPU, K::CompositeExplicitAutograd}, K::PrivateUse3, "[default backend kernel]"},
        Case{{K::CompositeImplicitAutograd, K::CompositeExplicitAutograd}, K::CPU, "[default backend kernel]"},
        Case{{K::CompositeImplicitAutograd, K::CompositeExplicitAutograd}, K::AutogradCPU, "[backend fallback]"},
        Case{{K::CPU, K::Autograd, K::AutogradCPU}, K::AutogradCPU, "[kernel]"}, Case{{K::Autograd}, K::Undefined, ""},
        Case{{K::FPGA, K::CompositeImplicitAutograd}, K::AutogradOther, "[ambiguous autogradother]"},
        Case{{K::CompositeExplicitAutogradNonFunctional, K::CompositeExplicitAutograd}, K::PrivateUse1, "[default backend kernel]"}));

TEST(Call, ChoosesByTheArgumentsKeys) {
  Library def = make(Library::DEF, "call1");
  def.def("f(Tensor x) -> int");
  def.def("list(Tensor[] x) -> int");
  def.def("optional(Tensor? x, Tensor y) -> int");
  Library on_cpu = make(Library::IMPL, "call1", K::CPU), on_meta = make(Library::IMPL, "call1", K::Meta);
  on_cpu.impl("f", kernel(1));
  on_meta.impl("f", kernel(2));
  on_cpu.impl("list", [](TensorList) { return int64_t{1}; });
  on_meta.impl("list", [](TensorList) { return int64_t{2}; });
  on_cpu.impl("optional", [](const std::optional<Tensor>&, const Tensor&) { return int64_t{1}; });
  on_meta.impl("optional", [](const std::optional<Tensor>&, const Tensor&) { return int64_t{2}; });
  EXPECT_EQ(run("call1::f", cpu()), 1);
  EXPECT_EQ(run("call1::f", meta()), 2);
  const auto list = find("call1::list").typed<int64_t(TensorList)>();
  EXPECT_EQ(list.call({cpu(), meta()}), 2);
  const auto optional = find("call1::optional").typed<int64_t(const std::optional<Tensor>&, const Tensor&)>();
  EXPECT_EQ(optional.call(std::nullopt, cpu()), 1);
  EXPECT_EQ(optional.call(meta(), cpu()), 2);
}

TEST(Call, MissingKernelsNameWhatThereIs) {
  Library def = make(Library::DEF, "call2");
  def.def("f(Tensor x) -> int");
  def.def("none(int x) -> int");
  Library impl = make(Library::IMPL, "call2", K::CPU);
  impl.impl("f", kernel(1));
  EXPECT_NE(
      error_of<NotImplementedError>([] { run("call2::f", meta()); }).find("call2::f: attempted to run this operator with Meta tensors"),
      std::string::npos);
  EXPECT_NE(error_of<NotImplementedError>([] { run("call2::f", meta()); }).find("Kernels exist for: CPU."), std::string::npos);
  EXPECT_NE(error_of<NotImplementedError>([] {
              find("call2::none").typed<int64_t(int64_t)>().call(1);
            }).find("There were no tensor arguments to this function"),
            std::string::npos);
  EXPECT_NE(error_of([] { find("call2::ff"); }).find("Near names: call2::f"), std::string::npos);
}

TEST(Call, MissingKernelsNameThePythonModuleOfTheOperator) {
  Library def = make(Library::DEF, "python_module");
  def.def("before(Tensor x) -> int");
  def.set_python_module("mylib.ops", "pip install mylib");
  def.def("f(Tensor x) -> int");
  const std::string text = error_of<NotImplementedError>([] { run("python_module::f", meta()); });
  EXPECT_NE(text.find("More are registered by the Python module mylib.ops (pip install mylib): import it first.\n"), std::string::npos)
      << text;
  EXPECT_EQ(error_of<NotImplementedError>([] { run("python_module::before", meta()); }).find("Python module"), std::string::npos);
}

TEST(Call, BoxedAndUnboxedAgree) {
  Library lib = make(Library::DEF, "call3");
  lib.def(
      "all(Tensor a, Tensor? b, Tensor?[] c, int[] d, float e, bool f, str g, Scalar h, int? i, float[] j, ScalarType k, bool[2] l) -> "
      "(Tensor, str, int)",
      [](const Tensor& a, const std::optional<Tensor>& b, OptionalTensorList c, IntArrayRef d, double e, bool f, std::string_view g,
         const Scalar& h, std::optional<int64_t> i, ArrayRef<double> j, ScalarType k, std::array<bool, 2> l) {
        std::string text = str(b.has_value(), c.size(), d, e, f, g, h, i.value_or(-1), j.size(), k, l[0], l[1]);
        return std::tuple<Tensor, std::string, int64_t>(a, text, static_cast<int64_t>(c[1].has_value()));
      });
  const auto op = find("call3::all");
  const Tensor a = cpu();
  Stack stack{a,
              IValue(),
              std::vector<IValue>{a, IValue()},
              std::vector<int64_t>{3, 4},
              0.5,
              true,
              "text",
              Scalar(2),
              int64_t{9},
              std::vector<double>{1.5},
              kFloat,
              std::vector<IValue>{true, false}};
  op.callBoxed(stack);
  ASSERT_EQ(stack.size(), 3u);
  EXPECT_TRUE(stack[0].toTensor().is_same(a));
  EXPECT_EQ(stack[1].toStringRef(), "false2[3, 4]0.5truetext291Floattruefalse");
  EXPECT_EQ(stack[2].toInt(), 0);
}

TEST(Call, ReferencesComeBackAsTheSameTensor) {
  Library lib = make(Library::DEF, "call4");
  lib.def("twice(Tensor(a!) self, Tensor(b!) other) -> (Tensor(a!), Tensor(b!))");
  Library boxed = make(Library::IMPL, "call4", K::CPU);
  boxed.impl("twice", CppFunction::makeFromBoxedFunction<&leave_arguments>());
  Tensor a = cpu(), b = cpu();
  auto [x, y] = find("call4::twice").typed<std::tuple<Tensor&, Tensor&>(Tensor&, Tensor&)>().call(a, b);
  EXPECT_EQ(&x, &a);
  EXPECT_EQ(&y, &b);
}

TEST(Call, FallthroughAndThreadLocalKeys) {
  Library def = make(Library::DEF, "call5");
  def.def("f(Tensor x) -> int");
  Library impl = make(Library::IMPL, "call5", K::CPU), tracer = make(Library::IMPL, "call5", K::Tracer),
          generic = make(Library::IMPL, "call5", K::TESTING_ONLY_GenericMode);
  impl.impl("f", kernel(1));
  generic.impl("f", [](DispatchKeySet ks, const Tensor& x) {
    EXPECT_TRUE(ks.has(K::TESTING_ONLY_GenericMode));
    return 100 + find("call5::f")
                     .typed<int64_t(const Tensor&)>()
                     .redispatch(ks & DispatchKeySet(DispatchKeySet::FULL_AFTER, K::TESTING_ONLY_GenericMode), x);
  });
  EXPECT_EQ(run("call5::f", cpu()), 1);
  {
    const impl::IncludeDispatchKeyGuard guard(K::TESTING_ONLY_GenericMode);
    EXPECT_EQ(run("call5::f", cpu()), 101);
    const impl::ExcludeDispatchKeyGuard off(K::TESTING_ONLY_GenericMode);
    EXPECT_EQ(run("call5::f", cpu()), 1);
  }
  tracer.impl("f", CppFunction::makeFallthrough());
  const impl::IncludeDispatchKeyGuard guard(K::Tracer);
  EXPECT_EQ(run("call5::f", cpu()), 1);
}

TEST(Call, BackendFallbackIsBoxed) {
  Library def = make(Library::DEF, "call6");
  def.def("f(Tensor x) -> int");
  Library fallback = make(Library::IMPL, "_", K::PrivateUse16);
  fallback.fallback(CppFunction::makeFromBoxedFunction<&answer_77>());
  EXPECT_NE(
      error_of([&] { fallback.fallback(CppFunction::makeFallthrough()); }).find("multiple backend fallbacks for the same dispatch key"),
      std::string::npos);
  const auto t = Tensor(make_intrusive<TensorImpl>(DispatchKeySet(K::PrivateUse16), kFloat, Device(static_cast<DeviceType>(19), 0)));
  EXPECT_EQ(run("call6::f", t), 77);
}

TEST(Call, AKernelThatThrowsLeavesTheDispatcherAsItWas) {
  Library def = make(Library::DEF, "call7");
  def.def("f(Tensor x) -> int");
  Library impl = make(Library::IMPL, "call7", K::CPU);
  impl.impl("f", [](const Tensor&) -> int64_t { CRESSET_THROW(ValueError, "no"); });
  const auto before = impl::tls_local_dispatch_key_set();
  EXPECT_EQ(error_of<ValueError>([] { run("call7::f", cpu()); }), "no");
  EXPECT_EQ(before.excluded, impl::tls_local_dispatch_key_set().excluded);
  EXPECT_EQ(find("call7::f").checkInvariants(), "");
}

TEST(Call, WhileOthersRegister) {
  Library def = make(Library::DEF, "call8");
  def.def("f(Tensor x) -> int", [](const Tensor&) { return int64_t{1}; });
  const auto op = find("call8::f").typed<int64_t(const Tensor&)>();
  std::atomic<bool> stop{false};
  std::atomic<int64_t> wrong{0};
  std::vector<std::thread> callers;
  for (int i = 0; i < 2; ++i)
    callers.emplace_back([&] {
      const Tensor t = cpu();
      while (!stop)
        if (const int64_t v = op.call(t); v != 1 && v != 2) ++wrong;
    });
  for (int i = 0; i < 300; ++i) {
    Library impl = make(Library::IMPL, "call8", K::CPU);
    impl.impl("f", kernel(2));
  }
  stop = true;
  for (auto& t : callers) t.join();
  EXPECT_EQ(wrong, 0);
  Dispatcher::singleton().checkInvariants();
}

/// Operators are built from their tables when somebody asks for them first; here everybody asks for all, in different order.
TEST(Lookup, FirstLookupsFromSeveralThreads) {
  const std::vector<OperatorName> names = Dispatcher::singleton().getAllOpNames();
  std::vector<std::vector<impl::OperatorEntry*>> found(4);
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < found.size(); ++t)
    threads.emplace_back([&, t] {
      found[t].resize(names.size());
      for (std::size_t k = 0; k < names.size(); ++k) {
        const std::size_t i = (k + t * names.size() / found.size()) % names.size();
        const auto op = Dispatcher::singleton().findSchema(names[i]);
        if (!op) continue;
        found[t][i] = op->entry();
        (void)op->hasComputedKernelForDispatchKey(K::CPU);
        (void)op->schema().arguments().size();
      }
    });
  for (auto& t : threads) t.join();
  for (std::size_t t = 1; t < found.size(); ++t) EXPECT_EQ(found[t], found[0]);
}

TEST(Explain, NamesTheArgumentAndTheKernel) {
  Library def = make(Library::DEF, "explain1");
  def.def("f(Tensor x, Tensor y) -> int");
  Library impl = make(Library::IMPL, "explain1", K::Meta);
  impl.impl("f", [](const Tensor&, const Tensor&) { return int64_t{1}; });
  const std::string text = Dispatcher::singleton().explain(find("explain1::f"), {cpu(), meta()});
  EXPECT_NE(text.find("argument 'y' (float32[2] on meta) carries Meta, ADInplaceOrView, AutogradMeta, AutocastMeta"), std::string::npos)
      << text;
  EXPECT_NE(text.find("runs   Meta: registered at file.cpp:1 [kernel]"), std::string::npos) << text;
}

}  // namespace
}  // namespace cresset
