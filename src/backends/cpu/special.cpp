// Kernels of special functions that are not pointwise.
#include <cmath>

#include <cresset/core/dispatch_types.h>

#include "cpu/cpu_decl_special.h"
#include "ops/shared/structured.h"

namespace cresset::cpu {

void frexp(const Tensor& self, const Tensor& mantissa, const Tensor& exponent) {
  // All three in one order of elements in memory.
  const Tensor& to = mantissa;
  Tensor in = self;
  if (self.strides() != to.strides()) {
    in = detail::empty_strided_cpu(to.sizes(), to.strides(), self.scalar_type());
    ops::copy_data(self, in);
  }
  int32_t* const exponents = exponent.mutable_data_ptr<int32_t>();
  CRESSET_DISPATCH(in.scalar_type(), "frexp", CRESSET_FLOATING_AND_HALF_TYPES, [&] {
    using C = opmath_type<scalar_t>;
    const scalar_t* const from = in.const_data_ptr<scalar_t>();
    scalar_t* const mantissas = to.mutable_data_ptr<scalar_t>();
    for (int64_t i = 0; i < in.numel(); ++i) {
      const C x = static_cast<C>(from[i]);
      int e = 0;
      // The C standard leaves the exponent of inf and NaN open; PyTorch has 0.
      mantissas[i] = static_cast<scalar_t>(std::isfinite(x) ? std::frexp(x, &e) : x);
      exponents[i] = e;
    }
  });
}

}  // namespace cresset::cpu
