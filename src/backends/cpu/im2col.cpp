// Sliding blocks: the rows of the column matrix are the kernel's positions, so both directions walk plane by plane.
#include <algorithm>

#include <cresset/base/parallel.h>
#include <cresset/core/dispatch_types.h>

#include "cpu/cpu_decl_im2col.h"
#include "ops/im2col.h"

namespace cresset::cpu {
namespace {

#define CRESSET_BLOCK_TYPES(...) CRESSET_FLOATING_AND_COMPLEX_TYPES(__VA_ARGS__) CRESSET_CASES_BOOL(__VA_ARGS__)

// f(column element, plane element or -1 in the padding), for all columns of one plane.
template <class F>
void each_element(const ops::Blocks& b, const F& f) {
  int64_t at = 0;
  for (int64_t kr = 0; kr < b.kernel[0]; ++kr)
    for (int64_t kc = 0; kc < b.kernel[1]; ++kc)
      for (int64_t r = 0; r < b.count[0]; ++r) {
        const int64_t row = r * b.stride[0] - b.padding[0] + kr * b.dilation[0];
        const bool inside = row >= 0 && row < b.image[0];
        for (int64_t c = 0; c < b.count[1]; ++c, ++at) {
          const int64_t column = c * b.stride[1] - b.padding[1] + kc * b.dilation[1];
          f(at, inside && column >= 0 && column < b.image[1] ? row * b.image[1] + column : -1);
        }
      }
}

template <class F>
void each_plane(const ops::Blocks& b, int64_t planes, const F& f) {
  const int64_t columns = b.kernel[0] * b.kernel[1] * b.count[0] * b.count[1];
  parallel_for(0, planes, std::max<int64_t>(1, 32768 / std::max<int64_t>(1, columns)), [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) f(p * b.image[0] * b.image[1], p * columns);
  });
}

}  // namespace

void im2col(const Tensor& self, IntArrayRef kernel_size, IntArrayRef dilation, IntArrayRef padding, IntArrayRef stride, const Tensor& out) {
  if (out.numel() == 0) return;
  const ops::Blocks b =
      ops::sliding_blocks(self.sizes().slice(static_cast<std::size_t>(self.dim() - 2)), kernel_size, dilation, padding, stride);
  const Tensor x = self.contiguous();
  CRESSET_DISPATCH(self.scalar_type(), "im2col_out_cpu", CRESSET_BLOCK_TYPES, [&] {
    const scalar_t* const from = x.const_data_ptr<scalar_t>();
    scalar_t* const to = out.mutable_data_ptr<scalar_t>();
    each_plane(b, x.numel() / (b.image[0] * b.image[1]), [&](int64_t plane, int64_t column) {
      each_element(b, [&](int64_t at, int64_t place) { to[column + at] = place < 0 ? scalar_t(0) : from[plane + place]; });
    });
  });
}

void col2im(const Tensor& self, IntArrayRef output_size, IntArrayRef kernel_size, IntArrayRef dilation, IntArrayRef padding,
            IntArrayRef stride, const Tensor& out) {
  if (out.numel() == 0) return;
  const ops::Blocks b = ops::sliding_blocks(output_size, kernel_size, dilation, padding, stride);
  const Tensor x = self.contiguous();
  CRESSET_DISPATCH(self.scalar_type(), "col2im_out_cpu", CRESSET_BLOCK_TYPES, [&] {
    const scalar_t* const from = x.const_data_ptr<scalar_t>();
    scalar_t* const to = out.mutable_data_ptr<scalar_t>();
    std::fill_n(to, out.numel(), scalar_t(0));
    each_plane(b, out.numel() / (b.image[0] * b.image[1]), [&](int64_t plane, int64_t column) {
      each_element(b, [&](int64_t at, int64_t place) {
        if (place >= 0) to[plane + place] = static_cast<scalar_t>(to[plane + place] + from[column + at]);
      });
    });
  });
}

}  // namespace cresset::cpu
