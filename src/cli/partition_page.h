// A page of segments: what would become engines, and why the rest does not.
#pragma once

#include <string>

#include <cresset/engine/partition.h>

namespace cresset::cli {

/// Raises with the path where the file cannot be written.
void write_partition_page(const std::string& file, const std::string& title, const engine::Partition& partition);

}  // namespace cresset::cli
