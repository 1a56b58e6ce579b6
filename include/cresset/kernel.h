// For kernels of a device that only compute: KernelCall, register_kernel, and the fallback for what they leave out.
#pragma once

#include <cresset/ops/cpu_fallback.h>
#include <cresset/ops/kernel_call.h>
