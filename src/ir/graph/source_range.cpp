// Source texts and ranges.
#include <cresset/ir/source_range.h>

#include <algorithm>

#include <cresset/base/error.h>

namespace cresset::jit {

Source::Source(std::string text, std::string filename, std::size_t first_line)
    : text_(std::move(text)), filename_(std::move(filename)), first_line_(first_line) {
  CRESSET_CHECK(text_.size() < UINT32_MAX, "Source: a text below 4 GiB was required; ", text_.size(), " bytes were given.");
  line_starts_.push_back(0);
  for (std::size_t i = 0; i < text_.size(); ++i)
    if (text_[i] == '\n') line_starts_.push_back(i + 1);
}

std::pair<std::size_t, std::size_t> Source::line_and_column(std::size_t offset) const {
  const auto after = std::upper_bound(line_starts_.begin(), line_starts_.end(), offset);
  const auto index = static_cast<std::size_t>(after - line_starts_.begin()) - 1;
  return {first_line_ + index, offset - line_starts_[index]};
}

std::string_view Source::line_text(std::size_t line) const {
  if (line < first_line_ || line - first_line_ >= line_starts_.size()) return {};
  const std::size_t index = line - first_line_, start = line_starts_[index];
  const std::size_t end = index + 1 < line_starts_.size() ? line_starts_[index + 1] - 1 : text_.size();
  return std::string_view(text_).substr(start, end - start);
}

namespace {
uint32_t narrow(std::size_t place) { return static_cast<uint32_t>(std::min<std::size_t>(place, UINT32_MAX)); }
}  // namespace

SourceRange::SourceRange(std::shared_ptr<const Source> source, std::size_t start, std::size_t end)
    : source_(std::move(source)), start_(narrow(start)), end_(narrow(end)) {
  if (!source_) return;
  const auto [line, column] = source_->line_and_column(start);
  line_ = narrow(line);
  column_ = narrow(column);
}

SourceRange SourceRange::at(std::string filename, std::size_t line, std::size_t column) {
  SourceRange r;
  r.source_ = std::make_shared<const Source>(std::string(), std::move(filename), 1);
  r.line_ = narrow(line);
  r.column_ = narrow(column);
  return r;
}

const std::string& SourceRange::filename() const {
  static const std::string none;
  return source_ ? source_->filename() : none;
}

std::optional<std::tuple<std::string, std::size_t, std::size_t>> SourceRange::file_line_col() const {
  if (filename().empty()) return std::nullopt;
  return std::tuple(filename(), line(), column());
}

std::string SourceRange::str() const {
  if (!source_) return {};
  return filename() + ":" + std::to_string(line_) + ":" + std::to_string(column_);
}

std::string SourceRange::highlight() const {
  if (!source_) return {};
  const std::string_view text = source_->line_text(line_);
  std::string out;
  if (!filename().empty()) out += "  File \"" + filename() + "\", line " + std::to_string(line_) + "\n";
  if (text.empty()) return out;
  // Long lines (constants) are shown around the place only.
  constexpr std::size_t kShown = 160;
  const std::size_t from = column_ > kShown ? column_ - kShown : 0;
  const std::string_view shown = text.substr(from, column_ - from + kShown);
  const std::size_t marked = std::max<std::size_t>(
      1, std::min<std::size_t>(end_ > start_ ? end_ - start_ : 1, shown.size() - std::min(shown.size(), column_ - from)));
  return out + std::string(shown) + "\n" + std::string(column_ - from, ' ') + std::string(marked, '~') + " <--- HERE";
}

}  // namespace cresset::jit
