// Engines in Python: partition, compile. cresset/engine makes the public form of it.
#include <cresset/engine/compile.h>
#include <cresset/engine/engine.h>
#include <cresset/engine/file.h>

#include "python/convert.h"
#include "python/graph/ir.h"
#include "python/graph/lowering_settings.h"
#include "python/graph/script_convert.h"

namespace cresset::python {
namespace {

// What Python's keywords say, beside the settings of lowering.
struct Request {
  std::string backend;
  int64_t min_block_size;
  std::vector<std::string> operators;
  bool whole;
  std::vector<std::string> precisions;
  bool truncate;
};

engine::CompileOptions compile_options(PyObject* settings, Request r) {
  engine::CompileOptions out{std::move(r.backend), pipeline_options(settings), r.min_block_size, std::move(r.operators), r.whole};
  for (const std::string& name : r.precisions) {
    const auto dtype = dtype_from_name(name);
    CRESSET_CHECK_VALUE(dtype, "compile: enabled_precisions: '", name, "' is no dtype.");
    out.enabled_precisions.push_back(*dtype);
  }
  out.truncate_long_and_double = r.truncate;
  return out;
}

}  // namespace

void init_engine(PyObject* module) {
  // (module's handle, report, engines)
  def(module, "_engine_compile",
      [](PyObject* m, std::string method, PyObject* settings, std::string backend, int64_t min_block_size,
         std::vector<std::string> operators, bool whole, std::vector<std::string> precisions, bool truncate) {
        engine::Compiled compiled = engine::compile(
            module_of(m), method, compile_options(settings, {backend, min_block_size, operators, whole, precisions, truncate}));
        return Object(
            Py_BuildValue("(Nsn)", wrap_object(compiled.module), compiled.report.c_str(), static_cast<Py_ssize_t>(compiled.engines)));
      });
  def(module, "_engine_convert",
      [](PyObject* m, std::string method, PyObject* settings, std::string backend, std::vector<std::string> precisions, bool truncate) {
        const std::string bytes =
            engine::convert_method_to_engine(module_of(m), method, compile_options(settings, {backend, 1, {}, true, precisions, truncate}));
        return Object(PyBytes_FromStringAndSize(bytes.data(), static_cast<Py_ssize_t>(bytes.size())));
      });
  def(module, "_engine_embed", [](PyObject* bytes, std::string name) {
    char* data = nullptr;
    Py_ssize_t size = 0;
    if (PyBytes_AsStringAndSize(bytes, &data, &size) != 0) throw ErrorAlreadySet();
    return Object(wrap_object(engine::embed_engine_in_new_module({data, static_cast<std::size_t>(size)}, name)));
  });
  def(module, "_engine_partition",
      [](PyObject* m, std::string method, PyObject* settings, std::string backend, int64_t min_block_size,
         std::vector<std::string> operators) {
        return engine::partition_report(module_of(m), method,
                                        compile_options(settings, {backend, min_block_size, operators, false, {}, false}));
      });
  def(module, "_engine_missing", [](PyObject* m, std::string method, PyObject* settings, std::string backend) {
    std::vector<std::string> missing;
    engine::check_method_operator_support(module_of(m), method, compile_options(settings, {backend, 1, {}, false, {}, false}), &missing);
    return missing;
  });
  def(module, "_engine_builders", [] { return engine::engine_builders(); });
}

}  // namespace cresset::python
