// All pointwise operators: one boxed kernel that compiles a row's expression for the types and the layout of a call.
#include "pointwise.h"

#include <cresset/cresset.h>
#include <cresset/ops/cpu_fallback.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "backend.h"
#include "pointwise_rows.h"
#include "programs.h"
#include "strided.h"

namespace cresset_opencl {
namespace {

using cresset::IValue;
using cresset::OperatorHandle;
using cresset::Scalar;
using cresset::Stack;

enum class Form : uint8_t { Functional, Out, InPlace };

// The arguments of one call, as the rule wants them.
struct Arguments {
  Arguments(const PointwiseRow& row, const IValue* values);
  cresset::PointwiseArguments rule() const { return {std::strchr(row.op, ':') + 2, row.rule, row.classes, tensors, promoting, others}; }

  const PointwiseRow& row;
  const IValue* values;
  std::vector<const Tensor*> tensors;
  std::vector<std::optional<Scalar>> numbers;  // of Scalar arguments, by position; reserved, so that pointers stay
  std::vector<const Scalar*> promoting;
  std::vector<cresset::PointwiseScalar> others;
};

Arguments::Arguments(const PointwiseRow& r, const IValue* v) : row(r), values(v), numbers(r.arguments.size()) {
  for (std::size_t i = 0; i < row.arguments.size(); ++i) {
    const Argument& a = row.arguments[i];
    switch (a.kind) {
      case ArgumentKind::Tensor: tensors.push_back(&values[i].toTensor()); break;
      case ArgumentKind::Promoting:
      case ArgumentKind::OptionalPromoting:
        if (!values[i].isNone()) numbers[i] = values[i].toScalar();
        promoting.push_back(numbers[i] ? &*numbers[i] : nullptr);
        break;
      case ArgumentKind::Number:
      case ArgumentKind::OptionalNumber:
        if (values[i].isNone()) break;
        numbers[i] = values[i].toScalar();
        if (a.kind == ArgumentKind::Number) others.push_back({a.name, &*numbers[i]});
        break;
      default: break;
    }
  }
}

bool is_device_tensor(const Tensor& t) { return !t.is_cpu(); }

// Does every operand have a type that the device computes with?
bool supported(const Arguments& args, const Tensor* out) {
  const Tensor* first = out;
  for (const Tensor* t : args.tensors) {
    if (!t->defined()) return false;
    if (is_device_tensor(*t) && !first) first = t;
  }
  if (!first || first->is_cpu()) return false;
  const ClDevice& d = device_of(*first);
  for (const Tensor* t : args.tensors)
    if (!computes(d, t->scalar_type())) return false;
  for (const auto& n : args.numbers)
    if (n && n->isComplex()) return false;
  return !out || computes(d, out->scalar_type());
}

// Operators whose whole-number divisor must not be zero.
bool divides(const Arguments& args) {
  const std::string_view name = args.row.name;
  return name == "floor_divide" || name == "remainder" || name == "fmod" || name == "trunc_divide";
}

// What can be raised at once: an integer divisor of zero, a negative integer exponent, where it is one number of the host.
void check_integers(const Arguments& args, ScalarType common) {
  const std::string_view name = args.row.name;
  if (!isIntegralType(common) || (!divides(args) && name != "pow") || args.row.arguments.size() < 2) return;
  const IValue& second = args.values[1];
  std::optional<Scalar> number = args.numbers[1];
  if (second.isTensor() && !is_device_tensor(second.toTensor())) number = second.toTensor().item();
  if (!number || !number->isIntegral(true)) return;
  CRESSET_CHECK(!divides(args) || number->toLong() != 0, "ZeroDivisionError");
  CRESSET_CHECK(divides(args) || second.isTensor() || number->toLong() >= 0, "Integers to negative integer powers are not allowed.");
}

// A number of the compute type; integers wrap into the common type in the kernel.
void add_number(Launch& launch, Compute c, const Scalar& v) {
  switch (c) {
    case Compute::Int: launch.value(static_cast<cl_int>(v.toLong())); break;
    case Compute::Long: launch.value(static_cast<cl_long>(v.toLong())); break;
    case Compute::Float: launch.value(static_cast<cl_float>(v.toDouble())); break;
    default: launch.value(static_cast<cl_double>(v.toDouble())); break;
  }
}

// One call, ready to run.
class Run {
 public:
  Run(const Arguments& args, cresset::PointwiseTypes types, const Tensor& out)
      : args_(args),
        types_(types),
        out_(out),
        own_(args.tensors[args.row.rule == PointwiseRule::BoolFirst && args.tensors.size() > 1]->scalar_type()) {}
  bool plan() {
    std::vector<const Tensor*> walked{&out_};
    for (const Tensor* t : args_.tensors)
      if (is_device_tensor(*t)) walked.push_back(t);
    return make_walk(out_.sizes(), walked, walk_);
  }
  void launch();

 private:
  Compute compute() const { return compute_of(types_.common); }
  std::string program_key(const DeviceFacts& facts) const;
  std::string kernel_name(ScalarType own, cresset::PointwiseTypes types) const;
  ProgramText text(const DeviceFacts& facts) const;
  std::string kernel_text(ScalarType own, cresset::PointwiseTypes types) const;
  std::vector<std::pair<ScalarType, cresset::PointwiseTypes>> variants(const DeviceFacts& facts) const;
  void add_argument(Launch& launch, std::size_t i) const;
  std::string parameter(std::size_t i) const;
  // A zero that only the kernel sees is a fault.
  bool meets_zeros(ScalarType common) const {
    return divides(args_) && isIntegralType(common) && args_.row.arguments.size() > 1 && args_.values[1].isTensor() &&
           is_device_tensor(args_.values[1].toTensor());
  }
  bool is_condition(const Tensor& t) const { return args_.row.rule == PointwiseRule::BoolFirst && &t == args_.tensors[0]; }
  // Does the tensor have the call's own type, the one that the kernels of a program differ in?
  bool varies(const Tensor& t) const { return !is_condition(t) && t.scalar_type() == own_; }

  const Arguments& args_;
  cresset::PointwiseTypes types_;
  const Tensor& out_;
  ScalarType own_;
  Walk walk_;
};

// What the kernels of one program share; a driver that compiles all of a program at once gets one kernel in it.
std::string Run::program_key(const DeviceFacts& facts) const {
  std::string key = std::string("pointwise ") + args_.row.op + ' ';
  if (!facts.compiles_late) key += kernel_name(own_, types_);
  for (const Tensor* t : args_.tensors) {
    key += is_device_tensor(*t) ? " " : " =";
    key += varies(*t) ? "own" : type_letter(t->scalar_type());
    key += t->dim() == 0 ? "0" : "";  // they and the numbers promote in their own way
  }
  for (const auto& n : args_.numbers) key += !n ? " -" : n->isBoolean() ? " b" : n->isIntegral(false) ? " i" : " f";
  return key + ' ' + type_letter(cresset::get_default_dtype()) + ' ' + walk_key(walk_);
}

std::string Run::kernel_name(ScalarType own, cresset::PointwiseTypes types) const {
  return std::string("run_") + type_letter(own) + "_" + type_letter(types.common) + "_" + type_letter(types.result);
}

// A number that every type holds and every check passes, of the kind of `n`: programs serve all numbers.
cresset::Scalar one_like(const cresset::Scalar& n) {
  return n.isBoolean()         ? cresset::Scalar(true)
         : n.isIntegral(false) ? cresset::Scalar(int64_t{1})
         : n.isComplex()       ? n
                               : cresset::Scalar(1.0);
}

// The types for which a program has kernels: the call's own one, and with a driver that compiles late every other that the row takes.
std::vector<std::pair<ScalarType, cresset::PointwiseTypes>> Run::variants(const DeviceFacts& facts) const {
  std::vector<std::pair<ScalarType, cresset::PointwiseTypes>> found{{own_, types_}};
  if (!facts.compiles_late) return found;
  for (const ScalarType own : {cresset::kBool, cresset::kByte, cresset::kChar, cresset::kShort, cresset::kInt, cresset::kLong,
                               cresset::kHalf, cresset::kBFloat16, cresset::kFloat, cresset::kDouble}) {
    if (own == own_ || !computes(device_of(out_), own)) continue;
    std::vector<Tensor> tensors;
    for (const Tensor* t : args_.tensors)
      tensors.push_back(
          varies(*t) ? cresset::empty(std::vector<int64_t>(static_cast<std::size_t>(t->dim()), 0), cresset::TensorOptions().dtype(own))
                     : *t);
    std::vector<const Tensor*> pointers;
    for (const Tensor& t : tensors) pointers.push_back(&t);
    cresset::PointwiseArguments rule = args_.rule();
    rule.tensors = pointers;
    std::vector<cresset::Scalar> ones;
    ones.reserve(rule.scalars.size() + rule.others.size());  // what points into it stays
    std::vector<const cresset::Scalar*> scalars;
    for (const cresset::Scalar* n : rule.scalars) scalars.push_back(n ? &ones.emplace_back(one_like(*n)) : nullptr);
    std::vector<cresset::PointwiseScalar> others;
    for (const cresset::PointwiseScalar& n : rule.others) others.push_back({n.name, &ones.emplace_back(one_like(*n.value))});
    rule.scalars = scalars;
    rule.others = others;
    try {
      const cresset::PointwiseTypes types = cresset::pointwise_types(rule);
      if (computes(device_of(out_), types.common)) found.push_back({own, types});
    } catch (const cresset::Error&) {  // a type that the operator refuses
    }
  }
  return found;
}

std::string Run::parameter(std::size_t i) const {
  const Argument& a = args_.row.arguments[i];
  const std::string name = a.name;
  switch (a.kind) {
    case ArgumentKind::Tensor: return is_device_tensor(args_.values[i].toTensor()) ? ", BUFFER(p_" + name + ")" : ", const T v_" + name;
    case ArgumentKind::Promoting: return ", const T v_" + name;
    case ArgumentKind::Number: return ", const T a_" + name;
    case ArgumentKind::OptionalPromoting: return ", const T v_" + name + ", const int has_" + name;
    case ArgumentKind::OptionalNumber: return ", const T a_" + name + ", const int has_" + name;
    case ArgumentKind::Real: return ", const REAL a_" + name;
    case ArgumentKind::OptionalReal: return ", const REAL a_" + name + ", const int has_" + name;
    case ArgumentKind::Int: return ", const long a_" + name;
    default: return ", const int a_" + name;
  }
}

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) text.replace(at, from.size(), to);
  return text;
}

ProgramText Run::text(const DeviceFacts& facts) const {
  std::string out =
      std::string(kernel_file("types")) + (divides(args_) ? kernel_file("faults") : "") + index_source(walk_.wide) + walk_source(walk_);
  std::vector<std::string> families;  // each type that is computed in has functions of its own
  for (const auto& [own, types] : variants(facts)) {
    const Compute c = compute_of(types.common);
    const bool is_bool = types.common == cresset::kBool;
    const std::string family = is_bool ? "bool" : compute_name(c), prefix = "cr_" + family + "_";
    out += std::string("#undef T\n#undef UNSIGNED_T\n#undef BITS\n#undef IS_FLOAT\n#undef IS_BOOL\n#define T ") + compute_name(c) +
           "\n#define UNSIGNED_T u" + (c == Compute::Long ? "long" : "int") + "\n#define BITS " + (c == Compute::Long ? "64" : "32") +
           "\n#define IS_FLOAT " + (c == Compute::Float || c == Compute::Double ? "1" : "0") + "\n#define IS_BOOL " +
           (is_bool ? "1" : "0") + "\n";
    if (std::find(families.begin(), families.end(), family) == families.end()) {
      families.push_back(family);
      out += replaced(args_.row.functions, "cr_", prefix);
    }
    out += replaced(kernel_text(own, types), "cr_", prefix);
  }
  return {"#define M_PI_VALUE 3.14159265358979323846\n" + out, "", !facts.compiles_late};
}

std::string Run::kernel_text(ScalarType own, cresset::PointwiseTypes types) const {
  const Compute c = compute_of(types.common);
  const std::string common = type_letter(types.common);
  const bool is_float = c == Compute::Float || c == Compute::Double;
  std::string out = "kernel void " + kernel_name(own, types) + "(BUFFER(p_result)";
  for (std::size_t i = 0; i < args_.row.arguments.size(); ++i) out += parameter(i);
  out += std::string(meets_zeros(types.common) ? ", FAULTS" : "") +
         ", const Shape_s s, const ulong n) {\n  const index i = (index)get_global_id(0);\n  if (i >= n) return;\n  WALK_s\n";
  const std::string result = type_letter(types.result);
  int operand = 1;
  std::string body;
  for (std::size_t i = 0; i < args_.row.arguments.size(); ++i) {
    const Argument& a = args_.row.arguments[i];
    const std::string name = a.name;
    if (a.kind == ArgumentKind::Tensor) {
      const Tensor& tensor = args_.values[i].toTensor();
      const std::string letter = type_letter(varies(tensor) ? own : tensor.scalar_type()), type = is_condition(tensor) ? "int" : "T";
      std::string value = "v_" + name;
      if (is_device_tensor(tensor)) {
        out += "  OPEN(" + letter + ", p_" + name + ");\n";
        value = "LOAD(" + letter + ", p_" + name + ", s" + std::to_string(operand++) + ")";
      }
      body += "  const " + type + " a_" + name + " = (" + type + ")(" +
              (is_condition(tensor) ? "(" + value + ") != 0"
               : is_float           ? value
                                    : "WRAP(" + common + ", " + value + ")") +
              ");\n";
    } else if (a.kind == ArgumentKind::Promoting || a.kind == ArgumentKind::OptionalPromoting) {
      body += "  const T a_" + name + " = (T)(WRAP(" + common + ", v_" + name + "));\n";
    }
  }
  out += "  OPEN(" + result + ", p_result);\n" + body;
  if (meets_zeros(types.common)) out += std::string("  if (a_") + args_.row.arguments[1].name + " == 0) FAULT(ZERO_DIVISION, 0, 0)\n";
  out += std::string("  const ") + (types.result == cresset::kBool ? "int" : "T") + " r = " + args_.row.expression + ";\n";
  out += "  STORE(" + result + ", p_result, s0, r);\n}\n";
  return out;
}

void Run::add_argument(Launch& launch, std::size_t i) const {
  const Argument& a = args_.row.arguments[i];
  const IValue& v = args_.values[i];
  const auto real = [&](double x) {
    if (device_of(out_).facts().has_fp64)
      launch.value(static_cast<cl_double>(x));
    else
      launch.value(static_cast<cl_float>(x));
  };
  switch (a.kind) {
    case ArgumentKind::Tensor:
      if (is_device_tensor(v.toTensor()))
        launch.tensor(v.toTensor());
      else
        add_number(launch, compute(), v.toTensor().item());
      break;
    case ArgumentKind::Promoting:
    case ArgumentKind::Number: add_number(launch, compute(), *args_.numbers[i]); break;
    case ArgumentKind::OptionalPromoting:
    case ArgumentKind::OptionalNumber:
      add_number(launch, compute(), args_.numbers[i].value_or(Scalar(0)));
      launch.value(static_cast<cl_int>(args_.numbers[i].has_value()));
      break;
    case ArgumentKind::Real: real(v.toDouble()); break;
    case ArgumentKind::OptionalReal:
      real(v.isNone() ? 0 : v.toDouble());
      launch.value(static_cast<cl_int>(!v.isNone()));
      break;
    case ArgumentKind::Int: launch.value(static_cast<cl_long>(v.toInt())); break;
    case ArgumentKind::Flag: launch.value(static_cast<cl_int>(v.toBool())); break;
    case ArgumentKind::Word: launch.value(static_cast<cl_int>(v.toStringRef() == a.word)); break;
  }
}

void Run::launch() {
  ClDevice& d = device_of(out_);
  const cl_kernel kernel = d.programs().kernel(program_key(d.facts()), kernel_name(own_, types_).c_str(), [&] { return text(d.facts()); });
  Launch launch(d, queue_for(out_), kernel);
  launch.tensor(out_);
  for (std::size_t i = 0; i < args_.row.arguments.size(); ++i) add_argument(launch, i);
  if (meets_zeros(types_.common)) launch.faults();
  add_walk(launch, walk_);
  launch.run(static_cast<std::size_t>(walk_.n));
}

struct PointwiseKernel final : cresset::OperatorKernel {
  PointwiseKernel(const PointwiseRow& r, Form f) : row(r), form(f) {}
  void operator()(const OperatorHandle& op, cresset::DispatchKeySet, Stack* stack) {
    const std::size_t count = row.arguments.size() + (form == Form::Out), first = stack->size() - count;
    const IValue* values = stack->data() + first;
    const Arguments args(row, values);
    const Tensor* given = form == Form::Functional ? nullptr : &values[form == Form::Out ? count - 1 : 0].toTensor();
    if (!supported(args, given)) return cresset::cpu_fallback(op, stack);
    const cresset::PointwiseArguments rule = args.rule();
    Tensor out = given ? *given : cresset::pointwise_result(rule);
    if (given) cresset::pointwise_prepare(rule, out, form == Form::InPlace);
    const cresset::PointwiseTypes types = cresset::pointwise_types(rule);
    if (!computes(device_of(out), types.common)) return cresset::cpu_fallback(op, stack);
    check_integers(args, types.common);
    // Another type of out is converted from the exact result.
    Tensor target = out.scalar_type() == types.result ? out : cresset::empty(out.sizes(), out.options().dtype(types.result));
    if (out.numel() > 0) {
      Run run(args, types, target);
      if (!run.plan()) return cresset::cpu_fallback(op, stack);
      run.launch();
      if (!target.is_same(out)) cresset::_copy_from(target, out, false);
    }
    stack->resize(first);
    stack->emplace_back(std::move(out));
  }
  const PointwiseRow& row;
  Form form;
};

void register_form(cresset::Library& m, const PointwiseRow& row, std::string_view name, Form form) {
  const std::string ns = m.ns() + "::";
  if (!name.starts_with(ns)) return;
  m.impl(name.substr(ns.size()),
         cresset::CppFunction::makeFromBoxedFunctor(cresset::make_intrusive<PointwiseKernel>(row, form)).debug("opencl: pointwise"));
}

void register_rows(cresset::Library& m) {
  for (const PointwiseRow& row : kPointwiseRows) {
    register_form(m, row, row.op, Form::Functional);
    register_form(m, row, row.out, Form::Out);
    register_form(m, row, row.inplace, Form::InPlace);
  }
}

}  // namespace
}  // namespace cresset_opencl

CRESSET_BACKEND_IMPL(cresset_opencl::OpenCl, aten, m) { cresset_opencl::register_rows(m); }
CRESSET_BACKEND_IMPL(cresset_opencl::OpenCl, cresset, m) { cresset_opencl::register_rows(m); }
