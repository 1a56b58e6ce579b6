// Names of a program without Python: torch, cresset, ops, math, and what the unit defines.
#include <cmath>
#include <limits>

#include <cresset/core/layout.h>
#include <cresset/core/scalar_type.h>
#include <cresset/dispatch/custom_class.h>

#include "ir/frontend/tree.h"
#include "ir/frontend/values.h"

namespace cresset::jit {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr std::pair<std::string_view, double> kNumbers[] = {
    {"inf", kInfinity}, {"nan", kNan}, {"pi", 3.141592653589793}, {"e", 2.718281828459045}, {"tau", 6.283185307179586}};

std::optional<IValue> number(std::string_view name) {
  for (const auto& [known, value] : kNumbers)
    if (known == name) return IValue(value);
  return std::nullopt;
}

// torch.float32, torch.strided, torch.channels_last: ints in scripts. Other names of dtypes ("long") are in the table.
std::optional<int64_t> named_int(const std::string& name) {
  if (const auto type = dtype_from_name(name)) return static_cast<int64_t>(*type);
  for (int i = 0; i < static_cast<int>(ScalarType::NumOptions); ++i)
    if (const char* alias = dtype_alias(static_cast<ScalarType>(i)); alias && alias == name) return i;
  for (int64_t l = 0; l < static_cast<int64_t>(Layout::Custom); ++l)
    if (to_string(static_cast<Layout>(l)) == name) return l;
  for (const MemoryFormat f : {MemoryFormat::Contiguous, MemoryFormat::Preserve, MemoryFormat::ChannelsLast})
    if (to_string(f) == name) return static_cast<int64_t>(f);
  return std::nullopt;
}

bool is_operator(const std::string& kind) { return !operators_of(Symbol::fromQualString(kind)).empty(); }

// Operators of one of torch's packages: what stands between "aten::" and the name. Null: no package of this name.
const char* operator_prefix(std::string_view package) {
  constexpr std::pair<std::string_view, const char*> kPrefixes[] = {{"torch", "aten::"},
                                                                    {"torch.nn.functional", "aten::"},
                                                                    {"torch._C", "aten::"},
                                                                    {"torch._C._nn", "aten::"},
                                                                    {"torch._nn", "aten::"},
                                                                    {"torch._VF", "aten::"},
                                                                    {"torch.autograd", "aten::"},
                                                                    {"torch.linalg", "aten::linalg_"},
                                                                    {"torch._C._linalg", "aten::"},
                                                                    {"torch.fft", "aten::fft_"},
                                                                    {"torch._C._fft", "aten::"},
                                                                    {"torch.special", "aten::special_"},
                                                                    {"torch._C._special", "aten::"},
                                                                    {"torch.nn", nullptr},
                                                                    {"torch.jit", nullptr},
                                                                    {"torch.jit._script", nullptr},
                                                                    {"torch.futures", nullptr}};
  for (const auto& [known, prefix] : kPrefixes)
    if (known == package) return prefix ? prefix : "";
  return nullptr;
}

TypePtr type_named(const std::string& name) {
  auto e = std::make_shared<Expr>();
  e->kind = ExprKind::Name;
  e->text = name;
  try {
    return type_of_annotation(e, nullptr);
  } catch (const ScriptError&) {
    return nullptr;
  }
}

/// A class of the unit, or a C++ class of an extension; `name` is qualified.
TypePtr class_named(const CompilationUnit& unit, const std::string& name) {
  if (TypePtr type = unit.find_type(name)) return type;
  return find_custom_class(name) ? object_type(name) : nullptr;
}

/// The classes and functions below a dotted name of the unit.
class UnitNamespace final : public SugaredValue {
 public:
  UnitNamespace(const CompilationUnit& unit, std::string path) : unit_(unit), path_(std::move(path)) {}
  std::string kind() const override { return "namespace '" + path_ + "'"; }
  SugaredValuePtr attr(const SourceRange&, GraphFunction&, const std::string& field) override {
    const std::string name = path_ + "." + field;
    if (TypePtr type = class_named(unit_, name)) return class_value(std::move(type));
    if (auto function = unit_.find_function(name)) return function_value(std::move(function));
    return std::make_shared<UnitNamespace>(unit_, name);
  }

 private:
  const CompilationUnit& unit_;
  std::string path_;
};

class OperatorNamespaces final : public SugaredValue {
 public:
  std::string kind() const override { return "ops"; }
  SugaredValuePtr attr(const SourceRange&, GraphFunction&, const std::string& field) override { return operator_namespace(field); }
};

class MathModule final : public SugaredValue {
 public:
  std::string kind() const override { return "module 'math'"; }
  SugaredValuePtr attr(const SourceRange& range, GraphFunction&, const std::string& field) override {
    if (const auto value = number(field)) return constant_value(*value);
    const std::string op = field == "remainder" ? "aten::mathremainder" : "aten::" + field;
    if (is_operator(op)) return builtin_function(Symbol::fromQualString(op));
    script_error(range, "module 'math' has no attribute '" + field + "' in scripts");
  }
};

constexpr std::pair<std::string_view, ScalarType> kLegacyTypes[] = {
    {"DoubleTensor", kDouble}, {"FloatTensor", kFloat}, {"HalfTensor", kHalf}, {"BFloat16Tensor", kBFloat16}, {"LongTensor", kLong},
    {"IntTensor", kInt},       {"ShortTensor", kShort}, {"CharTensor", kChar}, {"ByteTensor", kByte},         {"BoolTensor", kBool},
};

class TorchModule final : public SugaredValue {
 public:
  TorchModule(const CompilationUnit& unit, std::string path) : unit_(unit), path_(std::move(path)) {}
  std::string kind() const override { return "module '" + path_ + "'"; }

  SugaredValuePtr attr(const SourceRange& range, GraphFunction&, const std::string& field) override {
    if (SugaredValuePtr found = find(field)) return found;
    // Calling it says which operators have a similar name.
    if (path_ == "torch") return builtin_function(Symbol::aten(field));
    script_error(range, "module '" + path_ + "' has no attribute '" + field + "' in scripts");
  }
  bool hasAttr(const SourceRange&, GraphFunction&, const std::string& field) override { return find(field) != nullptr; }

 private:
  SugaredValuePtr find(const std::string& field) const {
    const std::string path = path_ + "." + field;
    if (operator_prefix(path)) return std::make_shared<TorchModule>(unit_, path);
    if (path == "torch.ops") return std::make_shared<OperatorNamespaces>();
    if (path == "torch.classes") return std::make_shared<UnitNamespace>(unit_, "__torch__.torch.classes");
    if (path_ == "torch") {
      if (const auto value = named_int(field)) return constant_value(IValue(*value));
      if (const auto value = number(field)) return constant_value(*value);
      if (field == "Size") return type_value(list_of(basic_type(TypeKind::Int)));
      for (const auto& [name, dtype] : kLegacyTypes)
        if (name == field) return legacy_constructor(dtype);
      constexpr std::string_view kTypes[] = {"Tensor", "device", "Generator", "Stream", "dtype", "layout", "memory_format"};
      for (const std::string_view type : kTypes)
        if (type == field) return type_value(type_named(field));
    }
    if (path_ == "torch.jit" || path_ == "torch.jit._script" || path_ == "torch.futures") {
      if (SugaredValuePtr constructor = type_constructor(field)) return constructor;
      return special_form(field);
    }
    const std::string prefix = operator_prefix(path_);
    if (!prefix.empty() && is_operator(prefix + field)) return builtin_function(Symbol::fromQualString(prefix + field));
    return nullptr;
  }

  const CompilationUnit& unit_;
  std::string path_;
};

class TypingModule final : public SugaredValue {
 public:
  std::string kind() const override { return "module 'typing'"; }
  SugaredValuePtr attr(const SourceRange& range, GraphFunction&, const std::string& field) override {
    if (SugaredValuePtr constructor = type_constructor(field)) return constructor;
    if (field == "Any") return type_value(basic_type(TypeKind::Any));
    script_error(range, "module 'typing' has no attribute '" + field + "' in scripts");
  }
};

class NativeResolver final : public Resolver {
 public:
  explicit NativeResolver(const CompilationUnit& unit) : unit_(unit) {}

  SugaredValuePtr resolveValue(const std::string& name, GraphFunction&, const SourceRange&) override {
    if (TypePtr type = resolveType(name, {})) return class_value(std::move(type));
    if (auto function = unit_.find_function(name)) return function_value(std::move(function));
    if (name == "torch" || name == "cresset") return std::make_shared<TorchModule>(unit_, "torch");
    if (name == "ops") return std::make_shared<OperatorNamespaces>();
    if (name == "aten" || name == "prim") return operator_namespace(name);
    if (name == "math") return std::make_shared<MathModule>();
    if (name == "typing") return std::make_shared<TypingModule>();
    if (name == "__torch__") return std::make_shared<UnitNamespace>(unit_, name);
    if (name == "inf" || name == "nan") return constant_value(*number(name));
    if (name == "infj") return constant_value(IValue(std::complex<double>(0, kInfinity)));
    if (name == "nanj") return constant_value(IValue(std::complex<double>(0, kNan)));
    if (SugaredValuePtr form = special_form(name)) return form;
    if (SugaredValuePtr constructor = type_constructor(name)) return constructor;
    if (TypePtr type = type_named(name)) return type_value(std::move(type));
    return nullptr;
  }

  TypePtr resolveType(const std::string& name, const SourceRange&) override {
    TypePtr type = class_named(unit_, name);
    return type ? type : class_named(unit_, "__torch__." + name);
  }

 private:
  const CompilationUnit& unit_;
};

}  // namespace

ResolverPtr native_resolver(const CompilationUnit& unit) { return std::make_shared<NativeResolver>(unit); }

}  // namespace cresset::jit
