// ATen/autocast_mode.h: kernels that change types in front of operators, for devices that register them one by one.
#pragma once

#include <cresset_compat/library.h>

#include <cresset/autograd/autocast.h>

namespace at::autocast {

enum class CastPolicy : uint8_t {
  lower_precision_fp = 0,  // computes in the lower precision
  fp32,                    // computes in float32
  fp32_set_opt_dtype,      // has an argument dtype, which becomes float32 unless it is given
  fp32_append_dtype,       // has another overload with a dtype; computes in float32 here
  promote                  // computes in the widest type of its arguments
};

namespace detail {
template <class F>
void for_each_tensor(c10::IValue& v, F f) {
  if (v.isTensor() && v.toTensor().defined()) {
    f(v.toTensor(), [&](Tensor t) { v = c10::IValue(std::move(t)); });
  } else if (v.isTensorList()) {
    std::vector<Tensor> all = v.toTensorVector();
    for (Tensor& one : all) f(Tensor(one), [&](Tensor t) { one = std::move(t); });
    v = c10::IValue(std::move(all));
  }
}

template <CastPolicy policy, c10::DeviceType device>
void cast_kernel(const c10::OperatorHandle& op, c10::Stack* stack) {
  const c10::impl::ExcludeDispatchKeyGuard without(c10::DispatchKeySet(c10::autocastKey(device)));
  const std::size_t n = op.schema().arguments().size(), first = stack->size() - n;
  c10::ScalarType to = policy == CastPolicy::lower_precision_fp ? cresset::autocast::get_autocast_dtype(device) : kFloat;
  bool casts = policy != CastPolicy::fp32_set_opt_dtype;
  for (std::size_t i = 0; i < n; ++i) {
    c10::IValue& v = (*stack)[first + i];
    if constexpr (policy == CastPolicy::promote) {
      if (i == 0) to = cresset::autocast::get_autocast_dtype(device);
      for_each_tensor(v, [&](const Tensor& t, auto&&) {
        if (cresset::autocast::is_eligible(t, device)) to = c10::promoteTypes(to, t.scalar_type());
      });
    }
    if constexpr (policy == CastPolicy::fp32_set_opt_dtype)
      if (op.schema().arguments()[i].name == "dtype" && v.isNone() && (*stack)[first].isTensor() &&
          cresset::autocast::is_eligible((*stack)[first].toTensor(), device))
        v = c10::IValue(kFloat);
  }
  if (casts)
    for (std::size_t i = 0; i < n; ++i)
      for_each_tensor((*stack)[first + i], [&](const Tensor& t, auto&& put) { put(cresset::autocast::cached_cast(to, t, device)); });
  op.callBoxed(stack);
}
}  // namespace detail

}  // namespace at::autocast

#define CRESSET_COMPAT_KERNEL2_(device, op, policy) \
  m.impl(TORCH_SELECTIVE_NAME("aten::" #op),        \
         ::torch::CppFunction::makeFromBoxedFunction<&::at::autocast::detail::cast_kernel<::at::autocast::CastPolicy::policy, device>>());
#define CRESSET_COMPAT_KERNEL3_(device, op, overload, policy) \
  m.impl(TORCH_SELECTIVE_NAME("aten::" #op "." #overload),    \
         ::torch::CppFunction::makeFromBoxedFunction<&::at::autocast::detail::cast_kernel<::at::autocast::CastPolicy::policy, device>>());
#define CRESSET_COMPAT_PICK_KERNEL_(_1, _2, _3, name, ...) name
#define CRESSET_COMPAT_KERNEL_(device, ...) \
  CRESSET_COMPAT_PICK_KERNEL_(__VA_ARGS__, CRESSET_COMPAT_KERNEL3_, CRESSET_COMPAT_KERNEL2_)(device, __VA_ARGS__)
#define KERNEL_PRIVATEUSEONE(...) CRESSET_COMPAT_KERNEL_(::c10::DeviceType::PrivateUse1, __VA_ARGS__)
#define KERNEL_CPU(...) CRESSET_COMPAT_KERNEL_(::c10::DeviceType::CPU, __VA_ARGS__)
