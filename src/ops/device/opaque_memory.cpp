// Views on devices without direct memory access (CRESSET_OPAQUE_MEMORY): functionalisation with write-back.
//
// A tensor of such a device is a recipe, sizes, strides and offset, over the block of its base; making a view changes
// nothing but the recipe. The block is the only place where elements are, so base and views always agree. In front of a
// kernel every argument that is not its whole block becomes a dense copy, and what the kernel has written goes back
// through the recipe behind it. Both directions are `_copy_from`, which knows offsets.
#include <algorithm>

#include <cresset/core/backend.h>
#include <cresset/dispatch/library.h>
#include <cresset/ops/functions_copy.h>

#include "dispatch/tags.h"
#include "ops/shared/structured.h"
#include "ops/shared/written_arguments.h"

namespace cresset::ops {
namespace {

bool is_opaque(const Tensor& t) { return t.defined() && t.has_storage() && t.key_set().has(DispatchKey::Functionalize); }

// Is the tensor all of its block, in one of the orders without holes?
bool is_whole(const Tensor& t) { return t.storage_offset() == 0 && t.is_non_overlapping_and_dense() && t.nbytes() == t.storage().nbytes(); }

Tensor gathered(const Tensor& t) {
  const Tensor dense = allocate({DimVector(t.sizes()), t.scalar_type(), t.device(), std::nullopt}, t.device());
  if (t.numel() > 0) cresset::_copy_from(t, dense, false);
  return dense;
}

// Does the operator look at recipes only, or copy by itself?
bool passes(const OperatorHandle& op) {
  const std::string_view name = op.operator_name().name;
  if (name == "aten::_copy_from" || name == "aten::copy_" || name == "aten::rename_" || has_tag(op, "inplace_view")) return true;
  const auto& returns = op.schema().returns();
  return std::any_of(returns.begin(), returns.end(), [](const Argument& r) {
    if (!r.alias) return false;
    return (!r.alias->is_write && !r.alias->before.empty()) || (r.alias->contained && !r.alias->contained->is_write);
  });
}

// The arguments of one call as the kernel gets them, and what has to go back.
class Gathering {
 public:
  bool any = false;

  IValue argument(const IValue& v, bool written) {
    if (v.isTensor()) return is_opaque(v.toTensor()) && !is_whole(v.toTensor()) ? IValue(replace(v.toTensor(), written)) : v;
    if (!v.isList()) return v;
    const ivalue::ListImpl* list = &v.toListImpl();
    const auto needs = [](const IValue& e) { return e.isTensor() && is_opaque(e.toTensor()) && !is_whole(e.toTensor()); };
    if (std::none_of(list->elements.begin(), list->elements.end(), needs)) return v;
    std::vector<IValue> elements = list->elements;
    for (IValue& e : elements)
      if (needs(e)) e = replace(e.toTensor(), written);
    return make_intrusive<ivalue::ListImpl>(std::move(elements), list->element_type);
  }

  void write_back() const {
    for (const auto& [view, dense] : written_) {
      if (view.sizes() == dense.sizes()) {
        if (view.numel() > 0) cresset::_copy_from(dense, view, false);
        continue;
      }
      // A kernel gave its out argument other sizes: the view follows.
      Tensor target = view;
      target.resize_(dense.sizes());
      cresset::_copy_from(dense, target, false);
    }
  }

  // A result that is a written argument is the caller's tensor, not the copy.
  void restore(IValue& result) const {
    if (!result.isTensor()) return;
    for (const auto& [view, dense] : written_)
      if (result.toTensor().is_same(dense)) {
        result = view;
        return;
      }
  }

 private:
  Tensor replace(const Tensor& t, bool written) {
    any = true;
    Tensor dense = gathered(t);
    if (written) written_.emplace_back(t, dense);
    return dense;
  }
  std::vector<std::pair<Tensor, Tensor>> written_;
};

void functionalize(const OperatorHandle& op, DispatchKeySet ks, Stack* stack) {
  const DispatchKeySet below = ks & DispatchKeySet(DispatchKeySet::FULL_AFTER, DispatchKey::Functionalize);
  if (passes(op)) return op.redispatchBoxed(below, stack);
  const auto& arguments = op.schema().arguments();
  const std::size_t n = arguments.size(), first = stack->size() - n;
  Gathering gathering;
  for (std::size_t i = 0; i < n; ++i) {
    IValue& v = (*stack)[first + i];
    v = gathering.argument(v, is_written(op.schema(), arguments[i]));
  }
  op.redispatchBoxed(below, stack);
  if (!gathering.any) return;
  gathering.write_back();
  for (std::size_t i = first; i < stack->size(); ++i) gathering.restore((*stack)[i]);
}

const RegistrationHandleRAII registration = Dispatcher::singleton().registerFallback(
    DispatchKey::Functionalize, KernelFunction::makeFromBoxedFunction<&functionalize>(), str("registered at ", __FILE__, ":", __LINE__));

}  // namespace
}  // namespace cresset::ops
