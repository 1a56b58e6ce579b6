// Edit distance over operator names.
#include "dispatch/near_misses.h"

#include <algorithm>

namespace cresset::impl {
namespace {
// Levenshtein distance, one row at a time.
std::size_t distance(const std::string& a, const std::string& b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t above = row[j];
      row[j] = std::min({above + 1, row[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1])});
      diagonal = above;
    }
  }
  return row.back();
}
}  // namespace

std::string near_misses(const std::string& name, const std::vector<std::string>& candidates) {
  std::vector<std::pair<std::size_t, const std::string*>> scored;
  const std::size_t limit = std::max<std::size_t>(2, name.size() / 5);
  for (const std::string& c : candidates)
    if (const std::size_t d = distance(name, c); d <= limit || c.rfind(name + ".", 0) == 0) scored.emplace_back(d, &c);
  std::sort(scored.begin(), scored.end(),
            [](const auto& x, const auto& y) { return x.first != y.first ? x.first < y.first : *x.second < *y.second; });
  std::string out;
  for (std::size_t i = 0; i < std::min<std::size_t>(3, scored.size()); ++i) out += (i ? ", " : "") + *scored[i].second;
  return out;
}
}  // namespace cresset::impl
