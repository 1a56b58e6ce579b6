// Tensors of exported programs: numbers that say dtypes, layouts and formats, and the files with the data.
#pragma once

#include <cresset/ir/export.h>

#include "ir/archive/export_json.h"
#include "ir/archive/zip_archive.h"

namespace cresset::jit::exported {

ScalarType scalar_type_of(const Field& number);
Layout layout_of(const Field& number);
MemoryFormat memory_format_of(const Field& number);
Device device_of(const Field& device);
/// Every size as a number, or as the text of an expression.
std::vector<std::variant<int64_t, std::string>> sizes_of(const Field& meta);

struct Weight {
  Tensor tensor;
  bool is_parameter;
};
/// The tensors that the file `config` (in `folder`) lists, by name. Those with one data file share their memory.
std::map<std::string, Weight> read_weights(const ZipReader& zip, const std::string& folder, const std::string& config);

}  // namespace cresset::jit::exported
