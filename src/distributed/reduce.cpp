#include "distributed/reduce.h"

#include <algorithm>
#include <cmath>
#include <complex>

#include <cresset/base/half.h>

namespace cresset::distributed {

namespace {

template <class T>
constexpr bool kIsHalf = std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>;
template <class T>
constexpr bool kIntegral = std::is_integral_v<T>;
template <class T>
constexpr bool kComplex = std::is_same_v<T, std::complex<float>> || std::is_same_v<T, std::complex<double>>;

/// How values are computed with: half types in float, bool as it is.
template <class T>
auto widened(T v) {
  if constexpr (kIsHalf<T>)
    return static_cast<float>(v);
  else
    return v;
}

/// `out` may be `a` itself; no other memory is shared (ivdep: without it, one of the two is not vectorised).
template <class T, class F>
void each(void* out, const void* a, const void* b, std::size_t n, F f) {
  auto* o = static_cast<T*>(out);
  const auto *x = static_cast<const T*>(a), *y = static_cast<const T*>(b);
#pragma GCC ivdep
  for (std::size_t i = 0; i < n; ++i) o[i] = static_cast<T>(f(widened(x[i]), widened(y[i])));
}

// NaN wins, as in the operators of tensors.
template <class T>
T smaller(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) return std::isnan(a) || a < b ? a : b;
  return std::min(a, b);
}
template <class T>
T larger(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) return std::isnan(a) || a > b ? a : b;
  return std::max(a, b);
}

/// Sums of bool are "or", products "and". Integers wrap.
template <class T>
ReduceFunction arithmetic(bool product) {
  if constexpr (std::is_same_v<T, bool>) {
    if (product)
      return [](void* o, const void* a, const void* b, std::size_t n) { each<T>(o, a, b, n, [](bool x, bool y) { return x && y; }); };
    return [](void* o, const void* a, const void* b, std::size_t n) { each<T>(o, a, b, n, [](bool x, bool y) { return x || y; }); };
  } else if constexpr (kIntegral<T>) {
    if (product)
      return [](void* o, const void* a, const void* b, std::size_t n) {
        each<T>(o, a, b, n, [](T x, T y) { return static_cast<T>(static_cast<uint64_t>(x) * static_cast<uint64_t>(y)); });
      };
    return [](void* o, const void* a, const void* b, std::size_t n) {
      each<T>(o, a, b, n, [](T x, T y) { return static_cast<T>(static_cast<uint64_t>(x) + static_cast<uint64_t>(y)); });
    };
  } else {
    if (product)
      return [](void* o, const void* a, const void* b, std::size_t n) { each<T>(o, a, b, n, [](auto x, auto y) { return x * y; }); };
    return [](void* o, const void* a, const void* b, std::size_t n) { each<T>(o, a, b, n, [](auto x, auto y) { return x + y; }); };
  }
}
template <class T>
ReduceFunction order(bool largest) {
  if constexpr (kComplex<T>) {
    return nullptr;
  } else {
    if (largest)
      return [](void* o, const void* a, const void* b, std::size_t n) { each<T>(o, a, b, n, [](auto x, auto y) { return larger(x, y); }); };
    return [](void* o, const void* a, const void* b, std::size_t n) { each<T>(o, a, b, n, [](auto x, auto y) { return smaller(x, y); }); };
  }
}
template <class T>
ReduceFunction bits(ReduceOp::RedOpType op) {
  if constexpr (!kIntegral<T>) {
    return nullptr;
  } else {
    switch (op) {
      case ReduceOp::BAND:
        return [](void* o, const void* a, const void* b, std::size_t n) {
          each<T>(o, a, b, n, [](T x, T y) { return static_cast<T>(x & y); });
        };
      case ReduceOp::BOR:
        return [](void* o, const void* a, const void* b, std::size_t n) {
          each<T>(o, a, b, n, [](T x, T y) { return static_cast<T>(x | y); });
        };
      default:
        return [](void* o, const void* a, const void* b, std::size_t n) {
          each<T>(o, a, b, n, [](T x, T y) { return static_cast<T>(x ^ y); });
        };
    }
  }
}
template <class T>
ReduceFunction of_type(ReduceOp::RedOpType op) {
  switch (op) {
    case ReduceOp::SUM:
    case ReduceOp::AVG:
    case ReduceOp::PREMUL_SUM: return arithmetic<T>(false);
    case ReduceOp::PRODUCT: return arithmetic<T>(true);
    case ReduceOp::MIN: return order<T>(false);
    case ReduceOp::MAX: return order<T>(true);
    case ReduceOp::BAND:
    case ReduceOp::BOR:
    case ReduceOp::BXOR: return bits<T>(op);
    case ReduceOp::UNUSED: break;
  }
  return nullptr;
}

ReduceFunction find(ReduceOp::RedOpType op, ScalarType type) {
  switch (type) {
    case kBool: return of_type<bool>(op);
    case kByte: return of_type<uint8_t>(op);
    case kChar: return of_type<int8_t>(op);
    case kShort: return of_type<int16_t>(op);
    case kInt: return of_type<int32_t>(op);
    case kLong: return of_type<int64_t>(op);
    case kUInt16: return of_type<uint16_t>(op);
    case kUInt32: return of_type<uint32_t>(op);
    case kUInt64: return of_type<uint64_t>(op);
    case kHalf: return of_type<Half>(op);
    case kBFloat16: return of_type<BFloat16>(op);
    case kFloat: return of_type<float>(op);
    case kDouble: return of_type<double>(op);
    case kComplexFloat: return of_type<std::complex<float>>(op);
    case kComplexDouble: return of_type<std::complex<double>>(op);
    default: return nullptr;
  }
}

const char* name_of(ReduceOp::RedOpType op) {
  constexpr const char* kNames[] = {"ReduceOp.SUM",  "ReduceOp.AVG", "ReduceOp.PRODUCT", "ReduceOp.MIN",        "ReduceOp.MAX",
                                    "ReduceOp.BAND", "ReduceOp.BOR", "ReduceOp.BXOR",    "ReduceOp.PREMUL_SUM", "ReduceOp.UNUSED"};
  return kNames[op];
}

}  // namespace

ReduceFunction reduce_function(ReduceOp::RedOpType op, ScalarType type) {
  const ReduceFunction f = find(op, type);
  if (f) return f;
  const bool bitwise = op == ReduceOp::BAND || op == ReduceOp::BOR || op == ReduceOp::BXOR;
  CRESSET_CHECK_VALUE(!bitwise, "Cannot use ", name_of(op), " with non-integral dtype");
  CRESSET_THROW(ValueError, "Cannot use ", name_of(op), " with dtype ", toString(type), ": it has no order, or is not supported by gloo.");
}

}  // namespace cresset::distributed
