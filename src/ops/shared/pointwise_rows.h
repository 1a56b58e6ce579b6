// Rows by name: pointwise rows that say more than rule and classes, as backends find them.
#pragma once

#include <cresset/base/array_ref.h>

#include <string_view>

namespace cresset::ops {

/// Names with overloads ("pow.Tensor_Scalar") of pointwise_rows_with_facts(), in their order.
ArrayRef<std::string_view> pointwise_names_with_facts();

}  // namespace cresset::ops
