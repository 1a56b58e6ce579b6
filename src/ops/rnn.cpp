// Recurrent layers, step by step from matrix products, so that derivatives of every order come from the parts.
#include <algorithm>
#include <numeric>
#include <vector>

#include <cresset/core/grad_mode.h>
#include <cresset/ops/functions_activation.h>
#include <cresset/ops/functions_arith.h>
#include <cresset/ops/functions_concat.h>
#include <cresset/ops/functions_creation.h>
#include <cresset/ops/functions_index.h>
#include <cresset/ops/functions_math.h>
#include <cresset/ops/functions_matmul.h>
#include <cresset/ops/functions_random.h>
#include <cresset/ops/functions_rnn.h>
#include <cresset/ops/functions_view.h>

#include "ops/ops_decl_rnn.h"
#include "ops/shared/lifted.h"

namespace cresset::ops {
namespace {

enum class Mode { kTanh, kRelu, kGru, kLstm };

int64_t gate_count(Mode mode) { return mode == Mode::kLstm ? 4 : mode == Mode::kGru ? 3 : 1; }

// h, and for an LSTM c, of one layer and direction.
struct State {
  Tensor h, c;
};

// The weights of one layer and direction.
struct Weights {
  Tensor w_ih, w_hh, w_hr;
  std::optional<Tensor> b_ih, b_hh;
};

// One step from the input's part of the gates.
State step(Mode mode, const Tensor& gates, const State& state, const Weights& w) {
  const Tensor recurrent = cresset::linear(state.h, w.w_hh, w.b_hh);
  const auto sum = [&] { return (gates + recurrent).to(recurrent.scalar_type()); };  // where types differ, that of the state
  State next;
  if (mode == Mode::kTanh) {
    next.h = cresset::tanh(sum());
  } else if (mode == Mode::kRelu) {
    next.h = cresset::relu(sum());
  } else if (mode == Mode::kGru) {
    const auto i = gates.chunk(3, -1), h = recurrent.chunk(3, -1);
    const Tensor reset = cresset::sigmoid(i[0] + h[0]), update = cresset::sigmoid(i[1] + h[1]);
    const Tensor fresh = cresset::tanh(i[2] + reset * h[2]);
    next.h = (state.h - fresh) * update + fresh;
  } else {
    const auto g = sum().chunk(4, -1);  // input, forget, cell, output
    next.c = cresset::sigmoid(g[1]) * state.c + cresset::sigmoid(g[0]) * cresset::tanh(g[2]);
    next.h = cresset::sigmoid(g[3]) * cresset::tanh(next.c);
  }
  if (w.w_hr.defined()) next.h = cresset::linear(next.h, w.w_hr, std::nullopt);
  return next;
}

// The rows of a state that take part, and the same with new rows in front of the others.
State first_rows(const State& s, int64_t n) {
  if (s.h.size(0) == n) return s;
  return {s.h.narrow(0, 0, n), s.c.defined() ? s.c.narrow(0, 0, n) : Tensor()};
}
State replace_rows(const State& s, const State& front) {
  const int64_t n = front.h.size(0), rest = s.h.size(0) - n;
  if (rest == 0) return front;
  const auto joined = [&](const Tensor& a, const Tensor& b) { return a.defined() ? cresset::cat({a, b.narrow(0, n, rest)}, 0) : Tensor(); };
  return {joined(front.h, s.h), joined(front.c, s.c)};
}

// Do the steps go into one operator? Not where programs watch the parts: modes, classes of tensors, and vmap, which has rules for those.
bool is_one_operator(Mode mode, const Tensor& gates, IntArrayRef sizes, const State& state, const Weights& w) {
  if (mode != Mode::kLstm || w.w_hr.defined() || sizes.size() < 2 || modes_look()) return false;
  constexpr DispatchKeySet watched{DispatchKey::Python, DispatchKey::FuncTorchBatched};
  for (const Tensor& t : {gates, state.h, state.c, w.w_hh})
    if (!(t.key_set() & watched).empty() || t.scalar_type() != gates.scalar_type()) return false;
  return isFloatingType(gates.scalar_type()) && std::equal(sizes.begin() + 1, sizes.end(), sizes.begin());
}

std::pair<Tensor, State> whole_direction(const Tensor& data, IntArrayRef sizes, const State& state, const Weights& w, bool reverse) {
  const std::optional<Tensor> bias = w.b_ih && w.b_hh ? std::optional<Tensor>(*w.b_ih + *w.b_hh) : std::nullopt;
  const int64_t steps = static_cast<int64_t>(sizes.size());
  Tensor gates = cresset::linear(data, w.w_ih, bias).unflatten(0, {steps, sizes[0]});
  if (reverse) gates = gates.flip({0});
  const auto recorded = [](const Tensor& t) { return t.requires_grad(); };
  const bool keeps = GradMode::is_enabled() && (recorded(gates) || recorded(state.h) || recorded(state.c) || recorded(w.w_hh));
  const auto [outputs, cells, active] = cresset::lstm_layer(gates, state.h, state.c, w.w_hh, keeps);
  const State last{outputs.select(0, steps - 1), cells.select(0, steps - 1)};
  return {(reverse ? outputs.flip({0}) : outputs).flatten(0, 1), last};
}

// One direction over data of all steps in a row, `sizes[t]` of them in step t. A padded batch has equal sizes.
std::pair<Tensor, State> direction(Mode mode, const Tensor& data, IntArrayRef sizes, State state, const Weights& w, bool reverse) {
  if (is_one_operator(mode, data, sizes, state, w)) return whole_direction(data, sizes, state, w, reverse);
  const std::vector<Tensor> gates = cresset::linear(data, w.w_ih, w.b_ih).split(sizes, 0);
  std::vector<Tensor> outputs(gates.size());
  for (std::size_t k = 0; k < gates.size(); ++k) {
    const std::size_t t = reverse ? gates.size() - 1 - k : k;
    const State next = step(mode, gates[t], first_rows(state, sizes[t]), w);
    outputs[t] = next.h;
    state = replace_rows(state, next);
  }
  return {cresset::cat(outputs, 0), state};
}

struct Network {
  Mode mode;
  bool has_biases;
  int64_t layers;
  double dropout;
  bool train, bidirectional;

  int64_t directions() const { return bidirectional ? 2 : 1; }
  Weights weights(TensorList params, int64_t k, bool projected) const {
    const std::size_t count = (has_biases ? 4 : 2) + (projected ? 1 : 0);
    const TensorList p = params.slice(static_cast<std::size_t>(k) * count, count);
    Weights w{p[0], p[1], projected ? p[count - 1] : Tensor(), std::nullopt, std::nullopt};
    if (has_biases) {
      w.b_ih = p[2];
      w.b_hh = p[3];
    }
    return w;
  }

  void check(const Tensor& data, int64_t batch, const Tensor& hx, const Tensor& cx, TensorList params, bool projected) const {
    const int64_t cells = layers * directions();
    const std::size_t count = static_cast<std::size_t>(cells) * ((has_biases ? 4 : 2) + (projected ? 1 : 0));
    CRESSET_CHECK(layers > 0 && params.size() == count, "rnn: ", count, " weights were required for ", layers, " layers; ", params.size(),
                  " were given.");
    CRESSET_CHECK(hx.dim() == 3 && hx.size(0) == cells && hx.size(1) == batch, "Expected hidden size (", cells, ", ", batch, ", H), got ",
                  hx.sizes());
    CRESSET_CHECK(!cx.defined() || (cx.dim() == 3 && cx.size(0) == cells && cx.size(1) == batch), "Expected cell size (", cells, ", ",
                  batch, ", H), got ", cx.defined() ? cx.sizes() : IntArrayRef());
    const Tensor& hidden = cx.defined() ? cx : hx;
    const Weights first = weights(params, 0, projected);
    CRESSET_CHECK(first.w_ih.dim() == 2 && first.w_ih.size(1) == data.size(-1), "input.size(-1) must be equal to input_size. Expected ",
                  first.w_ih.size(-1), ", got ", data.size(-1));
    CRESSET_CHECK(first.w_ih.size(0) == gate_count(mode) * hidden.size(2) && first.w_hh.dim() == 2 && first.w_hh.size(1) == hx.size(2),
                  "rnn: a state of ", first.w_ih.size(0) / gate_count(mode), " values was required; got ", hidden.sizes(), ".");
  }

  // All layers over data of all steps in a row; hx and cx are (layers * directions, batch, H).
  std::tuple<Tensor, Tensor, Tensor> run(Tensor data, IntArrayRef sizes, const Tensor& hx, const Tensor& cx, TensorList params) const {
    const bool projected = cx.defined() && cx.dim() == 3 && hx.dim() == 3 && hx.size(2) != cx.size(2);
    check(data, sizes.empty() ? 0 : sizes[0], hx, cx, params, projected);
    std::vector<Tensor> last_h, last_c;
    for (int64_t layer = 0; layer < layers; ++layer) {
      std::vector<Tensor> outputs;
      for (int64_t d = 0; d < directions(); ++d) {
        const int64_t k = layer * directions() + d;
        auto [out, state] = direction(mode, data, sizes, {hx.select(0, k), cx.defined() ? cx.select(0, k) : Tensor()},
                                      weights(params, k, projected), d == 1);
        outputs.push_back(out);
        last_h.push_back(state.h);
        if (cx.defined()) last_c.push_back(state.c);
      }
      data = outputs.size() == 1 ? outputs[0] : cresset::cat(outputs, -1);
      if (train && dropout != 0 && layer + 1 < layers) data = cresset::dropout(data, dropout, true);
    }
    return {data, cresset::stack(last_h, 0), cx.defined() ? cresset::stack(last_c, 0) : Tensor()};
  }

  std::tuple<Tensor, Tensor, Tensor> padded(const Tensor& input, const Tensor& hx, const Tensor& cx, TensorList params,
                                            bool batch_first) const {
    CRESSET_CHECK(input.dim() == 3, "input must have 3 dimensions, got ", input.dim());
    const Tensor steps = batch_first ? input.transpose(0, 1) : input;
    CRESSET_CHECK(steps.size(0) > 0, "Expected sequence length to be larger than 0 in RNN");
    const std::vector<int64_t> sizes(static_cast<std::size_t>(steps.size(0)), steps.size(1));
    auto [data, h, c] = run(steps.reshape({-1, steps.size(2)}), sizes, hx, cx, params);
    const Tensor out = cresset::_unsafe_view(data, {steps.size(0), steps.size(1), data.size(-1)});
    return {batch_first ? out.transpose(0, 1) : out, h, c};
  }

  std::tuple<Tensor, Tensor, Tensor> packed(const Tensor& data, const Tensor& batch_sizes, const Tensor& hx, const Tensor& cx,
                                            TensorList params) const;
};

// The values of a tensor of sizes that must not increase.
std::vector<int64_t> decreasing(const Tensor& t, const char* name) {
  CRESSET_CHECK(t.dim() == 1 && t.scalar_type() == kLong && t.device().type() == kCPU, "'", name,
                "' argument should be a 1D CPU int64 tensor, but got ", t.dim(), "D ", t.device(), " ", t.scalar_type(), " tensor");
  CRESSET_CHECK(t.numel() > 0, "'", name, "' argument should be a non-empty tensor");
  const Tensor values = t.contiguous();
  const int64_t* const p = values.const_data_ptr<int64_t>();
  for (int64_t i = 1; i < values.numel(); ++i)
    CRESSET_CHECK(
        p[i] <= p[i - 1], "`", name,
        "` array must be sorted in decreasing order when `enforce_sorted` is True. You can pass "
        "`enforce_sorted=False` to pack_padded_sequence and/or pack_sequence to sidestep this requirement if you do not need ONNX "
        "exportability.");
  CRESSET_CHECK(p[values.numel() - 1] > 0, "Length of all samples has to be greater than 0, but found an element in '", name,
                "' that is <= 0");
  return {p, p + values.numel()};
}

std::tuple<Tensor, Tensor, Tensor> Network::packed(const Tensor& data, const Tensor& batch_sizes, const Tensor& hx, const Tensor& cx,
                                                   TensorList params) const {
  CRESSET_CHECK(data.dim() == 2, "rnn: packed data of 2 dimensions was required; got size ", data.sizes(), ".");
  const std::vector<int64_t> sizes = decreasing(batch_sizes, "batch_sizes");
  const int64_t steps = std::accumulate(sizes.begin(), sizes.end(), int64_t{0});
  CRESSET_CHECK(steps == data.size(0), "rnn: batch_sizes that add up to the length of data (", data.size(0),
                ") were required; they add up to ", steps, ".");
  return run(data, sizes, hx, cx, params);
}

std::pair<Tensor, Tensor> lstm_states(TensorList hx) {
  CRESSET_CHECK(hx.size() == 2, "lstm expects two hidden states");
  return {hx[0], hx[1]};
}

std::tuple<Tensor, Tensor> without_c(const std::tuple<Tensor, Tensor, Tensor>& result) {
  return {std::get<0>(result), std::get<1>(result)};
}

State cell(Mode mode, const char* name, const Tensor& input, const State& state, const Tensor& w_ih, const Tensor& w_hh,
           const std::optional<Tensor>& b_ih, const std::optional<Tensor>& b_hh) {
  CRESSET_CHECK(w_ih.dim() == 2 && w_hh.dim() == 2, name, ": weights of 2 dimensions were required; got ", w_ih.sizes(), " and ",
                w_hh.sizes(), ".");
  CRESSET_CHECK(input.dim() >= 1 && input.size(-1) == w_ih.size(1), "input has inconsistent input_size: got ",
                input.dim() ? input.size(-1) : 0, " expected ", w_ih.size(1));
  const auto check_state = [&](const Tensor& t, const char* which, int64_t size) {
    CRESSET_CHECK(t.dim() == input.dim() && t.size(-1) == size, which, " has inconsistent hidden_size: got ", t.dim() ? t.size(-1) : 0,
                  ", expected ", size);
    CRESSET_CHECK(
        t.sizes().slice(0, static_cast<std::size_t>(t.dim() - 1)) == input.sizes().slice(0, static_cast<std::size_t>(input.dim() - 1)),
        "Input batch size ", input.dim() > 1 ? input.size(0) : 1, " doesn't match ", which, " batch size ", t.dim() > 1 ? t.size(0) : 1);
  };
  CRESSET_CHECK(w_ih.size(0) == w_hh.size(0) && w_hh.size(0) == gate_count(mode) * w_hh.size(1), name, ": weights of ", gate_count(mode),
                " gates were required; got ", w_ih.sizes(), " and ", w_hh.sizes(), ".");
  check_state(state.h, "hidden0", w_hh.size(1));
  if (state.c.defined()) check_state(state.c, "hidden1", w_hh.size(1));
  const Weights w{w_ih, w_hh, Tensor(), b_ih, b_hh};
  return step(mode, cresset::linear(input, w_ih, b_ih), state, w);
}

Tensor longs(IntArrayRef values) {
  const Tensor out = detail::empty_cpu({static_cast<int64_t>(values.size())}, kLong);
  std::copy(values.begin(), values.end(), out.mutable_data_ptr<int64_t>());
  return out;
}

// Where each row of packed data lies among the rows of a padded tensor, given how many sequences take part in each step.
Tensor packed_places(IntArrayRef batch_sizes, int64_t step_stride, int64_t sequence_stride) {
  std::vector<int64_t> places;
  for (std::size_t step = 0; step < batch_sizes.size(); ++step)
    for (int64_t n = 0; n < batch_sizes[step]; ++n) places.push_back(static_cast<int64_t>(step) * step_stride + n * sequence_stride);
  return longs(places);
}

}  // namespace

// Products of few rows with a transposed weight copy it each time, so it is transposed once.
std::tuple<Tensor, Tensor, Tensor> lstm_layer_steps(const Tensor& gates, const Tensor& h, const Tensor& c, const Tensor& w_hh, bool keeps) {
  CRESSET_CHECK_NOT_IMPLEMENTED(isFloatingType(gates.scalar_type()), "lstm_layer: floating-point tensors were required; got ",
                                gates.scalar_type(), ".");
  const int64_t units = c.size(-1);
  const Tensor weight = w_hh.t().contiguous();
  std::vector<Tensor> outputs, cells, active;
  for (const Tensor& of_step : gates.unbind(0)) {
    const Tensor sums = cresset::addmm(of_step, outputs.empty() ? h : outputs.back(), weight);
    const auto parts = sums.split({2 * units, units, units}, -1);
    const Tensor a[] = {cresset::sigmoid(parts[0]), cresset::tanh(parts[1]), cresset::sigmoid(parts[2])};
    const Tensor kept = a[0].narrow(-1, units, units) * (cells.empty() ? c : cells.back());
    cells.push_back(cresset::addcmul(kept, a[0].narrow(-1, 0, units), a[1]));
    outputs.push_back(a[2] * cresset::tanh(cells.back()));
    if (keeps) active.push_back(cresset::cat(a, -1));
  }
  return {cresset::stack(outputs, 0), cresset::stack(cells, 0), keeps ? cresset::stack(active, 0) : cresset::empty({0}, gates.options())};
}

std::tuple<Tensor, Tensor, Tensor> lstm_input(const Tensor& input, TensorList hx, TensorList params, bool has_biases, int64_t num_layers,
                                              double dropout, bool train, bool bidirectional, bool batch_first) {
  const auto [h, c] = lstm_states(hx);
  return Network{Mode::kLstm, has_biases, num_layers, dropout, train, bidirectional}.padded(input, h, c, params, batch_first);
}
std::tuple<Tensor, Tensor, Tensor> lstm_data(const Tensor& data, const Tensor& batch_sizes, TensorList hx, TensorList params,
                                             bool has_biases, int64_t num_layers, double dropout, bool train, bool bidirectional) {
  const auto [h, c] = lstm_states(hx);
  return Network{Mode::kLstm, has_biases, num_layers, dropout, train, bidirectional}.packed(data, batch_sizes, h, c, params);
}
std::tuple<Tensor, Tensor> gru_input(const Tensor& input, const Tensor& hx, TensorList params, bool has_biases, int64_t num_layers,
                                     double dropout, bool train, bool bidirectional, bool batch_first) {
  return without_c(Network{Mode::kGru, has_biases, num_layers, dropout, train, bidirectional}.padded(input, hx, {}, params, batch_first));
}
std::tuple<Tensor, Tensor> gru_data(const Tensor& data, const Tensor& batch_sizes, const Tensor& hx, TensorList params, bool has_biases,
                                    int64_t num_layers, double dropout, bool train, bool bidirectional) {
  return without_c(Network{Mode::kGru, has_biases, num_layers, dropout, train, bidirectional}.packed(data, batch_sizes, hx, {}, params));
}
std::tuple<Tensor, Tensor> rnn_tanh_input(const Tensor& input, const Tensor& hx, TensorList params, bool has_biases, int64_t num_layers,
                                          double dropout, bool train, bool bidirectional, bool batch_first) {
  return without_c(Network{Mode::kTanh, has_biases, num_layers, dropout, train, bidirectional}.padded(input, hx, {}, params, batch_first));
}
std::tuple<Tensor, Tensor> rnn_tanh_data(const Tensor& data, const Tensor& batch_sizes, const Tensor& hx, TensorList params,
                                         bool has_biases, int64_t num_layers, double dropout, bool train, bool bidirectional) {
  return without_c(Network{Mode::kTanh, has_biases, num_layers, dropout, train, bidirectional}.packed(data, batch_sizes, hx, {}, params));
}
std::tuple<Tensor, Tensor> rnn_relu_input(const Tensor& input, const Tensor& hx, TensorList params, bool has_biases, int64_t num_layers,
                                          double dropout, bool train, bool bidirectional, bool batch_first) {
  return without_c(Network{Mode::kRelu, has_biases, num_layers, dropout, train, bidirectional}.padded(input, hx, {}, params, batch_first));
}
std::tuple<Tensor, Tensor> rnn_relu_data(const Tensor& data, const Tensor& batch_sizes, const Tensor& hx, TensorList params,
                                         bool has_biases, int64_t num_layers, double dropout, bool train, bool bidirectional) {
  return without_c(Network{Mode::kRelu, has_biases, num_layers, dropout, train, bidirectional}.packed(data, batch_sizes, hx, {}, params));
}

// ---- one step

std::tuple<Tensor, Tensor> lstm_cell_impl(const Tensor& input, TensorList hx, const Tensor& w_ih, const Tensor& w_hh,
                                          const std::optional<Tensor>& b_ih, const std::optional<Tensor>& b_hh) {
  const auto [h, c] = lstm_states(hx);
  const State next = cell(Mode::kLstm, "lstm_cell", input, {h, c}, w_ih, w_hh, b_ih, b_hh);
  return {next.h, next.c};
}
Tensor gru_cell_impl(const Tensor& input, const Tensor& hx, const Tensor& w_ih, const Tensor& w_hh, const std::optional<Tensor>& b_ih,
                     const std::optional<Tensor>& b_hh) {
  return cell(Mode::kGru, "gru_cell", input, {hx, {}}, w_ih, w_hh, b_ih, b_hh).h;
}
Tensor rnn_tanh_cell_impl(const Tensor& input, const Tensor& hx, const Tensor& w_ih, const Tensor& w_hh, const std::optional<Tensor>& b_ih,
                          const std::optional<Tensor>& b_hh) {
  return cell(Mode::kTanh, "rnn_tanh_cell", input, {hx, {}}, w_ih, w_hh, b_ih, b_hh).h;
}
Tensor rnn_relu_cell_impl(const Tensor& input, const Tensor& hx, const Tensor& w_ih, const Tensor& w_hh, const std::optional<Tensor>& b_ih,
                          const std::optional<Tensor>& b_hh) {
  return cell(Mode::kRelu, "rnn_relu_cell", input, {hx, {}}, w_ih, w_hh, b_ih, b_hh).h;
}

// ---- packed sequences

std::tuple<Tensor, Tensor> pack_padded_sequence(const Tensor& input, const Tensor& lengths, bool batch_first) {
  CRESSET_CHECK(input.dim() >= 2 && input.numel() > 0, "Cannot pack empty tensors.");
  const int64_t length = input.size(batch_first ? 1 : 0), batch = input.size(batch_first ? 0 : 1);
  CRESSET_CHECK(lengths.dim() != 1 || lengths.size(0) == batch, "Expected `len(lengths)` to be equal to batch_size, but got ",
                lengths.size(0), " (batch_size=", batch, ")");
  const std::vector<int64_t> sizes = decreasing(lengths, "lengths");
  CRESSET_CHECK(sizes.front() <= length, "pack_padded_sequence: lengths up to ", length, " were required; got ", sizes.front(), ".");
  std::vector<int64_t> counts;
  for (int64_t step = 0, active = batch; step < sizes.front(); ++step) {
    while (sizes[static_cast<std::size_t>(active - 1)] <= step) --active;
    counts.push_back(active);
  }
  const Tensor places = packed_places(counts, batch_first ? 1 : batch, batch_first ? length : 1).to(input.device());
  return {cresset::index_select(input.flatten(0, 1), 0, places), longs(counts)};
}

std::tuple<Tensor, Tensor> pad_packed_sequence(const Tensor& data, const Tensor& batch_sizes, bool batch_first, const Scalar& padding_value,
                                               int64_t total_length) {
  const std::vector<int64_t> sizes = decreasing(batch_sizes, "batch_sizes");
  const int64_t longest = static_cast<int64_t>(sizes.size()), batch = sizes.front();
  CRESSET_CHECK(total_length <= 0 || total_length >= longest,
                "Expected total_length to be at least the length of the longest sequence in input, but got total_length=", total_length,
                " and max sequence length being ", longest);
  const int64_t length = total_length > 0 ? total_length : longest;
  const int64_t rows = std::accumulate(sizes.begin(), sizes.end(), int64_t{0});
  CRESSET_CHECK(rows == data.size(0), "split_with_sizes expects split_sizes to sum exactly to ", data.size(0),
                " (input tensor's size at dimension 0), but got split_sizes=", IntArrayRef(sizes));
  const Tensor lengths = detail::empty_cpu({batch}, kLong);
  for (int64_t n = 0; n < batch; ++n)
    lengths.mutable_data_ptr<int64_t>()[n] = std::count_if(sizes.begin(), sizes.end(), [n](int64_t size) { return size > n; });
  DimVector flat{length * batch}, shape{length, batch};
  for (int64_t size : data.sizes().slice(1)) flat.push_back(size), shape.push_back(size);
  const Tensor places = packed_places(sizes, batch, 1).to(data.device());
  const impl::ExcludeDispatchKeyGuard without_autocast(DispatchKey::AutocastFunctionality);  // the data keeps its type
  const Tensor padded = cresset::full(flat, padding_value, data.options()).index_copy(0, places, data).view(shape);
  return {batch_first ? padded.transpose(0, 1) : padded, lengths};
}

}  // namespace cresset::ops
