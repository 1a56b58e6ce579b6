// Nodes that go into subgraphs and come out again keep the graph's meaning.
#include <cresset/ir/subgraph_utils.h>

#include <gtest/gtest.h>

#include <cresset/ir/file_check.h>
#include <cresset/ir/interpreter.h>
#include <cresset/ir/ir_parser.h>
#include <cresset/ops/functions.h>

#include "error_of.h"

namespace cresset::jit {
namespace {

std::shared_ptr<Graph> chain() {
  return parse_ir(R"(graph(%x : Tensor, %y : Tensor):
  %one : int = prim::Constant[value=1]()
  %a : Tensor = aten::mul(%x, %y)
  %b : Tensor = aten::add(%a, %x, %one)
  %c : Tensor = aten::tanh(%b)
  return (%c, %a))");
}
std::vector<double> answer(const std::shared_ptr<Graph>& graph) {
  std::vector<double> out;
  for (const IValue& v : run_graph(graph, {full({2}, 0.5), full({2}, 3.0)})) out.push_back(v.toTensor().sum().item().toDouble());
  return out;
}
Node* of_kind(const std::shared_ptr<Graph>& graph, Symbol kind) {
  for (Node* n : graph->nodes())
    if (n->kind() == kind) return n;
  return nullptr;
}

TEST(SubgraphUtils, NodesGoInFromBothSides) {
  const auto graph = chain();
  const std::vector<double> before = answer(graph);
  Node* group = SubgraphUtils::createSingletonSubgraph(of_kind(graph, aten::add), prim::FunctionalGraph);
  EXPECT_EQ(group->inputs().size(), 2u);  // the constant was copied
  SubgraphUtils::mergeNodeIntoSubgraph(of_kind(graph, aten::tanh), group);
  SubgraphUtils::mergeNodeIntoSubgraph(of_kind(graph, aten::mul), group);
  graph->lint();
  EXPECT_EQ(group->inputs().size(), 2u);
  EXPECT_EQ(group->outputs().size(), 2u);  // b is needed inside only
  testing::FileCheck().check("aten::mul")->check("aten::add")->check("aten::tanh")->run(*SubgraphUtils::getSubgraph(group));
  EXPECT_EQ(answer(graph), before);
  SubgraphUtils::unmergeSubgraph(group);
  graph->lint();
  EXPECT_EQ(answer(graph), before);
  EXPECT_FALSE(of_kind(graph, prim::FunctionalGraph));
}

TEST(SubgraphUtils, SubgraphsOfOneKindBecomeOne) {
  const auto graph = chain();
  const std::vector<double> before = answer(graph);
  Node* first = SubgraphUtils::createSingletonSubgraph(of_kind(graph, aten::mul), prim::FunctionalGraph);
  Node* second = SubgraphUtils::createSingletonSubgraph(of_kind(graph, aten::add), prim::FunctionalGraph);
  SubgraphUtils::mergeNodeIntoSubgraph(first, second);
  graph->lint();
  testing::FileCheck().check("aten::mul")->check("aten::add")->run(*SubgraphUtils::getSubgraph(second));
  EXPECT_EQ(answer(graph), before);
}

TEST(SubgraphUtils, OutputsThatShareMemoryComeOut) {
  const auto graph = parse_ir(R"(graph(%x : Tensor):
  %zero : int = prim::Constant[value=0]()
  %one : int = prim::Constant[value=1]()
  %a : Tensor = aten::relu(%x)
  %v : Tensor = aten::transpose(%a, %zero, %one)
  return (%a, %v))");
  Node* group = SubgraphUtils::createSingletonSubgraph(of_kind(graph, aten::relu), prim::FunctionalGraph);
  SubgraphUtils::mergeNodeIntoSubgraph(of_kind(graph, aten::transpose), group);
  EXPECT_EQ(group->outputs().size(), 2u);
  EXPECT_TRUE(SubgraphUtils::unmergeAliasedOutputs(group));
  graph->lint();
  EXPECT_EQ(group->outputs().size(), 1u);
  EXPECT_TRUE(of_kind(graph, aten::transpose));
  EXPECT_FALSE(SubgraphUtils::unmergeAliasedOutputs(group));
}

TEST(SubgraphUtils, NamesSayWhatIsInside) {
  const auto graph = chain();
  EXPECT_EQ(SubgraphUtils::generateNameForGraph(graph), "fused_mul_add_tanh");
  EXPECT_EQ(SubgraphUtils::generateNameForGraph(graph, 12, "f").size(), 12u);
}

TEST(SubgraphUtils, NodesOfOtherBlocksAreRefused) {
  const auto graph = chain(), other = chain();
  Node* group = SubgraphUtils::createSingletonSubgraph(of_kind(graph, aten::add), prim::FunctionalGraph);
  EXPECT_EQ(error_of([&] { SubgraphUtils::mergeNodeIntoSubgraph(of_kind(other, aten::mul), group); }),
            "mergeNodeIntoSubgraph: a node of the subgraph's block was required; '%a : Tensor = aten::mul(%x, %y)' was given.");
}

}  // namespace
}  // namespace cresset::jit
