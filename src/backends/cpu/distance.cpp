// Distances between rows and their gradients, by direct differences.
//
// With d = |x - y|_p: dd/dx_k = sign(x_k - y_k) (|x_k - y_k| / d)^(p-1), zero where d is zero; for the maximum norm
// sign(x_k - y_k) at the components that reach it.
#include <algorithm>
#include <cmath>

#include <cresset/base/parallel.h>
#include <cresset/core/dispatch_types.h>
#include <cresset/ops/functions_copy.h>
#include <cresset/ops/functions_view.h>

#include "cpu/cpu_decl_distance.h"

namespace cresset::cpu {
namespace {

template <class T>
T sign(T v) {
  return static_cast<T>((v > 0) - (v < 0));
}

// One struct for each kind of p: how components add up, how two sums do, the distance from a sum, and the slope above.
template <class T>
struct Zero {
  T add(T sum, T diff) const { return sum + static_cast<T>(diff != 0); }
  T join(T a, T b) const { return a + b; }
  T finish(T sum) const { return sum; }
  T slope(T, T) const { return 0; }
};
template <class T>
struct One {
  T add(T sum, T diff) const { return sum + std::abs(diff); }
  T join(T a, T b) const { return a + b; }
  T finish(T sum) const { return sum; }
  T slope(T diff, T) const { return sign(diff); }
};
template <class T>
struct Two {
  T add(T sum, T diff) const { return sum + diff * diff; }
  T join(T a, T b) const { return a + b; }
  T finish(T sum) const { return std::sqrt(sum); }
  T slope(T diff, T distance) const { return distance == 0 ? T(0) : diff / distance; }
};
template <class T>
struct Largest {
  T add(T sum, T diff) const { return diff != diff || std::abs(diff) > sum ? std::abs(diff) : sum; }
  T join(T a, T b) const { return add(a, b); }
  T finish(T sum) const { return sum; }
  T slope(T diff, T distance) const { return std::abs(diff) == distance ? sign(diff) : T(0); }
};
template <class T>
struct General {
  T p;
  T add(T sum, T diff) const { return sum + std::pow(std::abs(diff), p); }
  T join(T a, T b) const { return a + b; }
  T finish(T sum) const { return std::pow(sum, 1 / p); }
  T slope(T diff, T distance) const {
    if (distance == 0 || diff == 0) return 0;
    return sign(diff) * std::pow(std::abs(diff) / distance, p - 1);
  }
};

template <class T, class F>
void with_norm(double p, const F& f) {
  if (p == 0) return f(Zero<T>{});
  if (p == 1) return f(One<T>{});
  if (p == 2) return f(Two<T>{});
  if (std::isinf(p)) return f(Largest<T>{});
  f(General<T>{static_cast<T>(p)});
}

template <class T, class Norm>
T distance(const Norm& norm, const T* x, const T* y, int64_t columns) {
  // Independent sums, which the compiler keeps in vector registers.
  constexpr int64_t kLanes = 8;
  T lanes[kLanes] = {};
  int64_t k = 0;
  for (; k + kLanes <= columns; k += kLanes)
    for (int64_t l = 0; l < kLanes; ++l) lanes[l] = norm.add(lanes[l], x[k + l] - y[k + l]);
  T sum = 0;
  for (int64_t l = 0; l < kLanes; ++l) sum = norm.join(sum, lanes[l]);
  for (; k < columns; ++k) sum = norm.add(sum, x[k] - y[k]);
  return norm.finish(sum);
}

int64_t grain(int64_t cost) { return 1 + (int64_t{1} << 15) / (1 + cost); }

// t with the given batch sizes in front of its matrices, contiguous.
Tensor over_batch(const Tensor& t, IntArrayRef batch) {
  DimVector sizes(batch);
  sizes.push_back(t.size(-2));
  sizes.push_back(t.size(-1));
  return t.expand(sizes).contiguous();
}

IntArrayRef batch_of(const Tensor& t) { return t.sizes().slice(0, static_cast<std::size_t>(t.dim() - 2)); }

}  // namespace

void cdist_forward(const Tensor& x1, const Tensor& x2, double p, std::optional<int64_t>, const Tensor& out) {
  if (out.numel() == 0) return;
  const int64_t rows = x1.size(-2), others = x2.size(-2), columns = x1.size(-1);
  const Tensor a = over_batch(x1, batch_of(out)), b = over_batch(x2, batch_of(out));
  CRESSET_DISPATCH(x1.scalar_type(), "cdist", CRESSET_FLOATING_TYPES, [&] {
    scalar_t* const to = out.mutable_data_ptr<scalar_t>();
    if (columns == 0) return void(std::fill(to, to + out.numel(), scalar_t(0)));
    const scalar_t *const pa = a.const_data_ptr<scalar_t>(), *const pb = b.const_data_ptr<scalar_t>();
    with_norm<scalar_t>(p, [&](const auto& norm) {
      parallel_for(0, out.numel() / others, grain(others * columns), [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          const scalar_t* const y = pb + i / rows * others * columns;
          for (int64_t j = 0; j < others; ++j) to[i * others + j] = distance(norm, pa + i * columns, y + j * columns, columns);
        }
      });
    });
  });
}

void cdist_backward(const Tensor& grad, const Tensor& x1, const Tensor& x2, double p, const Tensor& cdist, const Tensor& out) {
  if (out.numel() == 0) return;
  const int64_t rows = x1.size(-2), others = x2.size(-2), columns = x1.size(-1);
  const Tensor a = over_batch(x1, batch_of(out)), b = over_batch(x2, batch_of(out)), g = grad.contiguous(), d = cdist.contiguous();
  CRESSET_DISPATCH(x1.scalar_type(), "cdist_backward", CRESSET_FLOATING_TYPES, [&] {
    scalar_t* const to = out.mutable_data_ptr<scalar_t>();
    std::fill(to, to + out.numel(), scalar_t(0));
    if (others == 0 || p == 0) return;  // the number of parts that differ has no slope, whatever grad is
    const scalar_t *const pa = a.const_data_ptr<scalar_t>(), *const pb = b.const_data_ptr<scalar_t>();
    const scalar_t *const pg = g.const_data_ptr<scalar_t>(), *const pd = d.const_data_ptr<scalar_t>();
    with_norm<scalar_t>(p, [&](const auto& norm) {
      parallel_for(0, out.numel() / columns, grain(others * columns), [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          const scalar_t *const x = pa + i * columns, *const y = pb + i / rows * others * columns;
          for (int64_t j = 0; j < others; ++j) {
            const scalar_t from = pg[i * others + j], far = pd[i * others + j];
            for (int64_t k = 0; k < columns; ++k) to[i * columns + k] += from * norm.slope(x[k] - y[j * columns + k], far);
          }
        }
      });
    });
  });
}

void pdist_forward(const Tensor& self, double p, const Tensor& out) {
  if (out.numel() == 0) return;
  const int64_t rows = self.size(0), columns = self.size(1);
  const Tensor x = self.contiguous();
  CRESSET_DISPATCH(self.scalar_type(), "pdist", CRESSET_FLOATING_TYPES, [&] {
    scalar_t* const to = out.mutable_data_ptr<scalar_t>();
    if (columns == 0) return void(std::fill(to, to + out.numel(), scalar_t(0)));
    const scalar_t* const px = x.const_data_ptr<scalar_t>();
    with_norm<scalar_t>(p, [&](const auto& norm) {
      parallel_for(0, rows - 1, grain(rows * columns / 2), [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          // Pairs of the rows before i come first.
          scalar_t* const t = to + i * (2 * rows - i - 1) / 2 - i - 1;
          for (int64_t j = i + 1; j < rows; ++j) t[j] = distance(norm, px + i * columns, px + j * columns, columns);
        }
      });
    });
  });
}

void pdist_backward(const Tensor& grad, const Tensor& self, double p, const Tensor& pdist, const Tensor& out) {
  if (out.numel() == 0) return;
  const int64_t rows = self.size(0), columns = self.size(1);
  const Tensor x = self.contiguous(), g = grad.contiguous(), d = pdist.contiguous();
  CRESSET_DISPATCH(self.scalar_type(), "pdist_backward", CRESSET_FLOATING_TYPES, [&] {
    scalar_t* const to = out.mutable_data_ptr<scalar_t>();
    std::fill(to, to + out.numel(), scalar_t(0));
    if (rows < 2 || p == 0) return;
    const scalar_t *const px = x.const_data_ptr<scalar_t>(), *const pg = g.const_data_ptr<scalar_t>(),
                          *const pd = d.const_data_ptr<scalar_t>();
    with_norm<scalar_t>(p, [&](const auto& norm) {
      int64_t pair = 0;
      for (int64_t i = 0; i < rows; ++i)
        for (int64_t j = i + 1; j < rows; ++j, ++pair)
          for (int64_t k = 0; k < columns; ++k) {
            const scalar_t part = pg[pair] * norm.slope(px[i * columns + k] - px[j * columns + k], pd[pair]);
            to[i * columns + k] += part;
            to[j * columns + k] -= part;
          }
    });
  });
}

}  // namespace cresset::cpu
