// Strided traversal: plans once, then feeds contiguous blocks to loops.
#include "backends/cpu/strided.h"

#include <algorithm>
#include <cstring>

#include <cresset/base/parallel.h>

namespace cresset::cpu {
namespace {

constexpr int64_t kMaxElement = 16;

// How an operand reaches the loop during one range.
struct Feed {
  bool direct;     // the loop works on the operand's memory
  bool constant;   // the same element everywhere: loaded once
  LoadFunction load;
  StoreFunction store;
  int64_t element;  // bytes of one element in the block
  char* block;
};

}  // namespace

void Traversal::set_sizes(IntArrayRef broadcast) {
  broadcast_ = broadcast;
  ndim = static_cast<int>(broadcast.size());
  numel = 1;
  for (int d = 0; d < ndim; ++d) {
    sizes[d] = broadcast[static_cast<size_t>(ndim - 1 - d)];
    numel *= sizes[d];
  }
}

void Traversal::add(const Tensor& tensor, ComputeType compute, ScalarType through) {
  Operand& operand = operands[num_operands++];
  operand.data = static_cast<char*>(tensor.data_ptr());
  operand.dtype = tensor.scalar_type();
  operand.compute = compute;
  operand.through = through;
  const IntArrayRef own_sizes = tensor.sizes(), own = tensor.strides();
  const int64_t element = static_cast<int64_t>(tensor.itemsize());
  const int n = static_cast<int>(own.size());
  for (int d = 0; d < ndim; ++d) {
    const int at = n - 1 - d;
    operand.strides[d] = at < 0 || own_sizes[static_cast<size_t>(at)] == 1 ? 0 : own[static_cast<size_t>(at)] * element;
  }
}

void Traversal::coalesce() {
  if (ndim > 1) {
    // Outermost first for the shared rule, then back.
    int64_t buffers[kMaxOperands][ops::kMaxPointwiseDims];
    int64_t outer_sizes[ops::kMaxPointwiseDims];
    const int64_t* strides[kMaxOperands];
    int order[ops::kMaxPointwiseDims];
    for (int k = 0; k < num_operands; ++k) {
      for (int d = 0; d < ndim; ++d) buffers[k][d] = operands[k].strides[ndim - 1 - d];
      strides[k] = buffers[k];
    }
    for (int d = 0; d < ndim; ++d) outer_sizes[d] = sizes[ndim - 1 - d];
    ops::order_dimensions(outer_sizes, ndim, strides, num_operands, order);
    int kept = 0;
    for (int i = ndim; i-- > 0;) {
      const int from = order[i];
      if (outer_sizes[from] == 1) continue;
      // Merge into the previous dimension when every operand continues there.
      bool merge = kept > 0;
      for (int k = 0; k < num_operands && merge; ++k)
        merge = buffers[k][from] == operands[k].strides[kept - 1] * sizes[kept - 1];
      if (merge) {
        sizes[kept - 1] *= outer_sizes[from];
        continue;
      }
      sizes[kept] = outer_sizes[from];
      for (int k = 0; k < num_operands; ++k) operands[k].strides[kept] = buffers[k][from];
      ++kept;
    }
    ndim = kept;
  }
  if (ndim == 0) {
    ndim = 1;
    sizes[0] = 1;
    for (int k = 0; k < num_operands; ++k) operands[k].strides[0] = 0;
  }
}

void Traversal::run(PointwiseLoop loop, const void* params) const {
  if (numel == 0) return;
  if (numel < 2 * kParallelGrain) {
    run_range(loop, params, 0, numel);
    return;
  }
  parallel_for(0, (numel + kBlock - 1) / kBlock, kParallelGrain / kBlock, [&](int64_t begin, int64_t end) {
    run_range(loop, params, begin * kBlock, std::min(end * kBlock, numel));
  });
}

void Traversal::run_range(PointwiseLoop loop, const void* params, int64_t begin, int64_t end) const {
  alignas(64) char blocks[kMaxOperands][kBlock * kMaxElement];
  Feed feeds[kMaxOperands];
  void* pointers[kMaxOperands + ops::kMaxPointwiseScalars];
  bool buffered = false;
  for (int k = 0; k < num_operands; ++k) {
    const Operand& operand = operands[k];
    Feed& feed = feeds[k];
    const bool same = operand.dtype == scalar_type(operand.compute) && operand.through == ScalarType::Undefined;
    feed.element = static_cast<int64_t>(element_size(scalar_type(operand.compute)));
    feed.direct = same && (operand.strides[0] == feed.element || sizes[0] == 1);
    feed.constant = k > 0 && !feed.direct;
    for (int d = 0; d < ndim && feed.constant; ++d) feed.constant = operand.strides[d] == 0;
    feed.block = blocks[k];
    feed.load = k > 0 ? load_function(operand.dtype, operand.compute) : nullptr;
    feed.store = k == 0 ? store_function(operand.compute, operand.dtype) : nullptr;
    buffered |= !feed.direct;
    if (feed.constant) {
      const int64_t n = std::min(kBlock, end - begin);
      if (operand.through == ScalarType::Undefined) {
        feed.load(feed.block, {operand.data, 0, 0}, n, 1);
      } else {
        // One element, rounded through the common type.
        alignas(16) char value[kMaxElement], rounded[kMaxElement];
        feed.load(value, {operand.data, 0, 0}, 1, 1);
        store_function(operand.compute, operand.through)({rounded, 0, 0}, value, 1, 1);
        load_function(operand.through, operand.compute)(feed.block, {rounded, 0, 0}, n, 1);
      }
    }
  }
  for (int i = 0; i < num_constants; ++i) pointers[num_operands + i] = const_cast<void*>(constants[i]);

  // Copies need no loop: load into the destination or store from the source.
  const bool copy = loop == nullptr;
  int64_t index[ops::kMaxPointwiseDims];
  int64_t rest = begin;
  for (int d = 0; d < ndim; ++d) {
    index[d] = rest % sizes[d];
    rest /= sizes[d];
  }
  int64_t offsets[kMaxOperands];
  for (int k = 0; k < num_operands; ++k) {
    offsets[k] = 0;
    for (int d = 0; d < ndim; ++d) offsets[k] += index[d] * operands[k].strides[d];
  }

  for (int64_t at = begin; at < end;) {
    // A piece: part of one row, or several whole short rows when everything goes through blocks.
    int64_t n = std::min(sizes[0] - index[0], end - at), rows = 1;
    if (buffered && n > kBlock) n = kBlock;
    if (ndim > 1 && index[0] == 0 && sizes[0] <= (buffered ? kBlock / 2 : kBlock / 8)) {
      rows = std::min({kBlock / sizes[0], sizes[1] - index[1], (end - at) / sizes[0]});
      if (rows > 1)
        n = sizes[0];
      else
        rows = 1;
    }
    const auto at_rows = [&](int k) {
      return Rows{operands[k].data + offsets[k], operands[k].strides[0], ndim > 1 ? operands[k].strides[1] : 0};
    };
    // With several rows even direct operands go through blocks, unless their rows follow one another.
    const auto in_place = [&](int k) {
      return feeds[k].direct && (rows == 1 || operands[k].strides[1] == n * operands[k].strides[0]);
    };
    if (copy) {
      if (in_place(0)) {
        feeds[1].load(operands[0].data + offsets[0], at_rows(1), n, rows);
      } else if (in_place(1)) {
        feeds[0].store(at_rows(0), operands[1].data + offsets[1], n, rows);
      } else {
        feeds[1].load(feeds[1].block, at_rows(1), n, rows);
        feeds[0].store(at_rows(0), feeds[1].block, n, rows);
      }
    } else {
      for (int k = 1; k < num_operands; ++k) {
        if (in_place(k)) {
          pointers[k] = operands[k].data + offsets[k];
          continue;
        }
        pointers[k] = feeds[k].block;
        if (!feeds[k].constant) feeds[k].load(feeds[k].block, at_rows(k), n, rows);
      }
      pointers[0] = in_place(0) ? operands[0].data + offsets[0] : feeds[0].block;
      loop(pointers, n * rows, params);
      if (!in_place(0)) feeds[0].store(at_rows(0), feeds[0].block, n, rows);
    }
    // Advance.
    at += n * rows;
    if (rows == 1) {
      index[0] += n;
      for (int k = 0; k < num_operands; ++k) offsets[k] += n * operands[k].strides[0];
      if (index[0] < sizes[0]) continue;
      index[0] = 0;
      for (int k = 0; k < num_operands; ++k) offsets[k] -= sizes[0] * operands[k].strides[0];
    }
    if (ndim == 1) continue;
    index[1] += rows;
    for (int k = 0; k < num_operands; ++k) offsets[k] += rows * operands[k].strides[1];
    for (int d = 1; d + 1 < ndim && index[d] == sizes[d]; ++d) {
      index[d] = 0;
      ++index[d + 1];
      for (int k = 0; k < num_operands; ++k) offsets[k] += operands[k].strides[d + 1] - sizes[d] * operands[k].strides[d];
    }
  }
}

}  // namespace cresset::cpu
