// What an operator asks of the tensors given as `out=`: the keys `out_dtype` and `out_memory` of a row.
#pragma once

#include <cstdint>

#include <cresset/core/tensor.h>

namespace cresset::ops {

enum class OutDtype : uint8_t {
  Castable,  // any type that the result's type can be cast to
  Exact,     // the result's type
  Flags,     // bool, or uint8 as in older programs
  Joined,    // castable, and a TypeError otherwise: cat and what is made of it
};

/// The rule of a row, and the words of its errors where they are its own: `{want}` and `{have}` stand for the types of the result and of
/// `out` as `Float`, `{want_c}` and `{have_c}` as `float`.
struct OutRule {
  constexpr OutRule(OutDtype rule, const char* own = nullptr) : dtype(rule), words(own) {}  // NOLINT(google-explicit-constructor)
  OutDtype dtype;
  const char* words;
};

/// Raises unless a result of this type may be stored in `out`: `out` is defined, no element of it occurs twice, and its type fits
/// (`result type Float can't be cast to the desired output type Long`, `Expected out tensor to have dtype float, but got double instead`).
CRESSET_API void check_out(const char* op, ScalarType result, const Tensor& out, OutRule rule);

}  // namespace cresset::ops
