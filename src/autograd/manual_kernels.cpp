// Autograd and ADInplaceOrView kernels of the operators that change what a tensor is and not only its values.
#include <cresset/dispatch/library.h>
#include <cresset/ops/redispatch_view.h>

#include "autograd/generated_support.h"

namespace cresset::autograd {
namespace {

Tensor& detach_inplace(Tensor& self) {
  CRESSET_CHECK(
      !self.is_view(),
      "Can't detach views in-place. Use detach() instead. If you are using DistributedDataParallel (DDP) for training, and "
      "gradient_as_bucket_view is set as True, gradients are views of DDP buckets, and hence detach_() cannot be called on these "
      "gradients. To fix this error, please refer to the Optimizer.zero_grad() function in torch/optim/optimizer.py as the solution.");
  if (AutogradMeta* meta = impl::get_autograd_meta(self)) {
    meta->requires_grad_ = false;
    impl::set_gradient_edge(self, Edge());
    meta->fw_grad_.reset();
  }
  return self;
}

void check_resize(const Tensor& self) {
  CRESSET_CHECK(!impl::requires_grad(self), "cannot resize variables that require grad");
  CRESSET_CHECK(!any_fw_grad(self), "cannot resize variables that has a forward grad");
}

Tensor& resize_autograd(DispatchKeySet ks, Tensor& self, IntArrayRef size, std::optional<MemoryFormat> memory_format) {
  check_resize(self);
  return redispatch::resize_(ks & after_autograd_keyset, self, size, memory_format);
}
Tensor& resize_view(DispatchKeySet ks, Tensor& self, IntArrayRef size, std::optional<MemoryFormat> memory_format) {
  const DimVector before(self.sizes());
  if (self.sizes() != size || memory_format) check_write(self);
  {
    AutoDispatchBelowADInplaceOrView guard;
    redispatch::resize_(ks & after_ADInplaceOrView_keyset, self, size, memory_format);
  }
  if (self.sizes() != IntArrayRef(before)) increment_version(self);
  return self;
}

Tensor& resize_as_autograd(DispatchKeySet ks, Tensor& self, const Tensor& the_template, std::optional<MemoryFormat> memory_format) {
  check_resize(self);
  return redispatch::resize_as_(ks & after_autograd_keyset, self, the_template, memory_format);
}
Tensor& resize_as_view(DispatchKeySet ks, Tensor& self, const Tensor& the_template, std::optional<MemoryFormat> memory_format) {
  const DimVector before(self.sizes());
  if (self.sizes() != the_template.sizes() || memory_format) check_write(self);
  {
    AutoDispatchBelowADInplaceOrView guard;
    redispatch::resize_as_(ks & after_ADInplaceOrView_keyset, self, the_template, memory_format);
  }
  if (self.sizes() != IntArrayRef(before)) increment_version(self);
  return self;
}

/// The values come from elsewhere now: the history ends in a node that says so.
template <class Call, class... Sources>
Tensor& set_autograd(Tensor& self, const Call& call, const Sources&... sources) {
  const bool record = compute_requires_grad(self, sources...);
  check_inplace(self, record);
  if (any_fw_grad(self, sources...)) throw_error_no_forward_ad("aten::set_");
  std::shared_ptr<Node> node;
  if (record) node = not_implemented_node("aten::set_", collect_next_edges(self, sources...));
  {
    AutoDispatchBelowAutograd guard;
    call();
  }
  if (node)
    rebase_history(self, std::move(node));
  else
    reset_grad_accumulator(self);  // what was recorded before asked for the gradient of other values
  return self;
}

Tensor& set_source_autograd(DispatchKeySet ks, Tensor& self, const Tensor& source) {
  return set_autograd(self, [&] { redispatch::set__source_Tensor(ks & after_autograd_keyset, self, source); }, source);
}
Tensor& set_source_view(DispatchKeySet ks, Tensor& self, const Tensor& source) {
  check_write(self);
  {
    AutoDispatchBelowADInplaceOrView guard;
    redispatch::set__source_Tensor(ks & after_ADInplaceOrView_keyset, self, source);
  }
  increment_version(self);
  return self;
}

Tensor& set_empty_autograd(DispatchKeySet ks, Tensor& self) {
  return set_autograd(self, [&] { redispatch::set_(ks & after_autograd_keyset, self); });
}
Tensor& set_empty_view(DispatchKeySet ks, Tensor& self) {
  check_write(self);
  {
    AutoDispatchBelowADInplaceOrView guard;
    redispatch::set_(ks & after_ADInplaceOrView_keyset, self);
  }
  increment_version(self);
  return self;
}

}  // namespace

CRESSET_LIBRARY_IMPL(aten, Autograd, m) {
  m.impl("detach_", CRESSET_FN(detach_inplace));
  m.impl("resize_", CRESSET_FN(resize_autograd));
  m.impl("resize_as_", CRESSET_FN(resize_as_autograd));
  m.impl("set_.source_Tensor", CRESSET_FN(set_source_autograd));
  m.impl("set_", CRESSET_FN(set_empty_autograd));
}

CRESSET_LIBRARY_IMPL(aten, ADInplaceOrView, m) {
  m.impl("resize_", CRESSET_FN(resize_view));
  m.impl("resize_as_", CRESSET_FN(resize_as_view));
  m.impl("set_.source_Tensor", CRESSET_FN(set_source_view));
  m.impl("set_", CRESSET_FN(set_empty_view));
}

}  // namespace cresset::autograd
