// Source text of scripts: what the parser reads, for tests.
#include "ir/frontend/tree_text.h"
#include "python/ir.h"

namespace cresset::python {

void init_script_source(PyObject* module) {
  def(module, "_script_parse", [](std::string text, std::optional<std::string> filename) {
    return jit::tree_text(*jit::parse_source(std::make_shared<jit::Source>(std::move(text), filename.value_or("<string>"))));
  });
}

}  // namespace cresset::python
