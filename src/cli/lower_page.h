// A page that steps through the passes of a lowering.
#pragma once

#include <string>
#include <vector>

namespace cresset::cli {

/// One pass: the graph's text before and behind it.
struct Step {
  std::string name, summary;
  bool changed;
  double seconds;
  std::vector<std::string> notes;
  std::string before, after;
};

/// One HTML file without references to others.
void write_page(const std::string& file, const std::string& title, const std::vector<Step>& steps);

}  // namespace cresset::cli
