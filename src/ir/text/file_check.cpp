// FileCheck: where checks match, and what their failures say.
#include <cresset/ir/file_check.h>

#include <algorithm>
#include <array>
#include <iostream>
#include <regex>
#include <unordered_map>

#include <cresset/base/error.h>
#include <cresset/ir/ir.h>

namespace cresset::jit::testing {

namespace {

using Check = FileCheck::Check;
using Kind = FileCheck::Kind;

constexpr std::array<std::string_view, 8> kNames = {
    "CHECK", "CHECK-NOT", "CHECK-SAME", "CHECK-NEXT", "CHECK-COUNT", "CHECK-DAG", "CHECK-SOURCE-HIGHLIGHTED", "CHECK-REGEX"};

struct Span {
  std::size_t begin, end;
};

// The matcher of libstdc++ recurses for each character and would end the process on long texts; the one that goes breadth-first, which has
// no back references, does not.
std::regex pattern_of(const std::string& text) {
  auto flags = std::regex_constants::ECMAScript;
#ifdef __GLIBCXX__
  flags |= std::regex_constants::__polynomial;
#endif
  try {
    return std::regex(text, flags);
  } catch (const std::regex_error& e) {
    CRESSET_THROW(Error, "FileCheck: a regular expression was required; '", text, "' is none: ", e.what(), ".");
  }
}

/// One run of checks over a text.
class Run {
 public:
  Run(const std::string& text, const std::vector<Check>& checks) : text_(text), checks_(checks) {}

  void run() {
    std::size_t position = 0;
    std::vector<const Check*> refused;  // CHECK-NOT in front of the next match
    for (std::size_t i = 0; i < checks_.size();) {
      if (checks_[i].kind == Kind::check_not) {
        refused.push_back(&checks_[i++]);
        continue;
      }
      const Span found = checks_[i].kind == Kind::check_dag ? dag(i, position) : one(checks_[i++], position);
      refuse(refused, position, found.begin);
      refused.clear();
      position = found.end;
    }
    refuse(refused, position, text_.size());
  }

 private:
  [[noreturn]] void fail(const std::string& message, std::size_t at, const Check& check, std::size_t length = 1) const {
    const std::size_t end = std::min(text_.find('\n', at), text_.size());
    const std::size_t start = at == 0 ? 0 : text_.rfind('\n', at - 1) + 1;
    const std::string mark = std::string(at - start, ' ') + std::string(std::max<std::size_t>(length, 1), '~') + " <--- HERE";
    CRESSET_THROW(Error, message + "\n" + text_.substr(0, end) + "\n" + mark + text_.substr(end) + "\nFrom " + check.str() + "\n");
  }

  Span find(const Check& check, std::size_t start) const {
    const std::size_t found = text_.find(check.text, start);
    if (found == std::string::npos)
      fail("Expected to find \"" + check.text + "\" but did not find it\nSearched string:", start, check, check.text.size());
    return {found, found + check.text.size()};
  }

  void refuse(std::string_view text, const Check& check, std::size_t start, std::size_t end) const {
    const std::size_t found = text_.find(text, start);
    if (found != std::string::npos && found + text.size() <= end)
      fail("Expected to not find \"" + std::string(text) + "\" but found it", found, check, text.size());
  }
  void refuse(const std::vector<const Check*>& checks, std::size_t start, std::size_t end) const {
    for (const Check* check : checks) refuse(check->text, *check, start, end);
  }

  /// The first occurrences of a group that begins at `i`; equal texts need occurrences of their own. Moves `i` behind the group.
  Span dag(std::size_t& i, std::size_t start) const {
    Span all{text_.size(), start};
    std::unordered_map<std::string, std::size_t> following;
    for (; i < checks_.size() && checks_[i].kind == Kind::check_dag; ++i) {
      std::size_t& from = following.try_emplace(checks_[i].text, start).first->second;
      const Span found = find(checks_[i], from);
      from = found.end;
      all = {std::min(all.begin, found.begin), std::max(all.end, found.end)};
    }
    return all;
  }

  Span one(const Check& check, std::size_t position) const {
    switch (check.kind) {
      case Kind::check_count: {
        Span all{position, position};
        for (std::size_t n = 0; n < check.count; ++n) {
          const Span found = find(check, all.end);
          all = {n == 0 ? found.begin : all.begin, found.end};
        }
        return all;
      }
      case Kind::check_regex: {
        std::smatch match;
        if (!std::regex_search(text_.begin() + static_cast<std::ptrdiff_t>(position), text_.end(), match, pattern_of(check.text)))
          fail("Expected to find regex \"" + check.text + "\" but did not find it\nSearched string:", position, check);
        const auto begin = position + static_cast<std::size_t>(match.position());
        return {begin, begin + static_cast<std::size_t>(match.length())};
      }
      case Kind::check_same:
      case Kind::check_next: {
        const Span found = find(check, position);
        if (check.kind == Kind::check_same) {
          refuse("\n", check, position, found.begin);
        } else {
          const std::size_t line = text_.find('\n', position);
          if (line == std::string::npos || line >= found.begin)
            fail("Expected to find \"" + check.text + "\" in the next line but found it in the same", found.begin, check,
                 check.text.size());
          refuse("\n", check, line + 1, found.begin);
        }
        return found;
      }
      case Kind::check_source_highlighted: return highlighted(check, position);
      default: return find(check, position);
    }
  }

  Span highlighted(const Check& check, std::size_t position) const {
    for (std::size_t at = position;;) {
      const Span found = find(check, at);
      const std::size_t start = found.begin == 0 ? 0 : text_.rfind('\n', found.begin - 1) + 1;
      const std::size_t line_end = text_.find('\n', found.end);
      std::string_view below;
      if (line_end != std::string::npos) below = std::string_view(text_).substr(line_end + 1);
      below = below.substr(0, below.find('\n'));
      const std::size_t left = found.begin - start, right = found.end - start;
      const auto mark_at = [&](std::size_t i) { return i < below.size() && below[i] == '~'; };
      bool marked = !(left > 0 && mark_at(left - 1)) && !mark_at(right);
      for (std::size_t i = left; marked && i < right; ++i) marked = mark_at(i);
      if (marked) return {found.begin, line_end + 1 + below.size()};
      if (text_.find(check.text, found.end) == std::string::npos)
        fail("Expected to find \"" + check.text + "\" highlighted but it is not.", found.begin, check, check.text.size());
      at = found.end;
    }
  }

  const std::string& text_;
  const std::vector<Check>& checks_;
};

}  // namespace

std::string FileCheck::Check::str() const {
  std::string name(kNames[static_cast<std::size_t>(kind)]);
  if (kind == Kind::check_count) name += "-" + std::to_string(count);
  return name + ": " + text;
}

FileCheck::~FileCheck() {
  if (!has_run_) std::cout << str() << std::endl;
}

std::string FileCheck::str() const {
  std::string all = has_run_ ? "" : "You have not run this instance of FileCheck!\n";
  all += "FileCheck checks:\n";
  for (const Check& check : checks_) all += "\t" + check.str() + "\n";
  return all;
}

FileCheck* FileCheck::add(Kind kind, std::string text, std::size_t count) {
  checks_.push_back({kind, std::move(text), count});
  return this;
}

FileCheck* FileCheck::check_count(const std::string& text, std::size_t count, bool exactly) {
  CRESSET_CHECK(count > 0 || exactly, "FileCheck: a count of at least 1 was required; 0 was given.");
  add(Kind::check_count, text, count);
  return exactly ? add(Kind::check_not, text) : this;
}

namespace {
[[noreturn]] void refuse_comment(std::string_view comments, std::size_t at) {
  const std::size_t line = comments.rfind('\n', at == 0 ? 0 : at - 1) + 1, end = std::min(comments.find('\n', at), comments.size());
  std::string marked(comments.substr(0, end));
  if (at < comments.size()) {
    marked += "\n" + std::string(at - line, ' ') + "~ <--- HERE\n";
    if (end < comments.size()) marked += std::string(comments.substr(end + 1)) + "\n";
  }
  CRESSET_THROW(Error, "Could not parse check at:\n", marked, "Check for bad input.");
}
}  // namespace

void FileCheck::add_from(std::string_view comments) {
  static const std::regex rest("([A-Z0-9-]*):[ \t]*(.*?)[ \t\r]*"), counted("-COUNT-(EXACTLY-)?([0-9]{1,18})");
  constexpr std::string_view kWord = "CHECK";
  for (std::size_t at = comments.find('#'); at != std::string_view::npos; at = comments.find('#', at)) {
    const std::size_t word = comments.find_first_not_of(" \t", at + 1);
    if (word == std::string_view::npos || !comments.substr(word).starts_with(kWord)) {
      at = std::min(word, comments.size());
      if (at < comments.size()) at += comments[at] == '#';  // "##" begins no check
      continue;
    }
    const std::size_t name_at = word + kWord.size(), end = std::min(comments.find('\n', name_at), comments.size());
    const std::string line(comments.substr(name_at, end - name_at));
    std::smatch match, count;
    if (!std::regex_match(line, match, rest)) refuse_comment(comments, name_at);
    const std::string name = match[1];
    const auto* known = std::ranges::find(kNames, std::string(kWord) + name);
    if (std::regex_match(name, count, counted))
      check_count(match[2], std::stoull(count[2]), count[1].matched);
    else if (known != kNames.end() && name != "-COUNT")
      add(static_cast<Kind>(known - kNames.begin()), match[2]);
    else
      refuse_comment(comments, name_at);
    at = end;
  }
}

void FileCheck::run(const std::string& text) {
  has_run_ = true;
  CRESSET_CHECK(!checks_.empty(), "No checks have been added to this instance of FileCheck! Check for bad input.");
  Run(text, checks_).run();
}
void FileCheck::run(const Graph& graph) { run(graph.toString()); }
void FileCheck::run(const std::string& checks, const std::string& text) {
  has_run_ = true;
  add_from(checks);
  run(text);
}
void FileCheck::run(const std::string& checks, const Graph& graph) { run(checks, graph.toString()); }

}  // namespace cresset::jit::testing
