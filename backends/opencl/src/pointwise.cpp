// All pointwise operators: one boxed kernel that compiles a row's expression for the types and the layout of a call.
#include "pointwise.h"

#include <cresset/cresset.h>
#include <cresset/ops/cpu_fallback.h>

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
  cresset::PointwiseArguments rule() const { return {row.name, row.rule, row.classes, tensors, promoting, others}; }

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
  Run(const Arguments& args, cresset::PointwiseTypes types, const Tensor& out) : args_(args), types_(types), out_(out) {}
  bool plan() {
    std::vector<const Tensor*> walked{&out_};
    for (const Tensor* t : args_.tensors)
      if (is_device_tensor(*t)) walked.push_back(t);
    return make_walk(out_.sizes(), walked, walk_);
  }
  void launch();

 private:
  Compute compute() const { return compute_of(types_.common); }
  std::string key() const;
  ProgramText text(bool has_fp64) const;
  void add_argument(Launch& launch, std::size_t i) const;
  std::string parameter(std::size_t i) const;
  // A zero that only the kernel sees is a fault.
  bool meets_zeros() const {
    return divides(args_) && isIntegralType(types_.common) && args_.row.arguments.size() > 1 && args_.values[1].isTensor() &&
           is_device_tensor(args_.values[1].toTensor());
  }
  bool is_condition(const Tensor& t) const { return args_.row.rule == PointwiseRule::BoolFirst && &t == args_.tensors[0]; }

  const Arguments& args_;
  cresset::PointwiseTypes types_;
  const Tensor& out_;
  Walk walk_;
};

std::string Run::key() const {
  std::string key = std::string("pointwise ") + args_.row.op + ' ' + type_letter(types_.common) + ' ' + type_letter(out_.scalar_type());
  for (const Tensor* t : args_.tensors) key += std::string(is_device_tensor(*t) ? " " : " =") + type_letter(t->scalar_type());
  return key + ' ' + walk_key(walk_);
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

ProgramText Run::text(bool has_fp64) const {
  const Compute c = compute();
  const std::string common = type_letter(types_.common), t = compute_name(c);
  const bool is_float = c == Compute::Float || c == Compute::Double;
  std::string out = std::string(kernel_file("types")) + (meets_zeros() ? kernel_file("faults") : "");
  out += "#define T " + t + "\n#define UNSIGNED_T u" + (c == Compute::Long ? std::string("long") : std::string("int")) + "\n#define BITS " +
         (c == Compute::Long ? "64" : "32") + "\n#define IS_FLOAT " + (is_float ? "1" : "0") + "\n#define IS_BOOL " +
         (types_.common == cresset::kBool ? "1" : "0") + "\n#define M_PI_VALUE 3.14159265358979323846\n" + args_.row.functions +
         index_source(walk_.wide) + walk_source(walk_) + "kernel void run(BUFFER(p_result)";
  for (std::size_t i = 0; i < args_.row.arguments.size(); ++i) out += parameter(i);
  out += std::string(meets_zeros() ? ", FAULTS" : "") +
         ", const Shape_s s, const ulong n) {\n  const index i = (index)get_global_id(0);\n  if (i >= n) return;\n  WALK_s\n";
  const std::string result = type_letter(out_.scalar_type());
  int operand = 1;
  std::string body;
  for (std::size_t i = 0; i < args_.row.arguments.size(); ++i) {
    const Argument& a = args_.row.arguments[i];
    const std::string name = a.name;
    if (a.kind == ArgumentKind::Tensor) {
      const Tensor& tensor = args_.values[i].toTensor();
      const std::string letter = type_letter(tensor.scalar_type()), type = is_condition(tensor) ? "int" : "T";
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
  if (meets_zeros()) out += std::string("  if (a_") + args_.row.arguments[1].name + " == 0) FAULT(ZERO_DIVISION, 0, 0)\n";
  out += std::string("  const ") + (types_.result == cresset::kBool ? "int" : "T") + " r = " + args_.row.expression + ";\n";
  out += "  STORE(" + result + ", p_result, s0, r);\n}\n";
  return {out, std::string("-cl-std=CL1.2") + (has_fp64 ? " -DHAS_FP64" : "")};
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
  const cl_kernel kernel = d.programs().kernel(key(), "run", [&] { return text(d.facts().has_fp64); });
  Launch launch(d, queue_for(out_), kernel);
  launch.tensor(out_);
  for (std::size_t i = 0; i < args_.row.arguments.size(); ++i) add_argument(launch, i);
  if (meets_zeros()) launch.faults();
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
