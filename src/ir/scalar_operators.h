// Arithmetic on scalar registers: what the operands and the result are (i ints and bools, d floats), and the result for operands x and y.
// Both the interpreter and native code are made from this table; includers have <cmath> and ir/builtin_call.h.
#pragma once

// clang-format off
#define CRESSET_FORALL_SCALAR_OPERATORS(_)                                           \
  _(ADD_INT, i, i, builtin::wrap_add(x, y))                                          \
  _(SUB_INT, i, i, builtin::wrap_sub(x, y))                                          \
  _(MUL_INT, i, i, builtin::wrap_mul(x, y))                                          \
  _(FLOORDIV_INT, i, i, builtin::floor_div(x, y))                                    \
  _(MOD_INT, i, i, builtin::floor_mod(x, y))                                         \
  _(MIN_INT, i, i, std::min(x, y))                                                   \
  _(MAX_INT, i, i, std::max(x, y))                                                   \
  _(AND_INT, i, i, x & y)                                                            \
  _(OR_INT, i, i, x | y)                                                             \
  _(XOR_INT, i, i, x ^ y)                                                            \
  _(LT_INT, i, i, x < y)                                                             \
  _(LE_INT, i, i, x <= y)                                                            \
  _(GT_INT, i, i, x > y)                                                             \
  _(GE_INT, i, i, x >= y)                                                            \
  _(EQ_INT, i, i, x == y)                                                            \
  _(NE_INT, i, i, x != y)                                                            \
  _(ADD_FLOAT, d, d, x + y)                                                          \
  _(SUB_FLOAT, d, d, x - y)                                                          \
  _(MUL_FLOAT, d, d, x * y)                                                          \
  _(DIV_FLOAT, d, d, x / y)                                                          \
  _(MIN_FLOAT, d, d, y < x ? y : x)                                                  \
  _(MAX_FLOAT, d, d, y > x ? y : x)                                                  \
  _(LT_FLOAT, d, i, x < y)                                                           \
  _(LE_FLOAT, d, i, x <= y)                                                          \
  _(GT_FLOAT, d, i, x > y)                                                           \
  _(GE_FLOAT, d, i, x >= y)                                                          \
  _(EQ_FLOAT, d, i, x == y)                                                          \
  _(NE_FLOAT, d, i, x != y)                                                          \
  _(DIV_INT, i, d, static_cast<double>(x) / static_cast<double>(y))                  \
  _(SHL_INT, i, i, builtin::shift_left(x, y))                                        \
  _(SHR_INT, i, i, builtin::shift_right(x, y))                                       \
  _(NEG_INT, i, i, builtin::wrap_sub(0, x))                                          \
  _(NEG_FLOAT, d, d, -x)                                                             \
  _(ABS_INT, i, i, x < 0 ? builtin::wrap_sub(0, x) : x)                              \
  _(ABS_FLOAT, d, d, std::fabs(x))                                                   \
  _(NOT, i, i, !x)                                                                   \
  _(INT_TO_FLOAT, i, d, static_cast<double>(x))                                      \
  _(INT_TO_BOOL, i, i, x != 0)                                                       \
  _(FLOAT_TO_BOOL, d, i, x != 0)                                                     \
  _(INVERT_INT, i, i, ~x)                                                            \
  _(SQRT_FLOAT, d, d, std::sqrt(x))

/* whose results are computed by functions */
#define CRESSET_FORALL_CALLED_OPERATORS(_)                                           \
  _(FLOORDIV_FLOAT, d, d, builtin::float_floor_div(x, y))                            \
  _(MOD_FLOAT, d, d, builtin::float_mod(x, y))                                       \
  _(FLOAT_TO_INT, d, i, builtin::to_integer(x))                                      \
  _(FLOOR_TO_INT, d, i, builtin::to_integer(std::floor(x)))                          \
  _(CEIL_TO_INT, d, i, builtin::to_integer(std::ceil(x)))
// clang-format on
