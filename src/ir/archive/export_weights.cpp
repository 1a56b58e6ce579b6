#include "ir/archive/export_weights.h"

#include <algorithm>
#include <array>

#include <cresset/core/dtype_codes.h>
#include <cresset/ops/functions_view.h>

namespace cresset::jit::exported {

namespace {

int64_t fixed_size(const Field& size) {
  if (!size.has("as_int")) size.fail("a number: sizes of weights do not vary");
  return size["as_int"].integer();
}

// Bytes from the first element to behind the last one that strides can reach; raises when that does not fit.
int64_t reach(const std::vector<int64_t>& sizes, const std::vector<int64_t>& strides, int64_t offset, int64_t item, const Field& meta) {
  int64_t last = offset;
  bool overflow = offset < 0;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    overflow |= sizes[i] < 0 || strides[i] < 0;
    int64_t step;
    if (sizes[i] == 0) return 0;
    overflow |= __builtin_mul_overflow(sizes[i] - 1, strides[i], &step) || __builtin_add_overflow(last, step, &last);
  }
  int64_t bytes;
  overflow |= __builtin_add_overflow(last, 1, &last) || __builtin_mul_overflow(last, item, &bytes);
  if (overflow) meta.fail("sizes, strides and an offset that fit into memory");
  return bytes;
}

Tensor read_tensor(const ZipReader& zip, const std::string& file, const Field& meta, std::map<std::string, Tensor>& storages) {
  if (layout_of(meta["layout"]) != Layout::Strided) meta.fail("a dense tensor (other layouts are not supported)");
  const ScalarType type = scalar_type_of(meta["dtype"]);
  const auto item = static_cast<int64_t>(element_size(type));
  std::vector<int64_t> sizes, strides;
  for (const Field& s : meta["sizes"].items()) sizes.push_back(fixed_size(s));
  for (const Field& s : meta["strides"].items()) strides.push_back(fixed_size(s));
  if (sizes.size() != strides.size() || sizes.size() > 64) meta.fail("a stride for each of at most 64 sizes");
  const int64_t offset = fixed_size(meta["storage_offset"]);
  const int64_t bytes = reach(sizes, strides, offset, item, meta);
  const ZipEntry* entry = zip.find(file);
  CRESSET_CHECK(entry, "export: damaged program: the file '", file, "' is missing.");
  CRESSET_CHECK(bytes >= 0 && static_cast<uint64_t>(bytes) <= entry->size && (offset == 0 || bytes > 0), "export: damaged program: '", file,
                "' has ", entry->size, " bytes; ", meta.path(), " needs ", bytes, ".");
  Tensor& storage = storages[file];
  if (!storage.defined()) {
    storage = cresset::detail::empty_cpu({static_cast<int64_t>(entry->size)}, kByte);
    zip.read_to(*entry, storage.data_ptr());
  }
  const int64_t elements = static_cast<int64_t>(entry->size) / item;
  const Tensor whole = cresset::slice(storage, 0, 0, elements * item, 1).view(type);
  const Tensor t = cresset::as_strided(whole, sizes, strides, offset).detach();
  const Device device = device_of(meta["device"]);
  return device.is_cpu() ? t : t.to(TensorOptions(device));
}

}  // namespace

ScalarType scalar_type_of(const Field& number) {
  const int64_t n = number.integer();
  if (const auto type = dtype_from_exported(n)) return *type;
  number.fail("a known dtype (" + std::to_string(n) + " is none)");
}
Layout layout_of(const Field& number) {
  constexpr int64_t kStrided = 7;
  if (number.integer() != kStrided) number.fail("the strided layout (others are not supported)");
  return Layout::Strided;
}
MemoryFormat memory_format_of(const Field& number) {
  constexpr std::array<MemoryFormat, 4> formats = {MemoryFormat::Contiguous, MemoryFormat::ChannelsLast, MemoryFormat::ChannelsLast3d,
                                                   MemoryFormat::Preserve};
  const int64_t n = number.integer();
  if (n < 1 || n > static_cast<int64_t>(formats.size())) number.fail("a memory format");
  return formats[static_cast<std::size_t>(n - 1)];
}
Device device_of(const Field& device) {
  const std::string type = device["type"].text();
  return Device(device.has("index") ? type + ":" + std::to_string(device["index"].integer()) : type);
}

std::vector<std::variant<int64_t, std::string>> sizes_of(const Field& meta) {
  std::vector<std::variant<int64_t, std::string>> out;
  for (const Field& s : meta["sizes"].items()) {
    if (s.has("as_int"))
      out.emplace_back(s["as_int"].integer());
    else
      out.emplace_back(s["as_expr"]["expr_str"].text());
  }
  return out;
}

std::map<std::string, Weight> read_weights(const ZipReader& zip, const std::string& folder, const std::string& config) {
  std::map<std::string, Weight> out;
  const ZipEntry* entry = zip.find(folder + config);
  if (!entry) return out;  // a program without any
  const nlohmann::json document = Field::parse(zip.read(*entry), config);
  std::map<std::string, Tensor> storages;
  for (const auto& [name, weight] : Field(document, config)["config"].entries()) {
    CRESSET_CHECK(!weight.has("use_pickle") || !weight["use_pickle"].boolean(), "export: '", name,
                  "' is stored as a pickle, which is not read; programs with plain tensors are.");
    Tensor t = read_tensor(zip, folder + weight["path_name"].text(), weight["tensor_meta"], storages);
    const bool parameter = weight["is_param"].boolean();
    if (parameter && weight["tensor_meta"]["requires_grad"].boolean()) t.set_requires_grad(true);
    out.emplace(name, Weight{std::move(t), parameter});
  }
  return out;
}

}  // namespace cresset::jit::exported
