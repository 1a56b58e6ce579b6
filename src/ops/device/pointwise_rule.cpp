// The pointwise rule as device backends see it.
#include <cresset/ops/pointwise_rule.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "ops/shared/pointwise.h"
#include "ops/shared/pointwise_rows.h"

namespace cresset {
namespace {

// What the row of that name and overload says beside rule and classes.
const ops::PointwiseFacts* facts_of(std::string_view name) {
  const auto rows = ops::pointwise_rows_with_facts();
  const auto names = ops::pointwise_names_with_facts();
  const auto found = std::find(names.begin(), names.end(), name);
  return found == names.end() ? nullptr : rows[static_cast<std::size_t>(found - names.begin())]->facts;
}

// The call in the words of the tree; borrows from `from` and from itself.
struct Inner {
  explicit Inner(const PointwiseArguments& from)
      : name(std::string_view(from.name).substr(0, std::string_view(from.name).find('.'))),
        op{name.c_str(), from.rule, from.classes, ops::OutDtype::Castable, facts_of(from.name)},
        checked{},
        call{} {
    CRESSET_CHECK(from.tensors.size() >= 1 && from.tensors.size() <= ops::kMaxPointwiseInputs &&
                      from.scalars.size() <= ops::kMaxPointwiseScalars && from.others.size() <= checked.size(),
                  from.name, ": a pointwise operator has 1 to ", ops::kMaxPointwiseInputs, " tensors, at most ", ops::kMaxPointwiseScalars,
                  " promoting scalars and ", checked.size(), " others; given ", from.tensors.size(), ", ", from.scalars.size(), " and ",
                  from.others.size(), ".");
    for (std::size_t i = 0; i < from.others.size(); ++i)
      checked[i] = {from.others[i].name, from.others[i].value, follows(from.others[i].name)};
    call = {.inputs = from.tensors.data(),
            .num_inputs = static_cast<int>(from.tensors.size()),
            .scalars = from.scalars.data(),
            .num_scalars = static_cast<int>(from.scalars.size()),
            .checked = checked.data(),
            .num_checked = static_cast<int>(from.others.size())};
  }
  Inner(const Inner&) = delete;
  Inner& operator=(const Inner&) = delete;

  bool follows(std::string_view name) const {
    return op.facts && std::find(op.facts->follows.begin(), op.facts->follows.end(), name) != op.facts->follows.end();
  }

  std::string name;  // without overload, for texts of errors
  ops::PointwiseOp op;
  std::array<ops::CheckedScalar, 8> checked;
  ops::PointwiseCall call;
};

}  // namespace

PointwiseTypes pointwise_types(const PointwiseArguments& call) {
  const Inner inner(call);
  return ops::pointwise_types(inner.op, inner.call);
}

Tensor pointwise_result(const PointwiseArguments& call) {
  const Inner inner(call);
  return ops::pointwise_allocate(inner.op, inner.call);
}

void pointwise_prepare(const PointwiseArguments& call, const Tensor& out, bool in_place) {
  const Inner inner(call);
  ops::pointwise_prepare_out(inner.op, inner.call, out, in_place);
}

}  // namespace cresset
