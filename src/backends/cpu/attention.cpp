// Attention without the matrix of scores (Dao et al. 2022): blocks of queries go over blocks of keys with the largest score and the sum of
// exponentials so far, so memory grows with the length of the sequence and not with its square.
#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include <cresset/base/interrupt.h>
#include <cresset/base/parallel.h>
#include <cresset/core/dispatch_types.h>
#include <cresset/dispatch/library.h>
#include <cresset/ops/functions_arith.h>
#include <cresset/ops/functions_attention.h>
#include <cresset/ops/functions_reduce.h>
#include <cresset/ops/functions_view.h>

#include "backends/cpu/gemm.h"
#include "backends/cpu/softmax_loops.h"
#include "ops/attention.h"

namespace cresset::cpu {
namespace {

constexpr int64_t kQueries = 128, kKeys = 512;  // of a block: its scores stay in the second-level cache

// A tensor of (N, heads, L, E) in the type that is computed in, as products take matrices: neighbouring features, and rows that lie apart.
Tensor operand(const Tensor& t, ScalarType type) {
  const Tensor wide = t.to(type);
  const bool features = wide.size(3) <= 1 || wide.stride(3) == 1,
             rows = wide.size(2) <= 1 || wide.stride(2) >= std::max<int64_t>(wide.size(3), 1);
  return features && rows ? wide : wide.contiguous();
}
// Laid out as (N, L, heads, E), where the projection behind attention wants it.
Tensor result(int64_t n, int64_t heads, int64_t length, int64_t features, ScalarType type) {
  return detail::empty_cpu({n, length, heads, features}, type).transpose(1, 2);
}

template <class T>
struct Matrix {
  T* data;
  int64_t rows, columns, stride;
  Matrix(const Tensor& t, int64_t image, int64_t head)
      : data(t.data_ptr<T>() + image * t.stride(0) + head * t.stride(1)),
        rows(t.size(2)),
        columns(t.size(3)),
        stride(rows > 1 ? t.stride(2) : columns) {}
  MatrixRef from(int64_t row) const { return {data + row * stride, stride, 1}; }
  MatrixRef transposed(int64_t row) const { return {data + row * stride, 1, stride}; }
};

struct Problem {
  Tensor q, k, v, mask;  // the mask expanded to (N, heads, L, S), or undefined
  double scale;
  bool causal;
  int64_t images() const { return q.size(0); }
  int64_t heads() const { return q.size(1); }
  int64_t shared() const { return std::max<int64_t>(k.size(1), 1); }            // heads of keys and values
  int64_t sharing() const { return std::max<int64_t>(heads() / shared(), 1); }  // heads of queries for each of those

  Problem(const Tensor& query, const Tensor& key, const Tensor& value, ScalarType type, bool is_causal,
          const std::optional<Tensor>& attn_mask, std::optional<double> factor)
      : q(operand(query, type)),
        k(operand(key, type)),
        v(operand(value, type)),
        scale(ops::attention_factor(query, factor)),
        causal(is_causal) {
    if (attn_mask) mask = attn_mask->to(type).expand({q.size(0), q.size(1), q.size(2), k.size(2)});
  }
};

// Scores of some queries of one head with blocks of keys.
template <class T>
class Scores {
 public:
  Scores(const Problem& p, int64_t image, int64_t head) : problem_(p), queries_(p.q, image, head), keys_(p.k, image, head / p.sharing()) {
    if (p.mask.defined()) mask_ = p.mask.data_ptr<T>() + image * p.mask.stride(0) + head * p.mask.stride(1);
  }
  // Keys from here on are seen by none of the queries before `end`.
  int64_t last_key(int64_t end) const { return problem_.causal ? std::min(keys_.rows, end) : keys_.rows; }
  // How many of `width` keys from `key` on a query sees. Scores of the others mean nothing.
  int64_t seen(int64_t query, int64_t key, int64_t width) const { return std::clamp<int64_t>(last_key(query + 1) - key, 0, width); }

  void compute(int64_t query, int64_t n, int64_t key, int64_t width, T* scores) const {
    gemm("attention", CppTypeToScalarType<T>::value, n, width, queries_.columns, problem_.scale, queries_.from(query),
         keys_.transposed(key), 0, scores, width);
    const int64_t by_query = mask_ ? problem_.mask.stride(2) : 0, by_key = mask_ ? problem_.mask.stride(3) : 0;
    for (int64_t i = 0; mask_ && i < n; ++i) {
      T* const row = scores + i * width;
      const T* const m = mask_ + (query + i) * by_query + key * by_key;
      if (by_key == 1)
        for (int64_t j = 0; j < width; ++j) row[j] += m[j];
      else
        for (int64_t j = 0; j < width; ++j) row[j] += m[j * by_key];
    }
  }

 private:
  const Problem& problem_;
  Matrix<T> queries_, keys_;
  const T* mask_ = nullptr;
};

template <class T>
struct Scratch {
  Tensor scores = detail::empty_cpu({kQueries * kKeys}, CppTypeToScalarType<T>::value);
  Tensor weights = detail::empty_cpu({kQueries * kKeys}, CppTypeToScalarType<T>::value);
};

template <class T>
void attend(const Problem& p, int64_t image, int64_t head, int64_t query, int64_t n, Scratch<T>& scratch, const Tensor& out,
            const Tensor& logs) {
  const SoftmaxLoops<T>& loops = find_softmax_loops<T>();
  const Scores<T> of(p, image, head);
  const Matrix<T> values(p.v, image, head / p.sharing()), o(out, image, head);
  T* const scores = scratch.scores.template data_ptr<T>();
  T* const weights = scratch.weights.template data_ptr<T>();
  T* const to = o.data + query * o.stride;
  T high[kQueries];
  double sum[kQueries];
  std::fill_n(high, n, -std::numeric_limits<T>::infinity());
  std::fill_n(sum, n, 0.0);
  for (int64_t i = 0; i < n; ++i) std::fill_n(to + i * o.stride, o.columns, T(0));
  for (int64_t key = 0, last = of.last_key(query + n); key < last; key += kKeys) {
    check_interrupt();
    const int64_t width = std::min(kKeys, last - key);
    of.compute(query, n, key, width, scores);
    for (int64_t i = 0; i < n; ++i) {
      const T before = high[i];
      const int64_t seen = of.seen(query + i, key, width);
      high[i] = std::max(before, loops.largest(scores + i * width, seen));
      // Nothing is seen yet: the weights are zero. NaN is no largest score and shows up in the exponentials.
      const T from = high[i] == -std::numeric_limits<T>::infinity() ? T(0) : high[i];
      const double part = loops.exponentials(scores + i * width, from, weights + i * width, seen);
      std::fill(weights + i * width + seen, weights + (i + 1) * width, T(0));
      if (before != high[i]) {
        const T factor = std::exp(before - from);
        sum[i] *= static_cast<double>(factor);
        for (int64_t e = 0; e < o.columns; ++e) to[i * o.stride + e] *= factor;
      }
      sum[i] += part;
    }
    gemm("attention", CppTypeToScalarType<T>::value, n, o.columns, width, 1, {weights, width, 1}, values.from(key), 1, to, o.stride);
  }
  T* const log = logs.data_ptr<T>() + image * logs.stride(0) + head * logs.stride(1);
  for (int64_t i = 0; i < n; ++i) {
    const bool empty = sum[i] == 0;
    const T factor = empty ? T(0) : static_cast<T>(1 / sum[i]);
    for (int64_t e = 0; e < o.columns; ++e) to[i * o.stride + e] *= factor;
    log[(query + i) * logs.stride(2)] = empty ? T(0) : static_cast<T>(static_cast<double>(high[i]) + std::log(sum[i]));
  }
}

std::tuple<Tensor, Tensor> forward(const Tensor& query, const Tensor& key, const Tensor& value, double dropout_p, bool is_causal,
                                   const std::optional<Tensor>& attn_mask, std::optional<double> scale) {
  ops::check_flash_attention(query, key, value, dropout_p, attn_mask);
  const ScalarType type = query.scalar_type() == kDouble ? kDouble : kFloat;
  const Problem p(query, key, value, type, is_causal, attn_mask, scale);
  const int64_t length = p.q.size(2), blocks = (length + kQueries - 1) / kQueries;
  const Tensor out = result(p.images(), p.heads(), length, p.v.size(3), type);
  const Tensor logs = detail::empty_cpu({p.images(), length, p.heads()}, type).transpose(1, 2);
  CRESSET_DISPATCH(type, "attention", CRESSET_FLOATING_TYPES, [&] {
    parallel_for(0, p.images() * p.heads() * blocks, 1, [&](int64_t begin, int64_t end) {
      Scratch<scalar_t> scratch;
      for (int64_t i = begin; i < end; ++i) {
        const int64_t at = i % blocks * kQueries, line = i / blocks;
        attend(p, line / p.heads(), line % p.heads(), at, std::min(kQueries, length - at), scratch, out, logs);
      }
    });
  });
  return {out.to(query.scalar_type()), logs};
}

// With P = exp(scores - logs): dV = P^T dO, dS = P * (dO V^T - rowsum(dO * O)) * scale, dQ = dS K, dK = dS^T Q.
template <class T>
void attend_backward(const Problem& p, int64_t image, int64_t head, Scratch<T>& scratch, const Tensor& grad, const Tensor& logs,
                     const Tensor& means, const Tensor& grad_q, const Tensor& grad_k, const Tensor& grad_v) {
  const SoftmaxLoops<T>& loops = find_softmax_loops<T>();
  constexpr ScalarType type = CppTypeToScalarType<T>::value;
  const Scores<T> of(p, image, head);
  const int64_t shared = head / p.sharing();
  const Matrix<T> q(p.q, image, head), k(p.k, image, shared), v(p.v, image, shared), g(grad, image, head);
  const Matrix<T> gq(grad_q, image, head), gk(grad_k, image, shared), gv(grad_v, image, shared);
  T* const scores = scratch.scores.template data_ptr<T>();
  T* const weights = scratch.weights.template data_ptr<T>();
  const T* const log = logs.data_ptr<T>() + image * logs.stride(0) + head * logs.stride(1);
  const T* const mean = means.data_ptr<T>() + image * means.stride(0) + head * means.stride(1);
  for (int64_t query = 0; query < q.rows; query += kQueries) {
    const int64_t n = std::min(kQueries, q.rows - query);
    for (int64_t key = 0, last = of.last_key(query + n); key < last; key += kKeys) {
      check_interrupt();
      const int64_t width = std::min(kKeys, last - key);
      of.compute(query, n, key, width, scores);
      for (int64_t i = 0; i < n; ++i) {
        const int64_t seen = of.seen(query + i, key, width);
        loops.exponentials(scores + i * width, log[(query + i) * logs.stride(2)], weights + i * width, seen);
        std::fill(weights + i * width + seen, weights + (i + 1) * width, T(0));
      }
      gemm("attention", type, width, v.columns, n, 1, {weights, 1, width}, g.from(query), 1, gv.data + key * gv.stride, gv.stride);
      gemm("attention", type, n, width, v.columns, 1, g.from(query), v.transposed(key), 0, scores, width);
      for (int64_t i = 0; i < n; ++i)
        loops.move_weights(weights + i * width, mean[(query + i) * means.stride(2)], static_cast<T>(p.scale), scores + i * width, width);
      gemm("attention", type, n, q.columns, width, 1, {scores, width, 1}, k.from(key), 1, gq.data + query * gq.stride, gq.stride);
      gemm("attention", type, width, q.columns, n, 1, {scores, 1, width}, q.from(query), 1, gk.data + key * gk.stride, gk.stride);
    }
  }
}

std::tuple<Tensor, Tensor, Tensor> backward(const Tensor& grad_out, const Tensor& query, const Tensor& key, const Tensor& value,
                                            const Tensor& out, const Tensor& logsumexp, double dropout_p, bool is_causal,
                                            const std::optional<Tensor>& attn_mask, std::optional<double> scale) {
  ops::check_flash_attention(query, key, value, dropout_p, attn_mask);
  ops::check_flash_attention_backward(grad_out, query, out, logsumexp);
  const ScalarType type = query.scalar_type() == kDouble ? kDouble : kFloat;
  const Problem p(query, key, value, type, is_causal, attn_mask, scale);
  const Tensor grad = operand(grad_out, type), logs = logsumexp.to(type);
  const Tensor means = cresset::sum(grad * out.to(type), {-1});
  const auto zeros = [&](const Tensor& t) { return result(p.images(), t.size(1), t.size(2), t.size(3), type).zero_(); };
  const Tensor gq = zeros(p.q), gk = zeros(p.k), gv = zeros(p.v);
  CRESSET_DISPATCH(type, "attention", CRESSET_FLOATING_TYPES, [&] {
    // Heads that share keys add to the same gradients: one thread takes them, in order.
    parallel_for(0, p.images() * p.shared(), 1, [&](int64_t begin, int64_t end) {
      Scratch<scalar_t> scratch;
      for (int64_t i = begin * p.sharing(); i < end * p.sharing(); ++i)
        attend_backward(p, i / p.heads(), i % p.heads(), scratch, grad, logs, means, gq, gk, gv);
    });
  });
  const ScalarType given = query.scalar_type();
  return {gq.to(given), gk.to(given), gv.to(given)};
}

}  // namespace

CRESSET_LIBRARY_IMPL(aten, CPU, m) {
  m.impl("_scaled_dot_product_flash_attention_for_cpu", CRESSET_FN(forward));
  m.impl("_scaled_dot_product_flash_attention_for_cpu_backward", CRESSET_FN(backward));
}

}  // namespace cresset::cpu
