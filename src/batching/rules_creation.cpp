// Rules of ranges whose ends are batches.
#include <cresset/dispatch/library.h>
#include <cresset/ops/functions_concat.h>
#include <cresset/ops/functions_creation.h>
#include <cresset/ops/functions_view.h>

#include "batching/batch_call.h"

namespace cresset::batching {
namespace {

using Dtype = std::optional<ScalarType>;
using Pin = std::optional<bool>;

Tensor end_of(const Tensor& end) { return end; }
Tensor end_of(const Scalar& end) { return cresset::scalar_tensor(end, TensorOptions(end.type())); }

/// The ranges of all examples from make(start, end, type). As in PyTorch the ends say the type, and a number counts as a tensor of its
/// own type, where the range of a single call has the default one.
template <class Make>
Tensor ranges(const Tensor& start, const Tensor& end, int64_t steps, Dtype dtype, const Make& make) {
  const Batch b(start, end);
  const ScalarType common = promote_types(start.scalar_type(), end.scalar_type());
  const ScalarType type = dtype ? *dtype : isIntegralType(common, true) ? get_default_dtype() : common;
  if (b.size() == 0) return b.wrap(cresset::empty({0, steps}, TensorOptions(type)));
  const std::vector<Tensor> starts = cresset::unbind(b.full(start), 0), ends = cresset::unbind(b.full(end), 0);
  std::vector<Tensor> rows;
  for (std::size_t i = 0; i < starts.size(); ++i) rows.push_back(make(starts[i], ends[i], type));
  return b.wrap(cresset::stack(rows, 0));
}

template <class Start, class End>
Tensor linspace_rule(const Start& start, const End& end, int64_t steps, Dtype dtype, std::optional<Layout> layout,
                     std::optional<Device> device, Pin pin_memory) {
  return ranges(end_of(start), end_of(end), steps, dtype, [&](const Tensor& from, const Tensor& to, ScalarType type) {
    return cresset::linspace(from, to, steps, type, layout, device, pin_memory);
  });
}

template <class Start, class End>
Tensor logspace_rule(const Start& start, const End& end, int64_t steps, double base, Dtype dtype, std::optional<Layout> layout,
                     std::optional<Device> device, Pin pin_memory) {
  return ranges(end_of(start), end_of(end), steps, dtype, [&](const Tensor& from, const Tensor& to, ScalarType type) {
    return cresset::logspace(from, to, steps, base, type, layout, device, pin_memory);
  });
}

}  // namespace

CRESSET_LIBRARY_IMPL(aten, FuncTorchBatched, m) {
  m.impl("linspace.Tensor_Tensor", CRESSET_FN((linspace_rule<Tensor, Tensor>)));
  m.impl("linspace.Tensor_Scalar", CRESSET_FN((linspace_rule<Tensor, Scalar>)));
  m.impl("linspace.Scalar_Tensor", CRESSET_FN((linspace_rule<Scalar, Tensor>)));
  m.impl("logspace.Tensor_Tensor", CRESSET_FN((logspace_rule<Tensor, Tensor>)));
  m.impl("logspace.Tensor_Scalar", CRESSET_FN((logspace_rule<Tensor, Scalar>)));
  m.impl("logspace.Scalar_Tensor", CRESSET_FN((logspace_rule<Scalar, Tensor>)));
}

}  // namespace cresset::batching
