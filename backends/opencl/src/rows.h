// Launches of kernels that work by rows (kernels/rows.cl).
#pragma once

#include "launch.h"

namespace cresset_opencl {

/// Whether a row gets a work group, and the launch itself.
class RowLaunch {
 public:
  /// `defines` without A and GROUPED, which follow from `compute` and the sizes.
  RowLaunch(const Tensor& on, const char* file, const char* name, const std::string& defines, Compute compute, int64_t rows,
            int64_t elements);
  Launch& arguments() { return launch_; }
  void run();

 private:
  bool grouped_;
  Compute compute_;
  int64_t rows_;
  std::size_t items_;
  Launch launch_;
};

}  // namespace cresset_opencl
