// Registration of generated tables.
#include "ops/kernel_table.h"

#include <string>
#include <string_view>
#include <vector>

namespace cresset::ops {

void define(Library& library, const SchemaRow* rows, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    std::vector<std::string> tags;
    for (std::string_view rest = rows[i].tags; !rest.empty();) {
      const auto end = rest.find(' ');
      tags.emplace_back(rest.substr(0, end));
      rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
    }
    library.def(rows[i].schema, std::move(tags));
  }
}

void implement(Library& library, const KernelRow* rows, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) library.impl(rows[i].name, rows[i].make());
}

}  // namespace cresset::ops
