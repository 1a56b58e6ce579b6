#include "rows.h"

namespace cresset_opencl {
namespace {
constexpr int64_t kShort = 256;      // a row of so many elements is one work item's
constexpr int64_t kManyRows = 4096;  // and so is any row when there are so many
constexpr int64_t kLanes = 16;       // of kernels/vectors.cl
}  // namespace

RowLaunch::Way RowLaunch::way_of(const ClDevice& d, const Rows& rows) {
  if (d.facts().is_cpu && rows.side_by_side >= kLanes) return Way::Vectors;
  if (d.facts().is_cpu && rows.rows_side_by_side >= kLanes) return Way::Columns;
  return rows.elements > kShort && rows.count < kManyRows ? Way::Group : Way::Item;
}

const char* RowLaunch::define_of(Way way) {
  switch (way) {
    case Way::Group: return " -DGROUPED=1";
    case Way::Vectors: return " -DVECTORS=1";
    case Way::Columns: return " -DCOLUMNS=1";
    default: return "";
  }
}

RowLaunch::RowLaunch(const Tensor& on, const char* file, const char* name, const std::string& defines, Compute compute, const Rows& rows)
    : way_(way_of(device_of(on), rows)),
      rows_(rows),
      compute_(compute),
      group_size_(group_size(device_of(on), 64)),
      launch_(on, file, name, defines + " -DA=" + compute_name(compute) + define_of(way_)) {}

void RowLaunch::run() {
  const auto count = static_cast<std::size_t>(rows_.count), side_by_side = static_cast<std::size_t>(rows_.rows_side_by_side);
  switch (way_) {
    case Way::Item: return launch_.run(count);
    case Way::Vectors: return launch_.run_apart(count);
    case Way::Columns: return launch_.run_apart(count / side_by_side * ((side_by_side + kLanes - 1) / kLanes));
    case Way::Group:
      launch_.local(group_size_ * (compute_ == Compute::Double ? 8 : 4));
      return launch_.run_groups({count, 1, 1}, {group_size_, 1, 1});
  }
}

}  // namespace cresset_opencl
