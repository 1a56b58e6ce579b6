// x.index({...}) in C++: integers, slices, None, Ellipsis, masks and index tensors, as Python's x[...].
#include <cresset/ops/tensor_index.h>

#include <cresset/ops/functions_copy.h>
#include <cresset/ops/functions_creation.h>
#include <cresset/ops/functions_index.h>
#include <cresset/ops/functions_view.h>

namespace cresset {
namespace {

bool is_mask(const Tensor& t) { return t.scalar_type() == kBool || t.scalar_type() == kByte; }

// Dimensions of self that an entry uses up.
int64_t dims_of(const TensorIndex& i) {
  switch (i.kind()) {
    case TensorIndex::Kind::Integer:
    case TensorIndex::Kind::Slice: return 1;
    case TensorIndex::Kind::Tensor: return is_mask(i.tensor()) ? i.tensor().dim() : 1;
    default: return 0;
  }
}

struct View {
  Tensor self;                                 // after integers, slices and None
  std::vector<std::optional<Tensor>> indices;  // one entry a dimension up to the last index tensor
};

View apply_views(const Tensor& self, ArrayRef<TensorIndex> entries) {
  int64_t used = 0;
  for (const TensorIndex& i : entries) used += dims_of(i);
  CRESSET_CHECK_INDEX(used <= self.dim(), "too many indices for tensor of dimension ", self.dim());
  View v{self, {}};
  int64_t d = 0;  // dimension of v.self that the next entry looks at
  const auto pass = [&](int64_t n) {
    v.indices.insert(v.indices.end(), static_cast<std::size_t>(n), std::nullopt);
    d += n;
  };
  // A mask without dimensions is a new dimension: of size one where it is true, of size zero where it is not.
  const auto put_flag = [&](const Tensor& flag) {
    v.self = unsqueeze(v.self, d++);
    v.indices.emplace_back(flag.reshape({1}));
  };
  for (const TensorIndex& i : entries) {
    switch (i.kind()) {
      case TensorIndex::Kind::None:
        v.self = unsqueeze(v.self, d);
        pass(1);
        break;
      case TensorIndex::Kind::Ellipsis: pass(self.dim() - used); break;
      case TensorIndex::Kind::Integer: v.self = select(v.self, d, i.integer()); break;
      case TensorIndex::Kind::Slice:
        v.self = slice(v.self, d, i.slice().start(), i.slice().stop(), i.slice().step());
        pass(1);
        break;
      case TensorIndex::Kind::Boolean: put_flag(full({1}, Scalar(i.boolean()), TensorOptions(kBool).device(self.device()))); break;
      case TensorIndex::Kind::Tensor: {
        const Tensor t = i.tensor().device() == self.device() ? i.tensor() : i.tensor().to(self.device());
        if (is_mask(t) && t.dim() == 0) {
          put_flag(t);
        } else {
          d += dims_of(i);
          v.indices.emplace_back(t);
        }
        break;
      }
    }
  }
  while (!v.indices.empty() && !v.indices.back()) v.indices.pop_back();
  return v;
}

}  // namespace

Tensor Tensor::index(OptionalTensorList indices) const { return cresset::index(*this, indices); }
Tensor Tensor::index(ArrayRef<TensorIndex> indices) const {
  const View v = apply_views(*this, indices);
  if (!v.indices.empty()) return cresset::index(v.self, v.indices);
  return v.self.is_same(*this) ? alias() : v.self;
}
Tensor Tensor::index(std::initializer_list<TensorIndex> indices) const {
  return index(ArrayRef<TensorIndex>(indices.begin(), indices.size()));
}
Tensor& Tensor::index_put_(ArrayRef<TensorIndex> indices, const Tensor& values) {
  View v = apply_views(*this, indices);
  if (!v.indices.empty())
    v.self.index_put_(OptionalTensorList(v.indices), values.to(scalar_type()));
  else
    v.self.copy_(values);
  return *this;
}
Tensor& Tensor::index_put_(ArrayRef<TensorIndex> indices, const Scalar& value) { return index_put_(indices, full({}, value, options())); }
Tensor& Tensor::index_put_(std::initializer_list<TensorIndex> indices, const Tensor& values) {
  return index_put_(ArrayRef<TensorIndex>(indices.begin(), indices.size()), values);
}
Tensor& Tensor::index_put_(std::initializer_list<TensorIndex> indices, const Scalar& value) {
  return index_put_(ArrayRef<TensorIndex>(indices.begin(), indices.size()), value);
}

Tensor Tensor::cpu() const { return to(Device(kCPU)); }
Tensor Tensor::cuda() const { return to(Device(kCUDA)); }
Tensor Tensor::toType(ScalarType t) const { return to(t); }
bool Tensor::is_pinned() const { return false; }
Tensor Tensor::view_symint(SymIntArrayRef size) const { return view(IntArrayRef(size)); }
Tensor Tensor::reshape_symint(SymIntArrayRef size) const { return reshape(size); }
Tensor Tensor::expand_symint(SymIntArrayRef size, bool implicit) const { return expand(size, implicit); }
Tensor Tensor::narrow_symint(int64_t d, SymInt start, SymInt length) const { return narrow(d, start.value, length); }
Tensor Tensor::select_symint(int64_t d, SymInt i) const { return select(d, i); }
Tensor Tensor::slice_symint(int64_t d, std::optional<SymInt> start, std::optional<SymInt> end, SymInt step) const {
  return slice(d, start ? std::optional<int64_t>(*start) : std::nullopt, end ? std::optional<int64_t>(*end) : std::nullopt, step);
}
Tensor Tensor::new_empty_symint(SymIntArrayRef size, const TensorOptions& options) const { return new_empty(size, options); }
Tensor Tensor::new_zeros_symint(SymIntArrayRef size, const TensorOptions& options) const { return new_zeros(size, options); }

}  // namespace cresset
