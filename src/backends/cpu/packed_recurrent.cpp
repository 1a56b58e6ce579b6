// Recurrent layers of floats for graphs that are compiled once and run often. Of each layer and direction the input's part of the gates is
// one product for all steps, and a step is one pass over the weights of the state, which are packed so that the gates of some units are
// next to each other: their arithmetic happens before the sums leave the registers (recurrent_loops.h). The state's product is in float32
// or, like the input's, of bfloat16; sums, gates and states are float32.
#include <cresset/base/interrupt.h>
#include <cresset/base/parallel.h>
#include <cresset/dispatch/custom_class.h>
#include <cresset/ops/functions_creation.h>
#include <cresset/ops/functions_rnn.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "backends/cpu/packed_conv.h"
#include "backends/cpu/packed_types.h"
#include "backends/cpu/recurrent_loops.h"

namespace cresset::cpu {
namespace {

constexpr int64_t kPartWork = int64_t{1} << 17;  // multiply-adds worth waking a thread for

constexpr std::array<std::pair<std::string_view, Recurrence>, 4> kKinds{
    {{"rnn_tanh", Recurrence::Tanh}, {"rnn_relu", Recurrence::Relu}, {"gru", Recurrence::Gru}, {"lstm", Recurrence::Lstm}}};

Recurrence kind_of(const std::string& name) {
  const auto* const found = std::find_if(kKinds.begin(), kKinds.end(), [&](const auto& k) { return k.first == name; });
  CRESSET_CHECK_VALUE(found != kKinds.end(), "pack_recurrent: lstm, gru, rnn_tanh or rnn_relu was required; got '", name, "'.");
  return found->second;
}

bool is_floats(const Tensor& t, IntArrayRef sizes) {
  return t.defined() && t.scalar_type() == kFloat && t.device().is_cpu() && t.sizes() == sizes;
}

}  // namespace

class PackedRecurrent : public CustomClassHolder {
 public:
  struct Options {
    Recurrence kind;
    bool has_biases;
    int64_t layers;
    bool bidirectional, batch_first;
    ScalarType computes_in;

    int64_t directions() const { return bidirectional ? 2 : 1; }
    bool is_lstm() const { return kind == Recurrence::Lstm; }
  };

  PackedRecurrent(std::vector<Tensor> params, const Options& options) : options_(options), params_(std::move(params)) {
    const int64_t each = options_.has_biases ? 4 : 2, directions = options_.directions(), given = static_cast<int64_t>(params_.size());
    const bool fits = options_.layers > 0 && given % (each * directions) == 0 && given / (each * directions) == options_.layers;
    CRESSET_CHECK_VALUE(fits, "pack_recurrent: ", each, " weights for each layer and direction were required; ", given, " were given for ",
                        options_.layers, " layers.");
    const auto is_matrix = [](const Tensor& t) { return t.defined() && t.dim() == 2 && t.numel() > 0; };
    CRESSET_CHECK_VALUE(is_matrix(params_[0]) && is_matrix(params_[1]),
                        "pack_recurrent: weights of 2 dimensions with elements were required.");
    inputs_ = params_[0].size(1);
    hidden_ = params_[1].size(1);
    for (int64_t i = 0; i < given; i += each) add_cell(static_cast<std::size_t>(i), i < each * directions ? inputs_ : hidden_ * directions);
  }

  /// What the operator gives, as a list.
  std::vector<Tensor> run(const Tensor& input, const std::vector<Tensor>& hx) const {
    if (!takes(input, hx)) return by_operator(input, hx);
    const int64_t time = options_.batch_first ? 1 : 0, steps = input.size(time), batch = input.size(1 - time);
    const std::vector<int64_t> sizes{num_cells(), batch, hidden_};
    const Tensor first = hx[0].contiguous(), last = empty(sizes, TensorOptions(kFloat));
    const Tensor cell = options_.is_lstm() ? empty(sizes, TensorOptions(kFloat)).copy_(hx[1]) : Tensor();
    Tensor data = input;
    for (int64_t k = 0; k < num_cells();) {
      const Tensor out = empty({steps, batch, options_.directions() * hidden_}, TensorOptions(kFloat));
      const bool transposed = options_.batch_first && k == 0;
      for (int64_t d = 0; d < options_.directions(); ++d, ++k) {
        const Cell& c = cells_[static_cast<std::size_t>(k)];
        const Tensor gates = c.input(data);
        run_cell(c, transposed ? gates.transpose(0, 1) : gates, first.select(0, k), cell.defined() ? cell.select(0, k) : cell,
                 out.narrow(2, d * hidden_, hidden_), d == 1);
        last.select(0, k).copy_(out.select(0, d == 1 ? 0 : steps - 1).narrow(1, d * hidden_, hidden_));
      }
      data = out;
    }
    std::vector<Tensor> result{options_.batch_first ? data.transpose(0, 1) : data, last};
    if (cell.defined()) result.push_back(cell);
    return result;
  }

 private:
  // One layer in one direction.
  struct Cell {
    std::function<Tensor(const Tensor&)> input;  // (…, inputs) to the input's part of the gates, with all biases that are only added
    Tensor weight;                               // of the state, packed
    Tensor new_bias;                             // GRU: what the reset gate multiplies with the product
  };

  void add_cell(std::size_t first, int64_t inputs) {
    const int64_t rows = recurrent_gates(options_.kind) * hidden_;
    const Tensor &w_ih = params_[first], &w_hh = params_[first + 1];
    CRESSET_CHECK_VALUE(is_floats(w_ih, {rows, inputs}) && is_floats(w_hh, {rows, hidden_}), "pack_recurrent: weights of size (", rows,
                        ", ", inputs, ") and (", rows, ", ", hidden_, ") and dtype float32 on the CPU were required.");
    Cell c;
    std::optional<Tensor> bias;
    if (options_.has_biases) {
      const Tensor &b_ih = params_[first + 2], &b_hh = params_[first + 3];
      CRESSET_CHECK_VALUE(is_floats(b_ih, {rows}) && is_floats(b_hh, {rows}), "pack_recurrent: biases of ", rows,
                          " elements and dtype float32 on the CPU were required.");
      const int64_t added = options_.kind == Recurrence::Gru ? 2 * hidden_ : rows;
      bias = b_ih.clone(MemoryFormat::Contiguous);
      bias->narrow(0, 0, added).add_(b_hh.narrow(0, 0, added));
      if (added < rows) c.new_bias = b_hh.narrow(0, added, rows - added).contiguous();
    }
    c.input = packed_linear(w_ih.contiguous(), bias, options_.computes_in);
    const RecurrentLoops& loops = find_recurrent_loops();
    c.weight = detail::empty_cpu({loops.bytes(options_.kind, hidden_, is_narrow())}, kByte);
    loops.pack(options_.kind, hidden_, is_narrow(), w_hh.contiguous().const_data_ptr<float>(), c.weight.mutable_data_ptr());
    cells_.push_back(std::move(c));
  }

  int64_t num_cells() const { return static_cast<int64_t>(cells_.size()); }
  bool is_narrow() const { return options_.computes_in == kBFloat16; }

  // Anything else is the operator's, with its words for what is wrong.
  bool takes(const Tensor& input, const std::vector<Tensor>& hx) const {
    if (input.dim() != 3 || input.numel() == 0 || !is_floats(input, input.sizes()) || input.size(2) != inputs_) return false;
    const std::vector<int64_t> state{num_cells(), input.size(options_.batch_first ? 0 : 1), hidden_};
    const auto fits = [&](const Tensor& t) { return is_floats(t, state); };
    return hx.size() == (options_.is_lstm() ? 2U : 1U) && std::all_of(hx.begin(), hx.end(), fits);
  }
  std::vector<Tensor> by_operator(const Tensor& input, const std::vector<Tensor>& hx) const {
    const auto& o = options_;
    if (o.is_lstm()) {
      auto [out, h, c] = lstm(input, hx, params_, o.has_biases, o.layers, 0, false, o.bidirectional, o.batch_first);
      return {out, h, c};
    }
    CRESSET_CHECK_VALUE(hx.size() == 1, "recurrent_packed: one state was required; ", hx.size(), " were given.");
    using Operator = std::tuple<Tensor, Tensor>(const Tensor&, const Tensor&, TensorList, bool, int64_t, double, bool, bool, bool);
    Operator* op = gru;
    if (o.kind == Recurrence::Tanh) op = rnn_tanh;
    if (o.kind == Recurrence::Relu) op = rnn_relu;
    auto [out, h] = op(input, hx[0], params_, o.has_biases, o.layers, 0, false, o.bidirectional, o.batch_first);
    return {out, h};
  }

  // gates and out: (steps, batch, …) with dense last dimensions; state: before the first step; cell changes in place.
  void run_cell(const Cell& c, const Tensor& gates, const Tensor& state, const Tensor& cell, const Tensor& out, bool reverse) const {
    const RecurrentLoops& loops = find_recurrent_loops();
    const int64_t steps = gates.size(0), batch = gates.size(1), blocks = (hidden_ + kRecurrentUnits - 1) / kRecurrentUnits;
    const int64_t words = (hidden_ + 1) / 2;
    const Tensor narrow = is_narrow() ? detail::empty_cpu({batch, words}, kInt) : Tensor();
    RecurrentStep s{};
    s.kind = options_.kind;
    s.rows = batch;
    s.hidden = hidden_;
    s.gates_stride = gates.stride(1);
    s.state = state.const_data_ptr<float>();
    s.state_stride = state.stride(0);
    s.cell = cell.defined() ? cell.mutable_data_ptr<float>() : nullptr;
    s.new_bias = c.new_bias.defined() ? c.new_bias.const_data_ptr<float>() : nullptr;
    s.out_stride = out.stride(1);
    s.weight = c.weight.const_data_ptr();
    const int64_t block_work = batch * recurrent_gates(s.kind) * kRecurrentUnits * hidden_;
    for (int64_t i = 0; i < steps; ++i) {
      check_interrupt();
      const int64_t t = reverse ? steps - 1 - i : i;
      s.gates = gates.const_data_ptr<float>() + t * gates.stride(0);
      s.out = out.mutable_data_ptr<float>() + t * out.stride(0);
      s.products_of = s.state;
      s.products_stride = s.state_stride;
      if (is_narrow()) {
        auto* const to = static_cast<uint32_t*>(narrow.mutable_data_ptr());
        for (int64_t r = 0; r < batch; ++r) loops.to_words(s.state + r * s.state_stride, hidden_, to + r * words);
        s.products_of = to;
        s.products_stride = words;
      }
      parallel_for(0, blocks, std::max<int64_t>(1, kPartWork / block_work),
                   [&](int64_t begin, int64_t end) { (is_narrow() ? loops.step_bfloat16 : loops.step)(s, begin, end); });
      s.state = s.out;
      s.state_stride = s.out_stride;
    }
  }

  Options options_;
  std::vector<Tensor> params_;
  std::vector<Cell> cells_;
  int64_t inputs_ = 0, hidden_ = 0;
};

CRESSET_LIBRARY_FRAGMENT(cresset, m) {
  m.class_<PackedRecurrent>("PackedRecurrent");
  m.def(
      "pack_recurrent(str kind, Tensor[] params, bool has_biases, int num_layers, bool bidirectional, bool batch_first, "
      "str computes_in=\"float32\") -> __torch__.torch.classes.cresset.PackedRecurrent",
      [](const std::string& kind, const std::vector<Tensor>& params, bool has_biases, int64_t num_layers, bool bidirectional,
         bool batch_first, const std::string& computes_in) {
        const Format format = format_of("pack_recurrent", computes_in, 1);
        CRESSET_CHECK_VALUE(!format.is_quantized() && has_products_of(format.dtype),
                            "pack_recurrent: float32 or, with AVX512_BF16, bfloat16 was required; got ", computes_in, ".");
        return make_intrusive<PackedRecurrent>(
            params, PackedRecurrent::Options{kind_of(kind), has_biases, num_layers, bidirectional, batch_first, format.dtype});
      });
  m.def("recurrent_packed(Tensor input, Tensor[] hx, __torch__.torch.classes.cresset.PackedRecurrent packed) -> Tensor[]",
        [](const Tensor& input, const std::vector<Tensor>& hx, const intrusive_ptr<PackedRecurrent>& packed) {
          return packed->run(input, hx);
        });
}

}  // namespace cresset::cpu
