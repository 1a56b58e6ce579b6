// Engines in Python: partition, compile. cresset/engine makes the public form of it.
#include <cresset/engine/compile.h>
#include <cresset/engine/engine.h>

#include "python/convert.h"
#include "python/graph/ir.h"
#include "python/graph/lowering_settings.h"
#include "python/graph/script_convert.h"

namespace cresset::python {
namespace {

engine::CompileOptions compile_options(PyObject* settings, std::string backend, int64_t min_block_size, std::vector<std::string> operators,
                                       bool whole) {
  return {std::move(backend), pipeline_options(settings), min_block_size, std::move(operators), whole};
}

}  // namespace

void init_engine(PyObject* module) {
  // (module's handle, report, engines)
  def(module, "_engine_compile",
      [](PyObject* m, std::string method, PyObject* settings, std::string backend, int64_t min_block_size,
         std::vector<std::string> operators, bool whole) {
        engine::Compiled compiled =
            engine::compile(module_of(m), method, compile_options(settings, backend, min_block_size, operators, whole));
        return Object(
            Py_BuildValue("(Nsn)", wrap_object(compiled.module), compiled.report.c_str(), static_cast<Py_ssize_t>(compiled.engines)));
      });
  def(module, "_engine_partition",
      [](PyObject* m, std::string method, PyObject* settings, std::string backend, int64_t min_block_size,
         std::vector<std::string> operators) {
        return engine::partition_report(module_of(m), method, compile_options(settings, backend, min_block_size, operators, false));
      });
  def(module, "_engine_missing", [](PyObject* m, std::string method, PyObject* settings, std::string backend) {
    std::vector<std::string> missing;
    engine::check_method_operator_support(module_of(m), method, compile_options(settings, backend, 1, {}, false), &missing);
    return missing;
  });
  def(module, "_engine_builders", [] { return engine::engine_builders(); });
}

}  // namespace cresset::python
