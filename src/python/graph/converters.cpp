// Converters and evaluators in Python: functions that cresset.engine registers.
#include <cresset/engine/converters.h>

#include "python/convert.h"
#include "python/graph/ir.h"
#include "python/graph/script_values.h"
#include "python/graph_part.h"

namespace cresset::python {
namespace conversion {
namespace {

using engine::ConversionCtx;

constexpr const char* kCtx = "cresset.conversion_ctx";

// What Python has of the context: nothing once the converter has returned.
struct Lent {
  ConversionCtx* ctx;
};
ConversionCtx& ctx_of(PyObject* capsule) {
  const auto* lent = static_cast<Lent*>(PyCapsule_GetPointer(capsule, kCtx));
  if (!lent) throw ErrorAlreadySet();
  CRESSET_CHECK(lent->ctx, "converter: the context is gone once its converter has returned.");
  return *lent->ctx;
}

IValue constant_of(PyObject* o) { return to_fitting_ivalue(o, *basic_type(TypeKind::Any)); }

// Lists with values in them are made by a node.
jit::NamedValue argument_of(ConversionCtx& ctx, PyObject* o) {
  if (is_value(o)) return to_value(o);
  const bool list = PyList_Check(o) || PyTuple_Check(o);
  std::vector<Value*> members;
  for (Py_ssize_t i = 0; list && i < PySequence_Fast_GET_SIZE(o); ++i)
    if (PyObject* m = PySequence_Fast_GET_ITEM(o, i); is_value(m)) members.push_back(to_value(m));
  if (members.empty()) return constant_of(o);
  CRESSET_CHECK_TYPE(members.size() == static_cast<std::size_t>(PySequence_Fast_GET_SIZE(o)),
                     "converter: a list of values alone, or of constants alone, was required.");
  return ctx.graph()->insertNode(ctx.graph()->createList(members[0]->type(), members))->output();
}

std::vector<Value*> values_of(PyObject* result) {
  if (is_value(result)) return {to_value(result)};
  CRESSET_CHECK_TYPE(PyTuple_Check(result) || PyList_Check(result), "converter: a value, or a tuple of values, was required; it gave a ",
                     type_name(Py_TYPE(result)), ".");
  std::vector<Value*> out;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(result); ++i) out.push_back(to_value(PySequence_Fast_GET_ITEM(result, i)));
  return out;
}

std::vector<Value*> convert(PyObject* function, ConversionCtx& ctx, const Node* n, const std::vector<Value*>& inputs) {
  const GilAcquire gil;
  auto* lent = new Lent{&ctx};
  const Ref capsule = checked(PyCapsule_New(lent, kCtx, [](PyObject* c) { delete static_cast<Lent*>(PyCapsule_GetPointer(c, kCtx)); }));
  const Ref arguments = checked(PyTuple_New(static_cast<Py_ssize_t>(2 + inputs.size())));
  PyTuple_SET_ITEM(arguments.get(), 0, Py_NewRef(capsule.get()));
  PyTuple_SET_ITEM(arguments.get(), 1, wrap_part(const_cast<Node*>(n)));
  for (std::size_t i = 0; i < inputs.size(); ++i) PyTuple_SET_ITEM(arguments.get(), static_cast<Py_ssize_t>(2 + i), wrap_part(inputs[i]));
  const Ref result = Ref::steal(PyObject_Call(function, arguments.get(), nullptr));
  lent->ctx = nullptr;
  if (!result) throw ErrorAlreadySet();
  return values_of(result.get());
}

bool says_yes(PyObject* function, const Node* n) {
  const GilAcquire gil;
  const Ref node = checked(wrap_part(const_cast<Node*>(n)));
  const Ref result = checked(PyObject_CallOneArg(function, node.get()));
  const int yes = PyObject_IsTrue(result.get());
  if (yes < 0) throw ErrorAlreadySet();
  return yes == 1;
}

std::vector<IValue> evaluate(PyObject* function, const std::vector<IValue>& inputs) {
  const GilAcquire gil;
  const Ref arguments = checked(PyTuple_New(static_cast<Py_ssize_t>(inputs.size())));
  for (std::size_t i = 0; i < inputs.size(); ++i)
    PyTuple_SET_ITEM(arguments.get(), static_cast<Py_ssize_t>(i), checked(to_python(inputs[i], false)).release());
  const Ref result = checked(PyObject_Call(function, arguments.get(), nullptr));
  std::vector<IValue> out;
  if (!PyTuple_Check(result.get())) return {constant_of(result.get())};
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(result.get()); ++i) out.push_back(constant_of(PyTuple_GET_ITEM(result.get(), i)));
  return out;
}

}  // namespace
}  // namespace conversion

void init_converters(PyObject* module) {
  using namespace conversion;
  def(module, "_engine_register_converter", [](std::string backend, std::string signature, PyObject* function, PyObject* supports) {
    const HeldPtr held = std::make_shared<const Held>(function), asked = std::make_shared<const Held>(supports);
    engine::ConversionPattern pattern{std::move(signature), [held](ConversionCtx& ctx, const Node* n, const std::vector<Value*>& inputs) {
                                        return convert(held->get(), ctx, n, inputs);
                                      }};
    if (supports != Py_None) pattern.supports = [asked](const Node* n) { return says_yes(asked->get(), n); };
    engine::register_converter(backend, std::move(pattern));
  });
  def(module, "_engine_register_evaluator", [](std::string signature, PyObject* function) {
    const HeldPtr held = std::make_shared<const Held>(function);
    engine::register_evaluator(signature, [held](const std::vector<IValue>& inputs) { return evaluate(held->get(), inputs); });
  });
  def(module, "_conversion_call", [](PyObject* capsule, std::string op, PyObject* arguments) {
    ConversionCtx& ctx = ctx_of(capsule);
    CRESSET_CHECK_TYPE(PyTuple_Check(arguments), "converter: a tuple of arguments was required.");
    jit::NamedValues values;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(arguments); ++i) values.push_back(argument_of(ctx, PyTuple_GET_ITEM(arguments, i)));
    return ctx.call(op, values);
  });
  def(module, "_conversion_weight", [](PyObject* capsule, const Tensor& t) { return ctx_of(capsule).weight(t); });
  // (is it known?, the value)
  def(module, "_conversion_constant", [](PyObject* capsule, Value* v) {
    const auto known = ctx_of(capsule).constant(v);
    return Object(Py_BuildValue("(ON)", known ? Py_True : Py_False, known ? to_python(*known, false) : Py_NewRef(Py_None)));
  });
}

}  // namespace cresset::python
