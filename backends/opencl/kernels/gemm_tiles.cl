// The product of gemm.cl for graphics processors: a work group computes a block of SIDE x SIDE, for which it takes strips of A and B, DEPTH deep, into
// local memory; each of its ITEMS x ITEMS work items has EACH x EACH elements, ITEMS apart, so that neighbours read and write neighbours.
#define ITEMS 16
#define EACH 4
#define SIDE (ITEMS * EACH)
#define DEPTH 16

kernel void gemm(BUFFER(a), BUFFER(b_), BUFFER(c0), BUFFER(out), const ulong m, const ulong n, const ulong k, const ulong a_batch,
                 const ulong a_row, const ulong a_column, const ulong b_batch, const ulong b_row, const ulong c0_batch, const ulong c0_row,
                 const ulong c0_column, const ulong out_batch, const ulong out_row, const A alpha, const A beta) {
  local A left[DEPTH][SIDE + 1], right[DEPTH][SIDE];
  const uint x = get_local_id(0), y = get_local_id(1), item = y * ITEMS + x;
  const ulong n0 = get_group_id(0) * SIDE, m0 = get_group_id(1) * SIDE, b = get_group_id(2);
  OPEN(T, a);
  OPEN(T, b_);
  OPEN(C0T, c0);
  OPEN(T, out);
  A sum[EACH][EACH];
  for (int r = 0; r < EACH; ++r)
    for (int c = 0; c < EACH; ++c) sum[r][c] = 0;
  for (ulong k0 = 0; k0 < k; k0 += DEPTH) {
    for (uint i = item; i < DEPTH * SIDE; i += ITEMS * ITEMS) {
      // Whichever of A's directions is the denser one is read by neighbours.
      const uint deep = a_column <= a_row ? i % DEPTH : i / SIDE, row = a_column <= a_row ? i / DEPTH : i % SIDE;
      const ulong j = k0 + deep;
      left[deep][row] = j < k && m0 + row < m ? (A)LOAD(T, a, b * a_batch + (m0 + row) * a_row + j * a_column) : (A)0;
    }
    for (uint i = item; i < DEPTH * SIDE; i += ITEMS * ITEMS) {
      const uint deep = i / SIDE, column = i % SIDE;
      const ulong j = k0 + deep;
      right[deep][column] = j < k && n0 + column < n ? (A)LOAD(T, b_, b * b_batch + j * b_row + n0 + column) : (A)0;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint j = 0; j < DEPTH; ++j)
      for (int r = 0; r < EACH; ++r)
        for (int c = 0; c < EACH; ++c) sum[r][c] += left[j][y + r * ITEMS] * right[j][x + c * ITEMS];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  for (int r = 0; r < EACH; ++r)
    for (int c = 0; c < EACH; ++c) {
      const ulong row = m0 + y + r * ITEMS, column = n0 + x + c * ITEMS;
      if (row < m && column < n) {
        const A old = beta == 0 ? (A)0 : beta * (A)LOAD(C0T, c0, (b * c0_batch + row * c0_row + column * c0_column));
        STORE(T, out, b * out_batch + row * out_row + column, alpha * sum[r][c] + old);
      }
    }
}
