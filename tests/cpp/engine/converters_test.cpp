// Converters and evaluators from C++: by schema, by node, with the spelling of Torch-TensorRT.
#include <cresset/engine/converters.h>
#include <gtest/gtest.h>

#include <cresset/dispatch/library.h>
#include <cresset/ir/ir_parser.h>
#include <cresset/ops/functions_compare.h>
#include <cresset/ops/functions_creation.h>

#include "error_of.h"

namespace cresset::engine {
namespace {

CRESSET_LIBRARY(converted, m) {
  m.def("half(int n) -> int", [](int64_t n) { return n / 2; });
}

constexpr const char* kGraph = R"(graph(%x : Tensor, %w : Tensor):
  %two : int = prim::Constant[value=2]()
  %three : int = prim::Constant[value=3]()
  %n : int = converted::half(%three)
  %a : Tensor = aten::square(%x)
  %b : Tensor = aten::mul(%a, %w)
  %c : Tensor = aten::add(%b, %n, %two)
  return (%c))";

EngineSource source() { return {"engine", jit::parse_ir(kGraph), {cresset::full({2}, 5)}}; }

TEST(Converters, RewriteTheGraphAndAddWeights) {
  int asked = 0;
  static const auto registered =
      RegisterNodeConversionPatterns("test_rewrite")
          .pattern({"aten::square(Tensor self) -> Tensor",
                    [](ConversionCtx& ctx, const jit::Node* n, const std::vector<jit::Value*>& in) -> std::vector<jit::Value*> {
                      EXPECT_EQ(n->kind(), jit::Symbol::fromQualString("aten::square"));
                      EXPECT_FALSE(ctx.constant(in[0]));
                      return {ctx.call("aten::mul", {in[0], ctx.weight(cresset::full({2}, 7))})};
                    }})
          .pattern({"aten::mul.Tensor(Tensor self, Tensor other) -> Tensor",
                    [](ConversionCtx& ctx, const jit::Node*, const std::vector<jit::Value*>& in) -> std::vector<jit::Value*> {
                      EXPECT_EQ(ctx.constant(in[1])->toTensor().sum().item<float>(), 10);
                      return {ctx.call("aten::sub", {in[0], in[1]})};
                    },
                    [&asked](const jit::Node*) { return ++asked > 0; }});
  const EngineSource before = source(), after = converted("test_rewrite", before);
  EXPECT_EQ(after.weights.size(), 2U);
  EXPECT_EQ(before.weights.size(), 1U);
  const std::string text = after.graph->toString(false);
  EXPECT_EQ(text.find("aten::square"), std::string::npos);
  EXPECT_NE(text.find("aten::sub"), std::string::npos);
  EXPECT_EQ(asked, 1);  // not of what converters wrote
  for (const jit::Node* n : before.graph->nodes())
    if (n->kind() == jit::Symbol::fromQualString("aten::square")) {
      EXPECT_TRUE(has_converter("test_rewrite", n));
      EXPECT_FALSE(has_converter("test_nobody", n));
    }
  EXPECT_EQ(converted("test_nobody", before).graph, before.graph);
}

TEST(Converters, EvaluatorsMakeConstants) {
  constexpr const char* kSchema = "converted::half(int n) -> int";
  register_evaluator(kSchema, [](const std::vector<IValue>& in) { return std::vector<IValue>{in[0].toInt() * 200}; });
  const EngineSource after = converted("test_evaluate", source());
  EXPECT_NE(after.graph->toString(false).find("value=600"), std::string::npos);
  EXPECT_NE(error_of([] {
              register_evaluator(kSchema, [](const std::vector<IValue>& in) { return in; });
            }).find("converted::half(int n) -> int has an evaluator"),
            std::string::npos);
}

}  // namespace
}  // namespace cresset::engine
