// Owned references, C++ exceptions across the language border, and the interpreter lock.
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <structmember.h>

#include <string>
#include <utility>

#include <cresset/base/error.h>
#include <cresset/base/interrupt.h>

/// What the graph part (python/graph/), a module of its own, uses of this one.
#define CRESSET_PYTHON_API __attribute__((visibility("default")))

namespace cresset::python {

/// An owned reference, possibly null.
class Ref {
 public:
  Ref() noexcept = default;
  Ref(std::nullptr_t) noexcept {}
  /// Takes over a new reference.
  static Ref steal(PyObject* p) noexcept { return Ref(p); }
  /// Adds a reference of its own.
  static Ref borrow(PyObject* p) noexcept {
    Py_XINCREF(p);
    return Ref(p);
  }
  Ref(const Ref& o) noexcept : p_(o.p_) { Py_XINCREF(p_); }
  Ref(Ref&& o) noexcept : p_(std::exchange(o.p_, nullptr)) {}
  Ref& operator=(Ref o) noexcept {
    std::swap(p_, o.p_);
    return *this;
  }
  ~Ref() { Py_XDECREF(p_); }
  PyObject* get() const noexcept { return p_; }
  /// Gives the reference to the caller.
  PyObject* release() noexcept { return std::exchange(p_, nullptr); }
  explicit operator bool() const noexcept { return p_ != nullptr; }

 private:
  explicit Ref(PyObject* p) noexcept : p_(p) {}
  PyObject* p_ = nullptr;
};

/// Thrown where a Python call failed: the interpreter's error indicator is set and stays so until translate_exception.
struct CRESSET_PYTHON_API ErrorAlreadySet {};

/// Takes over a new reference; throws ErrorAlreadySet for null.
inline Ref checked(PyObject* p) {
  if (CRESSET_UNLIKELY(!p)) throw ErrorAlreadySet();
  return Ref::steal(p);
}
inline void checked(int status) {
  if (CRESSET_UNLIKELY(status < 0)) throw ErrorAlreadySet();
}

/// A tuple of strings.
inline Ref names_tuple(const char* const* names, std::size_t count) {
  Ref tuple = checked(PyTuple_New(static_cast<Py_ssize_t>(count)));
  for (std::size_t i = 0; i < count; ++i)
    PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(i), checked(PyUnicode_FromString(names[i])).release());
  return tuple;
}

/// A Python exception on its way through C++ code that knows nothing of Python (a kernel, the backward engine).
/// Python gets the same exception object back.
class CRESSET_PYTHON_API PythonException final : public Error {
 public:
  /// Takes the current Python error; the lock must be held.
  /// of_handler: a handler of signals raised it, wherever the program was; it stays what it is when it leaves a script.
  static PythonException fetch(bool of_handler = false);
  /// Sets the error indicator again; the lock must be held.
  void restore() const;

 private:
  struct Holder;
  PythonException(std::string message, std::shared_ptr<Holder> holder) : Error(std::move(message)), holder_(std::move(holder)) {}
  std::shared_ptr<Holder> holder_;
};

/// Turns the C++ exception that is being handled into a Python error. Only inside of a catch block.
CRESSET_PYTHON_API void translate_exception() noexcept;
/// Throws the current Python error as a C++ exception for layers below (PythonException).
[[noreturn]] CRESSET_PYTHON_API void throw_python_error();
/// Adds the exception classes to the module and installs the warning handler.
void init_errors(PyObject* module);

/// Runs the body; a C++ exception becomes a Python error and `failure` is returned.
#define CRESSET_PY_TRY try {
#define CRESSET_PY_CATCH(failure)             \
  }                                           \
  catch (...) {                               \
    ::cresset::python::translate_exception(); \
    return failure;                           \
  }

/// PyGILState_Ensure and PyEval_RestoreThread. The interpreter ends other threads than the main one there when it is being shut down, by
/// unwinding their stacks through code that must not be left so: they wait for the end of the process instead.
CRESSET_PYTHON_API PyGILState_STATE take_lock() noexcept;
CRESSET_PYTHON_API void take_lock_back(PyThreadState* state) noexcept;

/// Holds the interpreter lock for a scope, from any thread.
class GilAcquire {
 public:
  GilAcquire() : state_(take_lock()) {}
  ~GilAcquire() { PyGILState_Release(state_); }
  GilAcquire(const GilAcquire&) = delete;

 private:
  PyGILState_STATE state_;
};
/// Is this the thread that handles signals? Sees to it that Ctrl-C stops its work; the lock must be held.
CRESSET_PYTHON_API bool signals_come_here();
/// What is done after Interrupted: sets what the handlers of signals raise, else KeyboardInterrupt; the lock must be held.
void set_interrupt_error();
void init_interrupts();

/// Lets other Python threads run for a scope, and signals stop what it does.
class GilRelease {
 public:
  explicit GilRelease(bool on = true) : interruptible_(on && signals_come_here()), state_(on ? PyEval_SaveThread() : nullptr) {}
  ~GilRelease() {
    if (state_) take_lock_back(state_);
  }
  GilRelease(const GilRelease&) = delete;

 private:
  InterruptScope interruptible_;
  PyThreadState* state_;
};
/// f() while other Python threads may run, when `give` says so. f uses nothing of the interpreter.
template <class F>
auto without_lock(bool give, F f) {
  const GilRelease release(give);
  return f();
}

/// str or the repr of another object, as UTF-8; throws ErrorAlreadySet.
CRESSET_PYTHON_API std::string to_text(PyObject* str);
/// "module.Class" of heap types, "int" of built-in ones.
CRESSET_PYTHON_API std::string type_name(PyTypeObject* type);
/// An interned name that lives for ever.
CRESSET_PYTHON_API PyObject* interned(const char* text);

}  // namespace cresset::python
