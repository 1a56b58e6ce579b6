// Where a node comes from: a piece of a source text, or only file, line and column.
#pragma once

#include <concepts>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include <cresset/base/macros.h>

namespace cresset::jit {

/// A source text (shorter than 4 GiB) with its name and the line its first line has in the file. The text may be unknown (empty).
class CRESSET_API Source {
 public:
  explicit Source(std::string text, std::string filename = {}, std::size_t first_line = 1);
  /// A name that may be unknown. (A template, so that a literal is a std::string.)
  template <std::same_as<std::optional<std::string>> Name>
  Source(std::string text, const Name& filename, std::size_t first_line) : Source(std::move(text), filename.value_or(""), first_line) {}
  explicit Source(std::string_view text) : Source(std::string(text)) {}
  explicit Source(const char* text) : Source(std::string(text)) {}
  const std::string& text() const { return text_; }
  const std::string& filename() const { return filename_; }
  std::size_t first_line() const { return first_line_; }
  /// Line number in the file (from 1) and column (from 0) of an offset.
  std::pair<std::size_t, std::size_t> line_and_column(std::size_t offset) const;
  /// Lines counted from 0 in this text.
  std::size_t lineno_for_offset(std::size_t offset) const { return line_and_column(offset).first - first_line_; }
  /// The text of the line with this number in the file, without its end.
  std::string_view line_text(std::size_t line) const;

 private:
  std::string text_, filename_;
  std::size_t first_line_;
  std::vector<std::size_t> line_starts_;
};

class CRESSET_API SourceRange {
 public:
  SourceRange() = default;
  SourceRange(std::shared_ptr<const Source> source, std::size_t start, std::size_t end);
  /// A place in a file whose text is not at hand.
  static SourceRange at(std::string filename, std::size_t line, std::size_t column);

  bool known() const { return source_ != nullptr; }
  const std::shared_ptr<const Source>& source() const { return source_; }
  std::size_t start() const { return start_; }
  std::size_t end() const { return end_; }
  std::size_t line() const { return line_; }
  std::size_t column() const { return column_; }
  const std::string& filename() const;
  /// Where the file is known.
  std::optional<std::tuple<std::string, std::size_t, std::size_t>> file_line_col() const;
  /// "file:line:column", empty when unknown.
  std::string str() const;
  /// The line with a mark below the range, as errors show it.
  std::string highlight() const;
  friend bool operator==(const SourceRange& a, const SourceRange& b) {
    return a.known() == b.known() && (!a.known() || (a.line_ == b.line_ && a.column_ == b.column_ && a.filename() == b.filename()));
  }

 private:
  std::shared_ptr<const Source> source_;
  uint32_t start_ = 0, end_ = 0, line_ = 0, column_ = 0;  // every node has a range
};
/// A function on the stack of a traced program: its name (the member is called as PyTorch's) and a place.
struct StackEntry {
  std::string filename;
  SourceRange range;
};
inline std::string to_string(const SourceRange& r) { return r.str(); }

}  // namespace cresset::jit
