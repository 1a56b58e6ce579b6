// What generated autograd kernels call out of line.
#include "autograd/generated_support.h"

#include <cresset/ops/functions_arith.h>
#include <cresset/ops/functions_copy.h>
#include <cresset/ops/functions_creation.h>

#include "autograd/nodes.h"

namespace cresset::autograd {

namespace detail {

void append_edges(edge_list& edges, const Tensor& t) {
  if (impl::requires_grad(t))
    edges.push_back(impl::gradient_edge(t));
  else
    edges.emplace_back();
}

void append_edges(edge_list& edges, const std::optional<Tensor>& t) {
  if (t)
    append_edges(edges, *t);
  else
    edges.emplace_back();
}

void append_edges(edge_list& edges, TensorList l) {
  for (const Tensor& t : l) append_edges(edges, t);
}

void append_edges(edge_list& edges, OptionalTensorList l) {
  for (const auto& t : l) append_edges(edges, t);
}

edge_list edges_of(std::initializer_list<const Tensor*> tensors) {
  edge_list edges;
  for (const Tensor* t : tensors) append_edges(edges, *t);
  return edges;
}

}  // namespace detail

void set_history(const Tensor& t, std::shared_ptr<Node>&& node) {
  if (!t.defined() || !isDifferentiableType(t.scalar_type())) {
    node->add_input_metadata(Tensor());
    return;
  }
  const uint32_t nr = node->add_input_metadata(t);
  TensorImpl* impl = t.unsafeGetTensorImpl();
  if (CRESSET_LIKELY(!impl->autograd_meta())) {
    auto meta = std::make_unique<AutogradMeta>();
    meta->grad_fn_ = std::move(node);
    meta->output_nr_ = nr;
    impl->set_autograd_meta(std::move(meta));
    return;
  }
  impl::set_gradient_edge(t, Edge(std::move(node), nr));
}

void set_history(const Tensor& t, const std::shared_ptr<Node>& node) { set_history(t, std::shared_ptr<Node>(node)); }

void rebase_history(const Tensor& self, std::shared_ptr<Node> node) {
  if (!self.defined()) return;
  const uint32_t nr = node->add_input_metadata(self);
  impl::rebase_history(self, Edge(std::move(node), nr));
}

void rebase_history(TensorList list, const std::shared_ptr<Node>& node) {
  for (const Tensor& t : list) rebase_history(t, node);
}

void check_inplace_slow(const Tensor& self, bool any_requires_grad) {
  if (!any_requires_grad || !GradMode::is_enabled()) return;
  const DifferentiableViewMeta* view = impl::get_view_autograd_meta(self);
  if (view && view->has_bw_view()) {
    handle_view_on_rebase(*view);  // how the view came to be says more than whose it is
    // The view may itself be the leaf: arange(6.).view(2, 3).requires_grad_(), whose base has no gradient.
    CRESSET_CHECK(!(impl::requires_grad(self) && view->backward_info().base.is_leaf()),
                  "a view of a leaf Variable that requires grad is being used in an in-place operation.");
  }
  CRESSET_CHECK(!(impl::requires_grad(self) && self.is_leaf()),
                "a leaf Variable that requires grad is being used in an in-place operation.");
}

void throw_error_out_requires_grad(const char* name) {
  CRESSET_THROW(Error, name,
                "(): functions with out=... arguments don't support automatic differentiation, but one of the arguments requires grad.");
}

namespace {
std::string short_name(std::string_view name) {
  if (const auto colons = name.rfind("::"); colons != std::string_view::npos) name.remove_prefix(colons + 2);
  return std::string(name);
}
}  // namespace

void throw_error_out_fw_grad(const char* name) {
  CRESSET_THROW(NotImplementedError, "Trying to use forward AD with ", short_name(name),
                "_out that does not support it because it is an out= function");
}

namespace detail {
void refuse_out(const char* op, bool requires_grad) {
  const std::string name = short_name(op);
  if (requires_grad) throw_error_out_requires_grad(name.c_str());
  throw_error_out_fw_grad(name.c_str());
}

}  // namespace detail

void throw_error_no_forward_ad(const char* name) {
  CRESSET_THROW(NotImplementedError, "Trying to use forward AD with ", short_name(name),
                " that does not support it because it has not been implemented yet.");
}

std::shared_ptr<Node> not_implemented_node(const char* name, edge_list&& next_edges) {
  return make_node<NotImplementedNode>(name, std::move(next_edges));
}

void reset_grad_accumulator(const Tensor& self) {
  if (AutogradMeta* meta = impl::get_autograd_meta(self)) meta->grad_accumulator_.reset();
}

std::vector<SavedVariable> make_saved_variable_list(TensorList list, bool is_output) {
  std::vector<SavedVariable> saved;
  saved.reserve(list.size());
  for (const Tensor& t : list) saved.emplace_back(t, is_output);
  return saved;
}

std::vector<SavedVariable> make_saved_variable_list(OptionalTensorList list, bool is_output) {
  std::vector<SavedVariable> saved;
  saved.reserve(list.size());
  for (const auto& t : list) saved.emplace_back(t, is_output);
  return saved;
}

std::vector<Tensor> unpack_list(const std::vector<SavedVariable>& saved, Node& node) {
  std::vector<Tensor> tensors;
  tensors.reserve(saved.size());
  for (const SavedVariable& s : saved) tensors.push_back(s.unpack_in(node));
  return tensors;
}

std::optional<Tensor> unpack_opt(const SavedVariable& saved, Node& node) {
  Tensor t = saved.unpack_in(node);
  return t.defined() ? std::optional<Tensor>(std::move(t)) : std::nullopt;
}

std::vector<std::optional<Tensor>> unpack_opt_list(const std::vector<SavedVariable>& saved, Node& node) {
  std::vector<std::optional<Tensor>> tensors;
  tensors.reserve(saved.size());
  for (const SavedVariable& s : saved) tensors.push_back(unpack_opt(s, node));
  return tensors;
}

Tensor materialized(const variable_list& grads, std::size_t i, const Node& node) {
  if (grads[i].defined() || node.input_metadata(i).was_default_constructed()) return grads[i];
  return node.input_metadata(i).zeros_like();
}

void copy_range(variable_list& out, IndexRange range, TensorList values) {
  CRESSET_INTERNAL_ASSERT(range.second <= out.size() && range.second - range.first == values.size(), "range [", range.first, ", ",
                          range.second, ") of ", out.size(), " gradients, ", values.size(), " values.");
  std::copy(values.begin(), values.end(), out.begin() + static_cast<std::ptrdiff_t>(range.first));
}

// Strided: a gradient of that layout fits tensors of every other.
Tensor InputMetadata::zeros_like() const { return cresset::zeros(shape_, options().layout(kStrided)); }

void add_tangent(Tensor& sum, const Tensor& t) {
  if (t.defined()) sum = sum.defined() ? sum + t : t;
}

std::vector<DimVector> sizes_of(TensorList list) {
  std::vector<DimVector> out;
  for (const Tensor& t : list) out.emplace_back(t.sizes());
  return out;
}

std::vector<ScalarType> scalar_types_of(TensorList list) {
  std::vector<ScalarType> out;
  for (const Tensor& t : list) out.push_back(t.scalar_type());
  return out;
}

}  // namespace cresset::autograd
