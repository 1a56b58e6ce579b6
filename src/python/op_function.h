// Operators as Python functions and methods.
#pragma once

#include <memory>

#include "python/arg_parser.h"
#include "python/python_table.h"

namespace cresset::python {

/// A function or method of the operator table. Its plan is made at the first call.
struct OpFunction {
  PyObject_HEAD vectorcallfunc vectorcall;
  const TableEntry* entry;
  Plan* plan;     // never freed: functions live as long as the process
  uint8_t where;  // which overloads belong to it
  PyObject* name;
  PyObject* qualname;
};

/// The results of an operator on the stack as Python has them: nothing, a value, a tuple or a named tuple.
PyObject* wrap_results(const FunctionSchema& schema, Stack& stack, const std::string& name, bool lists_as_tuples);

/// A stack from this thread's pool; goes back when the lease ends.
class StackLease {
 public:
  StackLease();
  ~StackLease();
  StackLease(const StackLease&) = delete;
  Stack& operator*() { return *stack_; }

 private:
  Stack* stack_;
};

/// Fills the module (`_C`'s submodules too) and the class Tensor from the operator table.
void init_op_functions(PyObject* module);

}  // namespace cresset::python
