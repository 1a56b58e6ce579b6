// Operators of the class Tensor: arithmetic, comparison, conversion to Python numbers. Exact tensors and Python numbers go
// straight to the typed C++ functions.
#include <cresset/base/warn_always.h>
#include <cresset/ops/functions_arith.h>
#include <cresset/ops/functions_compare.h>
#include <cresset/ops/functions_copy.h>
#include <cresset/ops/functions_matmul.h>

#include "ops/shared/promotion.h"
#include "python/convert.h"
#include "python/graph_part.h"
#include "python/override.h"
#include "python/tensor_new.h"

namespace cresset::python {

namespace {

// One operand: a tensor, or a number as a zero-dimensional tensor. Invalid for anything else.
class Operand {
 public:
  explicit Operand(PyObject* o) {
    if (CRESSET_LIKELY(is_tensor(o))) {
      tensor_ = &unwrap(o);
    } else if (is_number(o)) {
      number_ = ops::wrapped_scalar_tensor(to_scalar(o));
      tensor_ = &number_;
    }
  }
  explicit operator bool() const { return tensor_ != nullptr; }
  const Tensor& operator*() const { return *tensor_; }

 private:
  const Tensor* tensor_ = nullptr;
  Tensor number_;
};

// Enough work, or a device, which may wait for its queue: other threads of Python run meanwhile (the queue's may need the interpreter too).
bool is_big_pair(const Tensor& a, const Tensor& b) {
  return a.numel() >= kReleaseNumel || b.numel() >= kReleaseNumel || !a.is_cpu() || !b.is_cpu();
}

// An operator: what runs, and the names under which overriding types see it.
struct OperatorNames {
  const char* forward;         // method of (a, b)
  const char* reflected;       // method of (b, a), when only b is a tensor, and when the other one was asked in vain; null: there is none
  bool is_comparison = false;  // Python itself asks the reflected one then
};

// Methods that PyTorch has in Python: they ask for operands of any type, and pass (empty) keyword arguments.
bool is_python_method(std::string_view name) {
  return (name.starts_with("__r") && name != "__rshift__") || name == "__floordiv__" || name == "pow" || name == "pow_";
}

// Could the method take `other`, whose type the arguments' parser of PyTorch looks at before it asks anyone?
bool is_operand(std::string_view name, PyObject* other) {
  if (name == "__eq__" || is_python_method(name)) return true;
  return is_tensor(other) || type_overrides(Py_TYPE(other)) || is_array(other) || (is_number(other) && name != "matmul");
}

}  // namespace

/// Did the last question of the protocol fail because the other type gives each call back? (override.cpp)
bool was_endless_question();

namespace {

// Runs the protocol for the method `name` of self. Equality asks self's type alone where it overrides.
PyObject* override_method_of(PyObject* self, PyObject* other, const char* name) {
  CRESSET_PY_TRY
  Overriders overriders;
  overriders.scan(self);
  if (std::string_view(name) != "__eq__" || overriders.empty()) overriders.scan(other);
  if (overriders.empty() || !is_operand(name, other)) return nullptr;
  const Ref function = checked(PyObject_GetAttrString(reinterpret_cast<PyObject*>(tensor_type), name));
  const Ref args = checked(PyTuple_Pack(2, self, other));
  const Ref keywords = is_python_method(name) ? checked(PyDict_New()) : Ref();
  return overriders.call(function.get(), args.get(), keywords.get(), (std::string("torch.Tensor.") + name).c_str(),
                         is_python_method(name) ? self : nullptr);
  CRESSET_PY_CATCH(nullptr)
}

// Runs the protocol when an operand overrides; null without an error when none does.
CRESSET_NOINLINE PyObject* override_binary(PyObject* a, PyObject* b, const OperatorNames& names) {
  if (!is_tensor(a)) return override_method_of(b, a, names.reflected);
  PyObject* r = override_method_of(a, b, names.forward);
  const bool in_vain = !r && PyErr_Occurred() && PyErr_ExceptionMatches(PyExc_TypeError) && !was_endless_question();
  if (!in_vain || names.is_comparison || !names.reflected || !is_tensor(b) || Py_TYPE(a) == Py_TYPE(b)) return r;
  PyErr_Clear();
  return override_method_of(b, a, names.reflected);
}

// What an operator gives when the protocol failed: after a TypeError the other operand's reflected method has its turn.
PyObject* after_override() {
  if (!PyErr_Occurred() || !PyErr_ExceptionMatches(PyExc_TypeError) || was_endless_question()) return nullptr;
  PyErr_Clear();
  Py_RETURN_NOTIMPLEMENTED;
}

inline bool may_override_either(PyObject* a, PyObject* b) { return !is_plain(a) || !is_plain(b) || active_modes != 0; }

// f(tensor, tensor), and for operators with an overload for numbers g(tensor, number).
struct NoNumbers {};
template <class F, class G>
CRESSET_ALWAYS_INLINE PyObject* computed(PyObject* a, PyObject* b, const OperatorNames& names, F f, [[maybe_unused]] G g) {
  CRESSET_PY_TRY
  if (CRESSET_UNLIKELY(may_override_either(a, b))) {
    PyObject* r = override_binary(a, b, names);
    if (r || PyErr_Occurred()) return r ? r : after_override();
  }
  if (CRESSET_LIKELY(is_exact_tensor(a) && is_exact_tensor(b))) {
    const Tensor &x = unwrap(a), &y = unwrap(b);
    if (CRESSET_UNLIKELY(is_big_pair(x, y))) {
      Tensor r;
      {
        GilRelease release;
        r = f(x, y);
      }
      return wrap(std::move(r));
    }
    return wrap(f(x, y));
  }
  if constexpr (!std::is_same_v<G, NoNumbers>) {
    if (is_tensor(a) && is_number(b)) {
      const Tensor& x = unwrap(a);
      const Scalar y = to_scalar(b);
      Tensor r;
      {
        GilRelease release(is_big_pair(x, x));
        r = g(x, y);
      }
      return wrap(std::move(r));
    }
  }
  const Operand x(a), y(b);
  if (!x || !y) Py_RETURN_NOTIMPLEMENTED;
  Tensor r;
  {
    GilRelease release(is_big_pair(*x, *y));
    r = f(*x, *y);
  }
  return wrap(std::move(r));
  CRESSET_PY_CATCH(nullptr)
}

template <class F, class G = NoNumbers>
CRESSET_ALWAYS_INLINE PyObject* binary(PyObject* a, PyObject* b, const OperatorNames& names, F f, G g = {}) {
  PyObject* r = computed(a, b, names, f, g);
  return CRESSET_LIKELY(r != nullptr) ? r : after_override();
}

template <class F>
PyObject* in_place(PyObject* a, PyObject* b, const char* name, F f) {
  CRESSET_PY_TRY
  if (CRESSET_UNLIKELY(may_override_either(a, b))) {
    PyObject* r = override_binary(a, b, {name, nullptr});
    if (r || PyErr_Occurred()) return r ? r : after_override();
  }
  if (!is_tensor(a)) Py_RETURN_NOTIMPLEMENTED;
  const Operand y(b);
  if (!y) Py_RETURN_NOTIMPLEMENTED;
  {
    Tensor x = unwrap(a);
    GilRelease release(is_big_pair(x, *y));
    f(x, *y);
  }
  return Py_NewRef(a);
  CRESSET_PY_CATCH(nullptr)
}

template <class F>
PyObject* unary(PyObject* a, const char* name, F f) {
  CRESSET_PY_TRY
  if (CRESSET_UNLIKELY(may_override(a))) {
    PyObject* r = override_method(a, name);
    if (r || PyErr_Occurred()) return r;
  }
  const Tensor& x = unwrap(a);
  Tensor r;
  {
    GilRelease release(is_big_pair(x, x));
    r = f(x);
  }
  return wrap(std::move(r));
  CRESSET_PY_CATCH(nullptr)
}

#define CRESSET_BINARY(slot, function, forward, reflected)                                                               \
  PyObject* slot(PyObject* a, PyObject* b) {                                                                             \
    return binary(a, b, {forward, reflected}, [](const Tensor& x, const Tensor& y) { return cresset::function(x, y); }); \
  }
#define CRESSET_BINARY_WITH_NUMBERS(slot, function, forward, reflected)                                       \
  PyObject* slot(PyObject* a, PyObject* b) {                                                                  \
    return binary(                                                                                            \
        a, b, {forward, reflected}, [](const Tensor& x, const Tensor& y) { return cresset::function(x, y); }, \
        [](const Tensor& x, const Scalar& y) { return cresset::function(x, y); });                            \
  }
CRESSET_BINARY(nb_add, add, "add", "add")
CRESSET_BINARY(nb_multiply, mul, "mul", "mul")
CRESSET_BINARY(nb_floor_divide, floor_divide, "__floordiv__", "__rfloordiv__")
CRESSET_BINARY_WITH_NUMBERS(nb_remainder, remainder, "remainder", "__rmod__")
CRESSET_BINARY_WITH_NUMBERS(nb_and, __and__, "__and__", "bitwise_and")
CRESSET_BINARY_WITH_NUMBERS(nb_or, __or__, "__or__", "bitwise_or")
CRESSET_BINARY_WITH_NUMBERS(nb_xor, __xor__, "__xor__", "bitwise_xor")
CRESSET_BINARY_WITH_NUMBERS(nb_lshift, __lshift__, "__lshift__", "__rlshift__")
CRESSET_BINARY_WITH_NUMBERS(nb_rshift, __rshift__, "__rshift__", "__rrshift__")
#undef CRESSET_BINARY
#undef CRESSET_BINARY_WITH_NUMBERS

PyObject* nb_subtract(PyObject* a, PyObject* b) {
  // A number minus a tensor is an operator of its own.
  if (!is_tensor(a) && is_tensor(b) && (PyFloat_Check(a) || PyLong_Check(a) || PyComplex_Check(a))) {
    CRESSET_PY_TRY
    const Scalar number = to_scalar(a);
    if (CRESSET_UNLIKELY(may_override(b)))
      return binary(a, b, {"sub", "__rsub__"}, [&](const Tensor&, const Tensor& y) { return cresset::rsub(y, number); });
    const Tensor& x = unwrap(b);
    return wrap(without_lock(may_wait(x), [&] { return cresset::rsub(x, number); }));
    CRESSET_PY_CATCH(nullptr)
  }
  return binary(a, b, {"sub", "__rsub__"}, [](const Tensor& x, const Tensor& y) { return cresset::sub(x, y); });
}

PyObject* nb_true_divide(PyObject* a, PyObject* b) {
  const auto is_array_or_number = [](PyObject* o) {
    return PyFloat_Check(o) || PyLong_Check(o) || PyComplex_Check(o) || (!is_plain(o) && is_array(o) && !is_numpy_scalar(o));
  };
  if (CRESSET_UNLIKELY(!is_tensor(a) && is_array_or_number(a) && !may_override(b))) {
    // A number or an array over a tensor is the tensor's reciprocal times it, to the last bit.
    CRESSET_PY_TRY
    const Tensor& x = unwrap(b);
    const Ref reciprocal = checked(wrap(without_lock(may_wait(x), [&] { return cresset::reciprocal(x); })));
    return PyNumber_Multiply(reciprocal.get(), a);
    CRESSET_PY_CATCH(nullptr)
  }
  return binary(a, b, {"div", "__rdiv__"}, [](const Tensor& x, const Tensor& y) { return cresset::div(x, y); });
}

PyObject* nb_matmul(PyObject* a, PyObject* b) {
  if (CRESSET_UNLIKELY(!is_tensor(a) || !is_tensor(b))) {
    // Numbers are no matrices.
    PyObject* r = override_binary(a, b, {"matmul", "__rmatmul__"});
    if (r || PyErr_Occurred()) return r ? r : after_override();
    Py_RETURN_NOTIMPLEMENTED;
  }
  return binary(a, b, {"matmul", "__rmatmul__"}, [](const Tensor& x, const Tensor& y) { return cresset::matmul(x, y); });
}

PyObject* nb_power(PyObject* a, PyObject* b, PyObject* modulus) {
  if (modulus != Py_None) {
    PyErr_SetString(PyExc_TypeError, "pow() with a modulus is not supported for tensors");
    return nullptr;
  }
  if (CRESSET_UNLIKELY(may_override_either(a, b))) {
    PyObject* r = override_binary(a, b, {"pow", "__rpow__"});
    if (r || PyErr_Occurred()) return r ? r : after_override();
  }
  CRESSET_PY_TRY
  if (is_tensor(a) && is_number(b)) {
    const Tensor& x = unwrap(a);
    const Scalar y = to_scalar(b);
    return wrap(without_lock(is_big_pair(x, x), [&] { return cresset::pow(x, y); }));
  }
  if (is_tensor(b) && is_number(a)) {
    const Scalar x = to_scalar(a);
    const Tensor& y = unwrap(b);
    return wrap(without_lock(is_big_pair(y, y), [&] { return cresset::pow(x, y); }));
  }
  return binary(a, b, {"pow", "__rpow__"}, [](const Tensor& x, const Tensor& y) { return cresset::pow(x, y); });
  CRESSET_PY_CATCH(nullptr)
}

PyObject* nb_inplace_power(PyObject* a, PyObject* b, PyObject*) {
  return in_place(a, b, "pow_", [](Tensor& x, const Tensor& y) { cresset::pow_(x, y); });
}

#define CRESSET_IN_PLACE(slot, function, name)                                                \
  PyObject* slot(PyObject* a, PyObject* b) {                                                  \
    return in_place(a, b, name, [](Tensor& x, const Tensor& y) { cresset::function(x, y); }); \
  }
// Classes that inherit __iadd__ get it as the slot of sequences too, whose NotImplemented would be the result of `+=`.
PyObject* nb_inplace_add(PyObject* a, PyObject* b) {
  PyObject* r = in_place(a, b, "add_", [](Tensor& x, const Tensor& y) { cresset::add_(x, y); });
  if (CRESSET_LIKELY(r != Py_NotImplemented || Py_TYPE(a) == tensor_type)) return r;
  Py_DECREF(r);
  return PyNumber_Add(a, b);
}
CRESSET_IN_PLACE(nb_inplace_subtract, sub_, "sub_")
CRESSET_IN_PLACE(nb_inplace_multiply, mul_, "mul_")
CRESSET_IN_PLACE(nb_inplace_true_divide, div_, "div_")
CRESSET_IN_PLACE(nb_inplace_floor_divide, floor_divide_, "floor_divide_")
CRESSET_IN_PLACE(nb_inplace_remainder, remainder_, "remainder_")
CRESSET_IN_PLACE(nb_inplace_and, __iand__, "__iand__")
CRESSET_IN_PLACE(nb_inplace_or, __ior__, "__ior__")
CRESSET_IN_PLACE(nb_inplace_xor, __ixor__, "__ixor__")
CRESSET_IN_PLACE(nb_inplace_lshift, __ilshift__, "__ilshift__")
CRESSET_IN_PLACE(nb_inplace_rshift, __irshift__, "__irshift__")
#undef CRESSET_IN_PLACE

PyObject* nb_negative(PyObject* a) {
  return unary(a, "neg", [](const Tensor& x) { return cresset::neg(x); });
}
PyObject* nb_positive(PyObject* a) {
  return unary(a, "positive", [](const Tensor& x) { return cresset::positive(x); });
}
PyObject* nb_absolute(PyObject* a) {
  return unary(a, "abs", [](const Tensor& x) { return cresset::abs(x); });
}
PyObject* nb_invert(PyObject* a) {
  return unary(a, "__invert__", [](const Tensor& x) {
    CRESSET_CHECK_TYPE(isIntegralType(x.scalar_type(), true),
                       "~ (operator.invert) is only implemented on integer and Boolean-type tensors");
    return cresset::bitwise_not(x);
  });
}

PyObject* compare(PyObject* a, PyObject* b, int op) {
  // NumPy's arrays are compared for equality only: order is left to them, and they refuse.
  if (CRESSET_UNLIKELY((op == Py_EQ || op == Py_NE) && !is_plain(b) && !is_tensor(b) && is_array(b) && !is_numpy_scalar(b))) {
    CRESSET_PY_TRY
    const Ref other = checked(wrap(tensor_from_array(b)));
    return compare(a, other.get(), op);
    CRESSET_PY_CATCH(nullptr)
  }
#define CRESSET_COMPARE(function, forward, reflected)                                                             \
  return binary(                                                                                                  \
      a, b, {forward, reflected, true}, [](const Tensor& x, const Tensor& y) { return cresset::function(x, y); }, \
      [](const Tensor& x, const Scalar& y) { return cresset::function(x, y); })
  switch (op) {
    case Py_EQ: {
      // The method itself asks for a tensor of an overriding type; for another operand the operator does.
      const char* name = active_modes == 0 && (is_exact_tensor(a) || !type_overrides(Py_TYPE(a))) ? "eq" : "__eq__";
      CRESSET_COMPARE(eq, name, name);
    }
    case Py_NE: CRESSET_COMPARE(ne, "ne", "ne");
    case Py_LT: CRESSET_COMPARE(lt, "lt", "gt");
    case Py_LE: CRESSET_COMPARE(le, "le", "ge");
    case Py_GT: CRESSET_COMPARE(gt, "gt", "lt");
    default: CRESSET_COMPARE(ge, "ge", "le");
  }
#undef CRESSET_COMPARE
}

Py_hash_t tensor_hash(PyObject* o) {
  const auto h = static_cast<Py_hash_t>(reinterpret_cast<uintptr_t>(o));  // equal to id(), as in PyTorch
  return h == -1 ? -2 : h;
}

// --- conversion to Python numbers -----------------------------------------------------------------------------------------

int nb_bool(PyObject* a) {
  if (CRESSET_UNLIKELY(may_override(a))) {
    const Ref r = Ref::steal(override_method(a, "__bool__"));
    if (r) return PyObject_IsTrue(r.get());
    if (PyErr_Occurred()) return -1;
  }
  CRESSET_PY_TRY
  const Tensor& t = unwrap(a);
  if (CRESSET_UNLIKELY(is_tracing())) graph_part->warn_conversion("Python boolean");
  CRESSET_CHECK(t.numel() != 0, "Boolean value of Tensor with no values is ambiguous");
  CRESSET_CHECK(t.numel() == 1, "Boolean value of Tensor with more than one value is ambiguous");
  if (CRESSET_UNLIKELY(t.key_set().has(DispatchKey::FuncTorchBatched))) return cresset::is_nonzero(t);  // which says why not
  const Ref v = checked(item_seen(t));
  return PyObject_IsTrue(v.get());
  CRESSET_PY_CATCH(-1)
}

Ref one_number(PyObject* a) {
  const Tensor& t = unwrap(a);
  CRESSET_CHECK_VALUE(t.numel() == 1, "only one element tensors can be converted to Python scalars");
  return checked(item_seen(t));
}

// Gradients end at a number in Python.
void warn_of_gradient(const Tensor& t) {
  if (CRESSET_UNLIKELY(t.requires_grad()))
    CRESSET_WARN_FIRST(
        "Converting a tensor with requires_grad=True to a scalar may lead to unexpected behavior.\nConsider using tensor.detach() first.");
}

/// one_number for those that have no imaginary parts, `type` by its name in C++.
Ref real_number(PyObject* a, const char* type) {
  Ref number = one_number(a);
  if (CRESSET_LIKELY(!PyComplex_CheckExact(number.get()))) return number;
  const Py_complex value = PyComplex_AsCComplex(number.get());
  CRESSET_CHECK(value.imag == 0, "value cannot be converted to type ", type, " without overflow");
  return checked(PyFloat_FromDouble(value.real));
}

PyObject* nb_int(PyObject* a) {
  if (CRESSET_UNLIKELY(may_override(a))) {
    PyObject* r = override_method(a, "__int__");
    if (r || PyErr_Occurred()) return r;
  }
  CRESSET_PY_TRY
  if (CRESSET_UNLIKELY(is_tracing())) graph_part->warn_conversion("Python integer");
  return PyNumber_Long(real_number(a, "int64_t").get());
  CRESSET_PY_CATCH(nullptr)
}
PyObject* nb_float(PyObject* a) {
  if (CRESSET_UNLIKELY(may_override(a))) {
    PyObject* r = override_method(a, "__float__");
    if (r || PyErr_Occurred()) return r;
  }
  CRESSET_PY_TRY
  if (CRESSET_UNLIKELY(is_tracing())) graph_part->warn_conversion("Python float");
  warn_of_gradient(unwrap(a));
  return PyNumber_Float(real_number(a, "double").get());
  CRESSET_PY_CATCH(nullptr)
}
PyObject* nb_index(PyObject* a) {
  if (CRESSET_UNLIKELY(may_override(a))) {
    PyObject* r = override_method(a, "__index__");
    if (r || PyErr_Occurred()) return r;
  }
  CRESSET_PY_TRY
  const Tensor& t = unwrap(a);
  if (CRESSET_UNLIKELY(is_tracing())) graph_part->warn_conversion("Python index");
  CRESSET_CHECK_TYPE(t.numel() == 1 && isIntegralType(t.scalar_type(), true),
                     "only integer tensors of a single element can be converted to an index");
  return PyNumber_Long(one_number(a).get());
  CRESSET_PY_CATCH(nullptr)
}

}  // namespace

#define CRESSET_SLOT(name, function) {name, reinterpret_cast<void*>(&function)}
PyType_Slot tensor_number_slots[] = {CRESSET_SLOT(Py_nb_add, nb_add),
                                     CRESSET_SLOT(Py_nb_subtract, nb_subtract),
                                     CRESSET_SLOT(Py_nb_multiply, nb_multiply),
                                     CRESSET_SLOT(Py_nb_true_divide, nb_true_divide),
                                     CRESSET_SLOT(Py_nb_floor_divide, nb_floor_divide),
                                     CRESSET_SLOT(Py_nb_remainder, nb_remainder),
                                     CRESSET_SLOT(Py_nb_power, nb_power),
                                     CRESSET_SLOT(Py_nb_matrix_multiply, nb_matmul),
                                     CRESSET_SLOT(Py_nb_and, nb_and),
                                     CRESSET_SLOT(Py_nb_or, nb_or),
                                     CRESSET_SLOT(Py_nb_xor, nb_xor),
                                     CRESSET_SLOT(Py_nb_lshift, nb_lshift),
                                     CRESSET_SLOT(Py_nb_rshift, nb_rshift),
                                     CRESSET_SLOT(Py_nb_inplace_add, nb_inplace_add),
                                     CRESSET_SLOT(Py_nb_inplace_subtract, nb_inplace_subtract),
                                     CRESSET_SLOT(Py_nb_inplace_multiply, nb_inplace_multiply),
                                     CRESSET_SLOT(Py_nb_inplace_true_divide, nb_inplace_true_divide),
                                     CRESSET_SLOT(Py_nb_inplace_floor_divide, nb_inplace_floor_divide),
                                     CRESSET_SLOT(Py_nb_inplace_remainder, nb_inplace_remainder),
                                     CRESSET_SLOT(Py_nb_inplace_power, nb_inplace_power),
                                     CRESSET_SLOT(Py_nb_inplace_and, nb_inplace_and),
                                     CRESSET_SLOT(Py_nb_inplace_or, nb_inplace_or),
                                     CRESSET_SLOT(Py_nb_inplace_xor, nb_inplace_xor),
                                     CRESSET_SLOT(Py_nb_inplace_lshift, nb_inplace_lshift),
                                     CRESSET_SLOT(Py_nb_inplace_rshift, nb_inplace_rshift),
                                     CRESSET_SLOT(Py_nb_negative, nb_negative),
                                     CRESSET_SLOT(Py_nb_positive, nb_positive),
                                     CRESSET_SLOT(Py_nb_absolute, nb_absolute),
                                     CRESSET_SLOT(Py_nb_invert, nb_invert),
                                     CRESSET_SLOT(Py_nb_bool, nb_bool),
                                     CRESSET_SLOT(Py_nb_int, nb_int),
                                     CRESSET_SLOT(Py_nb_float, nb_float),
                                     CRESSET_SLOT(Py_nb_index, nb_index),
                                     CRESSET_SLOT(Py_tp_richcompare, compare),
                                     CRESSET_SLOT(Py_tp_hash, tensor_hash),
                                     {0, nullptr}};
#undef CRESSET_SLOT

}  // namespace cresset::python
