// Registration of generated tables.
#include "ops/kernel_table.h"

#include <string>
#include <string_view>
#include <vector>

#include <cresset/dispatch/dispatcher.h>

namespace cresset::ops {

namespace {

// Never destroyed: built-in operators are not taken back one by one when the process ends.
void keep(RegistrationHandleRAII handle) {
  static auto* handles = new std::vector<RegistrationHandleRAII>;
  handles->push_back(std::move(handle));
}

std::string place(const char* file, uint32_t line) { return "registered at " + std::string(file) + ":" + std::to_string(line); }

std::vector<std::string> split(std::string_view tags) {
  std::vector<std::string> out;
  while (!tags.empty()) {
    const auto end = tags.find(' ');
    out.emplace_back(tags.substr(0, end));
    tags = end == std::string_view::npos ? std::string_view() : tags.substr(end + 1);
  }
  return out;
}

}  // namespace

SchemaTable::SchemaTable(const char* file, const SchemaRow* rows, std::size_t count) {
  for (const SchemaRow* row = rows; row != rows + count; ++row)
    keep(Dispatcher::singleton().registerDef(parse_schema(row->schema), place(file, row->line), split(row->tags)));
}

KernelTable::KernelTable(const char* ns, DispatchKey key, const char* file, const KernelRow* rows, std::size_t count) {
  const std::string prefix = std::string(ns) + "::";
  for (const KernelRow* row = rows; row != rows + count; ++row) {
    KernelParts parts = row->parts();
    keep(Dispatcher::singleton().registerImpl(parse_operator_name(prefix + row->name), key, std::move(parts.kernel), parts.signature,
                                              nullptr, place(file, row->line)));
  }
}

}  // namespace cresset::ops
