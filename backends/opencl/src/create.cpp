// Ranges, triangles, running sums, concatenation and padding.
#include "backend.h"
#include "call.h"

namespace cresset_opencl {
namespace {

std::string types(const Tensor& out, Compute c) { return std::string("-DT=") + type_letter(out.scalar_type()) + " -DA=" + compute_name(c); }

// arange.start_out(start, end, step, out): the shape rule is in front of it. Registered as the functional form's out form only.
Tensor& arange(const Scalar& start, const Scalar& end, const Scalar& step, Tensor& out) {
  const Scalar zero(0);
  CRESSET_CHECK(step.toDouble() != 0, "step must be nonzero");
  const bool whole = out.scalar_type() == cresset::kLong || (start.isIntegral(true) && end.isIntegral(true) && step.isIntegral(true));
  const double span = std::ceil((end.toDouble() - start.toDouble()) / step.toDouble());
  CRESSET_CHECK(span >= 0, "upper bound and lower bound inconsistent with step sign");
  const auto exact = whole ? (end.toLong() - start.toLong() + step.toLong() + (step.toLong() > 0 ? -1 : 1)) / step.toLong() : 0;
  const int64_t n = whole ? exact : static_cast<int64_t>(span);
  if (out.numel() != n) cresset::resize_(out, {n});
  const Compute compute = compute_of(out.scalar_type());
  if (n == 0) return out;
  const Tensor target = out.is_contiguous() ? out : cresset::empty(out.sizes(), out.options());
  if (!computes(device_of(out), out.scalar_type()) || (compute == Compute::Int && !whole)) {
    cresset::_copy_from(cresset::arange(start, end, step, out.options().device(cresset::Device(cresset::kCPU))), out, false);
    return out;
  }
  {
    Launch launch(out, "create", "arange", types(out, compute) + " -DX=f32");
    launch.tensor(target).value<cl_ulong>(n);
    if (compute == Compute::Long)
      launch.value<cl_long>(start.toLong()).value<cl_long>(step.toLong());
    else
      launch.number(compute, start.toDouble()).number(compute, step.toDouble());
    launch.run(static_cast<std::size_t>(n));
  }
  if (!target.is_same(out)) cresset::_copy_from(target, out, false);
  return out;
}

// tril(self, diagonal), triu(self, diagonal)
template <bool Upper>
bool triangle(Call& c) {
  const Tensor x = dense(c.tensor(0));
  if (x.numel() == 0) return true;
  const int64_t d = x.dim();
  Launch launch(x, "create", "triangle", types(x, compute_of(x.scalar_type())) + " -DX=f32 -DUPPER=" + (Upper ? "1" : "0"));
  launch.tensor(x).tensor(c.result()).value<cl_ulong>(x.numel()).value<cl_ulong>(x.size(d - 2)).value<cl_ulong>(x.size(d - 1));
  launch.value<cl_long>(c.integer(1));
  launch.run(static_cast<std::size_t>(x.numel()));
  return true;
}

// cumsum(self, dim, dtype), cumprod(self, dim, dtype)
template <bool Products>
bool cumulate(Call& c) {
  const Tensor x = dense(c.tensor(0));
  if (x.numel() == 0 || x.dim() == 0) return false;
  const int64_t d = wrapped(c.integer(1), x.dim()), inner = product(x.sizes(), d + 1, x.dim()), lines = x.numel() / x.size(d);
  const Compute out = compute_of(c.result().scalar_type()), in = compute_of(x.scalar_type());
  const bool from_float = in == Compute::Float || in == Compute::Double;
  if (from_float && (out == Compute::Int || out == Compute::Long)) return false;  // elements are rounded first
  Launch launch(x, "create", "cumulate",
                types(c.result(), out == Compute::Int ? Compute::Long : out) + " -DX=" + type_letter(x.scalar_type()) +
                    " -DPRODUCTS=" + (Products ? "1" : "0"));
  launch.tensor(x).tensor(c.result()).value<cl_ulong>(lines).value<cl_ulong>(x.size(d)).value<cl_ulong>(inner);
  launch.run(static_cast<std::size_t>(lines));
  return true;
}

// cat(tensors, dim)
bool cat(Call& c) {
  const Tensor& out = c.result();
  if (out.dim() == 0) return false;
  const int64_t d = wrapped(c.integer(1), out.dim());
  int64_t at = 0;
  for (const Tensor& t : c.tensors(0)) {
    if (t.dim() == 1 && t.numel() == 0) continue;
    if (t.numel() > 0) cresset::_copy_from(t, out.narrow(d, at, t.size(d)), false);
    at += t.size(d);
  }
  return true;
}

// constant_pad_nd(self, pad, value): pairs from the last dimension on; negative ones cut.
bool pad(Call& c) {
  Tensor inside = c.result(), from = c.tensor(0);
  const std::vector<int64_t> pads = c.ints(1);
  if (c.scalar(2).isComplex() || !fill_on_device(inside, c.scalar(2))) return false;
  for (std::size_t i = 0; i + 1 < pads.size(); i += 2) {
    const int64_t d = from.dim() - 1 - static_cast<int64_t>(i / 2), before = pads[i], after = pads[i + 1];
    const int64_t cut = std::max<int64_t>(-before, 0), kept = from.size(d) - cut - std::max<int64_t>(-after, 0);
    if (kept <= 0) return true;
    from = from.narrow(d, cut, kept);
    inside = inside.narrow(d, std::max<int64_t>(before, 0), kept);
  }
  if (from.numel() > 0) cresset::_copy_from(from, inside, false);
  return true;
}

}  // namespace
}  // namespace cresset_opencl

CRESSET_BACKEND_IMPL(cresset_opencl::OpenCl, aten, m) {
  using namespace cresset_opencl;
  m.impl("arange.start_out", &arange);
  give(m, "tril", "tril.out", &triangle<false>);
  give(m, "triu", "triu.out", &triangle<true>);
  give(m, "cumsum", "cumsum.out", &cumulate<false>);
  give(m, "cumprod", "cumprod.out", &cumulate<true>);
  give(m, "cat", "cat.out", &cat);
  give(m, "constant_pad_nd", "constant_pad_nd.out", &pad);
}
