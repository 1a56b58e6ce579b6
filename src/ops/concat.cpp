// Joining, repeating, reordering and padding: shape rules, checks and compositions.
#include <algorithm>
#include <vector>

#include <cresset/base/warn_always.h>
#include <cresset/dispatch/library.h>
#include <cresset/ops/functions_concat.h>
#include <cresset/ops/functions_copy.h>
#include <cresset/ops/functions_creation.h>
#include <cresset/ops/functions_index.h>
#include <cresset/ops/functions_reduce.h>
#include <cresset/ops/functions_view.h>

#include "ops/ops_decl_concat.h"
#include "ops/shared/number_range.h"
#include "ops/shared/pointwise.h"
#include "ops/shared/promotion.h"
#include "ops/shared/shape_util.h"
#include "ops/shared/structured.h"

namespace cresset::ops {

namespace {

// PyTorch lets empty vectors of size [0] join anything.
bool skipped_by_cat(const Tensor& t) { return t.dim() == 1 && t.size(0) == 0; }

MemoryFormat common_format(TensorList tensors) {
  const MemoryFormat first = tensors[0].suggest_memory_format();
  for (const Tensor& t : tensors)
    if (t.suggest_memory_format() != first) return MemoryFormat::Contiguous;
  return first;
}

}  // namespace

TensorSpec cat_shape(TensorList tensors, int64_t dim) {
  CRESSET_CHECK_VALUE(!tensors.empty(), "torch.cat(): expected a non-empty list of Tensors");
  const Tensor* first = nullptr;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    CRESSET_CHECK(tensors[i].dim() > 0, "zero-dimensional tensor (at position ", i, ") cannot be concatenated");
    CRESSET_CHECK(tensors[i].device() == tensors[0].device(), "cat: all tensors on one device were required; got ", tensors[0].device(),
                  " and ", tensors[i].device(), " (at position ", i, ").");
    if (!first && !skipped_by_cat(tensors[i])) first = &tensors[i];
  }
  const ScalarType dtype = promoted_type(tensors);
  if (!first) return spec_like(tensors[0], {0}, dtype);
  const int64_t d = maybe_wrap_dim(dim, first->dim());
  DimVector sizes(first->sizes());
  int64_t total = 0;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const Tensor& t = tensors[i];
    if (skipped_by_cat(t)) continue;
    CRESSET_CHECK(t.dim() == first->dim(), "Tensors must have same number of dimensions: got ", first->dim(), " and ", t.dim());
    for (int64_t k = 0; k < t.dim(); ++k)
      CRESSET_CHECK(k == d || t.size(k) == sizes[k], "Sizes of tensors must match except in dimension ", d, ". Expected size ", sizes[k],
                    " but got size ", t.size(k), " for tensor number ", i, " in the list.");
    total += t.size(d);
  }
  sizes[d] = total;
  return spec_like(tensors[0], sizes, dtype, common_format(tensors));
}

Tensor stack_impl(TensorList tensors, int64_t dim) {
  CRESSET_CHECK(!tensors.empty(), "stack expects a non-empty TensorList");
  const Tensor& first = tensors[0];
  dim = maybe_wrap_dim(dim, first.dim() + 1);
  for (std::size_t i = 0; i < tensors.size(); ++i)
    CRESSET_CHECK(tensors[i].sizes() == first.sizes(), "stack expects each tensor to be equal size, but got ", first.sizes(),
                  " at entry 0 and ", tensors[i].sizes(), " at entry ", i);
  // In front of a dimension the tensors are joined along it, so that the result has their memory format.
  if (dim < first.dim() && first.numel() != 0) {
    DimVector sizes(first.sizes());
    sizes.insert(sizes.begin() + dim, static_cast<int64_t>(tensors.size()));
    return cresset::_unsafe_view(cresset::cat(tensors, dim), sizes);  // of memory that nobody else has: no view
  }
  std::vector<Tensor> rows;
  rows.reserve(tensors.size());
  for (const Tensor& t : tensors) rows.push_back(t.unsqueeze(dim));
  return cresset::cat(rows, dim);
}

Tensor hstack_impl(TensorList tensors) {
  CRESSET_CHECK(!tensors.empty(), "hstack expects a non-empty TensorList");
  const std::vector<Tensor> rows = cresset::atleast_1d(tensors);
  return cresset::cat(rows, rows[0].dim() == 1 ? 0 : 1);
}
Tensor vstack_impl(TensorList tensors) {
  CRESSET_CHECK(!tensors.empty(), "vstack expects a non-empty TensorList");
  return cresset::cat(cresset::atleast_2d(tensors), 0);
}
Tensor dstack_impl(TensorList tensors) {
  CRESSET_CHECK(!tensors.empty(), "dstack expects a non-empty TensorList");
  return cresset::cat(cresset::atleast_3d(tensors), 2);
}
Tensor column_stack_impl(TensorList tensors) {
  CRESSET_CHECK(!tensors.empty(), "column_stack expects a non-empty TensorList");
  std::vector<Tensor> columns;
  columns.reserve(tensors.size());
  for (const Tensor& t : tensors) columns.push_back(t.dim() <= 1 ? t.reshape({t.numel(), 1}) : t);
  return cresset::cat(columns, 1);
}

Tensor block_diag_impl(TensorList tensors) {
  if (tensors.empty()) return cresset::empty({1, 0});
  int64_t width = 0;
  const ScalarType type = result_type_of(tensors);  // one without dimensions does not widen the others
  std::vector<Tensor> blocks;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    CRESSET_CHECK(tensors[i].dim() <= 2, "torch.block_diag: Input tensors must have 2 or fewer dimensions. Input ", i, " has ",
                  tensors[i].dim(), " dimensions");
    blocks.push_back(cresset::atleast_2d(tensors[i]).to(type));
    width += blocks.back().size(1);
  }
  std::vector<Tensor> rows;
  int64_t left = 0;
  for (const Tensor& b : blocks) {
    rows.push_back(cresset::constant_pad_nd(b, {left, width - left - b.size(1)}, 0));
    left += b.size(1);
  }
  return cresset::cat(rows, 0);
}

Tensor cartesian_prod_impl(TensorList tensors) {
  CRESSET_CHECK(!tensors.empty(), "cartesian_prod expects a non-empty TensorList");
  for (const Tensor& t : tensors) CRESSET_CHECK(t.dim() == 1, "Expect a 1D vector, but got shape ", t.sizes());
  if (tensors.size() == 1) return tensors[0];
  std::vector<Tensor> grids = cresset::meshgrid(tensors, "ij");
  for (Tensor& g : grids) g = g.flatten();
  return cresset::stack(grids, 1);
}

Tensor combinations_impl(const Tensor& self, int64_t r, bool with_replacement) {
  CRESSET_CHECK(self.dim() == 1, "Expect a 1D vector, but got shape ", self.sizes());
  CRESSET_CHECK(r >= 0, "Expect a non-negative number, but got ", r);
  if (r == 0) return cresset::empty({0}, self.options());
  const int64_t n = self.size(0);
  if (n == 0 || (!with_replacement && r > n)) return cresset::slice(self, 0, 0, 0, 1).unsqueeze(1).expand({0, r}).clone();
  double choices = 1;  // binomial coefficients
  for (int64_t i = 0; i < r; ++i) choices *= static_cast<double>((with_replacement ? n + r - 1 : n) - i) / static_cast<double>(i + 1);
  CRESSET_CHECK(choices * static_cast<double>(r) < 1e10, "combinations: ", choices, " choices of ", r, " elements are too many");
  // Choices of positions in lexical order: the rightmost one that can grow does, and those after it follow at once.
  const int64_t step = with_replacement ? 0 : 1;
  std::vector<int64_t> rows, choice(static_cast<std::size_t>(r));
  for (int64_t i = 0; i < r; ++i) choice[i] = i * step;
  const auto largest = [&](int64_t i) { return n - 1 - (r - 1 - i) * step; };
  for (bool more = true; more;) {
    rows.insert(rows.end(), choice.begin(), choice.end());
    int64_t i = r - 1;
    while (i >= 0 && choice[i] == largest(i)) --i;
    more = i >= 0;
    if (more) ++choice[i];
    for (; more && i + 1 < r; ++i) choice[i + 1] = choice[i] + step;
  }
  const int64_t count = static_cast<int64_t>(rows.size());
  const Tensor index = detail::empty_cpu({count}, kLong);
  std::copy(rows.begin(), rows.end(), index.mutable_data_ptr<int64_t>());
  return cresset::_unsafe_view(cresset::index_select(self, 0, index.to(self.device())), {count / r, r});
}

Tensor chunk_cat_impl(TensorList tensors, int64_t dim, int64_t num_chunks) {
  CRESSET_CHECK(num_chunks >= 1, "_chunk_cat expects positive num_chunks");
  CRESSET_CHECK(!tensors.empty(), "_chunk_cat expects a non-empty input tensor list");
  const Tensor& first = tensors[0];
  bool same_dim = true;
  for (const Tensor& t : tensors) {
    CRESSET_CHECK(t.numel() > 0, "_chunk_cat expects non-empty tensor");
    CRESSET_CHECK(t.scalar_type() == first.scalar_type(), "_chunk_cat expects all input tensors with the same dtype");
    same_dim &= t.dim() == first.dim();
  }
  CRESSET_CHECK(same_dim || dim >= 0, "_chunk_cat expects non-negative dim when input tensors have different ndims");
  if (same_dim) dim = maybe_wrap_dim(dim, first.dim());
  std::vector<Tensor> rows;
  for (const Tensor& t : tensors) {
    CRESSET_CHECK(dim < t.dim(), "_chunk_cat expects dim < ndim for all input tensors");
    const IntArrayRef before = t.sizes().slice(0, static_cast<std::size_t>(dim));
    CRESSET_CHECK(before == first.sizes().slice(0, static_cast<std::size_t>(dim)),
                  "_chunk_cat expects same sizes of 0,...,dim-1 dimensions for all tensors");
    const int64_t size = t.size(dim), padding = (num_chunks - size % num_chunks) % num_chunks;
    DimVector pad(static_cast<std::size_t>(2 * (t.dim() - dim)), 0), sizes(before);
    pad.back() = padding;
    sizes.push_back(num_chunks);
    sizes.push_back(-1);
    rows.push_back((padding > 0 ? cresset::constant_pad_nd(t, pad, 0) : t).reshape(sizes));
  }
  return cresset::cat(rows, dim + 1);
}

Tensor repeat_impl(const Tensor& self, IntArrayRef repeats) {
  const int64_t n = static_cast<int64_t>(repeats.size()), extra = n - self.dim();
  CRESSET_CHECK(extra >= 0, "Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor");
  // Source [1, s0, 1, s1, …] expanded to [r0, s0, r1, s1, …] and copied once.
  DimVector target(n), split(2 * n), tiled(2 * n);
  bool negative = false;
  for (int64_t d = 0; d < n; ++d) {
    const int64_t s = d < extra ? 1 : self.size(d - extra);
    target[d] = s * repeats[d];
    negative |= repeats[d] < 0;
    split[2 * d] = 1;
    split[2 * d + 1] = s;
    tiled[2 * d] = repeats[d];
    tiled[2 * d + 1] = s;
  }
  if (negative)
    for (int64_t d = 0; d < n; ++d)
      CRESSET_CHECK(repeats[d] >= 0, "Trying to create tensor with negative dimension ", target[d], ": ", target);
  // Splitting every dimension by 1 is always a view. Merging a fresh contiguous copy is none: nobody else has the memory.
  return cresset::_unsafe_view(self.reshape(split).expand(tiled).clone(MemoryFormat::Contiguous), target);
}

Tensor tile_impl(const Tensor& self, IntArrayRef dims) {
  const int64_t missing = self.dim() - static_cast<int64_t>(dims.size());
  if (missing <= 0) return self.repeat(dims);
  DimVector all(missing, 1);
  for (int64_t d : dims) all.push_back(d);
  return self.repeat(all);
}

Tensor repeat_interleave_by_tensor(const Tensor& self, const Tensor& repeats, std::optional<int64_t> dim,
                                   std::optional<int64_t> output_size) {
  const Tensor input = dim ? self : self.flatten();
  const int64_t d = maybe_wrap_dim(dim.value_or(0), self.dim() == 0 ? 1 : self.dim());
  const Tensor source = input.dim() == 0 ? input.unsqueeze(0) : input;
  Tensor counts = repeats;
  if (repeats.dim() == 0 || (repeats.dim() == 1 && repeats.size(0) == 1)) {
    counts = repeats.reshape({1}).expand({source.size(d)});
  } else {
    CRESSET_CHECK(repeats.dim() == 1, "repeats must be 0-dim or 1-dim tensor");
    CRESSET_CHECK(repeats.size(0) == source.size(d),
                  "repeats must have the same size as input along dim, but got repeats.size(0) = ", repeats.size(0), " and input.size(", d,
                  ") = ", source.size(d));
  }
  return source.index_select(d, cresset::repeat_interleave(counts, output_size));
}

Tensor repeat_interleave_by_int(const Tensor& self, int64_t repeats, std::optional<int64_t> dim, std::optional<int64_t> output_size) {
  CRESSET_CHECK(repeats >= 0, "Repeats must be non-negative");
  const Tensor input = dim ? self : self.flatten();
  const Tensor source = input.dim() == 0 ? input.unsqueeze(0) : input;
  const int64_t d = maybe_wrap_dim(dim.value_or(0), source.dim());
  CRESSET_CHECK(!output_size || *output_size == source.size(d) * repeats, "repeat_interleave: Invalid output_size, expected ",
                source.size(d) * repeats, " but got ", output_size.value_or(0));
  DimVector sizes(source.sizes());
  sizes.insert(sizes.begin() + d + 1, repeats);
  return source.unsqueeze(d + 1).expand(sizes).clone(MemoryFormat::Contiguous).flatten(d, d + 1);
}

TensorSpec roll_shape(const Tensor& self, IntArrayRef shifts, IntArrayRef dims) {
  CRESSET_CHECK(!shifts.empty(), "`shifts` required");
  CRESSET_CHECK(shifts.size() == dims.size() || (dims.empty() && shifts.size() == 1),
                "shifts and dimensions must align. shifts: ", shifts.size(), ", dims:", dims.size());
  for (int64_t d : dims) {
    CRESSET_CHECK_INDEX(self.dim() > 0, "Dimension specified as ", d, " but tensor has no dimensions");
    maybe_wrap_dim(d, self.dim());
  }
  // Without dimensions it is the order of elements that rolls.
  return spec_like(self, self.sizes(), std::nullopt, dims.empty() ? MemoryFormat::Contiguous : self.suggest_memory_format());
}

TensorSpec flip_shape(const Tensor& self, IntArrayRef dims) {
  dim_mask(dims, self.dim());
  return {DimVector(self.sizes()), self.scalar_type(), self.device(), preserved_strides(self)};
}
Tensor fliplr_impl(const Tensor& self) {
  CRESSET_CHECK(self.dim() >= 2, "Input must be >= 2-d.");
  return self.flip({1});
}
Tensor flipud_impl(const Tensor& self) {
  CRESSET_CHECK(self.dim() >= 1, "Input must be >= 1-d.");
  return self.flip({0});
}

Tensor rot90_impl(const Tensor& self, int64_t k, IntArrayRef dims) {
  CRESSET_CHECK(dims.size() == 2, "expected total rotation dims == 2, but got dims = ", dims.size());
  CRESSET_CHECK(self.dim() >= 2, "expected total dims >= 2, but got total dims = ", self.dim());
  const int64_t a = maybe_wrap_dim(dims[0], self.dim()), b = maybe_wrap_dim(dims[1], self.dim());
  CRESSET_CHECK(a != b, "expected rotation dims to be different, but got dim0 = ", dims[0], " and dim1 = ", dims[1]);
  switch ((k % 4 + 4) % 4) {
    case 1: return self.flip({b}).transpose(a, b);
    case 2: return self.flip({a, b});
    case 3: return self.flip({a}).transpose(a, b);
    default: return self.clone(MemoryFormat::Contiguous);
  }
}

std::vector<Tensor> meshgrid_default(TensorList tensors) {
  CRESSET_WARN_FIRST("torch.meshgrid: in an upcoming release, it will be required to pass the indexing argument.");
  return cresset::meshgrid(tensors, "ij");
}

std::vector<Tensor> meshgrid_indexing(TensorList tensors, std::string_view indexing) {
  CRESSET_CHECK(!tensors.empty(), "meshgrid expects a non-empty TensorList");
  CRESSET_CHECK(indexing == "ij" || indexing == "xy", "torch.meshgrid: indexing must be one of \"xy\" or \"ij\", but received: ", indexing);
  for (const Tensor& t : tensors) {
    CRESSET_CHECK(t.scalar_type() == tensors[0].scalar_type(), "meshgrid expects all tensors to have the same dtype");
    CRESSET_CHECK(t.device() == tensors[0].device(), "meshgrid expects all tensors to have the same device");
    CRESSET_CHECK(t.dim() <= 1, "torch.meshgrid: Expected 0D or 1D tensor in the tensor list but got a tensor of size ", t.sizes());
  }
  // Grid i varies along dimension i; with "xy" the first two tensors vary along each other's dimension.
  const std::size_t n = tensors.size();
  const bool swap = indexing == "xy" && n >= 2;
  auto dim_of = [&](std::size_t i) { return swap && i < 2 ? 1 - i : i; };
  DimVector shape(n);
  for (std::size_t i = 0; i < n; ++i) shape[dim_of(i)] = tensors[i].numel();
  std::vector<Tensor> grids;
  for (std::size_t i = 0; i < n; ++i) {
    DimVector one(n, 1);
    one[dim_of(i)] = tensors[i].numel();
    grids.push_back(tensors[i].view(one).expand(shape));
  }
  return grids;
}

// ---- padding -----------------------------------------------------------------------------------------------------

TensorSpec constant_pad_nd_shape(const Tensor& self, IntArrayRef pad, const Scalar& value) {
  CRESSET_CHECK(pad.size() % 2 == 0, "Length of pad must be even but instead it equals ", pad.size());
  const int64_t padded = static_cast<int64_t>(pad.size() / 2);
  CRESSET_CHECK(padded <= self.dim(), "Length of pad should be no more than twice the number of dimensions of the input. Pad length is ",
                pad.size(), " while the input has ", self.dim(), " dimensions.");
  DimVector sizes(self.sizes());
  for (int64_t i = 0; i < padded; ++i) {
    const int64_t d = self.dim() - 1 - i;
    sizes[d] += pad[2 * i] + pad[2 * i + 1];
    CRESSET_CHECK(sizes[d] >= 0 && self.size(d) + std::min<int64_t>(pad[2 * i], 0) + std::min<int64_t>(pad[2 * i + 1], 0) >= 0,
                  "The input size ", self.size(d), ", plus negative padding ", pad[2 * i], " and ", pad[2 * i + 1],
                  " resulted in a negative output size, which is invalid. Check dimension ", d, " of your input.");
  }
  check_number(value, self.scalar_type());
  return spec_like(self, sizes, std::nullopt, self.suggest_memory_format());
}

// For devices that have the parts only.
Tensor constant_pad_by_parts(const Tensor& self, IntArrayRef pad, const Scalar& value) {
  const TensorSpec spec = constant_pad_nd_shape(self, pad, value);
  const Tensor out = allocate(spec, self.device());
  out.fill_(value);
  Tensor inside = out, kept = self;
  for (std::size_t i = 0; i < pad.size() / 2; ++i) {
    const int64_t d = self.dim() - 1 - static_cast<int64_t>(i), before = pad[2 * i], after = pad[2 * i + 1];
    inside = inside.narrow(d, std::max<int64_t>(before, 0), inside.size(d) - std::max<int64_t>(before, 0) - std::max<int64_t>(after, 0));
    kept = kept.narrow(d, std::max<int64_t>(-before, 0), kept.size(d) + std::min<int64_t>(before, 0) + std::min<int64_t>(after, 0));
  }
  inside.copy_(kept);
  return out;
}

Tensor pad_circular(const Tensor& self, IntArrayRef pad) {
  const int64_t padded = static_cast<int64_t>(pad.size() / 2);
  const int64_t whole = self.dim() - padded;
  CRESSET_CHECK(whole == 1 || whole == 2,
                "Invalid padding size, expected 1 or 2 non-padded dimensions, which would be equivalent to padding of length ",
                2 * (self.dim() - 1), " or ", 2 * (self.dim() - 2), " respectively but got ", pad.size());
  Tensor out = self;
  bool copied = false;  // the result never shares memory with self
  for (int64_t i = 0; i < padded; ++i) {
    const int64_t d = self.dim() - 1 - i, size = self.size(d), before = pad[2 * i], after = pad[2 * i + 1];
    CRESSET_CHECK(before <= size && after <= size, "Padding value causes wrapping around more than once.");
    CRESSET_CHECK(size + before + after >= 0 && before >= -size && after >= -size,
                  "Negative padding value is resulting in an empty dimension");
    const int64_t cut = std::max<int64_t>(-before, 0), keep = size - cut - std::max<int64_t>(-after, 0);
    CRESSET_CHECK(keep > 0 || size + before + after > 0, "Negative padding value is resulting in an empty dimension");
    // What is cut away does not come around.
    const Tensor core = cresset::slice(out, d, cut, cut + keep, 1);
    CRESSET_CHECK(before <= keep && after <= keep, "Padding value causes wrapping around more than once.");
    std::vector<Tensor> parts;
    if (before > 0) parts.push_back(cresset::slice(core, d, keep - before, keep, 1));
    parts.push_back(core);
    if (after > 0) parts.push_back(cresset::slice(core, d, 0, after, 1));
    copied |= parts.size() > 1;
    out = parts.size() == 1 ? parts[0] : cresset::cat(parts, d);
  }
  return copied ? out.contiguous() : out.clone(MemoryFormat::Contiguous);
}

Tensor pad_mode(const Tensor& self, IntArrayRef pad, std::string_view mode, std::optional<double> value) {
  CRESSET_CHECK_NOT_IMPLEMENTED(mode == "constant" || mode == "reflect" || mode == "replicate" || mode == "circular",
                                "Unrecognised padding mode ", mode);
  CRESSET_CHECK(pad.size() % 2 == 0, "Padding length must be divisible by 2");
  CRESSET_CHECK(static_cast<int64_t>(pad.size()) <= 2 * self.dim(),
                "Padding length should be less than or equal to two times the input dimension but got padding length ", pad.size(),
                " and input of dimension ", self.dim());
  if (mode == "constant") return cresset::constant_pad_nd(self, pad, value.value_or(0.0));
  CRESSET_CHECK(!value || *value == 0, "Padding mode \"", mode, "\" doesn't take in value argument");
  const int64_t spatial = static_cast<int64_t>(pad.size() / 2);
  const bool fits = self.dim() == spatial + 1 || self.dim() == spatial + 2;
  CRESSET_CHECK_NOT_IMPLEMENTED(fits && spatial >= 1 && spatial <= 3, "Padding size ", pad.size(), " is not supported for ", self.dim(),
                                "D input tensor.");
  if (mode == "circular") return cresset::_pad_circular(self, pad);
  if (mode == "reflect")
    return spatial == 1   ? cresset::reflection_pad1d(self, pad)
           : spatial == 2 ? cresset::reflection_pad2d(self, pad)
                          : cresset::reflection_pad3d(self, pad);
  return spatial == 1   ? cresset::replication_pad1d(self, pad)
         : spatial == 2 ? cresset::replication_pad2d(self, pad)
                        : cresset::replication_pad3d(self, pad);
}

Tensor pad_sequence_impl(TensorList sequences, bool batch_first, double padding_value, std::string_view padding_side) {
  CRESSET_CHECK(!sequences.empty(), "received an empty list of sequences");
  CRESSET_CHECK(padding_side == "left" || padding_side == "right", "Expected padding_side to be one of left or right, but got ",
                padding_side, ".");
  int64_t longest = 0;
  for (const Tensor& s : sequences) longest = std::max(longest, s.size(0));
  std::vector<Tensor> padded;
  for (const Tensor& s : sequences) {
    DimVector pad(2 * s.dim(), 0);
    pad[2 * s.dim() - (padding_side == "left" ? 2 : 1)] = longest - s.size(0);
    padded.push_back(cresset::constant_pad_nd(s.to(sequences[0].scalar_type()), pad, padding_value));
  }
  return cresset::stack(padded, batch_first ? 0 : 1);
}

namespace {

// Output of a border padding of the last `n` dimensions; checks sizes with PyTorch's words.
TensorSpec border_pad_shape(const Tensor& self, IntArrayRef padding, int64_t n, bool reflect) {
  CRESSET_CHECK(static_cast<int64_t>(padding.size()) == 2 * n, "padding size is expected to be ", 2 * n, ", but got: ", padding.size());
  bool valid = self.dim() == n + 1 || self.dim() == n + 2;
  for (int64_t d = self.dim() == n + 2 ? 1 : 0; d < self.dim(); ++d) valid &= self.size(d) != 0;
  CRESSET_CHECK(valid, "Expected ", n + 1, "D or ", n + 2,
                "D (batch mode) tensor with possibly 0 batch size and other non-zero dimensions for input, but got: ", self.sizes());
  DimVector sizes(self.sizes());
  for (int64_t i = 0; i < n; ++i) {
    const int64_t d = self.dim() - 1 - i, before = padding[2 * i], after = padding[2 * i + 1];
    CRESSET_CHECK(!reflect || (before < self.size(d) && after < self.size(d)), "Argument #", 4 + 2 * i,
                  ": Padding size should be less than the corresponding input dimension, but got: padding (", before, ", ", after,
                  ") at dimension ", d, " of input ", self.sizes());
    sizes[d] += before + after;
  }
  const int64_t last = self.dim() - 1;
  bool positive = false;  // one size is enough: another one may be zero
  for (int64_t i = 0; i < n; ++i) positive |= sizes[last - i] >= 1;
  for (int64_t i = 0; i < n; ++i) positive &= sizes[last - i] >= 0;
  CRESSET_CHECK(positive || n < 3, "input (D: ", n < 3 ? 0 : self.size(last - 2), ", H: ", n < 3 ? 0 : self.size(last - 1),
                ", W: ", self.size(last), ") is too small. Calculated output D: ", n < 3 ? 0 : sizes[last - 2],
                " H: ", n < 3 ? 0 : sizes[last - 1], " W: ", sizes[last]);
  CRESSET_CHECK(positive, n == 1 ? str("input (W: ", self.size(last), ") is too small. Calculated output W: ", sizes[last])
                                 : str("input (H: ", self.size(last - 1), ", W: ", self.size(last),
                                       ") is too small. Calculated output H: ", sizes[last - 1], " W: ", sizes[last]));
  return spec_like(self, sizes, std::nullopt, n >= 2 ? self.suggest_memory_format() : MemoryFormat::Contiguous);
}

TensorSpec border_pad_backward_shape(const Tensor& grad_output, const Tensor& self, IntArrayRef padding, int64_t n, bool reflect) {
  const TensorSpec forward = border_pad_shape(self, padding, n, reflect);
  for (int64_t i = 0; i < n; ++i) {
    const int64_t d = self.dim() - 1 - i;
    CRESSET_CHECK(grad_output.dim() == self.dim() && grad_output.size(d) == forward.sizes[d], "grad_output ",
                  i == 0   ? "width"
                  : i == 1 ? "height"
                           : "depth",
                  " unexpected. Expected: ", forward.sizes[d], ", Got: ", grad_output.dim() == self.dim() ? grad_output.size(d) : 0);
  }
  CRESSET_CHECK(grad_output.sizes() == IntArrayRef(forward.sizes), "grad_output of size ", forward.sizes, " was required; got ",
                grad_output.sizes(), ".");
  return spec_like(grad_output, self.sizes(), std::nullopt, n >= 2 ? self.suggest_memory_format() : MemoryFormat::Contiguous);
}

}  // namespace

TensorSpec reflection_pad1d_shape(const Tensor& self, IntArrayRef padding) { return border_pad_shape(self, padding, 1, true); }
TensorSpec reflection_pad2d_shape(const Tensor& self, IntArrayRef padding) { return border_pad_shape(self, padding, 2, true); }
TensorSpec reflection_pad3d_shape(const Tensor& self, IntArrayRef padding) { return border_pad_shape(self, padding, 3, true); }
TensorSpec replication_pad3d_shape(const Tensor& self, IntArrayRef padding) { return border_pad_shape(self, padding, 3, false); }
TensorSpec reflection_pad3d_backward_shape(const Tensor& g, const Tensor& self, IntArrayRef p) {
  return border_pad_backward_shape(g, self, p, 3, true);
}
TensorSpec replication_pad3d_backward_shape(const Tensor& g, const Tensor& self, IntArrayRef p) {
  return border_pad_backward_shape(g, self, p, 3, false);
}
TensorSpec replication_pad1d_shape(const Tensor& self, IntArrayRef padding) { return border_pad_shape(self, padding, 1, false); }
TensorSpec replication_pad2d_shape(const Tensor& self, IntArrayRef padding) { return border_pad_shape(self, padding, 2, false); }
TensorSpec reflection_pad1d_backward_shape(const Tensor& g, const Tensor& self, IntArrayRef p) {
  return border_pad_backward_shape(g, self, p, 1, true);
}
TensorSpec reflection_pad2d_backward_shape(const Tensor& g, const Tensor& self, IntArrayRef p) {
  return border_pad_backward_shape(g, self, p, 2, true);
}
TensorSpec replication_pad1d_backward_shape(const Tensor& g, const Tensor& self, IntArrayRef p) {
  return border_pad_backward_shape(g, self, p, 1, false);
}
TensorSpec replication_pad2d_backward_shape(const Tensor& g, const Tensor& self, IntArrayRef p) {
  return border_pad_backward_shape(g, self, p, 2, false);
}

namespace {
// The default of devices, and where a call with an empty list arrives (it names no backend): cat_shape refuses that.
Tensor cat_default(TensorList tensors, int64_t dim) {
  const TensorSpec spec = cat_shape(tensors, dim);
  Tensor out = allocate(spec, device_of(tensors));
  cresset::cat_out(out, tensors, dim);
  return out;
}
}  // namespace
CRESSET_LIBRARY_IMPL(aten, CompositeExplicitAutograd, m) { m.impl("cat", CRESSET_FN(cat_default)); }

Tensor pad_enum(const Tensor& self, IntArrayRef pad, int64_t mode, std::optional<double> value) {
  constexpr std::string_view modes[] = {"reflect", "replicate", "circular", "constant"};
  CRESSET_CHECK(mode >= 0 && mode < 4, "Unrecognised padding mode");
  return pad_mode(self, pad, modes[mode], value);
}

Tensor flatten_dense_tensors_impl(TensorList tensors) {
  std::vector<Tensor> rows;
  for (const Tensor& t : tensors) rows.push_back(t.reshape({-1}));
  return rows.size() == 1 ? rows.front() : cresset::cat(rows);
}
std::vector<Tensor> unflatten_dense_tensors_impl(const Tensor& flat, TensorList tensors) {
  std::vector<Tensor> parts;
  int64_t begin = 0;
  for (const Tensor& t : tensors) {
    parts.push_back(flat.narrow(0, begin, t.numel()).view(t.sizes()));
    begin += t.numel();
  }
  return parts;
}

}  // namespace cresset::ops
