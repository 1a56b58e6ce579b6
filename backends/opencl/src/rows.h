// Launches of kernels that work by rows (kernels/rows.cl).
#pragma once

#include "launch.h"

namespace cresset_opencl {

struct Rows {
  int64_t count;
  int64_t elements;      // of each
  int64_t side_by_side;  // so many elements of a row lie in a line
  int64_t rows_side_by_side = 1;
};

/// Which work items do a row, and the launch itself.
class RowLaunch {
 public:
  /// `defines` without A and those of kernels/rows.cl, which follow from `compute` and the rows. Processors take sixteen elements at a
  /// time, or sixteen rows.
  RowLaunch(const Tensor& on, const char* file, const char* name, const std::string& defines, Compute compute, const Rows& rows);
  Launch& arguments() { return launch_; }
  void run();

 private:
  enum class Way : uint8_t { Item, Group, Vectors, Columns };
  static Way way_of(const ClDevice& d, const Rows& rows);
  static const char* define_of(Way way);

  Way way_;
  Rows rows_;
  Compute compute_;
  std::size_t group_size_;
  Launch launch_;
};

}  // namespace cresset_opencl
