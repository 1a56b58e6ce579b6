// The forms in which extensions register operators and walk over dictionaries; compiled only.
#include <torch/extension.h>

namespace {

at::Tensor f(const at::Tensor& x) { return x; }

at::Tensor iterates(const at::Tensor& x) {
  at::Tensor out = at::empty_like(x);
  at::TensorIterator iterator = at::TensorIterator::unary_op(out, x);
  TORCH_CHECK(iterator.numel() == x.numel());
  at::TensorIteratorConfig().add_output(out).add_input(x).build();
  return out;
}

int64_t sum(c10::Dict<std::string, int64_t> dict) {
  int64_t total = 0;
  for (auto& kv : dict) total += kv.value();
  for (const auto& kv : dict) total += static_cast<int64_t>(kv.key().size());
  return total;
}

TORCH_LIBRARY(registration_forms, m) {
  m.def("f(Tensor x) -> Tensor", {at::Tag::pt2_compliant_tag});
  m.def("g(Tensor x) -> Tensor", std::vector<at::Tag>{at::Tag::core, at::Tag::pointwise});
  m.def("h(Tensor x) -> Tensor", {});
  m.def("iterates(Tensor x) -> Tensor", &iterates);
  m.def("sum(Dict(str, int) dict) -> int", &sum);
  m.impl("f", c10::DispatchKey::CPU, &f);
  m.impl("g", at::kCPU, [](const at::Tensor& x) { return x; });
  m.impl("h", torch::kMeta, TORCH_FN(f));
}

struct NotAValue {};
static_assert(!std::is_convertible_v<std::vector<NotAValue>, c10::IValue>);

}  // namespace
