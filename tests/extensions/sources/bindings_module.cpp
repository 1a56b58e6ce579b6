// What bindings of other languages, simulation codes and libraries of atoms use of PyTorch's C++ API.
#include <torch/csrc/autograd/profiler.h>
#include <torch/csrc/jit/python/module_python.h>
#include <torch/csrc/jit/python/utf8_decoding_ignore.h>
#include <torch/csrc/jit/runtime/graph_executor.h>
#include <torch/extension.h>
#include <torch/script.h>
#include <torch/torch.h>

#include <ATen/DLConvertor.h>

#include <set>
#include <sstream>

// A class held by a pointer, with an equality of its own.
struct LabelHolder : torch::CustomClassHolder {
  explicit LabelHolder(std::string name) : name(std::move(name)) {}
  std::string name;
};
using Label = torch::intrusive_ptr<LabelHolder>;
inline bool operator==(const Label& a, const Label& b) { return a->name == b->name; }

// Namespaces of theirs are opened.
namespace torch {
namespace data {
namespace datasets {
struct Numbers : Dataset<Numbers> {
  Example<> get(size_t i) override { return {torch::full({1}, static_cast<int64_t>(i)), torch::zeros({1})}; }
  torch::optional<size_t> size() const override { return 4; }
};
}  // namespace datasets
}  // namespace data
}  // namespace torch

bool equal_by_name() {
  const Label a = torch::make_intrusive<LabelHolder>("x"), b = torch::make_intrusive<LabelHolder>("x");
  return a == b && !(a != b);
}

std::string text_of_a_set() { return torch::str(std::set<std::string>{"b", "a"}); }

int warned_once() {
  for (int i = 0; i < 3; ++i) {
    if (i >= 0) {
      TORCH_WARN_ONCE("only once")
    }
  }
  return 1;
}

int64_t explicit_keys() {
  torch::Dict<std::string, std::string> info;
  const std::string_view key = "k", value = "v";
  info.insert(key, value);
  info.insert_or_assign(key, std::string_view("w"));
  return info.at("k") == "w";
}

// Sparse tensors, which are Python's, through C++.
std::vector<torch::Tensor> sparse_parts(const torch::Tensor& t) {
  return {t.indices(), t.values(), t.to_dense(),
          torch::tensor(std::vector<int64_t>{t.sparse_dim(), t.dense_dim(), t._nnz(), t.is_coalesced()})};
}
torch::Tensor make_sparse(const torch::Tensor& indices, const torch::Tensor& values, std::vector<int64_t> size) {
  return torch::sparse_coo_tensor(indices, values, size, torch::dtype(torch::kFloat64).requires_grad(true));
}
torch::Tensor compressed_and_back(const torch::Tensor& dense) {
  const torch::Tensor csr = dense.to_sparse_csr();
  return torch::sparse_csr_tensor(csr.crow_indices(), csr.col_indices(), csr.values() * 2, dense.sizes()).to_dense();
}
// Quantized ones.
std::tuple<torch::Tensor, torch::Tensor, double, int64_t> quantized(const torch::Tensor& t) {
  const torch::Tensor q = torch::quantize_per_tensor(t, 0.5, 3, torch::kQUInt8);
  return {q.int_repr(), q.dequantize(), q.q_scale(), q.q_zero_point()};
}

torch::Tensor by_dlpack(const torch::Tensor& t) { return at::fromDLPackVersioned(at::toDLPackVersioned(t)); }
torch::Tensor by_old_dlpack(const torch::Tensor& t) {
  DLManagedTensor* managed = at::toDLPack(t);
  return at::fromDLPack(managed, [managed](void*) { managed->deleter(managed); });
}

torch::Tensor indexed_by_list(torch::Tensor t, const torch::Tensor& rows) {
  c10::List<std::optional<torch::Tensor>> indices({rows});
  torch::index_put_(t, indices, torch::zeros({}), false);
  return torch::_unsafe_index(t, indices);
}

std::pair<std::string, bool> profiled(const std::string& file) {
  using namespace torch::autograd::profiler;
  torch::jit::FusionStrategy strategy;
  torch::jit::setFusionStrategy(strategy);
  ProfilerConfig config(ProfilerState::KINETO, true);
  const std::set<ActivityType> activities = {ActivityType::CPU};
  prepareProfiler(config, activities);
  enableProfiler(config, activities);
  torch::ones({2, 3}).add(1);
  const bool on = profilerEnabled();
  const auto result = disableProfiler();
  result->save(file);
  std::ostringstream text;
  for (const auto& event : result->events())
    if (event.name() == "aten::add") text << event.name() << " " << event.shapes().at(0).size() << " " << (event.durationNs() > 0);
  return {text.str(), on && !profilerEnabled()};
}

// The kinds of events of a call in a range, in their order.
std::string legacy_profile() {
  using namespace torch::autograd::profiler;
  enableProfilerLegacy(ProfilerConfig(ProfilerState::CPU, false, true));
  {
    RECORD_USER_SCOPE("outer");
    torch::ones({100}).neg();
  }
  std::ostringstream text;
  int64_t bytes = 0;
  for (const auto& events : disableProfilerLegacy())
    for (const LegacyEvent& event : events) {
      if (event.kindStr() == "memory_alloc") bytes += std::abs(event.cpuMemoryUsage());
      if (event.kindStr() == "mark") text << event.name() << " ";
      if (event.kindStr() == "push" && std::string(event.name()) == "outer") text << "outer ";
      if (event.kindStr() == "push" && std::string(event.name()) == "aten::neg") text << "neg ";
    }
  text << (bytes >= 800);
  return text.str();
}

bool optimizers_can_be_moved() {
  const auto w = torch::ones({1}, torch::requires_grad());
  const auto sgd = std::make_shared<torch::optim::SGD>(torch::optim::SGD({w}, torch::optim::SGDOptions(0.5)));
  w.sum().backward();
  sgd->step();
  torch::optim::OptimizerOptions plain;
  bool refused = false;
  try {
    plain.get_lr();
  } catch (const c10::Error& e) {
    refused = std::string(e.what()).find("has not been overridden") != std::string::npos;
  }
  return refused && w.item<float>() == 0.5F;
}

int64_t numbers_of_a_dataset() {
  int64_t sum = 0;
  auto set = torch::data::datasets::Numbers().map(torch::data::transforms::Stack<>());
  const auto loader = torch::data::make_data_loader(std::move(set), 2);
  for (auto& batch : *loader) sum += batch.data.sum().item<int64_t>();
  return sum;
}

// A node that a binding makes for itself.
struct Doubled : torch::autograd::Node {
  torch::autograd::variable_list apply(torch::autograd::variable_list&& grads) override { return {grads[0] * 2}; }
};
torch::Tensor doubled(const torch::Tensor& x) {
  std::shared_ptr<Doubled> node(new Doubled, torch::autograd::deleteNode);
  node->set_next_edges(torch::autograd::collect_next_edges(x));
  torch::Tensor raw;
  {
    torch::NoGradGuard no_grad;
    raw = x * 2;
  }
  const torch::autograd::_jvp_fn_t jvp = [](const auto&, const auto&) -> torch::autograd::variable_list { TORCH_CHECK(false, "no jvp"); };
  const auto out = torch::autograd::_wrap_outputs({x}, {}, {}, torch::autograd::to_optional(torch::autograd::variable_list{raw}), node, jvp,
                                                  {}, [](const torch::Tensor& t) { return t.view_as(t); });
  return *out[0];
}

torch::Tensor pair_names(torch::Tensor t) {
  TORCH_CHECK(t.is_pinned() == torch::is_complex(t) && torch::is_floating_point(t) && !torch::is_conj(t), "facts");
  torch::Tensor target = torch::empty({0}, t.options());
  target.set_(t.storage(), 1, {2});
  return torch::linalg_norm(torch::diag(target), "fro") + torch::fft::fftfreq(4, torch::kFloat64).sum();
}

// Namespaces of the name that PyTorch's CPUFunctions.h alone has.
namespace mine::cpu {
int64_t three() { return 3; }
}  // namespace mine::cpu
namespace from_everywhere {
using namespace at;
using namespace mine;
int64_t three() { return cpu::three(); }
}  // namespace from_everywhere
// Kernels are found by the types of their arguments.
static_assert(std::tuple<c10::ScalarType, c10::ScalarType>(c10::CppTypeToScalarType<float>(), c10::CppTypeToScalarType<c10::Half>()) ==
              std::tuple(at::kFloat, at::kHalf));

std::vector<torch::Tensor> indexed_by_boxed_list(const torch::Tensor& x, const torch::Tensor& rows) {
  c10::List<std::optional<torch::Tensor>> list;
  list.push_back(rows);
  torch::Tensor written = x.clone();
  written.index_put_(list, torch::zeros({1}), true);
  return {x.index(list), x.index_put(list, torch::zeros({1})), written};
}
std::vector<torch::Tensor> made_without_names() {
  return {at::zeros({1, 2}, std::nullopt, at::kLong, std::nullopt, at::kCPU, std::nullopt), at::ones({2}, std::nullopt, at::kDouble),
          at::full({2}, 3, std::nullopt, at::kInt, std::nullopt, at::kCPU, std::nullopt)};
}
std::optional<torch::Tensor> scripted(const py::object& function, const torch::Tensor& x) {
  auto module = torch::jit::as_module(function);
  if (!module) return std::nullopt;
  return module->forward({x}).toTensor();
}
// Of quantized tensors as functions, one or several.
std::vector<torch::Tensor> quantized_functions(const torch::Tensor& x) {
  const auto several = at::quantize_per_tensor({x, x}, torch::tensor({.5, 1.}), torch::tensor({3, 0}), at::kQUInt8);
  const auto back = at::dequantize(several);
  const torch::Tensor facts = torch::tensor({at::q_scale(several[0]), static_cast<double>(at::q_zero_point(several[0]))});
  const auto [rounded, kept] = at::fake_quantize_per_tensor_affine_cachemask(x, .5, 3, 0, 4);
  const auto made = at::_empty_affine_quantized({2}, at::device(at::kCPU).dtype(at::kQUInt8), .5, 3);
  return {at::int_repr(several[0]), back[1], facts, rounded, kept, at::int_repr(made)};
}
// Functions of operators that are methods or inner operators in Python.
std::vector<torch::Tensor> functions_alone(const torch::Tensor& x) {
  torch::Tensor out = torch::empty({0}, x.options());
  at::repeat_out(out, x, {2});
  return {out, at::range(1, 2, x.options()), at::lift_fresh(x), at::trace_backward(x[0], {2, 2}), at::native_norm(x)};
}

TORCH_LIBRARY(bindings_test, m) {
  m.def("no_utf8() -> str", [] { return std::string("a\xff\x62"); });
  m.def("ignore_no_utf8(bool on) -> ()", [](bool on) { torch::jit::setUTF8DecodingIgnore(on); });
  auto schema = c10::FunctionSchema("three", "", {c10::Argument("x", c10::getTypePtr<torch::Tensor>())},
                                    {c10::Argument("", c10::getTypePtr<torch::Tensor>())});
  schema.setAliasAnalysis(c10::AliasAnalysisKind::CONSERVATIVE);
  m.def(std::move(schema), [](const torch::Tensor& x) { return x * 3; });
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("equal_by_name", equal_by_name);
  m.def("text_of_a_set", text_of_a_set);
  m.def("warned_once", warned_once);
  m.def("explicit_keys", explicit_keys);
  m.def("sparse_parts", sparse_parts);
  m.def("make_sparse", make_sparse);
  m.def("compressed_and_back", compressed_and_back);
  m.def("quantized", quantized);
  m.def("by_dlpack", by_dlpack);
  m.def("three", from_everywhere::three);
  m.def("indexed_by_boxed_list", indexed_by_boxed_list);
  m.def("made_without_names", made_without_names);
  m.def("scripted", scripted);
  m.def("quantized_functions", quantized_functions);
  m.def("functions_alone", functions_alone);
  m.def("by_old_dlpack", by_old_dlpack);
  m.def("indexed_by_list", indexed_by_list);
  m.def("profiled", profiled);
  m.def("legacy_profile", legacy_profile);
  m.def("optimizers_can_be_moved", optimizers_can_be_moved);
  m.def("numbers_of_a_dataset", numbers_of_a_dataset);
  m.def("doubled", doubled);
  m.def("pair_names", pair_names);
}
