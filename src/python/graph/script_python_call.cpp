// Functions that stay in Python.
#include "python/graph/script_python_call.h"

#include <mutex>

#include <cresset/base/fork.h>
#include <cresset/ir/interpreter.h>

#include "python/convert.h"
#include "python/graph/script_convert.h"

namespace cresset::python {

using jit::CallArgument;
using jit::GraphFunction;
using jit::script_error;
using jit::SourceRange;
using jit::SugaredValue;
using jit::SugaredValuePtr;
using Arguments = std::vector<CallArgument>;

namespace {

ForkSafe<std::mutex> calls_mutex;
// The functions of prim::PythonOp nodes by number, which is their attribute `id`.
std::vector<HeldPtr>& python_calls() {
  static auto& calls = *new std::vector<HeldPtr>();
  return calls;
}
const Symbol kId = Symbol::attr("id");

struct PythonParameter {
  std::string name;
  TypePtr type;
  std::optional<IValue> default_value;
};

/// Left to Python (jit.ignore): a node that calls it, with the module first when it is a method.
class PythonCallValue final : public SugaredValue {
 public:
  PythonCallValue(std::string name, PyObject* function, std::vector<PythonParameter> parameters, TypePtr returns, Value* self)
      : name_(std::move(name)),
        function_(std::make_shared<Held>(function)),
        parameters_(std::move(parameters)),
        returns_(std::move(returns)),
        self_(self) {}
  std::string kind() const override { return "python function"; }
  SugaredValuePtr call(const SourceRange& range, GraphFunction& m, const Arguments& args, const Arguments& kwargs, std::size_t) override {
    Graph& g = *m.graph();
    std::vector<Value*> inputs;
    if (self_) inputs.push_back(self_);
    const bool collects = !parameters_.empty() && parameters_.back().name.starts_with('*');
    if (args.size() > parameters_.size() && !collects)
      script_error(range, "\n" + declaration() + ":\nExpected at most " + std::to_string(parameters_.size() + inputs.size()) +
                              " arguments but found " + std::to_string(args.size() + inputs.size()) + " positional arguments.\n");
    for (const CallArgument& k : kwargs)
      if (std::none_of(parameters_.begin(), parameters_.end(), [&](const PythonParameter& p) { return p.name == k.name; }))
        script_error(k.range, name_ + "(): Unknown keyword argument '" + k.name + "'");
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      const PythonParameter& p = parameters_[i];
      if (collects && &p == &parameters_.back()) {
        for (std::size_t k = i; k < args.size(); ++k) inputs.push_back(args[k].value->asValue(args[k].range, m));
        break;
      }
      Value* v = i < args.size() ? args[i].value->asValue(args[i].range, m) : nullptr;
      for (const CallArgument& k : kwargs)
        if (k.name == p.name) v = k.value->asValue(k.range, m);
      if (!v && !p.default_value) script_error(range, "\n" + declaration() + ":\nArgument " + p.name + " not provided.\n");
      if (!v) v = jit::constant_value(*p.default_value)->asValue(range, m);
      if (!v->type()->is_subtype_of(*p.type))
        script_error(range, name_ + "(): Expected a value of type '" + p.type->annotation_str() + "' for argument '" + p.name +
                                "' but instead found type '" + v->type()->annotation_str() + "'.");
      inputs.push_back(v);
    }
    Node* n = g.insertNode(g.create(jit::prim::PythonOp, inputs, 1));
    n->setSourceRange(range);
    n->s_(jit::attr::name, name_)->i_(kId, remember());
    n->output()->setType(returns_);
    return jit::simple_value(n->output());
  }

 private:
  std::string declaration() const {
    std::string out = name_ + "(";
    if (self_) out += self_->type()->str() + " self";
    for (const PythonParameter& p : parameters_) out += (out.ends_with("(") ? "" : ", ") + p.type->str() + " " + p.name;
    return out + ") -> " + returns_->str();
  }
  int64_t remember() const {
    const std::lock_guard lock(calls_mutex);
    python_calls().push_back(function_);
    return static_cast<int64_t>(python_calls().size()) - 1;
  }
  std::string name_;
  HeldPtr function_;
  std::vector<PythonParameter> parameters_;
  TypePtr returns_;
  Value* self_;
};

void run_python_call(const Node& n, Stack& stack) {
  HeldPtr function;
  {
    const std::lock_guard lock(calls_mutex);
    const auto& calls = python_calls();
    const int64_t id = n.hasAttribute(kId) ? n.i(kId) : -1;
    CRESSET_CHECK(id >= 0 && id < static_cast<int64_t>(calls.size()), "the Python function of ", n.str(), " is not known in this process.");
    function = calls[static_cast<std::size_t>(id)];
  }
  const GilAcquire gil;
  try {
    const std::size_t count = n.inputs().size(), first = stack.size() - count;
    const Ref args = checked(PyTuple_New(static_cast<Py_ssize_t>(count)));
    for (std::size_t i = 0; i < count; ++i)
      PyTuple_SET_ITEM(args.get(), static_cast<Py_ssize_t>(i), checked(to_python(std::move(stack[first + i]), false)).release());
    stack.resize(first);
    const Ref result = checked(PyObject_CallObject(function->get(), args.get()));
    const Type& wanted = *n.output()->type();
    if (result.get() == Py_None && wanted.kind == TypeKind::Tensor)
      stack.emplace_back(Tensor());  // what is not annotated is taken for a tensor
    else if (fits(result.get(), wanted))
      stack.push_back(to_fitting_ivalue(result.get(), wanted));
    else
      CRESSET_THROW(TypeError, n.s(jit::attr::name), "() expected value of type ", wanted.str(),
                    " for return value but instead got value of type ", type_name(Py_TYPE(result.get())),
                    ".\nValue: ", to_text(checked(PyObject_Repr(result.get())).get()));
  } catch (const ErrorAlreadySet&) {
    throw_python_error();
  }
}

std::vector<PythonParameter> python_parameters(const std::string& function, const std::vector<std::string>& names,
                                               const std::vector<TypePtr>& types, PyObject* defaults) {
  CRESSET_CHECK_TYPE(names.size() == types.size() && PyDict_Check(defaults), function,
                     "(): a type for each parameter and a dict were required.");
  std::vector<PythonParameter> parameters;
  for (std::size_t i = 0; i < names.size(); ++i) {
    PythonParameter p{names[i], types[i], std::nullopt};
    if (PyObject* value = PyDict_GetItemString(defaults, names[i].c_str())) p.default_value = to_ivalue(value, *types[i], function + "()");
    parameters.push_back(std::move(p));
  }
  return parameters;
}

}  // namespace

SugaredValuePtr python_call_value(std::string name, PyObject* function, const std::vector<std::string>& names,
                                  const std::vector<TypePtr>& types, PyObject* defaults, TypePtr returns, Value* self) {
  auto parameters = python_parameters(name, names, types, defaults);
  return std::make_shared<PythonCallValue>(std::move(name), function, std::move(parameters), std::move(returns), self);
}

void install_python_nodes() { jit::set_python_op_handler(&run_python_call); }

}  // namespace cresset::python
