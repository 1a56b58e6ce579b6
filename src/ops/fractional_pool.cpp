// Shape rules of fractional max pooling.
#include "ops/ops_decl_fractional_pool.h"
#include "ops/shared/shape_util.h"

namespace cresset::ops {
namespace {

constexpr const char* kNames[] = {"time", "height", "width"};

std::array<TensorSpec, 2> pooled(const Tensor& self, IntArrayRef kernel_size, IntArrayRef output_size, const Tensor& samples, int64_t n) {
  const auto list = [&](const char* name, IntArrayRef values, int64_t least) {
    CRESSET_CHECK(static_cast<int64_t>(values.size()) == n, "fractional_max_pool", n, "d: ", name,
                  " must either be a single Int or tuple of Ints");
    for (int64_t v : values)
      CRESSET_CHECK(v >= least, "fractional_max_pool", n, "d: ", name, " must be ", least == 0 ? "at least" : "greater than", " zero; got ",
                    values);
  };
  list("kernel_size", kernel_size, 1);
  list("output_size", output_size, 0);  // no windows are no elements
  const char* const suffix = n == 2 ? "d(): Expected " : "d_out(): Expected ";
  CRESSET_CHECK(self.dim() == n + 1 || self.dim() == n + 2, "fractional_max_pool", n, suffix, n + 1, "D or ", n + 2,
                "D tensor, but got: ", self.sizes());
  for (int64_t d = 1; d < self.dim(); ++d)
    CRESSET_CHECK(self.size(d) > 0, "fractional_max_pool", n, suffix, "input to have non-zero size for non-batch dimensions, but got",
                  self.sizes(), " with dimension ", d, " being empty.");
  DimVector sizes(self.sizes());
  for (int64_t d = 0; d < n; ++d) {
    const auto k = static_cast<std::size_t>(d);
    const int64_t in = self.size(self.dim() - n + d);
    // PyTorch wants one place to spare in three dimensions.
    CRESSET_CHECK(output_size[k] + kernel_size[k] - (n == 2 ? 1 : 0) <= in, "fractional_max_pool", n, "d(): pool ", kNames[3 - n + d], " ",
                  kernel_size[k], " too large relative to input ", kNames[3 - n + d], " ", in);
    sizes[static_cast<std::size_t>(self.dim() - n + d)] = output_size[k];
  }
  const int64_t batch = self.dim() == n + 2 ? self.size(0) : 1;
  CRESSET_CHECK(samples.scalar_type() == self.scalar_type(), "Expect _random_samples to have the same dtype as input");
  CRESSET_CHECK(samples.dim() == 3, "Expect _random_samples to have 3 dimensions, got ", samples.dim());
  CRESSET_CHECK(samples.size(0) >= batch, "Expect _random_samples.size(0) no less then input batch size.");
  CRESSET_CHECK(samples.size(1) == self.size(-n - 1), "Expect _random_samples.size(1) equals to input channel size.");
  CRESSET_CHECK(samples.size(2) == n, "Expect _random_samples.size(2) equals to ", n, "; got ", samples.size(2), ".");
  return {spec_like(self, sizes), spec_like(self, sizes, kLong)};
}

}  // namespace

std::array<TensorSpec, 2> fractional_max_pool2d_shape(const Tensor& self, IntArrayRef kernel_size, IntArrayRef output_size,
                                                      const Tensor& random_samples) {
  return pooled(self, kernel_size, output_size, random_samples, 2);
}

std::array<TensorSpec, 2> fractional_max_pool3d_shape(const Tensor& self, IntArrayRef kernel_size, IntArrayRef output_size,
                                                      const Tensor& random_samples) {
  return pooled(self, kernel_size, output_size, random_samples, 3);
}

namespace {

TensorSpec pooled_backward(std::size_t n, const Tensor& grad_output, const Tensor& self, IntArrayRef output_size, const Tensor& indices) {
  CRESSET_CHECK(output_size.size() == n, "fractional_max_pool", n, "d_backward(): output_size must have ", n, " elements; got ",
                output_size);
  CRESSET_CHECK(self.dim() == grad_output.dim() && self.dim() > static_cast<int64_t>(n), "fractional_max_pool", n,
                "d_backward(): a gradient with the dimensions of the input was required; got ", grad_output.sizes(), " for ", self.sizes());
  DimVector sizes(self.sizes());
  for (std::size_t d = 0; d < n; ++d) sizes[sizes.size() - n + d] = output_size[d];
  CRESSET_CHECK(grad_output.sizes() == IntArrayRef(sizes) && indices.sizes() == IntArrayRef(sizes) && indices.scalar_type() == kLong,
                "fractional_max_pool", n, "d_backward(): a gradient and int64 indices of size ", sizes, " were required; got ",
                grad_output.sizes(), " and ", indices.sizes());
  return spec_like(self, self.sizes());
}

}  // namespace

TensorSpec fractional_max_pool2d_backward_shape(const Tensor& grad_output, const Tensor& self, IntArrayRef, IntArrayRef output_size,
                                                const Tensor& indices) {
  return pooled_backward(2, grad_output, self, output_size, indices);
}

TensorSpec fractional_max_pool3d_backward_shape(const Tensor& grad_output, const Tensor& self, IntArrayRef, IntArrayRef output_size,
                                                const Tensor& indices) {
  return pooled_backward(3, grad_output, self, output_size, indices);
}

}  // namespace cresset::ops
