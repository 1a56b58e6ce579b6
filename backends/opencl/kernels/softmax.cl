// Softmax and its logarithm over the middle one of (outer, n, inner) elements. LAST: inner is 1, which the compiler should know. A NaN is not the
// largest, but it is part of the sum.
#if COLUMNS
// The last strip of sixteen rows reaches back into the one before it; both write the same there.
#define BASE_OF_ROW                                                                       \
  const ulong strips = (inner + LANES - 1) / LANES, strip = get_global_id(0) % strips * LANES; \
  const ulong base = get_global_id(0) / strips * n * inner + (strip + LANES <= inner ? strip : inner - LANES);
#else
#define BASE_OF_ROW       \
  const ulong row = ROW;  \
  LEAVE_PAST(rows);       \
  const ulong base = LAST ? row * n : (row / inner) * n * inner + row % inner;
#endif
#if LAST
#define AT(j) (base + (j))
#else
#define AT(j) (base + (j) * inner)
#endif
#define STRETCHES 1
#define STRETCH n
#define START(o) base

kernel void softmax(BUFFER(x), BUFFER(out), const ulong rows, const ulong n, const ulong inner SHARED) {
  OPEN(X, x);
  OPEN(R, out);
  BASE_OF_ROW
  DECLARE(largest, -INFINITY);
#define COMPARE(L)                          \
  const L##_T v = L##_LOAD(X, x, at);       \
  L##_largest = v > L##_largest ? v : L##_largest;
  ALONG_ROW(COMPARE)
  const ROW_T top = LARGEST(largest);
  SUM(exponentials);
#define ADD(L) L##_exponentials += exp(L##_LOAD(X, x, at) - top);
  ALONG_ROW(ADD)
  const ROW_T sum = TOTAL(exponentials);
#if LOGARITHM
  const ROW_T shift = top + log(sum);
#define WRITE(L) L##_STORE(R, out, at, L##_LOAD(X, x, at) - shift);
#else
  const ROW_T scale = 1 / sum;
#define WRITE(L) L##_STORE(R, out, at, exp(L##_LOAD(X, x, at) - top) * scale);
#endif
  ALONG_ROW(WRITE)
}

kernel void softmax_backward(BUFFER(grad), BUFFER(y), BUFFER(out), const ulong rows, const ulong n, const ulong inner SHARED) {
  OPEN(X, grad);
  OPEN(Y, y);
  OPEN(R, out);
  BASE_OF_ROW
  SUM(terms);
#if LOGARITHM
#define ADD_TERM(L) L##_terms += L##_LOAD(X, grad, at);
#define WRITE_GRADIENT(L) L##_STORE(R, out, at, L##_LOAD(X, grad, at) - exp(L##_LOAD(Y, y, at)) * sum);
#else
#define ADD_TERM(L) L##_terms += L##_LOAD(X, grad, at) * L##_LOAD(Y, y, at);
#define WRITE_GRADIENT(L) L##_STORE(R, out, at, (L##_LOAD(X, grad, at) - sum) * L##_LOAD(Y, y, at));
#endif
  ALONG_ROW(ADD_TERM)
  const ROW_T sum = TOTAL(terms);
  ALONG_ROW(WRITE_GRADIENT)
}
