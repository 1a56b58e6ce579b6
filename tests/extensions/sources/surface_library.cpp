// Operators and classes without Python's headers: TORCH_LIBRARY, kernels of several signatures, custom classes.
#include <ATen/DynamicLibrary.h>
#include <torch/library.h>
#include <torch/script.h>

namespace {

at::Tensor scale_cpu(const at::Tensor& x, double by) { return x * by; }

struct Scale : torch::autograd::Function<Scale> {
  static at::Tensor forward(torch::autograd::AutogradContext* ctx, const at::Tensor& x, double by) {
    at::AutoDispatchBelowADInplaceOrView below;
    ctx->saved_data["by"] = by;
    static auto op = c10::Dispatcher::singleton().findSchemaOrThrow("surface::scale", "").typed<decltype(scale_cpu)>();
    return op.call(x, by);
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* ctx, torch::autograd::variable_list grads) {
    return {grads[0] * ctx->saved_data["by"].toDouble(), at::Tensor()};
  }
};
at::Tensor scale_autograd(const at::Tensor& x, double by) { return Scale::apply(x, by); }

// SymInt and int64_t are one signature.
at::Tensor resized(const at::Tensor& x, c10::SymIntArrayRef size, c10::SymInt extra, c10::optional<c10::SymInt> more) {
  auto sizes = c10::asIntArrayRefSlow(size).vec();
  sizes.push_back(extra.guard_int(__FILE__, __LINE__) + (more ? more->expect_int() : 0));
  return at::zeros(sizes, x.options());
}
int64_t total(const c10::List<int64_t>& values) {
  int64_t sum = 0;
  for (const int64_t v : values) sum += v;
  return sum;
}
c10::Dict<std::string, int64_t> lengths(const std::vector<std::string>& words) {
  c10::Dict<std::string, int64_t> out;
  for (const auto& w : words) out.insert(w, static_cast<int64_t>(w.size()));
  return out;
}
std::tuple<at::Tensor, std::optional<at::Tensor>> maybe(const at::Tensor& x, bool second) {
  return {x, second ? std::optional<at::Tensor>(x + 1) : std::nullopt};
}

struct Counter : torch::CustomClassHolder {
  explicit Counter(int64_t start) : value(start) {}
  int64_t next(int64_t by) { return value += by; }
  std::tuple<int64_t, double> both() const { return {value, value * 0.5}; }
  int64_t value;
};
c10::intrusive_ptr<Counter> doubled(const c10::intrusive_ptr<Counter>& c) { return c10::make_intrusive<Counter>(c->value * 2); }
// Functions of the namespaces of families; braces and defaults work as for at's.
at::Tensor power(const at::Tensor& x) {
  return torch::linalg::vector_norm(torch::fft::rfft(x), 2, {}) + torch::special::expm1(at::zeros({})) +
         torch::fft::fftshift(at::zeros({1}), {0}).sum();
}
struct Listener : c10::WarningHandler {
  void process(const c10::Warning& warning) override {
    const bool deprecated = std::holds_alternative<c10::Warning::DeprecationWarning>(warning.type());
    heard.push_back((deprecated ? "deprecated: " : "") + warning.msg());
  }
  std::vector<std::string> heard;
};
std::vector<std::string> heard_warnings() {
  Listener outer, inner;
  const c10::WarningUtils::WarningHandlerGuard first(&outer);
  TORCH_WARN("one ", 1);
  {
    const c10::WarningUtils::WarningHandlerGuard second(&inner);
    TORCH_WARN_DEPRECATION("two");
  }
  TORCH_WARN("three");
  outer.heard.insert(outer.heard.end(), inner.heard.begin(), inner.heard.end());
  return outer.heard;
}
// Comparisons whose number stands first, one bit each.
at::Tensor compared(double low, const at::Tensor& x) {
  at::Tensor out = at::zeros_like(x);
  for (const at::Tensor& t : {(low < x), (low <= x), (low > x), (low >= x), (low == x), (low != x)}) out = out * 2 + t;
  return out;
}
std::string refusal(int64_t a, int64_t b) {
  try {
    TORCH_CHECK_LE(a, b) << "in refusal";
    TORCH_CHECK_NE(a, b);
  } catch (const c10::Error& error) {
    return error.what_without_backtrace();
  }
  return "";
}
at::Tensor older_names(const at::Tensor& x) {
  const auto [rows, inverse, counts] = torch::unique_dim_consecutive(x, 0, true, true);
  const at::Tensor bits = at::__or__(at::__lshift__(counts, 2), inverse.sum());
  at::Tensor grad = at::empty({1, 1, 1, 1, 2});
  torch::adaptive_avg_pool3d_backward_out(grad, at::ones({1, 1, 1, 1, 1}), grad);
  return torch::cat({rows.flatten(), bits.to(x.dtype()), torch::range(1, 2, 0.5), at::range(3, 1, -1, at::kFloat), grad.flatten()});
}
double cosine(double x) {
  at::DynamicLibrary library("libm-of-nobody.so", "libm.so.6");
  return reinterpret_cast<double (*)(double)>(library.sym("cos"))(x);
}
int64_t value_of(const c10::IValue& v) { return v.toCustomClass<Counter>()->value; }

}  // namespace

TORCH_LIBRARY(surface, m) {
  m.class_<Counter>("Counter")
      .def(torch::init<int64_t>(), "Counts from `start`.", {torch::arg("start") = 5})
      .def("both", &Counter::both)
      .def("alone", [](const c10::intrusive_ptr<Counter>& self) { return std::make_tuple(self->value); })
      .def("next", &Counter::next, "Adds `by`.", {torch::arg("by") = 1})
      .def("plus", [](const c10::intrusive_ptr<Counter>& self, at::Tensor x) { return x + self->value; })
      .def_readwrite("value", &Counter::value)
      .def_property("negative", [](const c10::intrusive_ptr<Counter>& self) { return self->value < 0; })
      .def_static("of", [](int64_t v) { return c10::make_intrusive<Counter>(v); })
      .def_pickle([](const c10::intrusive_ptr<Counter>& c) { return std::make_tuple(c->value); },
                  [](std::tuple<int64_t> v) { return c10::make_intrusive<Counter>(std::get<0>(v)); });
  m.def("scale(Tensor x, float by) -> Tensor");
  m.def("resized(Tensor x, SymInt[] size, SymInt extra, SymInt? more=None) -> Tensor");
  m.def("total", &total);
  m.def("lengths", &lengths);
  m.def("maybe(Tensor x, bool second) -> (Tensor, Tensor?)", &maybe);
  m.def("doubled(__torch__.torch.classes.surface.Counter c) -> __torch__.torch.classes.surface.Counter", &doubled);
  m.def("value_of(Any c) -> int", &value_of);
  m.def("power", &power);
  m.def("heard_warnings", &heard_warnings);
  m.def("compared", &compared);
  m.def("refusal", &refusal);
  m.def("cosine", &cosine);
  m.def("older_names", &older_names);
}
TORCH_LIBRARY_IMPL(surface, CPU, m) {
  m.impl(TORCH_SELECTIVE_NAME("surface::scale"), TORCH_FN(scale_cpu));
  m.impl("resized", &resized);
}
TORCH_LIBRARY_IMPL(surface, Autograd, m) { m.impl("scale", &scale_autograd); }
TORCH_LIBRARY_IMPL(surface, QuantizedCPU, m) { m.impl("scale", &scale_cpu); }
static auto registry = torch::RegisterOperators().op("surface_old::add_one", [](const at::Tensor& x) { return x + 1; });
