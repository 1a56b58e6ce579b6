// Python objects while a script is compiled: the resolver of free names, modules as `self`, and functions that stay in Python.
#pragma once

#include "ir/frontend/sugared_value.h"
#include "python/graph/ir.h"

namespace cresset::python {

/// A reference that may be dropped by a thread without the interpreter lock.
class Held {
 public:
  explicit Held(PyObject* o) : object_(Py_NewRef(o)) {}
  ~Held() {
    if (!Py_IsInitialized()) return;
    const GilAcquire gil;
    Py_DECREF(object_);
  }
  Held(const Held&) = delete;
  PyObject* get() const { return object_; }

 private:
  PyObject* object_;
};
using HeldPtr = std::shared_ptr<const Held>;

/// Asks an object with value(name) and type(path) (cresset.jit._definitions).
jit::ResolverPtr python_resolver(PyObject* resolver);
/// The same; names that it does not find are those of a program without Python.
jit::ResolverPtr python_resolver(PyObject* resolver, const jit::CompilationUnit& unit);
/// A module of the type that a cresset.jit._concrete.ConcreteType describes.
jit::SugaredValuePtr module_value(Value* self, HeldPtr concrete);

/// Lets nodes of functions that stay in Python run.
void install_python_calls();

/// The kinds of things (script_things.h).
void init_script_kinds();
void init_script_compile(PyObject* module);

}  // namespace cresset::python
