// Softmax and its logarithm for processors. One work item does a row, or with COLUMNS sixteen rows that lie side by side: element j of them is the
// vector at AT(j). A row's elements behind its last whole vector are done one by one. A NaN is not the largest, but it is part of the sum.
#if COLUMNS
// The last strip of sixteen reaches back into the one before it; both write the same there.
#define PLACE_OF_ITEM                                                                        \
  const ulong strips = (inner + LANES - 1) / LANES, block = get_global_id(0) / strips;       \
  const ulong strip = get_global_id(0) % strips * LANES;                                     \
  const ulong base = block * n * inner + (strip + LANES <= inner ? strip : inner - LANES);
#define AT(j) (base + (j) * inner)
#define WHOLE n
#define REST(j, statement)
typedef V value;
#define SUM_OF(v) (v)
#define LARGEST_OF(v) (v)
#else
#define PLACE_OF_ITEM const ulong base = get_global_id(0) * n;
#define AT(j) (base + (j) * LANES)
#define WHOLE (n / LANES)
#define REST(j, statement) \
  for (ulong j = base + n / LANES * LANES; j < base + n; ++j) statement;
typedef A value;
#define SUM_OF(v) sum_of(v)
#define LARGEST_OF(v) largest_of(v)
#endif

kernel void softmax(BUFFER(x), BUFFER(out), const ulong n, const ulong inner) {
  OPEN(X, x);
  OPEN(R, out);
  PLACE_OF_ITEM
  V tops = (V)(-INFINITY);
  for (ulong j = 0; j < WHOLE; ++j) {
    const V v = VLOAD(X, x, AT(j));
    tops = v > tops ? v : tops;
  }
  value top = LARGEST_OF(tops);
  REST(j, top = (A)LOAD(X, x, j) > top ? (A)LOAD(X, x, j) : top)
  V part = 0;
  for (ulong j = 0; j < WHOLE; ++j) part += exp(VLOAD(X, x, AT(j)) - top);
  value sum = SUM_OF(part);
  REST(j, sum += exp((A)LOAD(X, x, j) - top))
#if LOGARITHM
  const value shift = top + log(sum);
  for (ulong j = 0; j < WHOLE; ++j) VSTORE(R, out, AT(j), VLOAD(X, x, AT(j)) - shift);
  REST(j, STORE(R, out, j, (A)LOAD(X, x, j) - shift))
#else
  const value scale = 1 / sum;
  for (ulong j = 0; j < WHOLE; ++j) VSTORE(R, out, AT(j), exp(VLOAD(X, x, AT(j)) - top) * scale);
  REST(j, STORE(R, out, j, exp((A)LOAD(X, x, j) - top) * scale))
#endif
}

kernel void softmax_backward(BUFFER(grad), BUFFER(y), BUFFER(out), const ulong n, const ulong inner) {
  OPEN(X, grad);
  OPEN(Y, y);
  OPEN(R, out);
  PLACE_OF_ITEM
#if LOGARITHM
#define TERM(g, v) (g)
#define RESULT(g, v) ((g) - exp(v) * sum)
#else
#define TERM(g, v) ((g) * (v))
#define RESULT(g, v) (((g) - sum) * (v))
#endif
  V part = 0;
  for (ulong j = 0; j < WHOLE; ++j) part += TERM(VLOAD(X, grad, AT(j)), VLOAD(Y, y, AT(j)));
  value sum = SUM_OF(part);
  REST(j, sum += TERM((A)LOAD(X, grad, j), (A)LOAD(Y, y, j)))
  for (ulong j = 0; j < WHOLE; ++j) VSTORE(R, out, AT(j), RESULT(VLOAD(X, grad, AT(j)), VLOAD(Y, y, AT(j))));
  REST(j, STORE(R, out, j, RESULT((A)LOAD(X, grad, j), (A)LOAD(Y, y, j))))
}
