// Batch and layer normalisation.
// Of a batch norm a row is a channel: element j of channel c of (batch, channels, inner). Of a layer norm a row is a row.
// X: input and gradients, W: weight and bias, S: statistics.
#if BATCH
#define PLACE(j) (((j) / inner) * channels * inner + row * inner + (j) % inner)
#define FACTOR(p, absent) (has_##p ? (A)LOAD(W, p, row) : (A)(absent))
#else
#define PLACE(j) (row * n + (j))
#define FACTOR(p, absent) (has_##p ? (A)LOAD(W, p, j) : (A)(absent))
#endif

// Mean and inverse deviation are computed, or with GIVEN taken from the running statistics.
kernel void norm(BUFFER(x), BUFFER(weight), BUFFER(bias), BUFFER(running_mean), BUFFER(running_var), BUFFER(out), BUFFER(mean_out),
                 BUFFER(rstd_out), const ulong rows, const ulong n, const ulong channels, const ulong inner, const int has_weight,
                 const int has_bias, const int update, const A momentum, const A eps SHARED) {
  const ulong row = ROW;
  LEAVE_PAST(rows);
  OPEN(X, x);
  OPEN(W, weight);
  OPEN(W, bias);
  OPEN(S, running_mean);
  OPEN(S, running_var);
  OPEN(X, out);
#if GIVEN
  const A mean = LOAD(S, running_mean, row), rstd = 1 / sqrt((A)LOAD(S, running_var, row) + eps);
#else
  A part = 0;
  for (ulong j = FIRST; j < n; j += STEP) part += (A)LOAD(X, x, PLACE(j));
  const A mean = JOINED(part) / (A)n;
  A distances = 0;
  for (ulong j = FIRST; j < n; j += STEP) {
    const A d = (A)LOAD(X, x, PLACE(j)) - mean;
    distances += d * d;
  }
  const A squares = JOINED(distances), rstd = 1 / sqrt(squares / (A)n + eps);
  if (LEADS) {
    OPEN(M, mean_out);
    OPEN(M, rstd_out);
    STORE(M, mean_out, row, mean);
    STORE(M, rstd_out, row, rstd);
    if (update) {
      STORE(S, running_mean, row, (1 - momentum) * (A)LOAD(S, running_mean, row) + momentum * mean);
      STORE(S, running_var, row, (1 - momentum) * (A)LOAD(S, running_var, row) + momentum * squares / (A)(n - 1));
    }
  }
#endif
  for (ulong j = FIRST; j < n; j += STEP) {
    const A y = ((A)LOAD(X, x, PLACE(j)) - mean) * rstd;
    STORE(X, out, PLACE(j), y * FACTOR(weight, 1) + FACTOR(bias, 0));
  }
}

// The gradient of the input, and of a batch norm those of weight and bias. train: the statistics were computed from x.
kernel void norm_backward(BUFFER(grad), BUFFER(x), BUFFER(weight), BUFFER(mean), BUFFER(rstd), BUFFER(running_var), BUFFER(grad_x),
                          BUFFER(grad_weight), BUFFER(grad_bias), const ulong rows, const ulong n, const ulong channels, const ulong inner,
                          const int has_weight, const int train, const int wants_x, const int wants_weight, const int wants_bias,
                          const A eps SHARED) {
  const ulong row = ROW;
  LEAVE_PAST(rows);
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
  A part = 0, part_x = 0;
  for (ulong j = FIRST; j < n; j += STEP) {
#if BATCH
    const A g = LOAD(X, grad, PLACE(j));
#else
    const A g = (A)LOAD(X, grad, PLACE(j)) * FACTOR(weight, 1);
#endif
    part += g;
    part_x += g * ((A)LOAD(X, x, PLACE(j)) - m) * r;
  }
  const A sum = JOINED(part), sum_x = JOINED(part_x);
#if BATCH
  if (LEADS && wants_weight) {
    OPEN(W, grad_weight);
    STORE(W, grad_weight, row, sum_x);
  }
  if (LEADS && wants_bias) {
    OPEN(W, grad_bias);
    STORE(W, grad_bias, row, sum);
  }
#endif
  if (!wants_x) return;
  for (ulong j = FIRST; j < n; j += STEP) {
    const A g = LOAD(X, grad, PLACE(j)), w = FACTOR(weight, 1);
#if BATCH
    const A centred = train ? g - sum / (A)n - ((A)LOAD(X, x, PLACE(j)) - m) * r * sum_x / (A)n : g;
    STORE(X, grad_x, PLACE(j), centred * r * w);
#else
    STORE(X, grad_x, PLACE(j), (g * w - sum / (A)n - ((A)LOAD(X, x, PLACE(j)) - m) * r * sum_x / (A)n) * r);
#endif
  }
}

// Of a layer norm the gradients of weight and bias: one work item a column.
kernel void layer_norm_columns(BUFFER(grad), BUFFER(x), BUFFER(mean), BUFFER(rstd), BUFFER(grad_weight), BUFFER(grad_bias), const ulong rows,
                               const ulong n, const int wants_weight, const int wants_bias) {
  const ulong j = get_global_id(0);
  if (j >= n) return;
  OPEN(X, grad);
  OPEN(X, x);
  OPEN(M, mean);
  OPEN(M, rstd);
  A sum = 0, sum_x = 0;
  for (ulong row = 0; row < rows; ++row) {
    const A g = LOAD(X, grad, row * n + j);
    sum += g;
    sum_x += g * ((A)LOAD(X, x, row * n + j) - (A)LOAD(M, mean, row)) * (A)LOAD(M, rstd, row);
  }
  if (wants_weight) {
    OPEN(W, grad_weight);
    STORE(W, grad_weight, j, sum_x);
  }
  if (wants_bias) {
    OPEN(W, grad_bias);
    STORE(W, grad_bias, j, sum);
  }
}
