// Communication between processes under PyTorch's names: backends, process groups, stores, work.
#pragma once

#include <pybind11/chrono.h>

#include <cresset_compat/python.h>

#include <cresset/distributed/backend.h>
#include <cresset/distributed/debug.h>

namespace c10d {
using namespace cresset::distributed;
using cresset::DistBackendError;
using cresset::DistError;
using cresset::DistNetworkError;
using cresset::DistStoreError;
}  // namespace c10d
