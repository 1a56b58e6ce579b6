// Random fills for generators of an extension's own: distributions, and at::native::templates, which fill tensors from them. A
// generator here is a pointer to anything with random() and random64().
#pragma once

#include <cresset_compat/tensor_iterator.h>

namespace at {

using CPUGeneratorImpl = cresset::CPUGeneratorImpl;
class mt19937 {
 public:
  explicit mt19937(uint64_t seed = 5489) : engine_(static_cast<uint32_t>(seed)) {}
  uint32_t operator()() { return engine_(); }

 private:
  cresset::Mt19937 engine_;
};

/// A number in [from, to) from the generator's random() (float) or random64() (double).
template <class T>
struct uniform_real_distribution {
  uniform_real_distribution(T from, T to) : from_(from), to_(to) {
    TORCH_CHECK(from <= to, "uniform_ expects to return a [from, to) range, but found from=", from, " > to=", to);
  }
  template <class RNG>
  T operator()(RNG generator) {
    if constexpr (std::is_same_v<T, double>) {
      return static_cast<double>(generator->random64() & ((uint64_t{1} << 53) - 1)) * 0x1p-53 * (to_ - from_) + from_;
    } else {
      return static_cast<T>(static_cast<float>(generator->random() & ((1u << 24) - 1)) * 0x1p-24f) * (to_ - from_) + from_;
    }
  }

 private:
  T from_, to_;
};
/// Box and Muller's transform; the second number of a pair is kept where the generator can keep one.
template <class T>
struct normal_distribution {
  normal_distribution(T mean, T deviation) : mean_(mean), deviation_(deviation) {
    TORCH_CHECK(deviation >= 0, "normal expects std >= 0.0, but found std ", deviation);
  }
  template <class RNG>
  T operator()(RNG generator) {
    if constexpr (requires { generator->next_double_normal_sample(); }) {
      if (const auto kept = generator->next_double_normal_sample()) {
        generator->set_next_double_normal_sample(std::nullopt);
        return static_cast<T>(*kept) * deviation_ + mean_;
      }
    }
    uniform_real_distribution<double> uniform(0, 1);
    const double theta = 2 * 3.14159265358979323846 * uniform(generator);
    const double r = std::sqrt(-2 * std::log1p(-uniform(generator)));
    if constexpr (requires { generator->next_double_normal_sample(); }) generator->set_next_double_normal_sample(r * std::sin(theta));
    return static_cast<T>(r * std::cos(theta)) * deviation_ + mean_;
  }

 private:
  T mean_, deviation_;
};

/// exp() of normal numbers.
template <class T>
struct lognormal_distribution {
  lognormal_distribution(T mean, T deviation) : normal_(mean, deviation) {}
  template <class RNG>
  T operator()(RNG generator) {
    return std::exp(normal_(generator));
  }

 private:
  normal_distribution<T> normal_;
};
/// 1 with the probability p, else 0.
template <class T>
struct bernoulli_distribution {
  explicit bernoulli_distribution(T p) : p_(p) {
    TORCH_CHECK(p >= 0 && p <= 1, "bernoulli_distribution expects p in [0, 1], but got p=", p);
  }
  template <class RNG>
  T operator()(RNG generator) {
    return static_cast<T>(uniform_real_distribution<T>(0, 1)(generator) < p_);
  }

 private:
  T p_;
};
namespace detail {
/// A number in [0, 1) as precise as T: from random() for float, from random64() else.
template <class T>
double uniform_for(auto generator) {
  if constexpr (std::is_same_v<T, float> || c10::is_reduced_floating_point_v<T>)
    return uniform_real_distribution<float>(0, 1)(generator);
  else
    return uniform_real_distribution<double>(0, 1)(generator);
}
}  // namespace detail
/// How many trials the first success takes: 1, 2, …
template <class T>
struct geometric_distribution {
  explicit geometric_distribution(double p) : p_(p) {
    TORCH_CHECK(p > 0 && p < 1, "geometric_distribution expects p in (0, 1), but got p=", p);
  }
  template <class RNG>
  T operator()(RNG generator) {
    return static_cast<T>(static_cast<cresset::opmath_type<T>>(std::ceil(std::log(detail::uniform_for<T>(generator)) / std::log1p(-p_))));
  }

 private:
  double p_;
};
template <class T>
struct exponential_distribution {
  explicit exponential_distribution(T lambda) : lambda_(lambda) {}
  template <class RNG>
  T operator()(RNG generator) {
    return static_cast<T>(-1 / static_cast<double>(lambda_) * std::log1p(-detail::uniform_for<T>(generator)));
  }

 private:
  T lambda_;
};
template <class T>
struct cauchy_distribution {
  cauchy_distribution(T median, T sigma) : median_(median), sigma_(sigma) {}
  template <class RNG>
  T operator()(RNG generator) {
    return static_cast<T>(median_ + sigma_ * std::tan(3.14159265358979323846 * (detail::uniform_for<T>(generator) - 0.5)));
  }

 private:
  T median_, sigma_;
};
namespace detail {
/// How many numbers the type has from 0 on: up to its largest one, for floating types the largest whole number without gaps below it.
template <class T>
constexpr uint64_t values_of() {
  if constexpr (std::is_same_v<T, bool>)
    return 2;
  else if constexpr (c10::is_reduced_floating_point_v<T>)
    return (uint64_t{1} << (std::is_same_v<T, c10::Half> ? 11 : 8)) + 1;
  else if constexpr (std::is_floating_point_v<T>)
    return (uint64_t{1} << std::numeric_limits<T>::digits) + 1;
  else
    return static_cast<uint64_t>(std::numeric_limits<T>::max()) + 1;
}
template <class T>
T number_of(int64_t v) {
  return static_cast<T>(static_cast<cresset::opmath_type<T>>(v));
}
}  // namespace detail
/// Whole numbers from 0 to the type's largest one.
template <class T>
struct uniform_int_distribution {
  template <class RNG>
  T operator()(RNG generator) {
    constexpr bool wide = std::is_same_v<T, int64_t> || std::is_same_v<T, double>;
    const uint64_t v = wide ? generator->random64() : generator->random();
    return detail::number_of<T>(static_cast<int64_t>(v % detail::values_of<T>()));
  }
};
/// Whole numbers in [base, base + range).
template <class T>
struct uniform_int_from_to_distribution {
  uniform_int_from_to_distribution(uint64_t range, int64_t base) : range_(range), base_(base) {}
  template <class RNG>
  T operator()(RNG generator) {
    const uint64_t v = range_ >= uint64_t{1} << 32 ? generator->random64() : generator->random();
    return detail::number_of<T>(static_cast<int64_t>(v % range_ + static_cast<uint64_t>(base_)));
  }

 private:
  uint64_t range_;
  int64_t base_;
};
/// Whole numbers from the lowest to the largest of int64.
template <class T>
struct uniform_int_full_range_distribution {
  template <class RNG>
  T operator()(RNG generator) {
    return detail::number_of<T>(static_cast<int64_t>(generator->random64()));
  }
};

namespace native::templates {

namespace detail {
using at::detail::values_of;
/// Writes f() into every element, in the order in which the elements lie in memory.
template <class scalar_t, class F>
void fill_with(const Tensor& self, const F& f) {
  const bool dense = self.is_non_overlapping_and_dense();
  const Tensor values = dense ? self : at::empty_like(self);
  auto* p = values.template data_ptr<scalar_t>();
  for (int64_t i = 0; i < values.numel(); ++i) p[i] = static_cast<scalar_t>(f());
  if (!dense) self.copy_(values);
}
template <class RNG>
RNG* locked(const std::optional<Generator>& generator, std::unique_lock<std::mutex>& lock) {
  RNG* g = at::check_generator<RNG>(generator);
  lock = std::unique_lock<std::mutex>(g->mutex_);
  return g;
}
}  // namespace detail

namespace cpu {
template <class RNG>
void random_kernel(TensorIteratorBase& iter, RNG* generator) {
  const std::lock_guard<std::mutex> lock(generator->mutex_);
  AT_DISPATCH_ALL_TYPES_AND3(kBool, kHalf, kBFloat16, iter.dtype(), "random_kernel_cpu", [&] {
    uniform_int_distribution<scalar_t> random;
    detail::fill_with<scalar_t>(iter.tensor(0), [&] { return random(generator); });
  });
}
template <class RNG>
void random_from_to_kernel(TensorIteratorBase& iter, uint64_t range, int64_t base, RNG* generator) {
  const std::lock_guard<std::mutex> lock(generator->mutex_);
  AT_DISPATCH_ALL_TYPES_AND3(kBool, kHalf, kBFloat16, iter.dtype(), "random_from_to_kernel_cpu", [&] {
    uniform_int_from_to_distribution<scalar_t> random(range, base);
    detail::fill_with<scalar_t>(iter.tensor(0), [&] { return random(generator); });
  });
}
template <class RNG>
void random_full_64_bits_range_kernel(TensorIteratorBase& iter, RNG* generator) {
  const std::lock_guard<std::mutex> lock(generator->mutex_);
  uniform_int_full_range_distribution<int64_t> random;
  detail::fill_with<int64_t>(iter.tensor(0), [&] { return random(generator); });
}
template <class RNG>
struct RandomKernel {
  void operator()(TensorIteratorBase& iter, std::optional<Generator> generator) {
    random_kernel(iter, at::check_generator<RNG>(generator));
  }
};
template <class RNG>
struct RandomFromToKernel {
  void operator()(TensorIteratorBase& iter, uint64_t range, int64_t base, std::optional<Generator> generator) {
    random_from_to_kernel(iter, range, base, at::check_generator<RNG>(generator));
  }
  void operator()(TensorIteratorBase& iter, std::optional<Generator> generator) {
    random_full_64_bits_range_kernel(iter, at::check_generator<RNG>(generator));
  }
};
/// A floating distribution: draw(generator) gives a number.
template <class RNG, class Draw>
void real_kernel(const char* name, const Tensor& self, RNG* generator, const Draw& draw) {
  const std::lock_guard<std::mutex> lock(generator->mutex_);
  AT_DISPATCH_FLOATING_TYPES_AND2(kHalf, kBFloat16, self.scalar_type(), name, [&] {
    detail::fill_with<scalar_t>(self, [&] { return static_cast<scalar_t>(static_cast<cresset::opmath_type<scalar_t>>(draw(generator))); });
  });
}
template <class RNG>
void uniform_kernel(TensorIteratorBase& iter, double from, double to, RNG* generator) {
  real_kernel("uniform_kernel_cpu", iter.tensor(0), generator, [&](RNG* g) {
    return iter.dtype() == kDouble ? uniform_real_distribution<double>(from, to)(g)
                                   : uniform_real_distribution<float>(static_cast<float>(from), static_cast<float>(to))(g);
  });
}
template <class RNG>
void normal_kernel(const Tensor& self, double mean, double deviation, RNG* generator) {
  normal_distribution<double> normal(mean, deviation);
  real_kernel("normal_kernel_cpu", self, generator, [&](RNG* g) { return normal(g); });
}
template <class RNG>
void cauchy_kernel(TensorIteratorBase& iter, double median, double sigma, RNG* generator) {
  cauchy_distribution<double> cauchy(median, sigma);
  real_kernel("cauchy_cpu", iter.tensor(0), generator, [&](RNG* g) { return cauchy(g); });
}
template <class RNG>
void log_normal_kernel(TensorIteratorBase& iter, double mean, double deviation, RNG* generator) {
  lognormal_distribution<double> log_normal(mean, deviation);
  real_kernel("log_normal_cpu", iter.tensor(0), generator, [&](RNG* g) { return log_normal(g); });
}
template <class RNG>
void exponential_kernel(TensorIteratorBase& iter, double lambda, RNG* generator) {
  exponential_distribution<double> exponential(lambda);
  real_kernel("exponential_cpu", iter.tensor(0), generator, [&](RNG* g) { return exponential(g); });
}
template <class RNG>
void geometric_kernel(TensorIteratorBase& iter, double p, RNG* generator) {
  const std::lock_guard<std::mutex> lock(generator->mutex_);
  AT_DISPATCH_ALL_TYPES_AND2(kHalf, kBFloat16, iter.dtype(), "geometric_cpu", [&] {
    geometric_distribution<double> geometric(p);
    detail::fill_with<scalar_t>(iter.tensor(0),
                                [&] { return static_cast<scalar_t>(static_cast<cresset::opmath_type<scalar_t>>(geometric(generator))); });
  });
}
template <class RNG>
struct UniformKernel {
  void operator()(TensorIteratorBase& iter, double from, double to, std::optional<Generator> generator) {
    uniform_kernel(iter, from, to, at::check_generator<RNG>(generator));
  }
};
template <class RNG>
struct NormalKernel {
  void operator()(const Tensor& self, double mean, double deviation, std::optional<Generator> generator) {
    normal_kernel(self, mean, deviation, at::check_generator<RNG>(generator));
  }
};
template <class RNG>
struct CauchyKernel {
  void operator()(TensorIteratorBase& iter, double median, double sigma, std::optional<Generator> generator) {
    cauchy_kernel(iter, median, sigma, at::check_generator<RNG>(generator));
  }
};
template <class RNG>
struct LogNormalKernel {
  void operator()(TensorIteratorBase& iter, double mean, double deviation, std::optional<Generator> generator) {
    log_normal_kernel(iter, mean, deviation, at::check_generator<RNG>(generator));
  }
};
template <class RNG>
struct ExponentialKernel {
  void operator()(TensorIteratorBase& iter, double lambda, std::optional<Generator> generator) {
    exponential_kernel(iter, lambda, at::check_generator<RNG>(generator));
  }
};
template <class RNG>
struct GeometricKernel {
  void operator()(TensorIteratorBase& iter, double p, std::optional<Generator> generator) {
    geometric_kernel(iter, p, at::check_generator<RNG>(generator));
  }
};
template <class RNG>
struct BernoulliKernel {
  void operator()(const Tensor& self, double p, std::optional<Generator> generator) {
    std::unique_lock<std::mutex> lock;
    RNG* g = detail::locked<RNG>(generator, lock);
    bernoulli_distribution<double> bernoulli(p);
    AT_DISPATCH_ALL_TYPES_AND3(kBool, kHalf, kBFloat16, self.scalar_type(), "bernoulli_scalar_cpu_",
                               [&] { detail::fill_with<scalar_t>(self, [&] { return static_cast<scalar_t>(bernoulli(g) != 0); }); });
  }
  void operator()(const Tensor& self, const Tensor& p, std::optional<Generator> generator) {
    Tensor u = at::empty(self.sizes(), TensorOptions(kDouble));
    auto iter = TensorIterator::nullary_op(u);
    UniformKernel<RNG>()(iter, 0, 1, generator);
    self.copy_(u.lt(p.to(kDouble).expand(self.sizes())));
  }
};
}  // namespace cpu

template <template <class> class Kernel, class RNG>
Tensor& random_impl(Tensor& self, const std::optional<Generator>& generator) {
  auto iter = TensorIterator::borrowing_nullary_op(self);
  Kernel<RNG>()(iter, generator);
  return self;
}
template <template <class> class Kernel, class RNG>
Tensor& random_from_to_impl(Tensor& self, int64_t from, std::optional<int64_t> to, const std::optional<Generator>& generator) {
  auto iter = TensorIterator::borrowing_nullary_op(self);
  if (to) {
    TORCH_CHECK(from < *to, "random_ expects 'from' to be less than 'to', but got from=", from, " >= to=", *to);
    Kernel<RNG>()(iter, static_cast<uint64_t>(*to) - static_cast<uint64_t>(from), from, generator);
  } else if (from != std::numeric_limits<int64_t>::lowest()) {
    // Up to the largest number of the type, which for floating types is the largest whole number without gaps below it.
    uint64_t values = 0;
    AT_DISPATCH_ALL_TYPES_AND3(kBool, kHalf, kBFloat16, self.scalar_type(), "random_from_to_range_calc",
                               [&] { values = detail::values_of<scalar_t>(); });
    TORCH_CHECK(static_cast<int64_t>(values - 1) >= from, "from is out of bounds for ", self.dtype());
    Kernel<RNG>()(iter, values - static_cast<uint64_t>(from), from, generator);
  } else {
    TORCH_CHECK(self.scalar_type() == kLong, "random_ from the lowest number of int64 needs a tensor of int64.");
    Kernel<RNG>()(iter, generator);
  }
  return self;
}
template <template <class> class Kernel, class RNG>
Tensor& uniform_impl_(Tensor& self, double from, double to, std::optional<Generator> generator) {
  TORCH_CHECK(from <= to, "uniform_ expects to return a [from, to) range, but found from=", from, " > to=", to);
  auto iter = TensorIterator::borrowing_nullary_op(self);
  Kernel<RNG>()(iter, from, to, generator);
  return self;
}
template <template <class> class Kernel, class RNG>
Tensor& normal_impl_(Tensor& self, double mean, double std, std::optional<Generator> generator) {
  TORCH_CHECK(std >= 0, "normal expects std >= 0.0, but found std ", std);
  Kernel<RNG>()(self, mean, std, generator);
  return self;
}
template <template <class> class Kernel, class RNG>
Tensor& normal_out_impl(Tensor& out, const Tensor& mean, double std, std::optional<Generator> generator) {
  out.resize_(mean.sizes());
  normal_impl_<Kernel, RNG>(out, 0, std, generator);
  return out.add_(mean);
}
template <template <class> class Kernel, class RNG>
Tensor& normal_out_impl(Tensor& out, double mean, const Tensor& std, std::optional<Generator> generator) {
  TORCH_CHECK(!std.lt(0).any().template item<bool>(), "normal expects all elements of std >= 0.0");
  out.resize_(std.sizes());
  normal_impl_<Kernel, RNG>(out, 0, 1, generator);
  return out.mul_(std).add_(mean);
}
template <template <class> class Kernel, class RNG>
Tensor& normal_out_impl(Tensor& out, const Tensor& mean, const Tensor& std, std::optional<Generator> generator) {
  const auto sizes = at::infer_size(mean.sizes(), std.sizes());
  out.resize_(sizes);
  normal_impl_<Kernel, RNG>(out, 0, 1, generator);
  return out.mul_(std).add_(mean);
}
template <template <class> class Kernel, class RNG>
Tensor normal_impl(const Tensor& mean, double std, std::optional<Generator> generator) {
  Tensor out = at::empty_like(mean);
  normal_out_impl<Kernel, RNG>(out, mean, std, generator);
  return out;
}
template <template <class> class Kernel, class RNG>
Tensor normal_impl(double mean, const Tensor& std, std::optional<Generator> generator) {
  Tensor out = at::empty_like(std);
  normal_out_impl<Kernel, RNG>(out, mean, std, generator);
  return out;
}
template <template <class> class Kernel, class RNG>
Tensor normal_impl(const Tensor& mean, const Tensor& std, std::optional<Generator> generator) {
  Tensor out = at::empty(at::infer_size(mean.sizes(), std.sizes()), mean.options());
  normal_out_impl<Kernel, RNG>(out, mean, std, generator);
  return out;
}
template <template <class> class Kernel, class RNG>
Tensor& cauchy_impl_(Tensor& self, double median, double sigma, std::optional<Generator> generator) {
  TORCH_CHECK(sigma > 0, "cauchy_ expects sigma > 0.0, but found sigma=", sigma);
  auto iter = TensorIterator::borrowing_nullary_op(self);
  Kernel<RNG>()(iter, median, sigma, generator);
  return self;
}
template <template <class> class Kernel, class RNG>
Tensor& log_normal_impl_(Tensor& self, double mean, double std, std::optional<Generator> generator) {
  TORCH_CHECK(std > 0, "log_normal_ expects std > 0.0, but found std=", std);
  auto iter = TensorIterator::borrowing_nullary_op(self);
  Kernel<RNG>()(iter, mean, std, generator);
  return self;
}
template <template <class> class Kernel, class RNG>
Tensor& geometric_impl_(Tensor& self, double p, std::optional<Generator> generator) {
  TORCH_CHECK(0 < p && p < 1, "geometric_ expects p to be in (0, 1), but got p=", p);
  auto iter = TensorIterator::borrowing_nullary_op(self);
  Kernel<RNG>()(iter, p, generator);
  return self;
}
template <template <class> class Kernel, class RNG>
Tensor& exponential_impl_(Tensor& self, double lambda, std::optional<Generator> generator) {
  TORCH_CHECK(lambda > 0, "exponential_ expects lambda > 0.0, but found lambda=", lambda);
  auto iter = TensorIterator::borrowing_nullary_op(self);
  Kernel<RNG>()(iter, lambda, generator);
  return self;
}
template <template <class> class Kernel, class RNG, class P>
Tensor& bernoulli_impl_(Tensor& self, const P& p, std::optional<Generator> generator) {
  Kernel<RNG>()(self, p, generator);
  return self;
}

}  // namespace native::templates
}  // namespace at
