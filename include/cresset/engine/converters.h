// Converters and evaluators: operators that a backend's engines do not have, said in those that they have; helpers whose values are known
// when an engine is built.
//
//   static const auto registered = engine::RegisterNodeConversionPatterns("mine").pattern(
//       {"mine::square(Tensor self) -> Tensor",
//        [](engine::ConversionCtx& ctx, const jit::Node*, const std::vector<jit::Value*>& in) -> std::vector<jit::Value*> {
//          return {ctx.call("aten::mul", {in[0], in[0]})};
//        }});
//
// Partitioning gives the engine the nodes that have a converter; when the engine is built, converters rewrite its graph and the builder
// sees what they wrote. Files and archives keep the graph from before: where they are read the converters must be registered again.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <cresset/engine/engine.h>

namespace cresset::engine {

/// The graph that is being converted, at one node.
class CRESSET_API ConversionCtx {
 public:
  ConversionCtx(std::shared_ptr<jit::Graph> graph, std::vector<Tensor> weights);
  const std::shared_ptr<jit::Graph>& graph() const { return graph_; }
  /// A call of an operator in front of the node: values, and numbers and the like as constants. Raises where no overload fits.
  jit::Value* call(const std::string& op, const jit::NamedValues& arguments);
  /// A tensor that the engine holds, as a value.
  jit::Value* weight(Tensor value);
  /// What a value always is: a constant, a weight, a list of such numbers; nothing for others.
  std::optional<IValue> constant(const jit::Value* v) const;

 private:
  friend class Conversion;
  std::shared_ptr<jit::Graph> graph_;
  std::size_t given_;  // inputs in front of the weights
  std::vector<Tensor> weights_;
};

/// The values that stand for the node's outputs.
using Converter = std::function<std::vector<jit::Value*>(ConversionCtx&, const jit::Node*, const std::vector<jit::Value*>& inputs)>;

struct ConversionPattern {
  std::string signature;  // a schema, "aten::foo(Tensor x) -> Tensor"
  Converter converter;
  /// Of which nodes? None: of all with this operator.
  std::function<bool(const jit::Node*)> supports = {};
};
/// Of the operator and overload for engines of the backend; one that is there is replaced, with a warning. Raises ValueError for schemas
/// that cannot be read, or that no overload of a registered operator has.
CRESSET_API void register_converter(const std::string& backend, ConversionPattern pattern);

/// The spelling of Torch-TensorRT.
class RegisterNodeConversionPatterns {
 public:
  explicit RegisterNodeConversionPatterns(std::string backend = "cpu") : backend_(std::move(backend)) {}
  RegisterNodeConversionPatterns&& pattern(ConversionPattern p) && {
    register_converter(backend_, std::move(p));
    return std::move(*this);
  }

 private:
  std::string backend_;
};

/// Computes a node's results of its inputs' values, in the schema's order.
using Evaluator = std::function<std::vector<IValue>(const std::vector<IValue>& inputs)>;
/// Nodes of the operator whose inputs are all known become constants, for engines of all backends. Raises ValueError as register_converter,
/// and where the operator has an evaluator.
CRESSET_API void register_evaluator(const std::string& signature, Evaluator evaluator);

/// Has the backend a converter that takes the node, or can the node be evaluated?
CRESSET_API bool has_converter(const std::string& backend, const jit::Node* n);
/// The source after evaluation and conversion; itself where nothing was to do. Raises ValueError where a converter gives another number of
/// values than its node has.
CRESSET_API EngineSource converted(const std::string& backend, const EngineSource& source);

}  // namespace cresset::engine
