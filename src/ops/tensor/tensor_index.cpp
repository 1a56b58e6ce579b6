// Indexing: basic indices become views, tensors become index and index_put_.
#include <cresset/core/dispatch_types.h>
#include <cresset/ops/functions_copy.h>
#include <cresset/ops/functions_creation.h>
#include <cresset/ops/functions_index.h>
#include <cresset/ops/functions_view.h>
#include <cresset/ops/print.h>
#include <cresset/ops/tensor_index.h>

#include <algorithm>
#include <ostream>
#include <string_view>
#include <vector>

#include "ops/shared/lifted.h"

namespace cresset {

TensorIndex::TensorIndex(const char* ellipsis) : kind_(Kind::Ellipsis) {
  CRESSET_CHECK_VALUE(std::string_view(ellipsis) == "...", "Expected \"...\" to represent an ellipsis index, but got \"", ellipsis, "\"");
}

std::ostream& operator<<(std::ostream& out, const TensorIndex& index) {
  switch (index.kind()) {
    case TensorIndex::Kind::None: return out << "None";
    case TensorIndex::Kind::Ellipsis: return out << "...";
    case TensorIndex::Kind::Integer: return out << index.integer();
    case TensorIndex::Kind::Boolean: return out << (index.boolean() ? "true" : "false");
    case TensorIndex::Kind::Slice: return out << index.slice();
    case TensorIndex::Kind::Tensor: return out << index.tensor();
  }
  return out;
}

std::ostream& operator<<(std::ostream& out, const std::vector<TensorIndex>& indices) {
  out << '(';
  for (std::size_t i = 0; i < indices.size(); ++i) out << (i ? ", " : "") << indices[i];
  return out << ')';
}

namespace indexing {

std::ostream& operator<<(std::ostream& out, const Slice& slice) {
  return out << slice.start() << ':' << slice.stop() << ':' << slice.step();
}

namespace {

constexpr const char* kNoDimensions =
    "invalid index of a 0-dim tensor. Use `tensor.item()` in Python or `tensor.item<T>()` in C++ to convert a 0-dim tensor to a number";

bool is_mask(const Tensor& t) { return t.scalar_type() == kBool || t.scalar_type() == kByte; }

// How many dimensions of the indexed tensor an index of tensors stands for.
int64_t spanned(const Tensor& t) { return is_mask(t) ? t.dim() : 1; }

int64_t specified_dims(ArrayRef<TensorIndex> indices) {
  int64_t n = 0;
  for (const TensorIndex& i : indices) {
    if (i.kind() == TensorIndex::Kind::Tensor) n += spanned(i.tensor());
    if (i.kind() == TensorIndex::Kind::Integer || i.kind() == TensorIndex::Kind::Slice) ++n;
  }
  return n;
}

// A trace holds for other sizes too, so it keeps every slice, as PyTorch's does.
bool is_recorded() {
  const LocalDispatchKeySet keys = impl::tls_local_dispatch_key_set();
  return keys.included.has(DispatchKey::Tracer) && !keys.excluded.has(DispatchKey::Tracer);
}

Tensor apply_slice(const Tensor& t, int64_t dim, const Slice& s) {
  CRESSET_CHECK_VALUE(s.step() > 0, "step must be greater than zero");
  if (s.start() == 0 && s.step() == 1 && dim < t.dim() && s.stop() >= t.size(dim) && !is_recorded()) return t;
  return cresset::slice(t, dim, s.start(), s.stop(), s.step());
}

// `place` is where the index stands among the indices, which is how it is named.
Tensor apply_select(const Tensor& t, int64_t dim, int64_t i, int64_t place) {
  CRESSET_CHECK_INDEX(t.dim() > 0, kNoDimensions);
  const int64_t size = t.size(dim);
  CRESSET_CHECK_INDEX(i >= -size && i < size, "index ", i, " is out of bounds for dimension ", place, " with size ", size);
  return cresset::select(t, dim, i);
}

// A view by the basic indices, and for each of its dimensions an index tensor or nothing; no entries when all indices are basic.
struct Sliced {
  Tensor view;
  std::vector<std::optional<Tensor>> indices;
};

Sliced apply(const Tensor& self, ArrayRef<TensorIndex> indices) {
  const int64_t specified = specified_dims(indices);
  CRESSET_CHECK_INDEX(specified <= self.dim(),
                      self.dim() == 0 ? kNoDimensions : "too many indices for tensor of dimension " + std::to_string(self.dim()));
  Sliced out{self, {}};
  Tensor& view = out.view;
  int64_t dim = 0;       // in view
  int64_t advanced = 0;  // dimensions of view that out.indices speaks of
  const auto record = [&](Tensor index, int64_t spans) {
    while (advanced < dim) {
      out.indices.emplace_back();
      ++advanced;
    }
    out.indices.emplace_back(std::move(index));
    dim += spans;
    advanced = dim;
  };
  for (int64_t place = 0; place < static_cast<int64_t>(indices.size()); ++place) {
    const TensorIndex& i = indices[static_cast<std::size_t>(place)];
    switch (i.kind()) {
      case TensorIndex::Kind::None: view = cresset::unsqueeze(view, dim++); break;
      case TensorIndex::Kind::Ellipsis: dim += self.dim() - specified; break;
      case TensorIndex::Kind::Integer: view = apply_select(view, dim, i.integer(), place); break;
      case TensorIndex::Kind::Slice: view = apply_slice(view, dim++, i.slice()); break;
      case TensorIndex::Kind::Boolean: {
        view = cresset::unsqueeze(view, dim);
        Tensor mask = cresset::detail::empty_cpu({1}, kBool);
        *static_cast<bool*>(mask.data_ptr()) = i.boolean();
        record(std::move(mask), 1);
        break;
      }
      case TensorIndex::Kind::Tensor: {
        const bool stays = i.tensor().device() == self.device() || self.is_meta();  // a mask's values count, which meta tensors do not have
        const Tensor t = stays ? i.tensor() : i.tensor().to(self.device());
        // Under vmap a number of each example's own is looked up like any index tensor.
        const bool one_of_each = t.key_set().has(DispatchKey::FuncTorchBatched) && !is_mask(t);
        if (t.dim() > 0 || one_of_each || !isIntegralType(t.scalar_type(), true)) {
          record(t, spanned(t));
        } else if (is_mask(t)) {
          view = cresset::unsqueeze(view, dim);
          record(cresset::unsqueeze(t, 0).to(kBool), 1);
        } else {
          view = apply_select(view, dim, t.item().toLong(), place);
        }
        break;
      }
    }
  }
  return out;
}

Tensor drop_leading_ones(const Tensor& value, int64_t dim) {
  int64_t extra = 0;
  while (value.dim() - extra > dim && value.size(extra) == 1) ++extra;
  if (extra == 0) return value;
  return value.view(value.sizes().slice(static_cast<std::size_t>(extra)));
}

// Dimensions of the place that index tensors name: what is not indexed, and the dimensions of the indices together.
int64_t place_dims(const Sliced& s) {
  int64_t indexed = 0, broadcast = 0;
  for (const std::optional<Tensor>& i : s.indices) {
    if (!i) continue;
    indexed += spanned(*i);
    broadcast = std::max<int64_t>(broadcast, is_mask(*i) ? 1 : i->dim());
  }
  return s.view.dim() - indexed + broadcast;
}

}  // namespace

Tensor get_item(const Tensor& self, ArrayRef<TensorIndex> indices) {
  if (indices.size() == 1 && indices[0].kind() == TensorIndex::Kind::Slice) {
    CRESSET_CHECK_INDEX(self.dim() > 0, "slice() cannot be applied to a 0-dim tensor.");
    const Slice& slice = indices[0].slice();
    CRESSET_CHECK_VALUE(slice.step() > 0, "step must be greater than zero");
    return cresset::slice(self, 0, slice.start(), slice.stop(), slice.step());  // also one of everything: a view like any other
  }
  Sliced s = apply(self, indices);
  if (!s.indices.empty()) return cresset::index(s.view, s.indices);
  return s.view.is_same(self) ? cresset::alias(self) : std::move(s.view);
}

void set_item(const Tensor& self, ArrayRef<TensorIndex> indices, const Tensor& value) {
  Sliced s = apply(self, indices);
  if (s.indices.empty()) {
    const Tensor source = drop_leading_ones(value, s.view.dim());
    s.view.copy_(source.sizes() == s.view.sizes() ? source : source.expand(s.view.sizes()));
  } else {
    s.view.index_put_(s.indices, value.dim() == 0 ? value : drop_leading_ones(value, place_dims(s)));
  }
}

namespace {

// The number as a tensor of self's type on its device. To traces and modes it is a constant of the program: it is made unseen, and they
// see a tensor that exists.
Tensor number_like(const Tensor& self, const Scalar& value) {
  if (!is_recorded() && !ops::modes_look())
    return Tensor(cresset::empty({}, TensorOptions(self.scalar_type()).device(self.device()))).fill_(value);
  Tensor number = cresset::detail::empty_cpu({}, self.scalar_type());
  CRESSET_DISPATCH(self.scalar_type(), "fill_", CRESSET_STORED_AND_ALL_TYPES,
                   [&] { *static_cast<scalar_t*>(number.data_ptr()) = value.to<scalar_t>(); });
  number = ops::lifted(std::move(number));
  return self.is_cpu() ? number : number.to(self.device());
}

}  // namespace

void set_item(const Tensor& self, ArrayRef<TensorIndex> indices, const Scalar& value) {
  // Of a reduced type, a number that is too large becomes infinite: scores[:, 0] = -1e9.
  const bool as_tensor = is_recorded() || ops::modes_look() || isReducedFloatingType(self.scalar_type());
  const Tensor number = as_tensor ? number_like(self, value) : Tensor();
  Sliced s = apply(self, indices);
  if (!s.indices.empty())
    s.view.index_put_(s.indices, as_tensor ? number : number_like(self, value));
  else if (!as_tensor)
    s.view.fill_(value);
  else if (s.view.dim() == 0)
    s.view.copy_(number);
  else
    s.view.fill_(number);
}

}  // namespace indexing

Tensor Tensor::index(OptionalTensorList indices) const { return cresset::index(*this, indices); }
namespace {
void require_indices(ArrayRef<TensorIndex> indices, const char* where) {
  CRESSET_CHECK(!indices.empty(), "Passing an empty index list to Tensor::", where, "() is not valid syntax");
}
}  // namespace
Tensor Tensor::index(ArrayRef<TensorIndex> indices) const {
  require_indices(indices, "index");
  return indexing::get_item(*this, indices);
}
Tensor Tensor::index(std::initializer_list<TensorIndex> indices) const {
  return index(ArrayRef<TensorIndex>(indices.begin(), indices.size()));
}
Tensor& Tensor::index_put_(ArrayRef<TensorIndex> indices, const Tensor& values) {
  require_indices(indices, "index_put_");
  indexing::set_item(*this, indices, values);
  return *this;
}
Tensor& Tensor::index_put_(ArrayRef<TensorIndex> indices, const Scalar& value) {
  require_indices(indices, "index_put_");
  indexing::set_item(*this, indices, value);
  return *this;
}
Tensor& Tensor::index_put_(std::initializer_list<TensorIndex> indices, const Tensor& values) {
  return index_put_(ArrayRef<TensorIndex>(indices.begin(), indices.size()), values);
}
Tensor& Tensor::index_put_(std::initializer_list<TensorIndex> indices, const Scalar& value) {
  return index_put_(ArrayRef<TensorIndex>(indices.begin(), indices.size()), value);
}

}  // namespace cresset
