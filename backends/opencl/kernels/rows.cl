// Rows: independent stretches of elements that a kernel reads several times. A: the type that is computed in. A row belongs to one work item; with
// GROUPED to one work group whose items share it; with VECTORS, on processors, to one work item that takes sixteen elements at a time; with COLUMNS
// to one work item that does sixteen rows which lie side by side.
//
// What is done with elements is written once, as a macro of L, `one` element or `many`:
//     SUM(total);
//     #define ADD(L) L##_total += L##_LOAD(X, x, at);
//     ALONG_ROW(ADD)
//     const ROW_T all = TOTAL(total);
// The file says where elements lie: AT(j) is the place of a row's element j, j counts to n. With VECTORS a row is STRETCHES stretches of STRETCH
// elements side by side, the first of them at START(o), and j is the place in the stretch.
// Barriers stand outside of all branches: some compilers cannot take them there.
#define one_T A
#define one_LOAD(x, p, i) ((A)LOAD(x, p, i))
#define one_STORE(x, p, i, v) STORE(x, p, i, v)
#define many_T V
#define many_LOAD(x, p, i) VLOAD(x, p, i)
#define many_STORE(x, p, i, v) VSTORE(x, p, i, v)

#if GROUPED
static A row_sum(A v, local A *shared) {
  const uint item = get_local_id(0);
  barrier(CLK_LOCAL_MEM_FENCE);
  shared[item] = v;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (uint n = get_local_size(0) / 2; n > 0; n /= 2) {
    if (item < n) shared[item] += shared[item + n];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  return shared[0];
}
static A row_max(A v, local A *shared) {
  const uint item = get_local_id(0);
  barrier(CLK_LOCAL_MEM_FENCE);
  shared[item] = v;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (uint n = get_local_size(0) / 2; n > 0; n /= 2) {
    if (item < n) shared[item] = shared[item] > shared[item + n] ? shared[item] : shared[item + n];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  return shared[0];
}
#define ROW ((ulong)get_group_id(0))
#define LEAVE_PAST(rows)
#define FIRST ((ulong)get_local_id(0))
#define STEP ((ulong)get_local_size(0))
#define SHARED , local A *shared
#define LEADS (get_local_id(0) == 0)
#else
#define ROW ((ulong)get_global_id(0))
#define LEAVE_PAST(rows) if (get_global_id(0) >= (rows)) return
#define FIRST 0
#define STEP 1
#define SHARED
#define LEADS 1
#endif

#if COLUMNS
#define ROW_T V
#define DECLARE(name, value) V many_##name = (V)(value)
#define TOTAL(name) (many_##name)
#define LARGEST(name) (many_##name)
#define ALONG_ROW(each)             \
  for (ulong j = 0; j < n; ++j) {   \
    const ulong at = AT(j);         \
    each(many)                      \
  }
#elif VECTORS
#define ROW_T A
#define DECLARE(name, value) A one_##name = (value); V many_##name = (V)(value)
#define TOTAL(name) (one_##name + sum_of(many_##name))
#define LARGEST(name) fmax(one_##name, largest_of(many_##name))
#define ALONG_ROW(each)                                                                      \
  for (ulong o = 0; o < STRETCHES; ++o) {                                                    \
    const ulong start = START(o);                                                            \
    ulong j = 0;                                                                             \
    for (; j + LANES <= STRETCH; j += LANES) { const ulong at = start + j; each(many) }      \
    for (; j < STRETCH; ++j) { const ulong at = start + j; each(one) }                       \
  }
#else
#define ROW_T A
#define DECLARE(name, value) A one_##name = (value)
#if GROUPED
#define TOTAL(name) row_sum(one_##name, shared)
#define LARGEST(name) row_max(one_##name, shared)
#else
#define TOTAL(name) (one_##name)
#define LARGEST(name) (one_##name)
#endif
#define ALONG_ROW(each)                          \
  for (ulong j = FIRST; j < n; j += STEP) {      \
    const ulong at = AT(j);                      \
    each(one)                                    \
  }
#endif
#define SUM(name) DECLARE(name, 0)
