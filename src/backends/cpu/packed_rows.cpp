#include "backends/cpu/packed_rows.h"

#include <algorithm>

#include <cresset/base/parallel.h>
#include <cresset/ops/functions_creation.h>

#include "backends/cpu/panel_loops.h"

namespace cresset::cpu {

std::unique_ptr<const PackedRows> PackedRows::make(const Tensor& weight, const std::optional<Tensor>& bias, const Epilogue& epilogue) {
  const PanelLoops& loops = find_panel_loops();
  if (!loops.quick) return nullptr;
  auto out = std::make_unique<PackedRows>();
  const ActivationLoops& activations = find_activation_loops();
  for (const EpilogueStep& s : epilogue.steps()) {
    if (s.takes_operand()) {
      out->steps_.emplace_back(s.name == "add" ? activations.add : activations.mul);
    } else if (const auto loop = activations.find_any(s.name)) {
      out->steps_.emplace_back(loop);
    } else {
      return nullptr;
    }
  }
  out->outputs_ = weight.size(0);
  out->inputs_ = weight.size(1);
  out->packed_ = detail::empty_cpu({loops.size(out->outputs_, out->inputs_)}, kFloat);
  loops.pack(weight.contiguous().const_data_ptr<float>(), out->outputs_, out->inputs_, out->packed_.data_ptr<float>());
  if (bias) out->bias_ = bias->contiguous();
  return out;
}

// Threads take chunks of outputs, and parts of the rows where there are few of those.
Tensor PackedRows::run(const Tensor& x, TensorList operands) const {
  constexpr int64_t kWorthThreads = 4'000'000, kRowsOfPart = 12;  // multiply-adds
  const Tensor dense = x.contiguous();
  std::vector<Tensor> with;
  for (const Tensor& t : operands) with.push_back(t.contiguous());
  std::vector<int64_t> sizes = x.sizes().vec();
  sizes.back() = outputs_;
  const Tensor y = detail::empty_cpu(sizes, kFloat);
  const int64_t rows = x.numel() / inputs_, chunks = (outputs_ + kChunkOutputs - 1) / kChunkOutputs;
  const int64_t threads = in_parallel_region() ? 1 : get_num_threads();
  const bool divides = threads > 1 && rows * inputs_ * outputs_ >= kWorthThreads;
  const int64_t parts = divides && chunks < 4 * threads ? std::clamp<int64_t>(rows / kRowsOfPart, 1, threads) : 1, tasks = chunks * parts;
  const PanelLoops& loops = find_panel_loops();
  parallel_for(0, tasks, divides ? 1 : tasks, [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const int64_t chunk = task / parts, part = task % parts, first = rows * part / parts, last = rows * (part + 1) / parts;
      loops.run({dense.const_data_ptr<float>() + first * inputs_, last - first, inputs_, outputs_, packed_.const_data_ptr<float>(),
                 bias_ ? bias_->const_data_ptr<float>() : nullptr, y.data_ptr<float>() + first * outputs_},
                chunk);
      const int64_t column = chunk * kChunkOutputs, columns = std::min(kChunkOutputs, outputs_ - column);
      for (int64_t r = first; r < last; ++r) {
        const int64_t at = r * outputs_ + column;
        float* const to = y.data_ptr<float>() + at;
        std::size_t next = 0;
        for (const Step& s : steps_) {
          if (const auto* loop = std::get_if<ActivationLoops::Loop>(&s))
            (*loop)(to, columns);
          else
            std::get<ActivationLoops::Join>(s)(to, with[next++].const_data_ptr<float>() + at, columns);
        }
      }
    }
  });
  return y;
}

}  // namespace cresset::cpu
