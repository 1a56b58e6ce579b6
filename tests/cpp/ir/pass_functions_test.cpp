// Graphs under PyTorch's names: types, symbols, uses, operators, rules, passes. compat/torch only forwards to what is tested here.
#include <gtest/gtest.h>

#include <sstream>

#include <cresset/autograd/autograd.h>
#include <cresset/dispatch/boxing.h>
#include <cresset/ir/autodiff.h>
#include <cresset/ir/file_check.h>
#include <cresset/ir/frozen_functions.h>
#include <cresset/ir/graph_executor.h>
#include <cresset/ir/import_source.h>
#include <cresset/ir/ir_parser.h>
#include <cresset/ir/ir_views.h>
#include <cresset/ir/jit_log.h>
#include <cresset/ir/node_hashing.h>
#include <cresset/ir/pass_functions.h>
#include <cresset/ir/register_operators.h>
#include <cresset/ir/subgraph_rewriter.h>
#include <cresset/ops/functions.h>

#include "error_of.h"
#include "ir/operators/gradients.h"

namespace cresset::jit {
namespace {

std::shared_ptr<Graph> graph_of(const std::string& text) {
  auto graph = std::make_shared<Graph>();
  parseIR(text, graph.get());
  return graph;
}

TEST(Types, AreClassesWithPyTorchsFunctions) {
  const TypePtr list = ListType::create(IntType::get());
  EXPECT_EQ(list->kind(), TypeKind::ListType);
  EXPECT_EQ(list->cast<ListType>()->getElementType(), IntType::get());
  EXPECT_EQ(list_of(basic_type(TypeKind::Int))->expect<ListType>()->getElementType()->kind(), TypeKind::IntType);
  EXPECT_FALSE(list->cast<DictType>());
  EXPECT_TRUE(*list == *ListType::ofInts());
  EXPECT_TRUE(list->isSubtypeOf(OptionalType::create(list)));
  EXPECT_EQ(OptionalType::create(OptionalType::ofTensor())->str(), "Tensor?");
  EXPECT_EQ(DictType::create(StringType::get(), FloatType::get())->getValueType()->annotation_str(), "float");
  const auto tuple = TupleType::create({IntType::get(), TensorType::get()});
  EXPECT_EQ(tuple->elements().size(), 2u);
  EXPECT_EQ(tuple->containedType(1), TensorType::get());
  EXPECT_FALSE(tuple->names());
  EXPECT_EQ(TupleType::createNamed(QualifiedName("a.B"), {"x"}, {IntType::get()})->names()->at(0), "x");
  EXPECT_EQ(tuple->createWithContained({FloatType::get(), FloatType::get()})->str(), "(float, float)");
  EXPECT_STREQ(typeKindToString(tuple->kind()), "TupleType");
  std::ostringstream why;
  EXPECT_FALSE(FloatType::get()->isSubtypeOfExt(*IntType::get(), &why));
  EXPECT_EQ(why.str(), "'float' is not a subtype of 'int'.");
  EXPECT_THROW(IntType::get()->createWithContained({IntType::get()}), Error);
  const TypePtr numbers = UnionType::create({IntType::get(), FloatType::get(), ComplexType::get()});
  const TypePtr or_none = UnionType::create({IntType::get(), FloatType::get(), ComplexType::get(), NoneType::get()});
  EXPECT_TRUE(*numbers == *NumberType::get() && NumberType::get()->isSubtypeOf(*or_none));
  EXPECT_FALSE(*NumberType::get() == *or_none || NumberType::get()->isSubtypeOf(*UnionType::create({IntType::get(), FloatType::get()})));
}

TEST(Types, TensorsSayWhatIsKnown) {
  const auto t = TensorType::create(kFloat, Device(kCPU), 2, false);
  EXPECT_EQ(t->scalarType(), kFloat);
  EXPECT_EQ(t->dim(), 2u);
  EXPECT_EQ(t->sizes().size(), 2u);
  EXPECT_FALSE(t->sizes().concrete_sizes());
  EXPECT_EQ(*t->device(), Device(kCPU));
  EXPECT_FALSE(t->requires_grad());
  const auto sized = t->withSizes({2, 3});
  EXPECT_EQ(*sized->sizes().concrete_sizes(), (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(*sized->strides().concrete_sizes(), (std::vector<int64_t>{3, 1}));
  EXPECT_TRUE(sized->isComplete());
  EXPECT_FALSE(sized->dimensionedOnly()->isComplete());
  EXPECT_TRUE(*sized->dimensionedOnly() == *t);
  EXPECT_TRUE(TensorType::get()->sizes == std::nullopt && TensorType::get()->sizes == TensorType::get()->sizes);
}

TEST(Schemas, AreMadeFromArguments) {
  const FunctionSchema s("demo::f", "two", {Argument("x"), Argument("n", IntType::get(), std::nullopt, IValue(3), true)},
                         {Argument("", TensorType::get())});
  EXPECT_EQ(s.str(), "demo::f.two(Tensor x, *, int n=3) -> Tensor");
  EXPECT_EQ(s.arguments()[1].name(), "n");
  EXPECT_EQ(s.arguments()[1].type()->kind(), TypeKind::IntType);
  EXPECT_TRUE(s.arguments()[1].kwarg_only());
  EXPECT_EQ(s.arguments()[1].default_value()->toInt(), 3);
  EXPECT_FALSE(s.arguments()[0].default_value().has_value());
  EXPECT_TRUE(s.arguments()[0].default_value == std::nullopt && s.arguments()[0].N == s.arguments()[1].N);
  EXPECT_EQ(s.cloneWithName("demo::g", "").str(), "demo::g(Tensor x, *, int n=3) -> Tensor");
}

int number_of(Symbol kind) {
  switch (kind) {
    case aten::floor_divide: return 1;
    case prim::Drop: return 2;
    case attr::value: return 3;
    default: return 0;
  }
}
TEST(Symbols, AreCasesOfASwitchAndTexts) {
  EXPECT_EQ(number_of(Symbol::aten("floor_divide")), 1);
  EXPECT_EQ(number_of(Symbol::fromQualString("prim::Drop")), 2);
  EXPECT_EQ(number_of(Symbol::attr("value")), 3);
  EXPECT_EQ(number_of(aten::ScalarImplicit), 0);
  EXPECT_STREQ(aten::add.toQualString(), "aten::add");
  EXPECT_STREQ(aten::add.toUnqualString(), "add");
  EXPECT_TRUE(aten::add.toUnqualString() == "add" && aten::add.toQualString() == std::string("aten::add"));
  EXPECT_EQ(Symbol::fromDomainAndUnqualString("namespaces::aten", "add"), aten::add);
}

TEST(Graphs, AreReadWrittenAndInserted) {
  const auto graph = std::make_shared<Graph>();
  std::unordered_map<std::string, Value*> values;
  parseIR("graph(%x : Tensor, %n : int):\n  %y : Tensor = aten::mul(%x, %n)\n  return (%y)", graph.get(), values);
  EXPECT_EQ(values.at("y"), graph->outputs()[0]);
  EXPECT_EQ(graph->nodes().front(), graph->nodes().back());
  std::ostringstream out;
  out << *graph->nodes().front() << *values.at("x") << " " << aten::mul;
  EXPECT_EQ(out.str(), "%2 : Tensor = aten::mul(%x, %n)\nx : Tensor aten::mul");
  EXPECT_EQ(graph->nodes().front()->inputs().slice(1)[0], values.at("n"));

  const auto outer = graph_of("graph(%a : Tensor):\n  %t : (Tensor, int) = demo::pair(%a)\n  return (%t)");
  const std::vector<Value*> members = createTupleUnpack(outer->outputs()[0]);
  const std::vector<Value*> results = insertGraph(*outer, *graph, members);
  outer->registerOutput(results.at(0));
  Value* doubled = outer->insert(aten::add, {results.at(0), results.at(0), NamedValue("alpha", 2)});
  outer->registerOutput(doubled);
  outer->lint();
  EXPECT_EQ(doubled->node()->get<int64_t>(attr::alpha), 2);
  EXPECT_TRUE(doubled->node()->is_constant(attr::alpha));
  EXPECT_EQ(constant_as<Tensor>(outer->insertConstant(ones({2}), std::nullopt, doubled->node()->scope()))->sum().item().toLong(), 2);
}

TEST(Graphs, HaveListsBehindSpacesAndSizesInFront) {
  const auto g = graph_of("graph(%a : Tensor [], %b : int [] []):\n  return (%a, %b)");
  EXPECT_EQ(g->inputs()[0]->type()->str(), "Tensor[]");
  EXPECT_EQ(g->inputs()[1]->type()->str(), "int[][]");
  EXPECT_NE(error_of([] { graph_of("graph(%a : Float(4, strides=[5], 5)):\n  return (%a)"); }).find("sizes stand in front of strides"),
            std::string::npos);
}

TEST(Graphs, UsesAreAsTheyWereWhenAsked) {
  const auto g =
      graph_of("graph(%x : Tensor, %z : Tensor):\n  %a : Tensor = aten::relu(%x)\n  %b : Tensor = aten::neg(%x)\n  return (%a, %b)");
  const auto uses = g->inputs()[0]->uses();
  g->inputs()[0]->replaceAllUsesWith(g->inputs()[1]);
  ASSERT_EQ(uses.size(), 2u);
  for (const Use& u : uses) EXPECT_EQ(u.user->input(u.offset), g->inputs()[1]);
  EXPECT_FALSE(g->inputs()[0]->hasUses());
}

TEST(Nodes, KeepTheirOperatorWhenNoneFitsNewInputs) {
  const auto g = graph_of(
      "graph(%x : Tensor, %n : int):\n  %one : int = prim::Constant[value=1]()\n  %y : Tensor = aten::add(%x, %x, %one)\n  return (%y)");
  Node* add = g->outputs()[0]->node();
  EXPECT_EQ(add->schema().overload_name(), "Tensor");
  g->inputs()[0]->replaceAllUsesWith(g->inputs()[1]);
  EXPECT_EQ(add->schema().name(), "aten::add");
  // One that fits is found.
  add->removeInput(2);
  EXPECT_EQ(add->schema().overload_name(), "int");
  EXPECT_TRUE(add->isMemberOf(OperatorSet{"aten::add.int(int a, int b) -> int"}));
  add->changeKind(Symbol::aten("no_such_operator"));
  EXPECT_EQ(add->maybeSchema(), nullptr);
}

TEST(Operators, OfProgramsRunInGraphs) {
  const RegisterOperators registry({Operator(
      "pass_functions_test::twice(Tensor x) -> Tensor",
      [](Stack& stack) {
        Tensor x = pop(stack).toTensor();
        push(stack, x + x);
        return x;
      },
      AliasAnalysisKind::FROM_SCHEMA)});
  EXPECT_EQ(getAllOperatorsFor(Symbol::fromQualString("pass_functions_test::twice")).size(), 1u);
  const auto g = graph_of("graph(%x : Tensor):\n  %y : Tensor = pass_functions_test::twice(%x)\n  return (%y)");
  GraphExecutor executor(g, "f");
  Stack stack{IValue(ones({3}))};
  executor.run(stack);
  EXPECT_EQ(stack.at(0).toTensor().sum().item().toDouble(), 6.0);
  EXPECT_THROW(getOperatorForLiteral("pass_functions_test::thrice(Tensor x) -> Tensor"), Error);
}

TEST(Operators, MakeWhatRunsANode) {
  static int made = 0;
  made = 0;
  const OperationCreator scaled = [](const Node* n) -> Operation {
    ++made;
    const double factor = n ? n->f(Symbol::attr("factor")) : 1.0;
    return [factor, calls = 0](Stack* stack) mutable { pack(stack, pop(*stack).toTensor() * (factor + calls++)); };
  };
  auto registry = std::make_unique<RegisterOperators>(
      std::vector<Operator>{Operator(Symbol::fromQualString("pass_functions_test::any"), scaled, AliasAnalysisKind::PURE_FUNCTION),
                            Operator("pass_functions_test::scaled(Tensor x) -> Tensor", scaled, AliasAnalysisKind::PURE_FUNCTION)});
  const auto g = graph_of(R"(graph(%x : Tensor):
  %a : Tensor = pass_functions_test::any[factor=2.](%x)
  %b : Tensor = pass_functions_test::any[factor=10.](%a)
  %c : Tensor = pass_functions_test::scaled[factor=3.](%b)
  return (%c))");
  EXPECT_TRUE(g->outputs()[0]->node()->getOperator().creates_operations());
  EXPECT_FALSE(AliasDb(g).isMutable(g->inputs()[0]->uses()[0].user));
  {
    GraphExecutor executor(g, "f");
    for (const double expected : {60.0, 3.0 * 11.0 * 4.0}) {  // each node counts its own calls
      Stack stack{IValue(ones({1}))};
      executor.run(stack);
      EXPECT_EQ(stack.at(0).toTensor().item().toDouble(), expected);
    }
  }
  EXPECT_EQ(made, 3);
  // The operator with a schema is also the dispatcher's; one that takes anything is not.
  Stack stack{IValue(ones({1}))};
  findOperatorFor({"pass_functions_test::scaled", ""})->call(stack);
  EXPECT_EQ(stack.at(0).toTensor().item().toDouble(), 1.0);
  EXPECT_FALSE(Dispatcher::singleton().findSchema({"pass_functions_test::any", ""}));
  EXPECT_EQ(getAllOperatorsFor(Symbol::fromQualString("pass_functions_test::scaled")).size(), 1u);
  registry.reset();
  EXPECT_TRUE(getAllOperatorsFor(Symbol::fromQualString("pass_functions_test::any")).empty());
  EXPECT_TRUE(getAllOperatorsFor(Symbol::fromQualString("pass_functions_test::scaled")).empty());
}

TEST(Operators, OfANodeWithAGraphRunInItsPlace) {
  const RegisterOperators registry(std::vector<Operator>{Operator(
      Symbol::fromQualString("pass_functions_test::Group"),
      [](const Node* n) -> Operation {
        auto executor = std::make_shared<GraphExecutor>(n->g(attr::Subgraph), "group");
        return [executor](Stack& stack) {
          executor->run(stack);
          stack.back() = stack.back().toTensor() + 1;
        };
      },
      AliasAnalysisKind::PURE_FUNCTION)});
  auto g = std::make_shared<Graph>();
  Value* x = g->addInput("x");
  Node* group = g->insertNode(g->createWithSubgraph(Symbol::fromQualString("pass_functions_test::Group")));
  group->addInput(x);
  Graph& body = *group->g(attr::Subgraph);
  body.registerOutput(body.insert(aten::neg, {body.addInput()}));
  g->registerOutput(group->addOutput());
  EXPECT_EQ(run_graph(g, {ones({1})})[0].toTensor().item().toDouble(), 0.0);
}

TEST(Uses, OfAListOfOnesOwnAreWritten) {
  const auto g = graph_of("graph(%x : Tensor):\n  %y : Tensor = aten::neg(%x)\n  return (%y)");
  auto uses = g->inputs()[0]->uses();
  std::for_each(uses.begin(), uses.end(), [](Use& use) { use.offset = 7; });
  EXPECT_EQ(uses[0].offset, 7u);
  EXPECT_EQ(std::string("a_") + uses[0].user->kind().toUnqualString(), "a_neg");
  EXPECT_EQ(g->inputs()[0]->uses()[0].offset, 0u);
  EXPECT_EQ(std::count_if(g->inputs()[0]->uses().begin(), g->inputs()[0]->uses().end(), [](const Use&) { return true; }), 1);
}

TEST(Types, OfTensorsAreCopied) {
  const auto type = TensorType::create(ones({2, 3}));
  auto copy = *type;
  copy.dtype = ScalarType::Half;
  EXPECT_EQ(copy.concrete_sizes(), (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(type->dtype, ScalarType::Float);
}

TEST(Stacks, TakeAValueOrTheMembersOfATuple) {
  Stack stack;
  pack(stack, ones({2}));
  pack(&stack, std::make_tuple(int64_t{3}, std::string("a")));
  ASSERT_EQ(stack.size(), 3u);
  EXPECT_EQ(stack[1].toInt(), 3);
  EXPECT_EQ(stack[2].tagKind(), "String");
  EXPECT_EQ(IValue(std::vector<int64_t>{1}).tagKind(), "GenericList");
}

TEST(Passes, AreRegisteredByAClassOfTheirOwn) {
  struct First : PassManager<First> {};
  struct Second : PassManager<Second> {};
  static int runs = 0;
  runs = 0;
  EXPECT_FALSE(First::registerPass([](std::shared_ptr<Graph>&) { ++runs; }));
  EXPECT_TRUE(First::registerPass([](std::shared_ptr<Graph>&) { runs += 100; }));
  EXPECT_FALSE(Second::registerPass([](std::shared_ptr<Graph>&) { runs += 10; }));
  const auto unit = compile("def f(x: Tensor):\n  return -x\n");
  const auto run = [&] { unit->run_method("f", ones({1})); };
  run();
  EXPECT_EQ(runs, 11);
  First::clearPass();
  First::clearPass();
  run();
  EXPECT_EQ(runs, 21);
  Second::clearPass();
  run();
  EXPECT_EQ(runs, 21);
}

TEST(Weights, TakeTheNormBehindALinearLayer) {
  // scale = 3 / sqrt(3 + 1) = 1.5: w = 2 * 1.5, b = (5 - 1) * 1.5 + 7
  const auto [w, b] = computeUpdatedLinearWeightAndBias({.linear_w = full({1, 2}, 2.0),
                                                         .linear_b = full({1}, 5.0),
                                                         .bn_rm = full({1}, 1.0),
                                                         .bn_rv = full({1}, 3.0),
                                                         .bn_eps = 1.0,
                                                         .bn_w = full({1}, 3.0),
                                                         .bn_b = full({1}, 7.0)});
  EXPECT_EQ(w.sizes(), (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(w.sum().item().toDouble(), 6.0);
  EXPECT_EQ(b.item().toDouble(), 13.0);
}

TEST(Rules, AreTrustedOrAsked) {
  const std::string text = "graph(%x : Tensor, %v : float):\n  %y : Tensor = aten::add_(%x, %v, %v)\n  return (%y)";
  const std::string pattern = "graph(%x, %v, %a):\n  %y = aten::add_(%x, %v, %a)\n  return (%y)";
  const std::string fresh = "graph(%x, %v, %a):\n  %y = aten::add(%x, %v, %a)\n  return (%y)";
  SubgraphRewriter asks;
  asks.RegisterRewritePattern(pattern, fresh);
  const auto kept = graph_of(text), changed = graph_of(text);
  EXPECT_EQ(asks.runOnGraph(kept), 0u);  // the caller sees the write
  TrustingSubgraphRewriter trusts;
  trusts.RegisterRewritePattern(pattern, fresh);
  EXPECT_EQ(trusts.runOnGraph(changed), 1u);
  EXPECT_EQ(changed->outputs()[0]->node()->kind(), aten::add);
}

TEST(Rules, MarkedNodesMatchUnlessTheyAreLeftOut) {
  const auto g = graph_of("graph(%x : Tensor):\n  %y : Tensor = aten::relu[to_compile=0](%x)\n  return (%y)");
  const auto pattern = graph_of("graph(%x):\n  %y = aten::relu(%x)\n  return (%y)");
  g->outputs()[0]->node()->removeAttribute(attr::to_compile);
  EXPECT_EQ(findPatternMatches(*pattern, *g).size(), 1u);
  g->outputs()[0]->node()->i_(attr::to_compile, 0);
  pattern->outputs()[0]->node()->i_(attr::to_compile, 0);
  EXPECT_EQ(findPatternMatches(*pattern, *g).size(), 1u);
  EXPECT_EQ(findPatternMatches(*pattern, *g, /*skip_marked=*/true).size(), 0u);
}

TEST(Units, FunctionsBecomeMethods) {
  Module module("M");
  const auto unit = module.type()->compilation_unit();
  const auto body = graph_of("graph(%self : __torch__.M, %x : Tensor):\n  %y : Tensor = aten::neg(%x)\n  return (%y)");
  body->inputs()[0]->setType(module.type());
  const auto method = unit->create_function("forward", body);
  module.type()->addMethod(method);
  method->setSchema(FunctionSchema("forward", "", {Argument("self", module.type()), Argument("x")}, {Argument("", TensorType::get())}));
  EXPECT_EQ(module.forward({IValue(ones({2}))}).toTensor().sum().item().toDouble(), -2.0);
  EXPECT_EQ(toGraphFunction(module.get_method("forward").function()).graph(), body);
  EXPECT_EQ(module.type()->name()->qualifiedName(), "__torch__.M");
  EXPECT_EQ(module._ivalue()->compilation_unit(), unit);
  EXPECT_EQ(module._ivalue()->type(), module.type());
  Module outer("N");
  outer.register_module("inner", module);
  for (const auto& child : outer.named_children()) EXPECT_EQ(child.name + child.value.type()->name()->name(), "innerM");
  EXPECT_TRUE(IValue(outer._ivalue()).isModule());
  const CompilationUnit functions("def twice(x: Tensor):\n  return x + x\n");
  EXPECT_EQ(functions.get_function("twice")({IValue(ones({2}))}).toTensor().sum().item().toDouble(), 4.0);
}

TEST(Passes, PoolingMovesConstantsInFrontOfTheirUses) {
  const auto g = graph_of(
      "graph(%c : bool, %x : Tensor):\n  %y : Tensor = prim::If(%c)\n    block0():\n      -> (%x)\n    block1():\n      -> (%x)\n  return "
      "(%y)");
  Node* branch = g->outputs()[0]->node();
  branch->replaceInput(0, g->insertConstant(true));  // at the end of the graph
  EXPECT_THROW(g->lint(), Error);
  auto graph = g;
  ConstantPropagation(graph);
  ConstantPooling(graph);
  graph->lint();
  EXPECT_EQ(graph->outputs()[0], graph->inputs()[1]);
}

TEST(Passes, FunctionalGraphsComeAndGo) {
  const auto g = graph_of(
      "graph(%x : Tensor, %w : Tensor):\n  %one : int = prim::Constant[value=1]()\n  %a : Tensor = aten::relu(%x)\n"
      "  %b : Tensor = aten::add(%a, %a, %one)\n  %c : Tensor = aten::exp(%b)\n  %d : Tensor = aten::sin(%c)\n"
      "  %e : Tensor = aten::cos(%d)\n  %f : Tensor = aten::mul(%e, %b)\n  %n : Tensor = aten::neg(%f)\n  return (%n)");
  const std::string before = g->toString();
  CreateFunctionalGraphs(g);
  g->lint();
  // What the caller sees is made outside.
  EXPECT_EQ(g->outputs()[0]->node()->kind(), aten::neg);
  EXPECT_EQ(g->outputs()[0]->node()->input()->node()->kind(), prim::FunctionalGraph);
  InlineFunctionalGraphs(g);
  pool_constants(g);  // graphs have constants of their own
  eliminate_dead_code(g);
  g->lint();
  std::string why;
  EXPECT_TRUE(graph_equal(*g, *graph_of(before), &why)) << why;
}

TEST(Passes, NumbersBecomeTensors) {
  const auto g = graph_of(
      "graph(%x : Tensor, %n : int):\n  %two : int = prim::Constant[value=2]()\n  %t : Tensor = prim::NumToTensor(%n)\n"
      "  %i : int = aten::Int(%t)\n  %y : Tensor = aten::mul(%x, %i)\n  %z : Tensor = aten::mul(%y, %two)\n  return (%z)");
  EraseNumberTypes(g);
  g->lint();
  EXPECT_EQ(g->outputs()[0]->node()->input(1)->type()->kind(), TypeKind::TensorType);
  EXPECT_EQ(g->outputs()[0]->node()->input(0)->node()->input(1), g->inputs()[1]);
  EXPECT_EQ(g->inputs()[1]->type()->kind(), TypeKind::TensorType);
}

TEST(Passes, OfProgramsRunOnEveryGraph) {
  const auto unit = compile("def f(x: Tensor):\n  return x.relu()\n");
  EXPECT_EQ(unit->run_method("f", -ones({2})).toTensor().sum().item().toDouble(), 0.0);
  const auto name = registerPostPass([](std::shared_ptr<Graph>& graph) {
    for (Node* n : graph->nodes())
      if (n->kind() == aten::relu) n->changeKind(aten::neg);
  });
  EXPECT_EQ(unit->run_method("f", -ones({2})).toTensor().sum().item().toDouble(), 2.0);
  clearPostPass(name);
  EXPECT_EQ(unit->run_method("f", -ones({2})).toTensor().sum().item().toDouble(), 0.0);
}

// Graph::insertConstant puts a constant at the end of the block, behind uses that are given to it.
std::shared_ptr<Graph> constant_behind_its_use() {
  const auto g =
      graph_of("graph(%x : Tensor):\n  %c : int = prim::Constant[value=3]()\n  %y : Tensor = aten::add(%x, %x, %c)\n  return (%y)");
  Node* first = *g->nodes().begin();
  first->output()->replaceAllUsesWith(g->insertConstant(int64_t{2}));
  first->destroy();
  return g;
}

TEST(Constants, BehindTheirUsesStandInFrontOfThemInACopy) {
  const auto g = constant_behind_its_use();
  const auto copy = g->copy();
  EXPECT_EQ((*copy->nodes().begin())->kind(), prim::Constant);
  EXPECT_EQ(copy->toString(false).find("aten::add") > copy->toString(false).find("prim::Constant"), true);
  Stack stack{ones({2})};
  GraphExecutor(g, "f").run(stack);
  EXPECT_EQ(stack[0].toTensor().sum().item().toDouble(), 6.0);
}

TEST(Constants, BehindTheirUsesDieWithThem) {
  const auto g = constant_behind_its_use();
  g->return_node()->replaceInput(0, g->inputs()[0]);
  EliminateDeadCode(g);
  EXPECT_TRUE(g->nodes().begin() == g->nodes().end());
}

TEST(Patterns, AskNothingOfConstantsThatNothingUses) {
  const auto g = graph_of("graph(%x : Tensor):\n  %y : Tensor = aten::relu(%x)\n  return (%y)");
  const auto pattern = graph_of("graph(%x):\n  %0 : int = prim::Constant[value=0]()\n  %y = aten::relu(%x)\n  return (%y)");
  EXPECT_EQ(findPatternMatches(*pattern, *g).size(), 1u);
}

TEST(Patterns, MayOverlapAndAreReachedFromTheirLastNode) {
  const auto g = graph_of(
      "graph(%x : Tensor):\n  %a : Tensor = aten::relu(%x)\n  %b : Tensor = aten::relu(%a)\n  %c : Tensor = aten::relu(%b)\n  return (%c)");
  const auto two = graph_of("graph(%x):\n  %y = aten::relu(%x)\n  %z = aten::relu(%y)\n  return (%z)");
  EXPECT_EQ(findPatternMatches(*two, *g).size(), 2u);
  SubgraphRewriter rewriter;
  rewriter.RegisterRewritePattern("graph(%x):\n  %y = aten::relu(%x)\n  %z = aten::relu(%y)\n  return (%z)",
                                  "graph(%x):\n  %z = aten::relu(%x)\n  return (%z)");
  EXPECT_EQ(rewriter.runOnGraph(g), 2u);
  const auto apart = graph_of("graph(%x):\n  %y = aten::relu(%x)\n  %z = aten::abs(%x)\n  return (%y, %z)");
  EXPECT_NE(error_of([&] { findPatternMatches(*apart, *g); }).find("every node must be one that the last node's results are computed from"),
            std::string::npos);
}

TEST(Graphs, InsertMakesListsOfElements) {
  Graph g;
  Value* two = g.insertConstant(IValue(2));
  Value* x = g.insert(aten::rand, {two, two});
  EXPECT_EQ(x->node()->input(0)->node()->kind(), prim::ListConstruct);
  EXPECT_EQ(x->node()->input(0)->node()->inputs().size(), 2u);
  // A list of a known length takes one number for all of its elements.
  Value* y = g.insert(aten::avg_pool2d, {x, two});
  EXPECT_EQ(y->node()->input(1)->node()->inputs().size(), 2u);
  EXPECT_EQ(*y->node()->input(1)->type(), *ListType::ofInts());
  EXPECT_NE(error_of([&] { g.insert(aten::rand, {two, x}); }).find("Arguments for call are not valid"), std::string::npos);
  g.lint();
}

TEST(Aliases, OfGradientsThatAreNothingAreNew) {
  const auto g = graph_of(
      "graph():\n  %a : Tensor = prim::AutogradZero()\n  %b : Tensor = prim::AutogradZero(%a)\n  %c : Tensor = prim::AutogradZero()\n"
      "  %d : Tensor = prim::AutogradZero(%a, %b)\n  return (%d)");
  std::vector<Node*> n;
  for (Node* each : g->nodes()) n.push_back(each);
  AliasDb db(g);
  EXPECT_FALSE(db.hasWriters(n[0]->output()));
  EXPECT_TRUE(db.moveBeforeTopologicallyValid(n[1], n[3]));  // b goes behind c
  EXPECT_EQ(n[2]->next(), n[1]);
  EXPECT_FALSE(db.moveAfterTopologicallyValid(n[3], n[0]));
}

TEST(Aliases, AreSaidOnceByWhoRegisters) {
  const RegisterOperators registry(
      {Operator("pass_functions_test::pure(Tensor(a) x) -> Tensor(a)", [](Stack&) {}, AliasAnalysisKind::PURE_FUNCTION)});
  const auto g = graph_of("graph(%x : Tensor):\n  %y : Tensor = pass_functions_test::pure(%x)\n  return (%y)");
  EXPECT_EQ(error_of([&] { AliasDb db(g); }),
            "Tried to register operator pass_functions_test::pure(Tensor(a) x) -> Tensor(a) with aliasing information in the schema but "
            "without AliasAnalysisKind::FROM_SCHEMA.");
}

double sum_of(const std::shared_ptr<Graph>& g, std::vector<IValue> inputs) {
  return run_graph(g, std::move(inputs))[0].toTensor().sum().item().toDouble();
}

TEST(Concatenations, TakeMembersAndShareParts) {
  const auto g = graph_of(R"(graph(%x : Tensor, %y : Tensor):
  %d : int = prim::Constant[value=0]()
  %l : Tensor[] = prim::ListConstruct(%x, %y)
  %m : Tensor[] = aten::append(%l, %x)
  %a : Tensor = aten::cat(%l, %d)
  %k : Tensor[] = prim::ListConstruct(%x, %y, %x, %y)
  %b : Tensor = aten::cat(%k, %d)
  %s : Tensor[] = prim::ListConstruct(%a, %b)
  %c : Tensor = aten::cat(%s, %d)
  return (%c))");
  const std::vector<IValue> inputs = {ones({2}), full({3}, 2.0)};
  const double before = sum_of(g, inputs);
  EXPECT_EQ(before, 26.0);
  const auto variadic = g->copy(), combined = g->copy();
  EXPECT_TRUE(RemoveListMutationAndUseVariadicCat(variadic));
  EXPECT_TRUE(EliminateConcatCommonInputs(variadic));
  variadic->lint();
  testing::FileCheck().check_count("prim::VarConcat", 3, true)->check_not("ListConstruct")->run(*variadic);
  EXPECT_EQ(sum_of(variadic, inputs), before);
  EXPECT_TRUE(RemoveListMutation(combined) && CombineConcats(combined));
  combined->lint();
  testing::FileCheck().check_count("aten::cat", 1, true)->run(*combined);
  EXPECT_EQ(sum_of(combined, inputs), before);
}

TEST(Concatenations, OfKnownSizesBecomeWrites) {
  const auto g = graph_of(R"(graph(%x : Float(2, strides=[1], device=cpu), %y : Float(3, strides=[1], device=cpu)):
  %d : int = prim::Constant[value=0]()
  %l : Tensor[] = prim::ListConstruct(%x, %y)
  %a : Float(5, strides=[1], device=cpu) = aten::cat(%l, %d)
  return (%a))");
  ExpandConcatAndEliminateRedundancy(g);
  g->lint();
  testing::FileCheck().check("aten::empty")->check_count("aten::copy_", 2, true)->check_not("aten::cat")->run(*g);
  EXPECT_EQ(sum_of(g, {ones({2}), full({3}, 2.0)}), 8.0);
}

TEST(Choices, OfTwoValuesAreOneNode) {
  const auto g = graph_of(
      "graph(%c : bool, %x : Tensor, %y : Tensor):\n  %z : Tensor = prim::If(%c)\n    block0():\n      -> (%x)\n    block1():\n"
      "      -> (%y)\n  return (%z)");
  EXPECT_TRUE(AddIfThenElseOp(g));
  EXPECT_FALSE(AddIfThenElseOp(g));
  testing::FileCheck().check("prim::IfThenElse")->run(*g);
  EXPECT_EQ(sum_of(g, {true, ones({2}), zeros({2})}), 2.0);
}

TEST(InPlace, ActivationsWriteWhatNobodyElseNeeds) {
  auto g = graph_of(R"(graph(%x : Float(2, strides=[1], device=cpu)):
  %a : Float(2, strides=[1], device=cpu) = aten::neg(%x)
  %b : Float(2, strides=[1], device=cpu) = aten::relu(%a)
  %c : Float(2, strides=[1], device=cpu) = aten::tanh(%x)
  %d : Tensor = aten::mul(%b, %c)
  return (%d))");
  EXPECT_TRUE(FunctionalToInplaceRewriter(g).FunctionalToInplace(g->block()));
  testing::FileCheck().check("aten::relu_(")->check("aten::tanh(")->run(*g);  // the input stays
  RemoveTensorTypeSpecializations(g);
  testing::FileCheck().check_not("Float")->run(*g);
}

TEST(Folding, OfBatchNormIsItsFormula) {
  const Tensor w = full({2, 1, 1, 1}, 3.0), b = ones({2});
  const auto [weight, bias] = computeUpdatedConvWeightAndBias({.conv_w = w,
                                                               .conv_b = b,
                                                               .bn_rm = full({2}, 0.5),
                                                               .bn_rv = full({2}, 4.0),
                                                               .bn_eps = 0.0,
                                                               .bn_w = full({2}, 2.0),
                                                               .bn_b = ones({2})});
  EXPECT_EQ(weight.sum().item().toDouble(), 6.0);  // 3 * 2 / sqrt(4), twice
  EXPECT_EQ(bias.sum().item().toDouble(), 3.0);    // (1 - 0.5) * 1 + 1, twice
}

TEST(Gradients, OfGraphsAreAutograds) {
  const auto g = graph_of(R"(graph(%x : Tensor, %y : Tensor):
  %a : Tensor = aten::mul(%x, %y)
  %b : Tensor = aten::mul(%a, %x)
  return (%b))");
  // What Python's bindings do for graphs: who has autograd gives it.
  set_gradient_functions({[](const std::vector<Tensor>& outputs, const std::vector<Tensor>& inputs, const std::vector<Tensor>& gradients,
                             std::optional<bool> retain, bool create,
                             bool unused) { return autograd::grad(outputs, inputs, gradients, retain, create, unused); },
                          nullptr});
  const Gradient gradient = differentiate(g);
  EXPECT_EQ(gradient.df_output_vjps, (std::vector<std::size_t>{0, 1}));
  Stack stack{ones({2}), full({2}, 3.0), full({2}, 5.0)};  // of the output; x, y
  InterpreterState(Code(gradient.df, "df")).run(stack);
  const auto& gradients = stack.at(0).toTupleElements();
  EXPECT_EQ(gradients[0].toTensor().sum().item().toDouble(), 60.0);  // 2 x y, twice
  EXPECT_EQ(gradients[1].toTensor().sum().item().toDouble(), 18.0);  // x x, twice
  const auto writes = graph_of("graph(%x : Tensor):\n  %a : Tensor = aten::relu_(%x)\n  return (%a)");
  EXPECT_EQ(error_of([&] { differentiate(writes); }),
            "differentiate: a graph that does not write its inputs was required; this one may write %x.");
}

TEST(Logging, IsByFile) {
  set_jit_logging_levels("some_pass:>>other");
  EXPECT_TRUE(is_enabled("src/some_pass.cpp", JitLoggingLevels::GRAPH_DUMP));
  EXPECT_FALSE(is_enabled("src/some_pass.cpp", JitLoggingLevels::GRAPH_UPDATE));
  EXPECT_TRUE(is_enabled("other.cpp", JitLoggingLevels::GRAPH_DEBUG));
  set_jit_logging_levels("");
  EXPECT_FALSE(is_enabled("other.cpp", JitLoggingLevels::GRAPH_DUMP));
  EXPECT_EQ(jit_log_prefix(JitLoggingLevels::GRAPH_DUMP, "a/b.cpp", 3, "x\ny"), "[DUMP b.cpp:3] x\n[DUMP b.cpp:3] y\n");
}

TEST(Futures, OfRunsAreComplete) {
  const auto unit = compile("def f(x: Tensor):\n  t = torch.jit.fork(torch.neg, x)\n  return torch.jit.wait(t)\n");
  int forks = 0;
  const TaskLauncher launcher = [&](const std::function<void()>& task) {
    ++forks;
    task();
  };
  Stack stack{ones({2})};
  const auto future = GraphExecutor(unit->get_function("f").graph(), "f").runAsync(stack, launcher);
  EXPECT_EQ(future->wait().toTensor().sum().item().toDouble(), -2.0);
  EXPECT_EQ(forks, 1);
  const auto bad = graph_of("graph(%x : Tensor, %y : Tensor):\n  %z : Tensor = aten::mm(%x, %y)\n  return (%z)");
  Stack wrong{ones({2}), ones({3})};
  const auto failed = InterpreterState(Code(bad, "bad")).runAsync(wrong);
  EXPECT_TRUE(failed->completed() && failed->hasError() && failed->exception_ptr());
}

TEST(Texts, DefineClassesForProgramsThatKeepThem) {
  const auto unit = std::make_shared<CompilationUnit>();
  const std::vector<IValue> constants;
  const TextImporter importer(
      unit, &constants,
      [](const std::string&) {
        return std::make_shared<Source>("class Pair:\n  a : int\n  def __init__(self, x: int) -> None:\n    self.a = x\n");
      },
      2);
  const TypePtr type = importer.loadType(QualifiedName("__torch__.Pair"));
  EXPECT_EQ(type, unit->get_type("__torch__.Pair"));
  const Module m("m", unit);
  const IValue pair = m.create_class(QualifiedName("__torch__.Pair"), 3);
  EXPECT_EQ(pair.toObjectRef().getAttr("a").toInt(), 3);
  EXPECT_THROW(m.create_class(QualifiedName("__torch__.None"), 3), Error);
}

TEST(Views, NameThePartsOfControlFlow) {
  const auto g = graph_of(
      "graph(%n : int, %x : Tensor):\n  %true : bool = prim::Constant[value=1]()\n  %y : Tensor = prim::Loop(%n, %true, %x)\n"
      "    block0(%i : int, %v : Tensor):\n      %w : Tensor = aten::neg(%v)\n      -> (%true, %w)\n  return (%y)");
  const LoopView loop(g->outputs()[0]->node());
  EXPECT_EQ(loop.loopType(), LoopView::For);
  EXPECT_EQ(loop.maxTripCount(), g->inputs()[0]);
  EXPECT_EQ(loop.carriedInputs()[0], g->inputs()[1]);
  EXPECT_EQ(loop.bodyCarriedOutputs()[0]->node()->kind(), aten::neg);
  EXPECT_EQ(loop.nextCond(), loop.inputCond());
  EXPECT_THROW(IfView(g->outputs()[0]->node()), Error);
}

}  // namespace
}  // namespace cresset::jit
