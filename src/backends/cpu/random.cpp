// Random fills of tensors: strides, generators and argument checks around the streams of random_stream.h.
#include <algorithm>
#include <cmath>
#include <limits>
#include <mutex>
#include <numeric>

#include <cresset/core/dispatch_types.h>
#include <cresset/dispatch/dispatcher.h>
#include <cresset/ops/functions_arith.h>
#include <cresset/ops/functions_copy.h>
#include <cresset/ops/functions_creation.h>
#include <cresset/ops/functions_random.h>
#include <cresset/ops/functions_reduce.h>
#include <cresset/ops/functions_view.h>
#include <cresset/ops/pinned_memory.h>

#include "backends/cpu/random_stream.h"
#include "cpu/cpu_decl_random.h"
#include "ops/shared/shape_util.h"

namespace cresset::cpu {
namespace {

// The dimensions of t by descending stride: numbers are drawn in the order of memory, not of the indices.
DimVector memory_order(const Tensor& t) {
  DimVector order(t.dim());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return t.stride(a) > t.stride(b); });
  return order;
}

// Calls fill(contiguous tensor, generator) under the generator's lock: self with its dimensions in memory_order when
// that is contiguous, else a buffer that is copied.
template <class F>
Tensor& filled(Tensor& self, const std::optional<Generator>& generator, const F& fill) {
  if (self.numel() == 0) return self;
  CPUGeneratorImpl& g = chosen_generator(generator);
  Tensor ordered = self.is_contiguous() ? self : self.permute(memory_order(self));
  const Tensor dense = ordered.is_contiguous() ? ordered : detail::empty_cpu(ordered.sizes(), self.scalar_type());
  {
    std::lock_guard lock(g.mutex_);
    fill(dense, g);
  }
  if (!dense.is_same(ordered)) ordered.copy_(dense);
  return self;
}

bool is_own(const Generator& generator) { return dynamic_cast<const CPUGeneratorImpl*>(generator.unsafeGetGeneratorImpl()) != nullptr; }

// Has the extension that made the generator a kernel for randperm(n, generator=..., out=...)?
bool permutes_itself(const std::optional<Generator>& generator) {
  if (!generator || !generator->defined() || is_own(*generator)) return false;
  static const OperatorHandle op = Dispatcher::singleton().findSchemaOrThrow("aten::randperm", "generator_out");
  return op.hasKernelForDispatchKey(generator->key_set().highestPriorityTypeId());
}

#define CRESSET_RANDOM_FLOAT(t, name, ...) CRESSET_DISPATCH((t).scalar_type(), name, CRESSET_FLOATING_AND_HALF_TYPES, __VA_ARGS__)

}  // namespace

CPUGeneratorImpl& chosen_generator(const std::optional<Generator>& generator) {
  if (!generator || !generator->defined()) return *check_generator<CPUGeneratorImpl>(default_cpu_generator());
  CPUGeneratorImpl* const own = check_generator<CPUGeneratorImpl>(generator);
  CRESSET_CHECK_NOT_IMPLEMENTED(is_own(*generator),
                                "generator: this operator draws from the CPU's own generator only; one of an extension was given, which "
                                "has no kernel for it. Register one for ",
                                generator->key_set().highestPriorityTypeId(), ".");
  return *own;
}

Tensor& uniform_cpu(Tensor& self, double from, double to, const std::optional<Generator>& generator) {
  if (self.is_complex()) {
    Tensor parts = cresset::view_as_real(self);
    uniform_cpu(parts, from, to, generator);
    return self;
  }
  CRESSET_RANDOM_FLOAT(self, "uniform", [&] {
    const double least = static_cast<double>(std::numeric_limits<scalar_t>::lowest()),
                 most = static_cast<double>(std::numeric_limits<scalar_t>::max());
    CRESSET_CHECK(from >= least && from <= most, "from is out of bounds for ", self.scalar_type());
    CRESSET_CHECK(to >= least && to <= most, "to is out of bounds for ", self.scalar_type());
    CRESSET_CHECK(from <= to, "uniform_ expects to return a [from, to) range, but found from=", from, " > to=", to);
    CRESSET_CHECK(to - from <= most, "uniform_ expects to-from <= std::numeric_limits<", self.scalar_type(), ">::max(), but found to=", to,
                  " and from=", from, " which result in to-from to exceed the limit");
    filled(self, generator,
           [&](const Tensor& t, CPUGeneratorImpl& g) { uniform_fill(t.mutable_data_ptr<scalar_t>(), t.numel(), from, to, g); });
  });
  return self;
}

Tensor& normal_cpu(Tensor& self, double mean, double std, const std::optional<Generator>& generator) {
  CRESSET_CHECK(std >= 0, "normal expects std >= 0.0, but found std ", std);
  if (self.is_complex()) {
    // Real and imaginary parts share the variance; both have the mean.
    Tensor parts = cresset::view_as_real(self);
    normal_cpu(parts, 0, std / std::sqrt(2.0), generator);
    if (mean != 0) parts.add_(mean);
    return self;
  }
  CRESSET_RANDOM_FLOAT(self, "normal", [&] {
    const bool dense = self.is_contiguous();
    filled(self, generator, [&](const Tensor& t, CPUGeneratorImpl& g) {
      if (dense)
        normal_fill(t.mutable_data_ptr<scalar_t>(), t.numel(), mean, std, g);
      else
        normal_serial_fill(t.mutable_data_ptr<scalar_t>(), t.numel(), mean, std, g);
    });
  });
  return self;
}

Tensor& log_normal_cpu(Tensor& self, double mean, double std, const std::optional<Generator>& generator) {
  CRESSET_CHECK(std > 0, "log_normal_ expects std > 0.0, but found std=", std);
  CRESSET_RANDOM_FLOAT(self, "log_normal", [&] {
    filled(self, generator,
           [&](const Tensor& t, CPUGeneratorImpl& g) { log_normal_fill(t.mutable_data_ptr<scalar_t>(), t.numel(), mean, std, g); });
  });
  return self;
}

Tensor& exponential_cpu(Tensor& self, double lambd, const std::optional<Generator>& generator) {
  CRESSET_CHECK(lambd > 0, "exponential_ expects lambda > 0.0, but found lambda=", lambd);
  CRESSET_CHECK(!isIntegralType(self.scalar_type(), true),
                "Exponential distribution is a continuous probability distribution. dtype must be a floating point but you specified ",
                self.scalar_type());
  CRESSET_RANDOM_FLOAT(self, "exponential", [&] {
    filled(self, generator,
           [&](const Tensor& t, CPUGeneratorImpl& g) { exponential_fill(t.mutable_data_ptr<scalar_t>(), t.numel(), lambd, g); });
  });
  return self;
}

Tensor& geometric_cpu(Tensor& self, double p, const std::optional<Generator>& generator) {
  CRESSET_CHECK(p > 0 && p < 1, "geometric_ expects p to be in (0, 1), but got p=", p);
  CRESSET_DISPATCH(self.scalar_type(), "geometric", CRESSET_REAL_TYPES, [&] {
    filled(self, generator, [&](const Tensor& t, CPUGeneratorImpl& g) { geometric_fill(t.mutable_data_ptr<scalar_t>(), t.numel(), p, g); });
  });
  return self;
}

Tensor& cauchy_cpu(Tensor& self, double median, double sigma, const std::optional<Generator>& generator) {
  CRESSET_CHECK(sigma > 0, "cauchy_ expects sigma > 0.0, but found sigma=", sigma);
  CRESSET_CHECK(self.is_floating_point(),
                "Cauchy distribution is a continuous probability distribution. dtype must be a floating point but you specified ",
                self.scalar_type());
  CRESSET_RANDOM_FLOAT(self, "cauchy", [&] {
    filled(self, generator,
           [&](const Tensor& t, CPUGeneratorImpl& g) { cauchy_fill(t.mutable_data_ptr<scalar_t>(), t.numel(), median, sigma, g); });
  });
  return self;
}

Tensor& random_cpu(Tensor& self, const std::optional<Generator>& generator) {
  CRESSET_DISPATCH(self.scalar_type(), "random", CRESSET_REAL_AND_BOOL_TYPES, [&] {
    filled(self, generator, [&](const Tensor& t, CPUGeneratorImpl& g) { random_fill(t.mutable_data_ptr<scalar_t>(), t.numel(), g); });
  });
  return self;
}

Tensor& random_from(Tensor& self, int64_t from, std::optional<int64_t> to, const std::optional<Generator>& generator) {
  if (isBarebonesUnsignedType(self.scalar_type()) && (to || self.scalar_type() != kUInt64)) {
    if (!to) to = self.scalar_type() == kUInt16 ? 1 << 16 : int64_t{1} << 32;
    Tensor wide = detail::empty_cpu(self.sizes(), kLong);
    random_from(wide, from, to, generator);
    check_wide_unsigned_range(self.scalar_type(), from, *to);
    cresset::_copy_from(wide, self, false);
    return self;
  }
  CRESSET_DISPATCH(self.scalar_type(), "random_from_to", CRESSET_REAL_AND_BOOL_TYPES, [&] {
    const IntegerRange range = integer_range<scalar_t>(from, to);
    filled(self, generator,
           [&](const Tensor& t, CPUGeneratorImpl& g) { random_range_fill(t.mutable_data_ptr<scalar_t>(), t.numel(), range, g); });
  });
  return self;
}
Tensor& random_to(Tensor& self, int64_t to, const std::optional<Generator>& generator) { return random_from(self, 0, to, generator); }

Tensor& bernoulli_float(Tensor& self, double p, const std::optional<Generator>& generator) {
  CRESSET_CHECK(p >= 0 && p <= 1, "bernoulli_ expects p to be in [0, 1], but got p=", p);
  CRESSET_DISPATCH(self.scalar_type(), "bernoulli_scalar_cpu_", CRESSET_REAL_AND_BOOL_TYPES, [&] {
    filled(self, generator, [&](const Tensor& t, CPUGeneratorImpl& g) { bernoulli_fill(t.mutable_data_ptr<scalar_t>(), t.numel(), p, g); });
  });
  return self;
}

Tensor& bernoulli_tensor(Tensor& self, const Tensor& p, const std::optional<Generator>& generator) {
  CRESSET_CHECK_NOT_IMPLEMENTED(p.is_floating_point(), "\"bernoulli_tensor_cpu_p_\" not implemented for '", p.scalar_type(), "'");
  CRESSET_CHECK(p.numel() == 0 || (p.min().ge(0).item<bool>() && p.max().le(1).item<bool>()),
                "Expected p_in >= 0 && p_in <= 1 to be true, but got false.");
  // Probabilities as double or float, one for each element of self.
  const Tensor expanded = (isReducedFloatingType(p.scalar_type()) ? p.to(kFloat) : p).expand(self.sizes());
  const Tensor full = (self.is_contiguous() ? expanded : expanded.permute(memory_order(self))).contiguous();
  CRESSET_DISPATCH(self.scalar_type(), "bernoulli_tensor_cpu_self_", CRESSET_REAL_AND_BOOL_TYPES, [&] {
    filled(self, generator, [&](const Tensor& t, CPUGeneratorImpl& g) {
      if (full.scalar_type() == kDouble)
        bernoulli_tensor_fill(t.mutable_data_ptr<scalar_t>(), full.const_data_ptr<double>(), t.numel(), g);
      else
        bernoulli_tensor_fill(t.mutable_data_ptr<scalar_t>(), full.const_data_ptr<float>(), t.numel(), g);
    });
  });
  return self;
}

Tensor poisson(const Tensor& self, const std::optional<Generator>& generator) {
  Tensor out = detail::empty_cpu(self.sizes(), self.scalar_type());
  const Tensor rates = self.contiguous();
  CRESSET_RANDOM_FLOAT(self, "poisson_cpu", [&] {
    const auto* rate = rates.const_data_ptr<scalar_t>();
    for (int64_t i = 0; i < rates.numel(); ++i)
      CRESSET_CHECK(static_cast<double>(rate[i]) >= 0, "invalid Poisson rate, expected rate to be non-negative");
    filled(out, generator, [&](const Tensor& t, CPUGeneratorImpl& g) {
      auto* to = t.mutable_data_ptr<scalar_t>();
      for (int64_t i = 0; i < t.numel(); ++i) to[i] = static_cast<scalar_t>(sample_poisson(static_cast<double>(rate[i]), g));
    });
  });
  return out;
}

Tensor binomial(const Tensor& count, const Tensor& prob, const std::optional<Generator>& generator) {
  CRESSET_CHECK_VALUE(count.is_floating_point(), "binomial only supports floating-point dtypes for count, got: ", count.scalar_type());
  CRESSET_CHECK_VALUE(prob.is_floating_point(), "binomial only supports floating-point dtypes for prob, got: ", prob.scalar_type());
  CRESSET_CHECK(count.scalar_type() == prob.scalar_type(), "Found dtype ", prob.scalar_type(), " but expected ", count.scalar_type());
  const DimVector sizes = ops::infer_broadcast(count.sizes(), prob.sizes());
  const Tensor counts = count.expand(sizes).contiguous(), probs = prob.expand(sizes).contiguous();
  Tensor out = detail::empty_cpu(sizes, count.scalar_type());
  CRESSET_RANDOM_FLOAT(count, "binomial_cpu", [&] {
    const auto *n = counts.const_data_ptr<scalar_t>(), *p = probs.const_data_ptr<scalar_t>();
    filled(out, generator, [&](const Tensor& t, CPUGeneratorImpl& g) {
      auto* to = t.mutable_data_ptr<scalar_t>();
      for (int64_t i = 0; i < t.numel(); ++i)
        to[i] = static_cast<scalar_t>(sample_binomial(static_cast<double>(n[i]), static_cast<double>(p[i]), g));
    });
  });
  return out;
}

Tensor randperm_generator(int64_t n, const std::optional<Generator>& generator, std::optional<ScalarType> dtype, std::optional<Layout>,
                          std::optional<Device>, std::optional<bool> pin_memory) {
  CRESSET_CHECK(n >= 0, "n must be non-negative, got", n);
  const ScalarType type = dtype.value_or(kLong);
  Tensor out = detail::empty_host({n}, {1}, type, pin_memory);
  if (permutes_itself(generator)) return cresset::randperm_out(out, n, generator);
  CRESSET_DISPATCH(type, "randperm", CRESSET_REAL_TYPES, [&] {
    // Integers up to 2^digits are exact in a floating type.
    const bool fits = std::is_integral_v<scalar_t>
                          ? static_cast<uint64_t>(n) <= static_cast<uint64_t>(std::numeric_limits<int64_t>::max()) &&
                                static_cast<double>(n - 1) <= static_cast<double>(std::numeric_limits<scalar_t>::max())
                          : n - 1 <= int64_t{1} << std::numeric_limits<scalar_t>::digits;
    CRESSET_CHECK(fits, "n is too large for result tensor type: '", type, "'");
    filled(out, generator, [&](const Tensor& t, CPUGeneratorImpl& g) { randperm_fill(t.mutable_data_ptr<scalar_t>(), n, g); });
  });
  return out;
}

void multinomial(const Tensor& self, int64_t num_samples, bool replacement, const std::optional<Generator>& generator, const Tensor& out) {
  const int64_t categories = self.size(-1), rows = self.dim() == 2 ? self.size(0) : 1;
  const Tensor p = self.contiguous();
  // Numbers are drawn in the order in which a tensor like self has them.
  const bool by_columns = self.dim() == 2 && !cresset::empty_like(self).is_contiguous();
  Tensor drawn = out.is_contiguous() ? out : detail::empty_cpu(out.sizes(), kLong);
  CRESSET_RANDOM_FLOAT(p, "multinomial", [&] {
    filled(drawn, generator, [&](const Tensor& t, CPUGeneratorImpl& g) {
      const auto* weights = p.const_data_ptr<scalar_t>();
      if (replacement)
        multinomial_with_replacement(t.mutable_data_ptr<int64_t>(), weights, rows, categories, num_samples, g, by_columns);
      else
        multinomial_without_replacement(t.mutable_data_ptr<int64_t>(), weights, rows, categories, num_samples, g, by_columns);
    });
  });
  if (!drawn.is_same(out)) Tensor(out).copy_(drawn);
}

}  // namespace cresset::cpu
