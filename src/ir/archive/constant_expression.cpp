#include "ir/archive/constant_expression.h"

#include <limits>

#include "ir/archive/unpickler.h"
#include "ir/frontend/sugared_value.h"

namespace cresset::jit {

std::string dotted_name(const Expr& e) {
  if (e.kind == ExprKind::Name) return e.text;
  if (e.kind != ExprKind::Attribute) return {};
  const std::string base = dotted_name(*e.parts[0]);
  return base.empty() ? base : base + "." + e.text;
}

namespace {

// Expressions nest no deeper than the parser lets them.
class Evaluator {
 public:
  Evaluator(Resolver* resolver, const NamedConstants& named) : resolver_(resolver), named_(named) {}

  IValue value(const Expr& e, const TypePtr& type) {
    switch (e.kind) {
      case ExprKind::Constant: return e.value;
      case ExprKind::Name:
      case ExprKind::Attribute: return name(e);
      case ExprKind::Unary: return negated(e, value(*e.parts[0], type));
      case ExprKind::Binary: return complex(e);
      case ExprKind::Tuple: {
        std::vector<IValue> members;
        for (std::size_t i = 0; i < e.parts.size(); ++i)
          members.push_back(
              value(*e.parts[i], type && type->kind == TypeKind::Tuple && i < type->contained.size() ? type->contained[i] : nullptr));
        return IValue(make_intrusive<ivalue::TupleImpl>(std::move(members)));
      }
      case ExprKind::List: {
        auto list = make_intrusive<ivalue::ListImpl>();
        for (const ExprPtr& part : e.parts) list->elements.push_back(value(*part, nullptr));
        return IValue(std::move(list));
      }
      case ExprKind::Dict: {
        auto dict = make_intrusive<ivalue::DictImpl>();
        for (std::size_t i = 0; i + 1 < e.parts.size(); i += 2)
          dict->items.insert_or_assign(value(*e.parts[i], nullptr), value(*e.parts[i + 1], nullptr));
        return IValue(std::move(dict));
      }
      case ExprKind::Call: return call(e);
      default: no_constant(e);
    }
  }

 private:
  [[noreturn]] static void no_constant(const Expr& e) { script_error(e.range, "a constant was expected here"); }

  IValue name(const Expr& e) {
    const std::string n = dotted_name(e);
    if (n == "inf") return IValue(std::numeric_limits<double>::infinity());
    if (n == "nan") return IValue(std::numeric_limits<double>::quiet_NaN());
    if (auto v = named_(n)) return *v;
    no_constant(e);
  }
  static IValue negated(const Expr& e, const IValue& v) {
    if (e.text != "-") no_constant(e);
    if (v.isInt()) return IValue(static_cast<int64_t>(uint64_t{0} - static_cast<uint64_t>(v.toInt())));
    if (v.isDouble()) return IValue(-v.toDouble());
    if (v.isComplexDouble()) return IValue(-v.toComplexDouble());
    no_constant(e);
  }
  // "1.+2.j"
  IValue complex(const Expr& e) {
    const IValue real = value(*e.parts[0], nullptr), imaginary = value(*e.parts[1], nullptr);
    if ((e.text != "+" && e.text != "-") || !(real.isDouble() || real.isInt()) || !imaginary.isComplexDouble()) no_constant(e);
    const double y = imaginary.toComplexDouble().imag();
    return IValue(std::complex<double>(real.toDouble(), e.text == "+" ? y : -y));
  }
  IValue call(const Expr& e) {
    const std::string callee = dotted_name(*e.parts[0]);
    if (callee == "torch.device" && e.parts.size() == 2) {
      const IValue text = value(*e.parts[1], nullptr);
      if (text.isString()) return IValue(Device(text.toStringRef()));
    }
    if (callee == "annotate" && e.parts.size() == 3) {
      const TypePtr type = type_of_annotation(e.parts[1], resolver_);
      IValue v = value(*e.parts[2], type);
      if (!restore_type(v, type)) script_error(e.range, "the value is not of the type '" + type->annotation_str() + "'");
      return v;
    }
    no_constant(e);
  }

  Resolver* resolver_;
  const NamedConstants& named_;
};

}  // namespace

IValue constant_of(const ExprPtr& e, const TypePtr& type, Resolver* resolver, const NamedConstants& named) {
  IValue v = Evaluator(resolver, named).value(*e, type);
  if (type && type->kind == TypeKind::Float && v.isInt()) v = IValue(v.toDouble());
  if (type && !restore_type(v, type)) script_error(e->range, "a constant of type '" + type->annotation_str() + "' was expected here");
  return v;
}

}  // namespace cresset::jit
