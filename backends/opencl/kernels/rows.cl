// Rows: independent stretches of elements that a kernel reads several times. A row belongs to one work item, or, with GROUPED, to one work
// group whose items share it. Barriers stand outside of all branches: some compilers cannot take them there. A: the type that is computed in.
#if GROUPED
#define ROW ((ulong)get_group_id(0))
#define LEAVE_PAST(rows)
#define FIRST ((ulong)get_local_id(0))
#define STEP ((ulong)get_local_size(0))
#define SHARED , local A *shared
#define JOINED(v) row_sum(v, shared)
#define LARGEST(v) row_max(v, shared)
#define LEADS (get_local_id(0) == 0)
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
    if (item < n) {
      const A a = shared[item], b = shared[item + n];
      shared[item] = (a > b || a != a) ? a : b;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  return shared[0];
}
#else
#define ROW ((ulong)get_global_id(0))
#define LEAVE_PAST(rows) if (get_global_id(0) >= (rows)) return
#define FIRST 0
#define STEP 1
#define SHARED
#define JOINED(v) (v)
#define LARGEST(v) (v)
#define LEADS 1
#endif
