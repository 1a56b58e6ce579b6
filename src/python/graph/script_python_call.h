// Functions that scripts leave to Python: the nodes that call them, and what runs those.
#pragma once

#include "python/graph/script_values.h"

namespace cresset::python {

/// Left to Python (jit.ignore): a call makes a node that calls `function`, with `self` first when it is a method (else null). The last of
/// the names may be "*args"; defaults: a dict.
jit::SugaredValuePtr python_call_value(std::string name, PyObject* function, const std::vector<std::string>& names,
                                       const std::vector<TypePtr>& types, PyObject* defaults, TypePtr returns, Value* self);

/// Lets those nodes run.
void install_python_nodes();

}  // namespace cresset::python
