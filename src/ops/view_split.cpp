// One tensor into several views: split, chunk, tensor_split and their kin, unbind.
#include <algorithm>

#include <cresset/ops/functions_view.h>

#include "ops/ops_decl_view.h"
#include "ops/shared/shape_util.h"

namespace cresset::ops {

std::vector<Tensor> split_tensor(const Tensor& self, int64_t split_size, int64_t dim) {
  CRESSET_CHECK(self.dim() > 0, "split expects at least a 1-dimensional tensor");
  CRESSET_CHECK(split_size >= 0, "split expects split_size be non-negative, but got split_size=", split_size);
  dim = maybe_wrap_dim(dim, self.dim());
  const int64_t size = self.size(dim);
  CRESSET_CHECK(split_size > 0 || size == 0, "split_size can only be 0 if dimension size is 0, but got dimension size of ", size);
  const int64_t pieces = size == 0 ? 1 : (size - 1) / split_size + 1;
  std::vector<Tensor> out;
  out.reserve(pieces);
  for (int64_t i = 0, start = 0; i < pieces; ++i, start += split_size)
    out.push_back(slice_tensor(self, dim, start, start + std::min(split_size, size - start), 1));
  return out;
}

std::vector<Tensor> split_with_sizes_view(const Tensor& self, IntArrayRef split_sizes, int64_t dim) {
  CRESSET_CHECK(self.dim() > 0, "split expects at least a 1-dimensional tensor");
  dim = maybe_wrap_dim(dim, self.dim());
  const int64_t size = self.size(dim);
  int64_t total = 0;
  for (int64_t s : split_sizes) {
    CRESSET_CHECK(s >= 0, "split_with_sizes expects split_sizes have only non-negative entries, but got split_sizes=", split_sizes);
    total += s;
  }
  CRESSET_CHECK(total == size, "split_with_sizes expects split_sizes to sum exactly to ", size, " (input tensor's size at dimension ", dim,
                "), but got split_sizes=", split_sizes);
  std::vector<Tensor> out;
  out.reserve(split_sizes.size());
  int64_t start = 0;
  for (int64_t s : split_sizes) {
    out.push_back(slice_tensor(self, dim, start, start + s, 1));
    start += s;
  }
  return out;
}

namespace {
// Pieces that share memory and nothing else: a change of one must not count as a change of what was saved of another.
std::vector<Tensor> on_their_own(std::vector<Tensor> pieces) {
  for (const Tensor& piece : pieces)
    if (!piece.is_inference()) piece.unsafeGetTensorImpl()->new_version_counter();
  return pieces;
}
}  // namespace

std::vector<Tensor> unsafe_split_tensor(const Tensor& self, int64_t split_size, int64_t dim) {
  return on_their_own(split_tensor(self, split_size, dim));
}
std::vector<Tensor> unsafe_split_with_sizes_pieces(const Tensor& self, IntArrayRef split_sizes, int64_t dim) {
  return on_their_own(split_with_sizes_view(self, split_sizes, dim));
}

namespace {
// Sizes of the pieces of chunk; split_size 0 happens only for an empty dimension.
int64_t chunk_size(const Tensor& self, int64_t chunks, int64_t dim, const char* name) {
  CRESSET_CHECK(self.dim() > 0, name, " expects at least a 1-dimensional tensor");
  CRESSET_CHECK(chunks > 0, name, " expects `chunks` to be greater than 0, got: ", chunks);
  const int64_t size = self.size(dim);
  return (size + chunks - 1) / chunks;
}
}  // namespace

std::vector<Tensor> chunk_impl(const Tensor& self, int64_t chunks, int64_t dim) {
  const int64_t split = chunk_size(self, chunks, dim, "chunk");
  if (split == 0) return self.split_with_sizes(std::vector<int64_t>(chunks, 0), dim);
  return self.split(split, dim);
}
std::vector<Tensor> unsafe_chunk_impl(const Tensor& self, int64_t chunks, int64_t dim) {
  const int64_t split = chunk_size(self, chunks, dim, "chunk");
  if (split == 0) return cresset::unsafe_split_with_sizes(self, std::vector<int64_t>(chunks, 0), dim);
  return cresset::unsafe_split(self, split, dim);
}

std::vector<Tensor> tensor_split_sections(const Tensor& self, int64_t sections, int64_t dim) {
  CRESSET_CHECK(self.dim() > 0, "tensor_split expected at least a 1-dimensional tensor, but got a tensor with ", self.dim(), " dims");
  dim = maybe_wrap_dim(dim, self.dim());
  CRESSET_CHECK(sections > 0, "number of sections must be larger than 0, got ", sections);
  const int64_t size = self.size(dim), base = size / sections, longer = size % sections;
  constexpr int64_t kMostEmpty = 1 << 20;  // tensors without elements, which a mistaken number would make until memory ends
  CRESSET_CHECK(sections - size <= kMostEmpty, "tensor_split: up to ", kMostEmpty, " sections more than elements were required; got ",
                sections, " sections for dimension ", dim, " of size ", size, ".");
  std::vector<Tensor> out;
  int64_t start = 0;
  for (int64_t i = 0; i < sections; ++i) {
    const int64_t end = start + base + (i < longer ? 1 : 0);
    out.push_back(cresset::slice(self, dim, start, end, 1));
    start = end;
  }
  return out;
}
std::vector<Tensor> tensor_split_indices(const Tensor& self, IntArrayRef indices, int64_t dim) {
  CRESSET_CHECK(self.dim() > 0, "tensor_split expected at least a 1-dimensional tensor, but got a tensor with ", self.dim(), " dims");
  dim = maybe_wrap_dim(dim, self.dim());
  std::vector<Tensor> out;
  int64_t start = 0;
  for (int64_t end : indices) {
    out.push_back(cresset::slice(self, dim, start, end, 1));
    start = end;
  }
  out.push_back(cresset::slice(self, dim, start, self.size(dim), 1));
  return out;
}
std::vector<Tensor> tensor_split_tensor(const Tensor& self, const Tensor& indices, int64_t dim) {
  CRESSET_CHECK(indices.device().is_cpu(), "tensor_split expected tensor_indices_or_sections to be on cpu, but it's on ", indices.device());
  CRESSET_CHECK(indices.scalar_type() == kLong, "tensor_split expected tensor_indices_or_sections to have dtype of long, but got ",
                indices.scalar_type());
  CRESSET_CHECK(indices.dim() <= 1,
                "tensor_split expected tensor_indices_or_sections to be a zero-dimensional or one-dimensional tensor, "
                "but got a tensor with ",
                indices.dim(), " dims");
  if (indices.dim() == 0) return cresset::tensor_split(self, indices.item<int64_t>(), dim);
  const Tensor dense = indices.contiguous();
  const int64_t* p = dense.const_data_ptr<int64_t>();
  const std::vector<int64_t> list(p, p + dense.numel());
  return cresset::tensor_split(self, IntArrayRef(list), dim);
}

namespace {
std::vector<Tensor> equal_pieces(const Tensor& self, int64_t sections, int64_t dim, const char* name) {
  CRESSET_CHECK(sections != 0 && self.size(dim) % sections == 0, "torch.", name, " attempted to split along dimension ", dim,
                ", but the size of the dimension ", self.size(dim), " is not divisible by the split_size ", sections, "!");
  return cresset::tensor_split(self, sections, dim);
}
void check_dims(const Tensor& self, int64_t least, const char* name) {
  CRESSET_CHECK(self.dim() >= least, "torch.", name, " requires a tensor with at least ", least, " dimension", least == 1 ? "" : "s",
                ", but got a tensor with ", self.dim(), " dimensions!");
}
}  // namespace

std::vector<Tensor> hsplit_int(const Tensor& self, int64_t sections) {
  check_dims(self, 1, "hsplit");
  return equal_pieces(self, sections, self.dim() == 1 ? 0 : 1, "hsplit");
}
std::vector<Tensor> hsplit_array(const Tensor& self, IntArrayRef indices) {
  check_dims(self, 1, "hsplit");
  return cresset::tensor_split(self, indices, self.dim() == 1 ? 0 : 1);
}
std::vector<Tensor> vsplit_int(const Tensor& self, int64_t sections) {
  check_dims(self, 2, "vsplit");
  return equal_pieces(self, sections, 0, "vsplit");
}
std::vector<Tensor> vsplit_array(const Tensor& self, IntArrayRef indices) {
  check_dims(self, 2, "vsplit");
  return cresset::tensor_split(self, indices, 0);
}
std::vector<Tensor> dsplit_int(const Tensor& self, int64_t sections) {
  check_dims(self, 3, "dsplit");
  return equal_pieces(self, sections, 2, "dsplit");
}
std::vector<Tensor> dsplit_array(const Tensor& self, IntArrayRef indices) {
  check_dims(self, 3, "dsplit");
  return cresset::tensor_split(self, indices, 2);
}

std::vector<Tensor> unbind_int(const Tensor& self, int64_t dim) {
  dim = maybe_wrap_dim(dim, self.dim(), /*wrap_scalar=*/false);
  std::vector<Tensor> out;
  out.reserve(self.size(dim));
  for (int64_t i = 0; i < self.size(dim); ++i) out.push_back(select_int(self, dim, i));
  return out;
}

}  // namespace cresset::ops
