// Negative log likelihood of (batch, classes, inner): n = batch * inner targets. A target outside of the classes is a fault and gives NaN.
#define WEIGHT_OF(t) (has_weight ? (A)LOAD(W, weight, t) : (A)1)

// One work group. With `each` no reduction: out has n elements.
kernel void nll_loss(BUFFER(x), BUFFER(target), BUFFER(weight), BUFFER(out), BUFFER(total), FAULTS, const ulong n, const ulong classes,
                     const ulong inner, const long ignored, const int has_weight, const int each, const int mean, local A *shared) {
  OPEN(X, x);
  OPEN(T, target);
  OPEN(W, weight);
  OPEN(X, out);
  A sum = 0, weights = 0;
  for (ulong i = get_local_id(0); i < n; i += get_local_size(0)) {
    const long t = LOAD(T, target, i);
    A loss = 0;
    if (t != ignored) {
      if (t < 0 || t >= (long)classes) {
        loss = NAN;
        FAULT(BAD_TARGET, t, classes)
      } else {
        const A w = WEIGHT_OF(t);
        loss = -w * (A)LOAD(X, x, ((i / inner) * classes + (ulong)t) * inner + i % inner);
        weights += w;
      }
    }
    if (each) STORE(X, out, i, loss);
    sum += loss;
  }
  const A all = row_sum(sum, shared), all_weights = row_sum(weights, shared);
  if (get_local_id(0) == 0) {
    OPEN(X, total);
    if (!each) STORE(X, out, 0, mean ? all / all_weights : all);
    STORE(X, total, 0, each ? (A)0 : all_weights);
  }
}

// One work item for every element of the gradient.
kernel void nll_loss_backward(BUFFER(grad), BUFFER(target), BUFFER(weight), BUFFER(total), BUFFER(out), const ulong n, const ulong classes, const ulong inner,
                              const long ignored, const int has_weight, const int each, const int mean) {
  const ulong k = get_global_id(0);
  if (k >= n * classes) return;
  OPEN(X, grad);
  OPEN(T, target);
  OPEN(W, weight);
  OPEN(X, total);
  OPEN(X, out);
  const ulong i = k / (inner * classes) * inner + k % inner;
  const long t = LOAD(T, target, i);
  A g = 0;
  if (t != ignored && t == (long)(k / inner % classes)) {
    g = -WEIGHT_OF(t) * (A)LOAD(X, grad, each ? i : 0);
    if (mean) g /= (A)LOAD(X, total, 0);
  }
  STORE(X, out, k, g);
}
