// Unwrapping and wrapping around one call.
#include "batching/batch_call.h"

#include <cresset/ops/functions_view.h>

namespace cresset::batching {

Tensor insert_ones(const Tensor& t, int64_t at, int64_t count) {
  if (count <= 0) return t;
  if (count == 1) return cresset::unsqueeze(t, at);
  DimVector sizes;
  for (int64_t d = 0; d < t.dim(); ++d) {
    if (d == at)
      for (int64_t i = 0; i < count; ++i) sizes.push_back(1);
    sizes.push_back(t.size(d));
  }
  if (at == t.dim())
    for (int64_t i = 0; i < count; ++i) sizes.push_back(1);
  return cresset::view(t, sizes);
}

Tensor merge_dims(const Tensor& t, int64_t at) {
  DimVector sizes;
  for (int64_t d = 0; d < t.dim(); ++d)
    if (d == at + 1)
      sizes.back() *= t.size(d);
    else
      sizes.push_back(t.size(d));
  return cresset::reshape(t, sizes);
}

Tensor split_dim(const Tensor& t, int64_t at, int64_t size) {
  DimVector sizes;
  for (int64_t d = 0; d < t.dim(); ++d) {
    if (d == at) {
      sizes.push_back(size);
      sizes.push_back(size ? t.size(d) / size : t.size(d));
    } else {
      sizes.push_back(t.size(d));
    }
  }
  return cresset::reshape(t, sizes);
}

DimVector with_front(int64_t first, IntArrayRef rest) {
  DimVector out;
  out.push_back(first);
  for (int64_t v : rest) out.push_back(v);
  return out;
}

Tensor Batch::aligned(const Tensor& t, int64_t rank) const { return insert_ones(full(t), 1, rank - t.dim()); }

BatchCall::BatchCall(const OperatorHandle& o, Stack& s)
    : op(o), schema(o.schema()), stack(s), args(s.end() - static_cast<std::ptrdiff_t>(schema.arguments().size()), s.end()) {
  std::vector<Tensor> tensors;
  for (const IValue& v : args) each_tensor(v, [&](const Tensor& t) { tensors.push_back(t); });
  batch = Batch(tensors);
  CRESSET_CHECK(batch.level() != 0, op.operator_name(), ": the key FuncTorchBatched without a batched tensor.");
}

int BatchCall::find(std::string_view name) const {
  const auto at = schema.argument_index(name);
  return at ? static_cast<int>(*at) : -1;
}

const Tensor& BatchCall::first_tensor() const {
  for (std::size_t i = 0; i < args.size(); ++i) {
    const Tensor* found = nullptr;
    each_tensor(given(i), [&](const Tensor& t) {
      if (!found) found = &t;
    });
    if (found) return *found;
  }
  CRESSET_THROW(Error, op.operator_name(), ": a tensor argument was required.");
}

void raise_inplace(std::string_view op) {
  CRESSET_THROW(
      Error, "vmap: ", op,
      "(self, *extra_args) is not possible because there exists a Tensor `other` in extra_args that has more elements than `self`. "
      "This happened due to `other` being vmapped over but `self` not being vmapped over in a vmap. Please try to use out-of-place "
      "operators instead of ",
      op, ". If said operator is being called inside the PyTorch framework, please file a bug report instead.");
}

void BatchCall::check_written(std::string_view shown) const {
  for (std::size_t i = 0; i < args.size(); ++i)
    if (schema.arguments()[i].is_mutable())
      each_tensor(given(i), [&](const Tensor& t) {
        if (!batch.has(t)) raise_inplace(shown);
      });
}

std::vector<IValue> BatchCall::invoke(const OperatorHandle& other) const {
  Stack inner(args);
  other.callBoxed(inner);
  return inner;
}

void BatchCall::give(std::vector<IValue> results) const {
  const auto& returns = schema.returns();
  std::size_t written = 0;  // returns that are arguments come in the order of the arguments
  std::vector<IValue> out;
  out.reserve(results.size());
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (i < returns.size() && returns[i].is_mutable()) {
      while (!schema.arguments()[written].is_mutable()) ++written;
      out.push_back(given(written++));
      continue;
    }
    IValue v = std::move(results[i]);
    map_tensors(v, [&](const Tensor& t) { return batch.wrap(t); });
    out.push_back(std::move(v));
  }
  cresset::drop(stack, args.size());
  for (IValue& v : out) stack.push_back(std::move(v));
}

}  // namespace cresset::batching
