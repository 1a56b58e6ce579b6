// Starting values of weights: Glorot and Bengio 2010, He et al. 2015, Saxe et al. 2013, Martens 2010.
#include <cresset/nn/init.h>

#include <cmath>

#include <cresset/ops/functions_arith.h>
#include <cresset/ops/functions_copy.h>
#include <cresset/ops/functions_creation.h>
#include <cresset/ops/functions_decomposition.h>
#include <cresset/ops/functions_random.h>
#include <cresset/ops/functions_view.h>

namespace cresset::nn::init {

namespace {
double kaiming_std(const Tensor& tensor, double a, const FanModeType& mode, const NonlinearityType& nonlinearity) {
  const auto [in, out] = _calculate_fan_in_and_fan_out(tensor);
  const int64_t fan = std::holds_alternative<enumtype::kFanIn>(mode) ? in : out;
  return calculate_gain(nonlinearity, a) / std::sqrt(static_cast<double>(fan));
}
double xavier_std(const Tensor& tensor, double gain) {
  const auto [in, out] = _calculate_fan_in_and_fan_out(tensor);
  return gain * std::sqrt(2.0 / static_cast<double>(in + out));
}
}  // namespace

double calculate_gain(const NonlinearityType& nonlinearity, double param) {
  if (std::holds_alternative<enumtype::kTanh>(nonlinearity)) return 5.0 / 3.0;
  if (std::holds_alternative<enumtype::kReLU>(nonlinearity)) return std::sqrt(2.0);
  if (std::holds_alternative<enumtype::kLeakyReLU>(nonlinearity)) return std::sqrt(2.0 / (1 + param * param));
  return 1;
}

Tensor constant_(Tensor tensor, const Scalar& value) {
  const NoGradGuard no_grad;
  return tensor.fill_(value);
}
Tensor zeros_(Tensor tensor) { return constant_(std::move(tensor), 0); }
Tensor ones_(Tensor tensor) { return constant_(std::move(tensor), 1); }

Tensor eye_(Tensor matrix) {
  const NoGradGuard no_grad;
  CRESSET_CHECK(matrix.dim() == 2, "Only tensors with 2 dimensions are supported");
  return matrix.copy_(cresset::eye(matrix.size(0), matrix.size(1), matrix.options()));
}

Tensor dirac_(Tensor tensor) {
  const NoGradGuard no_grad;
  CRESSET_CHECK(tensor.dim() >= 3 && tensor.dim() <= 5, "Only tensors with 3, 4, or 5 dimensions are supported");
  tensor.zero_();
  for (int64_t i = 0; i < std::min(tensor.size(0), tensor.size(1)); ++i) {
    Tensor at = tensor[i][i];
    while (at.dim() > 0) at = at[at.size(0) / 2];
    at.fill_(1);
  }
  return tensor;
}

Tensor normal_(Tensor tensor, double mean, double std) {
  const NoGradGuard no_grad;
  return tensor.normal_(mean, std);
}
Tensor uniform_(Tensor tensor, double low, double high) {
  const NoGradGuard no_grad;
  return tensor.uniform_(low, high);
}

Tensor orthogonal_(Tensor tensor, double gain) {
  const NoGradGuard no_grad;
  CRESSET_CHECK(tensor.dim() >= 2, "Only tensors with 2 or more dimensions are supported");
  const int64_t rows = tensor.size(0), columns = rows == 0 ? 0 : tensor.numel() / rows;
  Tensor flat = cresset::empty({rows, columns}, tensor.options()).normal_(0, 1);
  if (rows < columns) flat = flat.t();
  auto [q, r] = cresset::linalg_qr(flat);
  q = q.mul(r.diagonal().sign());  // makes the result uniform over the orthogonal matrices
  if (rows < columns) q = q.t();
  return tensor.copy_(q.reshape(tensor.sizes())).mul_(gain);
}

Tensor sparse_(Tensor tensor, double sparsity, double std) {
  const NoGradGuard no_grad;
  CRESSET_CHECK(tensor.dim() == 2, "Only tensors with 2 dimensions are supported");
  const int64_t rows = tensor.size(0), zeros = static_cast<int64_t>(std::ceil(sparsity * static_cast<double>(rows)));
  tensor.normal_(0, std);
  for (int64_t column = 0; column < tensor.size(1); ++column)
    tensor.select(1, column).index_fill_(0, cresset::randperm(rows, TensorOptions(kLong)).narrow(0, 0, zeros), 0);
  return tensor;
}

Tensor kaiming_normal_(Tensor tensor, double a, const FanModeType& mode, const NonlinearityType& nonlinearity) {
  const double std = kaiming_std(tensor, a, mode, nonlinearity);
  return normal_(std::move(tensor), 0, std);
}
Tensor kaiming_uniform_(Tensor tensor, double a, const FanModeType& mode, const NonlinearityType& nonlinearity) {
  const double bound = std::sqrt(3.0) * kaiming_std(tensor, a, mode, nonlinearity);
  return uniform_(std::move(tensor), -bound, bound);
}
Tensor xavier_normal_(Tensor tensor, double gain) {
  const double std = xavier_std(tensor, gain);
  return normal_(std::move(tensor), 0, std);
}
Tensor xavier_uniform_(Tensor tensor, double gain) {
  const double bound = std::sqrt(3.0) * xavier_std(tensor, gain);
  return uniform_(std::move(tensor), -bound, bound);
}

std::tuple<int64_t, int64_t> _calculate_fan_in_and_fan_out(const Tensor& tensor) {
  CRESSET_CHECK(tensor.dim() >= 2, "Fan in and fan out can not be computed for tensor with fewer than 2 dimensions");
  int64_t field = 1;
  for (int64_t d = 2; d < tensor.dim(); ++d) field *= tensor.size(d);
  return {tensor.size(1) * field, tensor.size(0) * field};
}

}  // namespace cresset::nn::init
