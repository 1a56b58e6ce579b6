// Derivatives of distances between rows, written with differentiable operators.
#pragma once

#include <array>
#include <tuple>

#include <cresset/core/tensor.h>

namespace cresset::autograd::formulas {

Tensor cdist_backward_x1(const Tensor& grad, const Tensor& x1, const Tensor& x2, double p, const Tensor& result);
Tensor cdist_backward_x2(const Tensor& grad, const Tensor& x1, const Tensor& x2, double p, const Tensor& result);
Tensor cdist_jvp(const Tensor& x1_t, const Tensor& x1, const Tensor& x2_t, const Tensor& x2, double p, const Tensor& result);
/// Gradients of _cdist_backward for (grad, x1, x2, cdist), which it takes as independent.
std::tuple<Tensor, Tensor, Tensor, Tensor> cdist_double_backward(const Tensor& gg, const Tensor& grad, const Tensor& x1, const Tensor& x2,
                                                                 double p, const Tensor& cdist, std::array<bool, 4> mask);
Tensor cdist_slopes_jvp(const Tensor& grad_t, const Tensor& grad, const Tensor& x1_t, const Tensor& x1, const Tensor& x2_t,
                        const Tensor& x2, double p, const Tensor& cdist_t, const Tensor& cdist);
Tensor pdist_jvp(const Tensor& self_t, const Tensor& self, double p, const Tensor& result);
/// Gradients of _pdist_backward for (grad, self, pdist), which it takes as independent.
std::tuple<Tensor, Tensor, Tensor> pdist_double_backward(const Tensor& gg, const Tensor& grad, const Tensor& self, double p,
                                                         const Tensor& pdist, std::array<bool, 3> mask);
Tensor pdist_slopes_jvp(const Tensor& grad_t, const Tensor& grad, const Tensor& self_t, const Tensor& self, double p, const Tensor& pdist_t,
                        const Tensor& pdist);

}  // namespace cresset::autograd::formulas
