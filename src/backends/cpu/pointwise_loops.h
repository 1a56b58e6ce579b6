// What a generated per-instruction-set source needs to define loops. The source defines CRESSET_ISA_NAMESPACE as baseline,
// avx2 or avx512 and includes this file last: from here on code is compiled for that instruction set (isa_begin.h).
// Everything lives in the instruction set's namespace. No compiler flags for the instruction set are needed.
//
// For the row shown in pointwise.h opgen writes
//
//   namespace cresset::cpu::CRESSET_ISA_NAMESPACE {
//   namespace {
//   template <class T>
//   void add_Tensor_loop(void* const* ptrs, int64_t n, const void* params) {
//     using namespace scalar_math;
//     const auto& args = *static_cast<const add_Tensor_args*>(params);
//     const T alpha = scalar_param<T>(args.alpha);        // Scalar -> T; Scalar? -> std::optional<T>;
//     const Stored<T>* in0 = static_cast<const Stored<T>*>(ptrs[1]);      // others: const auto lambd = other_param(args.lambd);
//     const Stored<T>* in1 = static_cast<const Stored<T>*>(ptrs[2]);
//     auto* out = static_cast<ResultType<PointwiseRule::Promote, T>*>(ptrs[0]);
//     CRESSET_POINTWISE_FOR(i, n) {
//       const T self = loaded<T>(in0[i]);   // bools are read as bytes (stored.h)
//       const T other = loaded<T>(in1[i]);
//       out[i] = static_cast<ResultType<PointwiseRule::Promote, T>>(self + alpha * other);
//     }
//   }
//   }  // namespace
//   extern const PointwiseLoops add_Tensor_loops = {add_Tensor_loop<bool>, add_Tensor_loop<int32_t>, ...};  // or nullptr
//   }
//
// With dtype "bool_first" the first operand is of bools. A promoting scalar of `eq.Scalar(Tensor self, Scalar other)` comes
// by pointer and is read before the loop: `const T other = *static_cast<const T*>(ptrs[2]);`, and `Scalar? min` is
// `const std::optional<T> min = optional_param<T>(ptrs[2]);`.
#pragma once

#include <bit>
#include <cmath>
#include <complex>
#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>
#include <type_traits>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <cresset/base/error.h>
#include <cresset/base/half.h>
#include <cresset/core/scalar.h>

#include "backends/cpu/pointwise.h"
#include "backends/cpu/stored.h"
// Last, because it changes the instruction set.
#include "backends/cpu/isa_begin.h"

// Iterations are independent although result and operand may be the same memory.
#define CRESSET_POINTWISE_FOR(i, n) _Pragma("GCC ivdep") for (int64_t i = 0; i < (n); ++i)

#include "backends/cpu/reduced_strips.h"
#include "backends/cpu/scalar_special.h"

namespace cresset::cpu::CRESSET_ISA_NAMESPACE {
namespace {

// Of rows with `quick`: elements that are asked about together, and where an answer is kept, as wide as they are.
[[maybe_unused]] constexpr int64_t kQuickBlock = 256;
template <class T>
using QuickFlag = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;

template <PointwiseRule rule, class T>
struct ResultTypeOf {
  using type = T;
};
template <class T>
struct ResultTypeOf<PointwiseRule::Compare, T> {
  using type = bool;
};
template <class T>
struct ResultTypeOf<PointwiseRule::ToBool, T> {
  using type = bool;
};
template <class T>
struct ResultTypeOf<PointwiseRule::Abs, std::complex<T>> {
  using type = T;
};
template <PointwiseRule rule, class T>
using ResultType = typename ResultTypeOf<rule, T>::type;

template <class T>
inline T scalar_param(const Scalar& value) {
  return value.to<T>();
}
template <class T>
inline std::optional<T> scalar_param(const std::optional<Scalar>& value) {
  return value ? std::optional<T>(value->to<T>()) : std::nullopt;
}

template <class T>
inline std::optional<T> optional_param(const void* value) {
  return value ? std::optional<T>(*static_cast<const T*>(value)) : std::nullopt;
}

// A word as its place among the row's `choices`, so that `approximate == "tanh"` is a loop invariant; another word is refused.
template <std::size_t N>
inline std::size_t choice_param(std::string_view word, const std::string_view (&choices)[N], const char* refusal) {
  for (std::size_t i = 0; i < N; ++i)
    if (word == choices[i]) return i;
  CRESSET_THROW(Error, refusal);
}

template <class A>
inline A other_param(const A& value) {
  return value;
}

}  // namespace
}  // namespace cresset::cpu::CRESSET_ISA_NAMESPACE
