// Forward formulas of tangents that may be nothing: products as formulas write them, and what does not fit on one line.
#pragma once

#include <optional>
#include <string_view>

#include "autograd/tangent.h"

namespace cresset::autograd::formulas {

Tangent scaled(const Tangent& t, const Scalar& factor);
Tangent mm(const Tangent& a, const Tensor& b);
Tangent mm(const Tensor& a, const Tangent& b);
Tangent mv(const Tangent& a, const Tensor& b);
Tangent mv(const Tensor& a, const Tangent& b);
Tangent bmm(const Tangent& a, const Tensor& b);
Tangent bmm(const Tensor& a, const Tangent& b);
Tangent dot(const Tangent& a, const Tensor& b);
Tangent dot(const Tensor& a, const Tangent& b);
Tangent linalg_cross(const Tangent& a, const Tensor& b, int64_t dim);
Tangent linalg_cross(const Tensor& a, const Tangent& b, int64_t dim);
Tangent div_mode_jvp(const Tangent& self_t, const Tensor& self_p, const Tangent& other_t, const Tensor& other_p,
                     std::optional<std::string_view> rounding_mode);
Tangent pow_jvp(const Tangent& self_t, const Tensor& self_p, const Tangent& exponent_t, const Tensor& exponent_p, const Tensor& result);
Tangent polar_jvp(const Tangent& abs_t, const Tangent& angle_t, const Tensor& angle_p, const Tensor& result);

}  // namespace cresset::autograd::formulas
