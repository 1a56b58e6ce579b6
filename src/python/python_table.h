// The operators as Python sees them: what tools/opgen writes into python_table.cpp. Parsing plans come from the schemas
// at the first call, so the table holds names and facts only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

namespace cresset::python {

/// Where an overload shows; a row's `python` key.
enum Where : uint8_t { kFunction = 1, kMethod = 2, kNn = 4, kLinalg = 8, kSpecial = 16, kFft = 32 };

/// One registered operator, in-place and out forms included.
struct TableOverload {
  const char* name;      // "aten::add"
  const char* overload;  // "Tensor", "" when there is none
  uint8_t where;         // of this overload
  bool numbers;          // Tensor arguments take Python numbers: pointwise rows with two or more tensor inputs
  const char* legacy;    // older orders of its arguments, all by position: "beta self mat1 mat2;beta self alpha mat1 mat2"
};

/// One Python name: all overloads of operators with that name, in the order in which they are tried (order of the rows,
/// each functional form before its out form). In-place forms are entries of their own ("add_").
struct TableEntry {
  const char* name;  // "add", "linalg_norm" (the linalg module drops the prefix)
  const char* doc;   // the row's doc line, "" when there is none
  const TableOverload* overloads;
  uint16_t count;
};

extern const TableEntry operator_table[];
extern const std::size_t operator_table_size;

// The functions that make a tensor without taking one, in their first overload.
extern const char* const factory_names[];
extern const std::size_t factory_names_size;

// (name, overload): what torch.ops asks before the other overloads of a name, although functions ask it after them.
extern const std::pair<const char*, const char*> first_overloads[];
extern const std::size_t first_overloads_size;

}  // namespace cresset::python
