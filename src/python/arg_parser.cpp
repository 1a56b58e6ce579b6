// Matching the arguments of a Python call against operator schemas.
#include "python/arg_parser.h"

#include <cresset/base/warn_always.h>

#include "ops/shared/promotion.h"

#include <algorithm>
#include <utility>

#include "python/graph_part.h"

namespace cresset::python {

struct Plan::Failure {
  enum What { TooMany, Missing, Unexpected, Twice, WrongType } what = Missing;
  int parameter = 0;
  int position = -1;  // 1-based place of a positional argument
  PyObject* object = nullptr;
  PyObject* keyword = nullptr;
};

namespace {

struct KindOf {
  Kind kind;
  bool optional;
};

KindOf kind_of(const Type& type) {
  switch (type.kind) {
    case TypeKind::Optional: return {kind_of(*type.element()).kind, true};
    case TypeKind::Tensor: return {Kind::Tensor, false};
    case TypeKind::Number: return {Kind::Scalar, false};
    case TypeKind::Int:
    case TypeKind::SymInt: return {Kind::Int, false};
    case TypeKind::Float: return {Kind::Float, false};
    case TypeKind::Bool: return {Kind::Bool, false};
    case TypeKind::String: return {Kind::Str, false};
    case TypeKind::ScalarType: return {Kind::Dtype, false};
    case TypeKind::Layout: return {Kind::Layout, false};
    case TypeKind::MemoryFormat: return {Kind::MemoryFormat, false};
    case TypeKind::Device: return {Kind::Device, false};
    case TypeKind::Generator: return {Kind::Generator, false};
    case TypeKind::List:
      switch (type.element()->kind) {
        case TypeKind::Tensor: return {Kind::Tensors, false};
        case TypeKind::Optional: return {type.element()->element()->kind == TypeKind::Tensor ? Kind::OptionalTensors : Kind::Other, false};
        case TypeKind::Int:
        case TypeKind::SymInt: return {Kind::Ints, false};
        case TypeKind::Float: return {Kind::Floats, false};
        case TypeKind::Bool: return {Kind::Bools, false};
        case TypeKind::Number: return {Kind::Scalars, false};
        default: return {Kind::Other, false};
      }
    default: return {Kind::Other, false};
  }
}

const char* kind_text(Kind kind) {
  switch (kind) {
    case Kind::Tensor: return "Tensor";
    case Kind::Tensors:
    case Kind::OptionalTensors: return "tuple of Tensors";
    case Kind::Scalar: return "Number";
    case Kind::Scalars: return "tuple of Scalars";
    case Kind::Int: return "int";
    case Kind::Ints: return "tuple of ints";
    case Kind::Float: return "float";
    case Kind::Floats: return "tuple of floats";
    case Kind::Bool:
    case Kind::RequiresGrad: return "bool";
    case Kind::Bools: return "tuple of bools";
    case Kind::Str: return "str";
    case Kind::Dtype: return "torch.dtype";
    case Kind::Layout: return "torch.layout";
    case Kind::MemoryFormat: return "torch.memory_format";
    case Kind::Device: return "torch.device";
    case Kind::Generator: return "torch.Generator";
    case Kind::Out: return "Tensor";
    case Kind::Other: return "object";
  }
  return "object";
}

constexpr int kAnyLength = 0;  // of an `out` that is one list

PyObject* numpy_alias(std::string_view name) {
  if (name == "dim") return interned("axis");
  if (name == "keepdim") return interned("keepdims");
  if (name == "input") return interned("x");
  if (name == "other") return interned("x2");
  return nullptr;
}

std::string default_text(const Parameter& p) {
  const IValue& v = p.default_value;
  if (v.isNone()) return "None";
  if (p.kind == Kind::Dtype) return std::string("torch.") + dtype_name(v.toScalarType());
  if (p.kind == Kind::MemoryFormat)
    return "torch." + std::string(v.toMemoryFormat() == MemoryFormat::Preserve ? "preserve_format" : "contiguous_format");
  if (v.isList() && p.kind == Kind::Ints) {
    std::string s = "(";
    for (const IValue& e : v.toListRef()) s += (s.size() > 1 ? ", " : "") + to_string(e);
    return s + ")";
  }
  return to_string(v);
}

// May it be a number? The gradient of one that needs it would be lost.
bool is_zero_dim(PyObject* o) { return is_tensor(o) && unwrap(o).dim() == 0 && !unwrap(o).requires_grad(); }

bool is_symbolic(const Parameter& p) {
  return p.type &&
         (p.type->kind == TypeKind::SymInt || (p.type->kind == TypeKind::Optional && p.type->element()->kind == TypeKind::SymInt));
}

bool sequence_of_ints(PyObject* o) {
  if (Py_TYPE(o) == size_type) return true;
  PyObject** items;
  Py_ssize_t n;
  if (PyTuple_Check(o)) {
    items = reinterpret_cast<PyTupleObject*>(o)->ob_item;
    n = PyTuple_GET_SIZE(o);
  } else if (PyList_Check(o)) {
    items = reinterpret_cast<PyListObject*>(o)->ob_item;
    n = PyList_GET_SIZE(o);
  } else {
    return false;
  }
  // As in PyTorch only the first element decides; the others are checked while they are converted.
  return n == 0 || is_size(items[0]);
}

template <class F>
bool all_items(PyObject* o, F f) {
  if (PyTuple_Check(o)) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(o); ++i)
      if (!f(PyTuple_GET_ITEM(o, i))) return false;
    return true;
  }
  if (PyList_Check(o)) {
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(o); ++i)
      if (!f(PyList_GET_ITEM(o, i))) return false;
    return true;
  }
  return false;
}

// Does the object fit the parameter? Lenient: also by the conversions that are tried when nothing fits exactly.
bool accepts(const Parameter& p, PyObject* o, bool lenient) {
  if (o == Py_None) return p.optional || p.none_is_default || p.kind == Kind::Out;
  switch (p.kind) {
    case Kind::Tensor: return is_tensor(o) || (lenient && p.numbers && is_number(o));
    case Kind::Tensors: return (PyTuple_Check(o) || PyList_Check(o)) && (lenient || all_items(o, [](PyObject* e) { return is_tensor(e); }));
    case Kind::OptionalTensors: return all_items(o, [](PyObject* e) { return e == Py_None || is_tensor(e); });
    case Kind::Scalar: return is_number(o) || (lenient && is_zero_dim(o));
    case Kind::Scalars: return all_items(o, [](PyObject* e) { return is_number(e); });
    case Kind::Int: return is_int(o) || (lenient && is_symbolic(p) && is_size(o));
    case Kind::Ints: return sequence_of_ints(o) || (p.length > 0 && is_size(o));
    case Kind::Float:
      return PyFloat_Check(o) || PyLong_Check(o) || is_numpy_scalar(o) || (lenient && is_zero_dim(o) && !unwrap(o).is_complex());
    case Kind::Floats: return all_items(o, [](PyObject* e) { return PyFloat_Check(e) || PyLong_Check(e) || is_numpy_scalar(e); });
    case Kind::Bool:
    case Kind::RequiresGrad: return PyBool_Check(o) || (is_numpy_scalar(o) && std::strncmp(Py_TYPE(o)->tp_name, "numpy.bool", 10) == 0);
    case Kind::Bools: return all_items(o, [](PyObject* e) { return PyBool_Check(e); });
    case Kind::Str: return PyUnicode_Check(o);
    case Kind::Dtype: return is_dtype_like(o);
    case Kind::Layout: return is_layout(o);
    case Kind::MemoryFormat: return is_memory_format(o);
    case Kind::Device: return is_device(o) || PyUnicode_Check(o) || (PyLong_Check(o) && !PyBool_Check(o));
    case Kind::Generator: return is_generator(o);
    case Kind::Out:
      if (p.length == 1) return is_tensor(o);
      return (PyTuple_Check(o) || PyList_Check(o)) && (p.length == kAnyLength || PySequence_Size(o) == p.length) &&
             all_items(o, [](PyObject* e) { return is_tensor(e); });
    case Kind::Other: return fits(o, *p.type);
  }
  return false;
}

// How many tensors `out` is, as Parameter::length.
int out_length(const Signature& s) {
  for (const cresset::Argument& a : s.out_op->schema().arguments())
    if (a.is_out() && a.type->kind == TypeKind::List) return kAnyLength;
  return static_cast<int>(std::count_if(s.out_order.begin(), s.out_order.end(), [](int i) { return i < 0; }));
}

bool same_inputs(const Signature& s, const FunctionSchema& out) {
  std::size_t at = 0;
  for (const cresset::Argument& a : out.arguments()) {
    if (a.is_out()) continue;
    // Factory arguments of the functional form are not in its out form.
    while (at < static_cast<std::size_t>(s.inputs)) {
      const std::string name = PyUnicode_AsUTF8(s.parameters[at].name);
      if (name == a.name || (name == "input" && a.name == "self")) break;
      if (name != "dtype" && name != "layout" && name != "device" && name != "pin_memory") return false;
      ++at;
    }
    if (at == static_cast<std::size_t>(s.inputs) || s.parameters[at].type->str() != a.type->str()) return false;
    ++at;
  }
  for (; at < static_cast<std::size_t>(s.inputs); ++at) {
    const std::string name = PyUnicode_AsUTF8(s.parameters[at].name);
    if (name != "dtype" && name != "layout" && name != "device" && name != "pin_memory" && name != "memory_format") return false;
  }
  return true;
}

Parameter make_parameter(const cresset::Argument& a, bool numbers) {
  Parameter p;
  const KindOf k = kind_of(*a.type);
  const std::string name = a.name == "self" && k.kind == Kind::Tensor ? "input" : a.name();
  p.name = interned(name.c_str());
  p.alias = numpy_alias(name);
  p.kind = k.kind;
  p.optional = k.optional;
  p.has_default = a.default_value.has_value();
  p.keyword_only = a.kwarg_only;
  p.numbers = numbers && p.kind == Kind::Tensor && !a.is_mutable();
  p.mutated = a.is_mutable();
  p.length = p.kind == Kind::Ints && a.N ? *a.N : 0;
  if (a.default_value) p.default_value = *a.default_value;
  p.none_is_default = p.kind == Kind::Ints && !p.optional && p.default_value.isIntList() && p.default_value.toIntVector().empty();
  p.type = a.type;
  p.type_text = kind_text(p.kind);
  p.text = p.type_text + " " + name + (p.has_default ? " = " + default_text(p) : "");
  return p;
}

}  // namespace

void Plan::add(const OperatorHandle& op, bool numbers) {
  const FunctionSchema& schema = op.schema();
  std::vector<const cresset::Argument*> outs;
  for (const cresset::Argument& a : schema.arguments())
    if (a.is_out()) outs.push_back(&a);
  if (!outs.empty()) {
    // An out form joins the functional form with the same inputs.
    for (Signature& s : signatures_) {
      if (s.out_op || s.hidden || !same_inputs(s, schema)) continue;
      s.out_op = op;
      for (const cresset::Argument& a : schema.arguments()) {
        if (a.is_out()) {
          s.out_order.push_back(~static_cast<int>(std::count_if(s.out_order.begin(), s.out_order.end(), [](int i) { return i < 0; })));
          continue;
        }
        for (int i = 0; i < s.inputs; ++i) {
          const std::string name = PyUnicode_AsUTF8(s.parameters[static_cast<std::size_t>(i)].name);
          if (name == a.name || (name == "input" && a.name == "self")) s.out_order.push_back(i);
        }
      }
      return;
    }
  }
  Signature s{.op = op, .out_op = std::nullopt, .parameters = {}, .positional = {}, .out_order = {}, .text = {}};
  bool dtype = false, pin = false;
  for (const cresset::Argument& a : schema.arguments()) {
    if (a.is_out()) {
      s.out_order.push_back(~static_cast<int>(std::count_if(s.out_order.begin(), s.out_order.end(), [](int i) { return i < 0; })));
      continue;
    }
    if (!outs.empty()) s.out_order.push_back(static_cast<int>(s.parameters.size()));
    if (a.name == "self" && method_) s.self = static_cast<int>(s.parameters.size());
    dtype |= a.name == "dtype";
    pin |= a.name == "pin_memory";
    s.parameters.push_back(make_parameter(a, numbers));
  }
  s.inputs = static_cast<int>(s.parameters.size());
  if (!outs.empty()) {
    s.out_op = op;
    s.hidden = true;
  }
  if (dtype && pin) s.requires_grad = -2;  // a factory; the parameter is added by finish
  signatures_.push_back(std::move(s));
}

namespace {

// Is s an overload for numbers beside one of `all` for tensors that takes numbers as well?
bool is_shadowed(const Signature& s, const std::vector<Signature>& all) {
  for (const Signature& t : all) {
    if (&t == &s || t.parameters.size() != s.parameters.size()) continue;
    bool differs = false, fits = true;
    for (std::size_t i = 0; i < s.parameters.size() && fits; ++i) {
      const Parameter &a = s.parameters[i], &b = t.parameters[i];
      const bool number = a.kind == Kind::Scalar && b.kind == Kind::Tensor && b.numbers;
      differs |= number;
      fits = a.name == b.name && (number || a.kind == b.kind);
    }
    if (fits && differs) return true;
  }
  return false;
}

}  // namespace

void Plan::finish() {
  std::vector<Signature> kept;
  // Rows with number_is_tensor: graphs and traces show add.Tensor for x + 2, as in PyTorch. Only x.add(2, 3), with alpha by position, still
  // needs the overload for numbers.
  for (const Signature& s : signatures_) (is_shadowed(s, signatures_) ? last_ : kept).push_back(s);
  signatures_ = std::move(kept);
  for (std::vector<Signature>* list : {&signatures_, &last_})
    for (Signature& s : *list) finish(s);
}

// Adds what Python has beside a schema's arguments, the order of those and the text.
void Plan::finish(Signature& s) const {
  if (s.out_op) {
    Parameter p;
    p.name = interned("out");
    p.kind = Kind::Out;
    p.has_default = !s.hidden;
    p.keyword_only = true;
    p.length = out_length(s);
    if (p.length == 1)
      for (const cresset::Argument& a : s.out_op->schema().arguments())
        if (a.is_out() && a.name != "out") p.alias = interned(a.name.c_str());  // its own name, as in the schema
    p.type_text = p.length == 1 ? "Tensor" : "tuple of Tensors";
    p.text = p.type_text + " out" + (s.hidden ? "" : " = None");
    s.out = static_cast<int>(s.parameters.size());
    s.parameters.push_back(std::move(p));
  }
  if (s.requires_grad == -2) {
    Parameter p;
    p.name = interned("requires_grad");
    p.kind = Kind::RequiresGrad;
    p.has_default = p.keyword_only = true;
    p.type_text = "bool";
    p.text = "bool requires_grad = False";
    s.requires_grad = static_cast<int>(s.parameters.size());
    s.parameters.push_back(std::move(p));
  }
  CRESSET_CHECK(s.parameters.size() <= kMaxParameters, name_, ": an operator with more than ", kMaxParameters,
                " arguments cannot be called from Python.");
  bool star = false;
  s.text = "(";
  for (std::size_t i = 0; i < s.parameters.size(); ++i) {
    const Parameter& p = s.parameters[i];
    if (static_cast<int>(i) == s.self) continue;
    if (s.text.size() > 1) s.text += ", ";
    if (p.keyword_only && !star) {
      s.text += "*, ";
      star = true;
    }
    s.text += p.text;
    if (!p.keyword_only) s.positional.push_back(static_cast<int>(i));
  }
  s.text += ")";
  s.varargs = s.positional.size() == 1 && s.parameters[static_cast<std::size_t>(s.positional[0])].kind == Kind::Ints &&
              s.parameters[static_cast<std::size_t>(s.positional[0])].length == 0;
}

// The signatures of `overload` with its arguments in older orders: those that an order names are given by position and required.
void Plan::add_legacy(const Overload& overload) {
  const auto found =
      std::find_if(signatures_.begin(), signatures_.end(), [&](const Signature& s) { return &s.op.schema() == &overload.op.schema(); });
  if (found == signatures_.end()) return;
  for (std::string_view rest = overload.legacy; !rest.empty();) {
    const std::size_t end = std::min(rest.find(';'), rest.size());
    std::string_view order = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    Signature s = *found;
    s.positional.clear();
    s.varargs = false;
    s.text = "(";
    while (!order.empty()) {
      const std::size_t space = std::min(order.find(' '), order.size());
      const std::string_view word = order.substr(0, space);
      order.remove_prefix(std::min(space + 1, order.size()));
      for (int i = 0; i < s.inputs; ++i) {
        Parameter& p = s.parameters[static_cast<std::size_t>(i)];
        if (p.name != interned(std::string(word == "self" ? "input" : word).c_str())) continue;
        if (i == s.self) continue;
        p.has_default = p.keyword_only = p.numbers = false;
        s.text += std::string(s.text.size() > 1 ? ", " : "") + kind_text(p.kind) + " " + PyUnicode_AsUTF8(p.name);
        s.positional.push_back(i);
      }
    }
    if (s.out >= 0) s.text += ", *, Tensor out = None";
    s.text += ")";
    s.deprecated = true;
    last_.push_back(std::move(s));
  }
}

Plan Plan::for_name(std::string name, bool method, const std::vector<Overload>& overloads) {
  Plan plan;
  plan.name_ = std::move(name);
  plan.method_ = method;
  // Out forms last, so that they find their functional forms.
  for (const bool out : {false, true})
    for (const auto& [op, numbers, legacy] : overloads) {
      const auto& arguments = op.schema().arguments();
      if (std::any_of(arguments.begin(), arguments.end(), [](const cresset::Argument& a) { return a.is_out(); }) == out)
        plan.add(op, numbers);
    }
  plan.finish();
  for (const Overload& overload : overloads) plan.add_legacy(overload);
  std::stable_partition(plan.last_.begin(), plan.last_.end(), [](const Signature& s) { return s.deprecated; });
  return plan;
}

bool Plan::try_signature(const Signature& s, PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* kwnames, bool lenient, Match& m,
                         Failure* why) const {
  const auto fail = [&](Failure f) {
    if (why) *why = f;
    return false;
  };
  const std::size_t count = s.parameters.size();
  for (std::size_t i = 0; i < count; ++i) m.slots[i] = nullptr;
  m.varargs = nullptr;
  const auto positional = static_cast<Py_ssize_t>(s.positional.size());
  if (s.varargs && n >= 1 && is_size(args[0])) {
    m.varargs = args;
    m.varargs_count = n;
    m.slots[s.positional[0]] = args[0];
  } else {
    if (n > positional) return fail({Failure::TooMany, 0, -1, nullptr, nullptr});
    for (Py_ssize_t i = 0; i < n; ++i) m.slots[s.positional[static_cast<std::size_t>(i)]] = args[i];
  }
  if (s.self >= 0) m.slots[s.self] = self;
  if (kwnames) {
    const Py_ssize_t keywords = PyTuple_GET_SIZE(kwnames);
    for (Py_ssize_t k = 0; k < keywords; ++k) {
      PyObject* key = PyTuple_GET_ITEM(kwnames, k);
      std::size_t found = count;
      for (std::size_t i = 0; i < count; ++i)
        if (s.parameters[i].name == key) found = i;
      if (found == count) {
        for (std::size_t i = 0; i < count && found == count; ++i)
          if (PyUnicode_Compare(s.parameters[i].name, key) == 0 ||
              (s.parameters[i].alias && !m.slots[i] && PyUnicode_Compare(s.parameters[i].alias, key) == 0))
            found = i;
      }
      if (found == count || static_cast<int>(found) == s.self) {
        if (PyUnicode_CompareWithASCIIString(key, "out") == 0 && args[n + k] == Py_None) continue;
        return fail({Failure::Unexpected, 0, -1, nullptr, key});
      }
      if (m.slots[found]) return fail({Failure::Twice, static_cast<int>(found), -1, nullptr, key});
      m.slots[found] = args[n + k];
    }
  }
  for (std::size_t i = 0; i < count; ++i) {
    const Parameter& p = s.parameters[i];
    PyObject* o = m.slots[i];
    if (!o) {
      if (!p.has_default) return fail({Failure::Missing, static_cast<int>(i), -1, nullptr, nullptr});
      continue;
    }
    if (static_cast<int>(i) == s.self || (m.varargs && static_cast<int>(i) == s.positional[0])) continue;
    if (CRESSET_LIKELY(accepts(p, o, lenient))) continue;
    int position = -1;
    for (Py_ssize_t a = 0; a < n; ++a)
      if (a < positional && s.positional[static_cast<std::size_t>(a)] == static_cast<int>(i)) position = static_cast<int>(a) + 1;
    return fail({Failure::WrongType, static_cast<int>(i), position, o, nullptr});
  }
  if (s.out >= 0 && m.slots[s.out] == Py_None) m.slots[s.out] = nullptr;
  if (s.hidden && !m.slots[s.out]) return fail({Failure::Missing, s.out, -1, nullptr, nullptr});
  m.signature = &s;
  return true;
}

void Plan::parse(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* kwnames, Match& match) const {
  if (signatures_.size() > 1)
    for (const Signature& s : signatures_)
      if (try_signature(s, self, args, n, kwnames, false, match, nullptr)) return;
  for (const Signature& s : signatures_)
    if (try_signature(s, self, args, n, kwnames, true, match, nullptr)) return;
  for (const Signature& s : last_)
    if (try_signature(s, self, args, n, kwnames, true, match, nullptr)) {
      if (s.deprecated && (!std::exchange(warned_, true) || warn_always()))
        warn(str("This overload of ", name_, " is deprecated:\n\t", name_, s.text,
                 "\nConsider using one of the following signatures instead:\n\t", name_, signatures_[0].text));
      return;
    }
  raise(self, args, n, kwnames);
}

namespace {

// Of a list of numbers the first element that is none, else the object's type.
std::string wrong_type_text(Kind kind, PyObject* o) {
  const bool list = PyTuple_Check(o) || PyList_Check(o);
  for (Py_ssize_t i = 0; list && (kind == Kind::Ints || kind == Kind::Floats) && i < PySequence_Fast_GET_SIZE(o); ++i) {
    PyObject* item = PySequence_Fast_GET_ITEM(o, i);
    if (!is_size(item) && !(kind == Kind::Floats && (PyFloat_Check(item) || is_numpy_scalar(item))))
      return "but found element of type " + type_name(Py_TYPE(item)) + " at pos " + std::to_string(i);
  }
  return "not " + type_name(Py_TYPE(o));
}

}  // namespace

std::string Plan::describe(const Signature& s, const Failure& f) const {
  const auto parameter_name = [&](int i) { return std::string(PyUnicode_AsUTF8(s.parameters[static_cast<std::size_t>(i)].name)); };
  switch (f.what) {
    case Failure::TooMany: {
      return {};  // needs the count; filled in by raise
    }
    case Failure::Missing: {
      std::string names;
      int missing = 0;
      for (int i : s.positional) {
        if (i < f.parameter || s.parameters[static_cast<std::size_t>(i)].has_default) continue;
        names += (missing++ ? ", \"" : "\"") + parameter_name(i) + "\"";
      }
      if (missing == 0) {
        names = "\"" + parameter_name(f.parameter) + "\"";
        missing = 1;
      }
      return name_ + "() missing " + std::to_string(missing) + " required positional arguments: " + names;
    }
    case Failure::Unexpected: return name_ + "() got an unexpected keyword argument '" + PyUnicode_AsUTF8(f.keyword) + "'";
    case Failure::Twice: return name_ + "() got multiple values for argument '" + PyUnicode_AsUTF8(f.keyword) + "'";
    case Failure::WrongType: {
      const Parameter& p = s.parameters[static_cast<std::size_t>(f.parameter)];
      return name_ + "(): argument '" + parameter_name(f.parameter) + "'" +
             (f.position > 0 ? " (position " + std::to_string(f.position) + ")" : "") + " must be " + p.type_text + ", " +
             wrong_type_text(p.kind, f.object);
    }
  }
  return {};
}

void Plan::raise(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* kwnames) const {
  std::vector<std::string> texts;
  std::vector<const Signature*> shown;
  for (const Signature& s : signatures_) {
    shown.push_back(&s);
    Failure f;
    Match m;
    if (try_signature(s, self, args, n, kwnames, true, m, &f)) {
      shown.pop_back();
      continue;
    }
    if (f.what == Failure::TooMany) {
      const auto max = s.positional.size();
      std::size_t min = 0;
      for (int i : s.positional) min += !s.parameters[static_cast<std::size_t>(i)].has_default;
      texts.push_back(name_ + "() takes " + (min == max ? "" : "from " + std::to_string(min) + " to ") + std::to_string(max) +
                      " positional argument" + (max == 1 ? "" : "s") + " but " + std::to_string(n) +
                      (n == 1 ? " was given" : " were given"));
    } else {
      texts.push_back(describe(s, f));
    }
  }
  if (texts.empty()) CRESSET_THROW(TypeError, name_, "() cannot be called: no operator of that name is defined.");
  if (std::all_of(texts.begin(), texts.end(), [&](const std::string& t) { return t == texts[0]; })) throw TypeError(texts[0]);
  const Py_ssize_t keywords = kwnames ? PyTuple_GET_SIZE(kwnames) : 0;
  // When so many arguments fit one signature only, its own complaint says most.
  const auto takes_so_many = [&](const Signature* s) {
    const Py_ssize_t given = n + keywords + (s->self >= 0);
    const auto needed = std::count_if(s->parameters.begin(), s->parameters.end(), [](const Parameter& p) { return !p.has_default; });
    return needed <= given && given <= static_cast<Py_ssize_t>(s->parameters.size());
  };
  if (std::count_if(shown.begin(), shown.end(), takes_so_many) == 1)
    throw TypeError(texts[static_cast<std::size_t>(std::find_if(shown.begin(), shown.end(), takes_so_many) - shown.begin())]);
  std::string got;
  for (Py_ssize_t i = 0; i < n + keywords; ++i) {
    if (i) got += ", ";
    if (i >= n) got += std::string(PyUnicode_AsUTF8(PyTuple_GET_ITEM(kwnames, i - n))) + "=";
    got += type_name(Py_TYPE(args[i]));
  }
  std::string text = name_ + "() received an invalid combination of arguments - got (" + got + "), but expected one of:\n";
  for (std::size_t i = 0; i < shown.size(); ++i) text += " * " + shown[i]->text + "\n      " + texts[i] + "\n";
  text.pop_back();
  throw TypeError(text);
}

namespace {

[[noreturn]] void raise_item(const char* expected, Py_ssize_t at, const Parameter& p, PyObject* o) {
  CRESSET_THROW(TypeError, "argument '", PyUnicode_AsUTF8(p.name), "' failed to unpack the object at pos ", static_cast<int64_t>(at + 1),
                " with error \"type must be ", expected, ",but got ", type_name(Py_TYPE(o)), "\"");
}

int64_t item_int(PyObject* item, Py_ssize_t at, const Parameter& p) {
  try {
    return to_int(item);
  } catch (const ValueError& error) {  // too large a number
    CRESSET_THROW(TypeError, "argument '", PyUnicode_AsUTF8(p.name), "' failed to unpack the object at pos ", static_cast<int64_t>(at + 1),
                  " with error \"", error.what_without_backtrace(), "\"");
  }
}

IValue ints_of(const Parameter& p, PyObject* const* items, Py_ssize_t n) {
  std::vector<IValue> values;
  values.reserve(static_cast<std::size_t>(n));
  for (Py_ssize_t i = 0; i < n; ++i) {
    if (!is_size(items[i])) raise_item("tuple of ints", i, p, items[i]);
    if (CRESSET_UNLIKELY(is_tensor(items[i]) && is_tracing()))
      values.push_back(graph_part->traced_argument(PyUnicode_AsUTF8(p.name), i, items[i], true));
    else
      values.emplace_back(item_int(items[i], i, p));
  }
  return make_intrusive<ivalue::ListImpl>(std::move(values));
}

IValue tensor_list(PyObject* o, int position, bool optional = false) {
  const Py_ssize_t n = PySequence_Fast_GET_SIZE(o);
  std::vector<IValue> values;
  values.reserve(static_cast<std::size_t>(n));
  for (Py_ssize_t i = 0; i < n; ++i) {
    PyObject* e = PySequence_Fast_GET_ITEM(o, i);
    if (e == Py_None && optional) {
      values.emplace_back();
      continue;
    }
    CRESSET_CHECK_TYPE(is_tensor(e), "expected Tensor as element ", static_cast<int64_t>(i), " in argument ", position, ", but got ",
                       type_name(Py_TYPE(e)));
    values.emplace_back(unwrap(e));
  }
  return make_intrusive<ivalue::ListImpl>(std::move(values));
}

IValue argument_value(const Parameter& p, PyObject* o, int position) {
  if (!o) return p.default_value;
  if (o == Py_None) return p.kind == Kind::Dtype || p.none_is_default ? p.default_value : IValue();
  if (CRESSET_UNLIKELY(is_tensor(o) && (p.kind == Kind::Int || p.kind == Kind::Scalar || p.kind == Kind::Float) && is_tracing()))
    return graph_part->traced_argument(PyUnicode_AsUTF8(p.name), -1, o, p.kind == Kind::Int);
  switch (p.kind) {
    case Kind::Tensor: return is_tensor(o) ? unwrap(o) : ops::wrapped_scalar_tensor(to_scalar(o));
    case Kind::Tensors: return tensor_list(o, position);
    case Kind::OptionalTensors: return tensor_list(o, position, true);
    case Kind::Scalar: return to_scalar(o);
    case Kind::Int: return to_int(o);
    case Kind::Ints: {
      if (PyTuple_Check(o) || PyList_Check(o)) return ints_of(p, PySequence_Fast_ITEMS(o), PySequence_Fast_GET_SIZE(o));
      std::vector<PyObject*> repeated(static_cast<std::size_t>(p.length), o);
      if (CRESSET_UNLIKELY(is_tensor(o) && is_tracing())) return ints_of(p, repeated.data(), p.length);
      std::vector<IValue> values(repeated.size(), IValue(to_int(o)));
      return make_intrusive<ivalue::ListImpl>(std::move(values));
    }
    case Kind::Float: return is_tensor(o) || is_numpy_scalar(o) ? to_scalar(o).toDouble() : to_double(o);
    case Kind::Bool: {
      const int r = PyObject_IsTrue(o);
      checked(r);
      return r == 1;
    }
    case Kind::Str: return to_text(o);
    case Kind::Dtype: return to_scalar_type(o);
    case Kind::Layout: return static_cast<Layout>(constant_value(o));
    case Kind::MemoryFormat: return static_cast<MemoryFormat>(constant_value(o));
    case Kind::Device: return to_present_device(o);
    case Kind::Generator: return to_generator(o);
    default: return to_ivalue(o, *p.type, std::string("argument '") + PyUnicode_AsUTF8(p.name) + "'");
  }
}

inline bool waits(const IValue& v) {
  if (CRESSET_LIKELY(v.isTensor())) return may_wait(v.toTensor());
  if (v.isDevice()) return may_wait(v.toDevice());  // a factory
  if (!v.isList()) return false;
  const std::vector<IValue>& elements = v.toListRef();
  if (elements.empty() || !elements[0].isInt()) return any_waits(elements);
  double numel = 1;  // of what a factory makes of these sizes
  for (const IValue& e : elements) numel *= e.isInt() ? static_cast<double>(e.toInt()) : 1;
  return numel >= kReleaseNumel;
}

// A factory's tensor has the type, the layout and the device of `out`; what is given beside it must agree.
void check_factory_out(const Match& m, PyObject* out) {
  const Signature& s = *m.signature;
  if (!is_tensor(out)) return;
  const ScalarType type = unwrap(out).scalar_type();
  const DeviceType device = unwrap(out).device().type();
  for (int i = 0; i < s.inputs; ++i) {
    PyObject* given = m.slots[i];
    if (!given || given == Py_None) continue;
    const Kind kind = s.parameters[static_cast<std::size_t>(i)].kind;
    CRESSET_CHECK(kind != Kind::Dtype || to_scalar_type(given) == type, "dtype ", to_scalar_type(given),
                  " does not match dtype of out parameter (", type, ")");
    if (kind == Kind::Layout) {
      const auto layout = static_cast<Layout>(constant_value(given));
      CRESSET_CHECK(layout == unwrap(out).layout(), "layout ", to_string(layout), " does not match layout of out parameter (",
                    to_string(unwrap(out).layout()), ")");
    }
    CRESSET_CHECK(kind != Kind::Device || to_device(given).type() == device, "device type ", to_device(given).type(),
                  " does not match device type of out parameter (", device, ")");
  }
}

}  // namespace

const OperatorHandle& push_arguments(const Match& m, Stack& stack) try {
  const Signature& s = *m.signature;
  if (CRESSET_UNLIKELY(is_tracing())) graph_part->forget_traced_arguments();
  const bool out = s.out >= 0 && m.slots[s.out];
  const auto push = [&](int i) {
    const Parameter& p = s.parameters[static_cast<std::size_t>(i)];
    if (m.varargs && i == s.positional[0])
      stack.push_back(ints_of(p, m.varargs, m.varargs_count));
    else
      stack.push_back(argument_value(p, m.slots[i], i));
  };
  if (!out) {
    for (int i = 0; i < s.inputs; ++i) push(i);
    return s.op;
  }
  PyObject* given = m.slots[s.out];
  if (s.requires_grad >= 0) check_factory_out(m, given);
  for (int i : s.out_order) {
    if (i >= 0)
      push(i);
    else if (s.parameters[static_cast<std::size_t>(s.out)].length == kAnyLength)
      stack.push_back(tensor_list(given, s.out));
    else
      stack.emplace_back(unwrap(is_tensor(given) ? given : PySequence_Fast_GET_ITEM(given, ~i)));
  }
  return *s.out_op;
} catch (const TypeError& error) {
  // What is wrong inside of a list does not know whose it is.
  const std::string text = error.what_without_backtrace(), &name = m.signature->op.schema().name();
  if (text.rfind("argument '", 0) != 0) throw;
  throw TypeError(name.substr(name.rfind(':') + 1) + "(): " + text);
}

bool any_waits(const std::vector<IValue>& values) { return std::any_of(values.begin(), values.end(), waits); }

void call_operator(const OperatorHandle& op, Stack& stack) {
  bool wait = false;
  for (std::size_t i = 0; i < stack.size() && !wait; ++i) {
    const IValue& v = stack[i];
    // Pinned memory of the host comes from a device too.
    wait = waits(v) || (v.isBool() && v.toBool() && op.schema().arguments()[i].name == "pin_memory");
  }
  GilRelease release(wait);
  op.callBoxed(stack);
}

}  // namespace cresset::python
