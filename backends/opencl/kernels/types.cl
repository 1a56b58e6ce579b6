// Element types. LOAD_x(p, i) gives element i as the number that kernels compute with; STORE_x(p, i, v) rounds or wraps it.
// A tensor argument is BUFFER(p): a buffer and the distance of its first element in bytes; OPEN(x, p) makes it a pointer.
#ifdef HAS_FP64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#define REAL double
#else
#define REAL float
#endif

#define CAT_(a, b) a##b
#define CAT(a, b) CAT_(a, b)
#define BUFFER(p) global uchar *p##_memory, const ulong p##_offset
#define OPEN(x, p) global CAT(STORAGE_, x) *p = (global CAT(STORAGE_, x) *)(p##_memory + p##_offset)
#define LOAD(x, p, i) CAT(LOAD_, x)(p, i)
#define STORE(x, p, i, v) CAT(STORE_, x)(p, i, v)
#define WRAP(x, v) CAT(WRAP_, x)(v)

#define STORAGE_b1 uchar
#define STORAGE_u8 uchar
#define STORAGE_i8 char
#define STORAGE_i16 short
#define STORAGE_i32 int
#define STORAGE_i64 long
#define STORAGE_f16 half
#define STORAGE_bf16 ushort
#define STORAGE_f32 float
#define STORAGE_f64 double

#define LOAD_b1(p, i) ((p)[i] != 0)
#define LOAD_u8(p, i) ((p)[i])
#define LOAD_i8(p, i) ((p)[i])
#define LOAD_i16(p, i) ((p)[i])
#define LOAD_i32(p, i) ((p)[i])
#define LOAD_i64(p, i) ((p)[i])
#define LOAD_f16(p, i) vload_half((i), (p))
#define LOAD_bf16(p, i) as_float((uint)(p)[i] << 16)
#define LOAD_f32(p, i) ((p)[i])
#define LOAD_f64(p, i) ((p)[i])

#define STORE_b1(p, i, v) ((p)[i] = (uchar)((v) != 0))
#define STORE_u8(p, i, v) ((p)[i] = (uchar)(v))
#define STORE_i8(p, i, v) ((p)[i] = (char)(v))
#define STORE_i16(p, i, v) ((p)[i] = (short)(v))
#define STORE_i32(p, i, v) ((p)[i] = (int)(v))
#define STORE_i64(p, i, v) ((p)[i] = (long)(v))
#define STORE_f16(p, i, v) vstore_half_rte((float)(v), (i), (p))
#define STORE_bf16(p, i, v) ((p)[i] = to_bf16((float)(v)))
#define STORE_f32(p, i, v) ((p)[i] = (float)(v))
#define STORE_f64(p, i, v) ((p)[i] = (double)(v))

// A number as the type would hold it; floating numbers are left alone.
#define WRAP_b1(v) ((v) != 0)
#define WRAP_u8(v) ((uchar)(v))
#define WRAP_i8(v) ((char)(v))
#define WRAP_i16(v) ((short)(v))
#define WRAP_i32(v) ((int)(v))
#define WRAP_i64(v) ((long)(v))
#define WRAP_f16(v) (v)
#define WRAP_bf16(v) (v)
#define WRAP_f32(v) (v)
#define WRAP_f64(v) (v)

// Round to nearest, ties to even; a NaN stays one.
static ushort to_bf16(float v) {
  const uint bits = as_uint(v);
  const uint rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  return v != v ? (ushort)0x7fc0 : (ushort)rounded;
}
