// ScriptError's message: what is wrong, the lines with marks, and the functions that were being compiled.
#include "ir/frontend/script_error.h"

#include <algorithm>

#include <cresset/ir/error_report.h>

#include "ir/frontend/sugared_value.h"

namespace cresset::jit {
namespace {

struct CompiledFunction {
  std::string function;
  SourceRange call;  // the call in this function that is being compiled
};
std::vector<CompiledFunction>& frames() {
  thread_local const auto frames = std::make_unique<std::vector<CompiledFunction>>();  // on the heap: thread-local storage is scarce
  return *frames;
}

std::string marked(const SourceRange& range, const std::string& message) {
  return "\n" + message + (range.known() ? ":\n" + source_excerpt(range) : "\n");
}
std::string calls_of_now() {
  std::string out;
  const std::vector<CompiledFunction>& calls = frames();
  for (std::size_t i = calls.size(); i-- > 1;) {
    if (!calls[i - 1].call.known()) continue;
    out += "'" + calls[i].function + "' is being compiled since it was called from '" + calls[i - 1].function + "'\n" +
           source_excerpt(calls[i - 1].call);
  }
  return out;
}
std::string message_of(const SourceRange& range, const std::string& message) { return marked(range, message) + calls_of_now(); }

}  // namespace

ErrorReport::ErrorReport(SourceRange range) : range_(std::move(range)), calls_(calls_of_now()) {}
ErrorReport::ErrorReport(const ErrorReport& o)
    : std::exception(o), words_(o.words_.str(), std::ios::ate), range_(o.range_), calls_(o.calls_) {}
ErrorReport::~ErrorReport() = default;
const char* ErrorReport::what() const noexcept {
  message_ = marked(range_, words_.str()) + calls_;
  return message_.c_str();
}
std::string ErrorReport::current_call_stack() { return calls_of_now(); }
ErrorReport::CallStack::CallStack(const std::string& name, const SourceRange& range) {
  update_pending_range(range);
  frames().push_back({name, {}});
}
ErrorReport::CallStack::~CallStack() { frames().pop_back(); }
void ErrorReport::CallStack::update_pending_range(const SourceRange& range) {
  if (!frames().empty()) frames().back().call = range;
}

CompilingFunction::CompilingFunction(std::string name) { frames().push_back({std::move(name), {}}); }
CompilingFunction::~CompilingFunction() { frames().pop_back(); }

CallPlace::CallPlace(const SourceRange& range) {
  // What compiles the call knows only its callee.
  is_set_ = !frames().empty() && !frames().back().call.known();
  if (is_set_) frames().back().call = range;
}
CallPlace::~CallPlace() {
  if (is_set_) frames().back().call = SourceRange();
}

std::string source_excerpt(const SourceRange& range) {
  constexpr std::size_t kAround = 2, kLongLine = 160;
  const Source& source = *range.source();
  if (source.text().empty()) return range.highlight() + "\n";
  const std::size_t end = std::max(range.start() + 1, std::min(range.end(), source.text().size()));
  const std::size_t first = range.line(), last = source.line_and_column(end - 1).first;
  const std::size_t last_line =
      source.first_line() + static_cast<std::size_t>(std::count(source.text().begin(), source.text().end(), '\n'));
  const std::size_t from = std::max(source.first_line(), first > kAround ? first - kAround : 1), to = std::min(last + kAround, last_line);
  for (std::size_t line = from; line <= std::min(to, from + 2 * kAround + 32); ++line)
    if (source.line_text(line).size() > kLongLine) return range.highlight() + "\n";
  std::string out = range.filename().empty() ? "" : "  File \"" + range.filename() + "\", line " + std::to_string(first) + "\n";
  std::size_t offset = range.start() - range.column();  // where the line of the range begins
  for (std::size_t line = from; line <= to; ++line) {
    const std::string_view text = source.line_text(line);
    if (line > last && line == last_line && text.empty()) break;
    out += std::string(text) + "\n";
    if (line < first || line > last) continue;
    // The marks go from the first to the last character of the range in this line.
    std::size_t begin = line == first ? range.column() : text.find_first_not_of(" \t");
    const std::size_t stop = std::min(text.size(), end - offset);
    if (begin == std::string_view::npos || begin > stop) begin = stop;
    std::string marks(text.substr(0, begin));
    for (char& c : marks) c = c == '\t' ? '\t' : ' ';
    marks += std::string(std::max<std::size_t>(stop - begin, line == last ? 1 : 0), '~');
    if (line == last) marks += " <--- HERE";
    if (marks.find_first_not_of(" \t") != std::string::npos) out += marks + "\n";
    offset += text.size() + 1;
  }
  return out;
}

ScriptError::ScriptError(const SourceRange& range, const std::string& message) : Error(message_of(range, message)) {}
ScriptError::~ScriptError() = default;
NotSupportedError::~NotSupportedError() = default;
UnsupportedNodeError::~UnsupportedNodeError() = default;

void script_error(const SourceRange& range, const std::string& message) { throw ScriptError(range, message); }

}  // namespace cresset::jit
