// Kernels of operators other than pointwise ones: cresset/kernel.h for the types that the device computes in.
#pragma once

#include <cresset/cresset.h>
#include <cresset/kernel.h>

#include "copy.h"
#include "launch.h"

namespace cresset_opencl {

using cresset::Scalar;
using Call = cresset::KernelCall;
using Kernel = cresset::DeviceKernel;

/// Registers a kernel for a functional form and, unless null, its out form.
/// `takes`, when given, is asked first, before the Meta kernel: calls that have no shape without their data are not for us.
void give(cresset::Library& m, const char* functional, const char* out, Kernel kernel, bool (*takes)(const Call&) = nullptr);
/// For operators that change their first argument: nothing is allocated, and result() is a contiguous target of its values.
/// Registers the form itself.
void give_in_place(cresset::Library& m, const char* name, Kernel kernel);

/// 0 <= d < ndim for a dimension that may be negative.
inline int64_t wrapped(int64_t d, int64_t ndim) { return d < 0 ? d + std::max<int64_t>(ndim, 1) : d; }
/// The product of sizes[from] to sizes[to - 1].
int64_t product(IntArrayRef sizes, int64_t from, int64_t to);

}  // namespace cresset_opencl
