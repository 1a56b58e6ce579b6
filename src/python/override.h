// The __torch_function__ protocol: finding arguments that override an operation, and asking them.
#pragma once

#include <array>
#include <vector>

#include "python/tensor_type.h"
#include "python/types.h"

namespace cresset::python {

/// Thread state of the protocol.
struct OverrideState {
  bool subclasses_disabled = false;  // DisableTorchFunctionSubclass
  bool all_disabled = false;         // DisableTorchFunction: modes too
  std::vector<PyObject*> modes;      // owned; the innermost is last
};
OverrideState& override_state();
/// Number of active modes of this thread when they are enabled, else 0; read on every call.
extern thread_local int active_modes;

/// What __torch_function__ and __torch_dispatch__ are called with: (func, types, args=(), kwargs=None).
struct ProtocolCall {
  PyObject* func = nullptr;
  PyObject* types = nullptr;
  Ref args;  // a tuple
  PyObject* kwargs = nullptr;
  /// False with an error set. `format` may end in ":name" for it.
  bool parse(PyObject* given, PyObject* named, const char* format = "OO|OO");
  /// func(*args, **kwargs)
  PyObject* run() const { return PyObject_Call(func, args.get(), kwargs == Py_None ? nullptr : kwargs); }
};

/// Does the type of o override operations? Never for exact tensors.
bool type_overrides(PyTypeObject* type);

/// Is o of a type that certainly does not take part (exact tensors, numbers, None, strings)?
inline bool is_plain(PyObject* o) {
  PyTypeObject* t = Py_TYPE(o);
  return t == tensor_type || t == &PyLong_Type || t == &PyFloat_Type || t == &PyBool_Type || o == Py_None || t == &PyUnicode_Type ||
         t == dtype_type || t == device_type_object;
}

/// The arguments that override, in the order in which they are asked: subclasses first, then left to right; each type once.
class Overriders {
 public:
  /// Looks at one argument, and into tuples and lists.
  void scan(PyObject* o) {
    if (CRESSET_LIKELY(is_plain(o))) return;
    scan_slow(o);
  }
  /// A tuple of the arguments found.
  Ref arguments() const;
  bool empty() const { return count_ == 0 && active_modes == 0; }
  /// Asks modes, then the arguments. `name` is for the error: "torch.add". `self` is the tensor of a method or attribute whose type
  /// modes are told of even when it does not override; operators tell of overriding types only.
  PyObject* call(PyObject* function, PyObject* args_tuple, PyObject* kwargs_or_null, const char* name, PyObject* self = nullptr) const;

 private:
  void scan_slow(PyObject* o);
  void add(PyObject* o);
  static constexpr std::size_t kMax = 16;
  std::array<PyObject*, kMax> objects_;
  std::size_t count_ = 0;
};

/// For methods and properties written by hand: the result of the protocol for `self` (new reference), or null without an
/// error when self does not override. With an error set: failure.
PyObject* override_method(PyObject* self, const char* name, PyObject* args_tuple_or_null = nullptr, PyObject* kwargs = nullptr);
PyObject* override_property(PyObject* self, const char* name);
inline bool may_override(PyObject* self) { return !is_exact_tensor(self) || active_modes != 0; }

/// result with the tensors in it (also inside tuples and lists) turned into `type`; what Tensor.__torch_function__ does.
PyObject* convert_to_subclass(PyObject* result, PyTypeObject* type);
PyObject* as_subclass(const Tensor& t, PyTypeObject* type);

extern PyMethodDef override_methods[];  // Tensor.__torch_function__
void init_override(PyObject* module);

}  // namespace cresset::python
