// Cross products.
#include <cresset/core/dispatch_types.h>

#include "backends/cpu/lines.h"
#include "cpu/cpu_decl_linalg.h"

namespace cresset::cpu {

void cross(const Tensor& self, const Tensor& other, int64_t dim, const Tensor& out) {
  if (out.numel() == 0) return;
  const Tensor a = self.expand(out.sizes()), b = other.expand(out.sizes());
  CRESSET_DISPATCH(out.scalar_type(), "cross", CRESSET_ALL_TYPES, [&] {
    using C = opmath_type<scalar_t>;
    const scalar_t *const pa = a.const_data_ptr<scalar_t>(), *const pb = b.const_data_ptr<scalar_t>();
    scalar_t* const po = out.mutable_data_ptr<scalar_t>();
    for_each_line<3>(dim, out.sizes(), {out.strides(), a.strides(), b.strides()}, [&](const LineAt<3>& at) {
      const auto x = [&](int64_t i) { return static_cast<C>(pa[at.offset[1] + i % 3 * at.stride[1]]); };
      const auto y = [&](int64_t i) { return static_cast<C>(pb[at.offset[2] + i % 3 * at.stride[2]]); };
      for (int64_t i = 0; i < 3; ++i)
        po[at.offset[0] + i * at.stride[0]] = static_cast<scalar_t>(x(i + 1) * y(i + 2) - x(i + 2) * y(i + 1));
    });
  });
}

}  // namespace cresset::cpu
