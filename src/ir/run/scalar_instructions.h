// The instructions on scalar registers, one row each. Opcodes, the interpreter's cases, the kinds of registers and the dispatch of native
// code are made from these rows: a row without its machine code does not compile. What an includer needs for the expressions is <cmath> and
// "ir/operators/builtin_call.h".
//
// A row: name; operands (binary x and y, unary x); where the result is computed (inline, or called: by a function); what operands and
// result are (i ints and bools, d floats); the result. Their order is that of the opcodes.
#pragma once

// clang-format off
/* Comparisons, and the jumps on them, which stand in the same order: name, kind of the operands, operator. */
#define CRESSET_FORALL_INT_COMPARISONS(_, prefix)                                                                   \
  _(prefix##LT_INT, i, <)                                                                                           \
  _(prefix##LE_INT, i, <=)                                                                                          \
  _(prefix##GT_INT, i, >)                                                                                           \
  _(prefix##GE_INT, i, >=)                                                                                          \
  _(prefix##EQ_INT, i, ==)                                                                                          \
  _(prefix##NE_INT, i, !=)
#define CRESSET_FORALL_FLOAT_COMPARISONS(_, prefix)                                                                 \
  _(prefix##LT_FLOAT, d, <)                                                                                         \
  _(prefix##LE_FLOAT, d, <=)                                                                                        \
  _(prefix##GT_FLOAT, d, >)                                                                                         \
  _(prefix##GE_FLOAT, d, >=)                                                                                        \
  _(prefix##EQ_FLOAT, d, ==)                                                                                        \
  _(prefix##NE_FLOAT, d, !=)
#define CRESSET_FORALL_COMPARISONS(_, prefix) CRESSET_FORALL_INT_COMPARISONS(_, prefix) CRESSET_FORALL_FLOAT_COMPARISONS(_, prefix)

#define CRESSET_FORALL_SCALAR_INSTRUCTIONS(_, form)                                                                 \
  _(ADD_INT##form, binary, inline, i, i, builtin::wrap_add(x, y))                                                   \
  _(SUB_INT##form, binary, inline, i, i, builtin::wrap_sub(x, y))                                                   \
  _(MUL_INT##form, binary, inline, i, i, builtin::wrap_mul(x, y))                                                   \
  _(FLOORDIV_INT##form, binary, inline, i, i, builtin::floor_div(x, y))                                             \
  _(MOD_INT##form, binary, inline, i, i, builtin::floor_mod(x, y))                                                  \
  _(MIN_INT##form, binary, inline, i, i, std::min(x, y))                                                            \
  _(MAX_INT##form, binary, inline, i, i, std::max(x, y))                                                            \
  _(AND_INT##form, binary, inline, i, i, x & y)                                                                     \
  _(OR_INT##form, binary, inline, i, i, x | y)                                                                      \
  _(XOR_INT##form, binary, inline, i, i, x ^ y)                                                                     \
  _(LT_INT##form, binary, inline, i, i, x < y)                                                                      \
  _(LE_INT##form, binary, inline, i, i, x <= y)                                                                     \
  _(GT_INT##form, binary, inline, i, i, x > y)                                                                      \
  _(GE_INT##form, binary, inline, i, i, x >= y)                                                                     \
  _(EQ_INT##form, binary, inline, i, i, x == y)                                                                     \
  _(NE_INT##form, binary, inline, i, i, x != y)                                                                     \
  _(ADD_FLOAT##form, binary, inline, d, d, x + y)                                                                   \
  _(SUB_FLOAT##form, binary, inline, d, d, x - y)                                                                   \
  _(MUL_FLOAT##form, binary, inline, d, d, x * y)                                                                   \
  _(DIV_FLOAT##form, binary, inline, d, d, x / y)                                                                   \
  _(MIN_FLOAT##form, binary, inline, d, d, y < x ? y : x)                                                           \
  _(MAX_FLOAT##form, binary, inline, d, d, y > x ? y : x)                                                           \
  _(LT_FLOAT##form, binary, inline, d, i, x < y)                                                                    \
  _(LE_FLOAT##form, binary, inline, d, i, x <= y)                                                                   \
  _(GT_FLOAT##form, binary, inline, d, i, x > y)                                                                    \
  _(GE_FLOAT##form, binary, inline, d, i, x >= y)                                                                   \
  _(EQ_FLOAT##form, binary, inline, d, i, x == y)                                                                   \
  _(NE_FLOAT##form, binary, inline, d, i, x != y)                                                                   \
  _(DIV_INT##form, binary, inline, i, d, static_cast<double>(x) / static_cast<double>(y))                           \
  _(SHL_INT##form, binary, inline, i, i, builtin::shift_left(x, y))                                                 \
  _(SHR_INT##form, binary, inline, i, i, builtin::shift_right(x, y))                                                \
  _(FLOORDIV_FLOAT##form, binary, called, d, d, builtin::float_floor_div(x, y))                                     \
  _(MOD_FLOAT##form, binary, called, d, d, builtin::float_mod(x, y))                                                \
  _(NEG_INT##form, unary, inline, i, i, builtin::wrap_sub(0, x))                                                    \
  _(NEG_FLOAT##form, unary, inline, d, d, -x)                                                                       \
  _(ABS_INT##form, unary, inline, i, i, x < 0 ? builtin::wrap_sub(0, x) : x)                                        \
  _(ABS_FLOAT##form, unary, inline, d, d, std::fabs(x))                                                             \
  _(NOT##form, unary, inline, i, i, !x)                                                                             \
  _(INT_TO_FLOAT##form, unary, inline, i, d, static_cast<double>(x))                                                \
  _(INT_TO_BOOL##form, unary, inline, i, i, x != 0)                                                                 \
  _(FLOAT_TO_BOOL##form, unary, inline, d, i, x != 0)                                                               \
  _(INVERT_INT##form, unary, inline, i, i, ~x)                                                                      \
  _(FLOAT_TO_INT##form, unary, called, d, i, builtin::to_integer(x))                                                \
  _(FLOOR_TO_INT##form, unary, called, d, i, builtin::to_integer(std::floor(x)))                                    \
  _(CEIL_TO_INT##form, unary, called, d, i, builtin::to_integer(std::ceil(x)))                                      \
  _(SQRT_FLOAT##form, unary, inline, d, d, std::sqrt(x))
// clang-format on
