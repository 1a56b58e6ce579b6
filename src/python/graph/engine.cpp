// Engines in Python: partition, compile. cresset/engine makes the public form of it.
#include <cresset/engine/compile.h>
#include <cresset/engine/engine.h>
#include <cresset/engine/file.h>

#include "python/convert.h"
#include "python/graph/ir.h"
#include "python/graph/lowering_settings.h"
#include "python/graph/script_convert.h"

namespace cresset::python {

void init_converters(PyObject* module);    // converters.cpp
void init_engine_calls(PyObject* module);  // engine_calls.cpp

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

// Calls to calibrate with, each a tuple of arguments.
struct Calibration {
  std::vector<PyObject*> calls;
  std::string method;
  double percentile;
};

Calibration calibration_of(std::optional<std::vector<PyObject*>> calls, std::optional<std::string> method,
                           std::optional<double> percentile) {
  return {calls.value_or(std::vector<PyObject*>()), method.value_or(""), percentile.value_or(0)};
}

void set_calibration(engine::CompileOptions& options, const Calibration& given) {
  if (given.calls.empty()) return;
  options.calibration.name = given.method;
  options.calibration.percentile = given.percentile;
  for (PyObject* call : given.calls) {
    CRESSET_CHECK_TYPE(PyTuple_Check(call), "calibration: tuples of arguments were required.");
    Stack& arguments = options.data.emplace_back();
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(call); ++k)
      arguments.push_back(to_fitting_ivalue(PyTuple_GET_ITEM(call, k), *basic_type(TypeKind::Any)));
  }
}

engine::CompileOptions compile_options(PyObject* settings, Request r, const Calibration& calibration = {}) {
  engine::CompileOptions out{std::move(r.backend), pipeline_options(settings), r.min_block_size, std::move(r.operators), r.whole};
  for (const std::string& name : r.precisions) {
    const auto dtype = dtype_from_name(name);
    CRESSET_CHECK_VALUE(dtype, "compile: enabled_precisions: '", name, "' is no dtype.");
    out.enabled_precisions.push_back(*dtype);
  }
  out.truncate_long_and_double = r.truncate;
  set_calibration(out, calibration);
  return out;
}

}  // namespace

void init_engine(PyObject* module) {
  // (module's handle, report, engines, accuracy)
  def(module, "_engine_compile",
      [](PyObject* m, std::string method, PyObject* settings, std::string backend, int64_t min_block_size,
         std::vector<std::string> operators, bool whole, std::vector<std::string> precisions, bool truncate,
         std::optional<std::vector<PyObject*>> calls, std::optional<std::string> calibration, std::optional<double> percentile) {
        engine::Compiled compiled =
            engine::compile(module_of(m), method,
                            compile_options(settings, {backend, min_block_size, operators, whole, precisions, truncate},
                                            calibration_of(calls, calibration, percentile)));
        return Object(Py_BuildValue("(Nsns)", wrap_object(compiled.module), compiled.report.c_str(),
                                    static_cast<Py_ssize_t>(compiled.engines), compiled.accuracy.c_str()));
      });
  def(module, "_engine_convert",
      [](PyObject* m, std::string method, PyObject* settings, std::string backend, std::vector<std::string> precisions, bool truncate,
         std::optional<std::vector<PyObject*>> calls, std::optional<std::string> calibration, std::optional<double> percentile) {
        const std::string bytes = engine::convert_method_to_engine(
            module_of(m), method,
            compile_options(settings, {backend, 1, {}, true, precisions, truncate}, calibration_of(calls, calibration, percentile)));
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
  def(module, "_engine_precisions", [](std::string backend) {
    std::vector<std::string> names;
    for (const ScalarType t : engine::engine_builder(backend).precisions) names.emplace_back(dtype_name(t));
    return names;
  });
  init_converters(module);
  init_engine_calls(module);
  def(module, "_engine_builders", [] { return engine::engine_builders(); });
}

}  // namespace cresset::python
