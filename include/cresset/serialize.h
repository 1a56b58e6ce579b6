// Files of tensors, modules and optimisers in C++: save() and load(), and how archives (nn/archive.h) are written and read. The files are
// archives of scripts without code, so Python reads them with jit.load and C++ reads those that jit.save made.
#pragma once

#include <istream>
#include <memory>
#include <ostream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <cresset/ir/archive.h>
#include <cresset/ir/class_type.h>
#include <cresset/nn/archive.h>

namespace cresset::serialize {

namespace detail {

inline jit::Module module_of(const ArchiveNode& node, const std::shared_ptr<jit::CompilationUnit>& unit, const std::string& name) {
  const jit::Module module(name, unit);
  for (const ArchiveNode::Entry& e : node.entries) {
    if (e.part)
      module.register_module(e.name, module_of(*e.part, unit, name + "_" + e.name));
    else if (e.value.isTensor())
      module.register_parameter(e.name, e.value.toTensor(), e.is_buffer);
    else
      module.register_attribute(e.name, e.value.type(), e.value);
  }
  return module;
}

inline std::shared_ptr<ArchiveNode> node_of(const intrusive_ptr<ivalue::Object>& object) {
  auto node = std::make_shared<ArchiveNode>();
  const auto& attributes = std::static_pointer_cast<const jit::ClassType>(object->type)->attributes();
  for (std::size_t i = 0; i < attributes.size(); ++i) {
    const IValue& value = object->slot(i);
    if (attributes[i].name == "training") continue;  // every module of a script has it; archives write it for none
    const bool is_part = value.isObject();
    node->put({attributes[i].name, is_part ? IValue() : value, attributes[i].is_buffer, is_part ? node_of(value.toObject()) : nullptr});
  }
  return node;
}

}  // namespace detail

inline void OutputArchive::save_to(std::ostream& stream) {
  jit::save(detail::module_of(*node_, std::make_shared<jit::CompilationUnit>(), "__torch__.Module"), stream);
}
inline void OutputArchive::save_to(const std::string& path) {
  jit::save(detail::module_of(*node_, std::make_shared<jit::CompilationUnit>(), "__torch__.Module"), path);
}
inline void OutputArchive::save_to(const std::function<std::size_t(const void*, std::size_t)>& write) {
  std::ostringstream stream;
  save_to(stream);
  const std::string bytes = stream.str();
  CRESSET_CHECK(write(bytes.data(), bytes.size()) == bytes.size(), "archive: the writer took less than ", bytes.size(), " bytes");
}

inline void InputArchive::load_from(const std::string& path, std::optional<Device> device) {
  node_ = detail::node_of(jit::load(path, device)._ivalue());
}
inline void InputArchive::load_from(std::istream& stream, std::optional<Device> device) {
  node_ = detail::node_of(jit::load(stream, device)._ivalue());
}
inline void InputArchive::load_from(const char* data, std::size_t size, std::optional<Device> device) {
  jit::ExtraFilesMap none;
  node_ = detail::node_of(jit::load_from_buffer({data, size}, device, none)._ivalue());
}

inline OutputArchive& operator<<(OutputArchive& archive, const Tensor& tensor) {
  archive.write("0", tensor);
  return archive;
}
inline InputArchive& operator>>(InputArchive& archive, Tensor& tensor) {
  archive.read("0", tensor);
  return archive;
}

}  // namespace cresset::serialize

namespace cresset {

/// Writes a tensor, a module (holder or shared pointer) or an optimiser. The rest of the arguments is where: a path, a stream or a
/// function.
template <class T, class... To>
void save(const T& value, To&&... to) {
  serialize::OutputArchive archive;
  archive << value;
  archive.save_to(std::forward<To>(to)...);
}
template <class... To>
void save(const std::vector<Tensor>& tensors, To&&... to) {
  serialize::OutputArchive archive;
  for (std::size_t i = 0; i < tensors.size(); ++i) archive.write(std::to_string(i), tensors[i]);
  archive.write("size", IValue(static_cast<int64_t>(tensors.size())));
  archive.save_to(std::forward<To>(to)...);
}

/// Reads into a value of the same kind; modules and optimisers keep their tensors and take the values.
template <class T, class... From>
void load(T& value, From&&... from) {
  serialize::InputArchive archive;
  archive.load_from(std::forward<From>(from)...);
  archive >> value;
}
/// From functions: read(position, buffer, size) and size().
template <class T, class Read, class Size>
  requires(std::is_invocable_r_v<std::size_t, Read&, uint64_t, void*, std::size_t> && std::is_invocable_r_v<std::size_t, Size&>)
void load(T& value, Read&& read, Size&& size, std::optional<Device> device = std::nullopt) {
  std::string bytes(size(), '\0');
  CRESSET_CHECK(read(0, bytes.data(), bytes.size()) == bytes.size(), "load: the function gave fewer bytes than its size");
  load(value, static_cast<const char*>(bytes.data()), bytes.size(), device);
}
template <class... From>
void load(std::vector<Tensor>& tensors, From&&... from) {
  serialize::InputArchive archive;
  archive.load_from(std::forward<From>(from)...);
  IValue size;
  archive.read("size", size);
  for (int64_t i = 0; i < size.toInt(); ++i) archive.read(std::to_string(i), tensors.emplace_back());
}

}  // namespace cresset
