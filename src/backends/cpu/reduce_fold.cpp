// The driver of reductions: merges dimensions, picks the direction that reads memory in order, splits among threads.
#include "backends/cpu/reduce_fold.h"

#include <cresset/base/parallel.h>
#include <cresset/core/dispatch_types.h>
#include <cresset/core/limits.h>

#include <algorithm>
#include <memory>

namespace cresset::cpu {

namespace {

struct Dim {
  int64_t size, stride, out_stride;
};

// Dimensions of one kind (kept or reduced), outermost first, merged where they lie behind one another.
struct Dims {
  Dims() {}  // the array stays unset
  Dim at[kMaxDims];
  int count = 0;

  void push(Dim d) { at[count++] = d; }
  void finish() {
    std::sort(at, at + count, [](const Dim& a, const Dim& b) { return std::abs(a.stride) > std::abs(b.stride); });
    int last = 0;
    for (int i = 1; i < count; ++i) {
      if (at[last].stride == at[i].size * at[i].stride && at[last].out_stride == at[i].size * at[i].out_stride)
        at[last] = {at[last].size * at[i].size, at[i].stride, at[i].out_stride};
      else
        at[++last] = at[i];
    }
    if (count > 0)
      count = last + 1;
    else
      push({1, 0, 0});
  }
  Dim& inner() { return at[count - 1]; }
  const Dim& inner() const { return at[count - 1]; }
  // Number of positions of all dimensions but the innermost.
  int64_t outer() const {
    int64_t n = 1;
    for (int i = 0; i + 1 < count; ++i) n *= at[i].size;
    return n;
  }
  // Offsets of an outer position.
  void locate(int64_t position, int64_t* offset, int64_t* out_offset) const {
    *offset = *out_offset = 0;
    for (int i = count - 2; i >= 0; --i) {
      const int64_t k = position % at[i].size;
      position /= at[i].size;
      *offset += k * at[i].stride;
      *out_offset += k * at[i].out_stride;
    }
  }
};

constexpr int64_t kSplitReduction = 1 << 16;  // reductions of fewer elements stay in one piece
constexpr int64_t kPiece = 1 << 15;
constexpr int64_t kWork = 1 << 16;  // elements that are worth waking a thread for

struct Reduction {
  const Fold& fold;
  const char* data;
  int64_t itemsize;
  Dims kept, reduced;
  bool by_columns;
  int64_t outer_reduced;

  // acc takes in the whole reduction of `n` results from `offset` on, or the part [begin, end) of the innermost reduced dimension.
  void run(int64_t offset, int64_t n, int64_t begin, int64_t end, void* acc) const {
    const Dim &k = kept.inner(), &r = reduced.inner();
    for (int64_t o = 0; o < outer_reduced; ++o) {
      int64_t at, unused;
      reduced.locate(o, &at, &unused);
      const char* const p = data + (offset + at + begin * r.stride) * itemsize;
      const int64_t first = o * r.size + begin;
      if (by_columns)
        fold.columns(p, end - begin, r.stride, n, first, acc);
      else
        fold.rows(p, n, k.stride, end - begin, r.stride, first, acc);
    }
  }
};

}  // namespace

const Fold& find_fold(FoldKind kind, ScalarType type, const char* op) {
  static const FoldTable& table = CRESSET_FOR_THIS_PROCESSOR(folds());
  const int t = static_cast<int>(type);
  const Fold* const fold = t < kFoldTypes ? &table[static_cast<int>(kind)][t] : nullptr;
  if (!fold || !fold->init) detail::raise_dtype_not_implemented(op, type);
  return *fold;
}

namespace {

// The dimensions that are kept and reduced, in the order in which they are walked.
Reduction reduction_of(const Fold& fold, const Tensor& self, uint64_t mask, const Tensor& out) {
  Reduction job{fold, static_cast<const char*>(self.const_data_ptr()), static_cast<int64_t>(self.itemsize()), {}, {}, false, 1};
  const bool keepdim = out.dim() == self.dim();
  int64_t out_dim = 0;
  for (int64_t d = 0; d < self.dim(); ++d) {
    const bool gone = mask >> d & 1;
    const int64_t size = self.size(d);
    if (gone) {
      if (size != 1) job.reduced.push({size, self.stride(d), 0});
    } else if (size != 1) {
      job.kept.push({size, self.stride(d), out.stride(keepdim ? d : out_dim)});
    }
    if (!gone) ++out_dim;
  }
  job.kept.finish();
  job.reduced.finish();
  if (self.numel() == 0) {  // not one step for each of the other reduced dimensions
    job.reduced.count = 0;
    job.reduced.push({0, 0, 0});
  }
  const Dim kept = job.kept.inner(), reduced = job.reduced.inner();
  job.outer_reduced = job.reduced.outer();
  job.by_columns = kept.stride == 1 && kept.size > 1 && reduced.stride != 1;
  return job;
}

// Pieces of the innermost reduced dimension, combined in order.
void run_pieces(const Reduction& job, int64_t piece, int64_t pieces, const FoldSink& sink) {
  const Dim kept = job.kept.inner(), reduced = job.reduced.inner();
  const int64_t outer = job.kept.outer(), results = outer * kept.size;
  const Fold& fold = job.fold;
  const std::size_t row = static_cast<std::size_t>(results) * fold.acc_size;
  const auto partial = std::make_unique_for_overwrite<char[]>(static_cast<std::size_t>(pieces) * row);
  parallel_for(0, pieces, 1, [&](int64_t b, int64_t e) {
    for (int64_t i = b; i < e; ++i) {
      char* const acc = partial.get() + static_cast<std::size_t>(i) * row;
      fold.init(acc, results);
      for (int64_t o = 0; o < outer; ++o) {
        int64_t offset, unused;
        job.kept.locate(o, &offset, &unused);
        for (int64_t c = 0; c < kept.size; c += kFoldTile)
          job.run(offset + c * kept.stride, std::min(kFoldTile, kept.size - c), i * piece, std::min(reduced.size, (i + 1) * piece),
                  acc + (o * kept.size + c) * fold.acc_size);
      }
    }
  });
  for (int64_t i = 1; i < pieces; ++i) fold.combine(partial.get(), partial.get() + static_cast<std::size_t>(i) * row, results);
  for (int64_t o = 0; o < outer; ++o) {
    int64_t unused, out_offset;
    job.kept.locate(o, &unused, &out_offset);
    sink.store(partial.get() + o * kept.size * fold.acc_size, kept.size, out_offset, kept.out_stride);
  }
}

// Tiles of results share one pass; the order of additions does not depend on the tile.
void run_tiles(const Reduction& job, int64_t tile, const FoldSink& sink) {
  const Dim kept = job.kept.inner(), reduced = job.reduced.inner();
  const int64_t tiles = (kept.size + tile - 1) / tile, tasks = job.kept.outer() * tiles;
  const int64_t grain = std::max<int64_t>(1, kWork / std::max<int64_t>(1, tile * job.outer_reduced * reduced.size));
  parallel_for(0, tasks, grain, [&](int64_t begin, int64_t end) {
    alignas(64) char small[2048];
    std::unique_ptr<char[]> big;
    char* acc = small;
    if (static_cast<std::size_t>(tile) * job.fold.acc_size > sizeof(small)) {
      big = std::make_unique_for_overwrite<char[]>(static_cast<std::size_t>(tile) * job.fold.acc_size);
      acc = big.get();
    }
    for (int64_t t = begin; t < end; ++t) {
      int64_t offset, out_offset;
      job.kept.locate(t / tiles, &offset, &out_offset);
      const int64_t start = t % tiles * tile, n = std::min(tile, kept.size - start);
      job.fold.init(acc, n);
      job.run(offset + start * kept.stride, n, 0, reduced.size, acc);
      sink.store(acc, n, out_offset + start * kept.out_stride, kept.out_stride);
    }
  });
}

}  // namespace

void run_fold(const Fold& fold, const Tensor& self, uint64_t mask, const Tensor& out, const FoldSink& sink) {
  if (out.numel() == 0) return;
  const Reduction job = reduction_of(fold, self, mask, out);
  const Dim kept = job.kept.inner(), reduced = job.reduced.inner();
  const int64_t reduce_size = job.outer_reduced * reduced.size, outer = job.kept.outer(), results = outer * kept.size;

  // Few results of many elements, or columns that several threads would read side by side.
  const bool few = reduce_size >= kSplitReduction && results <= kFoldTile / 4;
  const bool wide = job.by_columns && results <= 16 * kFoldTile && reduced.size >= 64 && results * reduce_size >= 16 * kWork;
  if ((few || wide) && job.outer_reduced == 1) {
    const int64_t piece = few ? std::max<int64_t>(1, kPiece / results) : std::max<int64_t>(32, 8 * kPiece / results);
    const int64_t pieces = (reduced.size + piece - 1) / piece;
    if (pieces > 1) return run_pieces(job, piece, pieces, sink);
  }

  int64_t tile = job.by_columns ? kFoldTile : std::max<int64_t>(1, std::min<int64_t>(kFoldTile, kWork / std::max<int64_t>(1, reduce_size)));
  if (job.by_columns && outer * ((kept.size + tile - 1) / tile) < 4 && results * reduce_size >= 2 * kWork && kept.size >= 256)
    tile = std::max<int64_t>(128, kept.size / 4);
  run_tiles(job, std::min(tile, kept.size), sink);
}

}  // namespace cresset::cpu
