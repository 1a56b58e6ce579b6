// at::jit::CodeTemplate: text with names in it that an environment replaces.
#pragma once

#include <cctype>
#include <sstream>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <cresset_compat/macros.h>

namespace at::jit {

/// What the names of a template stand for: texts (s), numbers (d) or lists (v). What is not here is looked for in the parent.
struct TemplateEnv {
  TemplateEnv() = default;
  explicit TemplateEnv(TemplateEnv& parent) : parent_(&parent) {}
  TemplateEnv(const TemplateEnv&) = delete;
  TemplateEnv& operator=(const TemplateEnv&) = delete;

  void s(const std::string& name, const std::string& text) {
    lists_.erase(name);
    texts_[name] = text;
  }
  template <class T>
  void d(const std::string& name, const T& number) {
    s(name, std::to_string(number));
  }
  void v(const std::string& name, const std::vector<std::string>& elements) {
    texts_.erase(name);
    lists_[name] = elements;
  }
  bool keyIsString(const std::string& name) const {
    for (const TemplateEnv* env = this; env != nullptr; env = env->parent_) {
      if (env->texts_.contains(name)) return true;
      if (env->lists_.contains(name)) return false;
    }
    TORCH_CHECK(false, "CodeTemplate: '", name, "' has no value in the environment.");
  }
  const std::string& s(const std::string& name) const { return find(&TemplateEnv::texts_, name); }
  const std::vector<std::string>& v(const std::string& name) const { return find(&TemplateEnv::lists_, name); }

 private:
  template <class Map>
  const typename Map::mapped_type& find(Map TemplateEnv::*kind, const std::string& name) const {
    for (const TemplateEnv* env = this; env != nullptr; env = env->parent_)
      if (const auto at = (env->*kind).find(name); at != (env->*kind).end()) return at->second;
    TORCH_CHECK(false, "CodeTemplate: '", name, "' has no value of this kind in the environment.");
  }
  std::unordered_map<std::string, std::string> texts_;
  std::unordered_map<std::string, std::vector<std::string>> lists_;
  TemplateEnv* parent_ = nullptr;
};

/// `$name` and `${name}` are replaced. A list at the beginning of a line gives one line each, with the indentation of that line, as do
/// the lines of a text; elsewhere in a line the elements are joined by `, `. `${,name}` has a comma in front of a list that is not
/// empty, `${name,}` one behind it.
struct CodeTemplate {
  CodeTemplate(std::string text) : template_text(std::move(text)) {}

  std::string format(const TemplateEnv& env) const {
    std::ostringstream out;
    std::size_t at = 0, indent = 0;
    bool only_spaces = true;  // in this line, so far
    while (at < template_text.size()) {
      const char c = template_text[at];
      const Name name = c == '$' ? name_at(at) : Name{};
      if (name.text.empty()) {
        if (c == '\n') {
          only_spaces = true;
          indent = 0;
        } else if (only_spaces && c == ' ') {
          ++indent;
        } else {
          only_spaces = false;
        }
        out << c;
        ++at;
        continue;
      }
      const bool in_text = env.keyIsString(name.text);
      if (only_spaces)
        write_lines(out, in_text ? std::vector<std::string>{env.s(name.text)} : env.v(name.text), indent);
      else if (in_text)
        out << env.s(name.text);
      else
        write_list(out, env.v(name.text), name);
      only_spaces = false;
      at = name.end;
    }
    return out.str();
  }

  std::string template_text;

 private:
  struct Name {
    std::string text;
    bool comma_before = false, comma_after = false;
    std::size_t end = 0;
  };
  static bool in_names(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }
  /// The name behind the `$` at a place; no text when that is only a sign.
  Name name_at(std::size_t at) const {
    Name name;
    const auto is = [&](char c) { return at < template_text.size() && template_text[at] == c; };
    ++at;
    const bool braces = is('{');
    at += braces;
    name.comma_before = braces && is(',');
    at += name.comma_before;
    while (at < template_text.size() && in_names(template_text[at])) name.text += template_text[at++];
    name.comma_after = braces && is(',');
    at += name.comma_after;
    if (braces) {
      TORCH_CHECK(is('}') && !name.text.empty(), "CodeTemplate: '${' has no name and '}' behind it.");
      ++at;
    }
    name.end = at;
    return name;
  }
  static void write_lines(std::ostream& out, const std::vector<std::string>& elements, std::size_t indent) {
    for (std::size_t i = 0; i < elements.size(); ++i) {
      if (i > 0) out << '\n' << std::string(indent, ' ');
      for (const char c : elements[i]) {
        out << c;
        if (c == '\n') out << std::string(indent, ' ');
      }
    }
  }
  static void write_list(std::ostream& out, const std::vector<std::string>& elements, const Name& name) {
    if (elements.empty()) return;
    if (name.comma_before) out << ", ";
    for (std::size_t i = 0; i < elements.size(); ++i) out << (i > 0 ? ", " : "") << elements[i];
    if (name.comma_after) out << ", ";
  }
};

}  // namespace at::jit
