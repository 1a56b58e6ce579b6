// Elements found by number. Tensors are (outer, size, inner); T: their element type, M: the same where it is only moved, I: of indices. With WRAPS
// negative indices count from the end. An index out of range is a fault, reads as 0 and writes nothing.
#if WRAPS
#define PLACE(v, size) ((v) < 0 ? (v) + (long)(size) : (v))
#else
#define PLACE(v, size) (v)
#endif
#define INSIDE(v, size) ((v) >= 0 && (v) < (long)(size))

// out[o, j, i] = x[o, index[j], i]
kernel void index_select(BUFFER(x), BUFFER(index), BUFFER(out), FAULTS, const ulong n, const ulong size, const ulong count,
                         const ulong inner) {
  const ulong k = get_global_id(0);
  if (k >= n) return;
  OPEN(M, x);
  OPEN(I, index);
  OPEN(M, out);
  const ulong i = k % inner, j = k / inner % count, o = k / (inner * count);
  const long given = (long)LOAD(I, index, j), at = PLACE(given, size);
  if (!INSIDE(at, size)) FAULT(BAD_INDEX, given, size)
  out[k] = INSIDE(at, size) ? x[(o * size + (ulong)at) * inner + i] : 0;
}

// out[o, index[j], i] += alpha * source[o, j, i], one work item for each o and i, so that sums have one order.
kernel void index_add(BUFFER(source), BUFFER(index), BUFFER(out), FAULTS, const ulong n, const ulong size, const ulong count,
                      const ulong inner, const long skipped, const A alpha) {
  const ulong k = get_global_id(0);
  if (k >= n) return;
  OPEN(T, source);
  OPEN(I, index);
  OPEN(T, out);
  const ulong i = k % inner, o = k / inner;
  for (ulong j = 0; j < count; ++j) {
    const long given = (long)LOAD(I, index, j), at = PLACE(given, size);
    if (given == skipped) continue;
    if (!INSIDE(at, size)) {
      FAULT(BAD_INDEX, given, size)
      continue;
    }
    const ulong to = (o * size + (ulong)at) * inner + i;
    STORE(T, out, to, (A)LOAD(T, out, to) + alpha * (A)LOAD(T, source, (o * count + j) * inner + i));
  }
}

// gather and scatter: walk w over the index's elements but one dimension; w0 in index, w1 in x (gather: source, scatter: target), w2 in the
// other tensor. Along the dimension: strides and the size of x.
#if WALKING
kernel void gather(BUFFER(x), BUFFER(indices), BUFFER(out), FAULTS, const Shape_w w, const ulong n, const ulong count, const ulong size,
                   const ulong index_stride, const ulong x_stride, const ulong out_stride) {
  const ulong k = get_global_id(0);
  if (k >= n * count) return;
  const index i = (index)(k % n);
  const ulong j = k / n;
  WALK_w
  OPEN(M, x);
  OPEN(I, indices);
  OPEN(M, out);
  const long given = (long)LOAD(I, indices, w0 + j * index_stride), at = PLACE(given, size);
  if (!INSIDE(at, size)) FAULT(BAD_INDEX, given, size)
  out[w2 + j * out_stride] = INSIDE(at, size) ? x[w1 + (ulong)at * x_stride] : 0;
}

// Elements of one line go in order, so that the last one, or the sum, is the same at every run.
kernel void scatter(BUFFER(target), BUFFER(indices), BUFFER(source), FAULTS, const Shape_w w, const ulong n, const ulong count, const ulong size,
                    const ulong index_stride, const ulong target_stride, const ulong source_stride) {
  const index i = (index)get_global_id(0);
  if (i >= n) return;
  WALK_w
#if ADDS
  OPEN(T, target);
  OPEN(T, source);
#else
  OPEN(M, target);
  OPEN(M, source);
#endif
  OPEN(I, indices);
  for (ulong j = 0; j < count; ++j) {
    const long given = (long)LOAD(I, indices, w0 + j * index_stride), at = PLACE(given, size);
    if (!INSIDE(at, size)) {
      FAULT(BAD_INDEX, given, size)
      continue;
    }
    const ulong to = w1 + (ulong)at * target_stride, from = w2 + j * source_stride;
#if ADDS
    STORE(T, target, to, (A)LOAD(T, target, to) + (A)LOAD(T, source, from));
#else
    target[to] = source[from];
#endif
  }
}
#endif
