// Arithmetic, comparison and mathematics on numbers.
#include <cmath>
#include <limits>
#include <numeric>

#include "ir/operators/builtin_call.h"

namespace cresset::jit {
namespace builtin {

void raise_division_by_zero() { CRESSET_THROW(ZeroDivisionError, "integer division or modulo by zero"); }

void raise_negative_shift() { CRESSET_THROW(ValueError, "negative shift count"); }

int64_t to_integer(double v) {
  CRESSET_CHECK(!std::isnan(v), "cannot convert float NaN to integer");
  CRESSET_CHECK(v >= -9223372036854775808.0 && v < 9223372036854775808.0, "cannot convert float ", v, " to a 64-bit integer");
  return static_cast<int64_t>(v);
}

double float_mod(double a, double b) {
  if (b == 0) return std::numeric_limits<double>::quiet_NaN();
  double r = std::fmod(a, b);
  if (r == 0) return std::copysign(0.0, b);
  return (r < 0) != (b < 0) ? r + b : r;
}
double float_floor_div(double a, double b) { return std::floor(a / b); }

int64_t int_pow(int64_t a, int64_t b) {
  if (b < 0) {
    if (a == 1) return 1;
    if (a == -1) return b % 2 ? -1 : 1;
    return 0;
  }
  int64_t result = 1;
  while (b) {
    if (b & 1) result = wrap_mul(result, a);
    a = wrap_mul(a, a);
    b >>= 1;
  }
  return result;
}

namespace {

IValue scalar_result(const Scalar& a, const Scalar& b, int64_t (*i)(int64_t, int64_t), double (*f)(double, double),
                     Complex (*c)(Complex, Complex)) {
  if (a.isComplex() || b.isComplex()) return IValue(c(a.toComplexDouble(), b.toComplexDouble()));
  if (a.isFloatingPoint() || b.isFloatingPoint()) return IValue(f(a.toDouble(), b.toDouble()));
  return IValue(i(a.toLong(), b.toLong()));
}
[[noreturn]] Complex no_complex(Complex, Complex) { CRESSET_THROW(TypeError, "complex numbers have no order and no remainder."); }

bool scalar_compare(const Scalar& a, const Scalar& b, bool (*i)(int64_t, int64_t), bool (*f)(double, double)) {
  CRESSET_CHECK_TYPE(!a.isComplex() && !b.isComplex(), "complex numbers have no order.");
  if (a.isFloatingPoint() || b.isFloatingPoint()) return f(a.toDouble(), b.toDouble());
  return i(a.toLong(), b.toLong());
}

int64_t factorial(int64_t n) {
  CRESSET_CHECK_VALUE(n >= 0, "factorial() not defined for negative values");
  CRESSET_CHECK(n <= 20, "factorial: the result of ", n, "! does not fit 64 bits");
  int64_t r = 1;
  for (int64_t i = 2; i <= n; ++i) r *= i;
  return r;
}

// Rows for int, float and Scalar of a function of one float.
#define CRESSET_MATH(name, expression)                                                                    \
  {"aten::" #name ".int(int a) -> float", CRESSET_BUILTIN((int64_t i)->double {                           \
     const double a = static_cast<double>(i);                                                             \
     return expression;                                                                                   \
   })},                                                                                                   \
  {                                                                                                       \
    "aten::" #name ".float(float a) -> float", CRESSET_BUILTIN((double a)->double { return expression; }) \
  }
#define CRESSET_MATH_SCALAR(name, expression)                                         \
  {"aten::" #name ".Scalar(Scalar a) -> Scalar", CRESSET_BUILTIN((Scalar s)->double { \
     const double a = s.toDouble();                                                   \
     return expression;                                                               \
   })}
#define CRESSET_MATH_COMPLEX(name, expression) \
  {"aten::" #name ".complex(complex a) -> complex", CRESSET_BUILTIN((Complex a)->Complex { return expression; })}
#define CRESSET_MATH_REAL(name, expression) CRESSET_MATH(name, expression), CRESSET_MATH_SCALAR(name, expression)
#define CRESSET_MATH_ALL(name, expression) \
  CRESSET_MATH(name, expression), CRESSET_MATH_COMPLEX(name, expression), CRESSET_MATH_SCALAR(name, expression)

// Rows for two numbers that give a float.
#define CRESSET_MATH2(name, scalar_overload, f)                                                                                \
  {"aten::" #name ".int(int a, int b) -> float",                                                                               \
   CRESSET_BUILTIN((int64_t a, int64_t b)->double { return f(static_cast<double>(a), static_cast<double>(b)); })},             \
      {"aten::" #name ".float(float a, float b) -> float", CRESSET_BUILTIN((double a, double b)->double { return f(a, b); })}, \
      {"aten::" #name ".int_float(int a, float b) -> float",                                                                   \
       CRESSET_BUILTIN((int64_t a, double b)->double { return f(static_cast<double>(a), b); })},                               \
      {"aten::" #name ".float_int(float a, int b) -> float",                                                                   \
       CRESSET_BUILTIN((double a, int64_t b)->double { return f(a, static_cast<double>(b)); })},                               \
  {                                                                                                                            \
    "aten::" #name scalar_overload "(Scalar a, Scalar b) -> float",                                                            \
        CRESSET_BUILTIN((Scalar a, Scalar b)->double { return f(a.toDouble(), b.toDouble()); })                                \
  }

// Arithmetic with an integer form.
#define CRESSET_ARITHMETIC(name, i, f, op)                                                                                               \
  {"aten::" #name ".int(int a, int b) -> int", CRESSET_BUILTIN((int64_t a, int64_t b)->int64_t { return i(a, b); })},                    \
      {"aten::" #name ".complex(complex a, complex b) -> complex", CRESSET_BUILTIN((Complex a, Complex b)->Complex { return a op b; })}, \
      {"aten::" #name ".float(float a, float b) -> float", CRESSET_BUILTIN((double a, double b)->double { return a op b; })},            \
      {"aten::" #name ".int_complex(int a, complex b) -> complex", CRESSET_BUILTIN((Complex a, Complex b)->Complex { return a op b; })}, \
      {"aten::" #name ".complex_int(complex a, int b) -> complex", CRESSET_BUILTIN((Complex a, Complex b)->Complex { return a op b; })}, \
      {"aten::" #name ".float_complex(float a, complex b) -> complex",                                                                   \
       CRESSET_BUILTIN((Complex a, Complex b)->Complex { return a op b; })},                                                             \
      {"aten::" #name ".complex_float(complex a, float b) -> complex",                                                                   \
       CRESSET_BUILTIN((Complex a, Complex b)->Complex { return a op b; })},                                                             \
      {"aten::" #name ".int_float(int a, float b) -> float", CRESSET_BUILTIN((double a, double b)->double { return a op b; })},          \
      {"aten::" #name ".float_int(float a, int b) -> float", CRESSET_BUILTIN((double a, double b)->double { return a op b; })}, {        \
    "aten::" #name "(Scalar a, Scalar b) -> Scalar", CRESSET_BUILTIN((Scalar a, Scalar b)->IValue {                                      \
      return scalar_result(                                                                                                              \
          a, b, +[](int64_t x, int64_t y) { return i(x, y); }, +[](double x, double y) { return x op y; },                               \
          +[](Complex x, Complex y) { return x op y; });                                                                                 \
    })                                                                                                                                   \
  }

#define CRESSET_DIVISION(name, i, f)                                                                                               \
  {"aten::" #name ".int(int a, int b) -> int", CRESSET_BUILTIN((int64_t a, int64_t b)->int64_t { return i(a, b); })},              \
      {"aten::" #name ".float(float a, float b) -> float", CRESSET_BUILTIN((double a, double b)->double { return f(a, b); })},     \
      {"aten::" #name ".int_float(int a, float b) -> float", CRESSET_BUILTIN((double a, double b)->double { return f(a, b); })},   \
      {"aten::" #name ".float_int(float a, int b) -> float", CRESSET_BUILTIN((double a, double b)->double { return f(a, b); })}, { \
    "aten::" #name "(Scalar a, Scalar b) -> Scalar",                                                                               \
        CRESSET_BUILTIN((Scalar a, Scalar b)->IValue { return scalar_result(a, b, &i, &f, &no_complex); })                         \
  }

#define CRESSET_ORDER(name, op)                                                                                                 \
  {"aten::" #name ".int(int a, int b) -> bool", CRESSET_BUILTIN((int64_t a, int64_t b)->bool { return a op b; })},              \
      {"aten::" #name ".float(float a, float b) -> bool", CRESSET_BUILTIN((double a, double b)->bool { return a op b; })},      \
      {"aten::" #name ".int_float(int a, float b) -> bool", CRESSET_BUILTIN((double a, double b)->bool { return a op b; })},    \
      {"aten::" #name ".float_int(float a, int b) -> bool", CRESSET_BUILTIN((double a, double b)->bool { return a op b; })},    \
      {"aten::" #name "(Scalar a, Scalar b) -> bool", CRESSET_BUILTIN((Scalar a, Scalar b)->bool {                              \
         return scalar_compare(a, b, +[](int64_t x, int64_t y) { return x op y; }, +[](double x, double y) { return x op y; }); \
       })},                                                                                                                     \
  {                                                                                                                             \
    "aten::" #name ".str(str a, str b) -> bool", CRESSET_BUILTIN((Text a, Text b)->bool { return a op b; })                     \
  }

#define CRESSET_EQUALITY(name, op)                                                                                                     \
  {"aten::" #name ".device(Device a, Device b) -> bool",                                                                               \
   CRESSET_BUILTIN((IValue & a, IValue & b)->bool { return a.toDevice() op b.toDevice(); })},                                          \
      {"aten::" #name ".bool(bool a, bool b) -> bool", CRESSET_BUILTIN((bool a, bool b)->bool { return a op b; })},                    \
      {"aten::" #name ".enum(AnyEnumType a, AnyEnumType b) -> bool",                                                                   \
       CRESSET_BUILTIN((IValue & a, IValue & b)->bool { return (a == b) op true; })},                                                  \
      {"aten::" #name ".int(int a, int b) -> bool", CRESSET_BUILTIN((int64_t a, int64_t b)->bool { return a op b; })},                 \
      {"aten::" #name ".complex(complex a, complex b) -> bool", CRESSET_BUILTIN((Complex a, Complex b)->bool { return a op b; })},     \
      {"aten::" #name ".float(float a, float b) -> bool", CRESSET_BUILTIN((double a, double b)->bool { return a op b; })},             \
      {"aten::" #name ".int_float(int a, float b) -> bool", CRESSET_BUILTIN((double a, double b)->bool { return a op b; })},           \
      {"aten::" #name ".float_int(float a, int b) -> bool", CRESSET_BUILTIN((double a, double b)->bool { return a op b; })},           \
      {"aten::" #name ".float_complex(float a, complex b) -> bool", CRESSET_BUILTIN((Complex a, Complex b)->bool { return a op b; })}, \
      {"aten::" #name ".complex_float(complex a, float b) -> bool", CRESSET_BUILTIN((Complex a, Complex b)->bool { return a op b; })}, \
      {"aten::" #name "(Scalar a, Scalar b) -> bool", CRESSET_BUILTIN((Scalar a, Scalar b)->bool {                                     \
         if (a.isIntegral(true) && b.isIntegral(true)) return a.toLong() op b.toLong();                                                \
         return a.toComplexDouble() op b.toComplexDouble();                                                                            \
       })},                                                                                                                            \
  {                                                                                                                                    \
    "aten::" #name ".str(str a, str b) -> bool", CRESSET_BUILTIN((Text a, Text b)->bool { return a op b; })                            \
  }

double power(double a, double b) {
  CRESSET_CHECK(a != 0 || !(b < 0), "0.0 cannot be raised to a negative power");
  return std::pow(a, b);
}
std::tuple<double, double> float_divmod(double a, double b) {
  CRESSET_CHECK(b != 0, "ZeroDivisionError: float divmod()");
  const double rest = float_mod(a, b);
  return {std::nearbyint((a - rest) / b), rest};
}
double log_with_base(double a, double b) { return std::log(a) / std::log(b); }
double remainder_of(double a, double b) { return std::remainder(a, b); }

const BuiltinRow kNumberRows[] = {
    CRESSET_ARITHMETIC(add, wrap_add, , +),
    CRESSET_ARITHMETIC(sub, wrap_sub, , -),
    CRESSET_ARITHMETIC(mul, wrap_mul, , *),
    {"aten::div.int(int a, int b) -> float", CRESSET_BUILTIN((double a, double b)->double { return a / b; })},
    {"aten::div.complex(complex a, complex b) -> complex", CRESSET_BUILTIN((Complex a, Complex b)->Complex { return a / b; })},
    {"aten::div.float(float a, float b) -> float", CRESSET_BUILTIN((double a, double b)->double { return a / b; })},
    {"aten::div(Scalar a, Scalar b) -> float", CRESSET_BUILTIN((Scalar a, Scalar b)->double { return a.toDouble() / b.toDouble(); })},
    CRESSET_DIVISION(floordiv, floor_div, float_floor_div),
    {"aten::remainder.int(int a, int b) -> int", CRESSET_BUILTIN((int64_t a, int64_t b)->int64_t { return floor_mod(a, b); })},
    {"aten::remainder.float(float a, float b) -> float", CRESSET_BUILTIN((double a, double b)->double { return float_mod(a, b); })},
    {"aten::remainder.int_float(int a, float b) -> float", CRESSET_BUILTIN((double a, double b)->double { return float_mod(a, b); })},
    {"aten::remainder.float_int(float a, int b) -> float", CRESSET_BUILTIN((double a, double b)->double { return float_mod(a, b); })},
    {"aten::remainder(Scalar a, Scalar b) -> Scalar",
     CRESSET_BUILTIN((Scalar a, Scalar b)->IValue { return scalar_result(a, b, &floor_mod, &float_mod, &no_complex); })},
    {"aten::divmod.int(int x, int y) -> (int, int)", CRESSET_BUILTIN((int64_t a, int64_t b)->std::tuple<int64_t, int64_t> {
       if (b == 0) CRESSET_THROW(ZeroDivisionError, "ZeroDivisionError: integer division or modulo by zero");
       return {floor_div(a, b), floor_mod(a, b)};
     })},
    {"aten::divmod.float(float x, float y) -> (float, float)",
     CRESSET_BUILTIN((double a, double b)->std::tuple<double, double> { return float_divmod(a, b); })},
    {"aten::divmod.int_float(int x, float y) -> (float, float)",
     CRESSET_BUILTIN((double a, double b)->std::tuple<double, double> { return float_divmod(a, b); })},
    {"aten::divmod.float_int(float x, int y) -> (float, float)",
     CRESSET_BUILTIN((double a, double b)->std::tuple<double, double> { return float_divmod(a, b); })},
    {"aten::neg.int(int a) -> int", CRESSET_BUILTIN((int64_t a)->int64_t { return wrap_sub(0, a); })},
    {"aten::neg.float(float a) -> float", CRESSET_BUILTIN((double a)->double { return -a; })},
    {"aten::neg.complex(complex a) -> complex", CRESSET_BUILTIN((Complex a)->Complex { return -a; })},
    {"aten::neg.Scalar(Scalar a) -> Scalar", CRESSET_BUILTIN((IValue & a)->IValue {
       if (a.isInt()) return IValue(wrap_sub(0, a.toInt()));
       return a.isDouble() ? IValue(-a.toDouble()) : IValue(-a.toComplexDouble());
     })},
    {"aten::pow.int(int a, int b) -> float", CRESSET_BUILTIN((double a, double b)->double { return power(a, b); })},
    {"aten::pow.complex(complex a, complex b) -> complex", CRESSET_BUILTIN((Complex a, Complex b)->Complex { return std::pow(a, b); })},
    {"aten::pow.float(float a, float b) -> float", CRESSET_BUILTIN((double a, double b)->double { return power(a, b); })},
    {"aten::pow.int_float(int a, float b) -> float", CRESSET_BUILTIN((double a, double b)->double { return power(a, b); })},
    {"aten::pow.float_int(float a, int b) -> float", CRESSET_BUILTIN((double a, double b)->double { return power(a, b); })},
    {"aten::pow.float_complex(float a, complex b) -> complex", CRESSET_BUILTIN((Complex a, Complex b)->Complex { return std::pow(a, b); })},
    {"aten::pow.complex_float(complex a, float b) -> complex", CRESSET_BUILTIN((Complex a, Complex b)->Complex { return std::pow(a, b); })},
    {"aten::pow.Scalar_Scalar(Scalar a, Scalar b) -> float",
     CRESSET_BUILTIN((Scalar a, Scalar b)->double { return power(a.toDouble(), b.toDouble()); })},
    {"aten::pow.int_to_int(int a, int b) -> int", CRESSET_BUILTIN((int64_t a, int64_t b)->int64_t { return int_pow(a, b); })},
    CRESSET_EQUALITY(eq, ==),
    CRESSET_EQUALITY(ne, !=),
    CRESSET_ORDER(lt, <),
    CRESSET_ORDER(le, <=),
    CRESSET_ORDER(gt, >),
    CRESSET_ORDER(ge, >=),
    {"aten::__and__.bool(bool a, bool b) -> bool", CRESSET_BUILTIN((bool a, bool b)->bool { return a && b; })},
    {"aten::__and__.int(int a, int b) -> int", CRESSET_BUILTIN((int64_t a, int64_t b)->int64_t { return a & b; })},
    {"aten::__or__.bool(bool a, bool b) -> bool", CRESSET_BUILTIN((bool a, bool b)->bool { return a || b; })},
    {"aten::__or__.int(int a, int b) -> int", CRESSET_BUILTIN((int64_t a, int64_t b)->int64_t { return a | b; })},
    {"aten::__xor__.bool(bool a, bool b) -> bool", CRESSET_BUILTIN((bool a, bool b)->bool { return a != b; })},
    {"aten::__xor__.int(int a, int b) -> int", CRESSET_BUILTIN((int64_t a, int64_t b)->int64_t { return a ^ b; })},
    {"aten::__lshift__.int(int a, int b) -> int", CRESSET_BUILTIN((int64_t a, int64_t b)->int64_t { return shift_left(a, b); })},
    {"aten::__rshift__.int(int a, int b) -> int", CRESSET_BUILTIN((int64_t a, int64_t b)->int64_t { return shift_right(a, b); })},
    {"aten::__not__(bool self) -> bool", CRESSET_BUILTIN((bool a)->bool { return !a; })},
    {"aten::bitwise_not.int(int a) -> int", CRESSET_BUILTIN((int64_t a)->int64_t { return ~a; })},
    // Conversions.
    {"aten::Int.bool(bool a) -> int", CRESSET_BUILTIN((bool a)->int64_t { return a; })},
    {"aten::Int.float(float a) -> int", CRESSET_BUILTIN((double a)->int64_t { return to_integer(a); })},
    {"aten::Int.Scalar(Scalar a) -> int",
     CRESSET_BUILTIN((Scalar a)->int64_t { return a.isFloatingPoint() ? to_integer(a.toDouble()) : a.toLong(); })},
    {"aten::Float.int(int a) -> float", CRESSET_BUILTIN((int64_t a)->double { return static_cast<double>(a); })},
    {"aten::Float.bool(bool a) -> float", CRESSET_BUILTIN((bool a)->double { return a; })},
    {"aten::Float.Scalar(Scalar a) -> float", CRESSET_BUILTIN((Scalar a)->double { return a.toDouble(); })},
    {"aten::Bool.int(int a) -> bool", CRESSET_BUILTIN((int64_t a)->bool { return a != 0; })},
    {"aten::Bool.float(float a) -> bool", CRESSET_BUILTIN((double a)->bool { return a != 0; })},
    {"aten::Complex.Scalar(Scalar a) -> complex", CRESSET_BUILTIN((Scalar a)->Complex { return a.toComplexDouble(); })},
    {"aten::Complex.int_bool(int x, bool y) -> complex", CRESSET_BUILTIN((double x, bool y)->Complex { return {x, double(y)}; })},
    {"aten::Complex.bool_int(bool x, int y) -> complex", CRESSET_BUILTIN((bool x, double y)->Complex { return {double(x), y}; })},
    {"aten::Complex.float_bool(float x, bool y) -> complex", CRESSET_BUILTIN((double x, bool y)->Complex { return {x, double(y)}; })},
    {"aten::Complex.bool_float(bool x, float y) -> complex", CRESSET_BUILTIN((bool x, double y)->Complex { return {double(x), y}; })},
    {"aten::Complex.float_int(float x, int y) -> complex", CRESSET_BUILTIN((double x, double y)->Complex { return {x, y}; })},
    {"aten::Complex.int_float(int x, float y) -> complex", CRESSET_BUILTIN((double x, double y)->Complex { return {x, y}; })},
    {"aten::Complex.int_int(int x, int y) -> complex", CRESSET_BUILTIN((double x, double y)->Complex { return {x, y}; })},
    {"aten::Complex.bool_bool(bool x, bool y) -> complex", CRESSET_BUILTIN((bool x, bool y)->Complex { return {double(x), double(y)}; })},
    {"aten::Complex.float_float(float x, float y) -> complex", CRESSET_BUILTIN((double x, double y)->Complex { return {x, y}; })},
    {"aten::real.complex(complex a) -> float", CRESSET_BUILTIN((Complex a)->double { return a.real(); })},
    {"aten::imag.complex(complex a) -> float", CRESSET_BUILTIN((Complex a)->double { return a.imag(); })},
    {"aten::conj.complex(complex a) -> complex", CRESSET_BUILTIN((Complex a)->Complex { return std::conj(a); })},
    {"aten::angle.complex(complex a) -> float", CRESSET_BUILTIN((Complex a)->double { return std::arg(a); })},

    {"aten::polar.int(int a, int b) -> complex", CRESSET_BUILTIN((double a, double b)->Complex { return std::polar(a, b); })},
    {"aten::polar.float(float a, float b) -> complex", CRESSET_BUILTIN((double a, double b)->Complex { return std::polar(a, b); })},
    {"aten::polar.int_float(int a, float b) -> complex", CRESSET_BUILTIN((double a, double b)->Complex { return std::polar(a, b); })},
    {"aten::polar.float_int(float a, int b) -> complex", CRESSET_BUILTIN((double a, double b)->Complex { return std::polar(a, b); })},
    // Rounding.
    {"aten::ceil.int(int a) -> int", CRESSET_BUILTIN((int64_t a)->int64_t { return a; })},
    {"aten::ceil.float(float a) -> int", CRESSET_BUILTIN((double a)->int64_t { return to_integer(std::ceil(a)); })},
    {"aten::ceil.Scalar(Scalar a) -> Scalar", CRESSET_BUILTIN((Scalar a)->int64_t { return to_integer(std::ceil(a.toDouble())); })},
    {"aten::floor.int(int a) -> int", CRESSET_BUILTIN((int64_t a)->int64_t { return a; })},
    {"aten::floor.float(float a) -> int", CRESSET_BUILTIN((double a)->int64_t { return to_integer(std::floor(a)); })},
    {"aten::floor.Scalar(Scalar a) -> Scalar", CRESSET_BUILTIN((Scalar a)->int64_t { return to_integer(std::floor(a.toDouble())); })},
    {"aten::round.int(int a) -> float", CRESSET_BUILTIN((int64_t a)->double { return static_cast<double>(a); })},
    {"aten::round.float(float a) -> float", CRESSET_BUILTIN((double a)->double { return std::nearbyint(a); })},
    {"aten::round.Scalar(Scalar a) -> Scalar", CRESSET_BUILTIN((Scalar a)->double { return std::nearbyint(a.toDouble()); })},
    CRESSET_MATH_ALL(sqrt, std::sqrt(a)),
    CRESSET_MATH_ALL(exp, std::exp(a)),
    CRESSET_MATH_ALL(log, std::log(a)),
    {"aten::log.int_int(int a, int b) -> float", CRESSET_BUILTIN((double a, double b)->double { return log_with_base(a, b); })},
    {"aten::log.float_float(float a, float b) -> float", CRESSET_BUILTIN((double a, double b)->double { return log_with_base(a, b); })},
    {"aten::log.complex_complex(complex a, complex b) -> complex",
     CRESSET_BUILTIN((Complex a, Complex b)->Complex { return std::log(a) / std::log(b); })},
    {"aten::log.int_float(int a, float b) -> float", CRESSET_BUILTIN((double a, double b)->double { return log_with_base(a, b); })},
    {"aten::log.float_int(float a, int b) -> float", CRESSET_BUILTIN((double a, double b)->double { return log_with_base(a, b); })},
    {"aten::log.int_complex(int a, complex b) -> complex",
     CRESSET_BUILTIN((Complex a, Complex b)->Complex { return std::log(a) / std::log(b); })},
    {"aten::log.complex_int(complex a, int b) -> complex",
     CRESSET_BUILTIN((Complex a, Complex b)->Complex { return std::log(a) / std::log(b); })},
    {"aten::log.float_complex(float a, complex b) -> complex",
     CRESSET_BUILTIN((Complex a, Complex b)->Complex { return std::log(a) / std::log(b); })},
    {"aten::log.complex_float(complex a, float b) -> complex",
     CRESSET_BUILTIN((Complex a, Complex b)->Complex { return std::log(a) / std::log(b); })},
    {"aten::log.Scalar_Scalar(Scalar a, Scalar b) -> float",
     CRESSET_BUILTIN((Scalar a, Scalar b)->double { return log_with_base(a.toDouble(), b.toDouble()); })},
    CRESSET_MATH_ALL(log10, std::log10(a)),
    CRESSET_MATH_REAL(log1p, std::log1p(a)),
    CRESSET_MATH_REAL(log2, std::log2(a)),
    CRESSET_MATH_ALL(sin, std::sin(a)),
    CRESSET_MATH_ALL(cos, std::cos(a)),
    CRESSET_MATH_ALL(tan, std::tan(a)),
    CRESSET_MATH_ALL(asin, std::asin(a)),
    CRESSET_MATH_ALL(acos, std::acos(a)),
    CRESSET_MATH_ALL(atan, std::atan(a)),
    CRESSET_MATH_ALL(sinh, std::sinh(a)),
    CRESSET_MATH_ALL(cosh, std::cosh(a)),
    CRESSET_MATH_ALL(tanh, std::tanh(a)),
    CRESSET_MATH_ALL(asinh, std::asinh(a)),
    CRESSET_MATH_ALL(acosh, std::acosh(a)),
    CRESSET_MATH_ALL(atanh, std::atanh(a)),
    CRESSET_MATH_REAL(degrees, (a * 180.0 / 3.14159265358979323846)),
    CRESSET_MATH_REAL(radians, (a * 3.14159265358979323846 / 180.0)),
    CRESSET_MATH_REAL(expm1, std::expm1(a)),
    CRESSET_MATH_REAL(lgamma, std::lgamma(a)),
    CRESSET_MATH_REAL(erf, std::erf(a)),
    CRESSET_MATH_REAL(erfc, std::erfc(a)),
    CRESSET_MATH_REAL(gamma, std::tgamma(a)),
    CRESSET_MATH_REAL(fabs, std::fabs(a)),
    CRESSET_MATH2(atan2, ".Scalar_Scalar", std::atan2),
    CRESSET_MATH2(fmod, "", std::fmod),
    CRESSET_MATH2(copysign, "", std::copysign),
    CRESSET_MATH2(mathremainder, "", remainder_of),
    {"aten::gcd.int(int a, int b) -> int", CRESSET_BUILTIN((int64_t a, int64_t b)->int64_t {
       const auto magnitude = [](int64_t v) { return v < 0 ? -static_cast<uint64_t>(v) : static_cast<uint64_t>(v); };
       return static_cast<int64_t>(std::gcd(magnitude(a), magnitude(b)));
     })},
    {"aten::modf(float a) -> (float, float)", CRESSET_BUILTIN((double a)->std::tuple<double, double> {
       double whole;
       const double part = std::modf(a, &whole);
       return {part, whole};
     })},
    {"aten::frexp(float a) -> (float, int)", CRESSET_BUILTIN((double a)->std::tuple<double, int64_t> {
       int exponent;
       const double m = std::frexp(a, &exponent);
       return {m, exponent};
     })},
    {"aten::ldexp(float x, int i) -> float",
     CRESSET_BUILTIN((double x, int64_t i)->double { return std::ldexp(x, static_cast<int>(std::clamp<int64_t>(i, -100000, 100000))); })},
    {"aten::factorial.int(int a) -> int", CRESSET_BUILTIN((int64_t a)->int64_t { return factorial(a); })},
    {"aten::isnan.float(float a) -> bool", CRESSET_BUILTIN((double a)->bool { return std::isnan(a); })},
    {"aten::isnan.complex(complex a) -> bool", CRESSET_BUILTIN((Complex a)->bool { return std::isnan(a.real()) || std::isnan(a.imag()); })},
    {"aten::isinf.float(float a) -> bool", CRESSET_BUILTIN((double a)->bool { return std::isinf(a); })},
    {"aten::isinf.complex(complex a) -> bool", CRESSET_BUILTIN((Complex a)->bool { return std::isinf(a.real()) || std::isinf(a.imag()); })},
    {"aten::isfinite.float(float a) -> bool", CRESSET_BUILTIN((double a)->bool { return std::isfinite(a); })},
    {"aten::isfinite.complex(complex a) -> bool",
     CRESSET_BUILTIN((Complex a)->bool { return std::isfinite(a.real()) && std::isfinite(a.imag()); })},
    // Smallest, largest, absolute value.
    {"prim::min.int(int a, int b) -> int", CRESSET_BUILTIN((int64_t a, int64_t b)->int64_t { return b < a ? b : a; })},
    {"prim::min.float(float a, float b) -> float", CRESSET_BUILTIN((double a, double b)->double { return b < a ? b : a; })},
    {"prim::min.int_float(int a, float b) -> float", CRESSET_BUILTIN((double a, double b)->double { return b < a ? b : a; })},
    {"prim::min.float_int(float a, int b) -> float", CRESSET_BUILTIN((double a, double b)->double { return b < a ? b : a; })},
    {"prim::min(Scalar a, Scalar b) -> Scalar", CRESSET_BUILTIN((IValue & a, IValue& b)->IValue { return less_than(b, a) ? b : a; })},
    {"prim::max.int(int a, int b) -> int", CRESSET_BUILTIN((int64_t a, int64_t b)->int64_t { return b > a ? b : a; })},
    {"prim::max.float(float a, float b) -> float", CRESSET_BUILTIN((double a, double b)->double { return b > a ? b : a; })},
    {"prim::max.int_float(int a, float b) -> float", CRESSET_BUILTIN((double a, double b)->double { return b > a ? b : a; })},
    {"prim::max.float_int(float a, int b) -> float", CRESSET_BUILTIN((double a, double b)->double { return b > a ? b : a; })},
    {"prim::max(Scalar a, Scalar b) -> Scalar", CRESSET_BUILTIN((IValue & a, IValue& b)->IValue { return less_than(a, b) ? b : a; })},
    {"prim::abs.int(int a) -> int", CRESSET_BUILTIN((int64_t a)->int64_t { return a < 0 ? wrap_sub(0, a) : a; })},
    {"prim::abs.float(float a) -> float", CRESSET_BUILTIN((double a)->double { return std::fabs(a); })},
    {"prim::abs.complex(complex a) -> float", CRESSET_BUILTIN((Complex a)->double { return std::abs(a); })},
    {"prim::abs.Scalar(Scalar a) -> Scalar", CRESSET_BUILTIN((IValue & a)->IValue {
       if (a.isInt()) return IValue(a.toInt() < 0 ? wrap_sub(0, a.toInt()) : a.toInt());
       return IValue(a.isDouble() ? std::fabs(a.toDouble()) : std::abs(a.toComplexDouble()));
     })},
    // Loops over ranges.
    {"aten::__range_length(int lo, int hi, int step) -> int", CRESSET_BUILTIN((int64_t lo, int64_t hi, int64_t step)->int64_t {
       CRESSET_CHECK(step != 0, "range() arg 3 must not be zero");
       if (step > 0 && lo < hi) return 1 + (hi - 1 - lo) / step;
       if (step < 0 && lo > hi) return 1 + (lo - 1 - hi) / (0 - step);
       return 0;
     })},
    {"aten::__derive_index(int index, int start, int step) -> int",
     CRESSET_BUILTIN((int64_t index, int64_t start, int64_t step)->int64_t { return wrap_add(start, wrap_mul(index, step)); })},
};

}  // namespace
}  // namespace builtin

void register_number_builtins(const AddRows& add) { add(builtin::kNumberRows, std::size(builtin::kNumberRows)); }

}  // namespace cresset::jit
