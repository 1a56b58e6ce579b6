// Autograd in Python: nodes as objects, hooks, the backward functions, grad modes.
#pragma once

#include <cresset/autograd/autograd.h>
#include <cresset/autograd/variable.h>

#include "python/convert.h"

namespace cresset::python {

/// A node of the backward graph; each kind of node has a class of its own, named like the node.
struct PyNode {
  PyObject_HEAD std::shared_ptr<autograd::Node> node;
  std::weak_ptr<autograd::Node> weak;  // of a node written in Python, whether or not `node` has it (see PythonNode)
};
extern PyTypeObject* node_type;
inline bool is_node(PyObject* o) { return PyType_IsSubtype(Py_TYPE(o), node_type); }
/// The node of an object; raises when it is gone although its object still exists.
std::shared_ptr<autograd::Node> node_of_object(PyObject* o);
/// The object of a node, a new reference; None for null.
PyObject* wrap_node(const std::shared_ptr<autograd::Node>& node);

/// A node written in Python has an object (a context) from the beginning, and one of the two holds the other: the object the node while
/// Python programs have the object, the node the object otherwise.
struct PythonNode : autograd::Node {
  virtual PyObject* show() = 0;  // the object, a new reference
  /// Shows the collector the Python objects that only this node holds.
  virtual int traverse(visitproc visit, void* arg) const = 0;
};

/// Shows the collector what the object of a node holds of it.
int node_traverse(PyObject* o, visitproc visit, void* arg);

/// Shows the collector what a tensor that only its own Python object holds keeps alive: hooks, its node when nobody else has that, its
/// gradient's object.
int visit_autograd(const Tensor& tensor, visitproc visit, void* arg);

autograd::variable_list to_tensors(PyObject* sequence, const char* what, bool none_allowed);
/// A new tuple; None for undefined tensors.
Ref from_tensors(const autograd::variable_list& tensors);

/// A Python object that C++ keeps and may drop on any thread.
std::shared_ptr<PyObject> share(PyObject* o);

/// `_saved_NAME` and `_raw_saved_NAME` of a node: null without an error when it saves nothing of that name.
PyObject* saved_attribute(autograd::Node& node, PyObject* name);
bool is_saved_attribute(PyObject* name);
/// A new list of the names that saved_attribute knows.
PyObject* saved_attribute_names(autograd::Node& node);

extern PyMethodDef tensor_autograd_methods[];  // backward, retain_grad, …
void init_node(PyObject* module);
void init_autograd(PyObject* module);
void init_function(PyObject* module);
void init_saved_values(PyObject* module);

}  // namespace cresset::python
