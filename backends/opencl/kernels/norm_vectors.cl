// Batch and layer normalisation on processors: one work item does a row, sixteen elements at a time. A row is `outer` stretches of `inner` elements
// that lie side by side; of a batch norm it is a channel, with one factor for all of it. Types as in norm.cl.
#if BATCH
#define FACTOR(p, absent) (has_##p ? (A)LOAD(W, p, row) : (A)(absent))
#define VFACTOR(p, absent) (V)(FACTOR(p, absent))
#else
#define FACTOR(p, absent) (has_##p ? (A)LOAD(W, p, j) : (A)(absent))
#define VFACTOR(p, absent) (has_##p ? VLOAD(W, p, j) : (V)((A)(absent)))
#endif
#define ROW_PARTS const ulong outer, const ulong outer_stride, const ulong row_stride, const ulong inner
#define ALONG_ROW(vector, single)                                                \
  for (ulong o = 0; o < outer; ++o) {                                            \
    const ulong base = o * outer_stride + row * row_stride;                      \
    ulong j = 0;                                                                 \
    for (; j + LANES <= inner; j += LANES) { const ulong at = base + j; vector; } \
    for (; j < inner; ++j) { const ulong at = base + j; single; }                \
  }

kernel void norm(BUFFER(x), BUFFER(weight), BUFFER(bias), BUFFER(running_mean), BUFFER(running_var), BUFFER(out), BUFFER(mean_out),
                 BUFFER(rstd_out), ROW_PARTS, const int has_weight, const int has_bias, const int update, const A momentum, const A eps) {
  const ulong row = get_global_id(0);
  OPEN(X, x);
  OPEN(W, weight);
  OPEN(W, bias);
  OPEN(S, running_mean);
  OPEN(S, running_var);
  OPEN(X, out);
#if GIVEN
  const A mean = LOAD(S, running_mean, row), rstd = 1 / sqrt((A)LOAD(S, running_var, row) + eps);
#else
  const A n = (A)(outer * inner);
  V parts = 0;
  A part = 0;
  ALONG_ROW(parts += VLOAD(X, x, at), part += (A)LOAD(X, x, at))
  const A mean = (part + sum_of(parts)) / n;
  V distances = 0;
  A distance = 0;
  ALONG_ROW(const V d = VLOAD(X, x, at) - mean; distances += d * d, const A d = (A)LOAD(X, x, at) - mean; distance += d * d)
  const A squares = distance + sum_of(distances), rstd = 1 / sqrt(squares / n + eps);
  OPEN(M, mean_out);
  OPEN(M, rstd_out);
  STORE(M, mean_out, row, mean);
  STORE(M, rstd_out, row, rstd);
  if (update) {
    STORE(S, running_mean, row, (1 - momentum) * (A)LOAD(S, running_mean, row) + momentum * mean);
    STORE(S, running_var, row, (1 - momentum) * (A)LOAD(S, running_var, row) + momentum * squares / (n - 1));
  }
#endif
  ALONG_ROW(VSTORE(X, out, at, (VLOAD(X, x, at) - mean) * rstd * VFACTOR(weight, 1) + VFACTOR(bias, 0)),
            STORE(X, out, at, ((A)LOAD(X, x, at) - mean) * rstd * FACTOR(weight, 1) + FACTOR(bias, 0)))
}

kernel void norm_backward(BUFFER(grad), BUFFER(x), BUFFER(weight), BUFFER(mean), BUFFER(rstd), BUFFER(running_var), BUFFER(grad_x),
                          BUFFER(grad_weight), BUFFER(grad_bias), ROW_PARTS, const int has_weight, const int train, const int wants_x,
                          const int wants_weight, const int wants_bias, const A eps) {
  const ulong row = get_global_id(0);
  const A n = (A)(outer * inner);
  OPEN(X, grad);
  OPEN(X, x);
  OPEN(W, weight);
  OPEN(X, grad_x);
  A m, r;
  if (train) {
    OPEN(M, mean);
    OPEN(M, rstd);
    m = LOAD(M, mean, row);
    r = LOAD(M, rstd, row);
  } else {
    OPEN(S, mean);
    OPEN(S, running_var);
    m = LOAD(S, mean, row);
    r = 1 / sqrt((A)LOAD(S, running_var, row) + eps);
  }
#if BATCH
#define WEIGHED(g, factor) (g)
#else
#define WEIGHED(g, factor) ((g) * (factor))
#endif
  V parts = 0, parts_x = 0;
  A part = 0, part_x = 0;
  ALONG_ROW(const V g = WEIGHED(VLOAD(X, grad, at), VFACTOR(weight, 1)); parts += g; parts_x += g * ((VLOAD(X, x, at) - m) * r),
            const A g = WEIGHED((A)LOAD(X, grad, at), FACTOR(weight, 1)); part += g; part_x += g * (((A)LOAD(X, x, at) - m) * r))
  const A sum = part + sum_of(parts), sum_x = part_x + sum_of(parts_x);
#if BATCH
  if (wants_weight) {
    OPEN(W, grad_weight);
    STORE(W, grad_weight, row, sum_x);
  }
  if (wants_bias) {
    OPEN(W, grad_bias);
    STORE(W, grad_bias, row, sum);
  }
  const A factor = FACTOR(weight, 1) * r;
#endif
  if (!wants_x) return;
  const A shift = train ? sum / n : 0, slope = train ? r * sum_x / n : 0;
#if BATCH
  ALONG_ROW(VSTORE(X, grad_x, at, (VLOAD(X, grad, at) - shift - (VLOAD(X, x, at) - m) * slope) * factor),
            STORE(X, grad_x, at, ((A)LOAD(X, grad, at) - shift - ((A)LOAD(X, x, at) - m) * slope) * factor))
#else
  ALONG_ROW(VSTORE(X, grad_x, at, (VLOAD(X, grad, at) * VFACTOR(weight, 1) - shift - (VLOAD(X, x, at) - m) * slope) * r),
            STORE(X, grad_x, at, ((A)LOAD(X, grad, at) * FACTOR(weight, 1) - shift - ((A)LOAD(X, x, at) - m) * slope) * r))
#endif
}

// Of a layer norm the gradients of weight and bias: sixteen columns a work item, the last ones reach back into those before them.
kernel void layer_norm_columns(BUFFER(grad), BUFFER(x), BUFFER(mean), BUFFER(rstd), BUFFER(grad_weight), BUFFER(grad_bias), const ulong rows,
                               const ulong n, const int wants_weight, const int wants_bias) {
  const ulong strip = get_global_id(0) * LANES, j = strip + LANES <= n ? strip : n - LANES;
  OPEN(X, grad);
  OPEN(X, x);
  OPEN(M, mean);
  OPEN(M, rstd);
  V sum = 0, sum_x = 0;
  for (ulong row = 0; row < rows; ++row) {
    const V g = VLOAD(X, grad, row * n + j);
    sum += g;
    sum_x += g * ((VLOAD(X, x, row * n + j) - (A)LOAD(M, mean, row)) * (A)LOAD(M, rstd, row));
  }
  if (wants_weight) {
    OPEN(W, grad_weight);
    VSTORE(W, grad_weight, j, sum_x);
  }
  if (wants_bias) {
    OPEN(W, grad_bias);
    VSTORE(W, grad_bias, j, sum);
  }
}
