// Engines of the device `simulated`: a library of its own, which programs load when they want engines (cresset.ops.load_library, or
// --custom-converters on the command line). What is registered here is all that partitioning and compile() ask of a backend.
#include <cresset/engine/converters.h>
#include <cresset/ir/interpreter.h>
#include <cresset/ops/functions.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace {

using cresset::Device;
using cresset::Tensor;

// What the device's engines have; everything else is other backends' or the interpreter's.
constexpr std::array<std::string_view, 8> kOperators{"aten::relu",    "aten::add",  "aten::sub",    "aten::mul",
                                                     "aten::sigmoid", "aten::tanh", "aten::matmul", "aten::t"};

bool supports(const cresset::jit::Node* n) {
  return std::find(kOperators.begin(), kOperators.end(), std::string_view(n->kind().toQualString())) != kOperators.end();
}

// The weights go to the device once, inputs and results at each run.
class Program final : public cresset::engine::Program {
 public:
  explicit Program(const cresset::engine::EngineSource& source) : code_(cresset::jit::Code::compile(source.graph, source.name)) {
    for (const Tensor& t : source.weights) weights_.push_back(t.to(device_));
  }
  std::vector<Tensor> run(const std::vector<Tensor>& inputs) const override {
    cresset::Stack stack;
    for (const Tensor& t : inputs) stack.emplace_back(t.to(device_));
    stack.insert(stack.end(), weights_.begin(), weights_.end());
    code_->run(stack);
    const Device home = inputs.empty() ? Device("cpu") : inputs[0].device();
    std::vector<Tensor> out;
    for (const cresset::IValue& v : stack) out.push_back(v.toTensor().to(home));
    return out;
  }

 private:
  Device device_{"simulated"};
  std::shared_ptr<const cresset::jit::Code> code_;
  std::vector<Tensor> weights_;
};

// What the device has no kernel for, in what it has. Slopes that are not known stay with others.
using Values = std::vector<cresset::jit::Value*>;
const auto conversions =
    cresset::engine::RegisterNodeConversionPatterns("simulated")
        .pattern({"aten::square(Tensor self) -> Tensor",
                  [](auto& ctx, const auto*, const Values& in) -> Values { return {ctx.call("aten::mul", {in[0], in[0]})}; }})
        .pattern({"aten::leaky_relu(Tensor self, Scalar negative_slope=0.01) -> Tensor",
                  [](auto& ctx, const auto*, const Values& in) -> Values {
                    const auto negative = ctx.call("aten::relu", {ctx.call("aten::mul", {in[0], -1})});
                    return {ctx.call("aten::sub", {ctx.call("aten::relu", {in[0]}), ctx.call("aten::mul", {negative, in[1]})})};
                  },
                  [](const cresset::jit::Node* n) { return cresset::jit::toIValue(n->input(1)).has_value(); }});

const bool registered = [] {
  cresset::engine::register_engine_builder({.name = "simulated",
                                            .supports = &supports,
                                            .build = [](const cresset::engine::EngineSource& s) { return std::make_unique<Program>(s); },
                                            .dtypes = {cresset::kFloat, cresset::kInt, cresset::kBool},
                                            .target = "simulated-1"});
  return true;
}();

}  // namespace
