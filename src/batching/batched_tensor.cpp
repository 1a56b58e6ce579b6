// Batched tensors: wrapping, unwrapping and the stack of levels.
#include "batching/batched_tensor.h"

#include <cresset/ops/functions_view.h>

#include "batching/rule_table.h"

namespace cresset::batching {

// --- the tensor -----------------------------------------------------------------------------------------------------------

BatchedTensorImpl::BatchedTensorImpl(Tensor value, int64_t dim, int64_t level)
    : TensorImpl(DispatchKeySet(DispatchKey::FuncTorchBatched), value.scalar_type(), value.device()),
      value_(std::move(value)),
      dim_(dim),
      level_(level) {
  CRESSET_INTERNAL_ASSERT(dim_ >= 0 && dim_ < value_.dim() && level_of(value_) < level_, "dimension ", dim_, ", level ", level_, ".");
  refresh();
  new_version_counter();
}

void BatchedTensorImpl::refresh() {
  DimVector sizes(value_.sizes()), strides(value_.strides());
  sizes.erase(sizes.begin() + dim_);
  strides.erase(strides.begin() + dim_);
  set_sizes_and_strides(sizes, strides, value_.storage_offset());
  dtype_ = value_.scalar_type();
}

void BatchedTensorImpl::set_value(Tensor value, int64_t dim) {
  value_ = std::move(value);
  dim_ = dim;
  refresh();
}

const Storage& BatchedTensorImpl::storage() const { CRESSET_THROW(NotImplementedError, "Cannot access storage of BatchedTensorImpl"); }

void* BatchedTensorImpl::data_without_storage() const {
  CRESSET_THROW(Error, "Cannot access data pointer of Tensor that doesn't have storage");
}

intrusive_ptr<TensorImpl> BatchedTensorImpl::shallow_copy_and_detach(bool share_version) const {
  auto r = make_intrusive<BatchedTensorImpl>(Tensor(value_.unsafeGetTensorImpl()->shallow_copy_and_detach(share_version)), dim_, level_);
  if (share_version) r->share_version_with(*this);
  return r;
}

void BatchedTensorImpl::shallow_copy_from(const intrusive_ptr<TensorImpl>&) {
  CRESSET_THROW(Error, "mutating directly with `.data` under vmap transform is not allowed.");
}

void BatchedTensorImpl::release_resources() {
  TensorImpl::release_resources();
  value_ = Tensor();
}

// --- wrapping -------------------------------------------------------------------------------------------------------------

Tensor add_batch_dim(const Tensor& t, int64_t dim, int64_t level) {
  dim = maybe_wrap_dim(dim, t.dim());
  const BatchedTensorImpl* outer = batched_impl(t);
  if (!outer || outer->level() < level) return Tensor(make_intrusive<BatchedTensorImpl>(t, dim, level));
  CRESSET_INTERNAL_ASSERT(outer->level() != level, "the tensor is batched at level ", level, " already.");
  const int64_t at = outer->batch_dim(), inner_dim = dim + (at <= dim ? 1 : 0);
  return Tensor(
      make_intrusive<BatchedTensorImpl>(add_batch_dim(outer->value(), inner_dim, level), at - (inner_dim < at ? 1 : 0), outer->level()));
}

Tensor remove_batch_dim(const Tensor& t, int64_t level, int64_t batch_size, int64_t dim) {
  dim = maybe_wrap_dim(dim, t.dim() + 1);
  const BatchedTensorImpl* outer = batched_impl(t);
  if (!outer || outer->level() < level) {
    DimVector sizes(t.sizes());
    sizes.insert(sizes.begin() + dim, batch_size);
    return cresset::expand(cresset::unsqueeze(t, dim), sizes);
  }
  if (outer->level() == level)
    return outer->batch_dim() == dim ? outer->value() : cresset::movedim(outer->value(), outer->batch_dim(), dim);
  const Tensor front = outer->batch_dim() == 0 ? outer->value() : cresset::movedim(outer->value(), outer->batch_dim(), 0);
  return Tensor(make_intrusive<BatchedTensorImpl>(remove_batch_dim(front, level, batch_size, dim + 1), 0, outer->level()));
}

bool is_batched_at(const Tensor& t, int64_t level) {
  const Tensor* inner = &t;
  for (const BatchedTensorImpl* b = batched_impl(*inner); b; b = batched_impl(*inner)) {
    if (b->level() == level) return true;
    inner = &b->value();
  }
  return false;
}

Tensor physical(const Tensor& t) {
  Tensor inner = t;
  while (const BatchedTensorImpl* b = batched_impl(inner)) inner = Tensor(b->value());
  return inner;
}

Tensor to_physical_of(const Tensor& t, const Tensor& like) {
  Tensor result = t, model = like;
  while (const BatchedTensorImpl* b = batched_impl(model)) {
    result = remove_batch_dim(result, b->level(), b->batch_size(), b->batch_dim());
    model = Tensor(b->value());
  }
  return result;
}

Tensor wrap_like(const Tensor& t, const Tensor& like) {
  const BatchedTensorImpl* b = batched_impl(like);
  return b && t.defined() ? add_batch_dim(wrap_like(t, b->value()), b->batch_dim(), b->level()) : t;
}

// --- levels ---------------------------------------------------------------------------------------------------------------

namespace {
thread_local std::vector<Level> stack;

void refresh_key() { impl::tls_set_dispatch_key_included(DispatchKey::FuncTorchVmapMode, !stack.empty()); }
}  // namespace

const std::vector<Level>& levels() { return stack; }

int64_t push_level(int64_t batch_size, Randomness randomness) {
  register_random_rules();
  const bool excluded = impl::tls_is_dispatch_key_excluded(DispatchKey::FuncTorchBatched);
  stack.push_back({static_cast<int64_t>(stack.size()) + 1, batch_size, randomness, excluded});
  if (excluded) impl::tls_set_dispatch_key_excluded(DispatchKey::FuncTorchBatched, false);
  refresh_key();
  return stack.back().number;
}

void pop_level() {
  CRESSET_CHECK(!stack.empty(), "vmap: there is no level to leave.");
  if (stack.back().key_was_excluded) impl::tls_set_dispatch_key_excluded(DispatchKey::FuncTorchBatched, true);
  stack.pop_back();
  refresh_key();
}

WithoutInnermostLevel::WithoutInnermostLevel() : saved_(stack.back()) {
  stack.pop_back();
  refresh_key();
}
WithoutInnermostLevel::~WithoutInnermostLevel() {
  stack.push_back(saved_);
  refresh_key();
}

namespace {
Tensor batched_at(const Tensor& t, int64_t level, int64_t batch_size) {
  return is_batched_at(t, level) ? t : add_batch_dim(remove_batch_dim(t, level, batch_size, 0), 0, level);
}
}  // namespace

Tensor batched_as(Tensor t, const Tensor& other) {
  Tensor inner = other;
  while (const BatchedTensorImpl* b = batched_impl(inner)) {
    t = batched_at(t, b->level(), b->batch_size());
    inner = Tensor(b->value());
  }
  return t;
}

Tensor batched_everywhere(Tensor t) {
  for (const Level& level : stack) t = batched_at(t, level.number, level.batch_size);
  return t;
}

}  // namespace cresset::batching
