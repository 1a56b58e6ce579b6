// Gradients of joining, repeating and padding.
#include "autograd/formulas_concat.h"

#include <cresset/ops/functions_concat.h>
#include <cresset/ops/functions_creation.h>
#include <cresset/ops/functions_reduce.h>
#include <cresset/ops/functions_view.h>

namespace cresset::autograd::formulas {

namespace {
// A real tensor takes part in a complex result with its real part only.
Tensor in_type(const Tensor& grad, ScalarType type) { return grad.is_complex() && !isComplexType(type) ? cresset::real(grad) : grad; }
}  // namespace

std::vector<Tensor> cat_backward(const Tensor& grad, const std::vector<DimVector>& sizes, const std::vector<ScalarType>& types,
                                 int64_t dim) {
  std::vector<Tensor> out;
  dim = maybe_wrap_dim(dim, grad.dim());
  int64_t start = 0;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i].size() == 1 && sizes[i][0] == 0) {
      out.push_back(cresset::zeros({0}, grad.options().dtype(types[i])));
      continue;
    }
    const int64_t n = sizes[i][dim];
    out.push_back(in_type(cresset::narrow(grad, dim, start, n), types[i]));
    start += n;
  }
  return out;
}

std::vector<Tensor> stack_backward(const Tensor& grad, const std::vector<ScalarType>& types, int64_t dim) {
  std::vector<Tensor> out = cresset::unbind(grad, dim);
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = in_type(out[i], types[i]);
  return out;
}

Tensor repeat_backward(const Tensor& grad, IntArrayRef repeats, IntArrayRef sizes) {
  for (int64_t r : repeats)
    if (r == 0) return cresset::zeros(sizes, grad.options());
  const std::size_t extra = repeats.size() - sizes.size();
  DimVector split, dims;
  for (std::size_t i = 0; i < repeats.size(); ++i) {
    dims.push_back(static_cast<int64_t>(split.size()));
    split.push_back(repeats[i]);
    if (i >= extra) split.push_back(sizes[i - extra]);
  }
  if (dims.empty()) return grad;
  return cresset::sum(cresset::reshape(grad, split), IntArrayRef(dims));
}

Tensor roll_backward(const Tensor& grad, IntArrayRef shifts, IntArrayRef dims) {
  DimVector back(shifts);
  for (int64_t& s : back) s = -s;
  return cresset::roll(grad, back, dims);
}

Tensor constant_pad_nd_backward(const Tensor& grad, IntArrayRef pad) {
  DimVector back(pad);
  for (int64_t& p : back) p = -p;
  return cresset::constant_pad_nd(grad, back, 0);
}

}  // namespace cresset::autograd::formulas
