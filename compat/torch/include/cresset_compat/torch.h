// The C++ front end without modules: torch::, autograd, scripts' values.
#pragma once

#include <functional>
#include <unordered_set>

#include <cresset_compat/families.h>
#include <cresset_compat/library.h>
#include <cresset_compat/native_upsample.h>
#include <cresset_compat/profiler.h>
#include <cresset_compat/tensor_data.h>
#include <cresset_compat/tensor_iterator.h>

#include <cresset/autograd/anomaly_mode.h>
#include <cresset/autograd/autograd.h>
#include <cresset/autograd/custom_function.h>
#include <cresset/autograd/fallback.h>
#include <cresset/autograd/function.h>
#include <cresset/core/backend_meta.h>
#include <cresset/version.h>

namespace torch::fft {
inline Tensor fftfreq(int64_t n, const TensorOptions& options) { return cresset::fft_fftfreq(n, 1., options); }
inline Tensor rfftfreq(int64_t n, const TensorOptions& options) { return cresset::fft_rfftfreq(n, 1., options); }
}  // namespace torch::fft
namespace torch {

using at::CPU;
using Dtype = c10::ScalarType;
using cresset::autograd::Variable;
// Names of element types with the number of bits.
using c10::kBFloat16;
using c10::kBool;
using c10::kFloat16;
using c10::kFloat32;
using c10::kFloat64;
using c10::kInt16;
using c10::kInt32;
using c10::kInt64;
using c10::kInt8;
using c10::kUInt8;
inline constexpr auto kF16 = c10::kHalf, kF32 = c10::kFloat, kF64 = c10::kDouble, kI8 = c10::kChar, kI16 = c10::kShort, kI32 = c10::kInt,
                      kI64 = c10::kLong, kU8 = c10::kByte;
using NoGradGuard = c10::NoGradGuard;
using AutoGradMode = c10::AutoGradMode;
using InferenceMode = c10::InferenceMode;
// The factories by name: sources that take one of them with a using-declaration and call it with tensors' options find no second one.
using cresset::arange;
using cresset::empty;
using cresset::empty_like;
using cresset::eye;
using cresset::from_blob;
using cresset::from_file;
using cresset::full;
using cresset::full_like;
using cresset::linspace;
using cresset::ones;
using cresset::ones_like;
using cresset::rand;
using cresset::rand_like;
using cresset::randn;
using cresset::randn_like;
using cresset::zeros;
using cresset::zeros_like;
inline std::string show_config() { return at::show_config(); }
/// Calls the function with each argument in turn (torch/csrc/utils/variadic.h).
template <class F, class... A>
void apply(F function, A&&... arguments) {
  (function(std::forward<A>(arguments)), ...);
}

namespace cuda {
inline bool is_available() { return false; }
inline std::size_t device_count() { return 0; }
inline bool cudnn_is_available() { return false; }
inline void manual_seed(uint64_t) {}
inline void manual_seed_all(uint64_t) {}
inline void synchronize(int64_t = -1) {}
}  // namespace cuda
namespace mps {
inline bool is_available() { return false; }
}  // namespace mps
namespace xpu {
inline bool is_available() { return false; }
}  // namespace xpu

namespace autograd {
using at::Tensor;
using c10::AutoGradMode;
using c10::GradMode;
using c10::InferenceMode;
using cresset::autograd::Function;
inline bool any_variable_requires_grad(const variable_list& v) {
  return std::any_of(v.begin(), v.end(), [](const Tensor& t) { return t.defined() && t.requires_grad(); });
}
template <class... T>
bool compute_requires_grad(const T&... t) {
  return c10::GradMode::is_enabled() && ((t.defined() && t.requires_grad()) || ...);
}
template <class... T>
edge_list collect_next_edges(const T&... t) {
  edge_list edges;
  (edges.push_back(t.defined() ? cresset::autograd::impl::gradient_edge(t) : Edge()), ...);
  return edges;
}
inline edge_list collect_next_edges(const variable_list& v) {
  edge_list edges;
  for (const Tensor& t : v) edges.push_back(t.defined() ? cresset::autograd::impl::gradient_edge(t) : Edge());
  return edges;
}
/// For keys AutogradX: backward through the operator raises.
inline torch::CppFunction autogradNotImplementedFallback() {
  return torch::CppFunction::makeFromBoxedFunction<&cresset::autograd::autograd_not_implemented>();
}
/// For ADInplaceOrView: views and versions by the schema.
inline torch::CppFunction autogradNotImplementedInplaceOrViewFallback() {
  return torch::CppFunction::makeFromBoxedFunction<&cresset::autograd::autograd_not_implemented_inplace_or_view>();
}
/// Makes `node` the origin of the variable's gradient.
inline void create_gradient_edge(Variable& variable, std::shared_ptr<Node> node) {
  const uint32_t nr = node->add_input_metadata(variable);
  cresset::autograd::impl::set_gradient_edge(variable, Edge(std::move(node), nr));
}
inline void set_history(const Variable& variable, const std::shared_ptr<Node>& node) {
  if (!node || !variable.defined()) return;
  const uint32_t nr = node->add_input_metadata(variable);
  cresset::autograd::impl::set_gradient_edge(variable, Edge(node, nr));
}
inline void set_history(const variable_list& variables, const std::shared_ptr<Node>& node) {
  for (const Tensor& t : variables) set_history(t, node);
}
/// Copies of its inputs through which no gradient comes back (torch/csrc/autograd/functions/basic_ops.h).
struct UndefinedGradBackward final : Node {
  using Node::Node;
  variable_list apply(variable_list&& /*grads*/) override { return variable_list(num_outputs()); }
};
struct UndefinedGrad final : Node {
  variable_list apply(variable_list&& inputs) override {
    const auto node = std::make_shared<UndefinedGradBackward>(collect_next_edges(inputs));
    variable_list outputs;
    for (const Tensor& t : inputs) {
      outputs.push_back(t.defined() ? t.detach().clone() : t);
      set_history(outputs.back(), node);
    }
    return outputs;
  }
};
/// Deletes what a shared pointer to a node held; no chain of nodes is deep enough to matter here.
inline void deleteNode(Node* node) { delete node; }
inline std::vector<std::optional<Variable>> to_optional(const Variable& v) { return {v}; }
inline std::vector<std::optional<Variable>> to_optional(const variable_list& v) { return {v.begin(), v.end()}; }
using _jvp_fn_t = std::function<variable_list(variable_list, variable_list)>;
using _view_as_self_fn_t = std::function<Tensor(Tensor)>;
/// Makes the results of a custom function's forward outputs of `node`, as autograd.Function does (torch/csrc/autograd/custom_function.h).
/// Null where nothing is recorded. Tensors to save, views made by the caller and pure views are not asked for: they are Function's.
inline std::vector<std::optional<Variable>> _wrap_outputs(const variable_list& inputs,
                                                          const std::unordered_set<at::TensorImpl*>& non_differentiable,
                                                          const std::unordered_set<at::TensorImpl*>& dirty,
                                                          const std::vector<std::optional<Variable>>& raw_outputs,
                                                          const std::shared_ptr<Node>& node, const _jvp_fn_t& jvp,
                                                          const std::unordered_set<at::TensorImpl*>& /*to_save*/,
                                                          const _view_as_self_fn_t& /*view_as_self*/, bool /*pure_view*/ = false) {
  variable_list raw;
  for (const auto& output : raw_outputs) raw.push_back(output.value_or(Tensor()));
  const cresset::autograd::CustomFunctionMarks marks{{non_differentiable.begin(), non_differentiable.end()}, {dirty.begin(), dirty.end()}};
  const variable_list wrapped =
      cresset::autograd::wrap_outputs(inputs, marks, raw, node, [inputs, jvp](variable_list tangents) { return jvp(inputs, tangents); });
  std::vector<std::optional<Variable>> out;
  for (std::size_t i = 0; i < wrapped.size(); ++i) out.push_back(raw_outputs[i] ? std::optional<Variable>(wrapped[i]) : std::nullopt);
  return out;
}
inline void increment_version(const Tensor& t) { cresset::autograd::impl::bump_version(t); }
inline Variable& as_variable_ref(Tensor& t) { return t; }
inline const Variable& as_variable_ref(const Tensor& t) { return t; }
inline Variable as_variable(Tensor t) { return t; }
}  // namespace autograd

namespace jit {
using at::Tensor;
using c10::IValue;
using c10::Stack;
namespace script {}
/// What is kept beside a tensor of a backend when it is saved.
using BackendMetaPtr = cresset::BackendMetaFunction;
inline void TensorBackendMetaRegistry(c10::DeviceType t, const BackendMetaPtr& get, const BackendMetaPtr& set) {
  cresset::register_backend_meta_functions(t, get, set);
}
}  // namespace jit

namespace utils {
/// One tensor with the elements of all.
inline Tensor flatten_dense_tensors(at::TensorList tensors) {
  std::vector<Tensor> flat;
  for (const Tensor& t : tensors) flat.push_back(t.contiguous().view({-1}));
  if (flat.size() == 1) return flat[0];
  return at::cat(flat);
}
/// The pieces of a flat tensor in the shapes of others.
inline std::vector<Tensor> unflatten_dense_tensors(const Tensor& flat, at::TensorList tensors) {
  std::vector<Tensor> out;
  int64_t offset = 0;
  for (const Tensor& t : tensors) {
    out.push_back(flat.narrow(0, offset, t.numel()).view(t.sizes()));
    offset += t.numel();
  }
  return out;
}
}  // namespace utils

}  // namespace torch

#define TORCH_VERSION_MAJOR 2
#define TORCH_VERSION_MINOR 13
#define TORCH_VERSION_PATCH 0
#define TORCH_VERSION "2.13.0"
