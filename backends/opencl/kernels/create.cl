// Values that follow from a place alone, and triangles. A: the type that is computed in.
kernel void arange(BUFFER(out), const ulong n, const A start, const A step) {
  const ulong i = get_global_id(0);
  if (i >= n) return;
  OPEN(T, out);
  STORE(T, out, i, start + (A)i * step);
}

// Elements of matrices (rows, columns) at or below the diagonal, or with UPPER at or above it.
kernel void triangle(BUFFER(x), BUFFER(out), const ulong n, const ulong rows, const ulong columns, const long diagonal) {
  const ulong i = get_global_id(0);
  if (i >= n) return;
  OPEN(T, x);
  OPEN(T, out);
  const long column = (long)(i % columns), row = (long)(i / columns % rows);
#if UPPER
  const int kept = column - row >= diagonal;
#else
  const int kept = column - row <= diagonal;
#endif
  STORE(T, out, i, kept ? (A)LOAD(T, x, i) : (A)0);
}

// Sums (or with PRODUCTS products) up to each place of the middle of (outer, size, inner).
kernel void cumulate(BUFFER(x), BUFFER(out), const ulong lines, const ulong size, const ulong inner) {
  const ulong line = get_global_id(0);
  if (line >= lines) return;
  OPEN(X, x);
  OPEN(T, out);
  const ulong base = line / inner * size * inner + line % inner;
#if PRODUCTS
  A v = 1;
#else
  A v = 0;
#endif
  for (ulong j = 0; j < size; ++j) {
#if PRODUCTS
    v *= (A)LOAD(X, x, base + j * inner);
#else
    v += (A)LOAD(X, x, base + j * inner);
#endif
    STORE(T, out, base + j * inner, v);
  }
}
