// Integrals by the trapezoid rule and derivatives by finite differences, as compositions.
#include <algorithm>
#include <vector>

#include <cresset/ops/functions_arith.h>
#include <cresset/ops/functions_calculus.h>
#include <cresset/ops/functions_concat.h>
#include <cresset/ops/functions_creation.h>
#include <cresset/ops/functions_reduce.h>
#include <cresset/ops/functions_view.h>

#include "ops/ops_decl_calculus.h"
#include "ops/shared/shape_util.h"

namespace cresset::ops {
namespace {

// t[from : from + n] along dim.
Tensor part(const Tensor& t, int64_t dim, int64_t from, int64_t n) {
  return cresset::slice(t, dim, from, from + std::max<int64_t>(n, 0), 1);
}
// t[from : size - to_end] along dim.
Tensor without(const Tensor& t, int64_t dim, int64_t from, int64_t to_end) { return part(t, dim, from, t.size(dim) - from - to_end); }

int64_t checked_dim(int64_t dim, const Tensor& y) {
  CRESSET_CHECK_INDEX(y.dim() > 0, "Dimension specified as ", dim, " but tensor has no dimensions");
  return maybe_wrap_dim(dim, y.dim());
}

void check_dx(const char* op, const Tensor& y, const Scalar& dx) {
  CRESSET_CHECK(y.scalar_type() != kBool, op, ": received a bool input for `y`, but bool is not supported");
  CRESSET_CHECK(!dx.isComplex() && !dx.isBoolean(), op, ": Currently, we only support dx as a real number.");
}

// Distances between neighbouring sample points, shaped to broadcast over y.
Tensor distances(const char* op, const Tensor& y, const Tensor& x, int64_t dim) {
  CRESSET_CHECK(y.scalar_type() != kBool && x.scalar_type() != kBool, op,
                ": received a bool input for `x` or `y`, but bool is not supported");
  if (x.dim() == 1) {
    CRESSET_CHECK(x.size(0) == y.size(dim), op, ": There must be one `x` value for each sample point");
    DimVector sizes(y.dim(), 1);
    sizes[dim] = std::max<int64_t>(x.size(0) - 1, 0);
    return cresset::sub(without(x, 0, 1, 0), without(x, 0, 0, 1)).reshape(sizes);
  }
  Tensor points = x;
  while (points.dim() < y.dim()) points = points.unsqueeze(0);
  return cresset::sub(without(points, dim, 1, 0), without(points, dim, 0, 1));
}

Tensor sums_of_neighbours(const Tensor& y, int64_t dim) { return cresset::add(without(y, dim, 0, 1), without(y, dim, 1, 0)); }

Tensor empty_integral(const Tensor& y, int64_t dim) {
  return cresset::zeros(reduced_sizes(y.sizes(), uint64_t{1} << dim, false), y.options());
}

}  // namespace

// ---- integrals -------------------------------------------------------------------------------------------------------

Tensor trapezoid_x(const Tensor& y, const Tensor& x, int64_t dim) {
  dim = checked_dim(dim, y);
  if (y.size(dim) == 0) return empty_integral(y, dim);
  const Tensor dx = distances("trapezoid", y, x, dim);
  return cresset::div(cresset::sum(cresset::mul(sums_of_neighbours(y, dim), dx), dim), 2);
}
Tensor trapezoid_dx(const Tensor& y, const Scalar& dx, int64_t dim) {
  dim = checked_dim(dim, y);
  if (y.size(dim) == 0) return empty_integral(y, dim);
  check_dx("trapezoid", y, dx);
  // All elements count once, the outer ones half; integers are added up in int64.
  Tensor first = y.select(dim, 0);
  const Tensor last = y.select(dim, -1);
  if (isIntegralType(y.scalar_type(), true)) first = first.to(kLong);
  return cresset::mul(cresset::sub(cresset::sum(y, dim), cresset::mul(cresset::add(first, last), 0.5)), dx);
}
Tensor cumulative_trapezoid_x(const Tensor& y, const Tensor& x, int64_t dim) {
  dim = checked_dim(dim, y);
  const Tensor dx = distances("cumulative_trapezoid", y, x, dim);
  return cresset::div(cresset::cumsum(cresset::mul(sums_of_neighbours(y, dim), dx), dim), 2);
}
Tensor cumulative_trapezoid_dx(const Tensor& y, const Scalar& dx, int64_t dim) {
  dim = checked_dim(dim, y);
  check_dx("cumulative_trapezoid", y, dx);
  return cresset::cumsum(cresset::mul(sums_of_neighbours(y, dim), dx.toDouble() / 2), dim);
}

// ---- derivatives -------------------------------------------------------------------------------------------------------

namespace {

constexpr char kPrefix[] = "torch.gradient expected spacing to be unspecified, a scalar";

// The dimensions to differentiate along; `spacings` is how many distances or coordinate vectors were given, if a list.
DimVector gradient_dims(const Tensor& self, OptionalIntArrayRef dim, std::optional<int64_t> spacings, int64_t edge_order) {
  CRESSET_CHECK(self.scalar_type() != kByte, "torch.gradient does not support uint8 input.");
  DimVector dims;
  if (dim) {
    dims = DimVector(*dim);
    CRESSET_CHECK(!spacings || *spacings == static_cast<int64_t>(dims.size()), kPrefix,
                  " or it's spacing and dim arguments to have the same length, but got a spacing argument of length ", *spacings,
                  " and a dim argument of length ", dims.size(), ".");
  } else {
    for (int64_t d = 0; d < self.dim(); ++d) dims.push_back(d);
    CRESSET_CHECK(!spacings || *spacings == self.dim(), kPrefix, ", or a list of length equal to 'self.dim() = ", self.dim(),
                  "', since dim argument was not given, but got a list of length ", *spacings);
  }
  CRESSET_CHECK(edge_order == 1 || edge_order == 2, "torch.gradient only supports edge_order=1 and edge_order=2.");
  dim_mask(dims, self.dim());
  for (int64_t& d : dims) {
    d = maybe_wrap_dim(d, self.dim());
    CRESSET_CHECK(self.size(d) >= edge_order + 1, "torch.gradient expected each dimension size to be at least edge_order+1");
  }
  return dims;
}

DimVector one_dim(std::optional<int64_t> dim) { return dim ? DimVector{*dim} : DimVector(); }
OptionalIntArrayRef given(std::optional<int64_t> dim, const DimVector& dims) {
  return dim ? OptionalIntArrayRef(IntArrayRef(dims)) : OptionalIntArrayRef();
}

Tensor derivative(const Tensor& f, int64_t dim, const Scalar& spacing, int64_t edge_order) {
  const int64_t n = f.size(dim);
  const auto at = [&](int64_t i) { return part(f, dim, i, 1); };
  const auto over_spacing = [&](const Tensor& t) { return cresset::div(t, spacing); };
  const Tensor inside = over_spacing(cresset::div(cresset::sub(without(f, dim, 2, 0), without(f, dim, 0, 2)), 2));
  Tensor first, last;
  if (edge_order == 1) {
    first = cresset::sub(at(1), at(0));
    last = cresset::sub(at(n - 1), at(n - 2));
  } else {
    const auto one_sided = [&](int64_t a, int64_t b, int64_t c) {
      return cresset::sub(cresset::sub(cresset::mul(at(b), 2), cresset::mul(at(a), 1.5)), cresset::mul(at(c), 0.5));
    };
    first = one_sided(0, 1, 2);
    last = cresset::neg(one_sided(n - 1, n - 2, n - 3));
  }
  const std::vector<Tensor> parts{over_spacing(first), inside, over_spacing(last)};
  return cresset::cat(parts, dim);
}

// Samples at uneven distances: the derivative at a point of the parabola through three neighbours.
Tensor derivative(const Tensor& f, int64_t dim, const Tensor& coordinates, int64_t edge_order) {
  const int64_t n = f.size(dim);
  const Tensor steps = cresset::sub(without(coordinates, 0, 1, 0), without(coordinates, 0, 0, 1));
  DimVector sizes(f.dim(), 1);
  sizes[dim] = -1;
  const auto shaped = [&](const Tensor& t) { return t.reshape(sizes); };
  const auto sum3 = [](const Tensor& a, const Tensor& b, const Tensor& c) { return cresset::add(cresset::add(a, b), c); };
  const Tensor h1 = shaped(without(steps, 0, 0, 1)), h2 = shaped(without(steps, 0, 1, 0)), both = cresset::add(h1, h2);
  const Tensor inside = sum3(cresset::mul(cresset::div(cresset::neg(h2), cresset::mul(h1, both)), without(f, dim, 0, 2)),
                             cresset::mul(cresset::div(cresset::sub(h2, h1), cresset::mul(h1, h2)), without(f, dim, 1, 1)),
                             cresset::mul(cresset::div(h1, cresset::mul(h2, both)), without(f, dim, 2, 0)));
  const auto at = [&](int64_t i) { return part(f, dim, i, 1); };
  const auto step = [&](int64_t i) { return shaped(part(steps, 0, i, 1)); };
  Tensor first, last;
  if (edge_order == 1) {
    first = cresset::div(cresset::sub(at(1), at(0)), step(0));
    last = cresset::div(cresset::sub(at(n - 1), at(n - 2)), step(n - 2));
  } else {
    // With a the step beside the end and b the next one: -(2a+b)/(a(a+b)) f0 + (a+b)/(ab) f1 - a/(b(a+b)) f2.
    const auto one_sided = [&](int64_t i0, int64_t i1, int64_t i2, const Tensor& a, const Tensor& b) {
      const Tensor ab = cresset::add(a, b);
      return sum3(cresset::mul(cresset::div(cresset::neg(cresset::add(a, ab)), cresset::mul(a, ab)), at(i0)),
                  cresset::mul(cresset::div(ab, cresset::mul(a, b)), at(i1)),
                  cresset::mul(cresset::div(cresset::neg(a), cresset::mul(b, ab)), at(i2)));
    };
    first = one_sided(0, 1, 2, step(0), step(1));
    last = cresset::neg(one_sided(n - 1, n - 2, n - 3, step(n - 2), step(n - 3)));
  }
  const std::vector<Tensor> parts{first, inside, last};
  return cresset::cat(parts, dim);
}

// spacing_of(i) is the distance or the coordinates for the i-th of the dimensions.
template <class SpacingOf>
std::vector<Tensor> derivatives(const Tensor& self, const DimVector& dims, int64_t edge_order, const SpacingOf& spacing_of) {
  std::vector<Tensor> out;
  for (std::size_t i = 0; i < dims.size(); ++i) out.push_back(derivative(self, dims[i], spacing_of(i), edge_order));
  return out;
}

std::vector<Tensor> gradient_scalars(const Tensor& self, ArrayRef<Scalar> spacing, OptionalIntArrayRef dim, int64_t edge_order) {
  const DimVector dims = gradient_dims(self, dim, static_cast<int64_t>(spacing.size()), edge_order);
  return derivatives(self, dims, edge_order, [&](std::size_t i) { return spacing[i]; });
}

std::vector<Tensor> gradient_tensors(const Tensor& self, TensorList spacing, OptionalIntArrayRef dim, int64_t edge_order) {
  const DimVector dims = gradient_dims(self, dim, static_cast<int64_t>(spacing.size()), edge_order);
  for (const Tensor& s : spacing)
    CRESSET_CHECK(s.dim() == 1, "torch.gradient expected each element of spacing to have one dimension, but got an element with ", s.dim(),
                  " dimensions!");
  for (std::size_t i = 0; i < dims.size(); ++i)
    CRESSET_CHECK(spacing[i].numel() == self.size(dims[i]), "The size of tensor a (", spacing[i].numel() - 2,
                  ") must match the size of tensor b (", self.size(dims[i]) - 2, ") at non-singleton dimension ", dims[i]);
  return derivatives(self, dims, edge_order, [&](std::size_t i) { return spacing[i]; });
}

}  // namespace

std::vector<Tensor> gradient_scalar_int(const Tensor& self, const std::optional<Scalar>& spacing, std::optional<int64_t> dim,
                                        int64_t edge_order) {
  const DimVector single = one_dim(dim);
  const DimVector dims = gradient_dims(self, given(dim, single), std::nullopt, edge_order);
  return derivatives(self, dims, edge_order, [&](std::size_t) { return spacing.value_or(1); });
}
std::vector<Tensor> gradient_scalar_array(const Tensor& self, const Scalar& spacing, IntArrayRef dim, int64_t edge_order) {
  return derivatives(self, gradient_dims(self, dim, std::nullopt, edge_order), edge_order, [&](std::size_t) { return spacing; });
}
std::vector<Tensor> gradient_array(const Tensor& self, IntArrayRef dim, int64_t edge_order) {
  return gradient_scalar_array(self, 1, dim, edge_order);
}
std::vector<Tensor> gradient_scalars_int(const Tensor& self, ArrayRef<Scalar> spacing, std::optional<int64_t> dim, int64_t edge_order) {
  const DimVector dims = one_dim(dim);
  return gradient_scalars(self, spacing, given(dim, dims), edge_order);
}
std::vector<Tensor> gradient_scalars_array(const Tensor& self, ArrayRef<Scalar> spacing, IntArrayRef dim, int64_t edge_order) {
  return gradient_scalars(self, spacing, dim, edge_order);
}
std::vector<Tensor> gradient_tensors_int(const Tensor& self, TensorList spacing, std::optional<int64_t> dim, int64_t edge_order) {
  const DimVector dims = one_dim(dim);
  return gradient_tensors(self, spacing, given(dim, dims), edge_order);
}
std::vector<Tensor> gradient_tensors_array(const Tensor& self, TensorList spacing, IntArrayRef dim, int64_t edge_order) {
  return gradient_tensors(self, spacing, dim, edge_order);
}

}  // namespace cresset::ops
