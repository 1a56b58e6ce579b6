// Pooling of planes (height, width). Backward passes of averages gather: an element asks the windows that it lies in.
#define GEOMETRY                                                                                                                        \
  const ulong height, const ulong width, const ulong out_height, const ulong out_width, const long kernel_h, const long kernel_w,      \
      const long stride_h, const long stride_w, const long pad_h, const long pad_w, const long dilation_h, const long dilation_w
#define OUTPUT_PLACE                                                                            \
  const ulong i = get_global_id(0);                                                             \
  if (i >= n) return;                                                                           \
  const ulong ow = i % out_width, oh = i / out_width % out_height, plane = i / (out_width * out_height)
#define INPUT_PLACE                                                                     \
  const ulong i = get_global_id(0);                                                     \
  if (i >= n) return;                                                                   \
  const ulong w = i % width, h = i / width % height, plane = i / (width * height)

kernel void max_pool(BUFFER(x), BUFFER(out), BUFFER(indices), const ulong n, GEOMETRY) {
  OUTPUT_PLACE;
  OPEN(T, x);
  OPEN(T, out);
  OPEN(i64, indices);
  const ulong base = plane * height * width;
  A best = 0;
  long where = -1;
  for (long y = 0; y < kernel_h; ++y) {
    const long h = (long)oh * stride_h - pad_h + y * dilation_h;
    if (h < 0 || h >= (long)height) continue;
    for (long z = 0; z < kernel_w; ++z) {
      const long w = (long)ow * stride_w - pad_w + z * dilation_w;
      if (w < 0 || w >= (long)width) continue;
      const long at = h * (long)width + w;
      const A v = LOAD(T, x, base + (ulong)at);
      if (where < 0 || v > best || v != v) {
        best = v;
        where = at;
      }
    }
  }
  STORE(T, out, i, best);
  indices[i] = where;
}

// One work item a plane: gradients go where the indices say, several to one place where windows overlap.
kernel void max_pool_backward(BUFFER(grad), BUFFER(indices), BUFFER(out), const ulong planes, const ulong inputs, const ulong outputs) {
  const ulong plane = get_global_id(0);
  if (plane >= planes) return;
  OPEN(T, grad);
  OPEN(i64, indices);
  OPEN(T, out);
  for (ulong j = 0; j < inputs; ++j) STORE(T, out, plane * inputs + j, 0);
  for (ulong j = plane * outputs; j < (plane + 1) * outputs; ++j) {
    const long at = indices[j];
    if (at < 0 || at >= (long)inputs) continue;
    const ulong to = plane * inputs + (ulong)at;
    STORE(T, out, to, (A)LOAD(T, out, to) + (A)LOAD(T, grad, j));
  }
}

// What a sum is divided by: the window as far as the padding reaches, without the padding, or a number.
static A divisor_of(long h0, long w0, ulong height, ulong width, long kernel_h, long kernel_w, long pad_h, long pad_w, int count_pad,
                    long divisor) {
  if (divisor != 0) return (A)divisor;
  const long h1 = min(h0 + kernel_h, (long)height + pad_h), w1 = min(w0 + kernel_w, (long)width + pad_w);
  if (count_pad) return (A)((h1 - h0) * (w1 - w0));
  return (A)((min(h1, (long)height) - max(h0, 0L)) * (min(w1, (long)width) - max(w0, 0L)));
}

kernel void avg_pool(BUFFER(x), BUFFER(out), const ulong n, GEOMETRY, const int count_pad, const long divisor) {
  OUTPUT_PLACE;
  OPEN(T, x);
  OPEN(T, out);
  const long h0 = (long)oh * stride_h - pad_h, w0 = (long)ow * stride_w - pad_w;
  A sum = 0;
  for (long h = max(h0, 0L); h < min(h0 + kernel_h, (long)height); ++h)
    for (long w = max(w0, 0L); w < min(w0 + kernel_w, (long)width); ++w)
      sum += (A)LOAD(T, x, (plane * height + (ulong)h) * width + (ulong)w);
  STORE(T, out, i, sum / divisor_of(h0, w0, height, width, kernel_h, kernel_w, pad_h, pad_w, count_pad, divisor));
}

kernel void avg_pool_backward(BUFFER(grad), BUFFER(out), const ulong n, GEOMETRY, const int count_pad, const long divisor) {
  INPUT_PLACE;
  OPEN(T, grad);
  OPEN(T, out);
  A sum = 0;
  for (long y = 0; y < kernel_h; ++y) {
    const long a = (long)h + pad_h - y;
    if (a < 0 || a % stride_h != 0 || a / stride_h >= (long)out_height) continue;
    for (long z = 0; z < kernel_w; ++z) {
      const long b = (long)w + pad_w - z;
      if (b < 0 || b % stride_w != 0 || b / stride_w >= (long)out_width) continue;
      const long oh = a / stride_h, ow = b / stride_w;
      sum += (A)LOAD(T, grad, (plane * out_height + (ulong)oh) * out_width + (ulong)ow) /
             divisor_of(oh * stride_h - pad_h, ow * stride_w - pad_w, height, width, kernel_h, kernel_w, pad_h, pad_w, count_pad, divisor);
    }
  }
  STORE(T, out, i, sum);
}

// Window o of a side of `size` elements cut into `parts` that may overlap: [o * size / parts, ceil((o + 1) * size / parts)).
#define BEGIN(o, size, parts) ((o) * (size) / (parts))
#define END(o, size, parts) ((((o) + 1) * (size) + (parts) - 1) / (parts))

kernel void adaptive_avg_pool(BUFFER(x), BUFFER(out), const ulong n, const ulong height, const ulong width, const ulong out_height,
                              const ulong out_width) {
  OUTPUT_PLACE;
  OPEN(T, x);
  OPEN(T, out);
  const ulong h0 = BEGIN(oh, height, out_height), h1 = END(oh, height, out_height);
  const ulong w0 = BEGIN(ow, width, out_width), w1 = END(ow, width, out_width);
  A sum = 0;
  for (ulong h = h0; h < h1; ++h)
    for (ulong w = w0; w < w1; ++w) sum += (A)LOAD(T, x, (plane * height + h) * width + w);
  STORE(T, out, i, sum / (A)((h1 - h0) * (w1 - w0)));
}

kernel void adaptive_avg_pool_backward(BUFFER(grad), BUFFER(out), const ulong n, const ulong height, const ulong width,
                                       const ulong out_height, const ulong out_width) {
  INPUT_PLACE;
  OPEN(T, grad);
  OPEN(T, out);
  A sum = 0;
  for (ulong oh = BEGIN(h, out_height, height); oh < END(h, out_height, height); ++oh) {
    const ulong h0 = BEGIN(oh, height, out_height), h1 = END(oh, height, out_height);
    for (ulong ow = BEGIN(w, out_width, width); ow < END(w, out_width, width); ++ow) {
      const ulong w0 = BEGIN(ow, width, out_width), w1 = END(ow, width, out_width);
      sum += (A)LOAD(T, grad, (plane * out_height + oh) * out_width + ow) / (A)((h1 - h0) * (w1 - w0));
    }
  }
  STORE(T, out, i, sum);
}
