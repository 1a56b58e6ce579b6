// Traces and exported programs without Python.
#include <gtest/gtest.h>

#include <thread>

#include <cresset/ir/export.h>
#include <cresset/ir/interpreter.h>
#include <cresset/ir/tracer.h>
#include <cresset/ops/functions_activation.h>
#include <cresset/ops/functions_arith.h>
#include <cresset/ops/functions_creation.h>
#include <cresset/ops/functions_reduce.h>

namespace cresset::jit {
namespace {

std::vector<std::string> kinds(const Graph& g) {
  std::vector<std::string> out;
  for (const Node* n : g.nodes())
    if (n->kind() != prim::Constant) out.push_back(n->kind().toQualString());
  return out;
}

std::shared_ptr<Graph> trace_sum_of_relu() {
  return tracer::trace({"x", "y"}, {IValue(ones({2, 3})), IValue(ones({3}))},
                       [](const std::vector<IValue>& in) { return IValue(add(relu(in[0].toTensor()), in[1].toTensor())); });
}

TEST(Tracer, RecordsWhatAFunctionOfIValuesDoes) {
  const auto g = trace_sum_of_relu();
  EXPECT_EQ(kinds(*g), (std::vector<std::string>{"aten::relu", "aten::add"}));
  const auto out = run_graph(g, {IValue(neg(ones({4, 3}))), IValue(ones({3}))});
  EXPECT_EQ(sum(out[0].toTensor()).item().toDouble(), 12);
}

TEST(Tracer, OneTensorInTwoPlacesIsTwoInputs) {
  const Tensor x = ones({3});
  const auto g = tracer::trace({"a", "b"}, {IValue(x), IValue(x)},
                               [](const std::vector<IValue>& in) { return IValue(sub(in[0].toTensor(), in[1].toTensor())); });
  EXPECT_NE(g->inputs()[0], g->inputs()[1]);
  EXPECT_TRUE(g->inputs()[0]->hasUses() && g->inputs()[1]->hasUses());
}

TEST(Tracer, BelongsToItsThreadAndEndsWithAnError) {
  const auto nested = [](const std::vector<IValue>& in) {
    std::thread([] { EXPECT_FALSE(tracer::is_tracing()); }).join();
    EXPECT_TRUE(tracer::is_tracing());
    trace_sum_of_relu();
    return in[0];
  };
  EXPECT_THROW(tracer::trace({"x"}, {IValue(ones({2}))}, nested), Error);
  EXPECT_FALSE(tracer::is_tracing());
  EXPECT_THROW(tracer::trace({"x"}, {IValue(3)}, [](const auto& in) { return in[0]; }), Error);
}

TEST(Export, FilesThatAreNoProgramsAreRefused) {
  EXPECT_THROW(load_exported_bytes("no program"), Error);
  EXPECT_THROW(load_exported("/no such file"), Error);
}

}  // namespace
}  // namespace cresset::jit
