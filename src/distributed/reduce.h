// Reductions of values of one type in memory: out[i] = a[i] op b[i].
#pragma once

#include <cstddef>

#include <cresset/distributed/types.h>

namespace cresset::distributed {

using ReduceFunction = void (*)(void* out, const void* a, const void* b, std::size_t n);

/// For the values on the way; AVG and PREMUL_SUM are sums there. ValueError for an operation that the type does not have.
ReduceFunction reduce_function(ReduceOp::RedOpType op, ScalarType type);

}  // namespace cresset::distributed
