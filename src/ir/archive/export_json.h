// JSON of exported programs: every access says where it is when something is missing or of another kind.
#pragma once

#include <nlohmann/json.hpp>

#include <cresset/base/error.h>

namespace cresset::jit::exported {

/// A piece of the document and its path.
class Field {
 public:
  Field(const nlohmann::json& json, std::string path) : json_(&json), path_(std::move(path)) {}
  /// Parses a text; `name` is the file's.
  static nlohmann::json parse(const std::string& text, const std::string& name);

  const nlohmann::json& json() const { return *json_; }
  const std::string& path() const { return path_; }
  bool has(const char* key) const { return json_->is_object() && json_->contains(key) && !(*json_)[key].is_null(); }
  Field operator[](const char* key) const {
    if (!json_->is_object() || !json_->contains(key)) fail(std::string("an entry '") + key + "'");
    return Field((*json_)[key], path_ + "." + key);
  }
  std::string text() const {
    if (!json_->is_string()) fail("a text");
    return json_->get<std::string>();
  }
  int64_t integer() const {
    if (!json_->is_number_integer()) fail("an integer");
    return json_->get<int64_t>();
  }
  bool boolean() const {
    if (!json_->is_boolean()) fail("true or false");
    return json_->get<bool>();
  }
  /// A number, or the words for what JSON has none.
  double number() const;
  /// The elements of a list.
  std::vector<Field> items() const {
    if (!json_->is_array()) fail("a list");
    std::vector<Field> out;
    for (std::size_t i = 0; i < json_->size(); ++i) out.emplace_back((*json_)[i], path_ + "[" + std::to_string(i) + "]");
    return out;
  }
  /// The entries of an object, by name.
  std::vector<std::pair<std::string, Field>> entries() const {
    if (!json_->is_object()) fail("an object");
    std::vector<std::pair<std::string, Field>> out;
    for (auto it = json_->begin(); it != json_->end(); ++it) out.emplace_back(it.key(), Field(it.value(), path_ + "." + it.key()));
    return out;
  }
  /// The only entry of a union: its name and value.
  std::pair<std::string, Field> variant() const {
    const auto all = entries();
    if (all.size() != 1) fail("exactly one entry");
    return all[0];
  }
  [[noreturn]] void fail(const std::string& wanted) const {
    CRESSET_THROW(Error, "export: damaged program: ", path_, ": ", wanted, " was required.");
  }

 private:
  const nlohmann::json* json_;
  std::string path_;
};

}  // namespace cresset::jit::exported
