// Softmax and its logarithm over the middle one of (outer, n, inner) elements: element j of a row lies at AT(j). LAST: inner is 1, which the
// compiler should know.
#if LAST
#define BASE (row * n)
#define AT(j) (base + (j))
#else
#define BASE ((row / inner) * n * inner + row % inner)
#define AT(j) (base + (j) * inner)
#endif

kernel void softmax(BUFFER(x), BUFFER(out), const ulong rows, const ulong n, const ulong inner SHARED) {
  const ulong row = ROW;
  LEAVE_PAST(rows);
  OPEN(X, x);
  OPEN(R, out);
  const ulong base = BASE;
  A top = -INFINITY;
  for (ulong j = FIRST; j < n; j += STEP) {
    const A v = LOAD(X, x, AT(j));
    top = (v > top || v != v) ? v : top;
  }
  top = LARGEST(top);
  A part = 0;
  for (ulong j = FIRST; j < n; j += STEP) part += exp((A)LOAD(X, x, AT(j)) - top);
  const A sum = JOINED(part);
#if LOGARITHM
  const A shift = top + log(sum);
  for (ulong j = FIRST; j < n; j += STEP) STORE(R, out, AT(j), (A)LOAD(X, x, AT(j)) - shift);
#else
  const A scale = 1 / sum;
  for (ulong j = FIRST; j < n; j += STEP) STORE(R, out, AT(j), exp((A)LOAD(X, x, AT(j)) - top) * scale);
#endif
}

kernel void softmax_backward(BUFFER(grad), BUFFER(y), BUFFER(out), const ulong rows, const ulong n, const ulong inner SHARED) {
  const ulong row = ROW;
  LEAVE_PAST(rows);
  OPEN(X, grad);
  OPEN(Y, y);
  OPEN(R, out);
  const ulong base = BASE;
  A part = 0;
  for (ulong j = FIRST; j < n; j += STEP) {
    const A g = LOAD(X, grad, AT(j));
#if LOGARITHM
    part += g;
#else
    part += g * (A)LOAD(Y, y, AT(j));
#endif
  }
  const A sum = JOINED(part);
  for (ulong j = FIRST; j < n; j += STEP) {
    const A g = LOAD(X, grad, AT(j)), v = LOAD(Y, y, AT(j));
#if LOGARITHM
    STORE(R, out, AT(j), g - exp(v) * sum);
#else
    STORE(R, out, AT(j), (g - sum) * v);
#endif
  }
}
