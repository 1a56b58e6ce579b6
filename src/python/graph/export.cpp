// Programs of torch.export: one opaque object a program, and what Python asks of it.
#include <cresset/ir/export.h>

#include "python/convert.h"
#include "python/graph/ir.h"
#include "python/graph/script_convert.h"

namespace cresset::python {

namespace {

using jit::ExportedProgram;
constexpr const char* kCapsule = "cresset.ExportedProgram";

Object capsule_of(ExportedProgram program) {
  return Object(PyCapsule_New(new ExportedProgram(std::move(program)), kCapsule,
                              [](PyObject* o) { delete static_cast<ExportedProgram*>(PyCapsule_GetPointer(o, kCapsule)); }));
}
const ExportedProgram& program_of(PyObject* o) {
  void* p = PyCapsule_GetPointer(o, kCapsule);
  if (!p) throw ErrorAlreadySet();
  return *static_cast<ExportedProgram*>(p);
}

Object load(PyObject* source) {
  if (PyBytes_Check(source))
    return capsule_of(jit::load_exported_bytes(std::string(PyBytes_AS_STRING(source), static_cast<std::size_t>(PyBytes_GET_SIZE(source)))));
  return capsule_of(jit::load_exported(to_text(source)));
}

Object arguments(const std::vector<jit::ExportArgument>& all) {
  const Ref list = checked(PyList_New(0));
  for (const jit::ExportArgument& a : all)
    checked(PyList_Append(
        list.get(),
        checked(Py_BuildValue("(sssO)", a.kind.c_str(), a.name.c_str(), a.target.c_str(), a.persistent ? Py_True : Py_False)).get()));
  return Object(Ref::borrow(list.get()));
}

Object ranges(const ExportedProgram& program) {
  const auto bound = [](const std::optional<int64_t>& v) { return checked(v ? PyLong_FromLongLong(*v) : Py_NewRef(Py_None)); };
  const Ref out = checked(PyDict_New());
  for (const auto& [symbol, range] : program.range_constraints)
    checked(
        PyDict_SetItemString(out.get(), symbol.c_str(), checked(PyTuple_Pack(2, bound(range.least).get(), bound(range.most).get())).get()));
  return Object(Ref::borrow(out.get()));
}

// Arguments become what forward's schema says; missing ones are errors or constants of the program.
Object run_program(PyObject* o, PyObject* args, PyObject* kwargs) {
  const ExportedProgram& program = program_of(o);
  const FunctionSchema& schema = program.module.get_method("forward").getSchema();
  const auto convert = [&](PyObject* value, std::size_t i) {
    return to_ivalue(value, i < schema.arguments().size() ? *schema.arguments()[i].type : *basic_type(TypeKind::Any),
                     i < schema.arguments().size() ? "forward(): argument '" + schema.arguments()[i].name + "'" : "forward()");
  };
  Stack stack;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); ++i)
    stack.push_back(convert(PyTuple_GET_ITEM(args, i), static_cast<std::size_t>(i) + 1));
  jit::Kwargs named;
  PyObject *key, *value;
  Py_ssize_t at = 0;
  while (PyDict_Next(kwargs, &at, &key, &value)) {
    const std::string name = to_text(key);
    named.emplace_back(name, convert(value, schema.argument_index(name).value_or(schema.arguments().size())));
  }
  IValue result;
  {
    const GilRelease release;
    result = program(std::move(stack), named);
  }
  return Object(to_python(std::move(result), false));
}

}  // namespace

void init_export(PyObject* module) {
  def(module, "_export_load", [](PyObject* source) { return load(source); });
  def(module, "_export_run", [](PyObject* program, PyObject* args, PyObject* kwargs) { return run_program(program, args, kwargs); });
  def(module, "_export_module", [](PyObject* program) { return Object(wrap_object(program_of(program).module)); });
  def(module, "_export_inputs", [](PyObject* program) { return arguments(program_of(program).inputs); });
  def(module, "_export_outputs", [](PyObject* program) { return arguments(program_of(program).outputs); });
  def(module, "_export_ranges", [](PyObject* program) { return ranges(program_of(program)); });
  def(module, "_export_specs",
      [](PyObject* program) { return std::vector<std::string>{program_of(program).in_spec.str(), program_of(program).out_spec.str()}; });
}

}  // namespace cresset::python
