// Sizes, strides and checks of the three Fourier transforms, and the transforms by name made of them.
#include <algorithm>
#include <array>
#include <numeric>

#include <cresset/ops/functions_concat.h>
#include <cresset/ops/functions_copy.h>
#include <cresset/ops/functions_fft.h>
#include <cresset/ops/functions_math.h>
#include <cresset/ops/functions_view.h>

#include "ops/ops_decl_fft.h"
#include "ops/shared/shape_util.h"
#include "ops/shared/structured.h"

namespace cresset::ops {
namespace {

enum Normalization : int64_t { kNone = 0, kByRoot = 1, kByCount = 2 };

void check_normalization(int64_t normalization) {
  CRESSET_CHECK(normalization >= kNone && normalization <= kByCount,
                "fft: normalization 0 (none), 1 (by the root of the number of points) or 2 (by that number) was required; given ",
                normalization, ".");
}

void check_points(int64_t n) { CRESSET_CHECK(n >= 1, "Invalid number of data points (", n, ") specified"); }

DimVector checked_dims(const Tensor& self, IntArrayRef dims) {
  dim_mask(dims, self.dim());
  DimVector wrapped;
  for (int64_t d : dims) {
    wrapped.push_back(maybe_wrap_dim(d, self.dim()));
    check_points(self.size(wrapped.back()));
  }
  return wrapped;
}

// A dense result in which transformed dimensions lie innermost: first the others by their strides in self, then the transformed ones
// by theirs, but the last of them stays last when `last_stays`. This is PyTorch's layout with MKL.
TensorSpec transform_spec(const Tensor& self, IntArrayRef sizes, ScalarType dtype, const DimVector& dims, bool last_stays) {
  const auto larger_stride = [&](int64_t a, int64_t b) { return self.stride(a) > self.stride(b); };
  DimVector order(static_cast<std::size_t>(self.dim()));
  std::iota(order.begin(), order.end(), int64_t{0});
  const auto middle =
      std::partition(order.begin(), order.end(), [&](int64_t d) { return std::find(dims.begin(), dims.end(), d) == dims.end(); });
  std::stable_sort(order.begin(), middle, larger_stride);
  DimVector transformed = dims;
  std::stable_sort(transformed.begin(), transformed.end() - (last_stays ? 1 : 0), larger_stride);
  std::copy(transformed.begin(), transformed.end(), middle);
  TensorSpec spec = spec_like(self, sizes, dtype);
  DimVector strides(static_cast<std::size_t>(self.dim()));
  int64_t stride = 1;
  for (auto d = order.end(); d != order.begin();) {
    --d;
    strides[*d] = stride;
    stride *= std::max<int64_t>(1, sizes[*d]);
  }
  spec.strides = strides;
  return spec;
}

// The real type on which a transform computes, for complex and real arguments alike.
void check_transform_type(ScalarType real) {
  CRESSET_CHECK(real == kFloat || real == kDouble, "FFT doesn't support tensors of type: ", toString(real));
}

}  // namespace

TensorSpec fft_r2c_shape(const Tensor& self, IntArrayRef dim, int64_t normalization, bool onesided) {
  CRESSET_CHECK(self.is_floating_point(), "Only supports floating-point dtypes, but found: ", toString(self.scalar_type()));
  check_transform_type(self.scalar_type());
  CRESSET_CHECK(!dim.empty(), "_fft_r2c: at least one dimension was required; none was given.");
  check_normalization(normalization);
  const DimVector dims = checked_dims(self, dim);
  DimVector sizes(self.sizes());
  if (onesided) sizes[dims.back()] = sizes[dims.back()] / 2 + 1;
  return transform_spec(self, sizes, toComplexType(self.scalar_type()), dims, true);
}

TensorSpec fft_c2r_shape(const Tensor& self, IntArrayRef dim, int64_t normalization, int64_t last_dim_size) {
  CRESSET_CHECK(self.is_complex(), "Only supports complex dtypes, but found: ", toString(self.scalar_type()));
  check_transform_type(toRealValueType(self.scalar_type()));
  CRESSET_CHECK(!dim.empty(), "_fft_c2r: at least one dimension was required; none was given.");
  check_normalization(normalization);
  const DimVector dims = checked_dims(self, dim);
  check_points(last_dim_size);
  DimVector sizes(self.sizes());
  CRESSET_CHECK(sizes[dims.back()] >= last_dim_size / 2 + 1, "_fft_c2r: at least ", last_dim_size / 2 + 1,
                " values in the last transformed dimension were required for ", last_dim_size, " points; given ", sizes[dims.back()], ".");
  sizes[dims.back()] = last_dim_size;
  return transform_spec(self, sizes, toRealValueType(self.scalar_type()), dims, true);
}

TensorSpec fft_c2c_shape(const Tensor& self, IntArrayRef dim, int64_t normalization, bool) {
  CRESSET_CHECK(self.is_complex(), "Only supports complex dtypes, but found: ", toString(self.scalar_type()));
  check_transform_type(toRealValueType(self.scalar_type()));
  check_normalization(normalization);
  const DimVector dims = checked_dims(self, dim);
  return transform_spec(self, self.sizes(), self.scalar_type(), dims, false);
}

namespace {

using Norm = std::optional<std::string_view>;

// "backward" (the default) divides the inverse transform by the number of points, "forward" the forward one, "ortho" both by its root.
int64_t normalization_of(Norm norm, bool forward) {
  if (!norm || *norm == "backward") return forward ? kNone : kByCount;
  if (*norm == "forward") return forward ? kByCount : kNone;
  CRESSET_CHECK(*norm == "ortho", "Invalid normalization mode: \"", *norm, "\"");
  return kByRoot;
}

// self in a type that has transforms: integers become the default floating type, and real numbers complex when asked for.
Tensor promoted(const Tensor& self, bool complex) {
  ScalarType type = self.scalar_type();
  if (isIntegralType(type, true)) type = get_default_dtype();
  CRESSET_CHECK(type == kFloat || type == kDouble || isComplexType(type), "Unsupported dtype ", toString(type));
  if (complex && !isComplexType(type)) type = toComplexType(type);
  return type == self.scalar_type() ? self : self.to(type);
}

Tensor promoted_real(const Tensor& self, const char* name, const char* real) {
  CRESSET_CHECK(!self.is_complex(), name, " expects a ", real, " input tensor, but got ", toString(self.scalar_type()));
  return promoted(self, false);
}

// Cut or padded with zeros at the end to the given sizes of dims.
Tensor resized(Tensor x, IntArrayRef dims, IntArrayRef sizes) {
  DimVector pad(static_cast<std::size_t>(2 * x.dim()), 0);
  bool grows = false;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    const int64_t missing = sizes[i] - x.size(dims[i]);
    if (missing < 0) x = x.narrow(dims[i], 0, sizes[i]);
    if (missing <= 0) continue;
    pad[2 * (x.dim() - dims[i]) - 1] = missing;
    grows = true;
  }
  return grows ? cresset::constant_pad_nd(x, pad, 0) : x;
}

int64_t checked_dim(const Tensor& self, int64_t dim) {
  CRESSET_CHECK_INDEX(self.dim() > 0, "Dimension specified as ", dim, " but tensor has no dimensions");
  return maybe_wrap_dim(dim, self.dim());
}

Tensor complex_1d(const Tensor& self, std::optional<int64_t> n, int64_t dim, Norm norm, bool forward) {
  Tensor x = promoted(self, false);
  const int64_t d = checked_dim(x, dim), points = n.value_or(x.size(d));
  check_points(points);
  const int64_t normalization = normalization_of(norm, forward);
  x = resized(x, {d}, {points});
  if (x.is_complex()) return cresset::_fft_c2c(x, {d}, normalization, forward);
  const Tensor spectrum = cresset::_fft_r2c(x, {d}, normalization, false);
  return forward ? spectrum : cresset::conj(spectrum);
}

// The onesided transform of real input; the inverse is its conjugate.
Tensor real_1d(const char* name, const Tensor& self, std::optional<int64_t> n, int64_t dim, Norm norm, bool forward) {
  const Tensor x = promoted_real(self, name, "real");
  const int64_t d = checked_dim(x, dim), points = n.value_or(x.size(d));
  check_points(points);
  const Tensor spectrum = cresset::_fft_r2c(resized(x, {d}, {points}), {d}, normalization_of(norm, forward), true);
  return forward ? spectrum : cresset::conj(spectrum);
}

// Real output from half a spectrum; the forward transform is the inverse one of the conjugate.
Tensor to_real_1d(const Tensor& self, std::optional<int64_t> n, int64_t dim, Norm norm, bool forward) {
  Tensor x = promoted(self, true);
  const int64_t d = checked_dim(x, dim), points = n.value_or(2 * (x.size(d) - 1));
  check_points(points);
  x = resized(x, {d}, {points / 2 + 1});
  return cresset::_fft_c2r(forward ? cresset::conj(x) : x, {d}, normalization_of(norm, forward), points);
}

// What a transform over several dimensions goes over.
struct Extent {
  DimVector dims, sizes;
};

// s gives sizes (-1: as they are) of dim, or of the last dimensions.
Extent extent_of(const Tensor& self, OptionalIntArrayRef s, OptionalIntArrayRef dim) {
  Extent e;
  if (dim) {
    for (int64_t d : *dim) e.dims.push_back(checked_dim(self, d));
    DimVector sorted = e.dims;
    std::sort(sorted.begin(), sorted.end());
    CRESSET_CHECK(std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end(), "FFT dims must be unique");
    CRESSET_CHECK(!s || s->size() == e.dims.size(), "When given, dim and shape arguments must have the same length");
  } else {
    const int64_t count = s ? static_cast<int64_t>(s->size()) : self.dim();
    CRESSET_CHECK(count <= self.dim(), "Got shape with ", count, " values but input tensor only has ", self.dim(), " dimensions.");
    for (int64_t d = self.dim() - count; d < self.dim(); ++d) e.dims.push_back(d);
  }
  for (std::size_t i = 0; i < e.dims.size(); ++i) e.sizes.push_back(s && (*s)[i] != -1 ? (*s)[i] : self.size(e.dims[i]));
  return e;
}

void check_sizes(const Extent& e) {
  for (int64_t n : e.sizes) check_points(n);
}

Tensor complex_nd(const Tensor& self, OptionalIntArrayRef s, OptionalIntArrayRef dim, Norm norm, bool forward) {
  const Tensor x = promoted(self, true);
  const Extent e = extent_of(x, s, dim);
  check_sizes(e);
  return cresset::_fft_c2c(resized(x, e.dims, e.sizes), e.dims, normalization_of(norm, forward), forward);
}

// Extent of a transform between real and complex numbers; `last_points` is the number of real points in its last dimension.
Extent real_extent(const char* name, const Tensor& x, OptionalIntArrayRef s, OptionalIntArrayRef dim) {
  Extent e = extent_of(x, s, dim);
  CRESSET_CHECK(!e.dims.empty(), name, " must transform at least one axis");
  return e;
}

// Turns the size of the half spectrum in the last dimension into the number of real points, unless s names that.
int64_t real_points(Extent& e, OptionalIntArrayRef s) {
  const int64_t points = s && s->back() != -1 ? s->back() : 2 * (e.sizes.back() - 1);
  e.sizes.back() = points;
  check_sizes(e);
  e.sizes.back() = points / 2 + 1;
  return points;
}

Tensor& store(const char* name, bool complex, const Tensor& result, Tensor& out) {
  CRESSET_CHECK(complex ? out.is_complex() : out.is_floating_point(), name, " expects a ", complex ? "complex" : "floating point",
                " output tensor, but got ", toString(out.scalar_type()));
  copy_to_out(name, result, out, OutDtype::Castable);
  return out;
}

}  // namespace

Tensor fft_fft_impl(const Tensor& self, std::optional<int64_t> n, int64_t dim, Norm norm) { return complex_1d(self, n, dim, norm, true); }
Tensor fft_ifft_impl(const Tensor& self, std::optional<int64_t> n, int64_t dim, Norm norm) { return complex_1d(self, n, dim, norm, false); }
Tensor fft_rfft_impl(const Tensor& self, std::optional<int64_t> n, int64_t dim, Norm norm) {
  return real_1d("rfft", self, n, dim, norm, true);
}
Tensor fft_ihfft_impl(const Tensor& self, std::optional<int64_t> n, int64_t dim, Norm norm) {
  return real_1d("ihfft", self, n, dim, norm, false);
}
Tensor fft_irfft_impl(const Tensor& self, std::optional<int64_t> n, int64_t dim, Norm norm) {
  return to_real_1d(self, n, dim, norm, false);
}
Tensor fft_hfft_impl(const Tensor& self, std::optional<int64_t> n, int64_t dim, Norm norm) { return to_real_1d(self, n, dim, norm, true); }

Tensor fft_fftn_impl(const Tensor& self, OptionalIntArrayRef s, OptionalIntArrayRef dim, Norm norm) {
  return complex_nd(self, s, dim, norm, true);
}
Tensor fft_ifftn_impl(const Tensor& self, OptionalIntArrayRef s, OptionalIntArrayRef dim, Norm norm) {
  return complex_nd(self, s, dim, norm, false);
}

Tensor fft_rfftn_impl(const Tensor& self, OptionalIntArrayRef s, OptionalIntArrayRef dim, Norm norm) {
  const Tensor x = promoted_real(self, "rfftn", "real-valued");
  const Extent e = real_extent("rfftn", x, s, dim);
  check_sizes(e);
  return cresset::_fft_r2c(resized(x, e.dims, e.sizes), e.dims, normalization_of(norm, true), true);
}

Tensor fft_irfftn_impl(const Tensor& self, OptionalIntArrayRef s, OptionalIntArrayRef dim, Norm norm) {
  const Tensor x = promoted(self, true);
  Extent e = real_extent("irfftn", x, s, dim);
  const int64_t points = real_points(e, s);
  return cresset::_fft_c2r(resized(x, e.dims, e.sizes), e.dims, normalization_of(norm, false), points);
}

Tensor fft_hfftn_impl(const Tensor& self, OptionalIntArrayRef s, OptionalIntArrayRef dim, Norm norm) {
  Tensor x = promoted(self, true);
  Extent e = real_extent("hfftn", x, s, dim);
  const int64_t points = real_points(e, s), normalization = normalization_of(norm, true);
  const IntArrayRef dims = e.dims;
  x = resized(x, e.dims, e.sizes);
  if (dims.size() > 1) x = cresset::_fft_c2c(x, dims.slice(0, dims.size() - 1), normalization, true);
  return cresset::_fft_c2r(cresset::conj(x), dims.slice(dims.size() - 1), normalization, points);
}

Tensor fft_ihfftn_impl(const Tensor& self, OptionalIntArrayRef s, OptionalIntArrayRef dim, Norm norm) {
  CRESSET_CHECK(!self.is_complex(), "Only supports floating-point dtypes, but found: ", toString(self.scalar_type()));
  const Tensor x = promoted(self, false);
  const Extent e = real_extent("ihfftn", x, s, dim);
  check_sizes(e);
  const int64_t normalization = normalization_of(norm, false);
  const IntArrayRef dims = e.dims;
  const Tensor half = cresset::conj(cresset::_fft_r2c(resized(x, e.dims, e.sizes), dims.slice(dims.size() - 1), normalization, true));
  return dims.size() == 1 ? half : cresset::_fft_c2c(half, dims.slice(0, dims.size() - 1), normalization, false);
}

Tensor& fft_fft_into(const Tensor& self, std::optional<int64_t> n, int64_t dim, Norm norm, Tensor& out) {
  return store("fft", true, fft_fft_impl(self, n, dim, norm), out);
}
Tensor& fft_ifft_into(const Tensor& self, std::optional<int64_t> n, int64_t dim, Norm norm, Tensor& out) {
  return store("ifft", true, fft_ifft_impl(self, n, dim, norm), out);
}
Tensor& fft_rfft_into(const Tensor& self, std::optional<int64_t> n, int64_t dim, Norm norm, Tensor& out) {
  return store("rfft", true, fft_rfft_impl(self, n, dim, norm), out);
}
Tensor& fft_irfft_into(const Tensor& self, std::optional<int64_t> n, int64_t dim, Norm norm, Tensor& out) {
  return store("irfft", false, fft_irfft_impl(self, n, dim, norm), out);
}
Tensor& fft_hfft_into(const Tensor& self, std::optional<int64_t> n, int64_t dim, Norm norm, Tensor& out) {
  return store("hfft", false, fft_hfft_impl(self, n, dim, norm), out);
}
Tensor& fft_ihfft_into(const Tensor& self, std::optional<int64_t> n, int64_t dim, Norm norm, Tensor& out) {
  return store("ihfft", true, fft_ihfft_impl(self, n, dim, norm), out);
}
Tensor& fft_fftn_into(const Tensor& self, OptionalIntArrayRef s, OptionalIntArrayRef dim, Norm norm, Tensor& out) {
  return store("fftn", true, fft_fftn_impl(self, s, dim, norm), out);
}
Tensor& fft_ifftn_into(const Tensor& self, OptionalIntArrayRef s, OptionalIntArrayRef dim, Norm norm, Tensor& out) {
  return store("ifftn", true, fft_ifftn_impl(self, s, dim, norm), out);
}
Tensor& fft_rfftn_into(const Tensor& self, OptionalIntArrayRef s, OptionalIntArrayRef dim, Norm norm, Tensor& out) {
  return store("rfftn", true, fft_rfftn_impl(self, s, dim, norm), out);
}
Tensor& fft_irfftn_into(const Tensor& self, OptionalIntArrayRef s, OptionalIntArrayRef dim, Norm norm, Tensor& out) {
  return store("irfftn", false, fft_irfftn_impl(self, s, dim, norm), out);
}
Tensor& fft_hfftn_into(const Tensor& self, OptionalIntArrayRef s, OptionalIntArrayRef dim, Norm norm, Tensor& out) {
  return store("hfftn", false, fft_hfftn_impl(self, s, dim, norm), out);
}
Tensor& fft_ihfftn_into(const Tensor& self, OptionalIntArrayRef s, OptionalIntArrayRef dim, Norm norm, Tensor& out) {
  return store("ihfftn", true, fft_ihfftn_impl(self, s, dim, norm), out);
}

namespace {

// roll by the same part of each dimension: half of its size, rounded down or up.
Tensor rolled_by_half(const Tensor& self, OptionalIntArrayRef dim, int64_t round) {
  DimVector dims, shifts;
  if (dim)
    dims = DimVector(*dim);
  else
    for (int64_t d = 0; d < self.dim(); ++d) dims.push_back(d);
  for (int64_t d : dims) shifts.push_back((self.size(maybe_wrap_dim(d, self.dim())) + round) / 2);
  return cresset::roll(self, shifts, dims);
}

}  // namespace

Tensor fft_fftshift_impl(const Tensor& self, OptionalIntArrayRef dim) { return rolled_by_half(self, dim, 0); }
Tensor fft_ifftshift_impl(const Tensor& self, OptionalIntArrayRef dim) { return rolled_by_half(self, dim, 1); }

}  // namespace cresset::ops
