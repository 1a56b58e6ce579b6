// The CPU's engine: a graph whose operators with constant weights were packed and joined with what follows them, and the interpreter.
#pragma once

#include <cresset/engine/engine.h>

namespace cresset::engine::cpu {

/// A graph that is being packed: its last inputs are constants, of which the first were the weights of the source.
class PackedGraph {
 public:
  explicit PackedGraph(const EngineSource& source);

  jit::Graph& graph() const { return *graph_; }
  std::shared_ptr<jit::Graph> shared() const { return graph_; }
  const std::vector<IValue>& constants() const { return constants_; }

  /// The tensor that the value always is; undefined when it is none.
  Tensor tensor(const jit::Value* v) const;
  /// The value where it is known: a weight, a constant, a list made of constants.
  std::optional<IValue> known(const jit::Value* v) const;
  /// A further constant: what the operator (of one overload) gives for these arguments.
  jit::Value* add(const char* op, std::vector<IValue> arguments);
  /// Takes out what nobody uses.
  void tidy();

 private:
  std::shared_ptr<jit::Graph> graph_;
  std::size_t given_;  // inputs in front of the constants
  std::vector<IValue> constants_;
};

struct Packing {
  std::size_t convolutions = 0, linears = 0, recurrent = 0;
  /// Does it compute in less than float32 somewhere?
  bool narrow = false;
  /// Is a NaN in front of a relu or a limit lost? oneDNN's maximum of it and a number is the number.
  bool loses_nan = false;
};
/// In what convolutions and linear layers compute: 8 bits where there is a range for the input and the processor has products of them, else
/// bfloat16, else float32.
struct Precisions {
  bool bfloat16 = false, int8 = false;
  std::vector<Range> ranges;  // of the inputs of layers_of(), in order
};
/// Two-dimensional convolutions and linear layers with the pointwise operators behind them become cresset::convolution_packed and
/// cresset::linear_packed.
Packing pack_convolutions(PackedGraph& packed, const Precisions& precisions);
/// LSTM, GRU and plain recurrent layers over padded batches, without projection and dropout, become cresset::recurrent_packed, of bfloat16
/// where that is allowed; ranges are not used. How many there are.
std::size_t pack_recurrent(PackedGraph& packed, const Precisions& precisions);
/// The nodes that pack_convolutions packs, in order: the same ones for every copy of a graph.
std::vector<jit::Node*> layers_of(const PackedGraph& packed);

std::unique_ptr<Program> build(const EngineSource& source);
bool supports(const jit::Node* n);
/// What this processor has products of: float32, and bfloat16 and int8 with AVX-512's instructions for them.
std::vector<ScalarType> precisions();
/// Passes that take operators apart for which the CPU has kernels.
std::vector<std::string> without_passes();

}  // namespace cresset::engine::cpu
