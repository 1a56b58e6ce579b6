// Loads of any element type and stride into contiguous blocks of a compute type, and stores back.
#pragma once

#include <cstdint>

#include <cresset/core/scalar_type.h>

#include "backends/cpu/isa.h"
#include "backends/cpu/pointwise.h"
#include "backends/cpu/stored.h"

namespace cresset::cpu {

// Rows of elements: `rows` rows of `n` elements, with strides in bytes.
struct Rows {
  char* data;
  int64_t stride;      // from element to element
  int64_t row_stride;  // from row to row
};

// Converts rows * n elements into contiguous memory (a stride of 0 repeats the element), or back out of it.
using LoadFunction = void (*)(void* block, Rows from, int64_t n, int64_t rows);
using StoreFunction = void (*)(Rows to, const void* block, int64_t n, int64_t rows);

// to[r][i] = from[i][r] for r < rows and i < n, elements of 4 or 8 bytes as they are; strides of rows in bytes.
using TransposeFunction = void (*)(char* to, int64_t to_stride, const char* from, int64_t from_stride, int64_t n, int64_t rows);

inline constexpr int kConvertTypes = static_cast<int>(ScalarType::Undefined);  // by numeric value
struct ConvertTable {
  LoadFunction load[kConvertTypes][kNumComputeTypes];
  StoreFunction store[kNumComputeTypes][kConvertTypes];
  TransposeFunction transpose4, transpose8;
};
const ConvertTable& convert_table();

inline LoadFunction load_function(ScalarType from, ComputeType to) {
  return convert_table().load[static_cast<int>(from)][static_cast<int>(to)];
}
inline StoreFunction store_function(ComputeType from, ScalarType to) {
  return convert_table().store[static_cast<int>(from)][static_cast<int>(to)];
}

// The type loops use for elements of a type, and back (the type whose elements loops use directly).
constexpr ComputeType compute_type(ScalarType type) {
  switch (type) {
    case kBool: return ComputeType::Bool;
    case kByte:
    case kChar:
    case kShort:
    case kInt:
    case kUInt16: return ComputeType::Int32;
    case kUInt32:
    case kUInt64:  // as bits: the operators that accept it give the same ones
    case kLong: return ComputeType::Int64;
    case kDouble: return ComputeType::Double;
    case kComplexHalf:
    case kComplexFloat: return ComputeType::ComplexFloat;
    case kComplexDouble: return ComputeType::ComplexDouble;
    default: return ComputeType::Float;
  }
}
constexpr ScalarType scalar_type(ComputeType type) {
  constexpr ScalarType types[] = {kBool, kInt, kLong, kFloat, kDouble, kComplexFloat, kComplexDouble};
  return types[static_cast<int>(type)];
}

/// The tensor, or a copy of it where it has bytes that are neither 0 nor 1: for kernels that look at the bytes of bools.
Tensor standard_bools(const Tensor& t);

CRESSET_IN_EACH_ISA(extern const ConvertTable convert_functions;)

}  // namespace cresset::cpu
