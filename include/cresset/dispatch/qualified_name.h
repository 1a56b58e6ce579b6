// QualifiedName: a name of parts with dots between them, "__torch__.pkg.Block".
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include <cresset/base/error.h>

namespace cresset {

class QualifiedName {
 public:
  QualifiedName() = default;
  QualifiedName(std::string name) : text_(std::move(name)) {
    CRESSET_CHECK(!text_.empty() && text_.front() != '.' && text_.back() != '.' && text_.find("..") == std::string::npos,
                  "QualifiedName: parts with dots between them were required; '", text_, "' was given.");
  }
  QualifiedName(const char* name) : QualifiedName(std::string(name)) {}
  explicit QualifiedName(const std::vector<std::string>& parts) {
    for (const std::string& part : parts) text_ += (text_.empty() ? "" : ".") + part;
  }
  QualifiedName(const QualifiedName& prefix, const std::string& name)
      : QualifiedName(prefix.text_.empty() ? name : prefix.text_ + "." + name) {}
  /// All of it.
  const std::string& qualifiedName() const { return text_; }
  /// What stands before the last dot; empty without one.
  std::string prefix() const {
    const std::size_t dot = text_.rfind('.');
    return dot == std::string::npos ? std::string() : text_.substr(0, dot);
  }
  /// The last part.
  std::string name() const { return text_.substr(text_.rfind('.') + 1); }
  std::vector<std::string> atoms() const {
    std::vector<std::string> out;
    for (std::size_t begin = 0; begin < text_.size();) {
      const std::size_t end = std::min(text_.find('.', begin), text_.size());
      out.push_back(text_.substr(begin, end - begin));
      begin = end + 1;
    }
    return out;
  }
  operator const std::string&() const { return text_; }
  operator std::string_view() const { return text_; }
  bool isPrefixOf(const QualifiedName& other) const {
    return other.text_.starts_with(text_) && (other.text_.size() == text_.size() || other.text_[text_.size()] == '.');
  }
  friend bool operator==(const QualifiedName&, const QualifiedName&) = default;

 private:
  std::string text_;
};

}  // namespace cresset
