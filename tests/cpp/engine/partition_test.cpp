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
  EXPECT_EQ(f.segments, (Expected{{"eager", {"n1", "n3", "n5"}}, {"engine", {"n0", "n2", "n4", "n6", "n7"}}}));
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
  const auto graph = jit::parse_ir(R"(graph(%x : Tensor):
  %zero : int = prim::Constant[value=0]()
  %minus : int = prim::Constant[value=-1]()
  %a : Tensor = aten::relu(%x)
  %n : int = aten::size(%a, %zero)
  %sizes : int[] = prim::ListConstruct(%n, %minus)
  %b : Tensor = aten::log_sigmoid(%a)
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

// The cases of Torch-TensorRT's tests of partitioning.

constexpr const char* kBranch = R"(graph(%x : Tensor, %w : Tensor):
  %one : int = prim::Constant[value=1]()
  %n0 : Tensor = aten::mm(%x, %w)
  %n1 : Tensor = aten::mm(%n0, %w)
  %n2 : Tensor = aten::log_sigmoid(%n1)
  %n3 : Tensor = aten::mm(%n1, %w)
  %n4 : Tensor = aten::relu(%n2)
  %n5 : Tensor = aten::add(%n3, %n4, %one)
  %n6 : Tensor = aten::mm(%n5, %w)
  return (%n6))";

TEST(Partition, BranchesWithSizesAndForcedOperators) {
  EXPECT_EQ(split(kBranch, options(1)).segments,
            (Expected{{"engine", {"n0", "n1"}}, {"eager", {"n2"}}, {"engine", {"n3", "n4", "n5", "n6"}}}));
  const Found small = split(kBranch, options(3));
  EXPECT_EQ(small.segments, (Expected{{"eager", {"n0", "n1", "n2"}}, {"engine", {"n3", "n4", "n5", "n6"}}}));
  EXPECT_EQ(small.reasons.at("n0"), "too small block");
  const Found forced = split(kBranch, options(1, {"aten::relu"}));
  EXPECT_EQ(forced.segments, (Expected{{"engine", {"n0", "n1"}}, {"eager", {"n2", "n4"}}, {"engine", {"n3", "n5", "n6"}}}));
}

TEST(Partition, ListsBringIndependentNodesTogether) {
  const Found f = split(R"(graph(%x : Tensor, %y : Tensor):
  %zero : int = prim::Constant[value=0]()
  %one : int = prim::Constant[value=1]()
  %n0 : Tensor = aten::add(%x, %y, %one)
  %n1 : Tensor = aten::log_sigmoid(%x)
  %n2 : Tensor = aten::mul(%x, %y)
  %n3 : Tensor = aten::log_sigmoid(%y)
  %n4 : Tensor = aten::div(%x, %y)
  %n5 : Tensor = aten::log_sigmoid(%n4)
  %list : Tensor[] = prim::ListConstruct(%n1, %n3, %n5, %n0, %n2)
  %n7 : Tensor = aten::cat(%list, %zero)
  return (%n7))",
                        options(1));
  EXPECT_EQ(f.segments, (Expected{{"engine", {"n0", "n2", "n4"}}, {"eager", {"n1", "n3", "n5"}}, {"engine", {"n7"}}}));
  EXPECT_EQ(f.reasons.at("list"), "helper");
}

TEST(Partition, ListsOfTensorsAreMadeWhereTheyAreNeeded) {
  const auto graph = jit::parse_ir(R"(graph(%x : Tensor):
  %zero : int = prim::Constant[value=0]()
  %one : int = prim::Constant[value=1]()
  %list : Tensor[] = prim::ListConstruct(%x, %x)
  %a : Tensor = aten::cat(%list, %zero)
  %b : Tensor = aten::log_sigmoid(%a)
  %c : Tensor = aten::cat(%list, %one)
  %d : Tensor = aten::relu(%c)
  %pair : (Tensor, Tensor) = prim::TupleConstruct(%b, %d)
  return (%pair))");
  const Partition p = partition(graph, options(1, {"aten::cat"}));
  EXPECT_EQ(found(p).segments, (Expected{{"eager", {"a", "b", "c"}}, {"engine", {"d"}}}));
  for (const Segment& s : partition(graph, options(1)).segments)
    for (const jit::Value* v : p.inputs(s)) EXPECT_EQ(v->type()->kind, TypeKind::Tensor) << v->debugName();
}

TEST(Partition, OnlyTensorsCrossBehindSizesOfResults) {
  const auto graph = jit::parse_ir(R"(graph(%x : Tensor, %w : Tensor):
  %zero : int = prim::Constant[value=0]()
  %eight : int = prim::Constant[value=8]()
  %two : int = prim::Constant[value=2]()
  %a : Tensor = aten::mm(%x, %w)
  %sizes : int[] = aten::size(%a)
  %n : int = aten::__getitem__(%sizes, %zero)
  %shape : int[] = prim::ListConstruct(%n, %two, %eight)
  %b : Tensor = aten::reshape(%a, %shape)
  %c : Tensor = aten::log_sigmoid(%b)
  %more : int[] = aten::size(%c)
  %length : int = aten::len(%more)
  %e : Tensor = aten::softmax(%c, %zero, %length)
  %unused : int = aten::add(%length, %two)
  return (%e))");
  const Partition p = partition(graph, options(1));
  EXPECT_EQ(found(p).segments, (Expected{{"engine", {"a", "b"}}, {"eager", {"c"}}, {"engine", {"e"}}}));
  for (const Segment& s : p.segments)
    for (const jit::Value* v : p.inputs(s)) EXPECT_EQ(v->type()->kind, TypeKind::Tensor) << v->debugName();
}

TEST(Partition, AppendsInArmsStayThere) {
  const auto graph = jit::parse_ir(R"(graph(%x : Tensor, %go : bool):
  %zero : int = prim::Constant[value=0]()
  %list : Tensor[] = prim::ListConstruct(%x)
  %a : Tensor = aten::relu(%x)
  %b : Tensor = prim::If(%go)
    block0():
      %c : Tensor = aten::relu(%a)
      %d : Tensor[] = aten::append(%list, %c)
      -> (%c)
    block1():
      -> (%a)
  %e : Tensor = aten::cat(%list, %zero)
  %f : Tensor = aten::mm(%e, %b)
  return (%f))");
  const Partition p = partition(graph, options(1));
  const Found f = found(p);
  EXPECT_EQ(f.segments, (Expected{{"eager", {"list"}}, {"engine", {"a"}}, {"eager", {"b"}}, {"eager", {"e"}}, {"engine", {"f"}}}));
  EXPECT_EQ(f.reasons.at("e"), "has an effect");
  EXPECT_EQ(found(p.segments[2].blocks.at(0)).segments, (Expected{{"engine", {"c"}}, {"eager", {"d"}}}));
}

TEST(Partition, Refuses) {
  const auto graph = jit::parse_ir(kChain);
  EXPECT_EQ(error_of([&] { partition(graph, {}); }), "partition: options.supports, which says what the engine has, was required.");
  EXPECT_EQ(error_of([&] { partition(graph, options(1, {"relu"})); }),
            "partition: torch_executed_ops: a name like aten::relu was required; got 'relu'.");
}

}  // namespace
}  // namespace cresset::engine
