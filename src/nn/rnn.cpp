// Recurrent layers and cells, and packed sequences.
#include <cresset/nn/rnn.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include <cresset/ops/functions_arith.h>
#include <cresset/ops/functions_concat.h>
#include <cresset/ops/functions_copy.h>
#include <cresset/ops/functions_creation.h>
#include <cresset/ops/functions_index.h>
#include <cresset/ops/functions_random.h>
#include <cresset/ops/functions_rnn.h>
#include <cresset/ops/functions_sort.h>
#include <cresset/ops/functions_view.h>

namespace cresset::nn {

namespace {
/// Weights of recurrent layers: uniform on ±1/sqrt(hidden).
Tensor recurrent_uniform(IntArrayRef sizes, int64_t hidden) {
  const double bound = hidden > 0 ? 1 / std::sqrt(static_cast<double>(hidden)) : 0;
  return cresset::empty(sizes, TensorOptions()).uniform_(-bound, bound);
}
template <class Options>
detail::RNNOptionsBase base_of(const Options& o, detail::RNNOptionsBase::rnn_options_base_mode_t mode) {
  detail::RNNOptionsBase base(mode, o.input_size(), o.hidden_size());
  base.num_layers(o.num_layers()).bias(o.bias()).batch_first(o.batch_first());
  return base.bidirectional(o.bidirectional()).dropout(o.dropout());
}
std::optional<Tensor> given(const Tensor& t) { return t.defined() ? std::optional<Tensor>(t) : std::nullopt; }
}  // namespace

// --- packed sequences

namespace utils::rnn {

PackedSequence PackedSequence::to(const TensorOptions& options) const {
  const auto moved = [&](const Tensor& t) { return t.defined() && options.has_device() ? t.to(options.device()) : t; };
  return PackedSequence(data_.to(options), batch_sizes_, moved(sorted_indices_), moved(unsorted_indices_));
}

PackedSequence pack_padded_sequence(const Tensor& input, const Tensor& lengths, bool batch_first, bool enforce_sorted) {
  Tensor sorted = lengths.to(kCPU), order, inverse, x = input;
  if (!enforce_sorted) {
    std::tie(sorted, order) = sorted.sort(-1, true);
    inverse = cresset::empty_like(order).scatter_(0, order, cresset::arange(order.numel(), order.options()));
    x = input.index_select(batch_first ? 0 : 1, order);
  }
  auto [data, batch_sizes] = cresset::_pack_padded_sequence(x, sorted, batch_first);
  return PackedSequence(data, batch_sizes, order, inverse);
}

std::tuple<Tensor, Tensor> pad_packed_sequence(const PackedSequence& sequence, bool batch_first, double padding_value,
                                               std::optional<int64_t> total) {
  const int64_t longest = sequence.batch_sizes().size(0);
  CRESSET_CHECK(!total || *total >= longest,
                "Expected total_length to be at least the length of the longest sequence in input, but got total_length=",
                total.value_or(0), " and max sequence length being ", longest);
  auto [padded, lengths] =
      cresset::_pad_packed_sequence(sequence.data(), sequence.batch_sizes(), batch_first, padding_value, total.value_or(longest));
  if (!sequence.unsorted_indices().defined()) return {padded, lengths};
  return {padded.index_select(batch_first ? 0 : 1, sequence.unsorted_indices()), lengths.index({sequence.unsorted_indices()})};
}

Tensor pad_sequence(ArrayRef<Tensor> sequences, bool batch_first, double padding_value, std::string_view padding_side) {
  return cresset::pad_sequence(sequences, batch_first, padding_value, padding_side);
}

PackedSequence pack_sequence(ArrayRef<Tensor> sequences, bool enforce_sorted) {
  const Tensor lengths = cresset::empty({static_cast<int64_t>(sequences.size())}, TensorOptions(kLong));
  for (std::size_t i = 0; i < sequences.size(); ++i) lengths.data_ptr<int64_t>()[i] = sequences[i].size(0);
  return pack_padded_sequence(rnn::pad_sequence(sequences, false, 0), lengths, false, enforce_sorted);
}

}  // namespace utils::rnn

// --- layers

namespace detail {

void Recurrent::reset_recurrent(Module& module, const RNNOptionsBase& o) {
  CRESSET_CHECK(o.hidden_size() > 0, "hidden_size must be greater than zero");
  CRESSET_CHECK(o.num_layers() > 0, "num_layers must be greater than zero");
  CRESSET_CHECK(o.dropout() >= 0 && o.dropout() <= 1,
                "dropout should be a number in range [0, 1] representing the probability of an element being zeroed");
  weights_.clear();
  options_base = o;
  // The gates' weights stand one below the other; the modes are in the order of the variant.
  const int64_t gates = o.mode().index() == 0 ? 4 : o.mode().index() == 1 ? 3 : 1;
  const int64_t directions = o.bidirectional() ? 2 : 1, out = o.proj_size() > 0 ? o.proj_size() : o.hidden_size(),
                rows = gates * o.hidden_size();
  const auto add = [&](const std::string& name, IntArrayRef sizes) {
    weights_.push_back(module.register_parameter(name, recurrent_uniform(sizes, o.hidden_size())));
  };
  for (int64_t layer = 0; layer < o.num_layers(); ++layer) {
    for (int64_t direction = 0; direction < directions; ++direction) {
      const std::string suffix = "_l" + std::to_string(layer) + (direction == 1 ? "_reverse" : "");
      add("weight_ih" + suffix, {rows, layer == 0 ? o.input_size() : out * directions});
      add("weight_hh" + suffix, {rows, out});
      if (o.bias()) {
        add("bias_ih" + suffix, {rows});
        add("bias_hh" + suffix, {rows});
      }
      if (o.proj_size() > 0) add("weight_hr" + suffix, {o.proj_size(), o.hidden_size()});
    }
  }
}

Tensor Recurrent::zeros_state(const Tensor& input, int64_t size, const Tensor& batch_sizes) const {
  const RNNOptionsBase& o = options_base;
  const int64_t states = o.num_layers() * (o.bidirectional() ? 2 : 1);
  if (batch_sizes.defined()) return cresset::zeros({states, batch_sizes[0].item<int64_t>(), size}, input.options());
  CRESSET_CHECK(input.dim() == 2 || input.dim() == 3, "Expected 2D or 3D input, got ", input.dim(), "D");
  CRESSET_CHECK(input.size(-1) == o.input_size(), "input.size(-1) must be equal to input_size. Expected ", o.input_size(), ", got ",
                input.size(-1));
  if (input.dim() == 2) return cresset::zeros({states, size}, input.options());
  return cresset::zeros({states, input.size(o.batch_first() ? 0 : 1), size}, input.options());
}

Tensor Recurrent::permuted(const Tensor& state, const Tensor& order) const {
  return order.defined() ? state.index_select(1, order) : state;
}

}  // namespace detail

detail::RNNOptionsBase RNNImpl::base() const {
  if (std::holds_alternative<enumtype::kTanh>(options.nonlinearity())) return base_of(options, kRNN_TANH);
  return base_of(options, kRNN_RELU);
}
detail::RNNOptionsBase GRUImpl::base() const { return base_of(options, kGRU); }
detail::RNNOptionsBase LSTMImpl::base() const { return base_of(options, kLSTM).proj_size(options.proj_size()); }

namespace {
/// Adds the dimension of batches for the operators and takes it away again.
struct Batched {
  Batched(const Tensor& input, bool batch_first) : dim(batch_first ? 0 : 1), was_missing(input.dim() == 2) {
    x = was_missing ? input.unsqueeze(dim) : input;
  }
  Tensor state(const Tensor& hx) const { return was_missing ? hx.unsqueeze(1) : hx; }
  Tensor output(const Tensor& out) const { return was_missing ? out.squeeze(dim) : out; }
  Tensor last(const Tensor& hx) const { return was_missing ? hx.squeeze(1) : hx; }
  int64_t dim;
  bool was_missing;
  Tensor x;
};
}  // namespace

#define CRESSET_NN_RECURRENT(Name, OPERATOR)                                                                                              \
  std::tuple<Tensor, Tensor> Name##Impl::forward(const Tensor& input, Tensor hx) {                                                        \
    if (!hx.defined()) hx = zeros_state(input, options.hidden_size(), {});                                                                \
    const Batched batched(input, options.batch_first());                                                                                  \
    auto [out, last] = OPERATOR(batched.x, batched.state(hx), weights_, options.bias(), options.num_layers(), options.dropout(),          \
                                is_training(), options.bidirectional(), options.batch_first());                                           \
    return {batched.output(out), batched.last(last)};                                                                                     \
  }                                                                                                                                       \
  std::tuple<utils::rnn::PackedSequence, Tensor> Name##Impl::forward_with_packed_input(const utils::rnn::PackedSequence& input,           \
                                                                                       Tensor hx) {                                       \
    hx = hx.defined() ? permuted(hx, input.sorted_indices()) : zeros_state(input.data(), options.hidden_size(), input.batch_sizes());     \
    auto [out, last] = OPERATOR(input.data(), input.batch_sizes(), hx, weights_, options.bias(), options.num_layers(), options.dropout(), \
                                is_training(), options.bidirectional());                                                                  \
    return {utils::rnn::PackedSequence(out, input.batch_sizes(), input.sorted_indices(), input.unsorted_indices()),                       \
            permuted(last, input.unsorted_indices())};                                                                                    \
  }
namespace {
template <class... A>
std::tuple<Tensor, Tensor> rnn_of(const rnn_nonlinearity_t& nonlinearity, const A&... a) {
  return std::holds_alternative<enumtype::kReLU>(nonlinearity) ? cresset::rnn_relu(a...) : cresset::rnn_tanh(a...);
}
}  // namespace
#define CRESSET_RNN(...) rnn_of(options.nonlinearity(), __VA_ARGS__)
CRESSET_NN_RECURRENT(RNN, CRESSET_RNN)
CRESSET_NN_RECURRENT(GRU, cresset::gru)
#undef CRESSET_RNN
#undef CRESSET_NN_RECURRENT

std::tuple<Tensor, LSTMState> LSTMImpl::forward(const Tensor& input, std::optional<LSTMState> hx) {
  const int64_t out_size = options.proj_size() > 0 ? options.proj_size() : options.hidden_size();
  if (!hx) hx.emplace(zeros_state(input, out_size, {}), zeros_state(input, options.hidden_size(), {}));
  const Batched batched(input, options.batch_first());
  const std::vector<Tensor> state = {batched.state(std::get<0>(*hx)), batched.state(std::get<1>(*hx))};
  auto [out, h, c] = cresset::lstm(batched.x, state, weights_, options.bias(), options.num_layers(), options.dropout(), is_training(),
                                   options.bidirectional(), options.batch_first());
  return {batched.output(out), {batched.last(h), batched.last(c)}};
}
std::tuple<utils::rnn::PackedSequence, LSTMState> LSTMImpl::forward_with_packed_input(const utils::rnn::PackedSequence& input,
                                                                                      std::optional<LSTMState> hx) {
  const int64_t out_size = options.proj_size() > 0 ? options.proj_size() : options.hidden_size();
  std::vector<Tensor> state;
  if (hx)
    state = {permuted(std::get<0>(*hx), input.sorted_indices()), permuted(std::get<1>(*hx), input.sorted_indices())};
  else
    state = {zeros_state(input.data(), out_size, input.batch_sizes()),
             zeros_state(input.data(), options.hidden_size(), input.batch_sizes())};
  auto [out, h, c] = cresset::lstm(input.data(), input.batch_sizes(), state, weights_, options.bias(), options.num_layers(),
                                   options.dropout(), is_training(), options.bidirectional());
  return {utils::rnn::PackedSequence(out, input.batch_sizes(), input.sorted_indices(), input.unsorted_indices()),
          {permuted(h, input.unsorted_indices()), permuted(c, input.unsorted_indices())}};
}

// --- cells

#define CRESSET_NN_CELL_RESET(Name, gates)                                                                                  \
  void Name##Impl::reset() {                                                                                                \
    const int64_t hidden = options.hidden_size(), rows = gates * hidden;                                                    \
    weight_ih = register_parameter("weight_ih", recurrent_uniform({rows, options.input_size()}, hidden));                   \
    weight_hh = register_parameter("weight_hh", recurrent_uniform({rows, hidden}, hidden));                                 \
    bias_ih = register_parameter("bias_ih", options.bias() ? recurrent_uniform({rows}, hidden) : Tensor(), options.bias()); \
    bias_hh = register_parameter("bias_hh", options.bias() ? recurrent_uniform({rows}, hidden) : Tensor(), options.bias()); \
  }
CRESSET_NN_CELL_RESET(RNNCell, 1)
CRESSET_NN_CELL_RESET(GRUCell, 3)
CRESSET_NN_CELL_RESET(LSTMCell, 4)
#undef CRESSET_NN_CELL_RESET

namespace {
/// The state for one step: the one given, or zeros of the input's batch.
Tensor state_for(const Tensor& input, const Tensor& hx, int64_t hidden, const char* name = "hidden") {
  CRESSET_CHECK(input.dim() == 1 || input.dim() == 2, "Expected input to be 1D or 2D, got ", input.dim(), "D instead");
  CRESSET_CHECK(!hx.defined() || hx.dim() == 1 || hx.dim() == 2, "Expected ", name, " to be 1D or 2D, got ", hx.dim(), "D instead");
  if (hx.defined()) return hx;
  return input.dim() == 1 ? cresset::zeros({hidden}, input.options()) : cresset::zeros({input.size(0), hidden}, input.options());
}
}  // namespace

Tensor RNNCellImpl::forward(const Tensor& input, Tensor hx) {
  hx = state_for(input, hx, options.hidden_size());
  if (std::holds_alternative<enumtype::kReLU>(options.nonlinearity()))
    return cresset::rnn_relu_cell(input, hx, weight_ih, weight_hh, given(bias_ih), given(bias_hh));
  return cresset::rnn_tanh_cell(input, hx, weight_ih, weight_hh, given(bias_ih), given(bias_hh));
}
Tensor GRUCellImpl::forward(const Tensor& input, Tensor hx) {
  return cresset::gru_cell(input, state_for(input, hx, options.hidden_size()), weight_ih, weight_hh, given(bias_ih), given(bias_hh));
}
LSTMState LSTMCellImpl::forward(const Tensor& input, std::optional<LSTMState> hx) {
  const std::vector<Tensor> state = {state_for(input, hx ? std::get<0>(*hx) : Tensor(), options.hidden_size(), "hx[0]"),
                                     state_for(input, hx ? std::get<1>(*hx) : Tensor(), options.hidden_size(), "hx[1]")};
  return cresset::lstm_cell(input, state, weight_ih, weight_hh, given(bias_ih), given(bias_hh));
}

}  // namespace cresset::nn
