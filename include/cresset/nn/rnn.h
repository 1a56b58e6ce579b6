// Recurrent layers and cells.
#pragma once

#include <string_view>
#include <tuple>
#include <vector>

#include <cresset/nn/any.h>
#include <cresset/nn/print.h>

namespace cresset::nn {

namespace utils::rnn {

/// Sequences of different lengths without their padding: the elements of all, time step by time step, and how many there are at each.
class PackedSequence {
 public:
  PackedSequence() = default;
  explicit PackedSequence(Tensor data, Tensor batch_sizes, Tensor sorted_indices = {}, Tensor unsorted_indices = {})
      : data_(std::move(data)),
        batch_sizes_(std::move(batch_sizes)),
        sorted_indices_(std::move(sorted_indices)),
        unsorted_indices_(std::move(unsorted_indices)) {}
  const Tensor& data() const { return data_; }
  const Tensor& batch_sizes() const { return batch_sizes_; }
  const Tensor& sorted_indices() const { return sorted_indices_; }
  const Tensor& unsorted_indices() const { return unsorted_indices_; }
  Device device() const { return data_.device(); }
  bool is_cuda() const { return data_.is_cuda(); }
  /// The elements elsewhere or of another type; batch sizes stay on the CPU.
  CRESSET_API PackedSequence to(const TensorOptions& options) const;
  PackedSequence cpu() const { return to(TensorOptions(kCPU)); }
  PackedSequence cuda() const { return to(TensorOptions(kCUDA)); }

 private:
  Tensor data_, batch_sizes_, sorted_indices_, unsorted_indices_;
};

CRESSET_API PackedSequence pack_padded_sequence(const Tensor& input, const Tensor& lengths, bool batch_first = false,
                                                bool enforce_sorted = true);
/// The padded tensor and the lengths.
CRESSET_API std::tuple<Tensor, Tensor> pad_packed_sequence(const PackedSequence& sequence, bool batch_first = false,
                                                           double padding_value = 0, std::optional<int64_t> total_length = std::nullopt);
/// padding_side: "left" or "right".
CRESSET_API Tensor pad_sequence(ArrayRef<Tensor> sequences, bool batch_first = false, double padding_value = 0,
                                std::string_view padding_side = "right");
CRESSET_API PackedSequence pack_sequence(ArrayRef<Tensor> sequences, bool enforce_sorted = true);

}  // namespace utils::rnn

namespace detail {

class CRESSET_API Recurrent {
 public:
  RNNOptionsBase options_base{kLSTM, 0, 0};
  /// Makes the weights of a module with these options.
  void reset_recurrent(Module& module, const RNNOptionsBase& options);
  /// Weights in the order of the operators: for each layer and direction w_ih, w_hh, b_ih, b_hh and the projection.
  std::vector<Tensor> all_weights() const { return weights_; }
  /// Does nothing: weights are not laid out anew on the CPU.
  void flatten_parameters() {}

 protected:
  Tensor zeros_state(const Tensor& input, int64_t size, const Tensor& batch_sizes) const;
  Tensor permuted(const Tensor& state, const Tensor& order) const;
  std::vector<Tensor> weights_;
};

}  // namespace detail

#define CRESSET_NN_RECURRENT(Name, Given, State)                                                                                   \
 public:                                                                                                                           \
  Name##Impl(int64_t input_size, int64_t hidden_size) : Name##Impl(Name##Options(input_size, hidden_size)) {}                      \
  explicit Name##Impl(const Name##Options& options_) : options(options_) { Name##Impl::reset(); }                                  \
  void reset() override { reset_recurrent(*this, base()); }                                                                        \
  std::tuple<utils::rnn::PackedSequence, State> forward_with_packed_input(const utils::rnn::PackedSequence& input, Given hx = {}); \
  void pretty_print(std::ostream& stream) const override { detail::print_options(stream, #Name, options); }                        \
  Name##Options options;                                                                                                           \
                                                                                                                                   \
 private:                                                                                                                          \
  detail::RNNOptionsBase base() const;                                                                                             \
                                                                                                                                   \
 public:

class CRESSET_API RNNImpl : public Cloneable<RNNImpl>, public detail::Recurrent {
  CRESSET_NN_RECURRENT(RNN, Tensor, Tensor)
  /// Output and last state; the first state is zeros unless given.
  std::tuple<Tensor, Tensor> forward(const Tensor& input, Tensor hx = {});
  CRESSET_FORWARD_DEFAULTS({1, AnyValue(Tensor())})
};
CRESSET_MODULE(RNN);

class CRESSET_API GRUImpl : public Cloneable<GRUImpl>, public detail::Recurrent {
  CRESSET_NN_RECURRENT(GRU, Tensor, Tensor)
  std::tuple<Tensor, Tensor> forward(const Tensor& input, Tensor hx = {});
  CRESSET_FORWARD_DEFAULTS({1, AnyValue(Tensor())})
};
CRESSET_MODULE(GRU);

using LSTMState = std::tuple<Tensor, Tensor>;
class CRESSET_API LSTMImpl : public Cloneable<LSTMImpl>, public detail::Recurrent {
  CRESSET_NN_RECURRENT(LSTM, std::optional<LSTMState>, LSTMState)
  std::tuple<Tensor, LSTMState> forward(const Tensor& input, std::optional<LSTMState> hx = {});
  CRESSET_FORWARD_DEFAULTS({1, AnyValue(std::optional<LSTMState>())})
};
CRESSET_MODULE(LSTM);
#undef CRESSET_NN_RECURRENT

/// One step; weights as in the layers, without suffix.
#define CRESSET_NN_CELL(Name, Result, State)                                                                    \
  class CRESSET_API Name##Impl : public Cloneable<Name##Impl> {                                                 \
   public:                                                                                                      \
    Name##Impl(int64_t input_size, int64_t hidden_size) : Name##Impl(Name##Options(input_size, hidden_size)) {} \
    explicit Name##Impl(const Name##Options& options_) : options(options_) { Name##Impl::reset(); }             \
    void reset() override;                                                                                      \
    void pretty_print(std::ostream& stream) const override { detail::print_options(stream, #Name, options); }   \
    Result forward(const Tensor& input, State hx = {});                                                         \
    CRESSET_FORWARD_DEFAULTS({1, AnyValue(State())})                                                            \
    Name##Options options;                                                                                      \
    Tensor weight_ih, weight_hh, bias_ih, bias_hh;                                                              \
  };                                                                                                            \
  CRESSET_MODULE(Name);
CRESSET_NN_CELL(RNNCell, Tensor, Tensor)
CRESSET_NN_CELL(GRUCell, Tensor, Tensor)
CRESSET_NN_CELL(LSTMCell, LSTMState, std::optional<LSTMState>)
#undef CRESSET_NN_CELL

}  // namespace cresset::nn
