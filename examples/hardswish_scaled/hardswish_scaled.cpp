// demo::hardswish_scaled(x, scale) = scale * x * relu6(x + 3) / 6 (Howard et al. 2019), with its own gradient.
//
// The forward kernel is for the CPU key; the Autograd key gets a Function that records the gradient and goes on to
// the kernel of whichever device the tensor is on.
#include <cresset/extension.h>

#include <algorithm>

namespace {

using cresset::Tensor;
using cresset::autograd::AutogradContext;
using cresset::autograd::variable_list;

Tensor hardswish_scaled_cpu(const Tensor& x, double scale) {
  CRESSET_CHECK(x.is_floating_point(), "hardswish_scaled: a floating-point tensor was required; ", x, " was given.");
  const Tensor in = x.contiguous(), out = cresset::empty_like(in);
  CRESSET_DISPATCH(in.scalar_type(), "hardswish_scaled", CRESSET_FLOATING_TYPES, [&] {
    const auto* from = in.const_data_ptr<scalar_t>();
    auto* to = out.mutable_data_ptr<scalar_t>();
    for (int64_t i = 0; i < in.numel(); ++i) {
      const auto v = from[i];
      to[i] = static_cast<scalar_t>(scale) * v * std::clamp<scalar_t>(v + 3, 0, 6) / 6;
    }
  });
  return out;
}

Tensor hardswish_scaled(const Tensor& x, double scale) {
  static const auto op =
      cresset::Dispatcher::singleton().findSchemaOrThrow("demo::hardswish_scaled", "").typed<Tensor(const Tensor&, double)>();
  return op.call(x, scale);
}

struct HardswishScaled : cresset::autograd::Function<HardswishScaled> {
  static Tensor forward(AutogradContext* ctx, Tensor x, double scale) {
    ctx->save_for_backward({x});
    ctx->saved_data["scale"] = scale;
    const cresset::AutoDispatchBelowADInplaceOrView below_autograd;
    return hardswish_scaled(x, scale);
  }
  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    const Tensor x = ctx->get_saved_variables()[0];
    const double scale = ctx->saved_data["scale"].toDouble();
    // 0 below -3, 1 above 3, (2x + 3) / 6 between.
    const Tensor slope =
        cresset::where(x <= -3.0, cresset::zeros_like(x), cresset::where(x >= 3.0, cresset::ones_like(x), (x * 2 + 3) / 6));
    return {grads[0] * slope * scale, Tensor()};
  }
};

Tensor hardswish_scaled_autograd(const Tensor& x, double scale) { return HardswishScaled::apply(x, scale); }

}  // namespace

CRESSET_LIBRARY(demo, m) { m.def("hardswish_scaled(Tensor x, float scale=1.0) -> Tensor"); }
CRESSET_LIBRARY_IMPL(demo, CPU, m) { m.impl("hardswish_scaled", &hardswish_scaled_cpu); }
CRESSET_LIBRARY_IMPL(demo, Autograd, m) { m.impl("hardswish_scaled", &hardswish_scaled_autograd); }
