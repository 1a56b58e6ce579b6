// What only C++ offers of the rewriter: filters, several rules, places of nodes. Everything else is data in tests/ir/test_analysis.py.
#include <gtest/gtest.h>

#include <cresset/dispatch/boxing.h>
#include <cresset/ir/ir_parser.h>
#include <cresset/ir/subgraph_rewriter.h>

namespace cresset::jit {
namespace {

constexpr const char* kAdd = "graph(%a, %b, %k):\n  %y = aten::add(%a, %b, %k)\n  return (%y)";
constexpr const char* kFused = "graph(%a, %b, %k):\n  %y = my::sum(%a, %b)\n  return (%y)";

std::shared_ptr<Graph> two_sums() {
  return parse_ir(
      "graph(%x : Tensor, %z : Tensor):\n"
      "  %one : int = prim::Constant[value=1]()\n"
      "  %two : int = prim::Constant[value=2]()\n"
      "  %p : Tensor = aten::add(%x, %z, %one)\n"
      "  %q : Tensor = aten::add(%p, %z, %two)\n"
      "  return (%q)\n");
}

TEST(SubgraphRewriter, FiltersSeeTheMatchAndTheNamesOfThePattern) {
  const auto graph = two_sums();
  SubgraphRewriter rewriter;
  rewriter.RegisterRewritePattern(kAdd, kFused);
  const auto alpha_is_one = [](const Match& m, const std::unordered_map<std::string, Value*>& names) {
    EXPECT_EQ(m.anchor->output(), m.values_map.at(names.at("y")));
    return constant_as<int64_t>(m.values_map.at(names.at("k"))) == 1;
  };
  EXPECT_EQ(rewriter.runOnGraph(graph, alpha_is_one), 1u);
  graph->lint();
  EXPECT_NE(graph->toString().find("%p : Tensor = my::sum(%x, %z)"), std::string::npos);
  EXPECT_NE(graph->toString().find("%q : Tensor = aten::add(%p, %z, %two)"), std::string::npos);
}

TEST(SubgraphRewriter, OneFilterThatRefusesIsEnough) {
  const auto graph = two_sums();
  const std::string before = graph->toString();
  SubgraphRewriter rewriter;
  rewriter.RegisterRewritePattern(kAdd, kFused);
  const MatchFilter yes = [](const Match&, const auto&) { return true; }, no = [](const Match&, const auto&) { return false; };
  EXPECT_EQ(rewriter.runOnGraph(graph, std::vector<MatchFilter>{yes, no}), 0u);
  EXPECT_EQ(graph->toString(), before);
}

TEST(SubgraphRewriter, RulesFeedEachOther) {
  const auto graph = parse_ir("graph(%x : Tensor):\n  %a = aten::relu(%x)\n  return (%a)");
  SubgraphRewriter rewriter;
  rewriter.RegisterRewritePattern("graph(%x):\n  %y = aten::neg(%x)\n  return (%y)", "graph(%x):\n  %y = aten::exp(%x)\n  return (%y)");
  rewriter.RegisterRewritePattern("graph(%x):\n  %y = aten::relu(%x)\n  return (%y)", "graph(%x):\n  %y = aten::neg(%x)\n  return (%y)");
  EXPECT_EQ(rewriter.runOnGraph(graph), 2u);
  EXPECT_NE(graph->toString().find("aten::exp(%x)"), std::string::npos);
}

TEST(SubgraphRewriter, NodesTakeThePlaceTheyAreGiven) {
  const auto graph = parse_ir(
      "graph(%x : Tensor):\n"
      "  %a : Tensor = aten::neg(%x) # f.py:1:0\n"
      "  %b : Tensor = aten::relu(%a) # f.py:2:0\n"
      "  return (%b)\n");
  SubgraphRewriter rewriter;
  rewriter.RegisterRewritePattern("graph(%x):\n  %m = aten::neg(%x)\n  %y = aten::relu(%m)\n  return (%y)",
                                  "graph(%x):\n  %n = aten::abs(%x)\n  %y = aten::exp(%n)\n  return (%y)", {{"n", "m"}});
  EXPECT_EQ(rewriter.runOnGraph(graph), 1u);
  const std::string text = graph->toString();
  EXPECT_NE(text.find("aten::abs(%x) # f.py:1:0"), std::string::npos) << text;
  EXPECT_NE(text.find("aten::exp(%3) # f.py:2:0"), std::string::npos) << text;
}

TEST(SubgraphRewriter, RulesThatDoNotFitAreRefused) {
  SubgraphRewriter rewriter;
  EXPECT_ANY_THROW(rewriter.RegisterRewritePattern(kAdd, "graph(%a, %b):\n  return (%a)"));
  EXPECT_ANY_THROW(rewriter.RegisterRewritePattern("graph(%a):\n  return (%a)", "graph(%a):\n  return (%a)"));
}

}  // namespace
}  // namespace cresset::jit
