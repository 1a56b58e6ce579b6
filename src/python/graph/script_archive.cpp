// Archives of scripts in Python: cresset.jit.save and load, the code of functions.
#include <cresset/ir/archive.h>

#include <sstream>

#include "python/convert.h"
#include "python/graph/ir.h"
#include "python/graph/script_convert.h"

namespace cresset::python {
namespace {

std::string bytes_of(PyObject* o) {
  if (PyUnicode_Check(o)) return to_text(o);
  char* data = nullptr;
  Py_ssize_t size = 0;
  CRESSET_CHECK_TYPE(PyBytes_Check(o), "extra files: str or bytes were required; a ", type_name(Py_TYPE(o)), " was given.");
  checked(PyBytes_AsStringAndSize(o, &data, &size));
  return {data, static_cast<std::size_t>(size)};
}
Ref bytes_object(std::string_view s) { return checked(PyBytes_FromStringAndSize(s.data(), static_cast<Py_ssize_t>(s.size()))); }

// Without contents only the names count.
jit::ExtraFilesMap to_extra_files(PyObject* dict, bool contents = true) {
  jit::ExtraFilesMap files;
  if (dict == Py_None) return files;
  CRESSET_CHECK_TYPE(PyDict_Check(dict), "_extra_files: a dict was required; a ", type_name(Py_TYPE(dict)), " was given.");
  PyObject *key, *value;
  for (Py_ssize_t at = 0; PyDict_Next(dict, &at, &key, &value);) files[to_text(key)] = contents ? bytes_of(value) : "";
  return files;
}

// Fills the caller's dict: bytes for the files that were asked for, empty for those that are not there.
void fill(PyObject* dict, const jit::ExtraFilesMap& files) {
  for (const auto& [name, content] : files)
    checked(PyDict_SetItem(dict, checked(Convert<std::string>::to(name)).get(), bytes_object(content).get()));
}

template <class Load>
Object load_with(PyObject* extra_files, Load load) {
  jit::ExtraFilesMap files = to_extra_files(extra_files, false);
  jit::Module m;
  {
    const GilRelease release;
    m = load(files);
  }
  if (extra_files != Py_None) fill(extra_files, files);
  return Object(wrap_object(m));
}

// A module's handle or a function.
template <class Save>
void save_with(PyObject* what, Save save) {
  if (PyObject_TypeCheck(what, script_function_type)) {
    const auto f = to_function(what);
    const GilRelease release;
    return save(*f);
  }
  const jit::Object object = object_of(what);
  CRESSET_CHECK_TYPE(object.defined(), "save: a ScriptModule or ScriptFunction was required; a ", type_name(Py_TYPE(what)), " was given.");
  const GilRelease release;
  save(jit::Module(object._ivalue()));
}

}  // namespace

void save_function(const intrusive_ptr<jit::Function>& f, PyObject* file, PyObject* extra_files) {
  const Ref package = checked(PyImport_ImportModule("cresset.jit.serialization")), function = checked(wrap_function(f));
  checked(PyObject_CallMethod(package.get(), "save", "OOO", function.get(), file, extra_files));
}

void init_script_archive(PyObject* module) {
  def(module, "_jit_code", [](PyObject* function) { return jit::code_of(*to_function(function)); });
  def(
      module, "_jit_code_with_constants",
      [](PyObject* function) {
        const auto [text, constants] = jit::code_with_constants(*to_function(function));
        const Ref values = checked(PyList_New(0));
        for (const IValue& v : constants) checked(PyList_Append(values.get(), checked(to_python(v, false)).get()));
        return Object(Py_BuildValue("(sO)", text.c_str(), values.get()));
      },
      "The code and the values of CONSTANTS.c0, CONSTANTS.c1, ...");
  def(module, "_jit_load_file", [](std::string path, std::optional<Device> device, PyObject* extra_files) {
    return load_with(extra_files, [&](jit::ExtraFilesMap& files) { return jit::load(path, device, files); });
  });
  def(module, "_jit_load_bytes", [](PyObject* bytes, std::optional<Device> device, PyObject* extra_files) {
    const std::string content = bytes_of(bytes);
    return load_with(extra_files, [&](jit::ExtraFilesMap& files) { return jit::load_from_buffer(content, device, files); });
  });
  def(module, "_jit_save_file", [](PyObject* what, std::string path, PyObject* extra_files) {
    const jit::ExtraFilesMap files = to_extra_files(extra_files);
    save_with(what, [&](const auto& m) { jit::save(m, path, files); });
  });
  def(module, "_jit_save_bytes", [](PyObject* what, PyObject* extra_files) {
    const jit::ExtraFilesMap files = to_extra_files(extra_files);
    std::ostringstream out;
    save_with(what, [&](const auto& m) { jit::save(m, out, files); });
    return Object(bytes_object(std::move(out).str()));
  });
}

}  // namespace cresset::python
