// Launches of kernels that work by rows (kernels/rows.cl).
#pragma once

#include "launch.h"

namespace cresset_opencl {

/// Whether a row gets a work group, and the launch itself.
class RowLaunch {
 public:
  /// `defines` without A and GROUPED, which follow from `compute` and the sizes. Where sixteen elements of a row lie `side_by_side`,
  /// processors run the kernel of <file>_vectors.cl instead, which takes its own arguments.
  RowLaunch(const Tensor& on, const char* file, const char* name, const std::string& defines, Compute compute, int64_t rows,
            int64_t elements, int64_t side_by_side = 0);
  bool vectors() const { return vectors_; }
  Launch& arguments() { return launch_; }
  void run();

 private:
  bool vectors_;
  bool grouped_;
  Compute compute_;
  int64_t rows_;
  std::size_t items_;
  Launch launch_;
};

}  // namespace cresset_opencl
