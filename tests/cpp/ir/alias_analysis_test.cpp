// Values that a pass makes behind an analysis, and functions that leave their units.
#include <cresset/ir/alias_analysis.h>

#include <gtest/gtest.h>

#include <cresset/dispatch/custom_class.h>
#include <cresset/dispatch/register_operators.h>
#include <cresset/ir/error_report.h>
#include <cresset/ir/interpreter.h>
#include <cresset/ir/ir_parser.h>
#include <cresset/ir/module.h>
#include <cresset/ir/operator.h>
#include <cresset/ir/pass_functions.h>
#include <cresset/ir/subgraph_utils.h>
#include <cresset/ops/functions.h>

#include "error_of.h"

namespace cresset::jit {
namespace {

TEST(AliasDb, LearnsOfNewValues) {
  const auto graph = parse_ir(R"(graph(%x : Tensor, %y : Tensor):
  %one : int = prim::Constant[value=1]()
  %a : Tensor = aten::mul(%x, %y)
  %b : Tensor = aten::add_(%a, %x, %one)
  return (%b))");
  AliasDb db(graph);
  Value* a = graph->outputs()[0]->node()->input(0);
  EXPECT_TRUE(db.hasWriters(a));
  std::vector<Value*> made;
  for (int i = 0; i < 3; ++i) {
    made.push_back(graph->create(aten::relu, {a})->output());
    db.createValue(made.back());
    EXPECT_FALSE(db.hasWriters(made.back()));
    EXPECT_FALSE(db.mayAlias(made.back(), a));
    EXPECT_TRUE(db.mayAlias(made.back(), made.back()));
    EXPECT_FALSE(db.mayContainAlias(made.back(), a));
  }
  EXPECT_FALSE(db.mayAlias(made[0], made[1]));
  EXPECT_TRUE(db.mayAlias(a, graph->outputs()[0]));  // what was known stays
  db.copyValue(a, made[2]);
  EXPECT_TRUE(db.mayAlias(made[2], a));
  for (Value* v : made) v->node()->destroy();
}

TEST(BroadcastSizes, AreANode) {
  const auto graph = parse_ir(R"(graph(%x : Tensor, %y : Tensor):
  %a : int[] = aten::size(%x)
  %b : int[] = aten::size(%y)
  %c : Tensor = aten::relu(%y)
  return (%c))");
  AliasDb db(graph);
  EXPECT_TRUE(usedOnlyInSize(graph->inputs()[0]));
  EXPECT_FALSE(usedOnlyInSize(graph->inputs()[1]));
  std::vector<Value*> sizes;
  for (Node* n : graph->nodes())
    if (n->kind() == aten::size) sizes.push_back(n->output());
  Value* shape = broadcastSizes(sizes, &db);
  EXPECT_EQ(shape->type()->str(), "int[]");
  graph->eraseOutput(0);
  graph->registerOutput(shape);
  EXPECT_EQ(run_graph(graph, {zeros({2, 1}), zeros({3, 1, 5})})[0].toIntVector(), (std::vector<int64_t>{3, 2, 5}));
  EXPECT_NE(error_of([&] { run_graph(graph, {zeros({2}), zeros({3})}); }).find("must match the size"), std::string::npos);
}

TEST(CompilationUnit, ForgetsMethods) {
  Module m("__torch__.Forgets");
  m.define("def foo(self):\n  return 3\n");
  const auto unit = m._ivalue()->compilation_unit();
  const QualifiedName name("__torch__.Forgets.foo");
  m.type()->unsafeRemoveMethod("foo");
  EXPECT_FALSE(m.find_method("foo"));
  EXPECT_TRUE(unit->find_function(name.qualifiedName()));
  unit->unsafeRemoveMethod(name);
  EXPECT_FALSE(unit->find_function(name.qualifiedName()));
  EXPECT_EQ(error_of([&] { unit->unsafeRemoveMethod(name); }), "method '__torch__.Forgets.foo' does not exist.");
  EXPECT_NE(error_of([&] { m.type()->unsafeRemoveMethod("foo"); }).find("Can't delete undefined method foo on class"), std::string::npos);
  m.define("def foo(self):\n  return 4\n");
  EXPECT_EQ(m.run_method("foo").toInt(), 4);
}

TEST(Module, ClonesWithOrWithoutItsTensors) {
  Module child("__torch__.Child");
  child.register_buffer("b", zeros({2}));
  Module m("__torch__.Parent");
  m.register_parameter("w", ones({2}));
  m.register_module("c", child);
  m.define("def forward(self):\n  return self.w + self.c.b\n");
  const auto tensors_of = [](const Module& of) { return std::pair(of.attr("w").toTensor(), of.attr("c").toModule().attr("b").toTensor()); };
  const auto [w, b] = tensors_of(m);
  for (const bool inplace : {false, true}) {
    const Module copy = m.clone(inplace);
    const auto [copied_w, copied_b] = tensors_of(copy);
    EXPECT_EQ(copied_w.is_same(w), inplace);
    EXPECT_EQ(copied_b.is_same(b), inplace);
    EXPECT_NE(copy.type(), m.type());
    EXPECT_EQ(copy.forward({}).toTensor().sum().item().toDouble(), 2.0);
  }
}

struct Counter : CustomClassHolder {
  explicit Counter(int64_t start) : value(start) {}
  int64_t next() { return value++; }
  int64_t value;
};
const auto counter_class =
    class_<Counter>("_alias_test", "Counter", "Counts.").def(init<int64_t>()).def("next", &Counter::next, "The next one.");

TEST(CustomClass, HasAClassType) {
  const std::string name = "__torch__.torch.classes._alias_test.Counter";
  const ClassTypePtr cls = getCustomClass(name);
  ASSERT_TRUE(cls);
  EXPECT_EQ(cls->str(), name);
  EXPECT_EQ(cls->doc_string(), "Counts.");
  EXPECT_EQ(cls->getMethod("next").doc_string(), "The next one.");
  EXPECT_EQ(cls->getMethod("next").qualname().qualifiedName(), name + ".next");
  EXPECT_EQ(cls->getMethod("next")({IValue(make_intrusive<Counter>(5))}).toInt(), 5);
  EXPECT_EQ(getCustomClass(name), cls);
  EXPECT_FALSE(getCustomClass("__torch__.torch.classes._alias_test.Nothing"));
}

TEST(CustomClass, IsNamedInScripts) {
  Module m("m");
  m.define(R"(
def forward(self, c: __torch__.torch.classes._alias_test.Counter) -> int:
  made = torch.classes._alias_test.Counter(40)
  return c.next() + made.next()
)");
  EXPECT_EQ(m.forward({IValue(make_intrusive<Counter>(2))}).toInt(), 42);
}

TEST(AliasDb, KnowsTheKindOfInferredSchemas) {
  const auto options = [](const char* name, AliasAnalysisKind kind) {
    return cresset::RegisterOperators::options()
        .schema(name)
        .catchAllKernel([](Tensor) -> Tensor { return ones({2}); })
        .aliasAnalysis(kind);
  };
  const auto registry = cresset::RegisterOperators()
                            .op(options("_alias_test::pure", AliasAnalysisKind::PURE_FUNCTION))
                            .op(options("_alias_test::unknown", AliasAnalysisKind::CONSERVATIVE));
  for (const auto& [name, shared] : {std::pair("_alias_test::pure", false), std::pair("_alias_test::unknown", true)}) {
    const auto graph = std::make_shared<Graph>();
    Value* a = graph->addInput();
    Value* b = graph->insert(Symbol::fromQualString(name), {a});
    EXPECT_EQ(AliasDb(graph).mayAlias(a, b), shared) << name;
  }
}

TEST(ErrorReport, ShowsThePlace) {
  const auto source = std::make_shared<Source>("def foo(x):\n  y = x + 1\n  return y\n", "file.py", 7);
  const SourceRange range(source, 18, 23);
  const std::string place = "  File \"file.py\", line 8\ndef foo(x):\n  y = x + 1\n      ~~~~~ <--- HERE\n  return y\n";
  EXPECT_EQ(error_of([&] { throw ErrorReport(range) << "bad thing " << 3; }), "\nbad thing 3:\n" + place);
  const ErrorReport::CallStack outer("fn", range), inner("g", range);
  EXPECT_EQ(error_of([&] { throw ErrorReport(range) << "in"; }),
            "\nin:\n" + place + "'g' is being compiled since it was called from 'fn'\n" + place);
}

TEST(InlineCallTo, PutsAFunctionInACallsPlace) {
  CompilationUnit unit("def f(x, y):\n  return (x + y, x)\n");
  GraphFunction& f = toGraphFunction(unit.get_function("f"));
  const auto graph = parse_ir(R"(graph(%x : Tensor, %y : Tensor):
  %r : (Tensor, Tensor) = some::call(%x, %y)
  return (%r))");
  Node* call = graph->outputs()[0]->node();
  const std::vector<Value*> results = inlineCallTo(call, &f);
  ASSERT_EQ(results.size(), 1u);
  EXPECT_EQ(graph->outputs()[0], results[0]);
  EXPECT_EQ(results[0]->node()->kind(), prim::TupleConstruct);
  EXPECT_EQ(run_graph(graph, {ones({2}), ones({2})})[0].toTupleElements()[0].toTensor().sum().item().toDouble(), 4.0);
}

TEST(Operation, MayBeNone) {
  Operation none = nullptr;
  EXPECT_FALSE(none);
  none = [](Stack& stack) { stack.emplace_back(1); };
  EXPECT_TRUE(none);
}

}  // namespace
}  // namespace cresset::jit
