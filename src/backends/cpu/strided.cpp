// Strided traversal: plans once, then feeds contiguous blocks to loops.
#include "backends/cpu/strided.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>

#include <cresset/base/parallel.h>

namespace cresset::cpu {
namespace {

constexpr int64_t kMaxElement = 16;
constexpr int64_t kAlignment = 64;
constexpr int64_t kBlockBytes = kBlock * kMaxElement;
constexpr int64_t kWidestBlock = 1024;  // elements, also where more would fit: the blocks of all operands share the first-level cache
constexpr int64_t kTile = 32;           // columns of a tile when an operand runs across the result

// Executes one part of a traversal: knows for each operand how it reaches the loop, and the current position.
class Runner {
 public:
  // repeats_last: the loop takes one element of the last operand.
  Runner(const Traversal& traversal, PointwiseLoop loop, const void* params, int64_t elements, bool repeats_last = false);
  bool buffered() const { return buffered_; }
  // Elements [begin, end) in order.
  void range(int64_t begin, int64_t end);
  // Whole rows [begin, end) of the dimensions above the first, tile by tile.
  void tiles(int64_t begin, int64_t end);

 private:
  struct Feed {
    bool direct;    // the loop works on the operand's memory
    bool constant;  // the same element everywhere: loaded once
    LoadFunction load;
    StoreFunction store;
    char* block = nullptr;
    // What the block holds: `rows` rows of n elements from this offset.
    int64_t offset = 0, n = 0, rows = 0;
  };
  void go_to(int64_t element);
  // Runs the loop on `rows` rows of n elements at the current position.
  void piece(int64_t n, int64_t rows);
  Rows rows_of(int k) const {
    const Operand& operand = t_.operands[k];
    return {operand.data + offsets_[k], operand.strides[0], t_.ndim > 1 ? operand.strides[1] : 0};
  }
  // Fills operand k's block, unless it holds these elements from the piece before: a repeated row or element.
  void fill(int k, int64_t n, int64_t rows) {
    Feed& feed = feeds_[k];
    const bool shorter = rows == 1 && t_.operands[k].strides[0] == 0 && n <= feed.n;
    if (feed.offset == offsets_[k] && ((n == feed.n && rows <= feed.rows) || shorter)) return;
    feed.load(feed.block, rows_of(k), n, rows);
    feed.offset = offsets_[k], feed.n = n, feed.rows = rows;
  }
  // Rows up to this length are taken several at a time.
  int64_t short_row() const;
  // With several rows even direct operands go through blocks, unless their rows follow one another.
  bool in_place(int k, int64_t n, int64_t rows) const {
    return feeds_[k].direct && (rows == 1 || t_.operands[k].strides[1] == n * t_.operands[k].strides[0]);
  }

  const Traversal& t_;
  const PointwiseLoop loop_;
  const void* params_;
  bool buffered_ = false;
  int64_t block_ = kWidestBlock;  // elements
  int64_t short_row_ = 0;
  Feed feeds_[kMaxOperands];
  int64_t index_[kMaxDims];
  int64_t offsets_[kMaxOperands];
  void* pointers_[kMaxOperands + ops::kMaxPointwiseScalars];
  // The operands' blocks: those of two operands and a float result lie here, longer ones where many_ points. All of the longest would be 72
  // KiB, which the stack of a thread may not have.
  alignas(kAlignment) char few_[3 * (4 * kWidestBlock + kAlignment)];
  std::unique_ptr<char[]> many_;
  void place_blocks(int64_t elements);
};

Runner::Runner(const Traversal& traversal, PointwiseLoop loop, const void* params, int64_t elements, bool repeats_last)
    : t_(traversal), loop_(loop), params_(params) {
  for (int k = 0; k < t_.num_operands; ++k)
    block_ = std::min(block_, kBlockBytes / static_cast<int64_t>(element_size(scalar_type(t_.operands[k].compute))));
  for (int k = 0; k < t_.num_operands; ++k) {
    const Operand& operand = t_.operands[k];
    Feed& feed = feeds_[k];
    const int64_t element = static_cast<int64_t>(element_size(scalar_type(operand.compute)));
    feed.direct = operand.as_it_is() && (operand.strides[0] == element || t_.sizes[0] == 1);
    if (repeats_last && k == t_.num_operands - 1) feed.direct = true;
    feed.constant = k > 0 && !feed.direct;
    for (int d = 0; d < t_.ndim && feed.constant; ++d) feed.constant = operand.strides[d] == 0;
    feed.load = k > 0 ? load_function(operand.dtype, operand.compute) : nullptr;
    feed.store = k == 0 ? store_function(operand.compute, operand.dtype) : nullptr;
    buffered_ |= !feed.direct;
  }
  if (buffered_ || t_.ndim > 1) place_blocks(elements);
  for (int k = 0; k < t_.num_operands; ++k) {
    const Operand& operand = t_.operands[k];
    const Feed& feed = feeds_[k];
    if (!feed.constant) continue;
    const int64_t n = std::min(block_, elements);
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
  for (int i = 0; i < t_.num_constants; ++i) pointers_[t_.num_operands + i] = const_cast<void*>(t_.constants[i]);
  short_row_ = repeats_last ? 0 : short_row();
}

void Runner::place_blocks(int64_t elements) {
  const auto bytes = [&](int k) {
    const int64_t used = std::min(block_, elements) * static_cast<int64_t>(element_size(scalar_type(t_.operands[k].compute)));
    return (used + kAlignment - 1) / kAlignment * kAlignment;
  };
  int64_t total = 0;
  for (int k = 0; k < t_.num_operands; ++k) total += bytes(k);
  char* next = few_;
  if (total > static_cast<int64_t>(sizeof(few_))) {
    many_.reset(new char[static_cast<std::size_t>(total + kAlignment)]);
    next = many_.get() + (kAlignment - reinterpret_cast<std::uintptr_t>(many_.get()) % kAlignment) % kAlignment;
  }
  for (int k = 0; k < t_.num_operands; ++k) {
    feeds_[k].block = next;
    next += bytes(k);
  }
}

int64_t Runner::short_row() const {
  if (t_.ndim == 1) return 0;
  if (buffered_) return block_ / 2;
  // Where some operand has gaps between its rows, several rows cost a copy, which pays for very short ones only. A row that repeats is
  // copied once.
  bool gaps = false;
  for (int k = 0; k < t_.num_operands; ++k) {
    const int64_t* const strides = t_.operands[k].strides;
    gaps |= strides[1] != t_.sizes[0] * strides[0] && (k == 0 || strides[1] != 0);
  }
  return gaps ? kBlock / 8 : block_ / 2;
}

void Runner::go_to(int64_t element) {
  for (int d = 0; d < t_.ndim; ++d) {
    index_[d] = element % t_.sizes[d];
    element /= t_.sizes[d];
  }
  for (int k = 0; k < t_.num_operands; ++k) {
    offsets_[k] = 0;
    for (int d = 0; d < t_.ndim; ++d) offsets_[k] += index_[d] * t_.operands[k].strides[d];
  }
}

void Runner::piece(int64_t n, int64_t rows) {
  if (!loop_) {
    // A copy: load into the destination, store from the source, or both through a block.
    if (in_place(0, n, rows)) {
      feeds_[1].load(t_.operands[0].data + offsets_[0], rows_of(1), n, rows);
    } else if (in_place(1, n, rows)) {
      feeds_[0].store(rows_of(0), t_.operands[1].data + offsets_[1], n, rows);
    } else {
      feeds_[1].load(feeds_[1].block, rows_of(1), n, rows);
      feeds_[0].store(rows_of(0), feeds_[1].block, n, rows);
    }
    return;
  }
  if (!buffered_ && rows == 1) {
    for (int k = 0; k < t_.num_operands; ++k) pointers_[k] = t_.operands[k].data + offsets_[k];
    loop_(pointers_, n, params_);
    return;
  }
  for (int k = 1; k < t_.num_operands; ++k) {
    if (in_place(k, n, rows)) {
      pointers_[k] = t_.operands[k].data + offsets_[k];
      continue;
    }
    pointers_[k] = feeds_[k].block;
    if (!feeds_[k].constant) fill(k, n, rows);
  }
  const bool write_direct = in_place(0, n, rows);
  pointers_[0] = write_direct ? t_.operands[0].data + offsets_[0] : feeds_[0].block;
  loop_(pointers_, n * rows, params_);
  if (!write_direct) feeds_[0].store(rows_of(0), feeds_[0].block, n, rows);
}

void Runner::range(int64_t begin, int64_t end) {
  const int64_t* sizes = t_.sizes;
  const int operands = t_.num_operands;
  go_to(begin);
  for (int64_t at = begin; at < end;) {
    // A piece: part of one row, or several whole short rows.
    int64_t n = std::min(sizes[0] - index_[0], end - at), rows = 1;
    if (buffered_ && n > block_) n = block_;
    if (index_[0] == 0 && sizes[0] <= short_row_) {
      rows = std::min({block_ / sizes[0], sizes[1] - index_[1], (end - at) / sizes[0]});
      if (rows > 1)
        n = sizes[0];
      else
        rows = 1;
    }
    piece(n, rows);
    at += n * rows;
    if (rows == 1) {
      index_[0] += n;
      for (int k = 0; k < operands; ++k) offsets_[k] += n * t_.operands[k].strides[0];
      if (index_[0] < sizes[0]) continue;
      index_[0] = 0;
      for (int k = 0; k < operands; ++k) offsets_[k] -= sizes[0] * t_.operands[k].strides[0];
    }
    if (t_.ndim == 1) continue;
    index_[1] += rows;
    for (int k = 0; k < operands; ++k) offsets_[k] += rows * t_.operands[k].strides[1];
    for (int d = 1; d + 1 < t_.ndim && index_[d] == sizes[d]; ++d) {
      index_[d] = 0;
      ++index_[d + 1];
      for (int k = 0; k < operands; ++k) offsets_[k] += t_.operands[k].strides[d + 1] - sizes[d] * t_.operands[k].strides[d];
    }
  }
}

void Runner::tiles(int64_t begin, int64_t end) {
  const int64_t columns = t_.sizes[0];
  for (int64_t row = begin; row < end;) {
    go_to(row * columns);
    const int64_t rows = std::min({block_ / kTile, t_.sizes[1] - index_[1], end - row});
    for (int64_t c = 0; c < columns; c += kTile) {
      const int64_t n = std::min(kTile, columns - c);
      piece(n, rows);
      for (int k = 0; k < t_.num_operands; ++k) offsets_[k] += n * t_.operands[k].strides[0];
    }
    row += rows;
  }
}

}  // namespace

void Traversal::set_sizes(IntArrayRef broadcast) {
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
    int64_t buffers[kMaxOperands][kMaxDims];
    int64_t outer_sizes[kMaxDims];
    const int64_t* strides[kMaxOperands];
    int order[kMaxDims];
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
      for (int k = 0; k < num_operands && merge; ++k) merge = buffers[k][from] == operands[k].strides[kept - 1] * sizes[kept - 1];
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

// Does some operand lie across the result: neighbours along the second dimension, strides along the first?
bool Traversal::runs_across() const {
  if (ndim < 2 || sizes[0] < kTile || sizes[1] < kBlock / kTile) return false;
  for (int k = 0; k < num_operands; ++k) {
    const int64_t element = static_cast<int64_t>(element_size(operands[k].dtype));
    if (operands[k].strides[0] > element && operands[k].strides[1] == element) return true;
  }
  return false;
}

// Is the last operand one element for each long row, beside operands that the loop reads where they are?
bool Traversal::repeats_last() const {
  constexpr int64_t kLongRow = 64;  // below, several rows at a time are faster
  if (sizes[0] < kLongRow || operands[num_operands - 1].strides[0] != 0 || !operands[num_operands - 1].as_it_is()) return false;
  for (int k = 0; k + 1 < num_operands; ++k)
    if (!operands[k].as_it_is() || operands[k].strides[0] != static_cast<int64_t>(element_size(operands[k].dtype))) return false;
  return true;
}

void Traversal::run(PointwiseLoop loop, const void* params, PointwiseLoop repeating) const {
  if (numel == 0) return;
  if (runs_across()) {
    parallel_for(0, numel / sizes[0], std::max<int64_t>(1, kParallelGrain / sizes[0]),
                 [&](int64_t begin, int64_t end) { Runner(*this, loop, params, numel).tiles(begin, end); });
    return;
  }
  const bool repeats = repeating && repeats_last();
  if (repeats) loop = repeating;
  if (numel < 2 * kParallelGrain) {
    Runner(*this, loop, params, numel, repeats).range(0, numel);
    return;
  }
  parallel_for(0, (numel + kBlock - 1) / kBlock, kParallelGrain / kBlock, [&](int64_t begin, int64_t end) {
    Runner(*this, loop, params, numel, repeats).range(begin * kBlock, std::min(end * kBlock, numel));
  });
}

}  // namespace cresset::cpu
