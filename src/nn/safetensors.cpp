// The safetensors format.
#include <cresset/nn/safetensors.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include <cresset/core/dtype_codes.h>
#include <cresset/ops/functions_creation.h>

#include "base/replaced_file.h"

namespace cresset {
namespace {

constexpr uint64_t kMaxHeader = 100u << 20;

[[noreturn]] void bad_file(const std::string& path, const std::string& why) {
  CRESSET_THROW(ValueError, "safetensors: ", path, ": ", why, ".");
}

// Tensors are objects in the header, with lists in them; nothing lies deeper.
nlohmann::ordered_json parsed_header(const std::string& path, const std::string& text) {
  constexpr int kDeepest = 3;
  const auto shallow = [&](int depth, nlohmann::ordered_json::parse_event_t, nlohmann::ordered_json&) {
    if (depth > kDeepest) bad_file(path, "the header is nested too deeply");
    return true;
  };
  nlohmann::ordered_json header = nlohmann::ordered_json::parse(text, shallow, false);
  if (header.is_discarded() || !header.is_object()) bad_file(path, "the header is not a JSON object");
  return header;
}

}  // namespace

std::vector<std::pair<std::string, Tensor>> load_safetensors(const std::string& path) {
  std::ifstream in(path, std::ios::binary | std::ios::ate);
  CRESSET_CHECK(in, "safetensors: ", path, " cannot be opened: ", std::strerror(errno), ".");
  const auto file_size = static_cast<uint64_t>(in.tellg());
  in.seekg(0);
  uint64_t header_size = 0;
  in.read(reinterpret_cast<char*>(&header_size), sizeof header_size);
  if (!in || header_size > kMaxHeader || header_size + 8 > file_size) bad_file(path, "the header's length does not fit the file");
  std::string text(header_size, '\0');
  in.read(text.data(), static_cast<std::streamsize>(header_size));
  const nlohmann::ordered_json header = parsed_header(path, text);
  const uint64_t data_size = file_size - 8 - header_size;
  uint64_t data_read = 0;
  std::vector<std::pair<std::string, Tensor>> out;
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__") continue;
    if (!entry.is_object() || !entry.contains("dtype") || !entry.contains("shape") || !entry.contains("data_offsets"))
      bad_file(path, "'" + name + "' has no dtype, shape or range");
    const std::optional<ScalarType> type =
        entry["dtype"].is_string() ? dtype_from_safetensors(entry["dtype"].get_ref<const std::string&>()) : std::nullopt;
    if (!type)
      bad_file(path,
               "'" + name + "' has the unknown dtype " + (entry["dtype"].is_string() ? entry["dtype"].dump() : entry["dtype"].type_name()));
    std::vector<int64_t> shape;
    std::vector<uint64_t> range;
    try {
      shape = entry["shape"].get<std::vector<int64_t>>();
      range = entry["data_offsets"].get<std::vector<uint64_t>>();
    } catch (const nlohmann::json::exception&) {
      bad_file(path, "'" + name + "' has a shape or range that is not a list of numbers");
    }
    uint64_t elements = 1;
    for (int64_t s : shape)
      if (s < 0 || __builtin_mul_overflow(elements, static_cast<uint64_t>(s), &elements) || elements > file_size)
        bad_file(path, "'" + name + "' has an impossible shape");
    if (range.size() != 2 || range[0] > range[1] || range[1] > data_size || range[1] - range[0] != elements * element_size(*type))
      bad_file(path, "the range of '" + name + "' does not fit its shape or the file");
    // Ranges that overlap would make much memory of a small file.
    data_read += range[1] - range[0];
    if (data_read > data_size) bad_file(path, "the ranges of tensors overlap");
    Tensor t = cresset::empty(shape, TensorOptions(*type));
    in.seekg(static_cast<std::streamoff>(8 + header_size + range[0]));
    in.read(static_cast<char*>(t.mutable_data_ptr()), static_cast<std::streamsize>(t.nbytes()));
    if (!in) bad_file(path, "the data of '" + name + "' cannot be read");
    out.emplace_back(name, std::move(t));
  }
  return out;
}

void save_safetensors(const std::string& path, const std::vector<std::pair<std::string, Tensor>>& tensors) {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  std::vector<Tensor> dense;
  uint64_t offset = 0;
  for (const auto& [name, t] : tensors) {
    CRESSET_CHECK_VALUE(!header.contains(name) && name != "__metadata__", "save_safetensors: the name '", name,
                        "' is used twice or reserved.");
    dense.push_back(t.detach().to(TensorOptions().device(kCPU)).contiguous());
    const char* code = safetensors_code(t.scalar_type());
    CRESSET_CHECK_VALUE(code, "save_safetensors: the format has no type for ", dtype_name(t.scalar_type()), ", which '", name, "' has.");
    header[name] = {{"dtype", code}, {"shape", t.sizes().vec()}, {"data_offsets", {offset, offset + t.nbytes()}}};
    offset += t.nbytes();
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  ReplacedFile replaced("safetensors", path);
  std::ofstream file(replaced.temporary(), std::ios::binary);
  if (!file) replaced.fail();
  const uint64_t size = text.size();
  file.write(reinterpret_cast<const char*>(&size), sizeof size);
  file.write(text.data(), static_cast<std::streamsize>(size));
  for (const Tensor& t : dense) file.write(static_cast<const char*>(t.const_data_ptr()), static_cast<std::streamsize>(t.nbytes()));
  file.close();
  if (!file) replaced.fail();
  replaced.commit();
}

}  // namespace cresset
