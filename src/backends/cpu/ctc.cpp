// CTC loss: forward and backward variables in logarithms (Graves et al. 2006, equations 6 to 16).
// The labels of a target are seen with blanks before, between and behind them: place s is a blank when s is even.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include <cresset/base/parallel.h>
#include <cresset/core/dispatch_types.h>

#include "backends/cpu/index_common.h"
#include "cpu/cpu_decl_ctc.h"

namespace cresset::cpu {
namespace {

template <class A>
constexpr A kNever = -std::numeric_limits<A>::infinity();

template <class A>
A log_add(A a, A b) {
  const A high = std::max(a, b);
  return high == kNever<A> ? high : high + std::log(std::exp(a - high) + std::exp(b - high));
}

// The targets of every sequence, checked against the number of labels.
std::vector<std::vector<int64_t>> target_rows(const Tensor& targets, IntArrayRef target_lengths, int64_t labels) {
  const Indices all = read_indices(targets);
  std::vector<std::vector<int64_t>> rows;
  int64_t begin = 0;
  for (std::size_t n = 0; n < target_lengths.size(); ++n) {
    if (targets.dim() == 2) begin = static_cast<int64_t>(n) * targets.size(1);
    rows.emplace_back(all.begin() + begin, all.begin() + begin + target_lengths[n]);
    for (int64_t label : rows.back())
      CRESSET_CHECK_INDEX(label >= 0 && label < labels, "ctc_loss: target ", label, " is out of range for ", labels, " labels.");
    begin += target_lengths[n];
  }
  return rows;
}

int64_t label_at(const std::vector<int64_t>& target, int64_t blank, int64_t s) { return s % 2 ? target[s / 2] : blank; }

// May a path go from place s - 2 to s (or s + 2 to s) without the blank between them?
bool may_skip(const std::vector<int64_t>& target, int64_t s, int64_t other) { return s % 2 && target[s / 2] != target[other / 2]; }

}  // namespace

void ctc_loss(const Tensor& log_probs, const Tensor& targets, IntArrayRef input_lengths, IntArrayRef target_lengths, int64_t blank, bool,
              const Tensor& loss, const Tensor& log_alpha) {
  const int64_t batch = log_probs.size(1), labels = log_probs.size(2), time = log_probs.size(0), places = log_alpha.size(2);
  const auto rows = target_rows(targets, target_lengths, labels);
  const Tensor x = log_probs.contiguous();
  CRESSET_DISPATCH(log_probs.scalar_type(), "ctc_loss_cpu", CRESSET_FLOATING_TYPES, [&] {
    const scalar_t* const lp = x.const_data_ptr<scalar_t>();
    scalar_t* const alphas = log_alpha.mutable_data_ptr<scalar_t>();
    scalar_t* const losses = loss.mutable_data_ptr<scalar_t>();
    parallel_for(0, batch, 1, [&](int64_t begin, int64_t end) {
      for (int64_t n = begin; n < end; ++n) {
        const auto& target = rows[n];
        const int64_t last = 2 * static_cast<int64_t>(target.size()), steps = input_lengths[static_cast<std::size_t>(n)];
        scalar_t* const alpha = alphas + n * time * places;
        std::fill_n(alpha, time * places, kNever<scalar_t>);
        if (steps == 0) {
          losses[n] = target.empty() ? scalar_t(0) : -kNever<scalar_t>;
          continue;
        }
        for (int64_t t = 0; t < steps; ++t) {
          const scalar_t* const p = lp + (t * batch + n) * labels;
          for (int64_t s = 0; s <= last; ++s) {
            scalar_t sum = t == 0 ? (s <= 1 ? scalar_t(0) : kNever<scalar_t>) : alpha[(t - 1) * places + s];
            if (t > 0 && s > 0) sum = log_add(sum, alpha[(t - 1) * places + s - 1]);
            if (t > 0 && s > 1 && may_skip(target, s, s - 2)) sum = log_add(sum, alpha[(t - 1) * places + s - 2]);
            alpha[t * places + s] = sum + p[label_at(target, blank, s)];
          }
        }
        const scalar_t* const end_row = alpha + (steps - 1) * places;
        losses[n] = -(last == 0 ? end_row[0] : log_add(end_row[last], end_row[last - 1]));
      }
    });
  });
}

void ctc_loss_backward(const Tensor& grad, const Tensor& log_probs, const Tensor& targets, IntArrayRef input_lengths,
                       IntArrayRef target_lengths, const Tensor& neg_log_likelihood, const Tensor& log_alpha, int64_t blank,
                       bool zero_infinity, const Tensor& out) {
  const int64_t batch = log_probs.size(1), labels = log_probs.size(2), time = log_probs.size(0), places = log_alpha.size(2);
  const auto rows = target_rows(targets, target_lengths, labels);
  const Tensor x = log_probs.contiguous(), a = log_alpha.to(log_probs.scalar_type()).contiguous(),
               nll = neg_log_likelihood.to(log_probs.scalar_type()).contiguous(), g = grad.to(log_probs.scalar_type()).contiguous();
  CRESSET_DISPATCH(log_probs.scalar_type(), "ctc_loss_backward_cpu", CRESSET_FLOATING_TYPES, [&] {
    const scalar_t *const lp = x.const_data_ptr<scalar_t>(), *const alphas = a.const_data_ptr<scalar_t>(),
                          *const losses = nll.const_data_ptr<scalar_t>(), *const gs = g.const_data_ptr<scalar_t>();
    scalar_t* const to = out.mutable_data_ptr<scalar_t>();
    std::fill_n(to, out.numel(), scalar_t(0));
    parallel_for(0, batch, 1, [&](int64_t begin, int64_t end) {
      std::vector<scalar_t> beta(static_cast<std::size_t>(places)), next(static_cast<std::size_t>(places)),
          seen(static_cast<std::size_t>(labels));
      for (int64_t n = begin; n < end; ++n) {
        if (zero_infinity && losses[n] == -kNever<scalar_t>) continue;
        const auto& target = rows[n];
        const int64_t last = 2 * static_cast<int64_t>(target.size()), steps = input_lengths[static_cast<std::size_t>(n)];
        for (int64_t t = steps - 1; t >= 0; --t) {
          const scalar_t* const p = lp + (t * batch + n) * labels;
          const scalar_t* const alpha = alphas + (n * time + t) * places;
          // seen[c]: log of the sum of alpha * beta over the places with label c.
          std::fill(seen.begin(), seen.end(), kNever<scalar_t>);
          for (int64_t s = last; s >= 0; --s) {
            scalar_t sum = t == steps - 1 ? (s >= last - 1 ? scalar_t(0) : kNever<scalar_t>) : next[s];
            if (t < steps - 1 && s < last) sum = log_add(sum, next[s + 1]);
            if (t < steps - 1 && s + 1 < last && may_skip(target, s, s + 2)) sum = log_add(sum, next[s + 2]);
            const int64_t label = label_at(target, blank, s);
            beta[s] = sum + p[label];
            seen[label] = log_add(seen[label], alpha[s] + beta[s]);
          }
          scalar_t* const row = to + (t * batch + n) * labels;
          for (int64_t c = 0; c < labels; ++c) row[c] = (std::exp(p[c]) - std::exp(seen[c] + losses[n] - p[c])) * gs[n];
          std::swap(beta, next);
        }
      }
    });
  });
}

}  // namespace cresset::cpu
