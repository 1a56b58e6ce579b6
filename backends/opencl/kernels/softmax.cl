// Softmax and its logarithm over the middle one of (outer, n, inner) elements. Element j of a row lies at BASE + j * inner.
#define BASE ((row / inner) * n * inner + row % inner)

kernel void softmax(BUFFER(x), BUFFER(out), const ulong rows, const ulong n, const ulong inner SHARED) {
  const ulong row = ROW;
  LEAVE_PAST(rows);
  OPEN(X, x);
  OPEN(R, out);
  const ulong base = BASE;
  A top = -INFINITY;
  for (ulong j = FIRST; j < n; j += STEP) {
    const A v = LOAD(X, x, base + j * inner);
    top = (v > top || v != v) ? v : top;
  }
  top = LARGEST(top);
  A part = 0;
  for (ulong j = FIRST; j < n; j += STEP) part += exp((A)LOAD(X, x, base + j * inner) - top);
  const A sum = JOINED(part);
#if LOGARITHM
  const A shift = top + log(sum);
  for (ulong j = FIRST; j < n; j += STEP) STORE(R, out, base + j * inner, (A)LOAD(X, x, base + j * inner) - shift);
#else
  const A scale = 1 / sum;
  for (ulong j = FIRST; j < n; j += STEP) STORE(R, out, base + j * inner, exp((A)LOAD(X, x, base + j * inner) - top) * scale);
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
    const A g = LOAD(X, grad, base + j * inner);
#if LOGARITHM
    part += g;
#else
    part += g * (A)LOAD(Y, y, base + j * inner);
#endif
  }
  const A sum = JOINED(part);
  for (ulong j = FIRST; j < n; j += STEP) {
    const A g = LOAD(X, grad, base + j * inner), v = LOAD(Y, y, base + j * inner);
#if LOGARITHM
    STORE(R, out, base + j * inner, g - exp(v) * sum);
#else
    STORE(R, out, base + j * inner, (g - sum) * v);
#endif
  }
}
