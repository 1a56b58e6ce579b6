// Things: what the compiler makes of Python objects that scripts name. cresset.jit._names makes them by the functions of
// cresset._C.ScriptThing, one a kind, whose arguments have the types of a lambda here (script_values.cpp).
#pragma once

#include "ir/frontend/sugared_value.h"
#include "python/graph/ir.h"

namespace cresset::python {

class ModuleValue;

/// Where a script names a thing; whose attribute it is, when it is one of an object or of a module.
struct ThingUse {
  const jit::SourceRange& range;
  jit::GraphFunction& m;
  Value* self = nullptr;
  ModuleValue* module = nullptr;
};

struct ThingKind {
  const char* name;
  Py_ssize_t arity;
  void (*check)(PyObject* parts);  // throws unless the parts are of the kind's types
  jit::SugaredValuePtr (*value)(PyObject* parts, const ThingUse& use);
};
struct PyThing {
  PyObject_HEAD const ThingKind* kind;
  PyObject* parts;  // the tuple of the arguments
};
extern PyTypeObject* thing_type;

/// A thing of the kind; throws unless the parts (a tuple) are of its types.
PyObject* make_thing(const ThingKind& kind, PyObject* parts);
/// The compiler's value of a thing; null for None.
jit::SugaredValuePtr to_sugared(PyObject* thing, const ThingUse& use);

template <>
struct Convert<PyThing*> {
  static PyThing* from(PyObject* o) {
    CRESSET_CHECK_TYPE(Py_TYPE(o) == thing_type, "a ScriptThing was required; a ", type_name(Py_TYPE(o)), " was given.");
    return reinterpret_cast<PyThing*>(o);
  }
};

namespace binding {

template <class F>
struct ThingCallable : ThingCallable<decltype(&F::operator())> {};
template <class C, class... A>
struct ThingCallable<jit::SugaredValuePtr (C::*)(const ThingUse&, A...) const> {
  static constexpr Py_ssize_t arity = sizeof...(A);
  template <class F>
  static jit::SugaredValuePtr call(PyObject* parts, const ThingUse& use) {
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      return F{}(use, Convert<std::decay_t<A>>::from(PyTuple_GET_ITEM(parts, static_cast<Py_ssize_t>(I)))...);
    }(std::index_sequence_for<A...>());
  }
  static void check(PyObject* parts) {
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      (void(Convert<std::decay_t<A>>::from(PyTuple_GET_ITEM(parts, static_cast<Py_ssize_t>(I)))), ...);
    }(std::index_sequence_for<A...>());
  }
};

}  // namespace binding

/// cresset._C.ScriptThing.name(arguments): things of a new kind, whose value is f(use, arguments).
template <class F>
void def_thing(const char* name, F, const char* doc) {
  static_assert(std::is_empty_v<F>, "def_thing takes lambdas without captures");
  using C = binding::ThingCallable<F>;
  static ThingKind kind;
  kind = {name, C::arity, &C::check, &C::template call<F>};
  static PyMethodDef method;
  method = {name,
            [](PyObject*, PyObject* parts) -> PyObject* {
              CRESSET_PY_TRY
              return make_thing(kind, parts);
              CRESSET_PY_CATCH(nullptr)
            },
            METH_VARARGS, doc};
  checked(PyObject_SetAttrString(reinterpret_cast<PyObject*>(thing_type), name, checked(PyCFunction_New(&method, nullptr)).get()));
}

/// Adds ScriptThing to the module, without its kinds.
void init_script_things(PyObject* module);

}  // namespace cresset::python
