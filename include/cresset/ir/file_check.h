// FileCheck: a text, such as a graph's, must contain given pieces in a given order.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <cresset/base/macros.h>

namespace cresset::jit {

class Graph;

namespace testing {

/// Checks that run over a text, each behind the match of the one before:
///
///   FileCheck().check("aten::mul")->check_not("aten::add")->check_next("return")->run(*graph);
///
/// run() raises with the text and the place when a check fails. One that never ran says so when it goes.
class CRESSET_API FileCheck {
 public:
  FileCheck() = default;
  FileCheck(const FileCheck&) = delete;
  ~FileCheck();

  /// The text occurs behind the last match.
  FileCheck* check(const std::string& text) { return add(Kind::check, text); }
  /// The text does not occur between the matches before and behind this check.
  FileCheck* check_not(const std::string& text) { return add(Kind::check_not, text); }
  /// The text occurs behind the last match in the same line.
  FileCheck* check_same(const std::string& text) { return add(Kind::check_same, text); }
  /// The text occurs in the line behind the last match.
  FileCheck* check_next(const std::string& text) { return add(Kind::check_next, text); }
  /// The text occurs `count` times behind the last match; exactly: not once more.
  FileCheck* check_count(const std::string& text, std::size_t count, bool exactly = false);
  /// Neighbouring checks of this kind match in any order.
  FileCheck* check_dag(const std::string& text) { return add(Kind::check_dag, text); }
  /// The text occurs and is marked with ~ in the line below.
  FileCheck* check_source_highlighted(const std::string& text) { return add(Kind::check_source_highlighted, text); }
  /// A match of the regular expression (ECMAScript's, without back references) occurs behind the last match.
  FileCheck* check_regex(const std::string& pattern) { return add(Kind::check_regex, pattern); }

  void run(const std::string& text);
  void run(const Graph& graph);
  /// With checks written as comments: `# CHECK: …`, `# CHECK-NEXT: …`.
  void run(const std::string& checks, const std::string& text);
  void run(const std::string& checks, const Graph& graph);

  /// The checks, one a line, and whether they have run.
  std::string str() const;

  enum class Kind : uint8_t { check, check_not, check_same, check_next, check_count, check_dag, check_source_highlighted, check_regex };
  struct Check {
    Kind kind;
    std::string text;
    std::size_t count = 0;
    /// "CHECK-NEXT: text".
    std::string str() const;
  };

 private:
  FileCheck* add(Kind kind, std::string text, std::size_t count = 0);
  void add_from(std::string_view comments);
  std::vector<Check> checks_;
  bool has_run_ = false;
};

}  // namespace testing
}  // namespace cresset::jit
