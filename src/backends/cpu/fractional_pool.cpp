// Fractional max pooling, every plane by itself.
#include <algorithm>
#include <array>
#include <vector>

#include <cresset/base/parallel.h>
#include <cresset/core/dispatch_types.h>

#include "cpu/cpu_decl_fractional_pool.h"

namespace cresset::cpu {
namespace {

// Windows over three dimensions (ones in front for fewer).
struct Windows {
  std::array<int64_t, 3> in{1, 1, 1}, out{1, 1, 1}, kernel{1, 1, 1};
  int64_t planes = 1, channels;

  // The shapes have been checked: output_size has 2 or 3 elements, kernel_size as many or none (a gradient does not ask for it).
  Windows(const Tensor& self, IntArrayRef kernel_size, IntArrayRef output_size) {
    const std::size_t n = output_size.size();
    for (std::size_t d = 0; d < n; ++d) {
      in[3 - n + d] = self.size(self.dim() - static_cast<int64_t>(n - d));
      out[3 - n + d] = output_size[d];
      if (!kernel_size.empty()) kernel[3 - n + d] = kernel_size[d];
    }
    for (int64_t d = 0; d < self.dim() - static_cast<int64_t>(n); ++d) planes *= self.size(d);
    channels = self.size(-static_cast<int64_t>(n) - 1);
  }
  int64_t input() const { return in[0] * in[1] * in[2]; }
  int64_t output() const { return out[0] * out[1] * out[2]; }
};

// Where the windows of one dimension begin: floor((i + u) * alpha) - floor(u * alpha), the last one at the end.
template <class A>
std::vector<int64_t> begins(A sample, int64_t in, int64_t out, int64_t kernel) {
  std::vector<int64_t> at(static_cast<std::size_t>(out), in - kernel);
  if (out <= 1) return at;
  const A alpha = static_cast<A>(in - kernel) / static_cast<A>(out - 1);
  for (int64_t i = 0; i + 1 < out; ++i)
    at[static_cast<std::size_t>(i)] = std::clamp<int64_t>(
        static_cast<int64_t>((static_cast<A>(i) + sample) * alpha) - static_cast<int64_t>(sample * alpha), 0, in - kernel);
  return at;
}

// `order[d]`: which sample places the windows of dimension d (D, H, W); -1 for a dimension that is not there.
void fractional_max_pool(const Tensor& self, IntArrayRef kernel_size, IntArrayRef output_size, const Tensor& random_samples,
                         const std::array<int, 3>& order, const Tensor& out, const Tensor& indices) {
  const Windows w(self, kernel_size, output_size);
  const Tensor x = self.contiguous(), u = random_samples.contiguous();
  const int64_t n = random_samples.size(2);
  CRESSET_DISPATCH(self.scalar_type(), "fractional_max_pool", CRESSET_FLOATING_AND_HALF_TYPES, [&] {
    using A = opmath_type<scalar_t>;
    const scalar_t* const px = x.const_data_ptr<scalar_t>();
    const scalar_t* const pu = u.const_data_ptr<scalar_t>();
    scalar_t* const py = out.mutable_data_ptr<scalar_t>();
    int64_t* const pi = indices.mutable_data_ptr<int64_t>();
    parallel_for(0, w.planes, std::max<int64_t>(1, 32768 / std::max<int64_t>(1, w.input())), [&](int64_t begin, int64_t end) {
      for (int64_t p = begin; p < end; ++p) {
        std::array<std::vector<int64_t>, 3> starts;
        for (int d = 0; d < 3; ++d)
          starts[d] = begins<A>(order[d] < 0 ? A(0) : static_cast<A>(pu[p * n + order[d]]), w.in[d], w.out[d], w.kernel[d]);
        const scalar_t* const plane = px + p * w.input();
        int64_t at = p * w.output();
        for (int64_t d0 : starts[0]) {
          for (int64_t h0 : starts[1]) {
            for (int64_t w0 : starts[2]) {
              int64_t best = (d0 * w.in[1] + h0) * w.in[2] + w0;
              A value = static_cast<A>(plane[best]);
              for (int64_t d = d0; d < d0 + w.kernel[0]; ++d)
                for (int64_t h = h0; h < h0 + w.kernel[1]; ++h)
                  for (int64_t c = w0; c < w0 + w.kernel[2]; ++c) {
                    const int64_t i = (d * w.in[1] + h) * w.in[2] + c;
                    const A v = static_cast<A>(plane[i]);
                    if (v > value || v != v) {  // not a number wins, the last one stays
                      value = v;
                      best = i;
                    }
                  }
              py[at] = plane[best];
              pi[at++] = best;
            }
          }
        }
      }
    });
  });
}

}  // namespace

void fractional_max_pool2d(const Tensor& self, IntArrayRef kernel_size, IntArrayRef output_size, const Tensor& random_samples,
                           const Tensor& out, const Tensor& indices) {
  fractional_max_pool(self, kernel_size, output_size, random_samples, {-1, 1, 0}, out, indices);
}

void fractional_max_pool3d(const Tensor& self, IntArrayRef kernel_size, IntArrayRef output_size, const Tensor& random_samples,
                           const Tensor& out, const Tensor& indices) {
  fractional_max_pool(self, kernel_size, output_size, random_samples, {0, 1, 2}, out, indices);
}

void fractional_max_pool_backward(const Tensor& grad_output, const Tensor& self, IntArrayRef, IntArrayRef output_size,
                                  const Tensor& indices, const Tensor& out) {
  const Windows w(self, {}, output_size);
  const Tensor g = grad_output.contiguous(), at = indices.contiguous();
  const int64_t* const place = at.const_data_ptr<int64_t>();
  for (int64_t i = 0; i < at.numel(); ++i)
    CRESSET_CHECK_INDEX(place[i] >= 0 && place[i] < w.input(), "fractional_max_pool_backward: index ", place[i], " is out of bounds for ",
                        w.input(), " elements.");
  CRESSET_DISPATCH(out.scalar_type(), "fractional_max_pool_backward", CRESSET_FLOATING_AND_HALF_TYPES, [&] {
    using A = opmath_type<scalar_t>;
    const scalar_t* const from = g.const_data_ptr<scalar_t>();
    scalar_t* const to = out.mutable_data_ptr<scalar_t>();
    std::fill_n(to, out.numel(), scalar_t(0));
    for (int64_t i = 0; i < g.numel(); ++i) {
      scalar_t& t = to[i / w.output() * w.input() + place[i]];
      t = static_cast<scalar_t>(static_cast<A>(t) + static_cast<A>(from[i]));
    }
  });
}

}  // namespace cresset::cpu
