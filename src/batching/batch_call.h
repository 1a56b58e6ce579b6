// One call of an operator at one level: its arguments, unwrapped step by step, and its results, wrapped again.
#pragma once

#include <string>
#include <vector>

#include <cresset/dispatch/dispatcher.h>

#include "batching/batched_tensor.h"

namespace cresset::batching {

/// The level that a call belongs to and what to do with its tensors there. For rules written by hand.
class Batch {
 public:
  template <class... T>
  explicit Batch(const T&... tensors) {
    (look(tensors), ...);
  }
  int64_t level() const { return level_; }
  int64_t size() const { return size_; }
  bool has(const Tensor& t) const { return level_ != 0 && level_of(t) == level_; }
  bool has(const std::optional<Tensor>& t) const { return t && has(*t); }
  /// The physical tensor with the batch dimension in front; a tensor that is not batched as it is.
  Tensor front(const Tensor& t) const { return has(t) ? remove_batch_dim(t, level_, size_, 0) : t; }
  /// The same, expanded when it is not batched.
  Tensor full(const Tensor& t) const { return remove_batch_dim(t, level_, size_, 0); }
  /// full(t) with dimensions of size 1 behind the batch dimension, so that an example has `rank` dimensions.
  Tensor aligned(const Tensor& t, int64_t rank) const;
  Tensor wrap(const Tensor& t, int64_t dim = 0) const { return t.defined() ? add_batch_dim(t, dim, level_) : t; }

 private:
  void look(const Tensor& t) {
    if (const BatchedTensorImpl* b = batched_impl(t); b && b->level() > level_) {
      level_ = b->level();
      size_ = b->batch_size();
    }
  }
  void look(const std::optional<Tensor>& t) {
    if (t) look(*t);
  }
  template <class List>
    requires requires(const List& l) { l.begin(); }
  void look(const List& list) {
    for (const auto& t : list) look(t);
  }
  int64_t level_ = 0, size_ = 0;
};

/// Inserts `count` dimensions of size 1 at `at`.
Tensor insert_ones(const Tensor& t, int64_t at, int64_t count);
/// (a, b, …) with dimensions at and at + 1 made one.
Tensor merge_dims(const Tensor& t, int64_t at);
/// Dimension `at` split in (size, rest).
Tensor split_dim(const Tensor& t, int64_t at, int64_t size);
/// The factory arguments dtype and device of a tensor's kind.
DimVector with_front(int64_t first, IntArrayRef rest);

/// Calls f(tensor) → tensor on every tensor of a value; lists are copied.
template <class F>
void map_tensors(IValue& v, const F& f) {
  if (v.isTensor()) {
    if (v.toTensor().defined()) v = IValue(f(v.toTensor()));
  } else if (v.isList()) {
    bool any = false;
    for (const IValue& e : v.toListRef()) any |= e.isTensor();
    if (!any) return;
    auto copy = make_intrusive<ivalue::ListImpl>(v.toListRef(), v.toListImpl().element_type);
    for (IValue& e : copy->elements) map_tensors(e, f);
    v = IValue(std::move(copy));
  }
}
template <class F>
void each_tensor(const IValue& v, const F& f) {
  if (v.isTensor()) {
    if (v.toTensor().defined()) f(v.toTensor());
  } else if (v.isList()) {
    for (const IValue& e : v.toListRef()) each_tensor(e, f);
  }
}

/// A boxed call: the arguments of the innermost level found among them.
struct BatchCall {
  BatchCall(const OperatorHandle& op, Stack& stack);

  const OperatorHandle& op;
  const FunctionSchema& schema;
  Stack& stack;
  std::vector<IValue> args;  // to be changed by rules
  Batch batch;

  const IValue& given(std::size_t i) const { return stack[stack.size() - args.size() + i]; }
  /// Position of an argument, or -1.
  int find(std::string_view name) const;
  /// The first tensor among the arguments as it was given.
  const Tensor& first_tensor() const;
  /// Is an argument written that does not belong to the batch? Raises then.
  void check_written(std::string_view shown) const;
  /// Replaces every tensor argument by f of it.
  template <class F>
  void map(const F& f) {
    for (IValue& v : args) map_tensors(v, f);
  }
  /// Calls the operator (or another one with the same arguments) with `args`.
  std::vector<IValue> invoke() const { return invoke(op); }
  std::vector<IValue> invoke(const OperatorHandle& other) const;
  /// Replaces the arguments on the stack by results whose tensors have the batch dimension in front.
  void give(std::vector<IValue> results) const;
};

/// Raised for a tensor that is written and not batched while others are.
[[noreturn]] void raise_inplace(std::string_view op);

}  // namespace cresset::batching
