// The graph part of the module, cresset._C_ir: graphs, scripts, traces, lowering. It is loaded at the first use of one of its names,
// and this table is all that the rest knows of it.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>

#include <cresset/core/dispatch_key_set.h>
#include <cresset/dispatch/ivalue.h>
#include <cresset/dispatch/type.h>

#include "python/object.h"

namespace cresset::python {

/// What the interpreter adds to the text of an error that leaves a script begins so (Activation::annotate).
inline constexpr const char* kScriptFailed = "The following operation failed in the TorchScript interpreter.";

/// Functions of python/graph/script_convert.h and python/graph/tracer.h, where each is described.
struct GraphPart {
  PyObject* (*script_value_to_python)(const IValue& v);
  bool (*fits_script_type)(PyObject* o, const Type& type);
  IValue (*to_script_value)(PyObject* o, const Type& type);
  std::optional<IValue> (*infer_script_value)(PyObject* o);
  /// The Python class of an error of scripts, a borrowed reference; `plain` is that of its kind and the answer for other errors.
  PyObject* (*script_error_class)(const Error& e, PyObject* plain);

  // While a trace records.
  void (*warn_conversion)(const char* what);
  void (*warn_tracer)(const char* text);
  void (*warn_constant)(const char* function);
  PyObject* (*traced_sizes)(const Tensor& t);
  PyObject* (*traced_size_of)(const Tensor& t, int64_t dim);
  PyObject* (*traced_numel_of)(const Tensor& t);
  IValue (*traced_argument)(const char* argument, int64_t element, PyObject* tensor, bool integer);
  IValue (*traced_ivalue)(const std::string& argument, PyObject* o, const Type& type);
  void (*forget_traced_arguments)();
  void (*note_subscript)(bool slice, std::initializer_list<PyObject*> parts);
  void (*note_assignment)(bool runs);
  void (*same_value)(const Tensor& outer, const Tensor& inner);
};

/// Null until the part is loaded. Its module sets it, with the interpreter lock held.
extern CRESSET_PYTHON_API const GraphPart* graph_part;
/// Loads the part. An ImportError says how to build it where it is not.
CRESSET_PYTHON_API const GraphPart& require_graph_part();

/// Does this thread record operators now? Not inside of a recorded operator. Then the part is loaded: a trace may have begun in C++.
inline bool is_tracing() {
  const LocalDispatchKeySet keys = impl::tls_local_dispatch_key_set();
  if (CRESSET_LIKELY(!keys.included.has(DispatchKey::Tracer) || keys.excluded.has(DispatchKey::Tracer))) return false;
  if (!graph_part) require_graph_part();
  return true;
}

/// Names of the part load it when the module is asked for them.
void init_graph_part(PyObject* module);

}  // namespace cresset::python
