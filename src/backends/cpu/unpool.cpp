// Max unpooling: every plane by itself. Indices are all checked before the first write.
#include <algorithm>
#include <string>

#include <cresset/base/parallel.h>
#include <cresset/core/dispatch_types.h>

#include "cpu/cpu_decl_unpool.h"

namespace cresset::cpu {
namespace {

void max_unpool(const Tensor& self, const Tensor& indices, IntArrayRef output_size, const Tensor& out) {
  const int64_t n = static_cast<int64_t>(output_size.size());
  int64_t from_plane = 1, to_plane = 1;
  std::string volume;
  for (int64_t d = 0; d < n; ++d) {
    from_plane *= self.size(self.dim() - n + d);
    to_plane *= output_size[static_cast<std::size_t>(d)];
    volume += (d ? "x" : "") + std::to_string(output_size[static_cast<std::size_t>(d)]);
  }
  if (self.numel() == 0) return;
  const Tensor x = self.contiguous(), at = indices.contiguous();
  const int64_t* const place = at.const_data_ptr<int64_t>();
  for (int64_t i = 0; i < at.numel(); ++i)
    CRESSET_CHECK(place[i] >= 0 && place[i] < to_plane, "Found an invalid max index: ", place[i], " (output volumes are of size ", volume,
                  ")");
  const Tensor y = out.is_contiguous() ? out : detail::empty_cpu(out.sizes(), out.scalar_type());
  CRESSET_DISPATCH(self.scalar_type(), n == 2 ? "max_unpool2d" : "max_unpool3d", CRESSET_FLOATING_AND_HALF_TYPES, [&] {
    const scalar_t* const from = x.const_data_ptr<scalar_t>();
    scalar_t* const to = y.mutable_data_ptr<scalar_t>();
    const int64_t planes = x.numel() / from_plane;
    parallel_for(0, planes, std::max<int64_t>(1, 32768 / (from_plane + to_plane)), [&](int64_t begin, int64_t end) {
      for (int64_t p = begin; p < end; ++p) {
        std::fill_n(to + p * to_plane, to_plane, scalar_t(0));
        for (int64_t i = p * from_plane; i < (p + 1) * from_plane; ++i) to[p * to_plane + place[i]] = from[i];
      }
    });
  });
  if (!y.is_same(out)) Tensor(out).copy_(y);
}

}  // namespace

void max_unpool2d(const Tensor& self, const Tensor& indices, IntArrayRef output_size, const Tensor& out) {
  max_unpool(self, indices, output_size, out);
}

void max_unpool3d(const Tensor& self, const Tensor& indices, IntArrayRef output_size, IntArrayRef, IntArrayRef, const Tensor& out) {
  max_unpool(self, indices, output_size, out);
}

}  // namespace cresset::cpu
