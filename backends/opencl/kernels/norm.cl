// Batch and layer normalisation.
// Of a batch norm a row is a channel: n elements, `inner` side by side for each image of (images, rows, inner), with one factor for all of it. Of a
// layer norm a row is a row, and `inner` is n.
// X: input and gradients, W: weight and bias, S: statistics, M: saved mean and deviation.
#define START(o) (((o) * rows + row) * inner)
#define STRETCHES (n / inner)
#define STRETCH inner
#if BATCH
#define AT(j) (START((j) / inner) + (j) % inner)
#define FACTOR(L, p, absent) (has_##p ? one_LOAD(W, p, row) : (A)(absent))
#define WEIGHED(L, g) (g)
#else
#define AT(j) (row * n + (j))
#define FACTOR(L, p, absent) (has_##p ? L##_LOAD(W, p, j) : (L##_T)((A)(absent)))
#define WEIGHED(L, g) ((g) * FACTOR(L, weight, 1))
#endif

// Mean and inverse deviation are computed, or with GIVEN taken from the running statistics.
kernel void norm(BUFFER(x), BUFFER(weight), BUFFER(bias), BUFFER(running_mean), BUFFER(running_var), BUFFER(out), BUFFER(mean_out),
                 BUFFER(rstd_out), const ulong rows, const ulong n, const ulong inner, const int has_weight,
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
  const A mean = LOAD(S, running_mean, row), rstd = 1 / sqrt(one_LOAD(S, running_var, row) + eps);
#else
  SUM(elements);
#define ADD(L) L##_elements += L##_LOAD(X, x, at);
  ALONG_ROW(ADD)
  const A mean = TOTAL(elements) / (A)n;
  SUM(distances);
#define ADD_DISTANCE(L)                               \
  const L##_T d = L##_LOAD(X, x, at) - mean;          \
  L##_distances += d * d;
  ALONG_ROW(ADD_DISTANCE)
  const A squares = TOTAL(distances), rstd = 1 / sqrt(squares / (A)n + eps);
  if (LEADS) {
    OPEN(M, mean_out);
    OPEN(M, rstd_out);
    STORE(M, mean_out, row, mean);
    STORE(M, rstd_out, row, rstd);
    if (update) {
      STORE(S, running_mean, row, (1 - momentum) * one_LOAD(S, running_mean, row) + momentum * mean);
      STORE(S, running_var, row, (1 - momentum) * one_LOAD(S, running_var, row) + momentum * squares / (A)(n - 1));
    }
  }
#endif
#define WRITE(L) L##_STORE(X, out, at, (L##_LOAD(X, x, at) - mean) * rstd * FACTOR(L, weight, 1) + FACTOR(L, bias, 0));
  ALONG_ROW(WRITE)
}

// The gradient of the input, and of a batch norm those of weight and bias. train: the statistics were computed from x.
kernel void norm_backward(BUFFER(grad), BUFFER(x), BUFFER(weight), BUFFER(mean), BUFFER(rstd), BUFFER(running_var), BUFFER(grad_x),
                          BUFFER(grad_weight), BUFFER(grad_bias), const ulong rows, const ulong n, const ulong inner,
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
    r = 1 / sqrt(one_LOAD(S, running_var, row) + eps);
  }
  SUM(grads);
  SUM(grads_x);
#define ADD_GRADS(L)                                                \
  const L##_T g = WEIGHED(L, L##_LOAD(X, grad, at));                \
  L##_grads += g;                                                   \
  L##_grads_x += g * ((L##_LOAD(X, x, at) - m) * r);
  ALONG_ROW(ADD_GRADS)
  const A sum = TOTAL(grads), sum_x = TOTAL(grads_x);
#if BATCH
  if (LEADS && wants_weight) {
    OPEN(W, grad_weight);
    STORE(W, grad_weight, row, sum_x);
  }
  if (LEADS && wants_bias) {
    OPEN(W, grad_bias);
    STORE(W, grad_bias, row, sum);
  }
  const A factor = FACTOR(one, weight, 1) * r;
#else
  const A factor = r;
#endif
  if (!wants_x) return;
  const A shift = train ? sum / (A)n : 0, slope = train ? r * sum_x / (A)n : 0;
#define WRITE_GRADIENT(L) \
  L##_STORE(X, grad_x, at, (WEIGHED(L, L##_LOAD(X, grad, at)) - shift - (L##_LOAD(X, x, at) - m) * slope) * factor);
  ALONG_ROW(WRITE_GRADIENT)
}

// Of a layer norm the gradients of weight and bias: a work item does one column, or sixteen, the last of which reach back into those before them.
#if VECTORS
#define COLUMN(operation) many_##operation
#define COLUMN_OF_ITEM \
  const ulong strip = get_global_id(0) * LANES, j = strip + LANES <= n ? strip : n - LANES
#else
#define COLUMN(operation) one_##operation
#define COLUMN_OF_ITEM              \
  const ulong j = get_global_id(0); \
  if (j >= n) return
#endif
kernel void layer_norm_columns(BUFFER(grad), BUFFER(x), BUFFER(mean), BUFFER(rstd), BUFFER(grad_weight), BUFFER(grad_bias), const ulong rows,
                               const ulong n, const int wants_weight, const int wants_bias) {
  COLUMN_OF_ITEM;
  OPEN(X, grad);
  OPEN(X, x);
  OPEN(M, mean);
  OPEN(M, rstd);
  COLUMN(T) sum = 0, sum_x = 0;
  for (ulong row = 0; row < rows; ++row) {
    const COLUMN(T) g = COLUMN(LOAD)(X, grad, row * n + j);
    sum += g;
    sum_x += g * ((COLUMN(LOAD)(X, x, row * n + j) - one_LOAD(M, mean, row)) * one_LOAD(M, rstd, row));
  }
  if (wants_weight) {
    OPEN(W, grad_weight);
    COLUMN(STORE)(W, grad_weight, j, sum_x);
  }
  if (wants_bias) {
    OPEN(W, grad_bias);
    COLUMN(STORE)(W, grad_bias, j, sum);
  }
}
