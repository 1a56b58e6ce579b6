// The place where cresset._C leaves its table for extension modules.
#include <cresset/dispatch/python_api.h>

namespace cresset {
namespace {
const PythonApi* table = nullptr;
}

const PythonApi& python_api() {
  CRESSET_CHECK(table, "Python objects of tensors: the module cresset is not loaded. Import cresset in front of the extension module.");
  return *table;
}
namespace detail {
void set_python_api(const PythonApi* api) { table = api; }
}  // namespace detail

}  // namespace cresset
