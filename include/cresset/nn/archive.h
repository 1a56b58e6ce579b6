// What a module writes of itself: named tensors, values and parts, in order. Files are read and written by cresset/serialize.h.
#pragma once

#include <functional>
#include <iosfwd>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <cresset/core/device.h>
#include <cresset/dispatch/ivalue.h>

namespace cresset::jit {
class CompilationUnit;
}

namespace cresset::serialize {

/// The entries of an archive, shared by the handles below.
struct ArchiveNode {
  struct Entry {
    std::string name;
    IValue value;
    bool is_buffer = false;
    std::shared_ptr<ArchiveNode> part;  // instead of a value
  };
  std::vector<Entry> entries;
  const Entry* find(const std::string& name) const {
    for (const Entry& e : entries)
      if (e.name == name) return &e;
    return nullptr;
  }
  void put(Entry entry) {
    CRESSET_CHECK(!find(entry.name), "archive: '", entry.name, "' is written already.");
    entries.push_back(std::move(entry));
  }
};

class OutputArchive {
 public:
  OutputArchive() : OutputArchive(nullptr) {}
  explicit OutputArchive(std::shared_ptr<jit::CompilationUnit> unit) : unit_(std::move(unit)), node_(std::make_shared<ArchiveNode>()) {}

  const std::shared_ptr<jit::CompilationUnit>& compilation_unit() const { return unit_; }
  void write(const std::string& key, const IValue& value) { node_->put({key, value, false, nullptr}); }
  void write(const std::string& key, const Tensor& tensor, bool is_buffer = false) {
    node_->put({key, IValue(tensor), is_buffer, nullptr});
  }
  void write(const std::string& key, OutputArchive& part) { node_->put({key, IValue(), false, part.node_}); }
  template <class... A>
  void operator()(A&&... arguments) {
    write(std::forward<A>(arguments)...);
  }

  void save_to(const std::string& path);
  void save_to(std::ostream& stream);
  void save_to(const std::function<std::size_t(const void*, std::size_t)>& write);

  const ArchiveNode& node() const { return *node_; }

 private:
  std::shared_ptr<jit::CompilationUnit> unit_;
  std::shared_ptr<ArchiveNode> node_;
};

class InputArchive {
 public:
  InputArchive() : node_(std::make_shared<ArchiveNode>()) {}

  bool try_read(const std::string& key, IValue& value) {
    const ArchiveNode::Entry* entry = node_->find(key);
    if (entry && !entry->part) value = entry->value;
    return entry && !entry->part;
  }
  void read(const std::string& key, IValue& value) {
    CRESSET_CHECK(try_read(key, value), "the archive does not have a field with name '", path_, key, "'");
  }
  /// A defined tensor takes the values of the one in the archive, an undefined one becomes it.
  CRESSET_API bool try_read(const std::string& key, Tensor& tensor, bool is_buffer = false);
  void read(const std::string& key, Tensor& tensor, bool is_buffer = false) {
    CRESSET_CHECK(try_read(key, tensor, is_buffer), "No such serialized tensor '", path_, key, "'");
  }
  bool try_read(const std::string& key, InputArchive& part) {
    const ArchiveNode::Entry* entry = node_->find(key);
    if (!entry || !entry->part) return false;
    part.node_ = entry->part;
    part.path_ = path_ + key + ".";
    return true;
  }
  void read(const std::string& key, InputArchive& part) {
    CRESSET_CHECK(try_read(key, part), "No such serialized submodule: '", path_, key, "'");
  }
  std::vector<std::string> keys() const {
    std::vector<std::string> out;
    for (const auto& e : node_->entries) out.push_back(e.name);
    return out;
  }
  template <class... A>
  void operator()(A&&... arguments) {
    read(std::forward<A>(arguments)...);
  }

  void load_from(const std::string& path, std::optional<Device> device = std::nullopt);
  void load_from(std::istream& stream, std::optional<Device> device = std::nullopt);
  void load_from(const char* data, std::size_t size, std::optional<Device> device = std::nullopt);

 private:
  std::shared_ptr<ArchiveNode> node_;
  std::string path_;
};

}  // namespace cresset::serialize
