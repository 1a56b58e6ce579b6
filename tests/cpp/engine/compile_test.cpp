// Modules with engines of test backends: casts at borders, precisions, several backends in one graph; engine files from C++.
#include <cresset/engine/compile.h>
#include <gtest/gtest.h>

#include <algorithm>

#include <cresset/engine/engine.h>
#include <cresset/engine/file.h>
#include <cresset/ir/input_spec.h>
#include <cresset/ir/interpreter.h>
#include <cresset/ir/module.h>
#include <cresset/ops/functions_compare.h>
#include <cresset/ops/functions_creation.h>
#include <cresset/ops/functions_random.h>

#include "error_of.h"

namespace cresset::engine {
namespace {

// Runs the graph as it is and keeps what it was built of and given.
struct Seen {
  std::vector<std::vector<ScalarType>> inputs, weights;
  std::vector<ScalarType> precisions;
};
Seen seen;

class Plain : public Program {
 public:
  explicit Plain(const EngineSource& s) : code_(jit::Code::compile(s.graph, s.name)), weights_(s.weights) {
    seen.weights.emplace_back();
    for (const Tensor& t : s.weights) seen.weights.back().push_back(t.scalar_type());
    seen.precisions = s.precisions;
  }
  std::vector<Tensor> run(const std::vector<Tensor>& inputs) const override {
    seen.inputs.emplace_back();
    for (const Tensor& t : inputs) seen.inputs.back().push_back(t.scalar_type());
    Stack stack(inputs.begin(), inputs.end());
    stack.insert(stack.end(), weights_.begin(), weights_.end());
    code_->run(stack);
    std::vector<Tensor> out;
    for (IValue& v : stack) out.push_back(v.toTensor());
    return out;
  }

 private:
  std::shared_ptr<const jit::Code> code_;
  std::vector<Tensor> weights_;
};

void register_plain(const char* name, std::vector<std::string> operators, std::vector<ScalarType> dtypes = {}) {
  register_engine_builder({.name = name,
                           .supports =
                               [operators](const jit::Node* n) {
                                 const std::string kind = n->kind().toQualString();
                                 return std::find(operators.begin(), operators.end(), kind) != operators.end();
                               },
                           .build = [](const EngineSource& s) { return std::make_unique<Plain>(s); },
                           .dtypes = std::move(dtypes),
                           .precisions = {kFloat, kBFloat16},
                           .target = "here"});
}

jit::Module module(const char* text) {
  jit::Module m("M");
  m.define(text);
  m.eval();
  return m;
}
CompileOptions options(const char* backend, std::vector<const char*> specs) {
  CompileOptions out;
  out.backend = backend;
  out.min_block_size = 1;
  for (const char* s : specs) out.pipeline.inputs.emplace_back(jit::parse_input_spec(s));
  return out;
}
IValue call(const jit::Module& m, std::vector<IValue> inputs) { return m.get_method("forward")(Stack(inputs.begin(), inputs.end())); }

constexpr const char* kWide = "def forward(self, x: Tensor, i: Tensor):\n  return x.index_select(0, i) * 2, i + i\n";

TEST(Compile, WideTypesAreCastAtBorders) {
  register_plain("narrow", {"aten::index_select", "aten::mul", "aten::add"}, {kFloat, kInt});
  CompileOptions o = options("narrow", {"(4,3)@f64", "(2)@i64"});
  const jit::Module m = module(kWide);
  EXPECT_NE(error_of([&] { compile(m, "forward", o); }).find("truncate_long_and_double casts it to"), std::string::npos);
  o.truncate_long_and_double = true;
  seen = {};
  const Compiled compiled = compile(m, "forward", o);
  EXPECT_EQ(compiled.engines, 1u);
  const Tensor x = cresset::arange(12, TensorOptions(kDouble)).reshape({4, 3}), i = cresset::arange(2, TensorOptions(kLong));
  const IValue got = call(compiled.module, {x, i}), want = call(m, {x, i});
  EXPECT_EQ(seen.inputs.at(0), (std::vector<ScalarType>{kFloat, kInt}));
  for (std::size_t k = 0; k < 2; ++k) {
    const Tensor a = got.toListRef()[k].toTensor(), b = want.toListRef()[k].toTensor();
    EXPECT_EQ(a.scalar_type(), b.scalar_type());
    EXPECT_TRUE(cresset::allclose(a, b));
  }
}

TEST(Compile, OtherTypesThatAreNotTakenAreErrors) {
  register_plain("floats", {"aten::relu"}, {kFloat});
  CompileOptions o = options("floats", {"(4)@f16"});
  o.truncate_long_and_double = true;
  const std::string error = error_of([&] { compile(module("def forward(self, x: Tensor):\n  return x.relu()\n"), "forward", o); });
  EXPECT_NE(error.find("engines of 'floats' take float32; %x"), std::string::npos) << error;
  EXPECT_NE(error.find("is float16. Keep what uses it with the interpreter (torch_executed_ops)."), std::string::npos) << error;
}

TEST(Compile, PrecisionsReachTheBuilder) {
  register_plain("precise", {"aten::relu"});
  CompileOptions o = options("precise", {"(4)@f32"});
  o.enabled_precisions = {kBFloat16};
  const jit::Module m = module("def forward(self, x: Tensor):\n  return x.relu()\n");
  compile(m, "forward", o);
  EXPECT_EQ(seen.precisions, (std::vector<ScalarType>{kBFloat16}));
  o.enabled_precisions = {kHalf};
  EXPECT_EQ(error_of([&] { compile(m, "forward", o); }),
            "compile: enabled_precisions: engines of 'precise' compute in float32, bfloat16; got float16.");
}

TEST(Compile, SeveralBackendsShareAGraph) {
  register_plain("first", {"aten::relu"});
  register_plain("second", {"aten::exp", "aten::add"});
  const jit::Module m = module("def forward(self, x: Tensor):\n  y = x.relu().exp()\n  z = y.sort()[0].relu()\n  return z + y, [z]\n");
  const Compiled compiled = compile(m, "forward", options("first, second", {"(-1)@f32"}));
  EXPECT_EQ(compiled.engines, 4u) << compiled.report;
  EXPECT_EQ(compiled.report.substr(0, 6), "first\n");
  EXPECT_EQ(compiled.module.attr("engine_0").toCustomClass<Engine>()->builder(), "first");
  EXPECT_EQ(compiled.module.attr("engine_3").toCustomClass<Engine>()->builder(), "second");
  for (const int64_t n : {5, 9}) {
    const Tensor x = cresset::randn({n});
    EXPECT_TRUE(cresset::allclose(call(compiled.module, {x}).toListRef()[0].toTensor(), call(m, {x}).toListRef()[0].toTensor()));
  }
}

TEST(Compile, AssumedOperatorsChangeThePartitionOnly) {
  register_plain("first", {"aten::relu"});
  CompileOptions o = options("first", {"(4)@f32"});
  const jit::Module m = module("def forward(self, x: Tensor):\n  return x.relu().exp().relu()\n");
  EXPECT_EQ(partition_method(m, "forward", o).partition.segments.size(), 3u);
  o.assume_supported = {"aten::exp"};
  EXPECT_EQ(partition_method(m, "forward", o).partition.segments.size(), 1u);
}

TEST(EngineFile, CrossesFromBytesToModules) {
  register_plain("filed", {"aten::relu", "aten::exp"});
  const jit::Module m = module("def forward(self, x: Tensor):\n  return x.relu().sort()[0]\n");
  EXPECT_NE(error_of([&] { convert_method_to_engine(m, "forward", options("filed", {})); }).find("require_full_compilation"),
            std::string::npos);
  const std::string bytes = convert_method_to_engine(module("def forward(self, x: Tensor):\n  return x.relu().exp()\n"), "forward",
                                                     options("filed", {"(3)@f32"}));
  const EngineFile file = read_engine_file(bytes);
  EXPECT_EQ(file.backend, "filed");
  EXPECT_EQ(file.target, "here");
  EXPECT_EQ(file.inputs.size(), 1u);
  const jit::Module made = embed_engine_in_new_module(bytes, "Embedded");
  const Tensor x = cresset::randn({3});
  EXPECT_TRUE(cresset::allclose(call(made, {x}).toTensor(), x.relu().exp()));
  EXPECT_TRUE(is_engine_file(bytes));
  EXPECT_EQ(error_of([] { engine_from_bytes("nothing"); }), "engine file: this is none: it does not begin with 'CRESSET ENGINE'.");
}

}  // namespace
}  // namespace cresset::engine
