// C = alpha A B + beta C0 for batches of matrices. A and C0 have any strides, B and C have columns side by side. A work item computes a block
// of ROWS x COLUMNS. T: the type of the matrices, C0T: of C0, A: the accumulator. ROWS: 4, on processors 8.
#define COLUMNS LANES

#define FINISH(r, c, value)                                                                                                          \
  if (m0 + (r) < m && n0 + (c) < n) {                                                                                                \
    const A old = beta == 0 ? (A)0 : beta * (A)LOAD(C0T, c0, (b * c0_batch + (m0 + (r)) * c0_row + (n0 + (c)) * c0_column));         \
    STORE(T, out, b * out_batch + (m0 + (r)) * out_row + n0 + (c), alpha * (value) + old);                                          \
  }

kernel void gemm(BUFFER(a), BUFFER(b_), BUFFER(c0), BUFFER(out), const ulong m, const ulong n, const ulong k, const ulong a_batch,
                 const ulong a_row, const ulong a_column, const ulong b_batch, const ulong b_row, const ulong c0_batch, const ulong c0_row,
                 const ulong c0_column, const ulong out_batch, const ulong out_row, const A alpha, const A beta) {
  const ulong n0 = get_global_id(0) * COLUMNS, m0 = get_global_id(1) * ROWS, b = get_global_id(2);
  if (m0 >= m || n0 >= n) return;
  OPEN(T, a);
  OPEN(T, b_);
  OPEN(C0T, c0);
  OPEN(T, out);
  V sum[ROWS];
  for (int r = 0; r < ROWS; ++r) sum[r] = 0;
  // Rows past the end are computed from the last one and not stored.
  ulong a_at[ROWS];
  for (int r = 0; r < ROWS; ++r) a_at[r] = b * a_batch + (m0 + r < m ? m0 + r : m - 1) * a_row;
  const ulong b_at = b * b_batch + n0;
  if (n0 + COLUMNS <= n) {
    for (ulong j = 0; j < k; ++j) {
      const V right = VLOAD(T, b_, b_at + j * b_row);
      for (int r = 0; r < ROWS; ++r) sum[r] += (A)LOAD(T, a, a_at[r] + j * a_column) * right;
    }
    for (int r = 0; r < ROWS; ++r) {
      A all[COLUMNS];
      vstore16(sum[r], 0, all);
      for (int c = 0; c < COLUMNS; ++c) FINISH(r, c, all[c])
    }
  } else {
    for (int c = 0; c < COLUMNS && n0 + c < n; ++c) {
      A column[ROWS];
      for (int r = 0; r < ROWS; ++r) column[r] = 0;
      for (ulong j = 0; j < k; ++j) {
        const A right = LOAD(T, b_, b_at + j * b_row + c);
        for (int r = 0; r < ROWS; ++r) column[r] += (A)LOAD(T, a, a_at[r] + j * a_column) * right;
      }
      for (int r = 0; r < ROWS; ++r) FINISH(r, c, column[r])
    }
  }
}
