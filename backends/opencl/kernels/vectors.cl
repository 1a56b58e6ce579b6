// Sixteen elements at a time, for processors: their compilers do not join the work items of a kernel that has loops inside. VLOAD_x(p, i) gives
// elements i to i + 15 as numbers that kernels compute with; VSTORE_x rounds. A: the type that is computed in; V: sixteen of them.
#define LANES 16
#define V CAT(A, 16)
#define TO_V CAT(convert_, V)
#define VLOAD(x, p, i) TO_V(CAT(VLOAD_, x)(p, i))
#define VSTORE(x, p, i, v) CAT(VSTORE_, x)(p, i, v)

#define VLOAD_b1(p, i) (convert_int16(vload16(0, (p) + (i)) != (uchar)0) & 1)
#define VLOAD_u8(p, i) vload16(0, (p) + (i))
#define VLOAD_i8(p, i) vload16(0, (p) + (i))
#define VLOAD_i16(p, i) vload16(0, (p) + (i))
#define VLOAD_i32(p, i) vload16(0, (p) + (i))
#define VLOAD_i64(p, i) vload16(0, (p) + (i))
#define VLOAD_f16(p, i) vload_half16(0, (const global half *)((p) + (i)))
#define VLOAD_bf16(p, i) as_float16(convert_uint16(vload16(0, (p) + (i))) << 16)
#define VLOAD_f32(p, i) vload16(0, (p) + (i))
#define VLOAD_f64(p, i) vload16(0, (p) + (i))

#define ZERO_b1 0
#define ZERO_u8 (uchar)0
#define ZERO_i8 (char)0
#define ZERO_i16 (short)0
#define ZERO_i32 0
#define ZERO_i64 0L
#define ZERO_f16 0.0f
#define ZERO_bf16 0.0f
#define ZERO_f32 0.0f
#define ZERO_f64 0.0

#define VSTORE_i32(p, i, v) vstore16(convert_int16(v), 0, (p) + (i))
#define VSTORE_i64(p, i, v) vstore16(convert_long16(v), 0, (p) + (i))
#define VSTORE_f32(p, i, v) vstore16(convert_float16(v), 0, (p) + (i))
#define VSTORE_f64(p, i, v) vstore16(convert_double16(v), 0, (p) + (i))
#define VSTORE_f16(p, i, v) vstore_half16_rte(convert_float16(v), 0, (global half *)((p) + (i)))
#define VSTORE_bf16(p, i, v) vstore16(to_bf16_16(convert_float16(v)), 0, (p) + (i))
static ushort16 to_bf16_16(float16 v) {
  const uint16 bits = as_uint16(v);
  const ushort16 rounded = convert_ushort16((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
  return convert_short16(v != v) ? (ushort16)(0x7fc0) : rounded;
}

static A sum_of(V v) {
  const CAT(A, 8) a = v.lo + v.hi;
  const CAT(A, 4) b = a.lo + a.hi;
  const CAT(A, 2) c = b.lo + b.hi;
  return c.x + c.y;
}
static A largest_of(V v) {
  const CAT(A, 8) a = v.lo > v.hi ? v.lo : v.hi;
  const CAT(A, 4) b = a.lo > a.hi ? a.lo : a.hi;
  const CAT(A, 2) c = b.lo > b.hi ? b.lo : b.hi;
  return c.x > c.y ? c.x : c.y;
}
