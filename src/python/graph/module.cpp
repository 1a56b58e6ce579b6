// The extension module cresset._C_ir: its names are put into cresset._C, which loads it.
#include <cresset/autograd/autograd.h>
#include <cresset/ir/interpreter.h>

#include "ir/frontend/frontend.h"
#include "ir/operators/class_properties.h"
#include "ir/operators/gradients.h"
#include "python/convert.h"
#include "python/graph/ir.h"
#include "python/graph/script_convert.h"
#include "python/graph/script_values.h"
#include "python/graph/tracer.h"
#include "python/graph_part.h"
#include "python/types.h"

namespace cresset::python {

namespace {

// What the interpreter raises is a RuntimeError, as in PyTorch, and of its kind.
PyObject* script_error_class(const Error& e, PyObject* plain) {
  const char* name = nullptr;
  // Of a function that is compiled because another calls it, the error comes back through Python, with its class in front.
  const bool of_compiler = dynamic_cast<const jit::ScriptError*>(&e);
  if (dynamic_cast<const jit::UnsupportedNodeError*>(&e) || (of_compiler && e.msg().starts_with("\nUnsupportedNodeError: ")))
    name = "UnsupportedNodeError";
  else if (dynamic_cast<const jit::NotSupportedError*>(&e) || (of_compiler && e.msg().starts_with("\nNotSupportedError: ")))
    name = "NotSupportedError";
  else if (of_compiler && e.msg().starts_with("\nCannot instantiate class '"))
    name = "FrontendError";
  const bool raised = dynamic_cast<const jit::ScriptException*>(&e);
  const bool failed =
      !name && !raised && !PyObject_IsSubclass(plain, PyExc_RuntimeError) && e.msg().find(kScriptFailed) != std::string::npos;
  if (!name && !raised && !failed) return plain;
  const Ref home = Ref::steal(PyImport_ImportModule(raised ? "cresset._C" : "cresset.jit.frontend"));
  Ref cls;
  if (home && failed) {
    const Ref table = Ref::steal(PyObject_GetAttrString(home.get(), "_failures"));
    if (table) cls = Ref::borrow(PyDict_GetItem(table.get(), plain));
  } else if (home) {
    cls = Ref::steal(PyObject_GetAttrString(home.get(), raised ? "_ScriptError" : name));
  }
  if (cls) return cls.get();  // its module keeps it
  PyErr_Clear();
  return plain;
}

constexpr GraphPart kPart = {
    .script_value_to_python = &script_value_to_python,
    .fits_script_type = &fits_script_type,
    .to_script_value = &to_script_value,
    .infer_script_value = &infer_script_value,
    .script_error_class = &script_error_class,
    .warn_conversion = &warn_conversion,
    .warn_tracer = &warn_tracer,
    .warn_constant = &warn_constant,
    .traced_sizes = &traced_sizes,
    .traced_size_of = &traced_size_of,
    .traced_numel_of = &traced_numel_of,
    .traced_argument = &traced_argument,
    .traced_ivalue = &traced_ivalue,
    .forget_traced_arguments = &forget_traced_arguments,
    .note_subscript = &note_subscript,
    .note_assignment = &note_assignment,
    .same_value = &jit::tracer::same_value,
};

std::optional<int64_t> property_of_class(const Tensor& t, const char* name) {
  GilAcquire gil;
  try {
    const Ref tensor = checked(wrap(t)), value = checked(PyObject_GetAttrString(tensor.get(), name));
    if (std::string_view(name) == "dtype") {
      const Ref types = checked(PyImport_ImportModule("cresset._quantized_types"));
      const Ref number = checked(PyObject_CallMethod(types.get(), "script_number", "O", value.get()));
      return PyLong_Check(number.get()) ? to_int(number.get()) : static_cast<int64_t>(to_scalar_type(number.get()));
    }
    const int truth = PyObject_IsTrue(value.get());
    checked(truth < 0 ? -1 : 0);
    return truth;
  } catch (const ErrorAlreadySet&) {
    throw_python_error();
  }
}

bool fill_base() {
  CRESSET_PY_TRY
  const Ref base = checked(PyImport_ImportModule("cresset._C"));
  PyObject* module = base.get();
  init_ir_types(module);
  init_ir(module);
  init_script_archive(module);
  init_script_function(module);
  init_script_compile(module);
  init_script_container(module);
  init_script_future(module);
  init_file_check(module);
  init_engine(module);
  init_script_lowering(module);
  init_script_module(module);
  init_backends(module);
  init_tracer(module);
  jit::set_gradient_functions({
      [](const std::vector<Tensor>& outputs, const std::vector<Tensor>& inputs, const std::vector<Tensor>& gradients,
         std::optional<bool> retain_graph, bool create_graph,
         bool allow_unused) { return autograd::grad(outputs, inputs, gradients, retain_graph, create_graph, allow_unused); },
      [](const std::vector<Tensor>& outputs, const std::vector<Tensor>& gradients, std::optional<bool> retain_graph, bool create_graph) {
        autograd::backward(outputs, gradients, retain_graph, create_graph);
      },
  });
  jit::set_class_property(property_of_class);
  init_export(module);
  init_script_source(module);
  init_script_types(module);
  init_script_measures(module);
  graph_part = &kPart;
  return true;
  CRESSET_PY_CATCH(false)
}

}  // namespace

}  // namespace cresset::python

extern "C" __attribute__((visibility("default"))) PyObject* PyInit__C_ir() {
  static PyModuleDef definition = {
      PyModuleDef_HEAD_INIT, "cresset._C_ir", "Graphs, scripts and traces of cresset._C.", -1, nullptr, nullptr, nullptr, nullptr, nullptr};
  PyObject* module = PyModule_Create(&definition);
  if (!module) return nullptr;
  if (!cresset::python::fill_base()) {
    Py_DECREF(module);
    return nullptr;
  }
  return module;
}
