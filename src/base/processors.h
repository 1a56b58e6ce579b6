// How many processors this process may use.
#pragma once

#include <string>

#include <cresset/base/macros.h>

namespace cresset {

/// Processors that the process is allowed on (its affinity), at most what its control group pays for; at least 1.
CRESSET_API int usable_processors();

/// Processors' worth of time that control groups allow, 0 without a limit. `groups` is the text of /proc/self/cgroup, `root` where the
/// groups are mounted. The tightest limit of a group and those around it counts, of version 1 and 2.
CRESSET_API double processor_quota(const std::string& groups, const std::string& root);

}  // namespace cresset
