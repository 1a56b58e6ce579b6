// Passes with a context: parameters, options, notes.
#include <set>

#include <gtest/gtest.h>

#include <cresset/ir/graph_diff.h>
#include <cresset/ir/ir_parser.h>
#include <cresset/ir/lowering.h>
#include <cresset/ir/pass.h>

namespace cresset::jit {
namespace {

PassContext with_parameters(const char* text, std::vector<IValue> parameters) {
  PassContext context;
  context.graph = parse_ir(text);
  context.parameters = std::move(parameters);
  return context;
}

bool run(const char* name, PassContext& context) {
  const bool changed = find_pass(name)->run_in(context);
  context.graph->lint();
  return changed;
}

TEST(RewriteInputsWithParams, PairsByPosition) {
  // The user's %n is an int too: it must not take a value.
  auto context = with_parameters(
      "graph(%x : Tensor, %n : int, %w : Tensor, %k : int, %f : float):\n"
      "  %a : Tensor = aten::add(%x, %w, %n)\n"
      "  %b : Tensor = aten::mul(%a, %k)\n"
      "  %c : Tensor = aten::mul(%b, %f)\n"
      "  return (%c)\n",
      {IValue(), IValue(int64_t{7}), IValue(0.5)});
  EXPECT_TRUE(run("rewrite_inputs_with_params", context));
  const std::string text = context.graph->toString();
  EXPECT_EQ(context.graph->inputs().size(), 3u) << text;
  EXPECT_EQ(context.parameters.size(), 1u);
  EXPECT_EQ(context.real_inputs(), 2u);
  EXPECT_NE(text.find("%k : int = prim::Constant[value=7]()"), std::string::npos) << text;
  EXPECT_NE(text.find("%f : float = prim::Constant[value=0.5]()"), std::string::npos) << text;
  EXPECT_FALSE(run("rewrite_inputs_with_params", context));
}

TEST(RewriteInputsWithParams, TensorsTuplesAndListsStay) {
  auto context = with_parameters("graph(%x : Tensor, %l : int[], %t : (int, int)):\n  return (%x, %l, %t)", {IValue(), IValue(), IValue()});
  const std::string before = context.graph->toString();
  EXPECT_FALSE(run("rewrite_inputs_with_params", context));
  EXPECT_EQ(context.graph->toString(), before);
}

TEST(RewriteInputsWithParams, WithoutParametersNothingIsTaken) {
  auto context = with_parameters("graph(%x : Tensor, %n : int):\n  return (%n)", {});
  EXPECT_FALSE(run("rewrite_inputs_with_params", context));
}

TEST(RewriteInputsWithParams, TooManyParametersAreAnError) {
  auto context = with_parameters("graph(%x : Tensor):\n  return (%x)", {IValue(int64_t{1}), IValue(int64_t{2})});
  EXPECT_ANY_THROW(find_pass("rewrite_inputs_with_params")->run_in(context));
}

TEST(AutocastLongInputs, ParametersAreNotInputs) {
  auto context = with_parameters("graph(%i : Long(3), %w : Long(3)):\n  %y : Tensor = aten::mul(%i, %w)\n  return (%y)", {IValue()});
  std::vector<PassNote> notes;
  context.sink = [&](const PassNote& n) { notes.push_back(n); };
  EXPECT_TRUE(run("autocast_long_inputs", context));
  EXPECT_EQ(notes.size(), 1u);
  EXPECT_NE(context.graph->toString().find("aten::mul(%6, %w)"), std::string::npos) << context.graph->toString();
  EXPECT_FALSE(run("autocast_long_inputs", context));
}

TEST(DeadCode, TellsTheNeededValues) {
  const char* text =
      "graph(%x : Tensor, %n : int):\n"
      "  %a : Tensor = aten::neg(%x)\n"
      "  %b : Tensor = aten::abs(%x)\n"
      "   = prim::Print(%n)\n"
      "  return (%b)\n";
  for (const bool delete_effects : {false, true}) {
    const auto graph = parse_ir(text);
    std::set<std::string> names;
    int calls = 0;
    const auto look = [&](const std::unordered_set<const Value*>& values) {
      ++calls;
      for (const Value* v : values) names.insert(v->debugName());
    };
    EXPECT_TRUE(eliminate_dead_code(graph, {.delete_effects = delete_effects, .live_values = look}));
    EXPECT_EQ(calls, 1);
    EXPECT_EQ(names, delete_effects ? (std::set<std::string>{"x", "b"}) : (std::set<std::string>{"x", "b", "n"}));
    EXPECT_EQ(graph->toString().find("prim::Print") == std::string::npos, delete_effects);
    graph->lint();
  }
}

TEST(LoweringOptions, AreSetByName) {
  LoweringOptions options;
  set_lowering_option(options, "stable-numerics=0");
  set_lowering_option(options, "target_device=cuda:0");
  set_lowering_option(options, "torch_executed_modules=a.B,layer1.0");
  set_lowering_option(options, "building_engine");
  EXPECT_FALSE(options.stable_numerics);
  EXPECT_EQ(options.target_device, "cuda:0");
  EXPECT_EQ(options.torch_executed_modules, (std::vector<std::string>{"a.B", "layer1.0"}));
  EXPECT_TRUE(options.building_engine);
  EXPECT_THROW(set_lowering_option(options, "unfreeze=perhaps"), ValueError);
  try {
    set_lowering_option(options, "nothing=1");
    FAIL();
  } catch (const ValueError& e) {
    EXPECT_NE(std::string(e.what()).find("there is no lowering option 'nothing'. Options: approximate_gelu, "), std::string::npos)
        << e.what();
  }
}

TEST(LoweringOptions, DocumentedForms) {
  LoweringOptions options;
  set_lowering_option(options, "documented_forms=1");
  EXPECT_TRUE(options.remove_casts && options.linear_flattens && options.layout_is_managed && !options.stable_numerics);
  options.set_documented_forms(false);
  EXPECT_TRUE(options.stable_numerics && !options.documented_forms && !options.remove_casts);
}

TEST(InputSpecs, TypeAGraph) {
  const auto graph = parse_ir("graph(%x : Tensor, %n : int):\n  %y : Tensor = aten::neg(%x)\n  return (%y)\n");
  PipelineOptions options;
  options.inputs = {parse_input_spec("[(1,3);(2,3);(8,3)]@f16"), std::nullopt};
  run_passes(graph, {"dce"}, options);
  EXPECT_EQ(graph->outputs()[0]->type()->str().substr(0, 10), "Half(*, 3)");
  const InputSpec& spec = *options.inputs[0];
  EXPECT_EQ(spec.str(), "[(1,3);(2,3);(8,3)]@float16");
  EXPECT_FALSE(spec.misfit(spec.example()));
  EXPECT_TRUE(spec.misfit(InputSpec({9, 3}, ScalarType::Half).example()));
  EXPECT_EQ(parse_input_spec("(-1, 3)").str(), "(-1,3)@float32");
  EXPECT_THROW(InputSpec({2}, {1}, {3}), ValueError);
}

TEST(PairOfFallbackPasses, ByName) {
  const auto module = [] {
    Module inner("__torch__.Inner"), outer("__torch__.Outer");
    inner.register_attribute("scale", basic_type(TypeKind::Float), IValue(2.0));
    inner.define("def forward(self, x):\n  return x * self.scale\n");
    outer.register_module("inner", inner);
    outer.define("def forward(self, x):\n  return torch.relu(self.inner(x))\n");
    return outer;
  }();
  const std::string before = module.get_method("forward").graph()->toString();
  PipelineOptions options;
  options.lowering.torch_executed_modules = {"inner"};
  const PassedModule passed = run_module_passes(
      module, "forward", {"notate_module_for_fallback", "freeze_module", "lower_graph", "mark_nodes_for_fallback"}, options);
  const std::string text = passed.graph->toString();
  EXPECT_NE(text.find("aten::mul[to_compile=0]"), std::string::npos) << text;
  EXPECT_EQ(text.find("aten::relu[to_compile=0]"), std::string::npos) << text;
  EXPECT_EQ(module.get_method("forward").graph()->toString(), before);
  EXPECT_THROW(run_module_passes(module, "forward", {"lower_graph", "freeze_module"}, {}), ValueError);
}

TEST(GraphDiff, MatchesNodes) {
  const auto a = parse_ir("graph(%x : Tensor):\n  %y : Tensor = aten::neg(%x)\n  %z : Tensor = aten::relu(%y)\n  return (%z)\n");
  const auto b = parse_ir("graph(%i : Tensor):\n  %j : Tensor = aten::neg(%i)\n  %k : Tensor = aten::tanh(%j)\n  return (%k)\n");
  EXPECT_TRUE(diff_graphs(*a, *a->copy()).equal());
  const GraphDiff d = diff_graphs(*a, *b);
  EXPECT_EQ(d.same, 1u);
  EXPECT_EQ(d.gone, 1u);
  EXPECT_EQ(d.fresh, 1u);
  EXPECT_NE(d.str().find("+   %k : Tensor = aten::tanh(%y)"), std::string::npos) << d.str();
}

}  // namespace
}  // namespace cresset::jit
