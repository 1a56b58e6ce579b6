#include "ir/native/math_functions.h"

#include <algorithm>
#include <cmath>

namespace cresset::jit::native {
namespace {

// As in the tables of built-in functions (builtins_number.cpp); not those that raise.
const MathFunction kFunctions[] = {
    {.name = "aten::exp", .of_one = std::exp},           {.name = "aten::log", .of_one = std::log},
    {.name = "aten::log10", .of_one = std::log10},       {.name = "aten::log1p", .of_one = std::log1p},
    {.name = "aten::log2", .of_one = std::log2},         {.name = "aten::sin", .of_one = std::sin},
    {.name = "aten::cos", .of_one = std::cos},           {.name = "aten::tan", .of_one = std::tan},
    {.name = "aten::asin", .of_one = std::asin},         {.name = "aten::acos", .of_one = std::acos},
    {.name = "aten::atan", .of_one = std::atan},         {.name = "aten::sinh", .of_one = std::sinh},
    {.name = "aten::cosh", .of_one = std::cosh},         {.name = "aten::tanh", .of_one = std::tanh},
    {.name = "aten::asinh", .of_one = std::asinh},       {.name = "aten::acosh", .of_one = std::acosh},
    {.name = "aten::atanh", .of_one = std::atanh},       {.name = "aten::expm1", .of_one = std::expm1},
    {.name = "aten::lgamma", .of_one = std::lgamma},     {.name = "aten::erf", .of_one = std::erf},
    {.name = "aten::erfc", .of_one = std::erfc},         {.name = "aten::round", .of_one = std::nearbyint},
    {.name = "aten::gamma", .of_one = std::tgamma},      {.name = "aten::atan2", .of_two = std::atan2},
    {.name = "aten::copysign", .of_two = std::copysign}, {.name = "aten::fmod", .of_two = std::fmod},
};

}  // namespace

const MathFunction* math_function(const Call& c) {
  const std::string overload = c.op->schema().overload_name();
  if (overload != "int" && overload != "float" && overload != "int_float" && overload != "float_int") return nullptr;
  const std::string name = c.op->schema().name();
  const auto* const found =
      std::find_if(std::begin(kFunctions), std::end(kFunctions), [&](const MathFunction& f) { return name == f.name; });
  return found == std::end(kFunctions) || c.in_count != (found->of_one ? 1 : 2) ? nullptr : found;
}

}  // namespace cresset::jit::native
