// Exceptions in both directions, and warnings.
#include "base/hint.h"
#include "python/graph_part.h"

#include <cstring>
#include <new>
#include <stdexcept>

namespace cresset::python {

namespace {

PyObject* out_of_memory_error = nullptr;
PyObject* linalg_error = nullptr;

PyObject* class_of_kind(const Error& e) {
  if (dynamic_cast<const ValueError*>(&e)) return PyExc_ValueError;
  if (dynamic_cast<const TypeError*>(&e)) return PyExc_TypeError;
  if (dynamic_cast<const IndexError*>(&e)) return PyExc_IndexError;
  if (dynamic_cast<const KeyError*>(&e)) return PyExc_KeyError;
  if (dynamic_cast<const AttributeError*>(&e)) return PyExc_AttributeError;
  if (dynamic_cast<const NotImplementedError*>(&e)) return PyExc_NotImplementedError;
  if (dynamic_cast<const ZeroDivisionError*>(&e)) return PyExc_ZeroDivisionError;
  if (dynamic_cast<const BufferError*>(&e)) return PyExc_BufferError;
  if (dynamic_cast<const OutOfMemoryError*>(&e)) return out_of_memory_error;
  if (dynamic_cast<const LinAlgError*>(&e)) return linalg_error;
  return PyExc_RuntimeError;
}

PyObject* python_class(const Error& e) {
  PyObject* plain = class_of_kind(e);
  return graph_part ? graph_part->script_error_class(e, plain) : plain;
}

// Messages may quote bytes of a file, which need not be text.
Ref decoded(std::string_view text) {
  return Ref::steal(PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "backslashreplace"));
}

void set_error(PyObject* type, std::string_view message) {
  if (const Ref text = decoded(message)) PyErr_SetObject(type, text.get());
}

void set_error_with_hint(PyObject* type, std::string_view words, std::string_view hint) {
  set_error(type, words);
  PyObject *kind, *value, *traceback;
  PyErr_Fetch(&kind, &value, &traceback);
  PyErr_NormalizeException(&kind, &value, &traceback);
  const Ref note = decoded(hint);
  const Ref done = Ref::steal(note && value ? PyObject_CallMethod(value, "add_note", "O", note.get()) : nullptr);
  if (!done) PyErr_Clear();
  PyErr_Restore(kind, value, traceback);
}

// PyTorch's interpreter raises a RuntimeError, whatever ended it.
void set_script_failure(const Error& e, PyObject* kind, PyObject* cause) {
  PyObject* found = graph_part->script_error_class(e, kind);
  set_error(found == kind ? PyExc_RuntimeError : found, e.what());
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  if (value && cause) PyException_SetCause(value, Py_NewRef(cause));
  PyErr_Restore(type, value, traceback);
}

PyObject* warning_category(std::string_view name) {
  if (name == "DeprecationWarning") return PyExc_DeprecationWarning;
  if (name == "FutureWarning") return PyExc_FutureWarning;
  if (name == "RuntimeWarning") return PyExc_RuntimeWarning;
  if (name == "PendingDeprecationWarning") return PyExc_PendingDeprecationWarning;
  return PyExc_UserWarning;
}

void warn_through_python(std::string_view category, const std::string& message) {
  if (!Py_IsInitialized()) return;
  GilAcquire gil;
  if (PyErr_Occurred()) return;
  if (PyErr_WarnEx(warning_category(category), message.c_str(), 1) < 0) throw PythonException::fetch();
}

}  // namespace

/// Owns the exception object; its last owner may be on a thread without the lock.
struct PythonException::Holder {
  PyObject *type = nullptr, *value = nullptr, *traceback = nullptr;
  std::size_t length = 0;  // of the exception's own text; layers on the way append theirs
  bool of_handler = false;
  /// A script that it left added its place; interrupts, exits and what handlers of signals raise are no errors of it.
  bool left_script(std::string_view text) const {
    return !of_handler && text.substr(length).find(kScriptFailed) != std::string_view::npos &&
           PyErr_GivenExceptionMatches(type, PyExc_Exception);
  }
  ~Holder() {
    if (!Py_IsInitialized()) return;
    GilAcquire gil;
    PyObject *t, *v, *tb;
    PyErr_Fetch(&t, &v, &tb);
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(traceback);
    PyErr_Restore(t, v, tb);
  }
};

PythonException PythonException::fetch(bool of_handler) {
  auto holder = std::make_shared<Holder>();
  holder->of_handler = of_handler;
  PyErr_Fetch(&holder->type, &holder->value, &holder->traceback);
  PyErr_NormalizeException(&holder->type, &holder->value, &holder->traceback);
  std::string text = "unknown Python error";
  if (holder->value) {
    const Ref s = Ref::steal(PyObject_Str(holder->value));
    const char* utf8 = s ? PyUnicode_AsUTF8(s.get()) : nullptr;
    if (utf8) text = std::string(reinterpret_cast<PyTypeObject*>(holder->type)->tp_name) + ": " + utf8;
    PyErr_Clear();
  }
  holder->length = text.size();
  return PythonException(std::move(text), std::move(holder));
}

void PythonException::restore() const {
  if (holder_->left_script(what())) return set_script_failure(*this, holder_->type, holder_->value);
  Py_XINCREF(holder_->type);
  Py_XINCREF(holder_->value);
  Py_XINCREF(holder_->traceback);
  PyErr_Restore(holder_->type, holder_->value, holder_->traceback);
}

void throw_python_error() { throw PythonException::fetch(); }

void translate_exception() noexcept {
  try {
    throw;
  } catch (const ErrorAlreadySet&) {
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_SystemError, "cresset: an error was announced but none is set");
  } catch (const PythonException& e) {
    e.restore();
  } catch (const Interrupted&) {
    set_interrupt_error();
  } catch (const Error& e) {
    const std::string_view text = e.what();
    if (const auto* hint = dynamic_cast<const detail::Hint*>(&e))
      set_error_with_hint(python_class(e), text.substr(0, hint->words()), text.substr(hint->words() + 1));
    else
      set_error(python_class(e), text);
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (const std::out_of_range& e) {
    set_error(PyExc_IndexError, e.what());
  } catch (const std::exception& e) {
    set_error(PyExc_RuntimeError, e.what());
  } catch (...) {
    PyErr_SetString(PyExc_RuntimeError, "cresset: an unknown C++ exception");
  }
}

void init_errors(PyObject* module) {
  out_of_memory_error =
      checked(PyErr_NewExceptionWithDoc("cresset.OutOfMemoryError", "An allocation that could not be made.", PyExc_RuntimeError, nullptr))
          .release();
  checked(PyModule_AddObjectRef(module, "OutOfMemoryError", out_of_memory_error));
  linalg_error = checked(PyErr_NewExceptionWithDoc("cresset._C._LinAlgError", "A matrix for which the operation has no result.",
                                                   PyExc_RuntimeError, nullptr))
                     .release();
  checked(PyModule_AddObjectRef(module, "_LinAlgError", linalg_error));
  const Ref script_error =
      checked(PyErr_NewExceptionWithDoc("cresset.jit.Error", "What `raise` and `assert` of a script raise.", PyExc_RuntimeError, nullptr));
  checked(PyModule_AddObjectRef(module, "_ScriptError", script_error.get()));
  set_warning_handler(&warn_through_python);
}

std::string to_text(PyObject* object) {
  const Ref s = PyUnicode_Check(object) ? Ref::borrow(object) : checked(PyObject_Repr(object));
  Py_ssize_t n = 0;
  const char* utf8 = PyUnicode_AsUTF8AndSize(s.get(), &n);
  if (!utf8) throw ErrorAlreadySet();
  return std::string(utf8, static_cast<std::size_t>(n));
}

std::string type_name(PyTypeObject* type) {
  // As PyTorch's messages have them: Tensor is a class of Python, types of C name their module ("torch.dtype", "numpy.ndarray").
  const std::string name = type->tp_name;
  if (name == "cresset.Tensor") return "Tensor";
  if (name == "cresset._C.builtin_function") return "builtin_function_or_method";
  return name.rfind("cresset.", 0) == 0 ? "torch" + name.substr(7) : name;
}

PyObject* interned(const char* text) { return checked(PyUnicode_InternFromString(text)).release(); }

}  // namespace cresset::python
