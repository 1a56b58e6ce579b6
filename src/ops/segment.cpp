// Reductions of runs: checks, shape rule and gradient.
#include "ops/ops_decl_segment.h"

#include <limits>
#include <string_view>

#include <cresset/ops/functions_arith.h>
#include <cresset/ops/functions_compare.h>
#include <cresset/ops/functions_concat.h>
#include <cresset/ops/functions_copy.h>
#include <cresset/ops/functions_creation.h>
#include <cresset/ops/functions_index.h>
#include <cresset/ops/functions_reduce.h>
#include <cresset/ops/functions_segment.h>
#include <cresset/ops/functions_sort.h>
#include <cresset/ops/functions_view.h>

#include "ops/shared/shape_util.h"

namespace cresset::ops {

TensorSpec segment_reduce_shape(const Tensor& data, std::string_view reduce, const std::optional<Tensor>& lengths,
                                const std::optional<Tensor>& indices, const std::optional<Tensor>& offsets, int64_t axis, bool,
                                const std::optional<Scalar>&) {
  axis = maybe_wrap_dim(axis, data.dim());
  bool known = false;
  for (const char* name : {"sum", "prod", "mean", "max", "min", "amax", "amin"}) known |= reduce == name;
  CRESSET_CHECK(!indices || !indices->defined(), "segment_reduce(): indices based reduction is not supported yet.");
  const bool by_offsets = offsets && offsets->defined();
  CRESSET_CHECK(by_offsets || (lengths && lengths->defined()), "segment_reduce(): Either lengths or offsets must be defined.");
  CRESSET_CHECK(known, "reduce argument must be either sum, prod, mean, amax or amin, got ", reduce);
  const Tensor& runs = by_offsets ? *offsets : *lengths;
  const char* const what = by_offsets ? "offsets" : "lengths";
  CRESSET_CHECK(data.dim() >= runs.dim(), "segment_reduce(): data of at least as many dimensions as ", what, " was required; data has ",
                data.dim(), ", ", what, " has ", runs.dim(), ".");
  CRESSET_CHECK(axis == runs.dim() - 1, "segment_reduce(): Expected axis to be the last dimension of ", what, " but got ", axis, ".");
  for (int64_t d = 0; d < axis; ++d)
    CRESSET_CHECK(runs.size(d) == data.size(d), "segment_reduce(): ", what, " of data's sizes before the axis were required; ", what,
                  " has sizes ", runs.sizes(), ", data has ", data.sizes(), ".");
  CRESSET_CHECK_NOT_IMPLEMENTED(isIntegralType(runs.scalar_type(), false), "\"_segment_reduce_", what,
                                "_cpu_kernel1\" not implemented for '", runs.scalar_type(), "'");
  CRESSET_CHECK_NOT_IMPLEMENTED(data.is_floating_point(), "\"_segment_reduce_cpu\" not implemented for '", data.scalar_type(), "'");
  CRESSET_CHECK(!by_offsets || runs.size(axis) > 0, "segment_reduce(): at least one offset was required; offsets has sizes ", runs.sizes(),
                ".");
  CRESSET_CHECK(by_offsets || runs.numel() > 0,
                "min(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with the 'dim' argument.");
  DimVector sizes(data.sizes());
  sizes[axis] = by_offsets ? runs.size(axis) - 1 : runs.size(axis);
  return spec_like(data, sizes);
}

namespace {

// Runs as seen from the elements of data.
struct Places {
  Tensor run;     // int64, of data's sizes: the run that an element belongs to (any when it belongs to none)
  Tensor inside;  // bool: does it belong to one?
  int64_t axis;

  // What each run has, at its elements; zero elsewhere.
  Tensor spread(const Tensor& by_run) const {
    const Tensor values = cresset::gather(by_run, axis, run);
    return cresset::where(inside, values, cresset::zeros_like(values));
  }
};

Places places(const Tensor& data, const Tensor& offsets, int64_t axis) {
  const int64_t runs = offsets.size(axis) - 1, n = data.size(axis);
  DimVector sizes(data.sizes().slice(0, static_cast<std::size_t>(axis) + 1));
  const Tensor position = cresset::arange(n, offsets.options()).expand(sizes).contiguous();
  // The run of an element is the number of runs that end at or before it.
  const Tensor ends = cresset::slice(offsets, axis, 1, runs + 1, 1).contiguous();
  const Tensor run = cresset::searchsorted(ends, position, /*out_int32=*/false, /*right=*/true);
  const Tensor inside = cresset::logical_and(cresset::lt(run, runs), cresset::ge(position, cresset::slice(offsets, axis, 0, 1, 1)));
  const auto over_data = [&](Tensor t) {
    while (t.dim() < data.dim()) t = t.unsqueeze(-1);
    return t.expand(data.sizes());
  };
  return {over_data(cresset::clamp_max(run, runs - 1)), over_data(inside), axis};
}

}  // namespace

Tensor segment_reduce_backward_impl(const Tensor& grad, const Tensor& output, const Tensor& data, std::string_view reduce,
                                    const std::optional<Tensor>& lengths, const std::optional<Tensor>& offsets, int64_t axis,
                                    const std::optional<Scalar>& initial) {
  const TensorSpec spec = segment_reduce_shape(data, reduce, lengths, std::nullopt, offsets, axis, true, initial);
  for (const Tensor* t : {&grad, &output})
    CRESSET_CHECK(t->sizes() == IntArrayRef(spec.sizes), "_segment_reduce_backward: grad and output of sizes ", spec.sizes,
                  " were required; got ", t->sizes(), ".");
  axis = maybe_wrap_dim(axis, data.dim());
  Tensor bounds;
  if (offsets && offsets->defined()) {
    bounds = offsets->to(kLong);
  } else {
    const Tensor ends = cresset::cumsum(lengths->to(kLong), axis);
    bounds = cresset::cat({cresset::zeros_like(cresset::slice(ends, axis, 0, 1, 1)), ends}, axis);
  }
  if (spec.sizes[axis] == 0 || data.numel() == 0) return cresset::zeros_like(data);
  const Places at = places(data, bounds, axis);
  const auto sum = [&](const Tensor& t) {
    return cresset::segment_reduce(t, "sum", std::nullopt, std::nullopt, bounds, axis, /*unsafe=*/true);
  };
  if (reduce == "sum") return at.spread(grad);
  if (reduce == "mean") return at.spread(cresset::div(grad, cresset::clamp_min(sum(cresset::ones_like(data)), 1)));
  if (reduce != "prod") {
    const Tensor extreme = at.spread(output);
    const Tensor equal =
        cresset::logical_or(cresset::eq(data, extreme), cresset::logical_and(cresset::isnan(data), cresset::isnan(extreme)));
    const Tensor share = equal.to(data.scalar_type());
    return cresset::mul(at.spread(cresset::div(grad, cresset::clamp_min(sum(share), 1))), share);
  }
  // The product of the others: nan beside another nan, 0 beside another zero, else the product of all that is neither / element.
  const Tensor zero = cresset::eq(data, 0), nan = cresset::isnan(data);
  const Tensor rest = cresset::masked_fill(data, cresset::logical_or(zero, nan), 1);
  const Tensor product = cresset::segment_reduce(rest, "prod", std::nullopt, std::nullopt, bounds, axis, /*unsafe=*/true, initial);
  const auto beside_another = [&](const Tensor& flags) {
    const Tensor ones = flags.to(data.scalar_type());
    return cresset::gt(at.spread(sum(ones)), ones);
  };
  Tensor others = cresset::div(at.spread(product), rest);
  others = cresset::masked_fill(others, beside_another(zero), 0);
  others = cresset::masked_fill(others, beside_another(nan), std::numeric_limits<double>::quiet_NaN());
  return cresset::mul(others, at.spread(grad));
}

}  // namespace cresset::ops
