// Matching the arguments of a Python call against operator schemas.
//
// A Plan holds the signatures of one Python name. Matching only looks at types and fills slots with borrowed references;
// nothing is converted or allocated before a signature has been chosen.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <cresset/dispatch/dispatcher.h>

#include "python/convert.h"

namespace cresset::python {

inline constexpr int kMaxParameters = 48;

enum class Kind : uint8_t {
  Tensor,
  Tensors,
  OptionalTensors,
  Scalar,
  Scalars,
  Int,
  Ints,
  Float,
  Floats,
  Bool,
  Bools,
  Str,
  Dtype,
  Layout,
  MemoryFormat,
  Device,
  Generator,
  Other,
  Out,
  RequiresGrad,
};

/// One parameter as Python callers see it.
struct Parameter {
  PyObject* name = nullptr;   // interned
  PyObject* alias = nullptr;  // NumPy's name for it, an out's in its schema, or null
  Kind kind = Kind::Other;
  bool optional = false;         // None is a value
  bool none_is_default = false;  // None stands for an empty list (`int[1] dim=[]`)
  bool has_default = false;
  bool keyword_only = false;
  bool numbers = false;  // a Tensor parameter that takes Python numbers
  bool mutated = false;
  int length = 0;  // N of int[N]: one int stands for N of them; for Out the number of tensors
  IValue default_value;
  TypePtr type;
  std::string text;       // "int dim = -1", for messages
  std::string type_text;  // "int"
};

/// One way to call a name.
struct Signature {
  OperatorHandle op;
  std::optional<OperatorHandle> out_op;
  std::vector<Parameter> parameters;  // the operator's inputs in order, then Out and RequiresGrad
  int inputs = 0;                     // how many of them go on the stack
  std::vector<int> positional;        // parameters that may be given by position, in order (without self for methods)
  std::vector<int> out_order;         // out_op's arguments: a parameter, or ~i for the i-th out tensor
  int self = -1;                      // parameter that a method's object fills
  int out = -1, requires_grad = -1;   // pseudo parameters
  bool varargs = false;               // view(2, 3): the ints may be given one by one
  bool hidden = false;                // an out form that stands alone
  bool deprecated = false;            // an older order of arguments
  std::string text;                   // "(Tensor input, Tensor other, *, Number alpha = 1, Tensor out = None)"
};

/// The chosen signature and its arguments; references are borrowed from the call.
struct Match {
  const Signature* signature = nullptr;
  PyObject* slots[kMaxParameters];     // null: default
  PyObject* const* varargs = nullptr;  // the ints of a varargs call, else null
  Py_ssize_t varargs_count = 0;
};

class Plan {
 public:
  /// Public API names: out forms merged, self called input, PyTorch's error texts.
  struct Overload {
    OperatorHandle op;
    bool numbers;
    std::string_view legacy;  // TableOverload's
  };
  static Plan for_name(std::string name, bool method, const std::vector<Overload>& overloads);

  /// Finds the signature that takes the arguments; raises TypeError when none does. `args` are without self for methods.
  void parse(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* kwnames, Match& match) const;
  const std::vector<Signature>& signatures() const { return signatures_; }
  const std::string& name() const { return name_; }

 private:
  struct Failure;
  bool try_signature(const Signature& s, PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* kwnames, bool lenient, Match& match,
                     Failure* why) const;
  [[noreturn]] void raise(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* kwnames) const;
  std::string describe(const Signature& s, const Failure& f) const;
  void add(const OperatorHandle& op, bool numbers);
  void finish();
  void finish(Signature& s) const;
  void add_legacy(const Overload& overload);

  std::string name_;
  bool method_ = false;
  std::vector<Signature> signatures_;
  std::vector<Signature> last_;  // tried last: shadowed ones, and older orders with a warning; texts of errors do not show them
  mutable bool warned_ = false;  // the interpreter lock is held
};

/// Pushes the arguments of a match for its operator (out form when an out tensor was given) and gives that operator.
const OperatorHandle& push_arguments(const Match& match, Stack& stack);
/// Calls an operator with a prepared stack; the interpreter lock is released for calls on big tensors.
void call_operator(const OperatorHandle& op, Stack& stack);
/// Is one of the values, or an element of a list, worth giving the interpreter lock away (may_wait)?
bool any_waits(const std::vector<IValue>& values);

}  // namespace cresset::python
