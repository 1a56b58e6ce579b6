#include "rows.h"

namespace cresset_opencl {
namespace {
constexpr int64_t kShort = 256;      // a row of so many elements is one work item's
constexpr int64_t kManyRows = 4096;  // and so is any row when there are so many
}  // namespace

RowLaunch::RowLaunch(const Tensor& on, const char* file, const char* name, const std::string& defines, Compute compute, int64_t rows,
                     int64_t elements, int64_t side_by_side)
    : vectors_(device_of(on).facts().is_cpu && side_by_side >= 16),
      grouped_(!vectors_ && elements > kShort && rows < kManyRows),
      compute_(compute),
      rows_(rows),
      items_(group_size(device_of(on), 64)),
      launch_(on, (file + std::string(vectors_ ? "_vectors" : "")).c_str(), name,
              defines + " -DA=" + compute_name(compute) + (grouped_ ? " -DGROUPED=1" : "")) {}

void RowLaunch::run() {
  if (vectors_) return launch_.run_apart(static_cast<std::size_t>(rows_));
  if (!grouped_) return launch_.run(static_cast<std::size_t>(rows_));
  launch_.local(items_ * (compute_ == Compute::Double ? 8 : 4));
  launch_.run_groups({static_cast<std::size_t>(rows_), 1, 1}, {items_, 1, 1});
}

}  // namespace cresset_opencl
