// Philox4x32-10 (Salmon, Moraes, Dror, Shaw: Parallel Random Numbers: As Easy as 1, 2, 3, 2011). Word i of a stream is word i % 4 of block
// i / 4, so an element depends on the seed, the position and its place alone.
static uint4 philox(ulong block, ulong seed) {
  uint4 c = (uint4)((uint)block, (uint)(block >> 32), 0, 0);
  uint k0 = (uint)seed, k1 = (uint)(seed >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint a = 0xD2511F53u, b = 0xCD9E8D57u;
    c = (uint4)(mul_hi(b, c.z) ^ c.y ^ k0, b * c.z, mul_hi(a, c.x) ^ c.w ^ k1, a * c.x);
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return c;
}
static uint word(ulong at, ulong first, ulong seed) {
  const uint4 w = philox(first + at / 4, seed);
  const uint lane = (uint)(at % 4);
  return lane == 0 ? w.x : lane == 1 ? w.y : lane == 2 ? w.z : w.w;
}
// Uniform on [0, 1): 24 bits of one word, or 53 bits of two.
static A unit(ulong i, ulong first, ulong seed) {
#if WIDE
  const ulong bits = ((ulong)word(2 * i, first, seed) << 32 | word(2 * i + 1, first, seed)) & 0x1FFFFFFFFFFFFFul;
  return (A)bits * (A)1.1102230246251565e-16;
#else
  return (A)(word(i, first, seed) & 0x00FFFFFFu) * (A)5.9604644775390625e-08f;
#endif
}

// low + u * span; a draw that rounds to the excluded end becomes low.
kernel void uniform(BUFFER(out), const ulong n, const ulong first, const ulong seed, const A low, const A span, const A high) {
  const ulong i = get_global_id(0);
  if (i >= n) return;
  OPEN(T, out);
  const A v = fma(unit(i, first, seed), span, low);
  STORE(T, out, i, v);
  if ((A)LOAD(T, out, i) >= high) STORE(T, out, i, low);
}

// Box-Muller in blocks of sixteen: from u[j] and u[j + 8], j < 8, come places j and j + 8.
kernel void normal(BUFFER(out), const ulong n, const ulong first, const ulong seed, const A mean, const A std) {
  const ulong i = get_global_id(0);
  if (i >= n) return;
  OPEN(T, out);
  const ulong block = i / 16 * 16, j = i % 8;
  const A radius = sqrt((A)-2 * log((A)1 - unit(block + j, first, seed)));
  const A angle = (A)6.283185307179586 * unit(block + j + 8, first, seed);
  STORE(T, out, i, fma(radius * (i % 16 < 8 ? cos(angle) : sin(angle)), std, mean));
}

kernel void bernoulli(BUFFER(out), const ulong n, const ulong first, const ulong seed, const A p) {
  const ulong i = get_global_id(0);
  if (i >= n) return;
  OPEN(T, out);
  STORE(T, out, i, unit(i, first, seed) < p);
}

// base + word % span, of 64 bits when the span needs them.
kernel void integers(BUFFER(out), const ulong n, const ulong first, const ulong seed, const long base, const ulong span, const int wide) {
  const ulong i = get_global_id(0);
  if (i >= n) return;
  OPEN(T, out);
  const ulong w = wide ? ((ulong)word(2 * i, first, seed) << 32 | word(2 * i + 1, first, seed)) : (ulong)word(i, first, seed);
  STORE(T, out, i, base + (long)(span ? w % span : w));
}
