// Reductions on processors, behind reduce.cl: sixteen accumulators side by side.
typedef struct {
  V v, w;
#if OP_VAR
  long n;
#else
  WHOLE_V n;
#endif
} lanes;

#if OP_MAX || OP_MIN
#if OP_MAX
#define VBEATS(x, y) ((x) > (y))
#else
#define VBEATS(x, y) ((x) < (y))
#endif
#define VSTART(s, x, i) s.v = (x), s.w = 0, s.n = (i)
#define VUPDATE(s, x, i)                                                 \
  {                                                                      \
    const V x_ = (x);                                                    \
    const WHOLE_V beats = VBEATS(x_, s.v) | ((x_ != x_) & (s.v == s.v)); \
    s.v = beats ? x_ : s.v;                                              \
    s.n = beats ? (i) : s.n;                                             \
  }
#else
#define VSTART(s, x, i) s.v = (V)(START.v), s.w = 0, s.n = 0
#define VUPDATE(s, x, i) UPDATE(V, s, x, i)
#endif

#if OP_ANY || OP_ALL
#define VELEMENT(p, i) (TO_V(CAT(VLOAD_, X)(p, i) != CAT(ZERO_, X)) & 1)
#else
#define VELEMENT(p, i) VLOAD(X, p, i)
#endif
#define PLACES (WHOLE_V)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)

// The lanes as accumulators.
static void apart(const lanes *s, acc *out) {
  A v[LANES], w[LANES];
  vstore16(s->v, 0, v);
  vstore16(s->w, 0, w);
#if !OP_VAR
  WHOLE n[LANES];
  vstore16(s->n, 0, n);
#endif
  for (int l = 0; l < LANES; ++l) {
    out[l].v = v[l];
    out[l].w = w[l];
#if OP_VAR
    out[l].n = s->n;
#else
    out[l].n = n[l];
#endif
  }
}

static void leave(acc a, index i, ulong chunk, ulong chunks, ulong count, A parameter, BUFFER(out), BUFFER(out2), BUFFER(partial), index place) {
  if (chunks == 1)
    finish(a, count, parameter, out_memory, out_offset, out2_memory, out2_offset, place);
  else
    ((global acc *)(partial_memory + partial_offset))[i * chunks + chunk] = a;
}
#define LEAVE(a, i, place) \
  leave(a, i, chunk, chunks, count, parameter, out_memory, out_offset, out2_memory, out2_offset, partial_memory, partial_offset, place)
#define STRETCH                                                                                                        \
  const index stretch = (index)((count + chunks - 1) / chunks), begin = (index)chunk * stretch;                        \
  const index end = begin + stretch < count ? begin + stretch : (index)count;

#if RUNS
// Elements of a result lie side by side in runs of `run`. One work item does a stretch of a result.
kernel void reduce_runs(OPERANDS, const ulong run) {
  const index item = (index)get_global_id(0), chunk = item % (index)chunks;
  const index result = item / (index)chunks;
  STRETCH
  index k0_, k1_;
  {
    const index i = result;
    WALK_k
    k0_ = k0;
    k1_ = k1;
  }
  OPEN(X, x);
  acc a = START;
  lanes s;
  int started = 0;
  for (index at = begin; at < end;) {
    const index next = (at / (index)run + 1) * (index)run, stop = next < end ? next : end;
    index r0_, r1_;
    {
      ELEMENT_AT(at)
      r0_ = r0;
      r1_ = r1;
    }
    index j = 0;
    for (; at + j + LANES <= stop; j += LANES) {
      const V value = VELEMENT(x, k1_ + r1_ + j);
      const WHOLE_V places = (WHOLE)(r0_ + j) + PLACES;
      if (!started) {
        VSTART(s, value, places);
        started = 1;
#if OP_MAX || OP_MIN
        continue;
#endif
      }
      VUPDATE(s, value, places);
    }
    for (; at + j < stop; ++j) UPDATE(A, a, ELEMENT(LOAD(X, x, k1_ + r1_ + j)), (long)(r0_ + j));
    at = stop;
  }
  if (started) {
    acc each[LANES];
    apart(&s, each);
    for (int l = 0; l < LANES; ++l) COMBINE(a, each[l]);
  }
  LEAVE(a, result, k0_);
}
#else
// Results lie side by side in runs of `run`, as do their elements. One work item does a stretch of sixteen results; the last strip of a run reaches
// back into the one before it, and both write the same.
kernel void reduce_strips(OPERANDS, const ulong run) {
  const index item = (index)get_global_id(0), chunk = item % (index)chunks, strips = (index)((run + LANES - 1) / LANES);
  const index strip = item / (index)chunks % strips, block = item / (index)chunks / strips;
  const index result = block * (index)run + (index)(strip * LANES + LANES <= run ? strip * LANES : run - LANES);
  STRETCH
  index k0_, k1_;
  {
    const index i = result;
    WALK_k
    k0_ = k0;
    k1_ = k1;
  }
  OPEN(X, x);
  lanes s;
  for (index at = begin; at < end; ++at) {
    ELEMENT_AT(at)
    const V value = VELEMENT(x, k1_ + r1);
    const WHOLE_V places = (WHOLE_V)((WHOLE)r0);
    if (at == begin) {
      VSTART(s, value, places);
#if OP_MAX || OP_MIN
      continue;
#endif
    }
    VUPDATE(s, value, places);
  }
  if (begin >= end) {
    for (int l = 0; l < LANES; ++l) {
      const acc none = START;
      LEAVE(none, result + l, k0_ + l);
    }
    return;
  }
  acc each[LANES];
  apart(&s, each);
  for (int l = 0; l < LANES; ++l) LEAVE(each[l], result + l, k0_ + l);
}
#endif
