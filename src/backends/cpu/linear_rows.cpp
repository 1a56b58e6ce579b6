#include "backends/cpu/linear_rows.h"

#include <algorithm>

#include <cresset/base/parallel.h>
#include <cresset/ops/functions_creation.h>

#include "backends/cpu/panel_products.h"

namespace cresset::cpu {

std::unique_ptr<const LinearRows> LinearRows::make(const Tensor& weight, const std::optional<Tensor>& bias, const Epilogue& epilogue) {
  if (!takes(1, weight.size(1))) return nullptr;
  auto out = std::make_unique<LinearRows>();
  const ActivationLoops& activations = find_activation_loops();
  for (const EpilogueStep& s : epilogue.steps()) {
    const Step step{s.takes_operand() ? nullptr : activations.find_any(s.name), static_cast<float>(s.a), static_cast<float>(s.b),
                    !s.takes_operand() ? nullptr
                    : s.name == "add"  ? activations.add
                                       : activations.mul};
    if (!step.loop && !step.join) return nullptr;
    out->steps_.push_back(step);
  }
  out->outputs_ = weight.size(0);
  out->inputs_ = weight.size(1);
  out->weight_ = weight.contiguous();
  // A copy of a small weight costs little memory, and makes up to a fifth of the time of a few rows.
  constexpr int64_t kSmall = 1 << 19;  // elements
  const PanelLoops& loops = find_panel_loops();
  if (loops.panel > 0 && weight.numel() <= kSmall) {
    out->turned_ = detail::empty_cpu({(out->outputs_ + loops.panel - 1) / loops.panel * loops.panel * out->inputs_}, kFloat);
    loops.turn(out->weight_.const_data_ptr<float>(), out->inputs_, out->outputs_, out->inputs_, out->turned_.data_ptr<float>());
  }
  if (bias) out->bias_ = bias->contiguous();
  return out;
}

bool LinearRows::takes(int64_t rows, int64_t inputs) { return find_panel_loops().takes(rows, inputs); }

Tensor LinearRows::run(const Tensor& x, TensorList operands) const {
  const Tensor dense = x.contiguous();
  std::vector<Tensor> with;
  for (const Tensor& t : operands) with.push_back(t.contiguous());
  std::vector<const float*> places;
  for (const Tensor& t : with) places.push_back(t.const_data_ptr<float>());
  std::vector<int64_t> sizes = x.sizes().vec();
  sizes.back() = outputs_;
  const Tensor y = detail::empty_cpu(sizes, kFloat);
  run(dense.const_data_ptr<float>(), x.numel() / inputs_, places, y.data_ptr<float>());
  return y;
}

// Tasks are chunks of outputs by parts of the rows: of rows whose results the second cache holds until the steps went over them, unless the
// chunk's weights are what it should hold; and parts for each thread where there are few chunks. A part turns the weights that it reads.
void LinearRows::run(const float* x, int64_t rows, const std::vector<const float*>& operands, float* y) const {
  constexpr int64_t kWorthThreads = 1'500'000, kRowsOfPart = 48;        // multiply-adds, and at least so many rows
  constexpr int64_t kCachedResult = 1 << 15, kCachedWeights = 1 << 17;  // elements
  constexpr int64_t kMostOutputs = 192, kLeastOutputs = 96;             // of a chunk
  const int64_t threads = in_parallel_region() ? 1 : get_num_threads();
  const bool divides = threads > 1 && rows * inputs_ * outputs_ >= kWorthThreads;
  const int64_t share = divides ? outputs_ / (4 * threads) / kLeastOutputs * kLeastOutputs : kMostOutputs;
  const int64_t chunk_outputs = std::clamp(share, kLeastOutputs, kMostOutputs);
  const int64_t chunks = (outputs_ + chunk_outputs - 1) / chunk_outputs, width = std::min(outputs_, chunk_outputs);
  int64_t parts = width * inputs_ <= kCachedWeights ? rows * width / kCachedResult : 1;
  if (divides && chunks * parts < 2 * threads) parts = std::max(parts, threads);
  parts = std::clamp<int64_t>(parts, 1, std::max<int64_t>(1, rows / kRowsOfPart));
  const int64_t tasks = chunks * parts;
  const PanelProducts products({x, inputs_, rows, inputs_, outputs_, weight_.const_data_ptr<float>(), inputs_,
                                turned_.defined() ? turned_.const_data_ptr<float>() : nullptr,
                                bias_ ? bias_->const_data_ptr<float>() : nullptr, false, y, outputs_});
  const auto begin_of = [&](int64_t part) {
    return part == parts ? rows : rows * part / parts / products.rows_together() * products.rows_together();
  };
  parallel_for(0, tasks, divides ? 1 : tasks, [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const int64_t chunk = task / parts, part = task % parts, first = begin_of(part), last = begin_of(part + 1);
      const int64_t column = chunk * chunk_outputs, columns = std::min(chunk_outputs, outputs_ - column);
      products.run(first, last - first, column, columns);
      if (steps_.empty()) continue;
      const bool whole = columns == outputs_;  // then rows are neighbours
      for (int64_t r = first; r < last; r += whole ? last - first : 1) {
        const int64_t at = r * outputs_ + column, n = whole ? (last - first) * outputs_ : columns;
        std::size_t next = 0;
        for (const Step& s : steps_) {
          if (s.loop)
            s.loop(y + at, n, s.a, s.b);
          else
            s.join(y + at, operands[next++] + at, n);
        }
      }
    }
  });
}

}  // namespace cresset::cpu
