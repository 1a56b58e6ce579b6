// Operators that have an instruction of their own.
#pragma once

#include <string_view>
#include <unordered_map>

#include "ir/run/code.h"

namespace cresset::jit {

/// `banks`: what the operands are, i f b; an int where an f stands is converted.
struct FastOperator {
  Opcode op;
  const char* banks;
};

/// By the name of the schema.
inline const std::unordered_map<std::string_view, FastOperator>& fast_operators() {
  static const auto* table = new std::unordered_map<std::string_view, FastOperator>{
      {"aten::add.int", {Opcode::ADD_INT, "ii"}},
      {"aten::sub.int", {Opcode::SUB_INT, "ii"}},
      {"aten::mul.int", {Opcode::MUL_INT, "ii"}},
      {"aten::floordiv.int", {Opcode::FLOORDIV_INT, "ii"}},
      {"aten::remainder.int", {Opcode::MOD_INT, "ii"}},
      {"prim::min.int", {Opcode::MIN_INT, "ii"}},
      {"prim::max.int", {Opcode::MAX_INT, "ii"}},
      {"aten::__and__.int", {Opcode::AND_INT, "ii"}},
      {"aten::__or__.int", {Opcode::OR_INT, "ii"}},
      {"aten::__xor__.int", {Opcode::XOR_INT, "ii"}},
      {"aten::__and__.bool", {Opcode::AND_INT, "bb"}},
      {"aten::__or__.bool", {Opcode::OR_INT, "bb"}},
      {"aten::__xor__.bool", {Opcode::XOR_INT, "bb"}},
      {"aten::lt.int", {Opcode::LT_INT, "ii"}},
      {"aten::le.int", {Opcode::LE_INT, "ii"}},
      {"aten::gt.int", {Opcode::GT_INT, "ii"}},
      {"aten::ge.int", {Opcode::GE_INT, "ii"}},
      {"aten::eq.int", {Opcode::EQ_INT, "ii"}},
      {"aten::ne.int", {Opcode::NE_INT, "ii"}},
      {"aten::eq.bool", {Opcode::EQ_INT, "bb"}},
      {"aten::ne.bool", {Opcode::NE_INT, "bb"}},
      {"aten::add.float", {Opcode::ADD_FLOAT, "ff"}},
      {"aten::sub.float", {Opcode::SUB_FLOAT, "ff"}},
      {"aten::mul.float", {Opcode::MUL_FLOAT, "ff"}},
      {"aten::div.float", {Opcode::DIV_FLOAT, "ff"}},
      {"aten::add.int_float", {Opcode::ADD_FLOAT, "ff"}},
      {"aten::add.float_int", {Opcode::ADD_FLOAT, "ff"}},
      {"aten::sub.int_float", {Opcode::SUB_FLOAT, "ff"}},
      {"aten::sub.float_int", {Opcode::SUB_FLOAT, "ff"}},
      {"aten::mul.int_float", {Opcode::MUL_FLOAT, "ff"}},
      {"aten::mul.float_int", {Opcode::MUL_FLOAT, "ff"}},
      {"aten::div.int", {Opcode::DIV_INT, "ii"}},
      {"prim::min.float", {Opcode::MIN_FLOAT, "ff"}},
      {"prim::max.float", {Opcode::MAX_FLOAT, "ff"}},
      {"aten::lt.float", {Opcode::LT_FLOAT, "ff"}},
      {"aten::le.float", {Opcode::LE_FLOAT, "ff"}},
      {"aten::gt.float", {Opcode::GT_FLOAT, "ff"}},
      {"aten::ge.float", {Opcode::GE_FLOAT, "ff"}},
      {"aten::eq.float", {Opcode::EQ_FLOAT, "ff"}},
      {"aten::ne.float", {Opcode::NE_FLOAT, "ff"}},
      {"aten::lt.float_int", {Opcode::LT_FLOAT, "ff"}},
      {"aten::gt.float_int", {Opcode::GT_FLOAT, "ff"}},
      {"aten::lt.int_float", {Opcode::LT_FLOAT, "ff"}},
      {"aten::gt.int_float", {Opcode::GT_FLOAT, "ff"}},
      {"aten::neg.int", {Opcode::NEG_INT, "i"}},
      {"aten::neg.float", {Opcode::NEG_FLOAT, "f"}},
      {"prim::abs.int", {Opcode::ABS_INT, "i"}},
      {"prim::abs.float", {Opcode::ABS_FLOAT, "f"}},
      {"aten::__not__", {Opcode::NOT, "b"}},
      {"aten::Float.int", {Opcode::INT_TO_FLOAT, "i"}},
      {"aten::Float.bool", {Opcode::INT_TO_FLOAT, "b"}},
      {"aten::Int.bool", {Opcode::MOVE, "b"}},
      {"aten::Bool.int", {Opcode::INT_TO_BOOL, "i"}},
      {"aten::Bool.float", {Opcode::FLOAT_TO_BOOL, "f"}},
      {"aten::sqrt.float", {Opcode::SQRT_FLOAT, "f"}},
      {"aten::sqrt.int", {Opcode::SQRT_FLOAT, "f"}},
      {"aten::le.float_int", {Opcode::LE_FLOAT, "ff"}},
      {"aten::ge.float_int", {Opcode::GE_FLOAT, "ff"}},
      {"aten::le.int_float", {Opcode::LE_FLOAT, "ff"}},
      {"aten::ge.int_float", {Opcode::GE_FLOAT, "ff"}},
      {"aten::eq.float_int", {Opcode::EQ_FLOAT, "ff"}},
      {"aten::ne.float_int", {Opcode::NE_FLOAT, "ff"}},
      {"prim::min.int_float", {Opcode::MIN_FLOAT, "ff"}},
      {"prim::min.float_int", {Opcode::MIN_FLOAT, "ff"}},
      {"prim::max.int_float", {Opcode::MAX_FLOAT, "ff"}},
      {"prim::max.float_int", {Opcode::MAX_FLOAT, "ff"}},
      {"aten::__lshift__.int", {Opcode::SHL_INT, "ii"}},
      {"aten::__rshift__.int", {Opcode::SHR_INT, "ii"}},
      {"aten::bitwise_not.int", {Opcode::INVERT_INT, "i"}},
      {"aten::floordiv.float", {Opcode::FLOORDIV_FLOAT, "ff"}},
      {"aten::floordiv.int_float", {Opcode::FLOORDIV_FLOAT, "ff"}},
      {"aten::floordiv.float_int", {Opcode::FLOORDIV_FLOAT, "ff"}},
      {"aten::remainder.float", {Opcode::MOD_FLOAT, "ff"}},
      {"aten::remainder.int_float", {Opcode::MOD_FLOAT, "ff"}},
      {"aten::remainder.float_int", {Opcode::MOD_FLOAT, "ff"}},
      {"aten::Int.float", {Opcode::FLOAT_TO_INT, "f"}},
      {"aten::floor.float", {Opcode::FLOOR_TO_INT, "f"}},
      {"aten::ceil.float", {Opcode::CEIL_TO_INT, "f"}},
  };
  return *table;
}

}  // namespace cresset::jit
