// The kernels of conv.cl for processors: one work item does a plane, and lines of it are moved sixteen elements at a time where windows lie side by side.
// Positions [LOW, HIGH) of a line of windows have their element at `shift` inside of a line of the image.
#define GEOMETRY                                                                                                                      \
  const ulong channels, const ulong height, const ulong width, const ulong out_height, const ulong out_width, const ulong kernel_h, \
      const ulong kernel_w, const long stride_h, const long stride_w, const long pad_h, const long pad_w, const long dilation_h,     \
      const long dilation_w
#define LINE_RANGE                                                                                                                    \
  const long shift = (long)kw * dilation_w - pad_w;                                                                                   \
  const long low = clamp(shift < 0 ? (-shift + stride_w - 1) / stride_w : 0L, 0L, (long)out_width);                                   \
  const long high = clamp((long)width > shift ? ((long)width - shift + stride_w - 1) / stride_w : 0L, low, (long)out_width);

// One work item for each row of each image's columns.
kernel void im2col(BUFFER(x), BUFFER(out), const ulong n, const ulong by_image, const ulong by_row, GEOMETRY) {
  const ulong rows = channels * kernel_h * kernel_w, image = get_global_id(0) / rows, row = get_global_id(0) % rows;
  const ulong kw = row % kernel_w, kh = row / kernel_w % kernel_h, channel = row / (kernel_w * kernel_h);
  OPEN(M, x);
  OPEN(M, out);
  x += (image * channels + channel) * height * width;
  out += image * by_image + row * by_row;
  LINE_RANGE
  for (ulong oh = 0; oh < out_height; ++oh, out += out_width) {
    const long h = (long)oh * stride_h - pad_h + (long)kh * dilation_h;
    const int inside = h >= 0 && h < (long)height;
    const long from = inside ? low : (long)out_width, to = inside ? high : (long)out_width;
    for (long ow = 0; ow < from; ++ow) out[ow] = 0;
    global CAT(STORAGE_, M) *line = x + h * (long)width + shift;
    long ow = from;
    if (stride_w == 1)
      for (; ow + 16 <= to; ow += 16) vstore16(vload16(0, line + ow), 0, out + ow);
    for (; ow < to; ++ow) out[ow] = line[ow * stride_w];
    for (ow = to; ow < (long)out_width; ++ow) out[ow] = 0;
  }
}

#if PLANES
// One work item for each plane of each image; T is the type that is computed in.
kernel void col2im(BUFFER(x), BUFFER(out), const ulong n, const ulong by_image, const ulong by_row, GEOMETRY) {
  const ulong image = get_global_id(0) / channels, channel = get_global_id(0) % channels;
  OPEN(T, x);
  OPEN(T, out);
  out += (image * channels + channel) * height * width;
  for (ulong i = 0; i < height * width; ++i) out[i] = 0;
  for (ulong kh = 0; kh < kernel_h; ++kh)
    for (ulong kw = 0; kw < kernel_w; ++kw) {
      global CAT(STORAGE_, T) *column = x + image * by_image + ((channel * kernel_h + kh) * kernel_w + kw) * by_row;
      LINE_RANGE
      for (ulong oh = 0; oh < out_height; ++oh) {
        const long h = (long)oh * stride_h - pad_h + (long)kh * dilation_h;
        if (h < 0 || h >= (long)height) continue;
        global CAT(STORAGE_, T) *line = out + h * (long)width + shift, *source = column + oh * out_width;
        long ow = low;
        if (stride_w == 1)
          for (; ow + 16 <= high; ow += 16) vstore16(vload16(0, line + ow) + vload16(0, source + ow), 0, line + ow);
        for (; ow < high; ++ow) line[ow * stride_w] += source[ow];
      }
    }
}
#endif
