// Rearrangements made of views: the view family's copies, shuffles of channels and pixels, diagonals.
#include <algorithm>
#include <limits>

#include <cresset/ops/functions_copy.h>
#include <cresset/ops/functions_reduce.h>
#include <cresset/ops/functions_view.h>

#include "ops/ops_decl_view.h"
#include "ops/shared/structured.h"

namespace cresset::ops {

namespace {
std::vector<Tensor> copies_of(std::vector<Tensor> views) {
  for (Tensor& v : views) v = v.clone(MemoryFormat::Contiguous);
  return views;
}
}  // namespace
std::vector<Tensor> split_copy_tensor(const Tensor& self, int64_t split_size, int64_t dim) {
  return copies_of(cresset::split(self, split_size, dim));
}
std::vector<Tensor> split_with_sizes_copy_list(const Tensor& self, IntArrayRef split_sizes, int64_t dim) {
  return copies_of(cresset::split_with_sizes(self, split_sizes, dim));
}
std::vector<Tensor> unbind_copy_int(const Tensor& self, int64_t dim) { return copies_of(cresset::unbind(self, dim)); }

namespace {
// The sizes in front of the last three dimensions, followed by these.
DimVector with_front(const Tensor& self, std::initializer_list<int64_t> sizes) {
  DimVector out(self.sizes().slice(0, self.dim() - 3));
  for (int64_t s : sizes) out.push_back(s);
  return out;
}
DimVector front_then(int64_t front, std::initializer_list<int64_t> order) {
  DimVector out(front);
  for (int64_t d = 0; d < front; ++d) out[d] = d;
  for (int64_t d : order) out.push_back(front + d);
  return out;
}
}  // namespace

namespace {
// `rearranged` in the memory format of self, never a view of it.
Tensor copy_in_format(const Tensor& rearranged, const Tensor& self) {
  const bool batched = self.key_set().has(DispatchKey::FuncTorchBatched);  // the format would be that of an example among others
  const MemoryFormat format = self.dim() == 4 && !batched ? self.suggest_memory_format() : MemoryFormat::Contiguous;
  return shares_storage(rearranged, self) ? rearranged.clone(format) : rearranged.to(TensorOptions(), false, false, format);
}
}  // namespace

namespace {
// The square of a factor must be a number.
void check_factor(const char* op, const char* name, int64_t r) {
  CRESSET_CHECK(r > 0, op, " expects a positive ", name, ", but got ", r);
  CRESSET_CHECK(r <= std::numeric_limits<int32_t>::max(), op, ": ", name, " is too large: ", r);
}
}  // namespace

Tensor pixel_shuffle_impl(const Tensor& self, int64_t upscale_factor) {
  const int64_t r = upscale_factor, front = self.dim() - 3;
  CRESSET_CHECK(front >= 0, "pixel_shuffle expects input to have at least 3 dimensions, but got input with ", self.dim(), " dimension(s)");
  check_factor("pixel_shuffle", "upscale_factor", r);
  const int64_t c = self.size(-3), h = self.size(-2), w = self.size(-1);
  CRESSET_CHECK(
      c % (r * r) == 0,
      "pixel_shuffle expects its input's 'channel' dimension to be divisible by the square of upscale_factor, but input.size(-3)=", c,
      " is not divisible by ", r * r);
  const Tensor blocks = self.reshape(with_front(self, {c / (r * r), r, r, h, w})).permute(front_then(front, {0, 3, 1, 4, 2}));
  return copy_in_format(blocks.reshape(with_front(self, {c / (r * r), h * r, w * r})), self);
}
Tensor pixel_unshuffle_impl(const Tensor& self, int64_t downscale_factor) {
  const int64_t r = downscale_factor, front = self.dim() - 3;
  CRESSET_CHECK(front >= 0, "pixel_unshuffle expects input to have at least 3 dimensions, but got input with ", self.dim(),
                " dimension(s)");
  check_factor("pixel_unshuffle", "downscale_factor", r);
  const int64_t c = self.size(-3), h = self.size(-2), w = self.size(-1);
  CRESSET_CHECK(h % r == 0, "pixel_unshuffle expects height to be divisible by downscale_factor, but input.size(-2)=", h,
                " is not divisible by ", r);
  CRESSET_CHECK(w % r == 0, "pixel_unshuffle expects width to be divisible by downscale_factor, but input.size(-1)=", w,
                " is not divisible by ", r);
  const Tensor blocks = self.reshape(with_front(self, {c, h / r, r, w / r, r})).permute(front_then(front, {0, 2, 4, 1, 3}));
  return copy_in_format(blocks.reshape(with_front(self, {c * r * r, h / r, w / r})), self);
}
Tensor channel_shuffle_impl(const Tensor& self, int64_t groups) {
  CRESSET_CHECK(self.dim() > 2, "channel_shuffle expects input with > 2 dims, but got input with sizes ", self.sizes());
  CRESSET_CHECK(groups > 0, "Number of groups to divide channels in must be positive. Value of groups:", groups);
  CRESSET_CHECK(self.size(1) % groups == 0, "Number of channels must be divisible by groups. Got ", self.size(1), " channels and ", groups,
                " groups.");
  return copy_in_format(self.unflatten(1, {groups, self.size(1) / groups}).transpose(1, 2).reshape(self.sizes()), self);
}

Tensor trace_impl(const Tensor& self) {
  CRESSET_CHECK(self.dim() == 2, "trace: expected a matrix, but got tensor with dim ", self.dim());
  return self.diagonal(0, 0, 1).sum();
}

Tensor& fill_diagonal_inplace(Tensor& self, const Scalar& fill_value, bool wrap) {
  CRESSET_CHECK(self.dim() >= 2, "dimensions must larger than 1");
  int64_t step = 0, length = self.size(0);
  for (int64_t d = 0; d < self.dim(); ++d) {
    CRESSET_CHECK(self.dim() == 2 || self.size(d) == self.size(0), "all dimensions of input must be of equal length");
    step += self.stride(d);
    length = std::min(length, self.size(d));
  }
  const int64_t rows = self.size(0), columns = self.size(1);
  self.as_strided({length}, {step}, self.storage_offset()).fill_(fill_value);
  // Below a square block and one free row the diagonal starts again.
  if (wrap && self.dim() == 2 && rows > columns + 1) {
    const int64_t start = (columns + 1) * self.stride(0), more = (rows - columns - 1 + columns) / (columns + 1);
    for (int64_t k = 0; k < more; ++k) {
      const int64_t first = (k + 1) * (columns + 1), n = std::min(columns, rows - first);
      self.as_strided({n}, {step}, self.storage_offset() + k * start + start).fill_(fill_value);
    }
  }
  return self;
}

}  // namespace cresset::ops
