// Random numbers of an extension's own: distributions, and fills of tensors with a kernel or a generator from here. torch/torch.h alone
// has Python with it where an extension is built.
#include <torch/torch.h>

#include <ATen/core/Array.h>
#include <ATen/core/DistributionsHelper.h>
#include <ATen/core/Range.h>
#include <ATen/div_rtn.h>
#include <ATen/native/DistributionTemplates.h>
#include <ATen/native/cpu/DistributionTemplates.h>
#include <c10/util/MathConstants.h>
#include <c10/util/ScopeExit.h>

namespace {

/// Counts: 1000, 1001, …
struct CountingGenerator : at::CPUGeneratorImpl {
  CountingGenerator() : at::CPUGeneratorImpl(0) {}
  uint32_t random() { return static_cast<uint32_t>(next++); }
  uint64_t random64() { return next++ << 32; }

  uint64_t next = 1000;
};

/// A generator with a key of its own, for which one operator has a kernel: the permutation that turns the order round.
struct ReversingGenerator : c10::GeneratorImpl {
  ReversingGenerator() : GeneratorImpl(c10::Device(c10::kCPU), c10::DispatchKeySet(c10::DispatchKey::CustomRNGKeyId)) {}
  void set_current_seed(uint64_t) override {}
  uint64_t current_seed() const override { return 0; }
  uint64_t seed() override { return 0; }
};
at::Tensor& reversed_order(int64_t n, std::optional<at::Generator>, at::Tensor& out) {
  return out.resize_({n}).copy_(torch::arange(n).flip(0));
}
TORCH_LIBRARY_IMPL(aten, CustomRNGKeyId, m) { m.impl("randperm.generator_out", reversed_order); }

/// A kernel as sources have them: it takes the iterator.
template <class RNG>
struct HalfRangeKernel {
  void operator()(at::TensorIterator& iter, double from, double to, std::optional<at::Generator> generator) {
    auto* rng = at::check_generator<RNG>(generator);
    AT_DISPATCH_FLOATING_TYPES(iter.dtype(), "half_range", [&] {
      at::uniform_real_distribution<scalar_t> uniform(static_cast<scalar_t>(from), static_cast<scalar_t>((from + to) / 2));
      at::native::cpu_serial_kernel(iter, [&]() -> scalar_t { return uniform(rng); });
    });
  }
};

// Names by using-declarations: with options of a tensor, the arguments alone name no second function.
using torch::arange;
using torch::from_blob;
using torch::full;
at::Tensor made_with_options(const at::Tensor& x) {
  double value = 3;
  return torch::hstack({arange(0, 2, x.options()), full({1}, 2, x.options()), from_blob(&value, {1}, x.options())});
}

at::Tensor half_range(at::Tensor x, double from, double to, const at::Generator& generator) {
  return at::native::templates::uniform_impl_<HalfRangeKernel, at::CPUGeneratorImpl>(x, from, to, generator);
}

at::Tensor fill(const std::string& how, at::Tensor x) {
  const auto generator = at::make_generator<CountingGenerator>();
  namespace t = at::native::templates;
  if (how == "random") return t::random_impl<t::cpu::RandomKernel, CountingGenerator>(x, generator);
  if (how == "from_to") return t::random_from_to_impl<t::cpu::RandomFromToKernel, CountingGenerator>(x, 5, 15, generator);
  if (how == "geometric") return t::geometric_impl_<t::cpu::GeometricKernel, CountingGenerator>(x, 0.5, generator);
  if (how == "exponential") return t::exponential_impl_<t::cpu::ExponentialKernel, CountingGenerator>(x, 2, generator);
  if (how == "cauchy") return t::cauchy_impl_<t::cpu::CauchyKernel, CountingGenerator>(x, 1, 2, generator);
  if (how == "log_normal") return t::log_normal_impl_<t::cpu::LogNormalKernel, CountingGenerator>(x, 0, 1, generator);
  if (how == "bernoulli") return t::bernoulli_impl_<t::cpu::BernoulliKernel, CountingGenerator>(x, 0.25, generator);
  TORCH_CHECK(false, how);
}

template <class T>
double drawn(const std::string& how) {
  CountingGenerator g;
  if (how == "uniform_int") return static_cast<double>(at::uniform_int_distribution<T>()(&g));
  if (how == "from_to") return static_cast<double>(at::uniform_int_from_to_distribution<T>(7, -3)(&g));
  if (how == "full_range") return static_cast<double>(at::uniform_int_full_range_distribution<T>()(&g));
  if (how == "geometric") return static_cast<double>(at::geometric_distribution<T>(0.5)(&g));
  if constexpr (std::is_floating_point_v<T>) {
    if (how == "exponential") return at::exponential_distribution<T>(2)(&g);
    if (how == "cauchy") return at::cauchy_distribution<T>(1, 2)(&g);
    if (how == "lognormal") return at::lognormal_distribution<T>(0, 1)(&g);
    if (how == "bernoulli") return at::bernoulli_distribution<T>(static_cast<T>(0.5))(&g);
  }
  TORCH_CHECK(false, how);
}
double draw(const std::string& how, at::ScalarType dtype) {
  double v = 0;
  AT_DISPATCH_ALL_TYPES(dtype, "draw", [&] { v = drawn<scalar_t>(how); });
  return v;
}

/// Two draws from one state.
std::vector<at::Tensor> drawn_again(at::Generator generator) {
  const at::Tensor state = generator.get_state(), first = at::rand({2}, generator);
  generator.set_state(state);
  return {first, at::rand({2}, generator), state};
}

std::vector<int64_t> small_parts() {
  at::detail::Array<int64_t, 3> a(4);
  a[1] = a.size();
  int64_t left = 0;
  {
    const auto guard = c10::make_scope_exit([&] { left = 1; });
    left = 2;
  }
  return {a[0], a[1], a.data[2], left, div_rtn(-7, 2), (at::Range(4, 10) / 2).size(), static_cast<int64_t>(c10::pi<double>)};
}

}  // namespace

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("half_range", &half_range);
  m.def("fill", &fill);
  m.def("reversing_generator", [] { return at::make_generator<ReversingGenerator>(); });
  m.def("draw", &draw);
  m.def("drawn_again", &drawn_again);
  m.def("made_with_options", &made_with_options);
  m.def("small_parts", &small_parts);
  m.def("vector", [](py::list values) { return values.size(); });
}
