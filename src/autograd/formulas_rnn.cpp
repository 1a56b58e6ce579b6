#include "autograd/formulas_rnn.h"

#include <vector>

#include <cresset/ops/functions_activation.h>
#include <cresset/ops/functions_arith.h>
#include <cresset/ops/functions_concat.h>
#include <cresset/ops/functions_creation.h>
#include <cresset/ops/functions_math.h>
#include <cresset/ops/functions_matmul.h>
#include <cresset/ops/functions_view.h>

namespace cresset::autograd::formulas {

// Back through time (Werbos 1990). What does not depend on later steps is computed for all steps at once: the slopes of the activations
// before, the products that give the weight's gradient behind.
std::tuple<Tensor, Tensor, Tensor, Tensor> lstm_layer_backward(const Tensor& d_outputs, const Tensor& d_cells, const Tensor& d_active,
                                                               const Tensor& h, const Tensor& c, const Tensor& w_hh, const Tensor& outputs,
                                                               const Tensor& cells, const Tensor& active, std::array<bool, 4> mask) {
  const int64_t steps = outputs.size(0), units = c.size(-1);
  const auto before = [&](const Tensor& first, const Tensor& all) {
    return cresset::cat({first.unsqueeze(0), all.narrow(0, 0, steps - 1)}, 0);
  };
  const auto a = active.chunk(4, -1);  // input, forget, cell, output
  const Tensor tanh_cells = cresset::tanh(cells);
  const Tensor of_gates = active.narrow(-1, 0, 2 * units);
  // d gates[t] = (dc, dc, dc, dh) * factors[t], and dc has dh * through[t].
  const Tensor slopes = cresset::cat({of_gates * (1 - of_gates), 1 - a[2] * a[2], a[3] * (1 - a[3])}, -1);
  const Tensor factors = cresset::cat({a[2], before(c, cells), a[0], tanh_cells}, -1) * slopes;
  const Tensor through = a[3] * (1 - tanh_cells * tanh_cells);
  const Tensor outer = d_active.defined() ? d_active * slopes : Tensor();
  std::vector<Tensor> d_gates(static_cast<std::size_t>(steps));
  Tensor dh, dc;  // from the step behind
  for (int64_t t = steps - 1; t >= 0; --t) {
    const auto plus = [&](const Tensor& sum, const Tensor& all) {
      return !all.defined() ? sum : sum.defined() ? sum + all.select(0, t) : all.select(0, t);
    };
    dh = plus(dh, d_outputs);
    if (!dh.defined()) dh = cresset::zeros_like(h);
    const Tensor by_output = dh * through.select(0, t);
    dc = plus(dc.defined() ? dc + by_output : by_output, d_cells);
    Tensor d = cresset::cat({dc, dc, dc, dh}, -1) * factors.select(0, t);
    if (outer.defined()) d = d + outer.select(0, t);
    dc = dc * a[1].select(0, t);
    dh = cresset::mm(d, w_hh);
    d_gates[static_cast<std::size_t>(t)] = d;
  }
  const Tensor all = cresset::stack(d_gates, 0);
  const Tensor weight = mask[3] ? cresset::mm(all.flatten(0, 1).t(), before(h, outputs).flatten(0, 1)) : Tensor();
  return {all, dh, dc, weight};
}

}  // namespace cresset::autograd::formulas
