// Graphs, nodes, values and types of the IR in Python.
#pragma once

#include <cresset/ir/function.h>
#include <cresset/ir/ir.h>

#include "python/bind.h"

namespace cresset::python {

using jit::Block;
using jit::Graph;
using jit::Node;
using jit::Symbol;
using jit::Value;

/// A method of a class from a lambda whose first parameter is the object; trailing optionals may be left out.
template <class F>
PyMethodDef method(const char* name, F, const char* doc = nullptr) {
  static_assert(std::is_empty_v<F>, "methods are lambdas without captures");
  static const char* method_name;
  method_name = name;
  return {name,
          reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(+[](PyObject* self, PyObject* const* args, Py_ssize_t n) -> PyObject* {
            PyObject* all[16] = {self};
            if (n > 15) {
              PyErr_Format(PyExc_TypeError, "%s() takes fewer arguments", method_name);
              return nullptr;
            }
            for (Py_ssize_t i = 0; i < n; ++i) all[i + 1] = args[i];
            return binding::call_lambda<F, 0>(method_name, all, n + 1);
          })),
          METH_FASTCALL, doc};
}

/// A property from a lambda on the object.
template <class F>
PyGetSetDef property(const char* name, F, const char* doc = nullptr) {
  static_assert(std::is_empty_v<F>);
  static const char* property_name;
  property_name = name;
  return {name, [](PyObject* self, void*) -> PyObject* { return binding::call_lambda<F, 0>(property_name, &self, 1); }, nullptr, doc,
          nullptr};
}

/// What Python holds of a graph and its parts: the graph lives as long as any of them; a part that was destroyed raises.
struct PyGraph {
  PyObject_HEAD std::shared_ptr<Graph> graph;
};
template <class T>
struct PyPart {
  PyObject_HEAD std::shared_ptr<jit::Handle<T>> handle;
  std::shared_ptr<Graph> graph;
};
/// With the unit that its methods are in.
struct PyIrType {
  PyObject_HEAD TypePtr type;
  std::shared_ptr<void> unit;
};
struct PyFunction {
  PyObject_HEAD intrusive_ptr<jit::Function> function;
  std::shared_ptr<void> unit;
  PyObject* dict;  // attributes that Python gave it; may be null
};

extern PyTypeObject *graph_type, *ir_node_type, *ir_value_type, *ir_block_type, *ir_type_type, *script_function_type;

PyObject* wrap_graph(std::shared_ptr<Graph> g);
/// The graph of a function; the pointer owns the function's unit too.
std::shared_ptr<Graph> graph_of(const jit::Function& f);
PyObject* wrap_type(const TypePtr& t);
PyObject* wrap_function(intrusive_ptr<jit::Function> f);
/// A cresset._ops.FunctionSchema.
Object schema_object(const FunctionSchema& schema);
intrusive_ptr<jit::Function> to_function(PyObject* o);
/// An archive; extra files are a dict or None.
void save_function(const intrusive_ptr<jit::Function>& f, PyObject* file, PyObject* extra_files);
/// Calls a function with Python's arguments, behind `self` when that is given. Null with an error set when it fails.
PyObject* call_function(jit::Function& f, const IValue* self, PyObject* args, PyObject* kwargs);
/// The same for the graph that ran, with all calls inlined.
PyObject* graph_for(jit::Function& f, PyObject* callable, PyObject* args, PyObject* kwargs);
/// The object of a graph's part; the graph must be owned by a shared_ptr.
PyObject* wrap_part(Node* n);
PyObject* wrap_part(Value* v);
PyObject* wrap_part(Block* b);
Node* to_node(PyObject* o);
Value* to_value(PyObject* o);
Block* to_block(PyObject* o);
std::shared_ptr<Graph> to_graph(PyObject* o);
TypePtr to_type(PyObject* o);
inline bool is_value(PyObject* o) { return PyObject_TypeCheck(o, ir_value_type); }

template <>
struct Convert<Node*> {
  static Node* from(PyObject* o) { return to_node(o); }
  static PyObject* to(Node* n) { return n ? wrap_part(n) : Py_NewRef(Py_None); }
};
template <>
struct Convert<Value*> {
  static Value* from(PyObject* o) { return to_value(o); }
  static PyObject* to(Value* v) { return v ? wrap_part(v) : Py_NewRef(Py_None); }
};
template <>
struct Convert<Block*> {
  static Block* from(PyObject* o) { return to_block(o); }
  static PyObject* to(Block* b) { return b ? wrap_part(b) : Py_NewRef(Py_None); }
};
template <>
struct Convert<std::shared_ptr<Graph>> {
  static std::shared_ptr<Graph> from(PyObject* o) { return to_graph(o); }
  static PyObject* to(std::shared_ptr<Graph> g) { return wrap_graph(std::move(g)); }
};
template <>
struct Convert<intrusive_ptr<jit::Function>> {
  static intrusive_ptr<jit::Function> from(PyObject* o) { return to_function(o); }
  static PyObject* to(intrusive_ptr<jit::Function> f) { return wrap_function(std::move(f)); }
};
template <>
struct Convert<TypePtr> {
  static TypePtr from(PyObject* o) { return to_type(o); }
  static PyObject* to(const TypePtr& t) { return wrap_type(t); }
};

/// An iterator over converted values.
template <class T>
Object iterate(std::vector<T> values) {
  const Ref list = checked(Convert<std::vector<T>>::to(std::move(values)));
  return Object(PyObject_GetIter(list.get()));
}

/// The alias analysis of a graph as an object.
Object make_alias_db(std::shared_ptr<Graph> g, bool strict);

void init_ir_types(PyObject* module);
void init_ir(PyObject* module);
void init_script_archive(PyObject* module);
void init_script_function(PyObject* module);
void init_engine(PyObject* module);
void init_file_check(PyObject* module);
void init_script_lowering(PyObject* module);
void init_script_source(PyObject* module);
void init_script_types(PyObject* module);
void init_script_measures(PyObject* module);

}  // namespace cresset::python
