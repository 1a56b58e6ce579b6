// How many processors this process may use.
#include "base/processors.h"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <sstream>
#include <thread>

namespace cresset {
namespace {

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// "200000 100000": microseconds of each period. Anything else ("max 100000", nothing, a quota of -1) is no limit.
double quotient(const std::string& text) {
  std::istringstream words(text);
  double quota = 0, period = 0;
  return words >> quota >> period && quota > 0 && period > 0 ? quota / period : 0;
}

double quota_of(const std::string& folder) {
  if (const double q = quotient(text_of(folder + "/cpu.max")); q > 0) return q;
  return quotient(text_of(folder + "/cpu.cfs_quota_us") + " " + text_of(folder + "/cpu.cfs_period_us"));
}

int allowed_processors() {
  cpu_set_t set;  // of 1024; where there are more, the system refuses
  if (sched_getaffinity(0, sizeof set, &set) == 0) return std::max(CPU_COUNT(&set), 1);
  return static_cast<int>(std::max(std::thread::hardware_concurrency(), 1u));
}

}  // namespace

double processor_quota(const std::string& groups, const std::string& root) {
  double tightest = 0;
  std::istringstream lines(groups);
  for (std::string line; std::getline(lines, line);) {  // "0::/a/b" (version 2), "4:cpu,cpuacct:/a/b" (version 1)
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    if (!controllers.empty() && ("," + controllers + ",").find(",cpu,") == std::string::npos) continue;
    std::string group = line.substr(second + 1);
    for (;;) {
      if (group == "/") group.clear();
      for (const std::string& mount : {std::string(), "/" + controllers, std::string("/cpu")})
        if (const double q = quota_of(root + mount + group); q > 0) tightest = tightest > 0 ? std::min(tightest, q) : q;
      if (group.empty()) break;
      group.resize(group.rfind('/') == std::string::npos ? 0 : group.rfind('/'));
    }
  }
  return tightest;
}

int usable_processors() {
  const int allowed = allowed_processors();
  const double quota = processor_quota(text_of("/proc/self/cgroup"), "/sys/fs/cgroup");
  return quota > 0 ? std::clamp(static_cast<int>(std::ceil(std::min(quota, 1e6))), 1, allowed) : allowed;
}

}  // namespace cresset
