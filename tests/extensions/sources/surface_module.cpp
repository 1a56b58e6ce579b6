// A Python module over torch/extension.h: casters, classes, errors, autograd.
namespace at {
class Tensor;  // before any header, as programs do
}
#include <torch/extension.h>
#include <torch/serialize.h>

#include <ATen/InferSize.h>
#include <ATen/native/TensorIterator.h>
#include <ATen/native/cpu/Loops.h>
#include <c10/core/impl/FakeGuardImpl.h>
#include <c10/core/impl/InlineDeviceGuard.h>
#include <c10/core/impl/InlineStreamGuard.h>
#include <torch/csrc/autograd/VariableTypeUtils.h>

using namespace at;  // sources do; names of their own must not clash with Cresset's

torch::Tensor add_scaled(torch::Tensor x, const torch::Tensor& y, double by) { return x + y * by; }
int64_t count_defined(std::vector<c10::optional<torch::Tensor>> tensors) {
  int64_t n = 0;
  for (const auto& t : tensors) n += t.has_value() && t->defined();
  return n;
}
std::vector<torch::Tensor> halves(const torch::Tensor& x) { return x.chunk(2); }
std::tuple<torch::Tensor, int64_t> pair_of(const torch::Tensor& x) { return {x.sum(), x.dim()}; }
torch::Tensor nothing() { return {}; }
std::vector<int64_t> sizes_twice(at::IntArrayRef sizes) {
  std::vector<int64_t> out = sizes.vec();
  for (int64_t& s : out) s *= 2;
  return out;
}
torch::Tensor make(at::ScalarType dtype, const at::Device& device, std::optional<at::Layout> layout) {
  return torch::full({2}, 3, torch::dtype(dtype).device(device).layout(layout));
}
torch::Tensor leaf() { return torch::ones({2}, torch::dtype(torch::kFloat64).requires_grad(true)); }
at::ScalarType dtype_of(const torch::Tensor& x) { return x.scalar_type(); }
at::Device device_of_tensor(const torch::Tensor& x) { return x.device(); }
at::Scalar twice(const at::Scalar& s) { return s.isFloatingPoint() ? at::Scalar(s.toDouble() * 2) : at::Scalar(s.toLong() * 2); }

// A guard of a backend's own, over its implementation: what is current, step by step.
std::vector<int64_t> devices_of_guards() {
  using Fake = c10::impl::FakeGuardImpl<c10::DeviceType::CUDA>;
  const c10::Device two(c10::kCUDA, 2), three(c10::kCUDA, 3);
  std::vector<int64_t> out;
  const auto note = [&] { out.push_back(Fake::getDeviceIndex()); };
  {
    c10::impl::InlineDeviceGuard<Fake> guard(c10::DeviceIndex(2));
    note();
    guard.set_device(three);
    note();
    guard.reset_device(two);
    guard.set_index(4);
    note();
    out.push_back(guard.original_device().index());
    out.push_back(guard.current_device().index());
  }
  note();
  {
    c10::impl::InlineOptionalDeviceGuard<Fake> guard;
    guard.set_index(1);
    note();
    guard.reset();
    note();
    const c10::impl::InlineOptionalDeviceGuard<Fake> none(std::optional<c10::Device>{}), some(std::optional<c10::Device>{three});
    out.push_back(none.current_device().has_value());
    note();
  }
  {
    c10::impl::InlineStreamGuard<Fake> guard(c10::Stream(c10::Stream::UNSAFE, two, 5));
    out.push_back(Fake().getStream(two).id());
    guard.reset_stream(c10::Stream(c10::Stream::UNSAFE, three, 6));
    out.insert(out.end(), {Fake().getStream(two).id(), Fake().getStream(three).id()});
    note();
  }
  out.push_back(Fake().getStream(three).id());
  note();
  c10::impl::InlineDeviceGuard<c10::impl::VirtualGuardImpl> any{c10::Device(c10::kCPU)};
  any.reset_device(c10::Device(c10::kMeta));
  out.push_back(any.original_device().is_meta());
  return out;
}
void guard_of_another_kind() {
  c10::impl::InlineDeviceGuard<c10::impl::FakeGuardImpl<c10::DeviceType::CUDA>> guard(c10::DeviceIndex(1));
  guard.set_device(c10::kCPU);
}
std::optional<std::vector<int64_t>> strides_of_view(const torch::Tensor& x, at::IntArrayRef shape) {
  const auto sizes = at::infer_size_dv(shape, x.numel());
  const auto strides = at::detail::computeStride(x.sizes(), x.strides(), sizes);
  TORCH_CHECK(strides.has_value() == at::detail::computeStride(x.sizes(), x.strides(), at::infer_size(shape, x.numel())).has_value());
  return strides ? std::optional(std::vector<int64_t>(strides->begin(), strides->end())) : std::nullopt;
}
void changed(const torch::Tensor& x) { torch::autograd::increment_version(x); }

void fail(const std::string& kind) {
  TORCH_CHECK(kind != "runtime", "a runtime error of ", 2, " parts");
  TORCH_CHECK_VALUE(kind != "value", "a value error");
  TORCH_CHECK_TYPE(kind != "type", "a type error");
  TORCH_CHECK_INDEX(kind != "index", "an index error");
  TORCH_CHECK_NOT_IMPLEMENTED(kind != "missing", "not there");
  TORCH_INTERNAL_ASSERT(kind != "internal", "broken");
  if (kind == "generic") TORCH_CHECK(1 == 2);
  if (kind == "error") AT_ERROR("an error");
  if (kind == "std") throw std::out_of_range("a standard one");
}

struct Accumulator {
  explicit Accumulator(int64_t n) : total(torch::zeros({n}, torch::kFloat64)) {}
  void add(const torch::Tensor& x) {
    const c10::NoGradGuard no_grad;
    total += x;
  }
  torch::Tensor total;
};

class Cube : public torch::autograd::Function<Cube> {
 public:
  static torch::Tensor forward(torch::autograd::AutogradContext* ctx, torch::Tensor x, double scale) {
    ctx->save_for_backward({x});
    ctx->saved_data["scale"] = scale;
    return x * x * x * scale;
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* ctx, torch::autograd::variable_list grads) {
    const auto saved = ctx->get_saved_variables();
    return {grads[0] * 3 * saved[0] * saved[0] * ctx->saved_data["scale"].toDouble(), torch::Tensor()};
  }
};
torch::Tensor cube(const torch::Tensor& x, double scale) { return Cube::apply(x, scale); }

torch::Tensor indexed(const torch::Tensor& x) {
  using namespace torch::indexing;
  return x.index({Slice(1, None), "...", Slice(None, None, 2)});
}
torch::Tensor gathered(const torch::Tensor& x, const torch::Tensor& rows) { return x.index({rows, 0}); }
void assign(torch::Tensor x, double value) { x.index_put_({torch::indexing::Slice(0, 2)}, value); }

/// The sum of a matrix through an accessor, in any floating or integral type.
double sum_by_accessor(const torch::Tensor& x) {
  double total = 0;
  AT_DISPATCH_ALL_TYPES_AND2(at::kHalf, at::kBFloat16, x.scalar_type(), "sum_by_accessor", [&] {
    const auto a = x.accessor<scalar_t, 2>();
    const auto p = x.packed_accessor32<scalar_t, 2>();
    for (int64_t i = 0; i < a.size(0); ++i)
      for (int64_t j = 0; j < a.size(1); ++j) {
        TORCH_CHECK(a[i][j] == p[i][j]);
        total += static_cast<double>(a[i][j]);
      }
  });
  return total;
}
torch::Tensor squared(const torch::Tensor& x) {
  torch::Tensor out;
  auto iter = at::TensorIterator::unary_op(out, x);
  AT_DISPATCH_V2(x.scalar_type(), "squared", AT_WRAP([&] { at::native::cpu_kernel(iter, [](scalar_t v) -> scalar_t { return v * v; }); }),
                 AT_EXPAND(AT_FLOATING_TYPES), at::kHalf);
  return out;
}
torch::Tensor parallel_fill(int64_t n) {
  torch::Tensor out = torch::empty({n}, torch::kInt64);
  auto* p = out.data_ptr<int64_t>();
  at::parallel_for(0, n, 16, [&](int64_t begin, int64_t end) {
    for (const auto i : c10::irange(begin, end)) p[i] = i;
  });
  return out;
}
std::string printed(const torch::Tensor& x) {
  std::ostringstream out;
  out << x << " " << x.sizes() << " " << x.scalar_type() << " " << x.device();
  return out.str();
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("recorded", [](const at::Tensor& x) {
    RECORD_FUNCTION("surface::recorded", std::vector<c10::IValue>({x, 3}));
    RECORD_USER_SCOPE("surface::part");
    return x * 3;
  });
  m.def("pickled", [](const at::Tensor& x) {
    c10::Dict<std::string, at::Tensor> state;
    state.insert("x", x);
    const std::vector<char> bytes = torch::pickle_save(state);
    return py::bytes(bytes.data(), bytes.size());
  });
  m.def("unpickled",
        [](const std::string& bytes) { return torch::pickle_load({bytes.begin(), bytes.end()}).toGenericDict().at("x").toTensor(); });
  m.def("script_types", [] {
    return std::vector<std::string>{c10::ListType::create(c10::TensorType::get())->str(), c10::OptionalType::ofTensor()->str(),
                                    c10::DictType::create(c10::StringType::get(), c10::IntType::get())->str(),
                                    c10::TupleType::create({c10::FloatType::get(), c10::NumberType::get(), c10::BoolType::get()})->str()};
  });
  m.def("add_scaled", &add_scaled, py::arg("x"), py::arg("y"), py::arg("by") = 1.0);
  m.def("count_defined", &count_defined);
  m.def("halves", &halves);
  m.def("pair_of", &pair_of);
  m.def("mapped", [](const std::string& path, bool shared, int64_t size) { return torch::from_file(path, shared, size, torch::kByte); });
  m.def("nothing", &nothing);
  m.def("sizes_twice", &sizes_twice);
  m.def("make", &make, py::arg("dtype"), py::arg("device"), py::arg("layout") = py::none());
  m.def("leaf", &leaf);
  m.def("devices_of_guards", &devices_of_guards);
  m.def("guard_of_another_kind", &guard_of_another_kind);
  m.def("strides_of_view", &strides_of_view);
  m.def("changed", &changed);
  m.def("dtype_of", &dtype_of);
  m.def("device_of", &device_of_tensor);
  m.def("twice", &twice);
  m.def("fail", &fail);
  m.def("cube", &cube);
  m.def("indexed", &indexed);
  m.def("gathered", &gathered);
  m.def("assign", &assign);
  m.def("sum_by_accessor", &sum_by_accessor);
  m.def("squared", &squared);
  m.def("parallel_fill", &parallel_fill, py::call_guard<py::gil_scoped_release>());
  m.def("printed", &printed);
  py::class_<Accumulator>(m, "Accumulator")
      .def(py::init<int64_t>())
      .def("add", &Accumulator::add)
      .def_readonly("total", &Accumulator::total);
}
