// A compiler pass as programs for PyTorch's TorchScript write it: forward declarations, rules, uses, types, operators of its own.

// Declared by the program before it includes anything, as headers do that want to include little.
namespace torch {
namespace jit {
struct Graph;
struct Module;
}  // namespace jit
namespace autograd {
struct Node;
}
}  // namespace torch
namespace at {
class Tensor;
}
namespace c10 {
struct IValue;
class Symbol;
struct Type;
}  // namespace c10
bool is_same_kind(const c10::Symbol& kind, const c10::IValue& value, const at::Tensor& tensor, const torch::autograd::Node* node);

#include "torch/custom_class.h"

// And again.
namespace torch {
namespace jit {
struct Graph;
struct Module;
}  // namespace jit
}  // namespace torch
namespace c10 {
enum class DeviceType : int8_t;
enum class ScalarType : int8_t;
template <class>
class ArrayRef;
}  // namespace c10
void lower(std::shared_ptr<torch::jit::Graph>& graph);

#include <iostream>

#include "ATen/code_template.h"
#include "ATen/core/functional.h"
#include "ATen/core/interned_strings.h"
#include "ATen/cuda/CUDAEvent.h"
#include "ATen/cuda/CUDAGraph.h"
#include "torch/csrc/jit/api/function_impl.h"
#include "torch/csrc/jit/frontend/tracer.h"
#include "torch/csrc/jit/ir/alias_analysis.h"
#include "torch/csrc/jit/ir/constants.h"
#include "torch/csrc/jit/ir/ir_views.h"
#include "torch/csrc/jit/ir/irparser.h"
#include "torch/csrc/jit/ir/subgraph_matcher.h"
#include "torch/csrc/jit/jit_log.h"
#include "torch/csrc/jit/passes/constant_pooling.h"
#include "torch/csrc/jit/passes/dead_code_elimination.h"
#include "torch/csrc/jit/passes/freeze_module.h"
#include "torch/csrc/jit/passes/lower_graph.h"
#include "torch/csrc/jit/passes/quantization/helper.h"
#include "torch/csrc/jit/passes/subgraph_rewrite.h"
#include "torch/csrc/jit/runtime/custom_operator.h"
#include "torch/csrc/jit/runtime/graph_executor.h"
#include "torch/csrc/jit/runtime/graph_iterator.h"
#include "torch/csrc/jit/serialization/import_read.h"
#include "torch/script.h"

namespace torch {
namespace jit {
c10::AliasAnalysisKind aliasAnalysisFromSchema() { return c10::AliasAnalysisKind::FROM_SCHEMA; }
RegisterOperators registry({
    Operator(
        "program::constant(Tensor val) -> Tensor", [](Stack& /*stack*/) {}, aliasAnalysisFromSchema()),
});
}  // namespace jit
}  // namespace torch

namespace {
using namespace torch::jit;

struct NegRemoval {
  explicit NegRemoval(std::shared_ptr<Graph> graph) : graph_(std::move(graph)) {}
  void run() {
    remove(graph_->block());
    torch::jit::EliminateDeadCode(graph_);
    GRAPH_DUMP("without pairs of neg", graph_);
  }
  void remove(Block* block) {
    for (auto it = block->nodes().begin(); it != block->nodes().end(); it++) {
      for (Block* inner : it->blocks()) remove(inner);
      switch (it->kind()) {
        case aten::neg:
          if (it->input()->node()->kind() == aten::neg) {
            it->output()->replaceAllUsesWith(it->input()->node()->input());
            it.destroyCurrent();
          }
          break;
        case prim::Constant: break;
        default: break;
      }
    }
  }
  std::shared_ptr<Graph> graph_;
};

}  // namespace

void lower(std::shared_ptr<torch::jit::Graph>& graph) {
  NegRemoval(graph).run();
  torch::jit::SubgraphRewriter rewriter;
  rewriter.RegisterRewritePattern(R"IR(
    graph(%x, %y, %alpha):
      %out : Tensor = aten::add_(%x, %y, %alpha)
      return (%out))IR",
                                  R"IR(
    graph(%x, %y, %alpha):
      %c : Tensor = program::constant(%y)
      %out : Tensor = aten::add(%x, %c, %alpha)
      return (%out))IR");
  rewriter.runOnGraph(graph);
  torch::jit::ConstantPooling(graph);
}

// An engine's members: they exist without a device, and say so when they are asked to work.
struct Engine {
  at::cuda::CUDAGraph recorded = {true};
  at::cuda::CUDAEvent done;
};
bool works(Engine& engine) {
  engine.done.synchronize();
  try {
    engine.recorded.replay();
  } catch (const c10::Error&) {
    return false;
  }
  return true;
}

// Texts, uses, schemas and nodes in the forms that converters have.
void shown(const std::shared_ptr<torch::jit::Graph>& graph) {
  std::vector<torch::jit::IValue> values;
  values.push_back(torch::jit::IValue("text").toString());
  std::cout << values[0] << " " << at::promote_types(at::kInt, at::kHalf) << " "
            << c10::toString(torch::jit::parseSchema("f(int[] x) -> ()"));
  auto& uses = graph->inputs()[0]->uses();
  std::cout << " " << uses.size();
  torch::jit::DepthFirstGraphNodeIterator nodes(graph);
  while (torch::jit::Node* node = nodes.next()) std::cout << " " << node->kind().toUnqualString();
  int* place = nullptr;
  std::optional<torch::jit::IValue> truth = place;
  std::cout << " " << truth->toBool() << "\n";

  at::jit::TemplateEnv outer, env(outer);
  outer.s("name", "f");
  env.v("rest", {"b", "c"});
  env.v("none", {});
  env.v("lines", {"one", "two\nthree"});
  env.d("cost", 3);
  std::cout << at::jit::CodeTemplate("$name(a${,rest})(${rest,}z)(${none,}$rest) $ ${cost}\n  $lines\n").format(env);
}

bool is_same_kind(const c10::Symbol& kind, const c10::IValue& value, const at::Tensor& tensor, const torch::autograd::Node* node) {
  return kind.is_prim() == value.isTensor() && tensor.grad_fn().get() == node;
}

// Element types by name.
std::string names_of_types() {
  std::string names;
#define ADD_NAME(T, Name) names += std::string(#Name) + std::to_string(sizeof(T)) + " ";
  AT_FORALL_SCALAR_TYPES_AND2(Half, Bool, ADD_NAME)
#undef ADD_NAME
#define COUNT(T, Name) ++count;
  int count = 0;
  AT_FORALL_SCALAR_TYPES_WITH_COMPLEX_AND_QINTS(COUNT)
#undef COUNT
  const c10::TypePtr known = c10::TensorType::create(at::ones({2}));
  return names + std::to_string(count + c10::stoll("4")) + (*c10::unshapedType(known) == *c10::TensorType::get() ? "" : " shaped");
}

// A function of C++ traced: two results, a node that the program records itself, a pause.
void traced() {
  namespace tracer = torch::jit::tracer;
  const auto program = [](torch::jit::Stack inputs) -> torch::jit::Stack {
    const at::Tensor x = inputs[0].toTensor(), y = x * inputs[1].toTensor();
    const auto go_on = tracer::pauseTracing();
    const at::Tensor unseen = x.exp();
    std::cout << tracer::isTracing() << (tracer::getTracingState() == nullptr);
    go_on();
    const auto graph = tracer::getTracingState()->graph;
    torch::jit::Node* node = graph->insertNode(graph->create(c10::Symbol::fromQualString("mine::square"), 0));
    tracer::addInputs(node, "x", y);
    at::Tensor squared;
    {
      at::tracer::impl::NoTracerDispatchMode quiet;
      std::cout << at::tracer::impl::is_dispatch_enabled();
      squared = y.pow(2);
    }
    std::cout << at::tracer::impl::is_dispatch_enabled();
    tracer::addOutput(node, squared);
    return {y.neg(), squared.add(unseen.sum().item())};
  };
  const auto [state, results] = tracer::trace({at::ones({2}), at::full({2}, 3)}, program, [](const at::Tensor&) { return ""; });
  std::cout << tracer::isTracing() << " " << results[0].toTensor()[0].item<float>() << "\n";
  for (torch::jit::Node* node : state->graph->nodes()) std::cout << node->kind().toQualString() << " ";
  std::cout << state->graph->outputs().size() << "\n";
}

// Names and types that a program adds.
namespace c10::aten {
constexpr c10::Symbol add_of_program = c10::prim::Constant;
}
struct Sized : c10::SingleElementType<c10::TypeKind::ListType, Sized> {
  Sized(c10::TypePtr element, size_t n) : SingleElementType(std::move(element)), n(n) {}
  bool equals(const Type& other) const override {
    const auto sized = other.cast<Sized>();
    return sized && sized->n == n;
  }
  std::string str() const override { return getElementType()->str() + "[" + std::to_string(n) + "]"; }
  size_t n;

 protected:
  std::string annotation_str_impl(const c10::TypePrinter&) const override { return "Sized"; }
};
static_assert(std::is_same_v<torch::jit::TensorAttr::ValueType, at::Tensor> &&
              std::is_same_v<torch::jit::IntsAttr::ConstructorType, std::vector<int64_t>>);
static_assert(std::is_base_of_v<caffe2::serialize::ReadAdapterInterface, caffe2::serialize::IStreamAdapter>);
static_assert(std::is_same_v<c10::string, std::string> && std::is_base_of_v<std::exception, torch::jit::ErrorReport>);
#define ONE_MORE(kind) +(c10::TypeKind::kind == c10::TypeKind::kind)
static_assert(C10_FORALL_TYPES(ONE_MORE) == 35);
void added() {
  const c10::TypePtr two = std::make_shared<Sized>(c10::IntType::get(), 2), three = std::make_shared<Sized>(c10::IntType::get(), 3);
  std::cout << *two << " " << two->annotation_str() << " " << (*two == *three)
            << (*two == *std::make_shared<Sized>(c10::FloatType::get(), 2)) << " " << c10::aten::add_of_program.toQualString() << " "
            << c10::onnx::Add.toQualString() << " " << torch::jit::aten::add.toQualString() << "\n";
  torch::jit::Operation operation = nullptr;
  operation = [](torch::jit::Stack& stack) { stack.emplace_back(7); };
  torch::jit::Stack stack;
  operation(&stack);
  operation(stack);
  TORCH_CHECK(!torch::jit::fuser::cuda::isEnabled() && !torch::jit::fuser::cuda::setEnabled(false));
  std::cout << stack.size() << " " << (torch::getCustomClass("__torch__.torch.classes.nothing.Here") == nullptr) << "\n";
  const auto list = c10::IValue(std::vector<int64_t>{1});
  c10::IValue::HashAliasedIValueMap copies{{list, list.deepcopy()}};
  std::cout << copies.count(list) << copies.count(list.deepcopy()) << " "
            << *unshapedType(c10::TensorType::create(at::kFloat, at::kCPU, 2, false)) << "\n";
}

// What converters of models ask of nodes, values, implementations and files.
void asked_by_converters(torch::jit::Node* node) {
  const auto* input = node->inputs().begin();
  std::cout << ((*input)->node()->kind() == c10::prim::Param) << node->numAttributes() << node->hasNamedInput("val")
            << node->hasNamedInput("other") << node->owningGraph()->return_node()->hasNamedInput("val") << " "
            << torch::jit::removeTorchMangle("__torch__.a.___torch_mangle_31.B.___torch_mangle_B") << "\n";

  const at::Tensor x = at::arange(4, at::kFloat).slice(0, 1);
  const at::TensorImpl* impl = x.unsafeGetTensorImpl();
  const at::Tensor copy(impl->shallow_copy_and_detach(/*version_counter=*/c10::VariableVersion(impl->version_counter()),
                                                      /*allow_tensor_metadata_change=*/true));
  copy.add_(1);
  std::cout << impl->is_cpu() << impl->is_cuda() << x.device().is_ipu() << " " << x._version() << x[0].item<float>() << " "
            << (static_cast<int>(at::kLong) < at::NumScalarTypes) << "\n";

  c10::List<std::optional<at::Tensor>> some{x, std::nullopt};
  const torch::jit::IValue list(some), number(3);
  std::cout << list.isOptionalTensorList() << list.isTensorList() << number.isOptionalTensorList()
            << list.toOptionalTensorList().get(1).has_value() << "\n";
  torch::jit::Stack stack{number, list};
  std::cout << torch::jit::last(&stack, 2)[0].toInt() << "\n";
  const std::optional<std::string> file_name("model.py");
  const auto source = std::make_shared<torch::jit::Source>("def f(x):\n  return x\n", file_name, 7);
  const torch::jit::StackEntry entry{"forward", torch::jit::SourceRange(source, 12, 18)};
  const auto [file, line, column] = *entry.range.file_line_col();
  std::cout << entry.filename << " " << file << " " << line << " " << column << " " << torch::jit::SourceRange().file_line_col().has_value()
            << "\n";

  const std::vector<char> bytes = torch::jit::pickle_save(torch::jit::IValue(c10::List<at::Tensor>({x, x.add(1)})));
  std::istringstream records(std::string(bytes.begin(), bytes.end()));
  caffe2::serialize::PyTorchStreamReader reader(&records);
  const auto read = torch::jit::readArchiveAndTensors("data", "", "data/", c10::nullopt, c10::nullopt, c10::nullopt, reader);
  std::cout << read.toTensorVector()[0].equal(x) << read.toTensorVector()[1].sum().item<float>() << "\n";
}

int main() {
  traced();
  added();
  std::cout << names_of_types() << " " << is_same_kind(c10::prim::Constant, at::ones({1}), at::ones({1}), nullptr) << "\n";
  auto graph = std::make_shared<torch::jit::Graph>();
  std::unordered_map<std::string, torch::jit::Value*> values;
  torch::jit::parseIR(R"IR(
    graph(%x : Tensor, %y : Tensor):
      %one : int = prim::Constant[value=1]()
      %a : Tensor = aten::neg(%x)
      %b : Tensor = aten::neg(%a)
      %c : Tensor = aten::add_(%b, %y, %one)
      return (%c))IR",
                      graph.get(), values);
  lower(graph);
  shown(graph);
  std::cout << *graph;
  for (const torch::jit::Use& use : values.at("x")->uses()) std::cout << use.user->kind().toQualString() << " " << use.offset << "\n";
  for (torch::jit::Node* node : graph->nodes())
    if (node->kind() == c10::Symbol::fromQualString("program::constant")) asked_by_converters(node);
  torch::jit::GraphExecutor executor(graph, "");
  torch::jit::Stack stack;
  torch::jit::push(stack, at::ones({2}), at::ones({2}));
  executor.run(stack);
  std::cout << torch::jit::pop(stack).toTensor().sum().item<float>() << "\n";

  c10::TypePtr type = c10::DictType::create(c10::StringType::get(), c10::ListType::ofInts());
  std::cout << c10::toString(type) << " " << (type->kind() == c10::TypeKind::DictType) << " "
            << type->expect<c10::DictType>()->getValueType()->cast<c10::ListType>()->getElementType()->isSubtypeOf(c10::NumberType::get())
            << "\n";
  const c10::FunctionSchema schema("f", "", {c10::Argument("x", c10::TensorType::get())}, {c10::Argument("", c10::IntType::get())});
  std::cout << schema << " " << c10::fmap(schema.arguments(), [](const c10::Argument& a) { return a.name(); })[0] << "\n";

  static torch::jit::CompilationUnit functions("def f(x: Tensor):\n  return torch.relu(x)\n");
  std::cout << torch::jit::toGraphFunction(functions.get_function("f")).graph()->outputs()[0]->node()->schema() << "\n";
  Engine engine;
  std::cout << works(engine) << "\n";
  return 0;
}
