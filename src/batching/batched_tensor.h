// BatchedTensorImpl: what a function under vmap sees in place of its input: one example, while all of them lie in a physical tensor.
//
// A batched tensor has the sizes and strides of one example; its value has one dimension more. Levels nest: the value may itself be
// batched, always at a lower level, so that the outermost wrapper is the innermost vmap. The only functionality among its keys
// is FuncTorchBatched: rules (batching/rules.h) take the wrapper off and call the operator again, and whatever stands below,
// autograd first of all, sees ordinary tensors.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include <cresset/core/tensor.h>

namespace cresset::batching {

struct CRESSET_API BatchedTensorImpl final : TensorImpl {
  BatchedTensorImpl(Tensor value, int64_t dim, int64_t level);

  const Tensor& value() const { return value_; }
  int64_t batch_dim() const { return dim_; }
  int64_t level() const { return level_; }
  int64_t batch_size() const { return value_.size(dim_); }
  /// Another value, for operators that change in place what a tensor looks like.
  void set_value(Tensor value, int64_t dim);

  bool has_storage() const override { return false; }
  const Storage& storage() const override;
  intrusive_ptr<TensorImpl> shallow_copy_and_detach(bool share_version) const override;
  void shallow_copy_from(const intrusive_ptr<TensorImpl>& other) override;
  const char* tensorimpl_type_name() const override { return "BatchedTensorImpl"; }
  void release_resources() override;

 protected:
  void* data_without_storage() const override;

 private:
  void refresh();

  Tensor value_;
  int64_t dim_, level_;
};

inline bool is_batched(const Tensor& t) { return t.key_set().has(DispatchKey::FuncTorchBatched); }
/// The wrapper of a batched tensor, null for any other.
inline BatchedTensorImpl* batched_impl(const Tensor& t) {
  return is_batched(t) ? static_cast<BatchedTensorImpl*>(t.unsafeGetTensorImpl()) : nullptr;
}
/// Level of the outermost wrapper, 0 for a tensor that is not batched.
inline int64_t level_of(const Tensor& t) {
  const BatchedTensorImpl* b = batched_impl(t);
  return b ? b->level() : 0;
}

/// The tensor whose dimension `dim` holds the examples of a level. Wrappers of higher levels stay outside.
CRESSET_API Tensor add_batch_dim(const Tensor& t, int64_t dim, int64_t level);
/// The inverse: the examples of a level as dimension `dim` of the result; a tensor that is not batched at this level is expanded.
CRESSET_API Tensor remove_batch_dim(const Tensor& t, int64_t level, int64_t batch_size, int64_t dim);
/// Is t batched at this level, however deep the wrapper lies?
CRESSET_API bool is_batched_at(const Tensor& t, int64_t level);

/// The tensor inside of all wrappers.
CRESSET_API Tensor physical(const Tensor& t);
/// t with the levels of `like` taken off, in the way that takes `like` to physical(like); levels that `like` does not have stay on.
CRESSET_API Tensor to_physical_of(const Tensor& t, const Tensor& like);
/// A tensor shaped as physical(like), with the wrappers of `like`.
CRESSET_API Tensor wrap_like(const Tensor& t, const Tensor& like);

/// What random operators do for the examples of a level.
enum class Randomness : uint8_t { Error, Same, Different };

/// One vmap that runs on this thread.
struct Level {
  int64_t number;
  int64_t batch_size;
  Randomness randomness;
  bool key_was_excluded = false;  // by a scope around the level, which batched tensors of it do not mind
};
/// Levels of this thread, the innermost last; numbers count from 1. Threads that an engine starts know none of them.
CRESSET_API const std::vector<Level>& levels();
CRESSET_API int64_t push_level(int64_t batch_size, Randomness randomness);
CRESSET_API void pop_level();

/// The innermost level taken off for a scope: random operators of a level call themselves for the levels around it.
class WithoutInnermostLevel {
 public:
  WithoutInnermostLevel();
  ~WithoutInnermostLevel();
  WithoutInnermostLevel(const WithoutInnermostLevel&) = delete;

 private:
  Level saved_;
};

/// t batched at every level of `other` too.
CRESSET_API Tensor batched_as(Tensor t, const Tensor& other);
/// t batched at every level of this thread: examples of a level that t does not know are views of the same memory.
CRESSET_API Tensor batched_everywhere(Tensor t);

}  // namespace cresset::batching
