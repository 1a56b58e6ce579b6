#if WIDE
typedef ulong index;
#else
typedef uint index;
#endif

// index: an integer type that counts all elements; 32 bits divide much quicker than 64.
// Windows of (batch, channels, height, width) as columns of a matrix, and back.
// M: the type of elements that are only moved.
#define GEOMETRY                                                                                                                      \
  const ulong channels, const ulong height, const ulong width, const ulong out_height, const ulong out_width, const ulong kernel_h, \
      const ulong kernel_w, const long stride_h, const long stride_w, const long pad_h, const long pad_w, const long dilation_h,     \
      const long dilation_w

// Element (image, row, position) of the columns lies at image * by_image + row * by_row + position, with row = (channel, y, x) of the
// window and position = place of the window. One work item an element.
kernel void im2col(BUFFER(x), BUFFER(out), const ulong n, const ulong by_image, const ulong by_row, GEOMETRY) {
  const ulong i = get_global_id(0);
  if (i >= n) return;
  OPEN(M, x);
  OPEN(M, out);
  index rest = (index)i;
  const index ow = rest % (index)out_width;
  rest /= (index)out_width;
  const index oh = rest % (index)out_height;
  rest /= (index)out_height;
  const index kw = rest % (index)kernel_w;
  rest /= (index)kernel_w;
  const index kh = rest % (index)kernel_h;
  rest /= (index)kernel_h;
  const index channel = rest % (index)channels, image = rest / (index)channels;
  const long h = (long)oh * stride_h - pad_h + (long)kh * dilation_h, w = (long)ow * stride_w - pad_w + (long)kw * dilation_w;
  const int inside = h >= 0 && h < (long)height && w >= 0 && w < (long)width;
  const ulong to = (ulong)image * by_image + ((channel * kernel_h + kh) * kernel_w + kw) * by_row + oh * out_width + ow;
  out[to] = inside ? x[((image * channels + channel) * height + (ulong)h) * width + (ulong)w] : 0;
}

// Each element of the image gathers from the windows that it lies in, so that no two work items write one place.
kernel void col2im(BUFFER(x), BUFFER(out), const ulong n, const ulong by_image, const ulong by_row, GEOMETRY) {
  const ulong i = get_global_id(0);
  if (i >= n) return;
  OPEN(T, x);
  OPEN(T, out);
  const index at = (index)i, plane = at / (index)width;
  const ulong w = at % (index)width, h = plane % (index)height;
  const ulong channel = plane / (index)height % (index)channels, image = plane / (index)height / (index)channels;
  A sum = 0;
  for (ulong kh = 0; kh < kernel_h; ++kh) {
    const long y = (long)h + pad_h - (long)kh * dilation_h;
    if (y < 0 || y % stride_h != 0 || y / stride_h >= (long)out_height) continue;
    for (ulong kw = 0; kw < kernel_w; ++kw) {
      const long z = (long)w + pad_w - (long)kw * dilation_w;
      if (z < 0 || z % stride_w != 0 || z / stride_w >= (long)out_width) continue;
      const ulong row = (channel * kernel_h + kh) * kernel_w + kw;
      sum += (A)LOAD(T, x, image * by_image + row * by_row + (ulong)(y / stride_h) * out_width + (ulong)(z / stride_w));
    }
  }
  STORE(T, out, i, sum);
}
