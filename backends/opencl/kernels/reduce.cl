// Reductions. Walks: k over results (k0 the result's place, k1 where its elements begin), r over the elements of one result (r0 their
// number in the operator's order, r1 their distance from k1). X, R, R2: element types of operand and results; A: accumulator.

typedef struct {
  A v;     // the value; of a variance the mean
  A w;     // of a variance the sum of squared distances, of a logarithm of sums the sum
  long n;  // of a variance the number of elements, of an extreme its place
} acc;

static acc make(A v) {
  acc a;
  a.v = v;
  a.w = 0;
  a.n = 0;
  return a;
}

// UPDATE takes element x, the i-th, into an accumulator. T: A, or of processors' accumulators (reduce_vectors.cl) the vector of it.
#if OP_SUM || OP_MEAN
#define START make(0)
#define UPDATE(T, a, x, i) a.v += (x)
#define COMBINE(a, b) a.v += (b).v
#elif OP_PROD
#define START make(1)
#define UPDATE(T, a, x, i) a.v *= (x)
#define COMBINE(a, b) a.v *= (b).v
#elif OP_ANY
#define START make(0)
#define UPDATE(T, a, x, i) a.v |= (x)
#define COMBINE(a, b) a.v |= (b).v
#elif OP_ALL
#define START make(1)
#define UPDATE(T, a, x, i) a.v &= (x)
#define COMBINE(a, b) a.v &= (b).v
#elif OP_MAX || OP_MIN
// A NaN beats everything; of equal ones the first is kept. n is -1 before the first element.
static acc first_none() {
  acc a = make(0);
  a.n = -1;
  return a;
}
#define START first_none()
#if OP_MAX
#define BEATS(x, y) ((x) > (y) || ((x) != (x) && (y) == (y)))
#else
#define BEATS(x, y) ((x) < (y) || ((x) != (x) && (y) == (y)))
#endif
static acc better(acc a, acc b) {
  if (b.n < 0) return a;
  if (a.n < 0) return b;
  const int same = a.v == b.v || (a.v != a.v && b.v != b.v);
  if (same) return a.n < b.n ? a : b;
  return BEATS(b.v, a.v) ? b : a;
}
static acc element(A x, long i) {
  acc a = make(x);
  a.n = i;
  return a;
}
#define UPDATE(T, a, x, i) a = better(a, element(x, i))
#define COMBINE(a, b) a = better(a, b)
#elif OP_VAR
// Welford's update; parts are joined as in Chan, Golub, LeVeque: Updating formulae (1979).
#define START make(0)
#define UPDATE(T, a, x, i)            \
  {                                   \
    const T x_ = (x), d = x_ - a.v;   \
    a.n += 1;                         \
    a.v += d * (1 / (A)a.n);          \
    a.w += d * (x_ - a.v);            \
  }
#define COMBINE(a, b)                                             \
  {                                                               \
    const acc b_ = (b);                                           \
    const long n = a.n + b_.n;                                    \
    if (b_.n > 0) {                                               \
      const A d = b_.v - a.v, part = (A)b_.n / (A)n;              \
      a.w += b_.w + d * d * (A)a.n * part;                        \
      a.v += d * part;                                            \
      a.n = n;                                                    \
    }                                                             \
  }
#elif OP_LOGSUMEXP
#define START make(-INFINITY)
static acc joined(acc a, acc b) {
  const A m = a.v > b.v || a.v != a.v ? a.v : b.v;
  acc c = make(m);
  c.w = fabs(m) == INFINITY ? a.w + b.w : a.w * exp(a.v - m) + b.w * exp(b.v - m);
  return c;
}
#define UPDATE(T, a, x, i)                                           \
  {                                                                  \
    const T x_ = (x), m = (a.v > x_ || a.v != a.v) ? a.v : x_;       \
    const T sum = a.w * exp(a.v - m) + exp(x_ - m);                  \
    a.w = fabs(m) == (T)(INFINITY) ? a.w + 1 : sum;                  \
    a.v = m;                                                         \
  }
#define COMBINE(a, b) a = joined(a, b)
#elif OP_NORM
// Norms by their order: 0 counts, 1, 2, infinities, any other.
#if NORM_MAX
#define START make(0)
#define UPDATE(T, a, x, i) { const T y = fabs(x); a.v = (y > a.v || y != y) ? y : a.v; }
#define COMBINE(a, b) a.v = ((b).v > a.v || (b).v != (b).v) ? (b).v : a.v
#elif NORM_MIN
#define START make(INFINITY)
#define UPDATE(T, a, x, i) { const T y = fabs(x); a.v = (y < a.v || y != y) ? y : a.v; }
#define COMBINE(a, b) a.v = ((b).v < a.v || (b).v != (b).v) ? (b).v : a.v
#else
#define START make(0)
#if NORM_0
#define UPDATE(T, a, x, i) a.v += ((x) != 0 ? (T)(1) : (T)(0))
#elif NORM_1
#define UPDATE(T, a, x, i) a.v += fabs(x)
#elif NORM_2
#define UPDATE(T, a, x, i) { const T y = (x); a.v += y * y; }
#else
#define UPDATE(T, a, x, i) a.v += pow(fabs(x), (T)(parameter))
#endif
#define COMBINE(a, b) a.v += (b).v
#endif
#endif

// parameter: correction of a variance, order of a norm.
static void finish(acc a, ulong count, A parameter, BUFFER(out), BUFFER(out2), index place) {
  OPEN(R, out);
#if OP_MEAN
  STORE(R, out, place, a.v / (A)count);
#elif OP_VAR
  const A divisor = (A)a.n - parameter, variance = a.w / (divisor > 0 ? divisor : 0);
#if ROOT
  STORE(R, out, place, sqrt(variance));
#else
  STORE(R, out, place, variance);
#endif
#if TWO
  OPEN(R2, out2);
  STORE(R2, out2, place, a.v);
#endif
#elif OP_LOGSUMEXP
  STORE(R, out, place, fabs(a.v) == INFINITY || a.v != a.v ? a.v : a.v + log(a.w));
#elif OP_NORM && NORM_2
  STORE(R, out, place, sqrt(a.v));
#elif OP_NORM && NORM_P
  STORE(R, out, place, pow(a.v, 1 / parameter));
#elif ARG
  STORE(R, out, place, a.n);
#else
  STORE(R, out, place, a.v);
#if TWO
  OPEN(R2, out2);
  STORE(R2, out2, place, a.n);
#endif
#endif
}

#define OPERANDS                                                                                                                       \
  BUFFER(x), BUFFER(out), BUFFER(out2), BUFFER(partial), const Shape_k k, const ulong results, const Shape_r r, const ulong count, \
      const ulong chunks, const A parameter
#if OP_ANY || OP_ALL
#define ELEMENT(v) ((v) != 0)
#else
#define ELEMENT(v) ((A)(v))
#endif
#define ELEMENT_AT(j) const index i = (j); WALK_r

#if !VECTORS
// One work item a result.
kernel void reduce_items(OPERANDS) {
  const index i = (index)get_global_id(0);
  if (i >= results) return;
  WALK_k
  OPEN(X, x);
  acc a = START;
  for (index j = 0; j < count; ++j) {
    ELEMENT_AT(j)
    UPDATE(A, a, ELEMENT(LOAD(X, x, k1 + r1)), (long)r0);
  }
  finish(a, count, parameter, out_memory, out_offset, out2_memory, out2_offset, k0);
}

// One work group for each of `chunks` stretches of each result.
kernel void reduce_groups(OPERANDS, local acc *shared) {
  const index group = (index)get_group_id(0), item = (index)get_local_id(0), items = (index)get_local_size(0);
  const index stretch = (index)((count + chunks - 1) / chunks), chunk = group % (index)chunks;
  const index begin = chunk * stretch, end = begin + stretch < count ? begin + stretch : (index)count;
  const index i = group / (index)chunks;
  WALK_k
  OPEN(X, x);
  acc a = START;
  for (index j = begin + item; j < end; j += items) {
    ELEMENT_AT(j)
    UPDATE(A, a, ELEMENT(LOAD(X, x, k1 + r1)), (long)r0);
  }
  shared[item] = a;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (index half_ = items / 2; half_ > 0; half_ /= 2) {
    if (item < half_) {
      acc mine = shared[item];
      COMBINE(mine, shared[item + half_]);
      shared[item] = mine;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  if (item == 0) {
    if (chunks == 1)
      finish(shared[0], count, parameter, out_memory, out_offset, out2_memory, out2_offset, k0);
    else
      ((global acc *)(partial_memory + partial_offset))[group] = shared[0];
  }
}
#endif

// Joins the chunks of a result.
kernel void reduce_partials(OPERANDS) {
  const index i = (index)get_global_id(0);
  if (i >= results) return;
  WALK_k
  global const acc *parts = (global const acc *)(partial_memory + partial_offset);
  acc a = parts[i * (index)chunks];
  for (index c = 1; c < chunks; ++c) COMBINE(a, parts[i * (index)chunks + c]);
  finish(a, count, parameter, out_memory, out_offset, out2_memory, out2_offset, k0);
}
