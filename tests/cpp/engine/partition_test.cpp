// Partitioning: the reference facts of the lowering requirement (nodes in each segment), reasons, values that are no tensors, control flow.
#include <cresset/engine/partition.h>
#include <gtest/gtest.h>

#include <map>

#include <cresset/ir/ir_parser.h>

#include "error_of.h"

namespace cresset::engine {
namespace {

// What a graph's nodes are called here: their first output's name.
using Names = std::vector<std::string>;
struct Found {
  std::vector<std::pair<std::string, Names>> segments;  // "engine" or "eager"
  std::map<std::string, std::string> reasons;
};

Found found(const Partition& p) {
  Found out;
  for (const Segment& s : p.segments) {
    Names names;
    for (const jit::Node* n : s.nodes)
      names.push_back(n->outputs().size() ? n->output(0)->debugName() : std::string(n->kind().toQualString()));
    out.segments.emplace_back(s.target == Target::engine ? "engine" : "eager", names);
  }
  for (const Decision& d : p.decisions)
    if (d.node->outputs().size()) out.reasons[d.node->output(0)->debugName()] = to_string(d.reason);
  return out;
}

// All of aten but log_sigmoid, sort and what is named.
PartitionOptions options(int64_t min_block_size, Names forced = {}) {
  return {min_block_size, std::move(forced),
          [](const jit::Node* n) { return n->kind().is_aten() && n->kind() != jit::Symbol::fromQualString("aten::log_sigmoid"); }};
}
Found split(const char* text, const PartitionOptions& o) {
  const auto graph = jit::parse_ir(text);
  return found(partition(graph, o));
}

using Expected = std::vector<std::pair<std::string, Names>>;

constexpr const char* kChain = R"(graph(%x : Tensor, %w : Tensor):
  %a : Tensor = aten::mm(%x, %w)
  %b : Tensor = aten::relu(%a)
  %c : Tensor = aten::mm(%b, %w)
  return (%c))";
constexpr const char* kUnsupported = R"(graph(%x : Tensor, %w : Tensor):
  %a : Tensor = aten::mm(%x, %w)
  %b : Tensor = aten::relu(%a)
  %c : Tensor = aten::log_sigmoid(%b)
  %d : Tensor = aten::mm(%c, %w)
  return (%d))";

TEST(Partition, AChainIsOneEngine) { EXPECT_EQ(split(kChain, options(3)).segments, (Expected{{"engine", {"a", "b", "c"}}})); }

TEST(Partition, UnsupportedOperatorsSplit) {
  EXPECT_EQ(split(kUnsupported, options(1)).segments, (Expected{{"engine", {"a", "b"}}, {"eager", {"c"}}, {"engine", {"d"}}}));
  const Found small = split(kUnsupported, options(3));
  EXPECT_EQ(small.segments, (Expected{{"eager", {"a", "b", "c", "d"}}}));
  EXPECT_EQ(small.reasons.at("a"), "too small block");
  EXPECT_EQ(small.reasons.at("c"), "unsupported");
}

TEST(Partition, ForcedOperatorsSplit) {
  const Found f = split(kChain, options(1, {"aten::relu"}));
  EXPECT_EQ(f.segments, (Expected{{"engine", {"a"}}, {"eager", {"b"}}, {"engine", {"c"}}}));
  EXPECT_EQ(f.reasons.at("b"), "forced by operator");
}

TEST(Partition, MarkedNodesSplit) {
  const auto graph = jit::parse_ir(kChain);
  for (jit::Node* n : graph->nodes())
    if (n->output()->debugName() == "b") n->i_(jit::attr::to_compile, 0);
  const Found f = found(partition(graph, options(1)));
  EXPECT_EQ(f.segments, (Expected{{"engine", {"a"}}, {"eager", {"b"}}, {"engine", {"c"}}}));
  EXPECT_EQ(f.reasons.at("b"), "forced by module");
}

TEST(Partition, InterleavedChainsAreGathered) {
  const Found f = split(R"(graph(%x : Tensor, %y : Tensor):
  %n0 : Tensor = aten::relu(%x)
  %n1 : Tensor = aten::log_sigmoid(%y)
  %n2 : Tensor = aten::relu(%n0)
  %n3 : Tensor = aten::log_sigmoid(%n1)
  %n4 : Tensor = aten::relu(%n2)
  %n5 : Tensor = aten::log_sigmoid(%n3)
  %n6 : Tensor = aten::mm(%n4, %n5)
  %n7 : Tensor = aten::relu(%n6)
  return (%n7))",
                        options(1));
  EXPECT_EQ(f.segments, (Expected{{"engine", {"n0", "n2", "n4"}}, {"eager", {"n1", "n3", "n5"}}, {"engine", {"n6", "n7"}}}));
}

TEST(Partition, BranchesComeTogether) {
  const Found f = split(R"(graph(%x : Tensor, %w : Tensor):
  %one : int = prim::Constant[value=1]()
  %a : Tensor = aten::mm(%x, %w)
  %b : Tensor = aten::relu(%a)
  %c : Tensor = aten::log_sigmoid(%a)
  %d : Tensor = aten::add(%b, %c, %one)
  return (%d))",
                        options(1));
  EXPECT_EQ(f.segments, (Expected{{"engine", {"a", "b"}}, {"eager", {"c"}}, {"engine", {"d"}}}));
}

TEST(Partition, SizesBelongToNobody) {
  const auto graph = jit::parse_ir(R"(graph(%x : Tensor, %y : Tensor):
  %zero : int = prim::Constant[value=0]()
  %minus : int = prim::Constant[value=-1]()
  %a : Tensor = aten::relu(%x)
  %n : int = aten::size(%a, %zero)
  %sizes : int[] = prim::ListConstruct(%n, %minus)
  %b : Tensor = aten::log_sigmoid(%y)
  %c : Tensor = aten::reshape(%b, %sizes)
  return (%c))");
  const Partition p = partition(graph, options(1));
  const Found f = found(p);
  EXPECT_EQ(f.reasons.at("n"), "helper");
  EXPECT_EQ(f.segments, (Expected{{"engine", {"a"}}, {"eager", {"b"}}, {"engine", {"c"}}}));
  // The last one computes the size from the tensor.
  Names inputs;
  for (const jit::Value* v : p.inputs(p.segments[2])) inputs.push_back(v->debugName());
  EXPECT_EQ(inputs, (Names{"b", "a"}));
  EXPECT_EQ(p.outputs(p.segments[0]).at(0)->debugName(), "a");
}

TEST(Partition, NumbersOfTheCallerTieToTheInterpreter) {
  const Found f = split(R"(graph(%x : Tensor, %n : int):
  %one : int = prim::Constant[value=1]()
  %m : int = aten::add(%n, %one)
  %a : Tensor = aten::relu(%x)
  %b : Tensor = aten::softmax(%a, %m, %one)
  %c : Tensor = aten::relu(%b)
  return (%c))",
                        options(1));
  EXPECT_EQ(f.reasons.at("b"), "non-tensor coupling");
  EXPECT_EQ(f.segments, (Expected{{"engine", {"a"}}, {"eager", {"b"}}, {"engine", {"c"}}}));
}

TEST(Partition, ListsOfTensorsStayOnOneSide) {
  const Found f = split(R"(graph(%x : Tensor):
  %two : int = prim::Constant[value=2]()
  %zero : int = prim::Constant[value=0]()
  %parts : Tensor[] = aten::split(%x, %two, %zero)
  %a : Tensor, %b : Tensor = prim::ListUnpack(%parts)
  %c : Tensor = aten::relu(%a)
  return (%c))",
                        options(1));
  EXPECT_EQ(f.reasons.at("parts"), "non-tensor coupling");  // prim::ListUnpack is not the engine's here
  EXPECT_EQ(f.segments, (Expected{{"eager", {"parts", "a"}}, {"engine", {"c"}}}));
}

TEST(Partition, ArmsAndBodiesArePartitioned) {
  const auto graph = jit::parse_ir(R"(graph(%x : Tensor, %go : bool, %n : int):
  %t : bool = prim::Constant[value=1]()
  %a : Tensor = aten::relu(%x)
  %b : Tensor = prim::If(%go)
    block0():
      %c : Tensor = aten::log_sigmoid(%a)
      %d : Tensor = aten::relu(%c)
      -> (%d)
    block1():
      -> (%a)
  %e : Tensor = prim::Loop(%n, %t, %b)
    block0(%i : int, %f : Tensor):
      %g : Tensor = aten::relu(%f)
      -> (%t, %g)
  return (%e))");
  const Partition p = partition(graph, options(1));
  ASSERT_EQ(p.segments.size(), 3u);
  EXPECT_EQ(p.engines(), 3u);
  EXPECT_EQ(found(p.segments[1].blocks.at(0)).segments, (Expected{{"eager", {"c"}}, {"engine", {"d"}}}));
  EXPECT_TRUE(p.segments[1].blocks.at(1).segments.empty());
  EXPECT_EQ(found(p.segments[2].blocks.at(0)).segments, (Expected{{"engine", {"g"}}}));
  EXPECT_NE(report(p).find("block 0:\n    segment 0: interpreter, 1 node, of %a gives %c"), std::string::npos) << report(p);
}

TEST(Partition, WritesStayInOrder) {
  const Found f = split(R"(graph(%x : Tensor):
  %one : int = prim::Constant[value=1]()
  %a : Tensor = aten::relu(%x)
  %b : Tensor = aten::add_(%a, %one, %one)
  %c : Tensor = aten::mul(%a, %a)
  return (%c))",
                        options(1));
  EXPECT_EQ(f.segments, (Expected{{"eager", {"a", "b", "c"}}}));
  EXPECT_EQ(f.reasons.at("b"), "has an effect");
}

TEST(Partition, Refuses) {
  const auto graph = jit::parse_ir(kChain);
  EXPECT_EQ(error_of([&] { partition(graph, {}); }), "partition: options.supports, which says what the engine has, was required.");
  EXPECT_EQ(error_of([&] { partition(graph, options(1, {"relu"})); }),
            "partition: torch_executed_ops: a name like aten::relu was required; got 'relu'.");
}

}  // namespace
}  // namespace cresset::engine
