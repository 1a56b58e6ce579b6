// Registering operators and kernels from Python.
#include <cresset/base/small_vector.h>
#include <cresset/core/grad_mode.h>
#include <cresset/core/tensor_impl.h>
#include <cresset/dispatch/library.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <set>
#include <unordered_map>

#include "python/autograd.h"
#include "python/bind.h"
#include "python/convert.h"
#include "python/dispatch.h"
#include "python/python_kernel.h"

namespace cresset::python {

PyObject* make_key_set(DispatchKeySet ks);

namespace {

PyTypeObject* library_type = nullptr;

template <class F>
void for_each_tensor(const IValue& v, F f) {
  if (v.isTensor()) {
    if (const Tensor t = v.toTensor(); t.defined()) f(t);
  } else if (v.isList()) {
    for (const IValue& e : v.toListRef()) for_each_tensor(e, f);
  }
}

// Would autograd record a call with these arguments?
bool records(const Stack& stack, std::size_t n) {
  if (!GradMode::is_enabled()) return false;
  bool any = false;
  for (std::size_t i = stack.size() - n; i < stack.size() && !any; ++i)
    for_each_tensor(stack[i], [&](const Tensor& t) { any |= t.requires_grad(); });
  return any;
}

// A custom operator's results share no memory with its arguments or with each other.
void check_fresh(const FunctionSchema& schema, const std::vector<IValue>& inputs, const Stack& stack) {
  std::vector<const void*> seen;
  const auto memory = [](const Tensor& t) -> const void* {
    return t.has_storage() ? static_cast<const void*>(t.unsafeGetTensorImpl()->unsafe_storage().unsafeGetStorageImpl())
                           : static_cast<const void*>(t.unsafeGetTensorImpl());
  };
  for (const IValue& v : inputs) for_each_tensor(v, [&](const Tensor& t) { seen.push_back(memory(t)); });
  for (std::size_t i = stack.size() - schema.returns().size(); i < stack.size(); ++i)
    for_each_tensor(stack[i], [&](const Tensor& t) {
      const void* m = memory(t);
      CRESSET_CHECK(std::find(seen.begin(), seen.end(), m) == seen.end(), schema.operator_name(),
                    ": The output of this custom operator (1) must not also be an input to this custom operator and (2) may not alias any "
                    "inputs to this custom operator or other returns. The most common way to trigger this error is if we have y = "
                    "custom_op(x) and y and x are the same Tensor. Please instead return a clone of the offending output tensor(s) (e.g. "
                    "return x.clone()) or refactor the custom operator to not return y.");
      seen.push_back(m);
    });
}

void bump_mutated(const FunctionSchema& schema, const std::vector<IValue>& inputs) {
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (schema.arguments()[i].is_mutable())
      for_each_tensor(inputs[i], [](const Tensor& t) {
        if (!t.is_inference()) t.unsafeGetTensorImpl()->bump_version();
      });
}

// The arguments of a vector call; owned.
class CallArguments {
 public:
  CallArguments() = default;
  CallArguments(const CallArguments&) = delete;
  ~CallArguments() {
    for (PyObject* o : items_) Py_XDECREF(o);
  }
  void push(Ref value) { items_.push_back(value.release()); }
  std::size_t count() const { return items_.size() - 1; }
  PyObject** data() { return items_.data() + 1; }

 private:
  SmallVector<PyObject*, 10> items_{std::initializer_list<PyObject*>{nullptr}};  // room in front for a bound method's object
};

// What a function written in Python cannot do without: parameters that have no default.
struct Required {
  std::size_t positional = 0;   // so many in front
  std::set<std::string> names;  // of all

  explicit Required(PyObject* f) {
    if (PyMethod_Check(f)) f = PyMethod_GET_FUNCTION(f);
    if (!PyFunction_Check(f)) return;
    PyObject* code = PyFunction_GET_CODE(f);
    const Ref names_of_all = checked(PyObject_GetAttrString(code, "co_varnames"));
    const auto count = [&](const char* name) { return PyLong_AsSsize_t(checked(PyObject_GetAttrString(code, name)).get()); };
    const Py_ssize_t arguments = count("co_argcount"), keyword_only = count("co_kwonlyargcount");
    PyObject *defaults = PyFunction_GET_DEFAULTS(f), *keyword_defaults = PyFunction_GET_KW_DEFAULTS(f);
    const Py_ssize_t needed = arguments - (defaults ? PyTuple_GET_SIZE(defaults) : 0);
    positional = static_cast<std::size_t>(needed);
    for (Py_ssize_t i = 0; i < arguments + keyword_only; ++i) {
      PyObject* name = PyTuple_GET_ITEM(names_of_all.get(), i);
      if (i < needed || (i >= arguments && !(keyword_defaults && PyDict_Contains(keyword_defaults, name) == 1)))
        names.insert(to_text(name));
    }
  }
};

struct PythonFunction {
  explicit PythonFunction(PyObject* f) : object(share(f)), required(f) {}
  std::shared_ptr<PyObject> object;
  Required required;
};

// A kernel written in Python. Gets the operator's arguments, keyword-only ones by name; gives the results.
struct PythonKernel final : OperatorKernel {
  PythonKernel(bool with_keys, bool is_fallback, bool only_with_grad, bool custom)
      : with_keys(with_keys), is_fallback(is_fallback), only_with_grad(only_with_grad), custom(custom) {}

  void operator()(const OperatorHandle& op, DispatchKeySet keys, Stack* stack) {
    if (only_with_grad && !records(*stack, op.schema().arguments().size())) {
      const AutoDispatchBelowAutograd guard;
      op.redispatchBoxed(keys & after_autograd_keyset, stack);
      return;
    }
    GilAcquire gil;
    try {
      run(op, keys, *stack);
    } catch (const ErrorAlreadySet&) {
      throw_python_error();
    }
  }

  void run(const OperatorHandle& op, DispatchKeySet keys, Stack& stack) {
    const FunctionSchema& schema = op.schema();
    const std::shared_ptr<const PythonFunction> f = function;  // the library may go while its kernel runs
    CRESSET_CHECK(f, schema.operator_name(), ": the library of this kernel has been destroyed.");
    const auto& parameters = schema.arguments();
    const std::size_t n = parameters.size();
    const IValue* first = stack.data() + (stack.size() - n);
    // As in PyTorch, what has its default value is left to the function, where it has a default of its own. Formulas and custom
    // operators get everything.
    const bool leave_out = !custom && !only_with_grad;
    const std::size_t in_front = (with_keys ? 1 : 0) + (is_fallback ? 1 : 0);
    const auto given = [&](std::size_t i) {
      const auto& standard = parameters[i].default_value;
      if (!leave_out || !standard || first[i].isTensor() || !(first[i] == *standard)) return true;
      return parameters[i].kwarg_only ? f->required.names.contains(parameters[i].name) : i + in_front < f->required.positional;
    };
    std::size_t positional = 0;
    for (std::size_t i = 0; i < n; ++i)
      if (!parameters[i].kwarg_only && given(i)) positional = i + 1;
    CallArguments args;
    const auto push = [&](Ref value) { args.push(std::move(value)); };
    if (with_keys) push(checked(make_key_set(keys)));
    if (is_fallback) push(checked(wrap_overload(op)));
    for (std::size_t i = 0; i < positional; ++i) push(argument_to_python(first[i], *parameters[i].type));
    const std::size_t count = args.count();
    Ref keywords;
    for (std::size_t i = positional; i < n; ++i) {
      if (!parameters[i].kwarg_only || !given(i)) continue;
      if (!keywords) keywords = checked(PyList_New(0));
      checked(PyList_Append(keywords.get(), checked(PyUnicode_InternFromString(parameters[i].name.c_str())).get()));
      push(argument_to_python(first[i], *parameters[i].type));
    }
    if (keywords) keywords = checked(PyList_AsTuple(keywords.get()));
    // Memory of tensors that require grad may be looked at below autograd (Tensor.numpy asks for the mode).
    std::optional<NoGradGuard> no_grad;
    if (custom && records(stack, n)) no_grad.emplace();
    const Ref result = checked(PyObject_Vectorcall(f->object.get(), args.data(), count | PY_VECTORCALL_ARGUMENTS_OFFSET, keywords.get()));
    if (!custom) {
      replace_by_results(schema, result.get(), stack);
      return;
    }
    const std::vector<IValue> inputs(first, first + n);
    replace_by_results(schema, result.get(), stack);
    check_fresh(schema, inputs, stack);
    bump_mutated(schema, inputs);
  }

  std::shared_ptr<const PythonFunction> function;  // read, set and dropped with the lock held
  const bool with_keys, is_fallback;
  const bool only_with_grad;  // a formula: calls that record nothing go on without asking it
  const bool custom;          // results must be fresh, mutated arguments count a version
};

// Where a kernel is registered and how it calls.
using KernelPlace = std::string;

// A block of registrations. The dispatcher keeps removed kernels for calls that are still under way; what they hold in
// Python is dropped with the block. The next kernel of the same place takes the object over: who registers and removes again and again
// needs no more memory, and a call that is late finds the kernel that is there now.
struct Block {
  Library library;
  std::string key;
  std::vector<std::pair<KernelPlace, intrusive_ptr<PythonKernel>>> kernels;
};
auto& idle_kernels() {
  static auto& idle = *new std::unordered_map<KernelPlace, std::vector<intrusive_ptr<PythonKernel>>>();
  return idle;
}
struct PyLibrary {
  PyObject_HEAD Block* block;
};

PyObject* fallthrough_marker = nullptr;

CppFunction make_kernel(Block& block, PyObject* f, const std::string& name, const std::string& key, bool with_keys, bool is_fallback,
                        const std::string& role = "") {
  if (f == fallthrough_marker) return CppFunction::makeFallthrough();
  CRESSET_CHECK_TYPE(PyCallable_Check(f), "impl: a callable was required; a ", type_name(Py_TYPE(f)), " was given.");
  auto function = std::make_shared<const PythonFunction>(f);
  KernelPlace place = str(block.library.ns(), ' ', name, ' ', key.empty() ? block.key : key, ' ', with_keys, is_fallback, ' ', role);
  intrusive_ptr<PythonKernel> kernel;
  if (const auto known = idle_kernels().find(place); known != idle_kernels().end() && !known->second.empty()) {
    kernel = std::move(known->second.back());
    known->second.pop_back();
  } else {
    kernel = make_intrusive<PythonKernel>(with_keys, is_fallback, role == "formula", role == "custom");
  }
  kernel->function = std::move(function);
  block.kernels.emplace_back(std::move(place), kernel);
  return CppFunction::makeFromBoxedFunctor(std::move(kernel));
}

// Text that lives as long as the process: registrations keep pointers to their file name.
const char* keep_text(const std::string& s) {
  static auto& kept = *new std::set<std::string>();
  return kept.insert(s).first->c_str();
}

std::optional<DispatchKey> optional_key(const std::string& name) {
  if (name.empty()) return std::nullopt;
  return parseDispatchKey(name);
}

// _Library(kind, namespace, dispatch key or "", file, line); _dispatch_library is its name in PyTorch
PyObject* library_new(PyTypeObject* type, PyObject* args, PyObject*) {
  CRESSET_PY_TRY
  const char *kind, *ns, *key = "", *file = "/dev/null";
  unsigned line = 0;
  if (!PyArg_ParseTuple(args, "ss|ssI:_Library", &kind, &ns, &key, &file, &line)) return nullptr;
  const std::string k = kind;
  const Library::Kind which = k == "DEF" ? Library::DEF : k == "IMPL" ? Library::IMPL : Library::FRAGMENT;
  auto block = std::make_unique<Block>(Block{Library(which, ns, optional_key(key), keep_text(file), line), key, {}});
  auto* o = reinterpret_cast<PyLibrary*>(type->tp_alloc(type, 0));
  if (!o) return nullptr;
  o->block = block.release();
  return reinterpret_cast<PyObject*>(o);
  CRESSET_PY_CATCH(nullptr)
}

Block& block_of(PyObject* o) {
  Block* b = reinterpret_cast<PyLibrary*>(o)->block;
  CRESSET_CHECK(b, "Library: this library has been destroyed.");
  return *b;
}
Library& library_of(PyObject* o) { return block_of(o).library; }

// Removal waits for the registry's lock, whose holder may wait for the interpreter.
void destroy(PyObject* o) {
  const std::unique_ptr<Block> b(std::exchange(reinterpret_cast<PyLibrary*>(o)->block, nullptr));
  if (!b) return;
  {
    GilRelease release;
    b->library.reset();
  }
  for (auto& [place, kernel] : b->kernels) {
    kernel->function.reset();
    try {
      idle_kernels()[place].push_back(std::move(kernel));
    } catch (const std::bad_alloc&) {  // the dispatcher keeps it
    }
  }
}
void library_dealloc(PyObject* o) {
  destroy(o);
  PyTypeObject* type = Py_TYPE(o);
  type->tp_free(o);
  Py_DECREF(type);
}
PyObject* library_reset(PyObject* o, PyObject*) {
  CRESSET_PY_TRY
  destroy(o);
  Py_RETURN_NONE;
  CRESSET_PY_CATCH(nullptr)
}

AliasAnalysisKind to_alias_kind(const std::string& name) {
  if (name == "CONSERVATIVE") return AliasAnalysisKind::CONSERVATIVE;
  if (name == "PURE_FUNCTION") return AliasAnalysisKind::PURE_FUNCTION;
  CRESSET_CHECK(name == "FROM_SCHEMA" || name.empty(), "Invalid alias analysis type ", name,
                ": CONSERVATIVE, FROM_SCHEMA, PURE_FUNCTION or nothing was required.");
  return AliasAnalysisKind::FROM_SCHEMA;
}

// define(schema, alias analysis, tags): the operator's name with overload.
PyObject* library_define(PyObject* o, PyObject* args) {
  CRESSET_PY_TRY
  const char *text, *alias = "";
  PyObject* tags = nullptr;
  if (!PyArg_ParseTuple(args, "s|sO:define", &text, &alias, &tags)) return nullptr;
  Library& library = library_of(o);
  const std::string kind = alias;
  std::vector<std::string> tag_names;
  if (tags && tags != Py_None) tag_names = Convert<std::vector<std::string>>::from(tags);
  std::string written = text;
  FunctionSchema schema = parse_schema(written);
  if (!kind.empty()) schema.set_alias_analysis(to_alias_kind(kind));
  const std::string own = schema.operator_name().str();
  const std::string name = own.find("::") == std::string::npos ? library.ns() + "::" + own : own;
  const bool parsed = kind.empty();
  {
    GilRelease release;
    if (parsed && own == written.substr(0, own.size()) && own.find("::") == std::string::npos)
      library.def(written, std::move(tag_names));
    else
      library.def(std::move(schema), std::move(tag_names));
  }
  return PyUnicode_FromString(name.c_str());
  CRESSET_PY_CATCH(nullptr)
}

// impl(name, function, dispatch key or "", with_keyset, debug, role): role "formula" and "custom" as PythonKernel says
PyObject* library_impl(PyObject* o, PyObject* args) {
  CRESSET_PY_TRY
  const char *name, *key = "", *debug = "", *role = "";
  PyObject* f;
  int with_keys = 0;
  // PyTorch's order is impl(name, dispatch key, function, with_keyset).
  if (PyTuple_GET_SIZE(args) > 1 && PyUnicode_Check(PyTuple_GET_ITEM(args, 1))) {
    if (!PyArg_ParseTuple(args, "ssO|p:impl", &name, &key, &f, &with_keys)) return nullptr;
  } else if (!PyArg_ParseTuple(args, "sO|spss:impl", &name, &f, &key, &with_keys, &debug, &role)) {
    return nullptr;
  }
  Library& library = library_of(o);
  CppFunction kernel = make_kernel(block_of(o), f, name, key, with_keys, false, role);
  if (*debug) std::move(kernel).debug(debug);
  const std::optional<DispatchKey> k = optional_key(key);
  {
    GilRelease release;
    if (k)
      library.impl(name, dispatch(*k, std::move(kernel)));
    else
      library.impl(name, std::move(kernel));
  }
  Py_RETURN_NONE;
  CRESSET_PY_CATCH(nullptr)
}

// fallback(function, dispatch key or "", with_keyset): called as function([keyset,] overload, *args, **kwargs)
PyObject* library_fallback(PyObject* o, PyObject* args) {
  CRESSET_PY_TRY
  const char* key = "";
  PyObject* f;
  int with_keys = 0;
  if (!PyArg_ParseTuple(args, "O|sp:fallback", &f, &key, &with_keys)) return nullptr;
  Library& library = library_of(o);
  CppFunction kernel = make_kernel(block_of(o), f, "", key, with_keys, true);
  const std::optional<DispatchKey> k = optional_key(key);
  {
    GilRelease release;
    if (k)
      library.fallback(dispatch(*k, std::move(kernel)));
    else
      library.fallback(std::move(kernel));
  }
  Py_RETURN_NONE;
  CRESSET_PY_CATCH(nullptr)
}

// --- registrations with a kernel in C++, [](const Tensor& x) { return x; }, by the names that PyTorch's tests of the dispatcher use

CppFunction identity_kernel(const char* key, const char* debug) {
  CppFunction kernel([](const Tensor& x) { return x; });
  if (const auto k = optional_key(key)) return dispatch(*k, std::move(kernel)).debug(debug);
  return std::move(kernel).debug(debug);
}

// Calls f(library, three texts) for method(first, second="", third=""); the names are those of the texts.
template <class F>
PyObject* register_texts(PyObject* o, PyObject* args, PyObject* kwargs, const char* const (&names)[4], const char* standard, F f) {
  CRESSET_PY_TRY
  const char *first = "", *second = "", *third = standard;
  const std::string format = std::string(*names[0] == 'd' ? "|sss:" : "s|ss:") + "registration";
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, format.c_str(), const_cast<char**>(names), &first, &second, &third)) return nullptr;
  Library& library = library_of(o);
  {
    GilRelease release;
    f(library, first, second, third);
  }
  return Py_NewRef(o);
  CRESSET_PY_CATCH(nullptr)
}
PyObject* library_def(PyObject* o, PyObject* args, PyObject* kwargs) {
  return register_texts(o, args, kwargs, {"schema", "alias", "debug", nullptr}, "",
                        [](Library& m, const char* text, const char* alias, const char*) { m.def(schema(text, to_alias_kind(alias))); });
}
PyObject* library_def_legacy(PyObject* o, PyObject* args, PyObject* kwargs) {
  return register_texts(o, args, kwargs, {"schema", "alias", "debug", nullptr}, "",
                        [](Library& m, const char* text, const char*, const char*) { m.def(text); });
}
PyObject* library_def_name(PyObject* o, PyObject* args, PyObject* kwargs) {
  return register_texts(o, args, kwargs, {"name", "dispatch", "debug", nullptr}, "default_def_name_t_t",
                        [](Library& m, const char* name, const char* key, const char* debug) { m.def(name, identity_kernel(key, debug)); });
}
PyObject* library_impl_identity(PyObject* o, PyObject* args, PyObject* kwargs) {
  return register_texts(
      o, args, kwargs, {"name", "dispatch", "debug", nullptr}, "impl_t_t",
      [](Library& m, const char* name, const char* key, const char* debug) { m.impl(name, identity_kernel(key, debug)); });
}
PyObject* library_fallthrough(PyObject* o, PyObject* args, PyObject* kwargs) {
  return register_texts(o, args, kwargs, {"dispatch", "_", "__", nullptr}, "", [](Library& m, const char* key, const char*, const char*) {
    const auto k = optional_key(key);
    m.fallback(k ? dispatch(*k, CppFunction::makeFallthrough()) : CppFunction::makeFallthrough());
  });
}

#define CRESSET_REGISTRATION(name, f) \
  {name, reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(&f)), METH_VARARGS | METH_KEYWORDS, nullptr}
PyMethodDef library_methods[] = {CRESSET_REGISTRATION("def_", library_def),
                                 CRESSET_REGISTRATION("def_legacy", library_def_legacy),
                                 CRESSET_REGISTRATION("def_name_t_t", library_def_name),
                                 CRESSET_REGISTRATION("impl_t_t", library_impl_identity),
                                 CRESSET_REGISTRATION("fallback_fallthrough", library_fallthrough),
                                 {"define", library_define, METH_VARARGS, nullptr},
                                 {"impl", library_impl, METH_VARARGS, nullptr},
                                 {"fallback", library_fallback, METH_VARARGS, nullptr},
                                 {"reset", library_reset, METH_NOARGS, nullptr},
                                 {}};

}  // namespace

void init_library(PyObject* module) {
  PyType_Slot slots[] = {{Py_tp_new, reinterpret_cast<void*>(&library_new)},
                         {Py_tp_dealloc, reinterpret_cast<void*>(&library_dealloc)},
                         {Py_tp_methods, library_methods},
                         {0, nullptr}};
  PyType_Spec spec{"cresset._C._Library", sizeof(PyLibrary), 0, Py_TPFLAGS_DEFAULT, slots};
  library_type = reinterpret_cast<PyTypeObject*>(checked(PyType_FromSpec(&spec)).release());
  checked(PyModule_AddObjectRef(module, "_Library", reinterpret_cast<PyObject*>(library_type)));
  checked(PyModule_AddObjectRef(module, "_dispatch_library", reinterpret_cast<PyObject*>(library_type)));
  checked(PyModule_AddObjectRef(module, "_tag_names", names_tuple(tag_names, std::size(tag_names)).get()));
  def(module, "_fallthrough_kernel",
      [] { CRESSET_THROW(NotImplementedError, "fallthrough_kernel is a marker for Library.impl and cannot be called."); });
  fallthrough_marker = checked(PyObject_GetAttrString(module, "_fallthrough_kernel")).release();
}

}  // namespace cresset::python
